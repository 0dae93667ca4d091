//! Warnings of traced programs, logged when the programs are compiled.

use std::sync::{Mutex, PoisonError};

use podracer_dsl::prelude::Warning;

/// Logs a warning of a traced program, with the user's line. Each line is logged once in this
/// process, regardless of the number of programs with the line.
pub(crate) fn tell(warning: &Warning) {
    static REPORTED: Mutex<Vec<Warning>> = Mutex::new(Vec::new());
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !reported.contains(warning) {
        let text = warning.to_string();
        tracing::warn!("{}", text.strip_prefix("warning: ").unwrap_or(&text));
        reported.push(warning.clone());
    }
}
