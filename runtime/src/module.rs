//! What is compiled: StableHLO with its types.

use podracer_compiler::TensorType;

use crate::RuntimeError;
use crate::stablehlo::module_attribute;

/// A StableHLO module and the types of its function `main`.
///
/// The types are checked against what XLA compiled: XLA itself compares only the byte size of an argument, and would read an
/// `s32[4]` as `f32[2,2]` without a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// StableHLO as text (generic or pretty).
    pub text: String,
    /// The argument types, in order.
    pub arguments: Vec<TensorType>,
    /// The result types, in order.
    pub results: Vec<TensorType>,
    /// The same module's text without source locations, where `text` has some: what a cache's key is made of, so that moving a
    /// line of the user's program does not compile it again.
    pub key_text: Option<String>,
}

impl Module {
    /// A module whose text is its own key.
    #[must_use]
    pub fn new(
        text: impl Into<String>,
        arguments: Vec<TensorType>,
        results: Vec<TensorType>,
    ) -> Self {
        Self { text: text.into(), arguments, results, key_text: None }
    }

    /// What identifies the module in a cache.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key_text.as_deref().unwrap_or(&self.text)
    }

    /// Refuses to compile a module for another number of replicas than it was written for. XLA would, and turn a collective over
    /// absent replicas into nothing.
    pub(crate) fn check_replicas(&self, replicas: usize) -> Result<(), RuntimeError> {
        match module_attribute(&self.text, "mhlo.num_replicas") {
            Some(written) if written != replicas => Err(RuntimeError::Options(format!(
                "the module is written for {written} replica(s) and is to be compiled for {replicas}"
            ))),
            _ => Ok(()),
        }
    }
}
