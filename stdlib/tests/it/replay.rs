//! The replay: the contents of the rings, and the draws from them.

use crate::golden::{run, words};
use podracer_dsl::prelude::*;
use podracer_rl::learn::{Axes, RolloutShape};
use podracer_rl::replay::{Priorities, Replay, Stored, SumTree};
use std::collections::{BTreeMap, BTreeSet};

/// A step of a lane: the step's number and the lane's.
#[derive(Tree, Clone)]
struct Item {
    number: Tensor,
    lane: Tensor,
}

fn item() -> Spec<Item> {
    Item { number: scalar(0), lane: zeros(U8, [1]) }.spec()
}

/// Steps `from..from + unroll` of the lanes from `first` on.
fn rollout(from: usize, first: Tensor, RolloutShape { lanes, unroll }: RolloutShape) -> Item {
    let each = |column: Tensor| column.broadcast_to([unroll, lanes]);
    let lane = (arange(lanes) + first).astype(U8).reshape([1, lanes]);
    Item {
        number: each((arange(unroll) + from as i32).expand_dims(1)),
        lane: each(lane).expand_dims(2),
    }
}

/// Windows of `length` steps that are whole among the last `kept` of `steps`, by the number of their first.
fn whole(steps: usize, kept: usize, length: usize, period: usize) -> BTreeSet<usize> {
    let oldest = steps.saturating_sub(kept);
    (oldest..steps).filter(|at| at % period == 0 && at + length <= steps).collect()
}

struct Case {
    shape: RolloutShape,
    capacity: usize,
    length: usize,
    period: usize,
    /// Steps of a lane's ring.
    ring: usize,
}

impl Case {
    fn replay(&self, priorities: bool) -> Replay {
        let priorities = priorities.then_some(Priorities { exponent: 1.0.into() });
        Replay { capacity: self.capacity, length: self.length, period: self.period, priorities }
    }
}

fn cases() -> Vec<Case> {
    let case = |lanes, unroll, capacity, length, period, ring| Case {
        shape: RolloutShape { lanes, unroll },
        capacity,
        length,
        period,
        ring,
    };
    vec![
        // Transitions; two steps; more than a rollout; a period within a rollout; one of several rollouts, with overlap;
        // windows as long as the ring; a ring that is rounded up.
        case(3, 4, 24, 1, 1, 8),
        case(3, 4, 24, 2, 1, 8),
        case(2, 2, 16, 5, 1, 8),
        case(2, 6, 36, 4, 3, 18),
        case(2, 6, 36, 7, 2, 18),
        case(2, 2, 24, 6, 4, 12),
        case(1, 4, 24, 12, 8, 24),
        case(2, 3, 12, 6, 3, 6),
        case(3, 4, 20, 3, 2, 8),
    ]
}

/// After each of nine rollouts exactly the whole windows have a priority.
#[test]
fn windows_begin_where_all_their_steps_are_kept() {
    for Case { shape, length, period, ring, .. } in &cases() {
        let case = cases()
            .into_iter()
            .find(|case| case.shape == *shape && case.length == *length && case.period == *period);
        let replay = case.expect("it is one of them").replay(true);
        let results = run((), &[], |()| {
            let mut state = replay.init(&item(), &Spec(()), *shape);
            let mut seen = Vec::new();
            for round in 0..9 {
                let steps = rollout(round * shape.unroll, scalar(0), *shape);
                state = replay.add(state, steps, ());
                let tree = &state.priorities.as_ref().expect("it has priorities").tree;
                seen.push((tree.values(), tree.total(), replay.windows(&state)));
            }
            (seen, state.steps)
        });
        assert_eq!(results[27].ty().shape[..2], [*ring, shape.lanes], "length {length}");
        for (round, seen) in results[..27].chunks(3).enumerate() {
            let steps = (round + 1) * shape.unroll;
            let expected = whole(steps, *ring, *length, *period);
            let windows = expected.len() * shape.lanes;
            let mut leaves = vec![0.0; seen[0].to_f64().len()];
            for start in expected {
                for lane in 0..shape.lanes {
                    leaves[start % ring / period * shape.lanes + lane] = 1.0;
                }
            }
            let about = format!("{shape:?}, length {length}, period {period}, after {steps} steps");
            assert_eq!(seen[0].to_f64(), leaves, "{about}");
            assert_eq!(seen[1].to_f64(), [windows as f64], "{about}");
            assert_eq!(seen[2].to_f64(), [windows as f64], "{about}");
        }
    }
}

