//! Tools for the tests of every crate. It depends on none of ours; `podracer-tests` has tools that do.
//!
//! - [`generated`]: checked-in files that are made by a program.
//! - [`mpi`]: the launcher of several processes.
//! - [`pages`]: the pages of `docs/`, taken apart.
//! - [`python`]: a Python with packages.
//! - [`skip`]: tests that cannot run here.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod generated;
pub mod mpi;
pub mod pages;
pub mod python;
pub mod skip;
