//! The loop around agents that learn from a replay: the times and numbers of gradient steps, their
//! windows, and the metrics.

use crate::agent_loop::{End, Iteration, Tape};
use crate::golden::{close, floats, run};
use podracer_dsl::prelude::*;
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{
    Act, Agent, Cx, Input, LaneId, LearnFromReplay, Mode, ReplaySettings, Replayed, Rollout, Step,
    Window, Windows,
};

/// An agent that learns nothing: its state counts gradient steps, and its metric is the mean reward of a batch.
#[derive(Clone)]
struct Watcher;

idle_agent!(Watcher);

impl LearnFromReplay for Watcher {
    type State = (Tensor, Tensor);
    type Step = Step;
    type Start = ();
    type Metrics = Tensor;
    fn init(&self, _: Key) -> (Tensor, Tensor) {
        (scalar(0), scalar(0))
    }
    fn params(&self, _: &(Tensor, Tensor)) {}
    fn keep(&self, rollout: Rollout<Self>) -> (Step, ()) {
        (Step::of(rollout), ())
    }
    fn window(&self, steps: &Spec<Step>) -> Window {
        Step::window(steps, 1)
    }
    fn gradient_step(
        &self,
        (steps, iterations): (Tensor, Tensor),
        windows: Windows<Step>,
        _: &Cx,
    ) -> ((Tensor, Tensor), Tensor, Tensor) {
        let transition = vmap(axis(windows.steps, 1), |steps| steps.transition(1, 0.5));
        let errors = transition.reward.abs() * windows.weights;
        ((steps + 1, iterations), errors, transition.reward.mean())
    }
    fn next_iteration(
        &self,
        (steps, iterations): (Tensor, Tensor),
        learning: Tensor,
        _: &Cx,
    ) -> (Tensor, Tensor) {
        (steps, iterations + learning.astype(I32))
    }
}

/// Six iterations of two lanes and two steps on a tape with each step's number as its reward.
fn iterations(settings: ReplaySettings) -> Vec<Iteration> {
    let tape = Tape::new(&(0..16).map(f64::from).collect::<Vec<_>>(), &[(5, End::Terminated)]);
    let agent = Replayed { agent: Watcher, settings, iterations: 6 };
    Iteration::several(&AgentLoop::new(tape, agent, 2, 2), 6)
}

fn small(replay_ratio: f64) -> ReplaySettings {
    ReplaySettings { capacity: 16, minimum: 8, batch: 4, replay_ratio, ..ReplaySettings::default() }
}

