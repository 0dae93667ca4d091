//! The text of whole programs: fixtures, and what is left of them when they are changed.

mod fixtures;
mod mutations;
