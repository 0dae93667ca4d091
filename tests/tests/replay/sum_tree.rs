//! The sum tree against an array of numbers, over a million operations.

use super::run;
use podracer_dsl::prelude::*;
use podracer_envs::host::Random;
use podracer_rl::replay::SumTree;

/// Leaves set, read and searched for in a round.
const BATCH: usize = 112;
/// Ranges changed in a round.
const RANGES: usize = 2;
/// Rounds of each size. A leaf that is set, read, found or changed in a range is an operation.
const ROUNDS: usize = 420;
/// One leaf; one level and one leaf more; two levels, three, and so on up to six. Only 8 and 512 are powers of eight.
const SIZES: [usize; 10] = [1, 7, 8, 9, 64, 65, 512, 1000, 4097, 40_001];

/// Ten times the largest rounding of an f32 sum of a few numbers.
const ROUNDING: f64 = 1e-6;

/// Operations on a tree, by round.
struct Operations {
    /// `[ROUNDS, BATCH]`. Some are outside of the tree, and every one comes twice in its round, with another value.
    places: Vec<f64>,
    /// From 0.001 to 1000, and an eighth of them 0. `[ROUNDS, BATCH]`
    values: Vec<f64>,
    /// `[ROUNDS, RANGES]`
    starts: Vec<f64>,
    /// Parts of the tree's total, from 0 to a little more than 1. `[ROUNDS, BATCH]`
    parts: Vec<f64>,
}

impl Operations {
    fn any(leaves: usize, range: usize) -> Operations {
        let random = &mut Random::of_environment(5, leaves);
        // What pads a tree keeps its zeros: outside begins after that.
        let outside = leaves.next_multiple_of(8);
        let [mut places, mut values, mut starts, mut parts] = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            let mut place = || match random.below(leaves + 2) {
                inside if inside < leaves => inside as f64,
                out => [-1.0, outside as f64][out - leaves],
            };
            let half: Vec<f64> = (0..BATCH / 2).map(|_| place()).collect();
            places.extend([&half[..], &half].concat());
            values.extend((0..BATCH).map(|_| match random.below(8) {
                0 => 0.0,
                _ => f64::from(10.0_f32.powf(random.range(-3.0, 3.0))),
            }));
            starts.extend((0..RANGES).map(|_| random.below(leaves - range + 1) as f64));
            parts.extend([0.0, 1.0, 1.0 + ROUNDING]);
            parts.extend((3..BATCH).map(|_| f64::from(random.uniform())));
        }
        Operations { places, values, starts, parts }
    }

    fn arrays(&self) -> [Array; 4] {
        let whole = |numbers: &[f64]| {
            let numbers: Vec<i128> = numbers.iter().map(|&number| number as i128).collect();
            Array::ints(I32, [ROUNDS, numbers.len() / ROUNDS], &numbers)
        };
        let floats = |numbers: &[f64]| Array::floats(F32, [ROUNDS, BATCH], numbers);
        [whole(&self.places), floats(&self.values), whole(&self.starts), floats(&self.parts)]
    }
}

/// Runs the rounds on XLA and repeats them on an array. The number of operations.
fn check(leaves: usize) -> usize {
    let range = leaves.min(5);
    let operations = Operations::any(leaves, range);
    let (numbers, floats) = (i32([ROUNDS, BATCH]), f32([ROUNDS, BATCH]));
    let spec = (numbers, floats.clone(), i32([ROUNDS, RANGES]), floats);
    let results = run(spec, &operations.arrays(), |rounds| {
        let (tree, rounds) = scan(SumTree::zeros(leaves), rounds, |tree, round| {
            let (places, values, starts, parts) = round;
            let tree = tree.set(places, values);
            let read = tree.get(places.clamp(0, leaves as i32 - 1));
            let starts = [0, 1].map(|i| starts.index(i));
            let tree =
                tree.change_ranges(&starts, range, |i, before| before * 0.5 + values.index(i));
            let sums = parts * tree.total();
            (tree, (read, sums, tree.find(sums), tree.total()))
        });
        (rounds, tree.values())
    });
    let mut list = vec![0.0_f32; leaves.next_multiple_of(8)];
    for round in 0..ROUNDS {
        let about = format!("{leaves} leaves, round {round}");
        let row = |numbers: &'_ [f64]| numbers[round * BATCH..][..BATCH].to_vec();
        let (places, values) = (row(&operations.places), row(&operations.values));
        let inside = |place: f64| (0.0..leaves as f64).contains(&place);
        let read = row(&results[0]);
        for (first, &place) in places[..BATCH / 2].iter().enumerate().filter(|at| inside(*at.1)) {
            // Of all that were set there one wins; which is not said.
            let set = |i: usize| places[i] == place && values[i] == read[first];
            assert!((0..BATCH).any(set), "{about}: leaf {place} is {}", read[first]);
            assert_eq!(read[first], read[first + BATCH / 2], "{about}: leaf {place}");
            list[place as usize] = read[first] as f32;
        }
        let starts = &operations.starts[round * RANGES..][..RANGES];
        for (&start, &value) in starts.iter().zip(&values) {
            let leaves = &mut list[start as usize..][..range];
            leaves.iter_mut().for_each(|leaf| *leaf = *leaf * 0.5 + value as f32);
        }
        let mut running = vec![0.0];
        for leaf in &list {
            running.push(running[running.len() - 1] + f64::from(*leaf));
        }
        let (total, sum) = (results[3][round], running[list.len()]);
        assert!((total - sum).abs() <= ROUNDING * sum, "{about}: total {total}, not {sum}");
        for (at, found) in row(&results[1]).into_iter().zip(row(&results[2])) {
            let leaf = found as usize;
            assert!(list[leaf] > 0.0 || sum == 0.0, "{about}: leaf {leaf} has no value");
            let slack = 3.0 * ROUNDING * sum;
            let inside = running[leaf] - slack <= at && at <= running[leaf + 1] + slack;
            assert!(inside, "{about}: {at} of {sum} is in leaf {leaf}");
        }
    }
    let kept: Vec<f64> = list.iter().map(|&leaf| f64::from(leaf)).collect();
    assert_eq!(results[4], kept, "{leaves} leaves");
    ROUNDS * (3 * BATCH + RANGES * range)
}

/// Batches with duplicates and with places outside, ranges, reads, searches and totals, on trees of one level up to six.
#[test]
fn a_sum_tree_is_an_array_over_a_million_operations() {
    let operations: usize = SIZES.into_iter().map(check).sum();
    assert!(operations >= 1_000_000, "{operations}");
}
