//! Mistakes in a user's environment or iteration, found while the training loop is traced: each names the user's line, and the
//! leaf of the tree where there is one.

use super::bodies::{Body, looped, still};
use podracer::prelude::*;

/// Asserts that the errors have each message whole, and the line of this file.
#[track_caller]
fn assert_told(errors: Result<Vec<Warning>, TraceErrors>, expected: &[(&str, u32)]) {
    let errors = errors.expect_err("a mistake was made");
    let told: Vec<(String, String)> = (errors.errors.iter())
        .map(|error| {
            let op = if error.op.is_empty() { String::new() } else { format!("{}: ", error.op) };
            let place = error.loc.to_string();
            let line = place.rsplit_once(':').map_or(place.as_str(), |(line, _)| line);
            (op + &error.message, line.to_owned())
        })
        .collect();
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(message, line)| (message.to_string(), format!("{}:{line}", file!())))
        .collect();
    assert_eq!(told, expected, "{errors}");
}

#[test]
fn shapes_that_do_not_fit_each_other() {
    let line = line!() + 2;
    let errors = looped(|state, _, _| {
        let position = state.position + zeros(F32, [3]);
        (Body { position, ..state }, still(state))
    });
    assert_told(errors, &[("add: f32[2] and f32[3] do not broadcast (axis 0: 2 against 3)", line)]);
}

#[test]
fn a_state_of_another_type() {
    let line = line!() + 2;
    let errors = looped(|state, _, _| {
        let velocity = state.velocity.reshape([1]);
        (Body { velocity, ..state }, still(state))
    });
    assert_told(errors, &[("`step(..).state.velocity` must be f32[], got f32[1]", line)]);
    let line = line!() + 2;
    let errors = looped(|state, action, _| {
        let velocity = action + 1;
        (Body { velocity, ..state }, still(state))
    });
    assert_told(errors, &[("`step(..).state.velocity` must be f32[], got i32[]", line)]);
}

/// All of them at once.
#[test]
fn a_time_step_of_other_types() {
    let line = line!() + 3;
    let errors = looped(|state, _, _| {
        let timestep = TimeStep {
            observation: state.velocity + 1.0,
            reward: scalar(1),
            terminated: scalar(0.0),
            truncated: constant(false).reshape([1]),
        };
        (state, timestep)
    });
    let expected = [
        ("`step(..).observation` must be f32[2], got f32[]", line),
        ("`step(..).reward` must be f32[], got i32[]", line + 1),
        ("`step(..).terminated` must be bool[], got f32[]", line + 2),
        ("`step(..).truncated` must be bool[], got bool[1]", line + 3),
    ];
    assert_told(errors, &expected);
}

#[test]
fn a_key_used_twice() {
    let line = line!() + 2;
    let errors = looped(|state, _, key| {
        let again = key.clone();
        let position = key.uniform([2]);
        let velocity = again.normal([]);
        (Body { position, velocity }, still(state))
    });
    let report = errors.expect_err("a mistake was made").to_string();
    let places = [line + 1, line + 2].map(|line| format!("{}:{line}:", file!()));
    assert!(
        report.starts_with(&format!("error: key used twice: first at {}", places[0])),
        "{report}"
    );
    assert!(report.contains(&format!(", again at {}", places[1])), "{report}");
    assert_eq!(report.matches("error:").count(), 1, "{report}");
}

#[test]
fn a_literal_that_does_not_fit() {
    let line = line!() + 2;
    let errors = looped(|state, action, _| {
        let push = action + 0.5;
        let velocity = state.velocity + push;
        (Body { velocity, ..state }, still(state))
    });
    let message =
        "add: the literal 0.5 does not become an integer: cast the i32 tensor with `.astype(F32)`";
    assert_told(errors, &[(message, line)]);
}

#[test]
fn a_panic_in_a_step() {
    let errors = looped(|state, _, _| {
        let extents = state.position.shape();
        assert_eq!(extents.len(), 2, "a matrix");
        (state, still(state))
    });
    let report = errors.expect_err("a mistake was made").to_string();
    assert!(
        report.contains("the traced function panicked") && report.contains("a matrix"),
        "{report}"
    );
}

#[test]
fn a_branch_in_a_step_is_a_warning() {
    let line = line!() + 2;
    let loud = looped(|state, _, _| {
        let velocity = cond(state.velocity.gt(1.0), || scalar(0.0), || state.velocity + 0.1);
        (Body { velocity, ..state }, still(state))
    });
    let warnings: Vec<String> = loud.expect("no mistake").iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("warning: cond under vmap runs every branch and selects"),
        "{}",
        warnings[0]
    );
    assert!(warnings[0].contains(&format!("{}:{line}:", file!())), "{}", warnings[0]);
    let quiet = looped(|state, _, _| {
        let velocity = cond(state.velocity.gt(1.0).both(), || scalar(0.0), || state.velocity + 0.1);
        (Body { velocity, ..state }, still(state))
    });
    assert_eq!(quiet.expect("no mistake"), []);
}

/// An iteration of one's own that gives another state than it got.
#[test]
fn an_update_that_changes_the_state() {
    let line = line!() + 4;
    let init = |_: Key| Placed { replicated: zeros(F32, [3]), sharded: zeros(I32, [4]) };
    let errors = AnakinLoop::trace("own", 1, 2, init, |state| {
        let Placed { replicated, sharded } = state;
        let sharded = sharded.sum();
        (Placed { replicated, sharded }, Placed { replicated: replicated.sum(), sharded: () })
    });
    let errors = errors.map(|_| Vec::new());
    assert_told(
        errors,
        &[("scan: carry changed type at `carry.sharded`: i32[4] going in, i32[] coming out", line)],
    );
}

#[test]
fn a_mistake_in_the_beginning() {
    let line = line!() + 1;
    let init = |key: Key| Placed { replicated: key.uniform([2]) + ones(F32, [5]), sharded: () };
    let errors = AnakinLoop::trace("own", 1, 2, init, |state| {
        (state, Placed { replicated: scalar(0.0), sharded: () })
    });
    let errors = errors.map(|_| Vec::new());
    assert_told(errors, &[("add: f32[2] and f32[5] do not broadcast (axis 0: 2 against 5)", line)]);
}

/// Settings of the agent that contradict each other: 4 environments and 4 steps do not make 3 minibatches.
#[test]
fn minibatches_that_do_not_divide_the_batch() {
    let environment = podracer::envs::Catch::default();
    let spaces = (environment.observation_space(), environment.action_space());
    let mut agent = Ppo::new(spaces.0, spaces.1);
    agent.settings.minibatches = 3;
    let anakin = Anakin::new(environment, agent).environments(4).unroll(4);
    let line = line!() + 1;
    let traced = anakin.trace();
    let report = traced.err().expect("a mistake was made").to_string();
    let message =
        "Ppo: a cycle's 16 steps (4 steps of 4 environments) do not divide into 3 minibatches";
    assert!(report.contains(message), "{report}");
    let place = format!("in `Anakin` called at {}:{line}:", file!());
    assert!(report.contains(&place), "{report}");
}
