//! The commands that print, transform, compile and export programs, and train nothing.

pub(super) mod check;
pub(super) mod emit;
pub(super) mod export;
pub(super) mod opt;
mod target;
