//! `check`, `debug_print`, and the origin of a NaN.

use crate::helpers::{f32s, i32s};
use podracer_compiler::{Source, Watcher};
use podracer_dsl::debug::Report;
use podracer_dsl::prelude::*;
use std::sync::atomic::Ordering;

/// The reports of a program that returns only its log.
#[track_caller]
fn reports<S: ArgumentSpec>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> Log,
) -> Vec<Report> {
    let traced = trace(spec, f).expect("no mistake");
    let leaves = traced.eval(arguments).expect("arguments fit");
    Log::read(traced.results(), &leaves)
}

#[track_caller]
fn texts<S: ArgumentSpec>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> Log,
) -> Vec<String> {
    let reports = reports(spec, arguments, f);
    let text = |report: &Report| report.to_string().lines().next().unwrap_or("").to_string();
    reports.iter().map(text).collect()
}

/// Logs its input.
fn noisy(x: Tensor) -> Tensor {
    check(x.lt(2.0), "{} is too much", x);
    debug_print("saw {}", x);
    x * 2.0
}

#[test]
fn outside_of_collect_nothing_is_left() {
    let quiet = |loud: bool| {
        let traced = trace(f32([3]), |x| {
            let (last, ys) = scan(0.0, x, |sum, x| {
                let y = if loud { noisy(x) } else { x * 2.0 };
                (sum + y, y)
            });
            let slope = grad(x, |x| vmap(x, |x| if loud { noisy(x) } else { x * 2.0 }).sum());
            (last, ys, slope)
        });
        traced.expect("no mistake").to_string()
    };
    assert_eq!(quiet(true), quiet(false));
}

#[test]
fn a_check_names_its_line_value_and_place() {
    let line = line!() + 2;
    let found = reports(f32([3, 2]), &[f32s(&[3, 2], &[1., 1., 1., 5., 7., 1.])], |x| {
        let body = |x: Tensor| vmap(x, |x| check(x.lt(2.0), "{} is not below {}", (x, 2)));
        collect(|| scan((), x, |(), x| ((), body(x)))).1
    });
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string().lines().next(),
        Some("check failed: 5 is not below 2 (2 times, first at [1, 1])")
    );
    assert_eq!((found[0].at.clone(), found[0].count), (vec![1, 1], 2));
    assert_eq!(found[0].loc.parts().map(|(file, line, _)| (file, line)), Some((file!(), line)));
}

#[test]
fn checks_that_hold_say_nothing() {
    let argument = [f32s(&[2], &[1.0, 1.5])];
    let found =
        reports(f32([2]), &argument, |x| collect(|| check(x.lt(2.0), "{} is too much", x)).1);
    assert_eq!(found, []);
    let found =
        texts(f32([2]), &argument, |x| collect(|| check(x.lt(1.2), "of {} one is too much", x)).1);
    assert_eq!(found, ["check failed: of [1, 1.5] one is too much (once)"]);
}

#[test]
fn what_is_printed_comes_in_order() {
    let found = texts(f32([2, 2]), &[f32s(&[2, 2], &[1., 2., 3., 4.])], |x| {
        collect(|| {
            debug_print("all: {}", x);
            scan(0, x, |n, x| {
                debug_print("row {}: {}", (n, x));
                (n + 1, ())
            })
        })
        .1
    });
    assert_eq!(found, ["all: [1, 2, 3, 4]", "row 0: [1, 2]", "row 1: [3, 4]"]);
}

