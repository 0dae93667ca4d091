//! A program with an environment that shows a tree and takes actions with two parts, and with an
//! agent that reads the tree.

use podracer::prelude::*;
use podracer::rl::learn::{AgentSettings, AnyAgent, Task, Unflatten};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lever and a wheel, to be set to the values shown in the same step. Each of them pays 1.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Levers {}

#[derive(Tree, Clone, Copy)]
struct Shown {
    /// The lever's position. i32 `[]`
    lever: Tensor,
    /// The wheel's angle. f32 `[1]`
    wheel: Tensor,
}

/// The state: the shown values, and the steps of the episode so far.
#[derive(Tree, Clone, Copy)]
struct State {
    shown: Shown,
    time: Tensor,
}

fn spaces() -> Spaces<Shown> {
    ShownOf { lever: Space::discrete(3), wheel: Space::bounded([1], -1.0, 1.0) }
}

impl Environment for Levers {
    type State = State;
    type Observation = Shown;

    fn initial_state(&self, key: Key) -> State {
        let (lever, wheel) = key.split();
        let ShownOf { lever: levers, wheel: wheels } = spaces();
        let shown = Shown { lever: levers.sample(lever), wheel: wheels.sample(wheel) };
        State { shown, time: scalar(0) }
    }
    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep<Shown>) {
        let parts = self.action_space().split(action);
        let near = (parts[1] - state.shown.wheel).index(0).abs().lt(1e-3);
        let reward = parts[0].eq(state.shown.lever).astype(F32) + near.astype(F32);
        let State { shown, .. } = self.initial_state(key);
        let next = State { shown, time: state.time + 1 };
        let truncated = next.time.ge(8);
        let terminated = constant(false);
        (next, TimeStep { observation: shown, reward, terminated, truncated })
    }
    fn observe(&self, state: State) -> Shown {
        state.shown
    }
    fn observation_space(&self) -> Spaces<Shown> {
        spaces()
    }
    /// The lever's position as a shade of grey.
    fn render(&self, state: &State) -> Option<Tensor> {
        Some((state.shown.lever * 100).astype(U8).broadcast_to([8, 8, 3]))
    }
    fn action_space(&self) -> Space {
        let ShownOf { lever, wheel } = spaces();
        Space::dict([("lever", lever), ("wheel", wheel)])
    }
}

/// Sets the lever and the wheel to the observed values, and counts the iterations.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
struct Copies {}

impl AgentSettings for Copies {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(AnyAgent::new(Unflatten::new(self.clone(), spaces(), &task.observation)?))
    }
}

impl Agent for Copies {
    type Observation = Shown;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, _: &Tensor, (): (), input: Input<Shown>, _: Mode, _: Key) -> Act<(), ()> {
        let Shown { lever, wheel } = input.observation;
        Act { action: Space::join(&[lever, wheel]), memory: (), extras: () }
    }
}

#[derive(Tree, Clone, Copy)]
struct Counted {
    /// Share of the actions that equal the observation in the tree.
    copied: Tensor,
}

impl Learn for Copies {
    type State = Tensor;
    type Store = ();
    type Metrics = Counted;

    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn learn(
        &self,
        state: Tensor,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Tensor, (), Counted) {
        let Shown { lever, wheel } = rollout.input.observation;
        let lever_is = rollout.action.index_axis(2, 0).eq(lever.astype(F32));
        let wheel_is = rollout.action.index_axis(2, 1).eq(wheel.index_axis(2, 0));
        let copied = cx.mean((lever_is & wheel_is).astype(F32).mean());
        (state + 1.0, (), Counted { copied })
    }
}

/// An experiment of this agent in this loop.
macro_rules! experiment {
    ($name:literal, $table:literal) => {
        concat!(
            "experiment = '",
            $name,
            "'\nagent.kind = 'copies'\nenvironment.name = 'levers'\n",
            $table
        )
    };
}

fn main() -> std::process::ExitCode {
    podracer::App::new()
        .environment::<Levers>("levers")
        .agent::<Copies>("copies")
        .experiment(experiment!("in-anakin", "anakin = { environments = 4, unroll = 16 }"))
        .experiment(experiment!(
            "in-sebulba",
            "sebulba = { environments = 4, unroll = 16, actors = [0], learners = [0] }"
        ))
        .experiment(experiment!(
            "in-central",
            "central = { environments = 4, unroll = 16, workers = 1, actors = [0], learners = [0] }"
        ))
        .run()
}
