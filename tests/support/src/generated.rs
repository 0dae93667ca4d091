//! Checked-in files that are made by a program.

use std::fs;

/// Checks that the file equals its generated text; `PODRACER_BLESS=1` writes it again.
#[track_caller]
pub fn check_generated(file: &str, made: &str) {
    if std::env::var_os("PODRACER_BLESS").is_some() {
        return fs::write(file, made).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let checked_in = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let equal = checked_in.lines().zip(made.lines()).take_while(|(there, made)| there == made);
    let line = equal.count() + 1;
    assert!(
        checked_in == made,
        "{file} is not what it is made of, from line {line}: PODRACER_BLESS=1 writes it anew"
    );
}
