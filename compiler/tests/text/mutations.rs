//! Texts with something wrong in them: no panic, and what still reads is printed and read back as the same.

use super::fixtures;
use crate::conformance::text::check_text;
use crate::conformance::{cases, func_of, types_of};
use podracer_compiler::text;
use proptest::prelude::*;
use std::sync::OnceLock;

/// The fixtures, and the samples that are short.
fn texts() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let samples = cases().into_iter().map(|case| {
            let types = types_of(&case.sample.inputs);
            func_of(&case.sample.op, &types).expect("samples fit").to_string()
        });
        let fixtures = fixtures::all().into_iter().map(|(_, text)| text);
        samples.filter(|text| text.len() < 4096).chain(fixtures).collect()
    })
}

/// The words, numbers and signs of a text, with the spaces between them.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '%';
        let length = match word(first) {
            true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = &rest[length..];
    }
    tokens
}

/// Tokens that are wrong in many places.
const ODD: &[&str] = &[
    "",
    "-",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "9223372036854775807",
    "18446744073709551615",
    "1e999",
    "nan",
    "inf",
    "f32",
    "i8",
    "bool",
    "[]",
    "()",
    "{",
    "}",
    "\"",
    "//",
    "func",
    "return",
    "loc",
    "splat",
    "%0",
    "%1",
    "é",
    "\0",
    "[0, 0]",
    "true",
];

#[derive(Clone, Debug)]
enum Change {
    Remove,
    Repeat,
    Odd(prop::sample::Index),
    Other(prop::sample::Index),
}

fn change() -> impl Strategy<Value = (prop::sample::Index, Change)> {
    let change = prop_oneof![
        Just(Change::Remove),
        Just(Change::Repeat),
        any::<prop::sample::Index>().prop_map(Change::Odd),
        any::<prop::sample::Index>().prop_map(Change::Other),
    ];
    (any::<prop::sample::Index>(), change)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_text_that_is_changed_reads_or_says_what_is_wrong(
        text: prop::sample::Index,
        changes in prop::collection::vec(change(), 1..5),
    ) {
        let text = text.get(texts());
        let mut tokens = tokens(text);
        for (at, change) in changes {
            let at = at.index(tokens.len());
            match change {
                Change::Remove if tokens.len() > 1 => drop(tokens.remove(at)),
                Change::Remove | Change::Repeat => tokens.insert(at, tokens[at]),
                Change::Odd(odd) => tokens[at] = ODD[odd.index(ODD.len())],
                Change::Other(other) => tokens[at] = tokens[other.index(tokens.len())],
            }
        }
        let changed = tokens.concat();
        if let Ok(func) = text::parse(&changed) {
            prop_assert_eq!(check_text(&func), Ok(()));
        }
    }
}