#[test]
fn only_the_branch_that_is_taken_logs() {
    let program = |x: Tensor, i: Tensor| {
        collect(|| {
            let y = cond(
                x.gt(0).both(),
                || noisy(x),
                || {
                    debug_print("negative {}", x);
                    x
                },
            );
            switch(i, 3, |i| {
                check(constant(false), ["branch 0", "branch 1", "branch 2"][i], ());
                y
            })
        })
        .1
    };
    let arguments = [f32s(&[], &[-3.0]), i32s(&[], &[1])];
    let found = texts((f32([]), i32([])), &arguments, |(x, i)| program(x, i));
    assert_eq!(found, ["negative -3", "check failed: branch 1 (once)"]);
    // Under vmap both branches run, and still only one logs.
    let arguments = [f32s(&[3], &[-3.0, 1.0, 4.0]), i32s(&[3], &[0, 0, 9])];
    let found = texts((f32([3]), i32([3])), &arguments, |(x, i)| {
        collect(|| {
            vmap((x, i), |(x, i)| {
                cond(x.gt(0).both(), || noisy(x), || x)
                    + switch(i, 2, |i| {
                        check(constant(i == 0), "not the first", ());
                        x
                    })
            })
        })
        .1
    });
    let expected = [
        "check failed: 4 is too much (once, at [2])",
        "saw 1",
        "saw 4",
        "check failed: not the first (once, at [2])",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_finished_lane_logs_nothing() {
    let found = texts(f32([3]), &[f32s(&[3], &[0.5, 3.0, 9.0])], |x| {
        let double = |x: Tensor| {
            while_loop(
                x,
                |x| x.lt(8.0),
                |x| {
                    check(x.lt(4.0), "{} is too much", x);
                    debug_print("last {}", x);
                    x * 2.0
                },
            )
        };
        collect(|| vmap(x, double)).1
    });
    let expected = ["check failed: 4 is too much (2 times, first at [0])", "last 4", "last 6"];
    assert_eq!(found[0], expected[0]);
    assert_eq!(&found[1..], &expected[1..]);
}

#[test]
fn derivatives_log_what_the_function_logs() {
    let argument = [f32s(&[], &[3.0])];
    let once = ["check failed: 3 is too much (once)", "saw 3"];
    let through = |f: fn(Tensor) -> Tensor| {
        texts(f32([]), &argument, |x| {
            let (value, log) = collect(|| f(x));
            let _ = value;
            log
        })
    };
    assert_eq!(through(|x| grad(x, noisy)), once);
    assert_eq!(through(|x| value_and_grad(x, noisy).0), once);
    assert_eq!(through(|x| jvp(x, x, noisy).1), once);
    assert_eq!(through(|x| linearize(x, noisy).1(x)), once);
    assert_eq!(through(|x| vjp(x, noisy).1(x)), once);
    assert_eq!(through(|x| subroutine("noisy", x, noisy)), once);
    assert_eq!(through(|x| grad(x, |x| checkpoint(Save::Nothing, x, noisy).sin())), once);
    assert_eq!(through(|x| grad(x, |x| grad(x, |x| noisy(x).sin()))), once);
}

#[test]
fn a_loop_carries_the_log_among_its_metrics() {
    let update = |x: Tensor| {
        let x = x + 0.75;
        check(x.lt(2.0), "the state is {}", x);
        (x, x.square())
    };
    let traced = trace(f32([]), |x| {
        scan(x, 0..4, |x, _| {
            let ((x, metrics), log) = collect(|| update(x));
            (x, (metrics, log))
        })
        .1
    });
    let traced = traced.expect("no mistake");
    let leaves = traced.eval(&[f32s(&[], &[0.0])]).expect("arguments fit");
    // The log of each round by itself: stacked entries are read round by round.
    assert_eq!(leaves[1].to_f64(), [0.0, 0.0, 1.0, 1.0]);
    let reports = Log::read(&traced.results().1, &leaves[1..]);
    let texts: Vec<String> = reports.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].starts_with("check failed: the state is 2.25 (once, at [2])"));
    assert!(texts[1].starts_with("check failed: the state is 3 (once, at [3])"));
}

