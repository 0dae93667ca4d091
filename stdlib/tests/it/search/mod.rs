//! Searches by the reference semantics.

mod custom;
mod mistakes;
mod plain;
mod transforms;

use podracer_dsl::prelude::*;
use podracer_rl::search::*;

/// A model of two actions on a line of states: action 1 goes up, for a reward at state 3; the value is unknown, 0.
fn line(batch: usize) -> impl FnOnce(Key, Tensor, Tensor) -> (RecurrentFnOutput, Tensor) {
    move |_, action, state| {
        let state = state + action * 2 - 1;
        let output = RecurrentFnOutput {
            reward: select(state.eq(3), 1.0, zeros(F32, [batch])),
            discount: full([batch], 0.9),
            prior_logits: zeros(F32, [batch, 2]),
            value: zeros(F32, [batch]),
        };
        (output, state)
    }
}

fn root(batch: usize) -> RootFnOutput {
    RootFnOutput {
        prior_logits: zeros(F32, [batch, 2]),
        value: zeros(F32, [batch]),
        embedding: zeros(I32, [batch]),
    }
}

#[test]
fn more_considered_actions_than_there_are_change_nothing() {
    let of = |max_num_considered_actions: usize, invalid: bool| {
        let traced = trace(key(), |key| {
            let options = GumbelMuZeroOptions { max_num_considered_actions, ..Default::default() };
            let invalid = invalid.then(|| full([3, 2], false));
            gumbel_muzero_policy(key, root(3), line(3), 40, invalid, &options).action
        });
        traced.expect("it traces").to_string()
    };
    for invalid in [false, true] {
        assert_eq!(of(usize::MAX, invalid), of(2, invalid));
    }
}

#[test]
fn a_search_finds_the_reward_three_steps_away() {
    for gumbel in [false, true] {
        let traced = trace(key(), |key| {
            let output = match gumbel {
                false => muzero_policy(key, root(3), line(3), 40, None, &MuZeroOptions::default()),
                true => {
                    let options = GumbelMuZeroOptions::default();
                    gumbel_muzero_policy(key, root(3), line(3), 40, None, &options)
                }
            };
            (output.action, output.search_tree.summary())
        });
        let results = traced.expect("it traces").eval(&[Array::key(1)]).expect("it runs");
        assert_eq!(results[0].to_f64(), [1.0; 3]);
        let visits = results[1].to_f64();
        for tree in visits.chunks(2) {
            assert_eq!(tree.iter().sum::<f64>(), 40.0);
            // Sequential halving ends with two actions, which it visits equally often.
            assert!(gumbel || tree[1] > tree[0], "{visits:?}");
        }
    }
}

/// The visits of 24 trees after `simulations` simulations; `tilt` is added to the prior logit of
/// action 1.
fn visits_of(simulations: usize, tie_noise: bool, tilt: f64) -> Vec<f64> {
    let traced = trace(key(), |key| {
        let logits = constant([0.0f32, tilt as f32]).broadcast_to([24, 2]);
        let root = RootFnOutput { prior_logits: logits, ..root(24) };
        let model = |key: Key, action: Tensor, state: Tensor| {
            let (output, state) = line(24)(key, action, state);
            (RecurrentFnOutput { prior_logits: logits, ..output }, state)
        };
        let fraction = 0.0.into();
        let options =
            MuZeroOptions { tie_noise, dirichlet_fraction: fraction, ..MuZeroOptions::default() };
        let output = muzero_policy(key, root, model, simulations, None, &options);
        output.search_tree.summary().visit_counts
    });
    traced.expect("it traces").eval(&[Array::key(1)]).expect("it runs")[0].to_f64()
}

#[test]
fn noise_decides_between_equal_scores_where_it_is_on() {
    assert_eq!(visits_of(1, false, 0.0), [1.0, 0.0].repeat(24));
    let drawn: f64 = visits_of(1, true, 0.0).chunks(2).map(|tree| tree[0]).sum();
    assert!((5.0..=19.0).contains(&drawn), "{drawn} of 24");
    // Where no scores are equal, it changes nothing.
    assert_eq!(visits_of(12, false, 0.37), visits_of(12, true, 0.37));
}
