//! Tasks of bsuite do what gymnax's and bsuite's do.

use super::{Start, close, follows, from_keys, numbers, pays, records};
use podracer_dsl::prelude::*;
use podracer_envs::{DeepSea, DiscountingChain, MemoryChain, SimpleBandit, UmbrellaChain};
use serde_json::Value;

/// The record of an environment with this note.
fn record(env: &str, note: &str) -> Value {
    let starts =
        |record: &Value| record["note"].as_str().is_some_and(|text| text.starts_with(note));
    records("envs.json", env)
        .into_iter()
        .find(starts)
        .unwrap_or_else(|| panic!("{env}: no record '{note}'"))
}

#[test]
fn deep_sea_follows_gymnax() {
    let sea = DeepSea { size: 5, randomize_actions: false, ..DeepSea::default() };
    pays(sea, &record("DeepSea-bsuite", "deterministic"));
}

#[test]
fn deep_sea_with_a_current_moves_as_gymnax_and_pays_as_bsuite() {
    let sea = DeepSea { size: 4, deterministic: false, mapping_seed: 3, ..DeepSea::default() };
    let record = record("DeepSea-bsuite", "mapping of seed 3");
    let steps = follows(sea, &record, &Start::new());

    // bsuite's rules in plain Rust, of the draws of the steps' keys.
    let actions = numbers(&record, "actions");
    let count = actions.len();
    let draws = trace(key(), |key| {
        let keys = key.split_n(count + 1);
        let others = Keys::from_words(keys.words().slice_axis(0, 1..count + 1));
        let mapping = Key::new(3u32).bernoulli([4, 4], 0.5);
        let draws = vmap(others, |key| {
            let (noise, current) = key.split().0.split();
            (noise.normal([]), current.uniform([]))
        });
        (mapping, draws)
    });
    let seed = Array::ints(DType::U32, [2], &[0, 21]);
    let draws = draws.expect("it traces").eval(&[seed]).expect("a key");
    let [mapping, noise, current] = [0, 1, 2].map(|i| draws[i].to_f64());
    let (mut row, mut column) = (0, 0);
    let (mut expected, mut held_up) = (Vec::new(), 0);
    for (t, action) in actions.into_iter().enumerate() {
        let right = action == mapping[4 * row + column];
        let mut reward = if right && column == 3 { 1.0 } else { 0.0 };
        if row == 3 && (column == 0 || column == 3) {
            reward += noise[t];
        }
        if right {
            reward -= 0.01 / 4.0;
            if current[t] > 0.25 {
                column = (column + 1).min(3);
            } else {
                held_up += 1;
            }
        } else {
            column = column.saturating_sub(1);
        }
        row = (row + 1) % 4;
        if row == 0 {
            column = 0;
        }
        expected.push(reward);
    }
    assert!(held_up > 3, "the record has steps that fail");
    close("rewards", &steps.rewards.to_f64(), &expected, 1e-5);
}

#[test]
fn deep_sea_has_one_way_to_its_treasure() {
    let sea = DeepSea { size: 6, ..DeepSea::default() };
    let mapping = trace((), |()| Key::new(0u32).bernoulli([6, 6], 0.5)).expect("it traces");
    let mapping = mapping.eval(&[]).expect("no arguments")[0].to_f64();
    let best: Vec<i128> = (0..6).map(|i| mapping[7 * i] as i128).collect();
    let total = |actions: &[i128]| -> f64 {
        let actions = Array::ints(DType::I32, [6], actions);
        from_keys(sea, 1, &actions, &Start::new()).rewards.to_f64().iter().sum()
    };
    assert!((total(&best) - 0.99).abs() < 1e-6);
    for wrong in 0..6 {
        let mut actions = best.clone();
        actions[wrong] = 1 - actions[wrong];
        assert!(total(&actions) <= 0.0, "step {wrong} goes to the left");
    }
}

#[test]
fn umbrella_chain_follows_gymnax() {
    let chain = UmbrellaChain { distractors: 3, ..UmbrellaChain::default() };
    pays(chain, &record("UmbrellaChain-bsuite", "3 distractors"));
}

#[test]
fn memory_chain_follows_gymnax() {
    for bits in [1, 3] {
        let chain = MemoryChain { length: 5, bits };
        pays(chain, &record("MemoryChain-bsuite", &format!("{bits} bit")));
    }
}

#[test]
fn discounting_chain_follows_gymnax() {
    pays(DiscountingChain { best: 3 }, &record("DiscountingChain-bsuite", "choice 3"));
    // Each choice is paid once, in its own step; the best one a tenth more.
    for (choice, delay) in [1, 3, 10, 30, 100].into_iter().enumerate() {
        let mut actions = vec![4; 100];
        actions[0] = choice as i128;
        let actions = Array::ints(DType::I32, [100], &actions);
        let steps = from_keys(DiscountingChain::default(), 0, &actions, &Start::new());
        let mut expected = vec![0.0; 100];
        expected[delay - 1] = if choice == 0 { 1.1 } else { 1.0 };
        close("rewards", &steps.rewards.to_f64(), &expected, 1e-6);
        assert_eq!(steps.terminated.to_f64().iter().position(|&done| done == 1.0), Some(99));
    }
}

#[test]
fn simple_bandit_has_the_arms_of_its_seed() {
    let expected = numbers(&records("envs.json", "SimpleBandit-bsuite")[0], "rewards");
    let arms = Array::ints(DType::I32, [11], &(0..11).collect::<Vec<_>>());
    for (seed, expected) in expected.chunks_exact(11).enumerate() {
        let bandit = SimpleBandit { mapping_seed: seed as u32, ..SimpleBandit::default() };
        let steps = from_keys(bandit, 9, &arms, &Start::new());
        close(&format!("arms of seed {seed}"), &steps.rewards.to_f64(), expected, 1e-6);
        assert_eq!(steps.terminated.to_f64(), [1.0; 11]);
    }
}