#[test]
fn the_first_nan_is_named_by_its_line() {
    let line = line!() + 4;
    let traced = trace((f32([3]), f32([])), |(xs, limit)| {
        scan(1.0, xs, |product: Tensor, x| {
            let next = product * x;
            let logarithm = (next - limit).log();
            (next, select(next.gt(limit), logarithm, 0.0))
        })
    });
    let traced = traced.expect("no mistake");
    let fine = [f32s(&[3], &[2.0, 3.0, 4.0]), f32s(&[], &[0.5])];
    assert_eq!(traced.first_nan(&fine), Ok(None));
    let wrong = [f32s(&[3], &[2.0, 0.1, 4.0]), f32s(&[], &[0.5])];
    let origin = traced.first_nan(&wrong).expect("arguments fit").expect("a NaN");
    assert_eq!((origin.op, &origin.index[..]), ("log", &[][..]));
    assert_eq!(origin.loc.parts().map(|(file, line, _)| (file, line)), Some((file!(), line)));
    // No equation is the source of a NaN in the input.
    let given = [f32s(&[3], &[2.0, f64::NAN, 4.0]), f32s(&[], &[0.5])];
    assert_eq!(traced.first_nan(&given), Ok(None));
    assert!(traced.first_nan(&given[..1]).is_err());
}

#[test]
fn a_nan_of_the_pass_back_is_named_by_the_line_that_is_differentiated() {
    let line = line!() + 1;
    let traced = trace(f32([2]), |x| grad(x, |x| select(x.gt(0), x.sqrt(), 0.0).sum()));
    let traced = traced.expect("no mistake");
    let origin = traced.first_nan(&[f32s(&[2], &[4.0, 0.0])]).expect("arguments fit");
    let origin = origin.expect("zero times infinity");
    assert_eq!(origin.loc.parts().map(|(file, line, _)| (file, line)), Some((file!(), line)));
    assert_eq!(origin.index, [1]);
    assert!(origin.to_string().contains("gave NaN at [1]"), "{origin}");
}

/// The source of the nonfinite numbers in the first result of a program.
#[track_caller]
fn source<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    arguments: &[Array],
    f: impl FnOnce(S::Tree) -> R,
) -> Option<Source> {
    let traced = trace(spec, f).expect("no mistake");
    let watched = traced.func().eval_watched(arguments, &Watcher::default());
    watched.expect("nobody stops it").source([0]).cloned()
}

/// Op and line of an equation.
fn op_and_line(source: &Source) -> (&'static str, u32) {
    let Source::Equation(equation) = source else { panic!("{source:?}") };
    (equation.op, equation.loc.parts().expect("a user's line").1)
}

#[test]
fn a_nan_that_reaches_the_result_is_found_and_one_that_is_left_out_is_not() {
    let line = line!() + 8;
    let program = |(x, masked): (Tensor, Tensor)| {
        scan(0.0, (x, masked), |sum: Tensor, (x, masked)| {
            // The usual mask: elements that are not chosen may be anything.
            let logarithm = masked.log();
            let kept = select(masked.gt(0), logarithm, 0.0);
            let far = select(masked.gt(0), logarithm - f64::INFINITY, 1.0);
            let _ = far;
            let root = x.sqrt();
            (sum + kept + root, ())
        })
        .0
    };
    let spec = || (f32([3]), f32([3]));
    let masked = f32s(&[3], &[-1.0, 2.0, 0.0]);
    assert_eq!(source(spec(), &[f32s(&[3], &[1.0, 4.0, 9.0]), masked.clone()], program), None);
    let found = source(spec(), &[f32s(&[3], &[1.0, 4.0, -9.0]), masked.clone()], program);
    let found = found.expect("a NaN");
    assert_eq!(op_and_line(&found), ("sqrt", line));
    let Source::Equation(equation) = found else { panic!("an equation") };
    assert_eq!(equation.operands[0].range, Some((-9.0, -9.0)));
    assert_eq!(equation.regions[0].0, "scan");
    // A NaN in an argument is reported as the argument's.
    let found = source(spec(), &[f32s(&[3], &[1.0, f64::NAN, -9.0]), masked], program);
    assert_eq!(found, Some(Source::Argument(0)));
}

