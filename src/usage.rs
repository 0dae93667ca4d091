//! Mistakes of users.

use std::fmt;

/// A mistake of the user that a correction of the command, a file or the code repairs. The command line exits with code 2.
#[derive(Debug)]
pub struct UsageError(String);

impl UsageError {
    /// An error that says what is wrong, and what would be right.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
