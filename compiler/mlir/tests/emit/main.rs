//! The emitter, seen from outside: what text comes out of functions whose ops are test doubles, so that every corner of
//! the trait `Hlo` is reached whatever ops exist.

mod attributes;
mod calls;
mod constants;
mod double;
mod misuse;
mod programs;
mod python;
mod regions;
#[path = "../../../../tests/src/skip.rs"]
mod skip;
mod spec;