/// Large numbers become infinite and then NaN: the line that overflows is reported, and a mask of
/// -inf is not.
#[test]
fn the_infinity_behind_a_nan_is_found_with_its_line() {
    let (overflow, difference) = (line!() + 5, line!() + 6);
    let program = |(x, mask): (Tensor, Tensor)| {
        let _part = podracer_dsl::part("the agent's learning");
        let logits = select(mask, x, f64::NEG_INFINITY);
        let steps = scan(x, 0..3, |scale: Tensor, _| {
            let squares = scale.square();
            let difference = squares - squares * 2.0;
            (scale * 1e5, difference.sum() + logits.max().exp())
        });
        steps.1.sum()
    };
    let spec = || (f32([2]), Spec(TensorType::new(BOOL, [2])));
    let mask = Array::bools([2], &[true, false]);
    assert_eq!(source(spec(), &[f32s(&[2], &[1.0, 2.0]), mask.clone()], program), None);
    let found = source(spec(), &[f32s(&[2], &[1.0, 1e12]), mask], program).expect("a NaN");
    assert_eq!(op_and_line(&found), ("subtract", difference));
    let Source::Equation(equation) = found else { panic!("an equation") };
    assert_eq!(equation.loc.part(), Some("the agent's learning"));
    let made: Vec<_> = equation.infinities.iter().map(op_and_line).collect();
    assert_eq!(made[0], ("multiply", overflow), "{made:?}");
    let Source::Equation(infinity) = &equation.infinities[0] else { panic!("an equation") };
    assert!(infinity.to_string().contains("1e22"), "{infinity}");
    assert!(infinity.to_string().contains("gave infinity at [1]"), "{infinity}");
}

/// An infinity that is the result itself, from a loop, and an infinity from an argument.
#[test]
fn an_infinity_in_the_result_is_found() {
    let line = line!() + 2;
    let program = |x: Tensor| {
        let grow = |x: Tensor| scan(x, 0..4, |x: Tensor, _| (x * 1e20, ())).0;
        grow(x) + 1.0
    };
    let found = source(f32([]), &[f32s(&[], &[1.0])], program).expect("an infinity");
    assert_eq!(op_and_line(&found), ("multiply", line));
    let found = source(f32([]), &[f32s(&[], &[f64::INFINITY])], program);
    assert_eq!(found, Some(Source::Argument(0)));
}

#[test]
fn an_evaluation_that_is_watched_can_be_stopped() {
    let watcher = Watcher::default();
    let traced = trace(f32([]), |x| while_loop(x, |x| x.gt(0), |x| x)).expect("no mistake");
    let evaluation = {
        let (watcher, func) = (watcher.clone(), traced.func().clone());
        std::thread::spawn(move || func.eval_watched(&[f32s(&[], &[1.0])], &watcher).is_none())
    };
    while watcher.equations.load(Ordering::Relaxed) < 100 {
        std::thread::yield_now();
    }
    watcher.stop.store(true, Ordering::Relaxed);
    assert!(evaluation.join().expect("no panic"), "a loop without end was stopped");
}

/// The payload of a narrow float holds only small numbers.
#[test]
fn a_nan_of_a_narrow_float_is_followed_through_conversions() {
    for dtype in [F16, BF16] {
        let line = line!() + 3;
        let got = source((f32([2]),), &[f32s(&[2], &[1.0, 30.0])], |(x,)| {
            let narrow = x.astype(dtype);
            let root = (narrow - 5).sqrt();
            ((root.slice(..1) * 2).astype(F32), (narrow - 7).log())
        });
        let got = got.expect("the root of -4");
        assert_eq!(op_and_line(&got), ("sqrt", line), "{dtype}");
    }
}
