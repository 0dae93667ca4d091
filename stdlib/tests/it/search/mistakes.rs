//! Wrong inputs of a search: errors at the user's line, and checks that only the running program
//! can make.

use super::{line, root};
use podracer_dsl::prelude::*;
use podracer_rl::search::*;

#[track_caller]
fn search(root: RootFnOutput, simulations: usize, invalid: Option<Tensor>) -> Tensor {
    let options = MuZeroOptions::default();
    muzero_policy(Key::new(0u64), root, line(2), simulations, invalid, &options).action
}

/// Says that the first error of a trace has these parts, and names this file.
#[track_caller]
fn refused<Y: IntoTree>(parts: &[&str], f: impl FnOnce(Key) -> Y) {
    let message = trace(key(), f).expect_err("there is an error").errors[0].to_string();
    for part in parts.iter().chain(&["search/mistakes.rs"]) {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn what_cannot_be_searched_is_an_error_at_the_users_line() {
    refused(&["at least one simulation, got num_simulations 0"], |_| search(root(2), 0, None));
    refused(&["prior_logits as f32 [B, A]", "got f32[2]"], |_| {
        search(RootFnOutput { prior_logits: zeros(F32, [2]), ..root(2) }, 4, None)
    });
    refused(&["the root's value as f32[2], got f32[]"], |_| {
        search(RootFnOutput { value: scalar(0.0), ..root(2) }, 4, None)
    });
    refused(&["`embedding` with the roots as its leading axis, of extent 2, got i32[3]"], |_| {
        search(RootFnOutput { embedding: zeros(I32, [3]), ..root(2) }, 4, None)
    });
    refused(&["invalid_actions as bool [2, 2], got f32[2,2]"], |_| {
        search(root(2), 4, Some(zeros(F32, [2, 2])))
    });
    refused(&["max_depth of at least 1, got 0"], |key| {
        let options = MuZeroOptions { max_depth: Some(0), ..MuZeroOptions::default() };
        muzero_policy(key, root(2), line(2), 4, None, &options).action
    });
    // A tree of 1024 roots, 800 simulations and 362 actions is allowed, ten times as many roots are not.
    refused(&["10240 trees of 800 simulations", "GB", "search fewer roots at once"], |key| {
        let many = RootFnOutput {
            prior_logits: zeros(F32, [10240, 362]),
            value: zeros(F32, [10240]),
            embedding: zeros(F32, [10240]),
        };
        let same = |_: Key, _: Tensor, embedding: Tensor| {
            let output = RecurrentFnOutput {
                reward: embedding,
                discount: embedding,
                prior_logits: zeros(F32, [10240, 362]),
                value: embedding,
            };
            (output, embedding)
        };
        muzero_policy(key, many, same, 800, None, &MuZeroOptions::default()).action
    });
}

#[test]
fn a_model_of_other_types_is_an_error() {
    refused(&["`embedding` must be i32[2], got f32[2]"], |key| {
        let model = |key: Key, action: Tensor, state: Tensor| {
            let (output, state) = line(2)(key, action, state);
            (output, state.astype(F32))
        };
        muzero_policy(key, root(2), model, 4, None, &MuZeroOptions::default()).action
    });
    refused(&["prior_logits as f32[2,2], got f32[2,3]"], |key| {
        let model = |key: Key, action: Tensor, state: Tensor| {
            let (output, state) = line(2)(key, action, state);
            (RecurrentFnOutput { prior_logits: zeros(F32, [2, 3]), ..output }, state)
        };
        gumbel_muzero_policy(key, root(2), model, 4, None, &GumbelMuZeroOptions::default()).action
    });
}

/// Messages of a search's checks, for these prior logits of the root and these values of the model.
fn reports(prior: f64, value: f64, invalid: bool) -> Vec<String> {
    let traced = trace((f32([]), f32([]), bool([])), |(prior, value, invalid)| {
        collect(|| {
            let root = RootFnOutput { prior_logits: prior + zeros(F32, [2, 2]), ..root(2) };
            let model = |key: Key, action: Tensor, state: Tensor| {
                let (output, state) = line(2)(key, action, state);
                (RecurrentFnOutput { value: value + zeros(F32, [2]), ..output }, state)
            };
            let invalid = Some(iota(I32, [2, 2], 0).eq(1) & invalid);
            let options = MuZeroOptions::default();
            muzero_policy(Key::new(0u64), root, model, 4, invalid, &options).action
        })
    })
    .expect("it traces");
    let arguments = [
        Array::floats(F32, [], &[prior]),
        Array::floats(F32, [], &[value]),
        Array::bools([], &[invalid]),
    ];
    let results = traced.eval(&arguments).expect("it runs");
    assert!(results[0].to_f64().iter().all(|action| [0.0, 1.0].contains(action)));
    let reports = Log::read(&traced.results().1, &results[1..]);
    reports.iter().map(ToString::to_string).collect()
}

#[test]
fn a_root_without_a_legal_action_and_nan_fail_a_check() {
    assert!(reports(0.0, 0.0, false).is_empty());
    let says = |reports: Vec<String>, part: &str| {
        assert!(reports.iter().any(|report| report.contains(part)), "{reports:?}");
    };
    says(reports(0.0, 0.0, true), "a search needs a legal action at each root");
    says(reports(f64::NAN, 0.0, false), "a prior logit or a value that is NaN");
    says(reports(0.0, f64::NAN, false), "the model of a search gave");
}
