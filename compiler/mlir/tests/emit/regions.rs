//! Ops with regions: whole modules, since structure is what matters.

use crate::double::module;
use crate::programs;

#[test]
fn while_loop() {
    insta::assert_snapshot!(module(&programs::while_loop()).text);
}

#[test]
fn branches_that_read_outer_values() {
    insta::assert_snapshot!(module(&programs::branches()).text);
}

#[test]
fn nested_switch() {
    insta::assert_snapshot!(module(&programs::switch()).text);
}

#[test]
fn reduce() {
    insta::assert_snapshot!(module(&programs::reduce()).text);
}

#[test]
fn sort_with_a_comparator() {
    insta::assert_snapshot!(module(&programs::sort()).text);
}
