//! Why an op does not take its operands.

use crate::types::TensorType;

/// What was expected and what came, in one sentence without the op's name or place: whoever reports it adds those.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// The sentence, such as `expected an integer operand, got f32[3]`.
    pub message: String,
}

impl TypeError {
    /// An error from its sentence.
    pub fn new(message: impl Into<String>) -> Self {
        TypeError { message: message.into() }
    }

    /// Checks the number of operands.
    pub fn check_arity(inputs: &[TensorType], expected: usize) -> Result<(), TypeError> {
        if inputs.len() == expected {
            return Ok(());
        }
        Err(TypeError::new(format!(
            "expected {expected} operand{}, got {}",
            if expected == 1 { "" } else { "s" },
            inputs.len()
        )))
    }
}
