//! Mutated texts: each is a model or an error, never a panic.

use std::fs;
use std::panic::catch_unwind;

use podracer_physics::Model;
use podracer_test_support::python::run_mujoco;
use serde_json::Value;

use crate::compare::{errors, names};

const TEXTS: usize = 2_000;

/// Values that numbers are replaced by.
const VALUES: &[&str] = &[
    "",
    " ",
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "1e400",
    "nan",
    "inf",
    "true",
    "auto",
    "0 0 0",
    "1 2",
    "0 0 0 0",
    "9999999999",
    "2147483647",
    "-2147483648",
    "free",
    "main",
    "world",
    "\u{e9}",
];

/// A generator of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Ranges of the values of attributes, without quotes.
fn values(text: &str) -> Vec<(usize, usize)> {
    let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
    quotes.chunks_exact(2).map(|pair| (pair[0] + 1, pair[1])).collect()
}

/// Ranges of the tags.
fn tags(text: &str) -> Vec<(usize, usize)> {
    let ends = |start: usize| text[start..].find('>').map(|end| start + end + 1);
    text.match_indices('<').filter_map(|(start, _)| Some((start, ends(start)?))).collect()
}

fn mutate(text: &mut String, numbers: &mut Numbers) {
    let (values, tags) = (values(text), tags(text));
    match numbers.below(6) {
        0 if !values.is_empty() => {
            let (start, end) = values[numbers.below(values.len())];
            text.replace_range(start..end, VALUES[numbers.below(VALUES.len())]);
        }
        1 if !values.is_empty() => {
            let (start, end) = values[numbers.below(values.len())];
            let (from, to) = values[numbers.below(values.len())];
            let other = text[from..to].to_owned();
            text.replace_range(start..end, &other);
        }
        2 if !tags.is_empty() => {
            let (start, end) = tags[numbers.below(tags.len())];
            text.replace_range(start..end, "");
        }
        3 if !tags.is_empty() => {
            let (start, end) = tags[numbers.below(tags.len())];
            let (at, _) = tags[numbers.below(tags.len())];
            let copy = text[start..end].to_owned();
            text.insert_str(at, &copy);
        }
        4 => {
            let mut bytes = std::mem::take(text).into_bytes();
            let at = numbers.below(bytes.len());
            bytes[at] = b" \"<>/=-.0123456789abexyz"[numbers.below(24)];
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => {
            let mut bytes = std::mem::take(text).into_bytes();
            let from = numbers.below(bytes.len());
            let to = (from + 1 + numbers.below(20)).min(bytes.len());
            bytes.drain(from..to);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}

/// Texts of the models in `tests/models`.
fn originals() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Mutated texts of a seed, with one to three mutations each.
fn mutated(seed: u64, count: usize) -> Vec<String> {
    let (originals, mut numbers) = (originals(), Numbers(seed));
    let text = |index: usize| {
        let mut text = originals[index % originals.len()].clone();
        for _ in 0..1 + numbers.below(3) {
            mutate(&mut text, &mut numbers);
        }
        text
    };
    (0..count).map(text).collect()
}

#[test]
fn mutated_models_are_mujocos() {
    let models = |text: &String| Some((text.clone(), Model::fields_of_mjcf(text).ok()?));
    let models: Vec<(String, Model)> = mutated(12, TEXTS).iter().filter_map(models).collect();
    let texts: Vec<&String> = models.iter().map(|(text, _)| text).collect();
    let names = names();
    let arguments: Vec<&str> =
        ["texts"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let script = include_str!("../golden/make_model.py");
    let input = serde_json::to_string(&texts).unwrap();
    let Some(output) = run_mujoco(script, &arguments, &input).unwrap() else { return };
    let answer: Vec<Value> = serde_json::from_str(&output[output.find('[').unwrap()..]).unwrap();
    let mut complaints = Vec::new();
    let mut rejected = 0;
    for ((text, model), expected) in models.iter().zip(&answer) {
        if expected.is_null() {
            rejected += 1;
            continue;
        }
        match errors(model, expected) {
            Err(error) => complaints.push(format!("{error}: {text}")),
            Ok(errors) => {
                // Rounding decides about bodies of a ton that hang from bodies of a gram.
                let heaviest = model.dof_M0.iter().fold(0.0_f64, |most, x| most.max(*x));
                let lightest = model.dof_M0.iter().fold(heaviest, |least, x| least.min(*x));
                let most = 1e-9 * (1.0 + 1e-6 * heaviest / lightest.max(1e-300));
                let worst: Vec<_> = errors.iter().filter(|(_, error)| **error > most).collect();
                if !worst.is_empty() {
                    complaints.push(format!("{worst:?}: {text}"));
                }
            }
        }
    }
    eprintln!("{} models, {rejected} rejected by MuJoCo", models.len());
    assert!(
        complaints.is_empty(),
        "{} of {}:\n{}",
        complaints.len(),
        models.len(),
        complaints.join("\n")
    );
}

#[test]
fn mutated_texts_never_panic() {
    let mut models = 0;
    for (index, text) in mutated(7, TEXTS).into_iter().enumerate() {
        let result = catch_unwind(|| {
            // The check of the coverage must not panic, either.
            let _ = Model::from_mjcf(&text);
            Model::fields_of_mjcf(&text)
        });
        let result = result.unwrap_or_else(|_| panic!("text {index} panics:\n{text}"));
        match result {
            Ok(model) => {
                let finite =
                    model.fields().iter().all(|(_, values)| values.iter().all(|x| x.is_finite()));
                assert!(finite, "text {index}");
                models += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // Some mutations change a number, or something without effect; most do not.
    assert!((TEXTS / 20..TEXTS).contains(&models), "{models} models");
}
