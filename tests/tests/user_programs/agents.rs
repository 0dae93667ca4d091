//! Mistakes in a user's agent: each names the method and the user's line, before anything is compiled.

use podracer::UsageError;
use podracer::anakin::Anakin;
use podracer::prelude::*;
use podracer_envs::Catch;

/// Draws actions at random, and is wrong in one way, chosen by `fault`.
#[derive(Clone)]
struct Faulty {
    fault: &'static str,
}

impl Agent for Faulty {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = Tensor;
    type Extras = ();

    fn init_memory(&self, _lane: LaneId) -> Tensor {
        scalar(0.0)
    }
    fn begin_episode(&self, memory: Tensor) -> Tensor {
        if self.fault == "begin" { memory.reshape([1]) } else { memory }
    }
    fn act(&self, _: &Tensor, memory: Tensor, _: Input, mode: Mode, key: Key) -> Act<Tensor, ()> {
        let action = match (self.fault, mode) {
            ("explore", Mode::Explore) | ("greedy", Mode::Greedy) => key.uniform([]),
            _ => key.randint([], 0..3),
        };
        let memory = if self.fault == "memory" { memory.gt(0.0) } else { memory };
        Act { action, memory, extras: () }
    }
}

impl Learn for Faulty {
    type State = Tensor;
    type Store = Tensor;
    type Metrics = Tensor;

    fn init(&self, _key: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, _: &Axes) -> Tensor {
        zeros(F32, [RolloutShape::of(rollout).lanes])
    }
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn learn(
        &self,
        state: Tensor,
        store: Tensor,
        rollout: Rollout<Self>,
        _: Cx,
    ) -> (Tensor, Tensor, Tensor) {
        let state = if self.fault == "state" { state.reshape([1]) } else { state };
        let store = if self.fault == "store" { store.sum() } else { store };
        let metric =
            if self.fault == "metric" { rollout.reward.sum_axis(0) } else { rollout.reward.sum() };
        (state, store, metric)
    }
}

fn traced(fault: &'static str) -> anyhow::Result<()> {
    Anakin::new(Catch::default(), Faulty { fault }).environments(4).trace().map(drop)
}

/// The only mistake, and that its line is one of this file's, as those around it are.
#[track_caller]
fn told(fault: &'static str, expected: &str) {
    let error = traced(fault).expect_err("it is faulty");
    let errors = error.downcast_ref::<TraceErrors>().expect("mistakes of a trace");
    let [only] = &errors.errors[..] else { panic!("{errors}") };
    assert_eq!(only.message, expected, "{errors}");
    for place in [only.loc].into_iter().chain(only.notes.iter().map(|note| note.loc)) {
        assert!(place.to_string().starts_with(file!()), "{errors}");
    }
}

#[test]
fn mistakes_of_an_agent_are_reported() {
    traced("none").expect("it is right");
    told("explore", "`act(..).action` must be i32[], got f32[]");
    told("greedy", "`act(..).action` must be i32[], got f32[]");
    told("memory", "`act(..).memory` must be f32[], got bool[]");
    told("begin", "`begin_episode(..)` must be f32[], got f32[1]");
    told("state", "`learn(..).state` must be f32[], got f32[1]");
    told("store", "`learn(..).store` must be f32[4], got f32[]");
    told("metric", "`learn(..).metrics` must be f32[], got f32[4]");
}

/// Such environments were trained without a word, or answered with the error of some op.
#[test]
fn an_environment_that_makes_no_loop_is_refused() {
    let agent = || Faulty { fault: "none" };
    let error = |traced: anyhow::Result<()>| traced.expect_err("it makes no loop");
    let reset = Anakin::new(Catch::default().auto_reset(), agent()).trace().map(drop);
    assert!(
        format!("{:#}", error(reset)).contains("loops do so, give them it without `auto_reset()`")
    );
    let never = Anakin::new(Catch::default().time_limit(0), agent()).trace().map(drop);
    assert!(
        format!("{:#}", error(never))
            .contains("an episode has at least one step, got a limit of 0")
    );
    let still = Anakin::new(Catch::default(), agent()).iterations_per_call(0).trace().map(drop);
    assert!(error(still).is::<UsageError>());
}
