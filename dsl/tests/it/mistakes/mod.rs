//! The reports of mistakes. Lines are counted from a marker, so that the tests survive edits.

mod keys;
mod tensors;
mod transforms;

use crate::helpers::errors;
use podracer_dsl::prelude::*;

const FILE: &str = file!();

/// Checks a report against its expected text. In the text, `{+n:column}` is the place `n` lines
/// below `line`.
#[track_caller]
fn check(report: &str, line: u32, expected: &str) {
    let mut text = String::new();
    let mut rest = expected;
    while let Some(start) = rest.find("{+") {
        let end = start + rest[start..].find('}').expect("a closing brace");
        let (lines, column) = rest[start + 2..end].split_once(':').expect("a column");
        text += &rest[..start];
        text += &format!("{FILE}:{}:{column}", line + lines.parse::<u32>().expect("a number"));
        rest = &rest[end + 1..];
    }
    assert_eq!(report, text + rest);
}

/// Checks that there is one report, its text, and the source text at its place.
#[track_caller]
fn check_report(report: &TraceErrors, file: &str, source: &str, text: &str, at: &str) {
    assert_eq!(report.errors.len(), 1, "{report}");
    let error = &report.errors[0];
    let op = match &error.op[..] {
        "" => String::new(),
        op => format!("{op}: "),
    };
    assert_eq!(format!("{op}{}", error.message), text);
    let (found, line, column) = error.loc.parts().expect("a place");
    assert_eq!(found, file, "{report}");
    let line = source.lines().nth(line as usize - 1).unwrap_or_default();
    let found = &line[column as usize - 1..];
    assert!(found.starts_with(at), "told of `{found}`, not of `{at}`: {report}");
}

/// One test on each line: the types of the arguments and the program; the whole report; the
/// beginning of the reported place.
macro_rules! mistakes {
    ($source:literal: $($name:ident: $spec:expr, $f:expr => $text:literal, $at:literal;)*) => {$(
        #[test]
        fn $name() {
            let report = crate::helpers::errors($spec, $f);
            super::check_report(&report, file!(), include_str!($source), $text, $at);
        }
    )*};
}
use mistakes;

#[test]
fn shapes_that_do_not_broadcast() {
    let line = line!();
    let report = errors((f32([128, 4]), f32([4, 128])), |(x, y)| x + y);
    check(
        &report.to_string(),
        line,
        "error: add: f32[128,4] and f32[4,128] do not broadcast (axis 1: 4 against 128)\n  --> {+1:66}",
    );
}

#[test]
fn all_mistakes_are_reported_without_their_consequences() {
    let line = line!();
    let report = errors((f32([3]), i32([3])), |(x, n)| {
        let bad = x + n;
        let after = (bad * 2.0).sum() + bad.index(7);
        let worse = n.exp();
        let index = x.index(3);
        (after, worse, index)
    });
    check(
        &report.to_string(),
        line,
        "error: add: operands must have one dtype, got f32 and i32: cast one of them\n  --> {+2:19}\n\
         error: exponential: expected floats, got i32: convert it first\n  --> {+4:23}\n\
         error: index: position 3 is outside of axis 0 of f32[3]\n  --> {+5:23}",
    );
}

#[test]
fn literals_that_do_not_fit() {
    let report = errors((i32([]), u8([]), bool([])), |(n, small, flag)| {
        (n + 1.5, small + 300, flag + 1, small - -1)
    });
    let messages: Vec<&str> = report.errors.iter().map(|error| error.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the literal 1.5 does not become an integer: cast the i32 tensor with `.astype(F32)`",
            "300 is outside of u8's range [0, 255]",
            "the literal 1 does not become a bool: compare the tensor, or cast it",
            "-1 is outside of u8's range [0, 255]",
        ]
    );
}

#[derive(Tree, Clone)]
struct Body {
    velocity: Tensor,
    arms: Vec<Tensor>,
}

