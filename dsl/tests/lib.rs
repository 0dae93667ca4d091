//! The tests of podracer-dsl, in a separate package. The DSL is optimized a little, for all crates
//! that trace with it. Its tests are many small generic programs, and would take minutes to compile
//! with that optimization.
#![forbid(unsafe_code)]
