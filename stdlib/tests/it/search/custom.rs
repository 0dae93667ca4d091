//! Searches whose actions are selected by functions of the user's.

use super::{line, root};
use podracer_dsl::prelude::*;
use podracer_stdlib::search::*;

/// A model of three actions whose values all differ, so that no noise decides.
fn model(_: Key, action: Tensor, state: Tensor) -> (RecurrentFnOutput, Tensor) {
    let state = (state * 3 + action * 7 + 1).rem(101);
    let x = state.astype(F32) / 101.0;
    let output = RecurrentFnOutput {
        reward: (x * 13.0).sin(),
        discount: x.full_like(0.9),
        prior_logits: stack(&[x.sin(), (x * 5.0).sin(), (x * 9.0).cos()], 1),
        value: (x * 31.0).cos(),
    };
    (output, state)
}

fn two_roots() -> RootFnOutput {
    RootFnOutput {
        prior_logits: constant([[0.1, 0.3, 0.2], [0.7, 0.1, 0.2]]),
        value: zeros(F32, [2]),
        embedding: constant([0, 5]),
    }
}

/// The results of a program that needs a key.
#[track_caller]
fn run<Y: IntoTree>(f: impl FnOnce(Key) -> Y) -> Vec<Array> {
    let traced = trace(key(), f).unwrap_or_else(|errors| panic!("{errors}"));
    traced.eval(&[Array::key(0)]).expect("it runs")
}

#[test]
fn muzero_s_selection_in_a_search_is_muzero_s_policy() {
    let results = run(|key| {
        let options = MuZeroOptions { dirichlet_fraction: 0.0.into(), ..MuZeroOptions::default() };
        let policy = muzero_policy(key.again(), two_roots(), model, 30, None, &options);
        let tree = search(
            key,
            two_roots(),
            model,
            |key, node, _| muzero_action_selection(key, node, &options),
            |key, node| muzero_action_selection(key, node, &options),
            30,
            None,
            None,
        );
        let of = |tree: &SearchTree| (tree.children_visits, tree.node_values, tree.parents);
        (of(&policy.search_tree), of(&tree))
    });
    assert_eq!(results[0], results[3]);
    assert_eq!(results[1], results[4]);
    assert_eq!(results[2], results[5]);
}

/// The root takes its actions in turn, and Gumbel's selection is used below it.
#[test]
fn a_function_for_roots_goes_with_gumbel_s_selection_below_them() {
    let results = run(|key| {
        let options = GumbelMuZeroOptions::default();
        let tree = search(
            key,
            two_roots(),
            model,
            |_, _, simulation| simulation.rem(3).broadcast_to([2]),
            |_, node| gumbel_muzero_interior_action_selection(node, &options),
            31,
            None,
            None,
        );
        (tree.children_visits.index_axis(1, 0), tree.node_visits.index_axis(1, 0))
    });
    // In turns, thirty-one times.
    assert_eq!(results[0].to_f64(), [11.0, 10.0, 10.0, 11.0, 10.0, 10.0]);
    assert_eq!(results[1].to_f64(), [32.0, 32.0]);
}

#[test]
fn random_selection_below_the_root_draws_anew_for_each_visit() {
    let results = run(|key| {
        let random = |key: Key| key.randint([2], 0..3);
        let tree = search(
            key,
            two_roots(),
            model,
            |_, _, _| zeros(I32, [2]),
            |key, _| random(key),
            300,
            Some(2),
            None,
        );
        // All simulations go to action 0, and from there to any of its three.
        let child = tree.children_index.index_axis(1, 0).index_axis(1, 0);
        let visits = tree.children_visits;
        vmap((visits, child), |(visits, child)| visits.at(child))
    });
    let visits = results[0].to_f64();
    for tree in visits.chunks(3) {
        assert_eq!(tree.iter().sum::<f64>(), 299.0, "{visits:?}");
        // 100 each, with a standard deviation of 8.
        assert!(tree.iter().all(|count| (count - 99.7).abs() < 33.0), "{visits:?}");
    }
    assert_ne!(visits[..3], visits[3..]);
}

#[test]
fn functions_that_give_no_actions_are_errors_at_the_users_line() {
    let refused = |parts: [&str; 2], root_gives: fn() -> Tensor, interior_gives: fn() -> Tensor| {
        let traced = trace(key(), |key| {
            let (at_root, below) =
                (|_: Key, _: &Node, _| root_gives(), |_: Key, _: &Node| interior_gives());
            search(key, root(2), line(2), at_root, below, 4, None, None).node_visits
        });
        let message = traced.expect_err("there is an error").errors[0].to_string();
        for part in parts.iter().chain(&["search/custom.rs"]) {
            assert!(message.contains(part), "{message}");
        }
    };
    let fine = || zeros(I32, [2]);
    let shape = "expected an action of each of 2 trees, i32[2], got i32[]";
    refused(["root_action_selection_fn", shape], || scalar(0), fine);
    let dtype = "expected an action of each of 2 trees, i32[2], got f32[2]";
    refused(["interior_action_selection_fn", dtype], fine, || zeros(F32, [2]));
}

/// The messages of the checks of a search whose functions select these actions, and its visits of root and nodes.
fn reports(at_root: i32, below: i32, invalid: bool) -> (Vec<String>, Vec<f64>) {
    let traced = trace(key(), |key| {
        collect(|| {
            let invalid = constant([[false, invalid], [false, false]]);
            let at_root = |_: Key, _: &Node, _| full([2], f64::from(at_root)).astype(I32);
            let below = |_: Key, _: &Node| full([2], f64::from(below)).astype(I32);
            search(key, root(2), line(2), at_root, below, 6, None, Some(invalid)).node_visits
        })
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let results = traced.eval(&[Array::key(0)]).expect("it runs");
    let reports = Log::read(&traced.results().1, &results[1..]);
    (reports.iter().map(ToString::to_string).collect(), results[0].to_f64())
}

#[test]
fn an_action_out_of_range_fails_a_check_and_the_nearest_one_is_taken() {
    let (fine, visits) = reports(1, 0, false);
    assert_eq!(fine, Vec::<String>::new());
    for (at_root, below, taken) in [(2, 0, "from 2 to 2"), (1, -3, "from -3 to -3")] {
        let (reports, same) = reports(at_root, below, false);
        assert!(reports.iter().any(|report| report.contains(taken)), "{reports:?}");
        assert!(reports[0].contains("the last action is 1"), "{reports:?}");
        assert_eq!(same, visits);
    }
    let (reports, _) = reports(1, 0, true);
    assert!(reports.iter().any(|report| report.contains("took an invalid action")), "{reports:?}");
}
