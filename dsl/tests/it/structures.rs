//! Trees with a structure that is chosen while tracing: `Option`, and trees that must have one
//! structure.

use crate::helpers::{errors, f32s, run_on};
use podracer_dsl::prelude::*;

#[derive(Tree, Clone)]
struct Momentum {
    decay: Tensor,
    trace: Option<(Tensor, Tensor)>,
}

#[derive(Tree, Clone)]
struct ByVec {
    decay: Tensor,
    trace: Vec<(Tensor, Tensor)>,
}

fn message<S: ArgumentSpec, R: IntoTree>(spec: S, f: impl FnOnce(S::Tree) -> R) -> String {
    let report = errors(spec, f);
    assert_eq!(report.errors.len(), 1, "{report}");
    report.errors[0].message.clone()
}

#[test]
fn an_option_has_the_paths_and_the_program_of_a_vec_with_one_element() {
    let pair = (f32([2]), f32([2]));
    let run = |trace: Option<(Tensor, Tensor)>, decay: Tensor| {
        let state = Momentum { decay, trace };
        let scanned = scan(state, 0..3, |state, _| {
            let trace = state.trace.map(|(x, y)| (y, x * state.decay));
            (Momentum { trace, ..state }, trace)
        });
        (scanned.0, scanned.1)
    };
    let option = trace((Some(pair.clone()), f32([])), |(trace, decay)| run(trace, decay));
    let option = option.expect("it traces");
    let vec = trace((vec![pair], f32([])), |(trace, decay)| {
        scan(ByVec { decay, trace }, 0..3, |state, _| {
            let trace: Vec<_> = state.trace.iter().map(|&(x, y)| (y, x * state.decay)).collect();
            (ByVec { trace: trace.clone(), ..state }, trace)
        })
    });
    let vec = vec.expect("it traces");
    assert_eq!(option.to_string(), vec.to_string());
    assert_eq!(option.arguments().leaves(), vec.arguments().leaves());
    assert_eq!(option.results().leaves(), vec.results().leaves());
    assert_eq!(option.result_paths()[1].to_string(), "0.trace[0].0");
    let spec: &Spec<Momentum> = &option.results().0.0;
    assert_eq!(spec.trace.as_ref().map(|pair| pair.1.to_string()), Some("f32[2]".to_string()));
    let none = trace((None::<Spec<Tensor>>, f32([])), |(none, x)| (none, x)).expect("it traces");
    assert_eq!(none.results().to_string(), "{1: f32[]}");
    assert!(none.results().0.0.is_none());
}

#[test]
fn options_are_gone_over_and_differentiated() {
    let results = run_on(Some(f32([2])), &[f32s(&[2], &[1.0, 3.0])], |x| {
        let doubled = vmap(x, |x| x.map(|x| x * 2.0));
        let slope = grad((x, None::<Tensor>), |(x, _)| x.map_or(scalar(0.0), |x| x.square().sum()));
        let chosen = cond(scalar(true), || x, || doubled);
        (doubled, slope, chosen)
    });
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(values, [[2.0, 6.0], [2.0, 6.0], [1.0, 3.0]]);
}

#[test]
fn a_variant_that_changes_is_reported() {
    assert_eq!(
        message(f32([]), |x| scan((x, None::<Tensor>), 0..3, |(x, _), _| ((x, Some(x)), ()))),
        "carry changed structure at `carry.1`: `None` going in, `Some` coming out"
    );
    // The leaves do not distinguish the two trees.
    assert_eq!(
        message((), |()| while_loop(Some(()), |_| scalar(true), |_| None)),
        "carry changed structure at `carry`: `Some` going in, `None` coming out"
    );
    assert_eq!(
        message(bool([]), |p| cond(p, || (p, Some(())), || (p, None::<()>))),
        "branches differ at `result.1`: `true` gives `Some`, `false` gives `None`"
    );
    assert_eq!(
        message(f32([3]), |x| associative_scan((x, Some(())), |(x, _), (y, _)| (
            x + y,
            None::<()>
        ))),
        "changed structure at `element.1`: `Some` going in, `None` coming out"
    );
    let spec = eval_shape(f32([]), |x| (x, Some(()))).expect("it traces");
    let other = eval_shape(f32([]), |x| (x, None::<()>)).expect("it traces");
    assert_ne!(spec, other);
    assert_eq!(
        message(f32([]), |x| expect_types("state", (x, None), &spec)),
        "`state.1` must be `Some`, got `None`"
    );
}

#[test]
fn leaves_of_several_trees_are_combined() {
    let shards =
        vec![(f32([2]), Some(i32([1]))), (f32([1]), Some(i32([2]))), (f32([0]), Some(i32([0])))];
    let joined = |shards: Vec<(Tensor, Option<Tensor>)>| {
        shards[0].zip_all(&shards[1..], |leaves| concatenate(leaves, 0))
    };
    let text = trace(shards, joined).expect("it traces").to_string();
    assert_eq!(text.matches("concatenate").count(), 2, "{text}");
    let alone = trace(f32([2]), |x| x.zip_all([], |leaves| leaves[0])).expect("it traces");
    assert!(alone.func().eqns.is_empty());
}

#[test]
fn trees_of_different_structure_are_not_combined() {
    let add = |a: Tensor, b: Tensor| a + b;
    assert_eq!(
        message(f32([]), |x| (x, vec![x]).zip_with(&(x, vec![]), add)),
        "the trees have different structures: a leaf at `tree.1[0]` in the first, none in the other"
    );
    assert_eq!(
        message(f32([]), |x| (vec![], x).zip_with(&(vec![x], x), add)),
        "the trees have different structures: a leaf at `tree.1` in the first, one at `tree.0[0]` in the other"
    );
    assert_eq!(
        message(f32([]), |x| vec![].zip_with(&vec![x], add)),
        "the trees have different structures: no leaf at `tree[0]` in the first, one in the other"
    );
    assert_eq!(
        message(bool([]), |p| tree_select(p, &Some(p), &None)),
        "the trees have different structures: `Some` at `tree` in the first, `None` in the other"
    );
    assert_eq!(
        message(f32([]), |x| {
            let (two, one) = (vec![x, x], vec![x]);
            two.zip_all([&two, &one], |leaves| leaves[0])
        }),
        "the trees have different structures: a leaf at `tree[1]` in the first, none in the other number 2"
    );
    let text = errors(f32([]), |x| (x, x).with_leaves(&[x])).to_string();
    assert!(text.starts_with("error: with_leaves: expected 2 leaves, got 1\n  --> "), "{text}");
    assert_eq!(message(f32([]), |x| x.with_leaves(&[x, x])), "expected 1 leaves, got 2");
}
