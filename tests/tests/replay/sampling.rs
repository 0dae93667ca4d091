//! Frequencies of drawn windows: against the exact probabilities, and compared with flashbax.
//!
//! Draws of single windows are independent. So the squared distances of their counts from the
//! expected counts, divided by the expected counts, have a chi-squared distribution. A batch is
//! drawn in parts of equal probability, which varies less than independent draws do (Cochran 1977,
//! "Sampling Techniques", section 5.6): for batches only too large a distance is an error.

use super::{run, seed};
use podracer_dsl::prelude::*;
use podracer_rl::learn::{Axes, RolloutShape};
use podracer_rl::replay::{Priorities, Replay, Stored};
use podracer_test_support::python;
use serde_json::json;

const SHAPE: RolloutShape = RolloutShape { lanes: 4, unroll: 5 };
/// Steps of each lane's ring.
const RING: usize = 250;
const LENGTH: usize = 3;
const EXPONENT: f64 = 0.6;
/// Rollouts that are added, each with a batch that is drawn and given priorities.
const ROUNDS: usize = 2013;
const BATCH: usize = 50;
/// Windows drawn in the end, by one and in parts of `BATCH_OF_MANY`.
const DRAWS: usize = 1_000_000;
const BATCH_OF_MANY: usize = 250;

/// Least probability of a distance that counts as chance. The seeds are fixed: a test that passes once passes always.
const CHANCE: f64 = 1e-3;

/// Most standard deviations that the count of one of a thousand windows may be from the expected one: more have a probability
/// of less than 0.001.
const FARTHEST: f64 = 5.0;

