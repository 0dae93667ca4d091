//! Solvers in plain Rust, for measures of agents and for tests: the truth about a position.

pub mod connect_four;
pub mod tic_tac_toe;
