//! Searches with user-defined functions that select the actions and run the simulations.

use super::{line, root};
use podracer_dsl::prelude::*;
use podracer_rl::search::*;
use std::ops::Range;

/// A model of three actions with values that all differ, so that no noise decides.
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

/// A `loop_fn` that runs all simulations.
fn all(simulations: Range<usize>, begin: SearchState, simulate: LoopBody<'_>) -> SearchState {
    fori_loop(simulations, begin, simulate)
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
            all,
        );
        let of = |tree: &SearchTree| (tree.children_visits, tree.node_values, tree.parents);
        (of(&policy.search_tree), of(&tree))
    });
    assert_eq!(results[0], results[3]);
    assert_eq!(results[1], results[4]);
    assert_eq!(results[2], results[5]);
}

/// The policy is held against mctx's elsewhere.
#[test]
fn gumbel_s_selections_in_a_search_are_gumbel_s_policy() {
    for (invalid, most) in [(None, 16), (Some([[false, false, true], [true, false, false]]), 2)] {
        let results = run(|key| {
            let options =
                GumbelMuZeroOptions { max_num_considered_actions: most, ..Default::default() };
            let invalid: Option<Tensor> = invalid.map(|invalid| constant(invalid));
            let policy =
                gumbel_muzero_policy(key.again(), two_roots(), model, 30, invalid, &options);
            let [search_key, gumbel_key] = key.split_into();
            let gumbel = gumbel_key.gumbel([2, 3]);
            let tree = search(
                search_key,
                two_roots(),
                model,
                |_, node, _| {
                    gumbel_muzero_root_action_selection(node, gumbel, 30, invalid, &options)
                },
                |_, node| gumbel_muzero_interior_action_selection(node, &options),
                30,
                None,
                invalid,
                all,
            );
            let of = |tree: &SearchTree| (tree.children_visits, tree.node_values, tree.parents);
            (of(&policy.search_tree), of(&tree))
        });
        assert_eq!(results[..3], results[3..], "{most} actions");
    }
}

#[test]
fn noise_of_another_shape_is_an_error() {
    let traced = trace(key(), |key| {
        let options = GumbelMuZeroOptions::default();
        let gumbel = key.again().gumbel([3]);
        let at_root = |_: Key, node: &Node, _| {
            gumbel_muzero_root_action_selection(node, gumbel, 4, None, &options)
        };
        let below = |_: Key, node: &Node| gumbel_muzero_interior_action_selection(node, &options);
        search(key, two_roots(), model, at_root, below, 4, None, None, all).node_visits
    });
    let errors = traced.expect_err("there is an error").errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    let message = errors[0].to_string();
    for part in ["expected root_gumbel of shape [2, 3]", "got f32[3]", "search/custom.rs"] {
        assert!(message.contains(part), "{message}");
    }
}