#[test]
fn a_carry_that_changes_its_type() {
    let line = line!();
    let report = errors((), |()| {
        let state = Body { velocity: zeros(F32, []), arms: vec![zeros(F32, [2])] };
        scan((0, state), 0..3, |(n, state), _| {
            let velocity = state.velocity.reshape([1]);
            ((n, Body { velocity, ..state }), ())
        })
    });
    check(
        &report.to_string(),
        line,
        "error: scan: carry changed type at `carry.1.velocity`: f32[] going in, f32[1] coming out\n  --> {+4:43} (body), carry began at {+3:9}",
    );
    let report = errors(f32([]), |x| {
        scan((0, x), 0..3, |(n, x), _| ((n, x * n.astype(F32) + x.reshape([1])), ()))
    });
    assert_eq!(
        report.errors[0].message,
        "carry changed type at `carry.1`: f32[] going in, f32[1] coming out"
    );
    let report = errors((), |()| {
        let state = Body { velocity: zeros(F32, []), arms: vec![] };
        while_loop(
            state,
            |state| state.velocity.lt(3.0),
            |state| Body { arms: vec![state.velocity], ..state },
        )
    });
    assert_eq!(
        report.errors[0].message,
        "carry changed structure: 1 leaves going in, 2 coming out"
    );
}

#[test]
fn axes_of_different_length() {
    let report = errors((f32([3, 2]), f32([4])), |(x, y)| vmap((x, y), |(x, y)| x + y));
    assert_eq!(
        report.errors[0].to_string().lines().next(),
        Some("error: vmap: lengths differ: `xs.0` has 3, `xs.1` has 4 (f32[4])")
    );
    let report = errors(f32([]), |x| vmap(x, |x| x));
    assert_eq!(
        report.errors[0].message,
        "`xs` is a scalar, f32[]: it has no axis to go over (use `whole(..)` or capture it)"
    );
    let report = errors(f32([3]), |x| vmap(whole(x), |x| x));
    assert_eq!(
        report.errors[0].message,
        "there is nothing to go over: no argument has an axis for it"
    );
}

#[test]
fn branches_that_differ() {
    let report = errors((bool([]), f32([])), |(p, x)| cond(p, || (x, 1), || (x.reshape([1]), 2)));
    assert_eq!(
        report.errors[0].message,
        "branches differ at `result.0`: `true` gives f32[], `false` gives f32[1]"
    );
    let report = errors(f32([2]), |x| cond(x.gt(0), || x, || -x));
    assert_eq!(
        report.errors[0].message,
        "the predicate must be bool[], got bool[2] (for one choice per element use `select`)"
    );
}

#[test]
fn keys_used_twice() {
    let line = line!();
    let report = errors(key(), |key| {
        let copy = key.clone();
        let a = key.uniform([]);
        let b = copy.normal([]);
        a + b
    });
    check(&report.to_string(), line, "error: key used twice: first at {+3:21}, again at {+4:22}");
    let line = line!();
    let report = errors(key(), |key| scan((), 0..3, |(), _| ((), key.uniform([]))));
    assert!(
        report.errors[0].message.starts_with("a key from outside is used in the body of `scan`"),
        "{report}"
    );
    check(
        &report.to_string().lines().nth(1).expect("a place")[6..],
        line,
        "{+1:70}, key made at {+1:18}",
    );
    // Through two frames; only the outer frame repeats.
    let report = errors((key(), bool([])), |(key, p)| {
        vmap(arange(3), |_| cond(p, || key.uniform([]), || scalar(0.0)))
    });
    assert!(report.errors[0].message.contains("body of `vmap`"), "{report}");
}

#[test]
fn a_stack_of_keys_is_no_key() {
    let report = errors(key(), |key| vmap(key.split_n(3), |key| key).uniform([]));
    let expected =
        "expected one key, u32[2], got u32[3,2]: go over a stack of keys with `vmap` or `scan`";
    assert_eq!(report.errors[0].message, expected);
    assert_eq!(report.errors.len(), 1);
}

#[test]
fn keys_used_once_on_each_path() {
    let traced = trace((key(), bool([])), |(key, p)| {
        let copy = key.clone();
        let third = key.clone();
        let either = cond(p, || key.uniform([]), || copy.normal([]));
        let common = third.again();
        let same = vmap(arange(3), |i| common.fold_in(i).uniform([]) + common.again().uniform([]));
        (either, same)
    });
    assert!(traced.is_ok(), "{traced:?}");
    let report = errors((key(), bool([])), |(key, p)| {
        let (copy, third) = (key.clone(), key.clone());
        cond(p, || key.uniform([]), || copy.normal([])) + third.uniform([])
    });
    assert!(report.to_string().contains("key used twice"), "{report}");
}

