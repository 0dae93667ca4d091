//! The tests of podracer-dsl, in a package of their own: the DSL is optimized a little, for all that trace with it, and its tests,
//! which are many small generic programs, would take minutes to compile so.
#![forbid(unsafe_code)]
