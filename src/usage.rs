//! Mistakes of users.

/// A user's mistake that a correction of the command, a file or the code repairs. The command line
/// exits with code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// An error with the mistake and its correction.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
