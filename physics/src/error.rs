//! Errors of reading and compiling a model, each with its place in the XML.

use std::fmt;
use std::sync::Arc;

/// Line and column of a text, with the name of its file if it has one. Both begin at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlPlace {
    /// Path of the file, or `<text>`.
    pub file: Arc<str>,
    /// Number of the line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl fmt::Display for XmlPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The reason why a text is no model.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A file that cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// Path as given.
        path: String,
        /// The system's message.
        reason: String,
    },
    /// A text that is not well-formed XML.
    #[error("{place}: not well-formed XML: {reason}")]
    Xml {
        /// Position of the fault.
        place: XmlPlace,
        /// The parser's message.
        reason: String,
    },
    /// An element or an attribute that MJCF does not have at this position.
    #[error("{place}: {what} is unknown{hint}")]
    Unknown {
        /// Position of the element or attribute.
        place: XmlPlace,
        /// Element and attribute, as in "attribute `mas` of `geom`".
        what: String,
        /// Near names, as in "; did you mean `mass`?", or nothing.
        hint: String,
    },
    /// Dynamics that this crate does not cover.
    #[error("{place}: {what} is not covered{hint}")]
    NotCovered {
        /// Position of the element or attribute.
        place: XmlPlace,
        /// Element and attribute.
        what: String,
        /// Advice, as in "; leave it out, or set it to `false`".
        hint: String,
    },
    /// A value of the wrong form or range.
    #[error("{place}: {what} is \"{got}\": expected {expected}")]
    Value {
        /// Position of the attribute.
        place: XmlPlace,
        /// Element and attribute.
        what: String,
        /// The admissible values.
        expected: String,
        /// The text of the attribute.
        got: String,
    },
    /// Elements that contradict each other, or that lack something.
    #[error("{place}: {message}")]
    Invalid {
        /// Position of the element.
        place: XmlPlace,
        /// The contradiction, and how to solve it.
        message: String,
    },
}

/// A result with an [`Error`].
pub type ModelResult<T> = std::result::Result<T, Error>;
