//! The name of the program in messages: `podracer`, or the name of a user's own program.

use std::sync::OnceLock;

/// The file name in the command that started the process.
static NAME: OnceLock<String> = OnceLock::new();

/// The name of the program in messages.
pub(crate) fn program_name() -> &'static str {
    NAME.get().map_or("podracer", String::as_str)
}

/// Sets the name, once for the process.
pub(crate) fn set_program_name(name: String) {
    let _ = NAME.set(name);
}
