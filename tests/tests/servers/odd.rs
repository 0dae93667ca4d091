//! Environments of Gymnasium that are odd in one way each.

use std::path::Path;

use podracer_envs::host::HostEnvironment;
use podracer_envs::host::server::{ServerOptions, Servers};
use serde_json::{Value, json};

use super::gymnasium::{MODULES, configuration};
use super::{begun, floats, python};

const ENVIRONMENTS: usize = 3;

/// Servers of the environments of `odd.py`.
fn odd(python: &Path, kwargs: &Value, changes: &Value) -> ServerOptions {
    let mut all = json!({"id": "odd:Odd-v0", "kwargs": kwargs});
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    ServerOptions::new(python, &configuration(&all)).unwrap().modules(MODULES).restarts(0)
}

/// All modes of resetting, with both kinds of vectorization.
fn modes() -> impl Iterator<Item = Value> {
    let with = |vectorization| {
        ["same-step", "next-step", "disabled"]
            .map(move |autoreset| json!({"vectorization": vectorization, "autoreset": autoreset}))
    };
    ["sync", "async"].into_iter().flat_map(with)
}

/// Place in the ring that a row of the flat observation shows.
fn place(row: &[f32]) -> usize {
    row[row.len() - 10..].iter().position(|&number| number == 1.0).unwrap()
}

#[test]
fn the_last_observation_of_an_episode_was_the_first_of_the_next() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (kind, changes) in
        ["reused", "dict"].into_iter().flat_map(|kind| modes().map(move |mode| (kind, mode)))
    {
        let options = odd(&python, &json!({"kind": kind}), &changes);
        let batch = Servers::start(&options, ENVIRONMENTS).unwrap();
        let (mut batch, mut memory) = begun(batch, 1, 0);
        let places = |bytes: &[u8]| -> Vec<usize> {
            let numbers = floats(bytes);
            numbers.chunks(numbers.len() / ENVIRONMENTS).map(place).collect()
        };
        let mut others = 0;
        for time in 1..=20 {
            let before = places(memory.observation());
            batch.step(&[0; 4 * ENVIRONMENTS], &mut memory.step()).unwrap();
            let now = places(memory.observation());
            for (i, last) in places(memory.next_observation()).into_iter().enumerate() {
                assert_eq!(last, (before[i] + 1) % 10, "{kind} {changes} step {time}");
                assert_eq!(memory.ended(i), (false, time % 5 == 0));
                others += usize::from(last != now[i]);
            }
        }
        assert!(others > 6, "{others}");
    }
}
