//! Tools that tests of several crates share. The tests themselves are in `tests/`, one module a subject.
//!
//! - [`xla`]: runs functions of the IR on the CPU plugin, many in one module.
//! - [`compare`]: how far two arrays are apart.
//! - [`cases`]: functions with arguments made from the samples of the ops.
//! - [`golden`]: the values of other packages that are checked in.
//! - [`workspace`]: the files of the repository.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod cases;
pub mod compare;
pub mod golden;
pub mod workspace;
pub mod xla;

/// Fails with every complaint, the first complaints in full. Tests over tables collect the mistakes
/// of each row, so that one run shows everything to repair.
///
/// # Panics
/// If there are complaints.
#[track_caller]
pub fn check_all(complaints: &[String]) {
    const SHOWN: usize = 60;
    let shown: Vec<&str> = complaints.iter().take(SHOWN).map(String::as_str).collect();
    assert!(complaints.is_empty(), "{} failed:\n{}", complaints.len(), shown.join("\n"));
}