/// A search of at most 30 simulations by MuZero's selection with this loop function, and a search
/// of `few` simulations that all run.
fn by_loop<L>(few: usize, loop_fn: L) -> Vec<Array>
where
    L: FnOnce(Range<usize>, SearchState, LoopBody<'_>) -> SearchState,
{
    run(|key| {
        let options = MuZeroOptions::default();
        let at_root = |key: Key, node: &Node, _| muzero_action_selection(key, node, &options);
        let below = |key: Key, node: &Node| muzero_action_selection(key, node, &options);
        // As deep as the search with more simulations may go.
        let depth = Some(30);
        let of = |tree: SearchTree| {
            let nodes = |x: Tensor| x.slice((.., ..few + 1));
            let added = nodes(tree.children_visits);
            (added, nodes(tree.node_values), nodes(tree.parents), tree.node_visits)
        };
        let key_again = key.again();
        let found = search(key, two_roots(), model, at_root, below, 30, depth, None, loop_fn);
        let all = search(key_again, two_roots(), model, at_root, below, few, depth, None, all);
        (of(found), of(all))
    })
}

#[test]
fn a_loop_that_ends_early_is_a_search_of_fewer_simulations() {
    let results = by_loop(7, |simulations, begin, simulate| {
        assert_eq!(simulations, 0..30);
        let going = |(i, _): (Tensor, SearchState)| i.lt(7);
        while_loop((0, begin), going, |(i, state)| (i + 1, simulate(i, state))).1
    });
    assert_eq!(results[..3], results[4..7]);
    // Nodes of simulations that never ran have no visits.
    let visits = results[3].to_f64();
    for tree in visits.chunks(31) {
        assert_eq!(tree[0], 8.0);
        assert!(tree[8..].iter().all(|&count| count == 0.0), "{visits:?}");
    }
}

/// It ends when no other action of a root can have more visits than the root's first action.
#[test]
fn a_loop_may_look_at_the_roots() {
    let results = by_loop(30, |simulations, begin, simulate| {
        let end = simulations.end as i32;
        let open = |(done, state): (Tensor, SearchState)| {
            let visits = state.summary().visit_counts.sort(-1);
            let lead = visits.index_axis(1, -1) - visits.index_axis(1, -2);
            done.lt(end) & lead.le((end - done).astype(F32)).any()
        };
        while_loop((0, begin), open, |(done, state)| (done + 1, simulate(done, state))).1
    });
    let (early, full) = (results[0].to_f64(), results[4].to_f64());
    let best = |visits: &[f64], tree: usize| {
        let root = &visits[31 * 3 * tree..][..3];
        (0..3).max_by(|&a, &b| root[a].total_cmp(&root[b])).expect("three actions")
    };
    assert_eq!([0, 1].map(|tree| best(&early, tree)), [0, 1].map(|tree| best(&full, tree)));
    let simulations: f64 = early[..3].iter().sum();
    assert!((10.0..30.0).contains(&simulations), "{simulations}");
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
            all,
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
            all,
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
            search(key, root(2), line(2), at_root, below, 4, None, None, all).node_visits
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

/// The messages of the checks of a search with functions that select these actions, and its visits
/// of root and nodes.
fn reports(at_root: i32, below: i32, invalid: bool) -> (Vec<String>, Vec<f64>) {
    let traced = trace(key(), |key| {
        collect(|| {
            let invalid = constant([[false, invalid], [false, false]]);
            let at_root = |_: Key, _: &Node, _| full([2], f64::from(at_root)).astype(I32);
            let below = |_: Key, _: &Node| full([2], f64::from(below)).astype(I32);
            search(key, root(2), line(2), at_root, below, 6, None, Some(invalid), all).node_visits
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

/// The messages of the checks of a search of 3 simulations with a loop that runs these, and its
/// visits of nodes.
fn reports_of(numbers: &[i32]) -> (Vec<String>, Vec<f64>) {
    let traced = trace(key(), |key| {
        collect(|| {
            let at_root = |_: Key, _: &Node, _| zeros(I32, [2]);
            let below = |_: Key, _: &Node| zeros(I32, [2]);
            let loop_fn = |_, begin, simulate: LoopBody<'_>| {
                let numbers = constant(numbers);
                fori_loop(0..numbers.len(), begin, |i, state| simulate(numbers.at(i), state))
            };
            search(key, root(2), line(2), at_root, below, 3, None, None, loop_fn).node_visits
        })
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let results = traced.eval(&[Array::key(0)]).expect("it runs");
    let reports = Log::read(&traced.results().1, &results[1..]);
    (reports.iter().map(ToString::to_string).collect(), results[0].to_f64())
}

#[test]
fn a_simulation_out_of_order_fails_a_check_and_the_next_one_runs() {
    let (fine, visits) = reports_of(&[0, 1, 2]);
    assert_eq!(fine, Vec::<String>::new());
    let (reports, same) = reports_of(&[1, 1, -4]);
    assert_eq!(reports.len(), 1, "{reports:?}");
    for part in ["ran simulation 1 after 0 others: expected 0..3", "2 times"] {
        assert!(reports[0].contains(part), "{reports:?}");
    }
    assert_eq!(same, visits);
}

/// No node is its own parent, so each backup ends at the root.
#[test]
fn more_simulations_than_nodes_come_to_an_end() {
    let (reports, _) = reports_of(&[0, 1, 2, 3, 4]);
    assert!(reports[0].contains("ran simulation 3 after 3 others"), "{reports:?}");
}
