//! An environment with a closure as its step: a place for mistakes.

use podracer::prelude::*;

#[derive(Tree, Clone, Copy)]
pub struct Body {
    pub position: Tensor,
    pub velocity: Tensor,
}

/// A body in the plane, moved by `step`.
#[derive(Clone)]
pub struct Bodies<F> {
    pub step: F,
}

impl<F> Environment for Bodies<F>
where
    F: Fn(Body, Tensor, Key) -> (Body, TimeStep) + Clone + 'static,
{
    type State = Body;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Body {
        Body { position: key.uniform([2]), velocity: scalar(0.0) }
    }
    fn step(&self, state: Body, action: Tensor, key: Key) -> (Body, TimeStep) {
        (self.step)(state, action, key)
    }
    fn observe(&self, state: Body) -> Tensor {
        state.position
    }
    fn observation_space(&self) -> Space {
        Space::unbounded([2])
    }
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// A step without mistakes in its defaults.
pub fn still(state: Body) -> TimeStep {
    TimeStep {
        observation: state.position,
        reward: scalar(0.0),
        terminated: constant(false),
        truncated: constant(false),
    }
}

/// The training loop of PPO with such a step: the warnings, or its mistakes.
#[track_caller]
pub fn looped<F>(step: F) -> Result<Vec<Warning>, TraceErrors>
where
    F: Fn(Body, Tensor, Key) -> (Body, TimeStep) + Clone + 'static,
{
    let environment = Bodies { step };
    let mut agent = Ppo::new(environment.observation_space(), environment.action_space());
    agent.settings.networks.hidden = vec![4];
    let agent_loop = AgentLoop::new(environment, agent, 4, 4);
    let traced = AnakinLoop::trace(
        "bodies",
        1,
        1,
        |key| agent_loop.init(key),
        |state| agent_loop.iterate(state),
    )?;
    Ok(traced.traced().warnings().to_vec())
}
