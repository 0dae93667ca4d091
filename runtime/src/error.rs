//! Errors of arrays as errors of what works with them.

use crate::{ArrayError, RuntimeError};

/// Errors that a runtime's error is converted to are made of an array's, too.
macro_rules! of_array_errors {
    ($($error:ty),*) => {$(
        impl From<ArrayError> for $error {
            fn from(error: ArrayError) -> Self {
                RuntimeError::from(error).into()
            }
        }
    )*};
}
of_array_errors!(
    crate::CallError,
    crate::CheckpointError,
    crate::SebulbaError,
    crate::ThreadFailure
);
