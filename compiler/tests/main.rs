//! The compiler's integration tests: one binary, a module for each concern.

mod conformance;
mod programs;
mod text;
