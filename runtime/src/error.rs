//! Errors of arrays, converted to errors of the modules that use arrays.

use crate::{ArrayError, RuntimeError};

/// Converts array errors into an error type that already wraps runtime errors.
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
