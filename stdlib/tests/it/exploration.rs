//! Epsilon-greedy exploration: the schedule of epsilon, and how often which action comes.

use crate::golden::run;
use podracer_dsl::prelude::*;
use podracer_rl::learn::{Exploration, Mode, epsilon_greedy};

#[test]
fn epsilon_falls_over_its_part_of_the_run_and_stays() {
    let epsilon = |epsilon_fraction: f64, iteration: i32| {
        let exploration =
            Exploration { epsilon_start: 1.0.into(), epsilon_end: 0.2.into(), epsilon_fraction };
        let schedule = exploration.schedule(40);
        run((), &[], |()| schedule.value(scalar(iteration)))[0].to_f64()[0]
    };
    for (fraction, iteration, expected) in [
        (0.5, 0, 1.0),
        (0.5, 5, 0.8),
        (0.5, 20, 0.2),
        (0.5, 39, 0.2),
        (1.0, 20, 0.6),
        (0.0, 0, 1.0),
        (0.0, 1, 0.2),
    ] {
        let got = epsilon(fraction, iteration);
        assert!((got - expected).abs() < 1e-6, "{fraction} of the run, {iteration}: {got}");
    }
}

/// Frequency of each of four actions in 4000 draws.
fn frequencies(legal: Option<[bool; 4]>, epsilon: f64, mode: Mode) -> [f64; 4] {
    let drawn = run((), &[], |()| {
        vmap(Key::new(7).split_n(4000), |key| {
            let q = constant([0.5, 2.0, -1.0, 1.0]);
            epsilon_greedy(q, legal.map(constant), scalar(epsilon), mode, key)
        })
    });
    let drawn = drawn[0].to_f64();
    std::array::from_fn(|action| {
        drawn.iter().filter(|&&x| x == action as f64).count() as f64 / 4000.0
    })
}

#[track_caller]
fn check(got: [f64; 4], expected: [f64; 4]) {
    // Four standard deviations of a frequency of 4000 draws.
    let close = got.iter().zip(expected).all(|(got, expected)| {
        (got - expected).abs() <= 4.0 * (expected * (1.0 - expected) / 4000.0).sqrt()
    });
    assert!(close, "{got:?} in place of {expected:?}");
}

#[test]
fn any_action_comes_with_probability_epsilon_and_else_the_best() {
    check(frequencies(None, 0.4, Mode::Explore), [0.1, 0.7, 0.1, 0.1]);
    check(frequencies(None, 1.0, Mode::Explore), [0.25; 4]);
    check(frequencies(None, 0.0, Mode::Explore), [0.0, 1.0, 0.0, 0.0]);
    check(frequencies(None, 0.4, Mode::Greedy), [0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn actions_that_are_not_legal_never_come() {
    let legal = Some([true, false, true, false]);
    check(frequencies(legal, 0.4, Mode::Explore), [0.8, 0.0, 0.2, 0.0]);
    check(frequencies(legal, 1.0, Mode::Explore), [0.5, 0.0, 0.5, 0.0]);
    check(frequencies(legal, 0.4, Mode::Greedy), [1.0, 0.0, 0.0, 0.0]);
}
