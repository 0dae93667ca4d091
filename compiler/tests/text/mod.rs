//! The text of whole programs: fixtures, and mutations of them.

mod fixtures;
mod mutations;
