//! The processes of one training, as MPI's launcher started them.
//!
//! # What lives here
//! - [`launched`]: the launcher's word on how many processes there are, read from the environment.
//! - [`World`]: all processes, from the inside of one. It reduces and gathers bytes over them, and ends with them.
//! - `library`: the functions of an MPI that is found and loaded at run time (the only module with
//!   unsafe code). A program that was not launched with MPI needs no MPI.
//! - `watch`: a thread that receives messages from every other process, and ends this process if
//!   another is silent for too long.
//!
//! # What must never live here
//! Devices, programs and trees: what crosses between processes are bytes and numbers.
//!
//! # Invariants
//! - Every process makes the same exchanges in the same order. Nothing here decides by a clock, except that all is over.
//! - MPI is joined once, on a thread that outlives it, before any other thread uses it.
#![deny(unsafe_code, missing_docs)]
#![deny(clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod launcher;
#[allow(unsafe_code)]
mod library;
mod watch;
mod world;

pub use error::MpiError;
pub use launcher::{Launched, launched};
pub use library::{Combine, Number};
pub use world::{Member, World};
