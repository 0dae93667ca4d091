//! What programs say while they train: prints and failed checks of all devices and iterations come back with the metrics.

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
    metrics.sharded.visit(|_, leaf| leaves.push(leaf.clone()));
    let reports = Log::read(&traced.traced().results().1.sharded, &leaves);
    let texts: Vec<&str> = reports.iter().map(|report| &report.text[..]).collect();
    assert_eq!(texts, ["the state is 2.25", "the state is 3"]);
    assert_eq!(reports[0].at, [2]);
    assert!(reports[0].to_string().contains(file!()));
}

/// The loop collects only the remaining reports; a program without reports has no results for it.
#[test]
fn a_program_that_says_nothing_carries_no_log() {
    let carried = |loud: bool| {
        let traced = AnakinLoop::trace("own", 1, 4, init, |state| {
            let (state, metric) = update(state, loud);
            (state, Placed { replicated: metric, sharded: () })
        });
        traced.expect("no mistake").traced().results().2.leaves().len()
    };
    assert_eq!((carried(false), carried(true)), (0, 3));
}

/// Counts iterations, and adds 1 to a number of each device, which begins with the device's index.
#[test]
fn prints_and_failed_checks_come_back_with_the_metrics() {
    for replicas in [1, 2] {
        let init = |_| Placed { replicated: scalar(0), sharded: axis_index(Replicas).reshape([1]) };
        let (print, checked) = (line!() + 3, line!() + 4);
        let iterate = |state: Placed<Tensor, Tensor>| {
            let Placed { replicated: count, sharded: number } = state;
            debug_print("iteration {}, number {}", (count, number.index(0)));
            check(number.lt(2), "{} is too large", number.index(0));
            (
                Placed { replicated: count + 1, sharded: number + 1 },
                Placed { replicated: (), sharded: () },
            )
        };
        let traced = AnakinLoop::trace("loop", replicas, 3, init, iterate).expect("it traces");
        let program = traced.compile(&loops::client(replicas), &loops::options(replicas));
        let program = program.expect("it compiles");
        let state = program.init(0).expect("a seed");
        let (_, metrics) = program.run(state).expect("a call");
        let told = |is_check: bool| {
            let of_kind = metrics.reports.iter().filter(|report| report.is_check == is_check);
            let line = if is_check { checked } else { print };
            let told = of_kind.map(|report| {
                assert!(report.loc.to_string().starts_with(&format!("{}:{line}:", file!())));
                (report.text.clone(), report.at.clone())
            });
            told.collect::<Vec<_>>()
        };
        let all = |device: usize, number: i32| {
            (0..3).map(move |at| {
                let place = if replicas == 1 { vec![at] } else { vec![device, at] };
                (format!("iteration {at}, number {}", number + at as i32), place)
            })
        };
        let expected: Vec<_> =
            (0..replicas).flat_map(|device| all(device, device as i32)).collect();
        assert_eq!(told(false), expected);
        let failed = |device: usize| {
            let place = if replicas == 1 { vec![2] } else { vec![device, 2 - device] };
            ("2 is too large".to_owned(), place)
        };
        assert_eq!(told(true), (0..replicas).map(failed).collect::<Vec<_>>());
    }
}
