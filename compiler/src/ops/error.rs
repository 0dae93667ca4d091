//! The error of an op that rejects its operands.

use crate::types::TensorType;

/// The expected and the actual operands, in one sentence. The caller adds the op's name and place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    /// The sentence, such as `expected an integer operand, got f32[3]`.
    pub message: String,
}

/// Returns a [`TypeError`] with a formatted sentence.
macro_rules! refuse {
    ($($sentence:tt)*) => {
        return Err($crate::TypeError::new(format!($($sentence)*)))
    };
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
