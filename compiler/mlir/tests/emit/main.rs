//! The emitter, seen from outside: text that comes out of functions whose ops are test doubles, so that every corner of
//! the trait `Hlo` is reached whatever ops exist. Every text is compared with that of MLIR.

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
