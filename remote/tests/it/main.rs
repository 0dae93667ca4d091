//! A server and its workers, good and bad ones, in one process.

mod bytes;
mod faults;
mod fuzz;
mod hostile;
mod protocol;
mod python;
mod raw;
mod refusals;
mod security;
#[path = "../../../tests/src/skip.rs"]
mod skip;
mod support;
mod working;
