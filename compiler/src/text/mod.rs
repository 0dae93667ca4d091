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
//! - Whatever the text, [`parse`] gives a function that the verifier accepts or an error with line and column. It does not
//!   panic, and neither its stack nor its memory grows faster than the text, but for arrays of one value, which have a bound.
//!
//! All NaNs are one value, `nan`: sign and payload are not kept, as [`Scalar`](crate::Scalar)'s equality has it.

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

/// The parser that pest makes of `grammar.pest`: a recognizer, and [`Rule`](grammar::Rule) for each of its rules.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "text/grammar.pest"]
    pub struct Grammar;
}

/// True for the words with a meaning of their own in the text; as an attribute they are quoted.
fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "func") || crate::DType::parse(word).is_some()
}