/// Probability that a standard normal number is greater.
fn upper_tail(z: f64) -> f64 {
    let traced = trace(f64([]), |z| (z * std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5);
    let traced = traced.expect("it traces");
    traced.eval(&[Array::scalar(z)]).expect("it fits")[0].to_f64()[0]
}

/// The probability that independent draws are at least as far from `expected` as these counts are: of Pearson's statistic, with
/// the chi-squared distribution of many degrees of freedom (Wilson and Hilferty 1931). Windows that are expected less than five
/// times count as one; of those that cannot be drawn one draw is too many.
fn chance(counts: &[f64], expected: &[f64]) -> f64 {
    let scale = counts.iter().sum::<f64>() / expected.iter().sum::<f64>();
    let (mut statistic, mut freedom, mut rare) = (0.0, -1.0, (0.0, 0.0));
    let mut add = |count: f64, expected: f64| {
        statistic += (count - expected).powi(2) / expected;
        freedom += 1.0;
    };
    for (&count, expected) in counts.iter().zip(expected) {
        match expected * scale {
            0.0 if count > 0.0 => return 0.0,
            expected if expected < 5.0 => rare = (rare.0 + count, rare.1 + expected),
            expected => add(count, expected),
        }
    }
    if rare.1 > 0.0 {
        add(rare.0, rare.1);
    }
    let spread: f64 = 2.0 / (9.0 * freedom);
    upper_tail(((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt())
}

/// Number of draws of each window.
fn counts(indices: &[f64]) -> Vec<f64> {
    let mut counts = vec![0.0; RING * SHAPE.lanes];
    indices.iter().for_each(|&index| counts[index as usize] += 1.0);
    counts
}

/// Values of the tree and draws after all rounds, and the same values by a model on the host, in f64.
struct Drawn {
    tree: Vec<f64>,
    exact: Vec<f64>,
    one_by_one: Vec<f64>,
    in_parts: Vec<f64>,
}

/// Adds, draws and sets priorities in 2013 rounds, on XLA, and draws a million windows in the end.
fn drawn() -> Drawn {
    let replay = Replay {
        capacity: RING * SHAPE.lanes,
        length: LENGTH,
        period: 1,
        priorities: Some(Priorities { exponent: EXPONENT.into() }),
    };
    let axes = Axes::none();
    let results = run(key(), &[seed(11)], |key| {
        let [rounds_key, one_key, parts_key] = key.split_into();
        let RolloutShape { lanes, unroll } = SHAPE;
        let empty: Stored<Tensor> = replay.init(&i32([]), &Spec(()), SHAPE);
        let rounds = (arange(ROUNDS), rounds_key.split_n(ROUNDS));
        let (state, rounds) = scan(empty, rounds, |state, (round, key)| {
            let (draw, given) = key.split();
            let number = (arange(unroll) + round * unroll as i32).expand_dims(1);
            let steps = number.broadcast_to([unroll, lanes]) * lanes as i32 + arange(lanes);
            let state = replay.add(state, steps, ());
            let sample = replay.sample(&state, BATCH, draw, &axes);
            // From 0.01 to 16.
            let priorities = given.uniform_range([RING * lanes], 0.1, 4.0).square();
            let priorities = priorities.take(sample.indices, 0);
            let state = replay.set_priorities(state, sample.indices, priorities, &axes);
            (state, (sample.indices, priorities, sample.steps.index(0)))
        });
        let draws = |key: Key, batch: usize| {
            scan((), key.split_n(1000), |(), key| {
                let keys = key.split_n(DRAWS / 1000 / batch);
                ((), vmap(keys, |key| replay.sample(&state, batch, key, &axes).indices))
            })
            .1
        };
        let (one_by_one, in_parts) = (draws(one_key, 1), draws(parts_key, BATCH_OF_MANY));
        let tree = state.priorities.as_ref().expect("it has priorities").tree;
        (rounds, one_by_one, in_parts, tree.values())
    });
    let lanes = SHAPE.lanes;
    let mut exact = vec![0.0; RING * lanes];
    let mut greatest = 1.0_f64;
    for round in 0..ROUNDS {
        let steps = (round + 1) * SHAPE.unroll;
        // Windows that begin in the written steps are gone, and windows completed by them are new.
        let mut begin = |first: usize, value: f64| {
            exact[first % RING * lanes..][..lanes].fill(value);
        };
        (steps - SHAPE.unroll..steps).for_each(|first| begin(first, 0.0));
        let before = (steps - SHAPE.unroll).saturating_sub(LENGTH - 1);
        (before..=steps - LENGTH).for_each(|first| begin(first, greatest));
        let row = |result: usize| &results[result][round * BATCH..][..BATCH];
        for draw in 0..BATCH {
            let leaf = row(0)[draw] as usize;
            assert!(exact[leaf] > 0.0, "round {round}: window {leaf} is not whole");
            // The newest step with this place in the ring.
            let newest = (steps - 1 - leaf / lanes) / RING * RING + leaf / lanes;
            assert_eq!(row(2)[draw], (newest * lanes + leaf % lanes) as f64, "round {round}");
        }
        for (&leaf, &priority) in row(0).iter().zip(row(1)) {
            exact[leaf as usize] = priority.powf(EXPONENT);
            greatest = greatest.max(exact[leaf as usize]);
        }
    }
    let [one_by_one, in_parts] = [3, 4].map(|i| results[i].clone());
    Drawn { tree: results[5].clone(), exact, one_by_one, in_parts }
}

/// A hundred thousand priorities are set while the ring goes round forty times; then a million windows are drawn.
#[test]
fn windows_are_drawn_as_often_as_their_priorities_say() {
    let Drawn { tree, exact, one_by_one, in_parts } = drawn();
    assert_eq!((one_by_one.len(), in_parts.len()), (DRAWS, DRAWS));
    for (leaf, (&got, &expected)) in tree.iter().zip(&exact).enumerate() {
        assert!((got - expected).abs() <= 1e-5 * expected, "window {leaf}: {got}, not {expected}");
    }
    let (one_by_one, in_parts) = (counts(&one_by_one), counts(&in_parts));
    let chances = [chance(&one_by_one, &exact), chance(&in_parts, &exact)];
    eprintln!("chance of draws by one and in parts: {chances:?}");
    assert!((CHANCE..1.0 - CHANCE).contains(&chances[0]), "{chances:?}");
    assert!(chances[1] >= CHANCE, "{chances:?}");
    for counts in [&one_by_one, &in_parts] {
        assert!(farthest(counts, &exact) < FARTHEST, "{}", farthest(counts, &exact));
    }
    // The same draws are distinguished from draws from trees with mistakes.
    let uniform: Vec<f64> = exact.iter().map(|value| f64::from(*value > 0.0)).collect();
    let unpowered: Vec<f64> = exact.iter().map(|value| value.powf(1.0 / EXPONENT)).collect();
    let mut shifted = exact.clone();
    shifted.rotate_right(1);
    for wrong in [uniform, unpowered, shifted] {
        for counts in [&one_by_one, &in_parts] {
            assert!(chance(counts, &wrong) < 1e-6);
        }
    }
    // A single window of a thousand that comes a fifth too often.
    let mut one_off = exact.clone();
    *one_off.iter_mut().max_by(|a, b| a.total_cmp(b)).expect("there are windows") *= 1.2;
    assert!(farthest(&one_by_one, &one_off) > FARTHEST && farthest(&in_parts, &one_off) > FARTHEST);
}

/// Compared with flashbax's prioritized trajectory buffer, with the same windows, priorities and
/// numbers of draws.
#[test]
fn draws_are_as_near_to_their_probabilities_as_those_of_flashbax() {
    let Drawn { exact, one_by_one, in_parts, .. } = drawn();
    let priorities: Vec<f64> = exact.iter().map(|value| value.powf(1.0 / EXPONENT)).collect();
    let order = json!({
        "priorities": priorities,
        "exponent": EXPONENT,
        "lanes": SHAPE.lanes,
        "unroll": SHAPE.unroll,
        "rollouts": ROUNDS,
        "ring": RING,
        "length": LENGTH,
        "draws": DRAWS,
        "batches": [1, BATCH_OF_MANY],
    });
    let said = python::run_peer(include_str!("peer.py"), &[], &order.to_string());
    let Some(said) = said.expect("the script runs") else { return };
    let theirs: Vec<Vec<f64>> = serde_json::from_str(&said).expect("a list for each batch");
    let mut report = String::new();
    for (what, ours, theirs) in
        [("one by one", &one_by_one, &theirs[0]), ("in parts", &in_parts, &theirs[1])]
    {
        // The last number counts draws of no window at all.
        let (theirs, outside) = theirs.split_at(RING * SHAPE.lanes);
        assert_eq!(theirs.iter().sum::<f64>() + outside[0], DRAWS as f64);
        let ours = counts(ours);
        let [ours_chance, theirs_chance] = [&ours[..], theirs].map(|counts| chance(counts, &exact));
        let [ours_off, theirs_off] = [&ours[..], theirs].map(|counts| farthest(counts, &exact));
        report += &format!(
            "{what}: chance {ours_chance:.3}, flashbax {theirs_chance:.3}; farthest from its probability, in standard deviations \
             of independent draws: {ours_off:.2}, flashbax {theirs_off:.2}; flashbax drew {} that are no windows\n",
            outside[0]
        );
        assert!(ours_chance >= CHANCE, "{report}");
    }
    eprint!("{report}");
}

/// The greatest distance of a count from the expected one, in standard deviations of independent draws.
fn farthest(counts: &[f64], expected: &[f64]) -> f64 {
    let (total, draws): (f64, f64) = (expected.iter().sum(), counts.iter().sum());
    let off = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    let off = off.map(|(count, expected)| {
        let probability = expected / total;
        let mean = probability * draws;
        (count - mean).abs() / (mean * (1.0 - probability)).sqrt()
    });
    off.fold(0.0, f64::max)
}
