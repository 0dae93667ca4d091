//! Tests of the emitter from outside: texts of functions that are made of test doubles, so that
//! every part of the trait `Hlo` is reached regardless of the existing ops. Every text is compared
//! with MLIR's text.

mod agreement;
mod attributes;
mod calls;
mod constants;
mod double;
mod misuse;
mod programs;
mod python;
mod regions;
mod spec;
