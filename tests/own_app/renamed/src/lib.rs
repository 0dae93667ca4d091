//! A tree in a crate that has renamed its dependency on podracer.

use rl::prelude::*;

/// A straight line: a slope and a value at 0.
#[derive(Tree, Clone)]
pub struct Line {
    /// Slope of the line. f32 `[]`
    pub weight: Tensor,
    /// Value at 0. f32 `[]`
    pub bias: Tensor,
}

#[test]
fn derive_did_not_find_a_renamed_crate() {
    let line = trace(f32([]), |x| Line { weight: x, bias: 2.0 * x }).expect("it traces");
    assert_eq!(line.results().to_string(), "{weight: f32[], bias: f32[]}");
}
