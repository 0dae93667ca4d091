//! The text of the IR: printed canonically, and read back exactly.
//!
//! ```text
//! func step(%0: f32[], %1: i32[]) -> (f32[]) {
//!   %2: f32[] = convert[dtype=f32] %1
//!   %3: f32[] = add %0 %2
//!   return %3
//! }
//! ```
//!
//! # Invariants
//! - `parse(print(f)) == f` for every well-formed function, and `print(parse(t)) == t` for every printed text.
//! - The grammar names no op. Mnemonics, attributes and types come from the registry and from the ops' own `infer`.
//! - For any text, [`parse`] returns a function that the verifier accepts, or an error with line
//!   and column. It does not panic. Neither its stack nor its memory grows faster than the text,
//!   except for arrays with a repeated value, which have a bound.
//!
//! All NaNs are one value, `nan`: sign and payload are not kept, consistent with
//! [`Scalar`](crate::Scalar)'s equality.

mod diff;
mod error;
mod parse;
mod print;
mod readable;
mod values;

pub use diff::{Difference, diff};
pub use error::{ParseError, Problem};
pub use parse::parse;
pub use readable::Readable;

#[cfg(test)]
mod tests;

/// The parser that pest generates from `grammar.pest`: a recognizer, and [`Rule`](grammar::Rule)
/// with a variant for each grammar rule.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "text/grammar.pest"]
    pub struct Grammar;
}

/// True for the words with a meaning in the text's grammar; as an attribute they are quoted.
fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "func") || crate::DType::parse(word).is_some()
}