#[test]
fn gradient_steps_begin_with_the_minimum_and_keep_to_the_ratio() {
    // An iteration acts 4 steps, and a gradient step learns from 4, so the ratio is the number of
    // gradient steps.
    for (ratio, taken) in [
        (1.0, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (1.5, [0.0, 1.0, 3.0, 4.0, 6.0, 7.0]),
        (0.75, [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]),
        (2.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
    ] {
        let iterations = iterations(small(ratio));
        let steps = |one: &Iteration| one.leaf(&one.after, "replicated.agent.agent.0")[0];
        assert_eq!(iterations.iter().map(steps).collect::<Vec<_>>(), taken, "ratio {ratio}");
        let begun = |one: &Iteration| one.leaf(&one.after, "replicated.agent.agent.1")[0];
        assert_eq!(iterations.iter().map(begun).collect::<Vec<_>>(), [0., 1., 2., 3., 4., 5.]);
        let measured = |one: &Iteration| one.metric("replay.replay_ratio")[0];
        let differences =
            [0, 1, 2, 3, 4, 5].map(|i| taken[i] - if i > 0 { taken[i - 1] } else { 0.0 });
        assert_eq!(iterations.iter().map(measured).collect::<Vec<_>>(), differences);
        let size = |one: &Iteration| one.metric("replay.size")[0];
        assert_eq!(iterations.iter().map(size).collect::<Vec<_>>(), [4., 8., 12., 16., 16., 16.]);
    }
}

#[test]
fn an_iteration_that_does_not_learn_repeats_the_metrics_of_the_last_one_that_did() {
    let iterations = iterations(small(0.5));
    let learnt = |one: &Iteration| one.metric("learning")[0];
    let all: Vec<f64> = iterations.iter().map(learnt).collect();
    assert_eq!(all[..2], [0.0, 0.0]);
    assert!(all[2] > 0.0 && all[3] == all[2] && all[4] != all[2] && all[5] == all[4], "{all:?}");
    let ages: Vec<f64> = iterations.iter().map(|one| one.metric("replay.age")[0]).collect();
    assert!(ages[2] >= 2.0 && ages[2] <= 6.0 && ages[3] == ages[2], "{ages:?}");
    assert_eq!(iterations[5].metric("replay.mean_priority"), [1.0]);
}

#[test]
fn windows_are_drawn_by_the_errors_that_they_had() {
    // The reward is the error: the step of reward 0 is never drawn again once it was.
    let settings = ReplaySettings {
        prioritized: true,
        priority_exponent: 1.0.into(),
        importance_exponent: 0.0.into(),
        anneal_importance: false,
        batch: 8,
        minimum: 8,
        ..small(16.0)
    };
    let iterations = iterations(settings);
    let last = &iterations[5];
    // The windows of the steps 4 to 11 were all drawn, except the latest, and each has its reward.
    let mean = last.metric("replay.mean_priority")[0];
    assert!((7.0..=9.0).contains(&mean), "{mean}");
    let quantiles = ["p50", "p90", "p99"].map(|p| last.metric(&format!("replay.error_{p}"))[0]);
    assert!(quantiles.is_sorted() && quantiles[2] <= 11.0 && quantiles[0] >= 4.0, "{quantiles:?}");
}

#[test]
fn settings_that_do_not_fit_are_errors() {
    let told =
        |settings: ReplaySettings, window| settings.check(window).expect_err("they do not fit");
    assert!(small(1.0).check(4).is_ok());
    let batch = ReplaySettings { batch: 9, ..small(1.0) };
    assert!(told(batch, 1).contains("agent.batch = 9"), "the batch");
    let minimum = ReplaySettings { minimum: 17, ..small(1.0) };
    assert!(told(minimum, 1).contains("agent.minimum = 17"), "the minimum");
    assert!(told(small(1.0), 17).contains("17 steps"), "the window");
}

/// A window of one lane with rewards 1, 2, 3 and observations 10, 11, ..
fn window(terminated: [bool; 3], truncated: [bool; 3], skipped: [bool; 3], kept: bool) -> Step {
    let flags = |values: [bool; 3]| constant(values);
    Step {
        observation: constant([[10.0], [11.0], [12.0]]),
        legal_actions: None,
        action: constant([0, 1, 2]),
        reward: constant([1.0, 2.0, 3.0]),
        terminated: flags(terminated),
        truncated: Some(flags(truncated)),
        skipped: Some(flags(skipped)),
        next_observation: kept.then(|| constant([[20.0], [21.0], [22.0]])),
    }
}

#[test]
fn transitions_end_with_their_episode() {
    const NO: [bool; 3] = [false; 3];
    // Reward, discount, what follows, and whether the step counts, for two steps.
    for (ends, cuts, skips, kept, expected) in [
        (NO, NO, NO, true, [2.0, 0.25, 21.0, 1.0]),
        (NO, NO, NO, false, [2.0, 0.25, 12.0, 1.0]),
        ([true, false, false], NO, NO, true, [1.0, 0.0, 20.0, 1.0]),
        ([true, false, false], NO, NO, false, [1.0, 0.0, 11.0, 1.0]),
        ([false, true, false], NO, NO, false, [2.0, 0.0, 12.0, 1.0]),
        (NO, [true, false, false], NO, true, [1.0, 0.5, 20.0, 1.0]),
        (NO, [true, false, false], NO, false, [1.0, 0.5, 11.0, 0.0]),
        (NO, [false, true, false], NO, false, [2.0, 0.25, 12.0, 0.0]),
        // Both at once: the end counts, and what would have followed does not.
        ([true, false, false], [true, false, false], NO, false, [1.0, 0.0, 11.0, 1.0]),
        (
            [true, false, false],
            [true, false, false],
            [true, false, false],
            true,
            [1.0, 0.0, 20.0, 0.0],
        ),
    ] {
        let results = run((), &[], |()| {
            let of = window(ends, cuts, skips, kept).transition(2, 0.5);
            let follows = of.next_observation.index(0);
            stack(&[of.reward, of.discount, follows, of.counts.astype(F32)], 0)
        });
        let what = format!("{ends:?} {cuts:?} {skips:?} {kept}");
        close(&what, &results[0], &floats(&[4], &expected), 0.0);
    }
}
