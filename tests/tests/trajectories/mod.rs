//! Trajectories from keys: environments draw bit-identically to gymnax, over whole episodes and
//! resets.

mod bsuite;
mod connector;
mod craftax;
mod minatar;
mod minigrid;
mod puzzles;

use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_tests::{golden, xla};
use serde_json::Value;

/// Runs a function on arrays, by XLA.
fn run<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Array> {
    let traced = trace(spec, f).unwrap_or_else(|errors| panic!("{errors}"));
    xla::run(traced.func(), arguments).expect("XLA runs it")
}

/// [`run`] of a program that XLA does not optimize, as it would take long.
fn run_quickly<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Vec<Array> {
    let traced = trace(spec, f).unwrap_or_else(|errors| panic!("{errors}"));
    xla::run_quickly(traced.func(), arguments).expect("XLA runs it")
}

/// All records of an environment in a golden file.
fn records(file: &str, env: &str) -> Vec<Value> {
    let all = golden::records(file).expect("it parses").expect("it is checked in");
    let these: Vec<Value> = all.into_iter().filter(|record| record["env"] == env).collect();
    assert!(!these.is_empty(), "{file} has no records of {env}");
    these
}

/// A number of a record.
fn number(record: &Value, field: &str) -> usize {
    record[field].as_u64().expect("a number") as usize
}

/// The numbers of a record's array.
fn numbers(record: &Value, field: &str) -> Vec<f64> {
    golden::array(&record[field]).expect("an array").to_f64()
}

/// Asserts that numbers are equal up to `tolerance`, relative beyond 1.
#[track_caller]
fn close(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}: counts");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs() / expected.abs().max(1.0);
        assert!(error <= tolerance, "{what}[{i}]: got {got}, expected {expected}");
    }
}

/// Consecutive steps, from keys, of an environment with automatic resets.
struct Trajectory {
    /// The observation of the first state, and of the state after each step: of the next episode's first where one ends.
    shown: Array,
    rewards: Array,
    terminated: Array,
    truncated: Array,
}

