//! Mutated texts: each is a model or an error, never a panic.

use std::fs;
use std::panic::catch_unwind;

use podracer_physics::Model;

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

#[test]
fn mutated_texts_never_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut numbers = Numbers(7);
    let mut models = 0;
    for index in 0..TEXTS {
        let mut text = texts[index % texts.len()].clone();
        for _ in 0..1 + numbers.below(3) {
            mutate(&mut text, &mut numbers);
        }
        let result = catch_unwind(|| Model::from_mjcf(&text));
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