/// Draws, with and without priorities, are whole windows, each with its steps in their order and of one lane.
#[test]
fn whole_windows_are_drawn_and_nothing_else() {
    for (number, case) in cases().into_iter().enumerate() {
        for priorities in [false, true] {
            let replay = case.replay(priorities);
            for rounds in [case.length.div_ceil(case.shape.unroll), 7] {
                let steps = rounds * case.shape.unroll;
                let expected = whole(steps, case.ring, case.length, case.period);
                let batch = 40 * case.shape.lanes * expected.len().max(1);
                let results = run(key(), &[words(number as i128)], |key| {
                    let empty = replay.init(&item(), &Spec(()), case.shape);
                    let state = (0..rounds).fold(empty, |state, round| {
                        let steps = rollout(round * case.shape.unroll, scalar(0), case.shape);
                        replay.add(state, steps, ())
                    });
                    let sample = replay.sample(&state, batch, key, &Axes::none());
                    (sample.steps, sample.probabilities)
                });
                let about = format!("case {number}, priorities {priorities}, {steps} steps");
                let (numbers, lanes) = (results[0].to_f64(), results[1].to_f64());
                let mut seen = BTreeSet::new();
                for window in 0..batch {
                    let start = numbers[window];
                    for step in 0..case.length {
                        let at = step * batch + window;
                        assert_eq!(numbers[at], start + step as f64, "{about}");
                        assert_eq!(lanes[at], lanes[window], "{about}");
                    }
                    seen.insert((start as usize, lanes[window] as usize));
                }
                let all = expected
                    .iter()
                    .flat_map(|&start| (0..case.shape.lanes).map(move |lane| (start, lane)));
                assert_eq!(seen, all.collect(), "{about}");
                let probability = 1.0 / (expected.len() * case.shape.lanes) as f64;
                for given in results[2].to_f64() {
                    assert!((given - probability).abs() < 1e-6, "{about}: {given}");
                }
            }
        }
    }
}

/// The memory at the start of a window is the memory of the rollout that the window begins with.
#[test]
fn starts_are_drawn_with_their_windows() {
    let shape = RolloutShape { lanes: 2, unroll: 2 };
    let replay = Replay { capacity: 24, length: 6, period: 4, priorities: None };
    let results = run(key(), &[words(1)], |key| {
        let empty = replay.init(&item(), &f32([3]), shape);
        let state = (0..9).fold(empty, |state, round| {
            let begin =
                full([2, 3], round as f32 * 2.0) + arange(2).astype(F32).expand_dims(1) * 100.0;
            replay.add(state, rollout(round * 2, scalar(0), shape), begin)
        });
        let sample = replay.sample(&state, 50, key, &Axes::none());
        (sample.steps.number.index(0), sample.steps.lane.index(0), sample.starts)
    });
    let (numbers, lanes) = (results[0].to_f64(), results[1].to_f64());
    for (window, start) in results[2].to_f64().chunks(3).enumerate() {
        assert_eq!(start, [numbers[window] + 100.0 * lanes[window]; 3]);
    }
}

/// 20,000 draws from two devices with priorities that differ a thousand times: the frequencies
/// equal a single store's.
#[test]
fn devices_draw_by_priority_what_one_store_would() {
    const DRAWS: usize = 20_000;
    let shape = RolloutShape { lanes: 2, unroll: 4 };
    let replay = Replay {
        capacity: 8,
        length: 1,
        period: 1,
        priorities: Some(Priorities { exponent: 0.5.into() }),
    };
    let results = run(key(), &[words(5)], |key| {
        vmap_named("devices", arange(2), |device| {
            let axes = Axes::none().and("devices", 2);
            let state = replay.init(&item(), &Spec(()), shape);
            let state = replay.add(state, rollout(0, device * 2, shape), ());
            // Priorities 1, 4, 9, .. of the first device and (30, 31, ..)^2 of the second.
            let mine = arange(8).astype(F32) + 1.0 + device.astype(F32) * 29.0;
            let indices = arange(8) + device * 8;
            let state = replay.set_priorities(state, indices, mine.square(), &axes);
            let sample = replay.sample(&state, DRAWS, key.again(), &axes);
            let weights = sample.importance_weights(1.0, &axes);
            (sample.steps, sample.indices, sample.probabilities, weights)
        })
    });
    let values: Vec<f64> = (0..16).map(|i| f64::from(i + 1 + i / 8 * 21)).collect();
    let total: f64 = values.iter().sum();
    let (numbers, lanes, indices) = (results[0].to_f64(), results[1].to_f64(), results[2].to_f64());
    let (probabilities, weights) = (results[3].to_f64(), results[4].to_f64());
    assert_eq!(numbers.len(), DRAWS);
    let mut counts = BTreeMap::new();
    for draw in 0..DRAWS {
        let index = indices[draw] as usize;
        let (device, leaf) = (index / 8, index % 8);
        assert_eq!(
            (numbers[draw] as usize, lanes[draw] as usize),
            (leaf / 2, device * 2 + leaf % 2)
        );
        let probability = values[index] / total;
        assert!((probabilities[draw] - probability).abs() < 1e-5);
        // The rarest window has the greatest weight, 1.
        assert!((weights[draw] - values[0] / values[index]).abs() < 1e-4);
        *counts.entry(index).or_insert(0_u32) += 1;
    }
    // Strata of equal probability: counts are off by less than two.
    for (index, value) in values.iter().enumerate() {
        let expected = value / total * DRAWS as f64;
        let count = f64::from(counts.get(&index).copied().unwrap_or(0));
        assert!(
            (count - expected).abs() <= 2.0,
            "window {index} came {count} times, not {expected}"
        );
    }
}

