//! The replay compared with a model of it: a list of steps, and a priority for each window, kept on
//! the host.

use crate::golden::{floats, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::host::Random;
use podracer_rl::learn::{Axes, RolloutShape};
use podracer_rl::replay::{Priorities, Replay};
use std::collections::BTreeMap;

/// Settings of a replay, and its draws per round.
#[derive(Clone, Debug)]
struct Case {
    replay: Replay,
    shape: RolloutShape,
    batch: usize,
    rounds: usize,
}

impl Case {
    /// Steps of a lane's ring, as [`Replay::capacity`] says.
    fn ring(&self) -> usize {
        let unit = self.shape.unroll.max(self.replay.period);
        self.replay.capacity.div_ceil(self.shape.lanes).max(1).next_multiple_of(unit)
    }

    fn leaves(&self) -> usize {
        self.ring() / self.replay.period * self.shape.lanes
    }
}

/// One of `low..=high`.
fn between(random: &mut Random, low: usize, high: usize) -> usize {
    low + random.below(high - low + 1)
}

/// A ring of any shape: one step or several in a rollout, periods shorter and longer than a rollout, windows of one step up to
/// all of the ring, batches of more windows than there are.
fn any_case(random: &mut Random) -> Case {
    let (lanes, unroll) = (between(random, 1, 3), between(random, 1, 6));
    let period = match between(random, 0, 2) {
        0 => 1,
        1 => unroll * between(random, 1, 3),
        _ => unroll / [1, 2, 3][between(random, 0, 2)].min(unroll),
    };
    let period = if unroll % period == 0 || period % unroll == 0 { period } else { 1 };
    let priorities = Some(Priorities { exponent: 0.5.into() });
    let replay = Replay { capacity: between(random, 1, 40), length: 1, period, priorities };
    let shape = RolloutShape { lanes, unroll };
    let mut case = Case { replay, shape, batch: between(random, 1, 12), rounds: 0 };
    case.replay.length = between(random, 1, case.ring());
    case.rounds = 2 * case.ring() / unroll + 3;
    case
}

/// The priority that a window gets if it is drawn in a round. Some are 0.
fn given(round: usize, leaf: usize) -> f64 {
    let number = (round * 31 + leaf * 17) % 11;
    number as f64 * 0.75
}

/// A window's number in the tree for a priority: priority 0 becomes nearly nothing, but not absent.
fn kept(priority: f64) -> f64 {
    priority.sqrt().max(f64::from(f32::MIN_POSITIVE))
}

fn check(case: &Case) {
    let Case { replay, shape, batch, rounds } = case;
    let (leaves, ring) = (case.leaves(), case.ring());
    let table: Vec<f64> = (0..rounds * leaves).map(|i| given(i / leaves, i % leaves)).collect();
    let arguments = [words(7), floats(&[*rounds, leaves], &table)];
    let results = run((key(), f32([*rounds, leaves])), &arguments, |(key, table)| {
        let empty = replay.init(&i32([]), &Spec(()), *shape);
        let rounds = (arange(*rounds), key.split_n(*rounds), table);
        scan(empty, rounds, |state, (round, key, table)| {
            let RolloutShape { lanes, unroll } = *shape;
            let number = arange(unroll).expand_dims(1) + round * unroll as i32;
            // The step's number and the lane's in one.
            let steps = number.broadcast_to([unroll, lanes]) * lanes as i32 + arange(lanes);
            let state = replay.add(state, steps, ());
            let tree = |state: &podracer_rl::replay::Stored<Tensor>| {
                state.priorities.as_ref().expect("it has priorities").tree
            };
            let (added, windows) = (tree(&state), replay.windows(&state));
            let axes = Axes::none();
            let sample = replay.sample(&state, *batch, key, &axes);
            let priorities = table.take(sample.indices, 0);
            let weights = sample.importance_weights(1.0, &axes);
            let state = replay.set_priorities(state, sample.indices, priorities, &axes);
            let set = tree(&state);
            let drawn = (sample.steps, sample.indices, sample.probabilities, weights);
            (state, (added.values(), windows, drawn, set.values(), set.total()))
        })
        .1
    });
    let results: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    let padded = results[0].len() / rounds;
    let row = |result: usize, round: usize| {
        let width = results[result].len() / rounds;
        &results[result][round * width..][..width]
    };
    // Windows by leaf: the number of their first step, and their value in the tree.
    let (mut model, mut greatest) = (BTreeMap::<usize, (usize, f64)>::new(), 1.0_f64);
    for round in 0..*rounds {
        let about = format!("round {round} of {case:?}");
        let steps = (round + 1) * shape.unroll;
        let oldest = steps.saturating_sub(ring);
        model.retain(|_, (first, _)| *first >= oldest);
        for first in (oldest..steps).filter(|first| first % replay.period == 0) {
            for lane in 0..shape.lanes {
                let leaf = first % ring / replay.period * shape.lanes + lane;
                if first + replay.length <= steps {
                    model.entry(leaf).or_insert((first, greatest));
                }
            }
        }
        let close = |got: f64, expected: f64, what: &str| {
            let error = (got - expected).abs();
            assert!(error <= 1e-5 * expected, "{what}: got {got}, expected {expected}: {about}");
        };
        let value = |model: &BTreeMap<usize, (usize, f64)>, leaf| {
            model.get(&leaf).map_or(0.0, |&(_, value)| value)
        };
        for (leaf, &got) in row(0, round).iter().enumerate() {
            close(got, value(&model, leaf), "after adding");
        }
        assert_eq!(row(1, round), [model.len() as f64], "windows: {about}");
        let total: f64 = model.values().map(|&(_, value)| value).sum();
        let [firsts, indices, probabilities, weights] = [2, 3, 4, 5].map(|i| row(i, round));
        let least =
            indices.iter().map(|&leaf| value(&model, leaf as usize)).fold(f64::MAX, f64::min);
        for draw in 0..*batch {
            let leaf = indices[draw] as usize;
            close(
                weights[draw],
                if total > 0.0 { least / value(&model, leaf) } else { 1.0 },
                "weight",
            );
            if model.is_empty() {
                assert_eq!((leaf, probabilities[draw]), (0, 0.0), "{about}");
                continue;
            }
            let (first, value) = model[&leaf];
            close(probabilities[draw], value / total, "probability");
            for step in 0..replay.length {
                let expected = (first + step) * shape.lanes + leaf % shape.lanes;
                assert_eq!(firsts[step * batch + draw], expected as f64, "step {step}: {about}");
            }
        }
        for &leaf in indices {
            let priority = given(round, leaf as usize);
            greatest = greatest.max(kept(priority));
            if let Some((_, value)) = model.get_mut(&(leaf as usize)) {
                *value = kept(priority);
            }
        }
        for (leaf, &got) in row(6, round).iter().enumerate() {
            close(got, value(&model, leaf), "after setting");
        }
        close(row(7, round)[0], model.values().map(|&(_, value)| value).sum(), "total");
    }
    assert_eq!(padded, leaves.next_multiple_of(8));
}

/// Rings of 60 shapes: after every rollout, draw and change of priorities the tree equals the
/// model's. Draws are windows of the model, whole and with their steps in order; probabilities and
/// weights equal the model's.
#[test]
fn a_replay_is_a_list_of_windows_with_priorities() {
    let mut random = Random::of_environment(1, 0);
    for _ in 0..60 {
        check(&any_case(&mut random));
    }
}
