//! Solvers in plain Rust, for evaluations of agents and for tests: the exact value of a position.

pub mod connect_four;
pub mod tic_tac_toe;