/// Numbers to put in place of fields of the first state, by their paths.
type Start = Vec<(&'static str, i64)>;

/// A state with some fields replaced.
fn started<S: Tree>(state: S, start: &Start) -> S {
    for (name, _) in start {
        let found = state.spec().leaves().iter().any(|(path, _)| path.to_string() == *name);
        assert!(found, "the state has no field `{name}`");
    }
    let mut paths = state.spec().leaves().into_iter();
    state.map(&mut |leaf| {
        let (path, _) = paths.next().expect("as many paths as leaves");
        let replaced = start.iter().find(|(name, _)| path.to_string() == *name);
        replaced.map_or(leaf, |(_, value)| scalar(*value as i32).astype(leaf.dtype()))
    })
}

/// Steps from the keys that `split(PRNGKey(seed), 1 + steps)` gives in JAX: the first resets, the others step.
fn from_keys<E: Environment<Observation = Tensor>>(
    env: E,
    seed: u32,
    actions: &Array,
    start: &Start,
) -> Trajectory {
    let env = env.auto_reset();
    let count = actions.ty().shape[0];
    let spec = Spec::<Tensor>(actions.ty().clone());
    let results = run(spec, std::slice::from_ref(actions), |actions| {
        let keys = Key::new(seed).split_n(count + 1);
        let first = started(env.initial_state(keys.at(0)), start);
        let before = env.observe(first.clone()).expand_dims(0);
        let others = Keys::from_words(keys.words().slice_axis(0, 1..count + 1));
        let (_, (shown, timestep)) = scan(first, (actions, others), |state, (action, key)| {
            let (state, timestep) = env.step(state, action, key);
            let outcome = (timestep.reward, timestep.terminated, timestep.truncated);
            (state.clone(), (env.observe(state), outcome))
        });
        (concatenate(&[before, shown], 0), timestep)
    });
    let [shown, rewards, terminated, truncated] = results.try_into().expect("four results");
    Trajectory { shown, rewards, terminated, truncated }
}

/// The CRC-32 of bytes, as zlib computes it.
fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The checksum of each observation with elements 0 or 1, as in the records.
fn checksums(observations: &Array) -> Vec<f64> {
    let values = observations.to_f64();
    let each = values.len() / observations.ty().shape[0];
    let bytes = values.chunks_exact(each).map(|one| one.iter().map(|&value| value as u8));
    bytes.map(|one| f64::from(crc32(one))).collect()
}

/// Chi-squared of two samples' counts, for each degree of freedom.
fn chi_squared(got: &[f64], expected: &[f64]) -> f64 {
    let [all, of] = [got, expected].map(|counts| counts.iter().sum::<f64>());
    let (mut sum, mut kinds) = (0.0, 0);
    for (got, expected) in got.iter().zip(expected).filter(|(got, expected)| *got + *expected > 0.0)
    {
        let difference = got * (of / all).sqrt() - expected * (all / of).sqrt();
        (sum, kinds) = (sum + difference * difference / (got + expected), kinds + 1);
    }
    // Samples of one kind alone cannot differ.
    if kinds < 2 { 0.0 } else { sum / f64::from(kinds - 1) }
}

/// Asserts that numbers are equal, and reports the first step that differs.
#[track_caller]
fn equal(what: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{what}: counts");
    let differs = got.iter().zip(expected).position(|(got, expected)| got != expected);
    assert_eq!(differs, None, "{what}: the first step that differs");
}

/// Asserts that the environment matches the record bit-identically, except for observations of
/// floats, `1e-6`.
fn follows<E: Environment<Observation = Tensor>>(
    env: E,
    record: &Value,
    start: &Start,
) -> Trajectory {
    let note = record["note"].as_str().unwrap_or("");
    let seed = record["seed"].as_u64().expect("a seed") as u32;
    let steps = from_keys(env, seed, &golden::array(&record["actions"]).expect("an array"), start);
    let (terminated, truncated) = (steps.terminated.to_f64(), steps.truncated.to_f64());
    let done: Vec<f64> = terminated.iter().zip(&truncated).map(|(a, b)| a + b).collect();
    let numbers = |field: &str| numbers(record, field);
    let observations = [numbers("observation"), numbers("observations")].concat();
    if record["observations"]["dtype"] == "u32" {
        equal(&format!("{note}: observations"), &checksums(&steps.shown), &observations);
    } else {
        close(&format!("{note}: observations"), &steps.shown.to_f64(), &observations, 1e-6);
    }
    equal(&format!("{note}: done"), &done, &numbers("dones"));
    if !record["terminated"].is_null() {
        equal(&format!("{note}: terminated"), &terminated, &numbers("terminated"));
    }
    steps
}

/// [`follows`], and the rewards are the record's too.
fn pays_from<E: Environment<Observation = Tensor>>(env: E, record: &Value, start: &Start) {
    let note = record["note"].as_str().unwrap_or("");
    let steps = follows(env, record, start);
    let expected = numbers(record, "rewards");
    close(&format!("{note}: rewards"), &steps.rewards.to_f64(), &expected, 1e-7);
}

/// [`pays_from`] the first state of the first key.
fn pays<E: Environment<Observation = Tensor>>(env: E, record: &Value) {
    pays_from(env, record, &Start::new());
}

#[test]
fn kinds_that_one_sample_alone_has_count_and_a_single_kind_is_equal() {
    assert_eq!(chi_squared(&[0.0, 50.0, 0.0], &[0.0, 70.0, 0.0]), 0.0);
    // A kind that was not expected at all.
    assert!(chi_squared(&[50.0, 50.0], &[100.0, 0.0]) > 10.0);
    assert_eq!(
        chi_squared(&[50.0, 50.0], &[100.0, 0.0]),
        chi_squared(&[100.0, 0.0], &[50.0, 50.0])
    );
}

#[test]
fn checksums_are_those_of_zlib() {
    assert_eq!(crc32(b"123456789".iter().copied()), 0xcbf4_3926);
    let two = Array::floats(DType::F32, [2, 2], &[0.0, 0.0, 0.0, 0.0]);
    assert_eq!(checksums(&two), [f64::from(crc32([0, 0].into_iter())); 2]);
}
