//! A server and its workers, good and bad, in one process.

mod bytes;
mod faults;
mod fuzz;
mod hostile;
mod protocol;
mod python;
mod raw;
mod refusals;
mod security;
mod store;
mod support;
mod working;
