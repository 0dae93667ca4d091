//! Reports of a trace: errors and warnings with the line of the user's source, and notes that name further lines.

use podracer_compiler::Loc;
use std::fmt;

/// A mistake in a traced function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The op or combinator that found it, such as `add` or `scan`; empty if there is none.
    pub op: String,
    /// The message: the expected and the actual value, with the path of the leaf if it is about a
    /// leaf.
    pub message: String,
    /// The place in the user's source.
    pub loc: Loc,
    /// The role of the place if the error names several, such as `body`; otherwise empty.
    pub label: &'static str,
    /// Further places, such as `carry began at src/my_env.rs:55:9`.
    pub notes: Vec<Note>,
}

/// A further place in the source that helps to understand an error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The event at the place, such as `carry began at`.
    pub text: String,
    /// The place in the source.
    pub loc: Loc,
}

impl TraceError {
    /// An error of an op at a place.
    pub(crate) fn new(op: impl Into<String>, message: impl Into<String>, loc: Loc) -> Self {
        TraceError { op: op.into(), message: message.into(), loc, label: "", notes: Vec::new() }
    }

    /// Sets the label of the place.
    pub(crate) fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    /// Adds a further place.
    pub(crate) fn note(mut self, text: impl Into<String>, loc: Loc) -> Self {
        self.notes.push(Note { text: text.into(), loc });
        self
    }
}

fn write_report(
    f: &mut fmt::Formatter<'_>,
    kind: &str,
    op: &str,
    message: &str,
    loc: Loc,
    label: &str,
    notes: &[Note],
) -> fmt::Result {
    write!(f, "{kind}: ")?;
    if !op.is_empty() {
        write!(f, "{op}: ")?;
    }
    write!(f, "{message}")?;
    let mut separator = "\n  --> ";
    if loc != Loc::NONE {
        write!(f, "{separator}{loc}")?;
        if !label.is_empty() {
            write!(f, " ({label})")?;
        }
        separator = ", ";
    }
    for note in notes {
        write!(f, "{separator}{} {}", note.text, note.loc)?;
        separator = ", ";
    }
    Ok(())
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_report(f, "error", &self.op, &self.message, self.loc, self.label, &self.notes)
    }
}

impl std::error::Error for TraceError {}

/// All mistakes in one trace, in the order of their discovery.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceErrors {
    /// The mistakes; at least one.
    pub errors: Vec<TraceError>,
}

impl fmt::Display for TraceErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// The text of `Display`, so that `fn main() -> Result<(), TraceErrors>` and `unwrap` show readable text.
impl fmt::Debug for TraceErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}\n")
    }
}

impl std::error::Error for TraceErrors {}

/// A warning: the program works but is probably not intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The combinator that the warning is about.
    pub op: String,
    /// The message: what happens, and how to silence the warning.
    pub message: String,
    /// The place in the user's source.
    pub loc: Loc,
    /// Further places, such as the enclosing scopes.
    pub notes: Vec<Note>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_report(f, "warning", &self.op, &self.message, self.loc, "", &self.notes)
    }
}
