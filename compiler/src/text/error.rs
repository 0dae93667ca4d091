//! The errors of parsing a text.

use super::grammar::Rule;
use crate::ops::TypeError;
use crate::types::TensorType;
use pest::error::{Error, ErrorVariant, InputLocation};

/// The first mistake in an invalid text, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The mistake at that place.
    pub problem: Problem,
}

/// A mistake at one place of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Text that does not follow the grammar: something else is expected here.
    #[error("expected {expected}, got {got}")]
    Syntax {
        /// The expected words or signs.
        expected: String,
        /// The actual word or sign.
        got: String,
    },
    /// Nested functions, deeper than the stack allows.
    #[error("braces are nested more than {most} deep: give bodies fewer bodies of their own")]
    TooDeep {
        /// The greatest allowed depth.
        most: usize,
    },
    /// A name of no op, or of no element type.
    #[error("there is no {what} `{name}`{}", suggest(.nearest))]
    Unknown {
        /// `op` or `element type`.
        what: &'static str,
        /// The name in the text.
        name: String,
        /// The most similar valid name, if one is similar.
        nearest: Option<&'static str>,
    },
    /// The op has no attribute with this name, or already has it.
    #[error("{op} has {} attribute `{name}`: it takes {known}", if *.repeated { "already been given the" } else { "no" })]
    Attribute {
        /// The mnemonic of the op.
        op: &'static str,
        /// The name in the text.
        name: String,
        /// True if the attribute is repeated.
        repeated: bool,
        /// The valid attributes.
        known: String,
    },
    /// An attribute is missing, or its value has another kind.
    #[error("{op}: {message}")]
    Attributes {
        /// The mnemonic of the op.
        op: &'static str,
        /// The attribute, and the expected kind of value.
        message: String,
    },
    /// A variable that is not defined above in this function.
    #[error("{0} is not defined above in this function")]
    Undefined(String),
    /// A variable that is already defined above.
    #[error("{0} is defined already")]
    Redefined(String),
    /// The op rejects these operands.
    #[error("{op}: {error}")]
    Type {
        /// The mnemonic of the op.
        op: &'static str,
        /// The expected and the actual operands.
        error: TypeError,
    },
    /// The text gives a value a type that differs from the inferred type.
    #[error("the text says {written}, but {of} is {inferred}")]
    WrongType {
        /// The value, such as `result 1`.
        of: String,
        /// The type that the text gives.
        written: TensorType,
        /// The inferred type.
        inferred: TensorType,
    },
    /// The number of names, types or elements is wrong.
    #[error("expected {expected} {what}, got {got}")]
    Count {
        /// The kind of counted thing.
        what: String,
        /// The expected number.
        expected: usize,
        /// The actual number.
        got: usize,
    },
    /// A number that is no value of its type.
    #[error("`{literal}` is no {of}")]
    Literal {
        /// The number as written.
        literal: String,
        /// The type that it should have.
        of: String,
    },
    /// A type, or an array with a single repeated value, that is too large.
    #[error("{ty} is too large: {limit}")]
    TooLarge {
        /// The type that is too large.
        ty: TensorType,
        /// The limit, as a clause.
        limit: &'static str,
    },
}

fn suggest(nearest: &Option<&str>) -> String {
    nearest.map_or(String::new(), |nearest| format!("; did you mean `{nearest}`?"))
}

/// The candidate most similar to `name`, if one is similar.
pub(super) fn nearest(
    name: &str,
    candidates: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    // The distance is quadratic in the length, and no op has a name that long.
    if name.len() > 64 {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

impl ParseError {
    /// A problem at a byte position of the text.
    pub(super) fn at(text: &str, byte: usize, problem: Problem) -> ParseError {
        let before = &text[..byte];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line..].chars().count() + 1,
            problem,
        }
    }

    /// A syntax error, converted from pest's error.
    pub(super) fn of_syntax(text: &str, error: &Error<Rule>) -> ParseError {
        let (InputLocation::Pos(byte) | InputLocation::Span((byte, _))) = error.location;
        let mut expected: Vec<&str> = match &error.variant {
            ErrorVariant::ParsingError { positives, .. } => {
                positives.iter().copied().map(describe).collect()
            }
            ErrorVariant::CustomError { .. } => Vec::new(),
        };
        expected.sort_unstable();
        expected.dedup();
        let expected = match expected.as_slice() {
            // Only a colon after an operand is *not* expected.
            [] => "the next equation".to_string(),
            [one] => (*one).to_string(),
            [several @ .., last] => format!("{} or {last}", several.join(", ")),
        };
        let token = token(&text[byte..]);
        let got = match token {
            "" => "the end of the text".to_string(),
            token => format!("`{token}`"),
        };
        ParseError::at(text, byte, Problem::Syntax { expected, got })
    }
}

/// The word, number or sign at the front of the text, for messages.
fn token(rest: &str) -> &str {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '-' | '.');
    match rest.find(|c| !word(c)).unwrap_or(rest.len()).min(32) {
        _ if rest.starts_with("->") => &rest[..2],
        0 => &rest[..rest.chars().next().map_or(0, char::len_utf8)],
        length => &rest[..length],
    }
}

/// The name of a grammar rule, as shown to the user.
fn describe(rule: Rule) -> &'static str {
    match rule {
        Rule::function | Rule::func => "`func`",
        Rule::name => "a name",
        Rule::parameters | Rule::types | Rule::open_round => "`(`",
        Rule::binding | Rule::variable | Rule::operands | Rule::bindings => {
            "a variable, such as %0"
        }
        Rule::equation => "an equation",
        Rule::mnemonic => "an op",
        Rule::location | Rule::loc => "a location, loc(\"file\":1:1)",
        Rule::attributes | Rule::open_square | Rule::integers => "`[`",
        Rule::attribute | Rule::identifier | Rule::word => "a name",
        Rule::functions | Rule::open_brace => "`{`",
        Rule::array | Rule::tensor | Rule::dtype => "a type, such as f32[2,3]",
        Rule::elements | Rule::literal => "a value",
        Rule::integer => "an integer",
        Rule::string => "a name in quotes",
        Rule::returns => "`return`",
        Rule::splat => "`splat`",
        Rule::arrow => "`->`",
        Rule::close_brace => "`}`",
        Rule::close_round => "`)`",
        Rule::close_square => "`]`",
        Rule::colon => "`:`",
        Rule::comma => "`,`",
        Rule::equals => "`=`",
        Rule::EOI => "the end of the text",
        // These rules are silent, and occur in no error.
        Rule::program => "a function",
        Rule::value => "a value",
        Rule::letter => "a letter",
        Rule::WHITESPACE | Rule::COMMENT => "a space",
    }
}
