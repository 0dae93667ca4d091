//! Logged values come out with the metrics, and cost nothing where nobody collects them.

use crate::loops;
use podracer_dsl::prelude::*;
use podracer_runtime::AnakinLoop;

type State = Placed<Tensor, ()>;

fn init(_: Key) -> State {
    Placed { replicated: scalar(0.0), sharded: () }
}

/// Adds up to above 2 in the third iteration.
fn update(state: State, loud: bool) -> (State, Tensor) {
    let next = state.replicated + 0.75;
    if loud {
        check(next.lt(2.0), "the state is {}", next);
    }
    let state = Placed { replicated: next, ..state };
    (state, next)
}

#[test]
fn a_log_is_among_the_metrics() {
    let traced = AnakinLoop::trace("own", 1, 4, init, |state| {
        let ((state, metric), log) = collect(|| update(state, true));
        let metrics = Placed { replicated: metric, sharded: log };
        (state, metrics)
    });
    let traced = traced.expect("no mistake");
    let anakin = traced.compile(&loops::client(1), &loops::options(1));
    let anakin = anakin.expect("it compiles");
    let state = anakin.init(0).expect("a seed");
    let (_, metrics) = anakin.run(state).expect("a call");
    let mut leaves = Vec::new();
    metrics.sharded.visit(|_, leaf| leaves.push(leaf.to_array()));
    let reports = Log::read(&traced.traced().results().1.sharded, &leaves);
    let texts: Vec<&str> = reports.iter().map(|report| &report.text[..]).collect();
    assert_eq!(texts, ["the state is 2.25", "the state is 3"]);
    assert_eq!(reports[0].at, [2]);
    assert!(reports[0].to_string().contains(file!()));
}

#[test]
fn without_collect_the_module_is_the_same_to_the_byte() {
    let module = |loud: bool| {
        let traced = AnakinLoop::trace("own", 1, 4, init, |state| {
            let (state, metric) = update(state, loud);
            let metrics = Placed { replicated: metric, sharded: () };
            (state, metrics)
        });
        traced.expect("no mistake").lower().expect("StableHLO").module
    };
    assert_eq!(module(true).key(), module(false).key());
}
