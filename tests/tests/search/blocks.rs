//! Searches with trees in blocks, compared with the same searches without loops.

use super::with_ways;
use podracer_compiler::Array;
use podracer_dsl::prelude::*;
use podracer_rl::search::*;
use podracer_tests::xla;

/// With these numbers of trees and actions there are four blocks of 16 trees with noise, and two of
/// 32 without.
const ROOTS: usize = 64;
const ACTIONS: usize = 600;
const SIMULATIONS: usize = 12;

/// Logits of states, f32 `[B]`, in steps of a quarter: many actions are equally good, and noise decides between them.
fn logits(state: Tensor) -> Tensor {
    let actions = arange(ACTIONS).astype(F32).expand_dims(0);
    ((state.expand_dims(1) * 5.0 + actions).sin() * 4.0).floor() / 4.0
}

fn model(_: Key, action: Tensor, state: Tensor) -> (RecurrentFnOutput, Tensor) {
    let state = (state * 1.7 + action.astype(F32) * 0.37).sin();
    let output = RecurrentFnOutput {
        reward: (state * 3.0).sin() * 0.1,
        discount: full([ROOTS], 0.9),
        prior_logits: logits(state) * 3.0,
        value: (state * 4.0).floor() / 4.0,
    };
    (output, state)
}

/// Actions, their weights, and the values and visits of all nodes.
fn search(policy: &str) -> Traced<Key, (Tensor, Tensor, Tensor, Tensor)> {
    let traced = trace(key(), |key| {
        let state = arange(ROOTS).astype(F32) * 0.31;
        let root =
            RootFnOutput { prior_logits: logits(state), value: state.sin(), embedding: state };
        let (action, weights, tree) = match policy {
            "gumbel" => {
                let options = GumbelMuZeroOptions::default();
                let PolicyOutput { action, action_weights, search_tree } =
                    gumbel_muzero_policy(key, root, model, SIMULATIONS, None, &options);
                (action, action_weights, search_tree)
            }
            _ => {
                let tie_noise = policy == "muzero with noise";
                let options = MuZeroOptions { tie_noise, ..MuZeroOptions::default() };
                let PolicyOutput { action, action_weights, search_tree } =
                    muzero_policy(key, root, model, SIMULATIONS, None, &options);
                (action, action_weights, search_tree)
            }
        };
        (action, weights, tree.node_values, tree.node_visits)
    });
    traced.unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn trees_in_blocks_are_those_without() {
    for (policy, blocks) in [("muzero with noise", 4), ("muzero", 2), ("gumbel", 2)] {
        let traced = search(policy);
        let nodes_by_block = format!("i32[{blocks},{}] = scan[", ROOTS / blocks);
        assert!(traced.to_string().contains(&nodes_by_block), "{policy}");
        let run = |launches| {
            let func = with_ways(traced.func(), launches);
            let results = xla::run_quickly(&func, &[Array::key(7)]).expect("it runs");
            results.iter().map(Array::to_f64).collect::<Vec<_>>()
        };
        let (by_block, at_once) = (run(false), run(true));
        for (got, expected) in by_block.iter().zip(&at_once) {
            assert_eq!(got.len(), expected.len());
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
            assert!(got.iter().zip(expected).all(near), "{policy}");
        }
    }
}
