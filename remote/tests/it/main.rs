//! A server and its workers, good and bad ones, in one process.

mod bytes;
mod faults;
mod fuzz;
#[path = "../../../tests/src/generated.rs"]
mod generated;
mod hostile;
mod protocol;
mod python;
mod raw;
mod refusals;
mod security;
#[path = "../../../tests/src/skip.rs"]
mod skip;
mod store;
mod support;
mod working;
