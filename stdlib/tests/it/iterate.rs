//! Promises of an iteration: learning through acting is learning from the rollout, and stores have an axis of lanes.

use crate::agent_loop::{Iteration, online, tape};
use podracer_dsl::prelude::*;
use podracer_rl::agents::OnlineActorCritic;
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Rollout, RolloutShape};
use podracer_rl::net::Memory;
use podracer_rl::optim::Sgd;

/// Acting is the forward pass of one agent; the other repeats the rollout's steps.
#[test]
fn learning_through_acting_is_learning_from_the_rollout() {
    /// The online actor-critic with the default of [`Learn::iterate`].
    #[derive(Clone)]
    struct FromRollout(OnlineActorCritic<Sgd>);

    impl Agent for FromRollout {
        type Observation = Tensor;
        type Params = <OnlineActorCritic<Sgd> as Agent>::Params;
        type Memory = Memory;
        type Extras = <OnlineActorCritic<Sgd> as Agent>::Extras;
        fn init_memory(&self, lane: LaneId) -> Memory {
            self.0.init_memory(lane)
        }
        fn begin_episode(&self, memory: Memory) -> Memory {
            self.0.begin_episode(memory)
        }
        fn act(
            &self,
            params: &Self::Params,
            memory: Memory,
            input: Input,
            mode: Mode,
            key: Key,
        ) -> Act<Memory, Self::Extras> {
            self.0.act(params, memory, input, mode, key)
        }
    }
    impl Learn for FromRollout {
        type State = <OnlineActorCritic<Sgd> as Learn>::State;
        type Store = ();
        type Metrics = <OnlineActorCritic<Sgd> as Learn>::Metrics;
        fn init(&self, key: Key) -> Self::State {
            self.0.init(key)
        }
        fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}
        fn params(&self, state: &Self::State) -> Self::Params {
            self.0.params(state)
        }
        fn learn(
            &self,
            state: Self::State,
            (): (),
            rollout: Rollout<Self>,
            cx: Cx,
        ) -> (Self::State, (), Self::Metrics) {
            self.0.learn(state, (), rollout, cx)
        }
    }

    let mut agent = online(&tape());
    agent.settings.entropy_cost = 0.1.into();
    agent.settings.networks.hidden = vec![5];
    let through = Iteration::several(&AgentLoop::new(tape(), agent.clone(), 3, 4), 2);
    let from = Iteration::several(&AgentLoop::new(tape(), FromRollout(agent), 3, 4), 2);
    for (through, from) in through.iter().zip(&from) {
        assert_eq!(through.paths, from.paths);
        for ((path, got), expected) in through.paths.iter().zip(&through.after).zip(&from.after) {
            crate::golden::close(path, got, expected, 5e-7);
        }
        let loss = |one: &Iteration| Array::floats(F32, [1], &one.metric("loss"));
        crate::golden::close("loss", &loss(through), &loss(from), 5e-7);
    }
}

#[test]
fn a_scalar_in_a_store_is_an_error() {
    #[derive(Clone)]
    struct Scalar;
    idle_agent!(Scalar);
    impl Learn for Scalar {
        type State = ();
        type Store = (Tensor, Tensor);
        type Metrics = ();
        fn init(&self, _: Key) {}
        fn init_store(&self, rollout: &Spec<Rollout<Self>>, _: &Axes) -> (Tensor, Tensor) {
            (zeros(I32, [RolloutShape::of(rollout).lanes]), scalar(0))
        }
        fn params(&self, (): &()) {}
        fn learn(
            &self,
            (): (),
            store: Self::Store,
            _: Rollout<Self>,
            _: Cx,
        ) -> ((), Self::Store, ()) {
            ((), store, ())
        }
    }
    let agent_loop = AgentLoop::new(tape(), Scalar, 1, 1);
    let Err(errors) = trace(key(), |key| agent_loop.init(key)) else {
        panic!("a scalar has no axis");
    };
    let text = errors.to_string();
    assert!(text.contains("`store.1` is a scalar, i32[]"), "{text}");
}
