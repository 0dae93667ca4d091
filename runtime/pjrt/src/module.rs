//! StableHLO modules with the types of their arguments and results.

use podracer_compiler::TensorType;

use crate::RuntimeError;

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
    /// The text without source locations, if `text` has some. A cache's key is made of it, so that a moved line of the user's
    /// program is not compiled again.
    pub key_text: Option<String>,
}

impl Module {
    /// A module with its text as its own key.
    #[must_use]
    pub fn new(
        text: impl Into<String>,
        arguments: Vec<TensorType>,
        results: Vec<TensorType>,
    ) -> Self {
        Self { text: text.into(), arguments, results, key_text: None }
    }

    /// Text that identifies the module in a cache.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key_text.as_deref().unwrap_or(&self.text)
    }

    /// Refuses another number of replicas than the module was written for. XLA would compile it, and turn a collective over
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

/// The number that a module has under this name among its attributes.
pub(crate) fn module_attribute(text: &str, name: &str) -> Option<usize> {
    let rest = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}
