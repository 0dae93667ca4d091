//! The replay: what is in the ring, and what is drawn from it.

use crate::golden::{run, words};
use podracer_dsl::prelude::*;
use podracer_stdlib::replay::{Replay, Uniform};

#[derive(Tree, Clone)]
struct Item {
    number: Tensor,
    vector: Tensor,
}

fn items(range: std::ops::Range<i32>) -> Item {
    let count = (range.end - range.start) as usize;
    let number = arange(count) + range.start;
    Item { number, vector: stack(&[number.astype(F32), number.astype(F32) * 0.5], 1) }
}

const REPLAY: Uniform = Uniform { capacity: 7 };

fn item() -> Spec<Item> {
    Item { number: scalar(0), vector: zeros(F32, [2]) }.spec()
}

/// Additions of several sizes, around the end of the ring.
#[test]
fn the_latest_items_are_kept() {
    let results = run((), &[], |()| {
        let mut state = REPLAY.init(&item());
        let mut sizes = vec![REPLAY.size(&state)];
        for range in [0..3, 3..5, 5..10, 10..17, 17..18] {
            state = REPLAY.add(state, items(range));
            sizes.push(REPLAY.size(&state));
        }
        (state.items, stack(&sizes, 0), state.position)
    });
    let mut kept = results[0].to_f64();
    for (number, vector) in kept.iter().zip(results[1].to_f64().chunks(2)) {
        assert_eq!(vector, [*number, number * 0.5]);
    }
    kept.sort_by(f64::total_cmp);
    assert_eq!(kept, [11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0]);
    assert_eq!(results[2].to_f64(), [0.0, 3.0, 5.0, 7.0, 7.0, 7.0]);
    assert_eq!(results[3].to_f64(), [f64::from(18 % 7)]);
}

/// 14,000 draws from five items: each comes a fifth of the time, within four standard deviations.
#[test]
fn items_are_drawn_alike_from_those_that_are_there() {
    const DRAWS: usize = 14_000;
    let results = run(key(), &[words(3)], |key| {
        let state = REPLAY.add(REPLAY.init(&item()), items(10..15));
        let sample = REPLAY.sample(&state, DRAWS, key);
        (sample.items, sample.indices, sample.weights)
    });
    let numbers = results[0].to_f64();
    for ((number, vector), index) in
        numbers.iter().zip(results[1].to_f64().chunks(2)).zip(results[2].to_f64())
    {
        assert_eq!((vector, index), (&[*number, number * 0.5][..], number - 10.0));
    }
    assert!(results[3].to_f64().iter().all(|weight| *weight == 1.0));
    let expected = DRAWS as f64 / 5.0;
    let deviation = (expected * 0.8).sqrt();
    for number in 10..15 {
        let count = numbers.iter().filter(|one| **one == f64::from(number)).count() as f64;
        assert!((count - expected).abs() < 4.0 * deviation, "{number} came {count} times");
    }
}

#[test]
fn more_items_than_there_is_room_for_are_an_error() {
    let traced = trace((), |()| REPLAY.add(REPLAY.init(&item()), items(0..8)));
    let Err(errors) = traced else { panic!("there is no room") };
    let text = errors.to_string();
    assert!(text.contains("8 items are added at once, and the replay has room for 7"), "{text}");
}