/// Sets, ranges and searches against a list of numbers.
#[test]
fn a_sum_tree_is_a_list_with_running_sums() {
    for leaves in [1, 8, 9, 64, 65, 100].map(|leaves: usize| leaves.next_multiple_of(8)) {
        let range = 5;
        let results = run((key(), key()), &[words(leaves as i128), words(9)], |(key, other)| {
            let [places, numbers, starts] = key.split_into();
            let values = numbers.uniform([20, 6]);
            let places = places.randint([20, 6], 0..leaves as i32 + 2);
            let starts = starts.randint([20], 0..(leaves - range) as i32 + 1);
            let tree = scan(
                SumTree::zeros(leaves),
                (places, values, starts),
                |tree, (at, values, start)| {
                    let tree = tree.set(at, values);
                    (tree.change_ranges(&[start], range, |_, _| values.slice_axis(0, 0..range)), ())
                },
            )
            .0;
            let sums = other.uniform([200]) * tree.total();
            (places, values, starts, tree.values(), tree.total(), tree.find(sums), sums)
        });
        let [places, values, starts] = [0, 1, 2].map(|i| results[i].to_f64());
        let mut list = vec![0.0; leaves];
        for round in 0..20 {
            for (place, value) in places.iter().zip(&values).skip(round * 6).take(6) {
                if let Some(leaf) = list.get_mut(*place as usize) {
                    *leaf = *value;
                }
            }
            let start = starts[round] as usize;
            list[start..start + range].copy_from_slice(&values[round * 6..round * 6 + range]);
        }
        let found = results.len() - 2;
        let kept = results[3].to_f64();
        assert_eq!(kept, list, "{leaves} leaves");
        let total: f64 = list.iter().sum();
        assert!((results[found - 1].to_f64()[0] - total).abs() <= 1e-5 * total.max(1.0));
        for (leaf, sum) in results[found].to_f64().into_iter().zip(results[found + 1].to_f64()) {
            let leaf = leaf as usize;
            let before: f64 = list[..leaf].iter().sum();
            assert!(list[leaf] > 0.0 || total == 0.0, "{leaves} leaves: {leaf} has no value");
            let slack = 1e-5 * total;
            assert!(
                before - slack <= sum && sum <= before + list[leaf] + slack,
                "{leaves} leaves: {sum} is in {leaf}"
            );
        }
    }
}

#[test]
fn settings_that_do_not_fit_are_errors() {
    let shape = RolloutShape { lanes: 2, unroll: 6 };
    let errors = |replay: Replay| {
        let traced = trace((), |()| replay.init(&item(), &f32([1]), shape));
        let Err(errors) = traced else { panic!("{replay:?} is not refused") };
        errors.to_string()
    };
    let good = Replay { capacity: 24, length: 6, period: 6, priorities: None };
    let text = errors(Replay { period: 4, ..good.clone() });
    assert!(
        text.contains(
            "a window begins every 4 steps and a rollout has 6: one must be a multiple of the other"
        ),
        "{text}"
    );
    let text = errors(Replay { length: 13, ..good.clone() });
    assert!(text.contains("a window has 13 steps, and a capacity of 24 is 12 steps of each of 2 lanes: raise the capacity to 26 or more"), "{text}");
    let text = errors(Replay { length: 0, ..good.clone() });
    assert!(text.contains("windows of 0 steps"), "{text}");
    let text = errors(Replay { period: 3, ..good.clone() });
    assert!(
        text.contains("expected a period that is a multiple of the rollout's 6 steps, got 3"),
        "{text}"
    );
    for other in [RolloutShape { lanes: 1, ..shape }, RolloutShape { unroll: 5, ..shape }] {
        let traced = trace((), |()| {
            let state = good.init(&item(), &Spec(()), shape);
            good.add(state, rollout(0, scalar(0), other), ()).steps
        });
        let Err(errors) = traced else { panic!("{other:?} is not refused") };
        let text = errors.to_string();
        let RolloutShape { lanes, unroll } = other;
        let expected =
            format!("{unroll} steps of {lanes} lanes are added to rings of 12 steps of 2 lanes");
        assert!(text.contains(&expected), "{text}");
    }
    let traced = trace(key(), |key| {
        let state: Stored<Item, Tensor> = good.init(&item(), &f32([1]), shape);
        good.sample(&state, 7, key, &Axes::replicas(2)).indices
    });
    let Err(errors) = traced else { panic!("7 windows are shared by 2 devices") };
    assert!(
        errors.to_string().contains("a batch of 7 windows is not shared evenly by 2 devices"),
        "{errors}"
    );
}
