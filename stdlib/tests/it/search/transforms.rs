//! Searches under `vmap`, in loops and together with gradients.

use super::{line, root};
use podracer_dsl::prelude::*;
use podracer_rl::search::*;

/// Visits of a line's roots, for a key, in a search from a root with this value.
fn visits(key: Key, value: Tensor) -> Tensor {
    let root = RootFnOutput { value: value.expand_dims(0), ..root(1) };
    let output = muzero_policy(key, root, line(1), 6, None, &MuZeroOptions::default());
    output.search_tree.summary().visit_counts.index(0)
}

#[test]
fn a_search_under_vmap_of_vmap_is_each_search_by_itself() {
    let traced = trace(key(), |key| {
        let values = arange(6).astype(F32) * 0.1;
        let words = key.split_n(6).words();
        let keys = |i: usize| Key::from_words(words.index(i));
        let nested = (words.reshape([2, 3, 2]), values.reshape([2, 3]));
        let batched = vmap(nested, |(words, values)| {
            vmap((words, values), |(words, value)| visits(Key::from_words(words), value))
        });
        let alone: Vec<Tensor> = (0..6).map(|i| visits(keys(i), values.index(i))).collect();
        (batched.reshape([6, 2]), stack(&alone, 0))
    });
    let results = traced.expect("it traces").eval(&[Array::key(3)]).expect("it runs");
    assert_eq!(results[0], results[1]);
    // The searches differ, so that equality says something.
    let counts = results[0].to_f64();
    assert!(counts.chunks(2).any(|pair| pair != &counts[..2]), "{counts:?}");
}

#[test]
fn no_gradient_flows_through_a_search() {
    let traced = trace((key(), f32([2])), |(key, params)| {
        value_and_grad(params, |params| {
            let root = RootFnOutput {
                prior_logits: params.expand_dims(0),
                value: params.sum().expand_dims(0),
                embedding: zeros(I32, [1]),
            };
            // The model captures parameters too.
            let model = |key: Key, action: Tensor, state: Tensor| {
                let (output, state) = line(1)(key, action, state);
                (RecurrentFnOutput { value: params.sum().expand_dims(0), ..output }, state)
            };
            let output = muzero_policy(key, root, model, 4, None, &MuZeroOptions::default());
            let target = output.action_weights.index(0);
            -(target * params.log_softmax(-1)).sum()
        })
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let arguments = [Array::key(0), Array::floats(F32, [2], &[0.5, -0.5])];
    let results = traced.eval(&arguments).expect("it runs");
    // The slope of cross-entropy towards constant weights adds up to nothing.
    let slope = results[1].to_f64();
    assert!((slope[0] + slope[1]).abs() < 1e-6 && slope[0] != 0.0, "{slope:?}");
}

#[test]
fn a_search_that_goes_on_is_one_longer_search() {
    // Without noise, and with values that differ, so that the two do not depend on keys.
    let traced = trace(key(), |key| {
        let root = RootFnOutput {
            prior_logits: constant([[0.1, 0.3, 0.2], [0.7, 0.1, 0.2]]),
            value: zeros(F32, [2]),
            embedding: constant([0, 5]),
        };
        let model = |_: Key, action: Tensor, state: Tensor| {
            let state = (state * 3 + action * 7 + 1).rem(101);
            let x = state.astype(F32) / 101.0;
            let logits = stack(&[x.sin(), (x * 5.0).sin(), (x * 9.0).cos()], 1);
            let output = RecurrentFnOutput {
                reward: (x * 13.0).sin(),
                discount: x.full_like(0.9),
                prior_logits: logits,
                value: (x * 31.0).cos(),
            };
            (output, state)
        };
        let options = MuZeroOptions {
            dirichlet_fraction: 0.0.into(),
            temperature: 0.0.into(),
            ..MuZeroOptions::default()
        };
        let short = muzero_policy(key.again(), root.clone(), model, 14, None, &options);
        let long = muzero_policy(key.again(), root.clone(), model, 34, None, &options);
        let whole = short.search_tree.clone();
        let further = muzero_policy_from(key.again(), root, &whole, model, 20, None, &options);
        // The tree below the best action, and a search that begins there.
        let kept = whole.subtree(short.action, constant([true, false]), 8);
        (
            long.search_tree.summary(),
            further.search_tree.summary(),
            kept.node_visits,
            whole.children_visits.index_axis(1, 0).max_axis(-1),
            kept.children_visits,
        )
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let results: Vec<Vec<f64>> =
        traced.eval(&[Array::key(0)]).expect("it runs").iter().map(Array::to_f64).collect();
    assert_eq!(results[0], results[4], "visits");
    for (long, further) in [(2, 6), (3, 7)] {
        for (a, b) in results[long].iter().zip(&results[further]) {
            assert!((a - b).abs() < 1e-5, "{:?} {:?}", results[long], results[further]);
        }
    }
    // The first root's subtree has the visits of its action; the second one was not to be kept.
    let (kept, best) = (&results[8], &results[9]);
    assert_eq!(kept[0], best[0]);
    assert!(kept[8..].iter().all(|visits| *visits == 0.0), "{kept:?}");
    assert_eq!(kept[0], 1.0 + results[10][..3].iter().sum::<f64>());
}