#[test]
fn handles_that_leave_their_trace() {
    let mut escaped = None;
    let line = line!();
    trace(f32([]), |x| {
        escaped = Some(x + 1.0);
        x
    })
    .expect("this one is fine");
    let report = errors(f32([]), |x| x + escaped.expect("it was set"));
    check(
        &report.to_string(),
        line,
        "error: a tensor of another trace was used: pass its value as an argument of this trace\n  --> {+2:24} (made here)",
    );
    let report = errors(f32([3]), |x| {
        let mut inner = None;
        let y = vmap(x, |x| {
            inner = Some(x * 2.0);
            x
        });
        y + inner.expect("it was set")
    });
    assert!(
        report.errors[0]
            .message
            .starts_with("a tensor was used after the closure that made it had ended"),
        "{report}"
    );
    let line = line!();
    let outside = scalar(1.0);
    let report = errors(f32([]), |x| x + outside);
    check(
        &report.to_string(),
        line,
        "error: a tensor was made outside of any trace: make it inside the traced function\n  --> {+1:19} (made here)",
    );
}

#[test]
fn panics_are_reported_unless_a_mistake_came_before() {
    let report = errors(f32([]), |x| {
        assert!(x.rank() > 1, "rank {}", x.rank());
        x
    });
    assert_eq!(report.errors[0].message, "the traced function panicked: rank 0");
    let report = errors((f32([2]), f32([3])), |(x, y)| {
        let sum = x + y;
        sum * sum.shape()[5]
    });
    assert_eq!(report.errors.len(), 1);
    assert_eq!(report.errors[0].op, "add");
    // The thread can trace again.
    assert!(trace(f32([]), |x| x).is_ok());
}

#[test]
fn scopes_lead_to_the_caller() {
    #[track_caller]
    fn library(x: Tensor, y: Tensor) -> Tensor {
        let _scope = scope("library");
        vmap(x, |x| x + y)
    }
    let line = line!();
    let report = errors((f32([3, 2]), f32([3])), |(x, y)| library(x, y));
    let text = report.to_string();
    check(text.split(", ").last().expect("a note"), line, "in `library` called at {+1:59}");
}

#[test]
fn derivatives_that_do_not_exist() {
    let line = line!();
    let report = errors(f32([]), |x| grad(x, |x| while_loop(x, |x| x.lt(10.0), |x| x * 2.0)));
    let text = report.to_string();
    assert!(text.contains("cannot be differentiated so") && text.contains("scan"), "{text}");
    check(&text.lines().nth(1).expect("a place")[6..], line, "{+1:38}, `while` at {+1:50}");
    let report = errors((f32([3]), i32([])), |(x, n)| {
        (grad(x, |x| x * 2.0), grad((x, n), |(x, _)| x.sum()))
    });
    let messages: Vec<String> =
        report.errors.iter().map(|error| format!("{}: {}", error.op, error.message)).collect();
    assert_eq!(
        messages,
        [
            "grad: the loss must be a float scalar, got f32[3]: take its mean or sum",
            "grad: `argument.1` is i32[]: only floats have gradients; capture it, or return it with the loss",
        ]
    );
}

#[test]
fn collectives_without_an_axis() {
    let report = errors(f32([]), |x| psum(x, "nowhere"));
    assert_eq!(
        report.errors[0].message,
        "there is no axis `nowhere` around: name one with `vmap_named(\"nowhere\", ..)`"
    );
}

#[test]
fn a_cond_under_vmap_is_a_warning() {
    let warnings = |traced: &Traced<(Tensor, Tensor), Tensor>| {
        traced.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let spec = || (bool([3]), f32([3]));
    let line = line!();
    let loud =
        trace(spec(), |(p, x)| vmap_named("environments", (p, x), |(p, x)| cond(p, || x, || -x)));
    let loud = warnings(&loud.expect("it traces"));
    assert_eq!(loud.len(), 1);
    assert!(
        loud[0].starts_with("warning: cond under vmap runs") && loud[0].contains("environments"),
        "{}",
        loud[0]
    );
    check(&loud[0].lines().nth(1).expect("a place")[6..], line, "{+2:76}");
    let quiet = trace(spec(), |(p, x)| vmap((p, x), |(p, x)| cond(p.both(), || x, || -x)));
    assert_eq!(warnings(&quiet.expect("it traces")), [] as [&str; 0]);
}
