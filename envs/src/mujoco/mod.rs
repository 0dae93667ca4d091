//! Gymnasium's MuJoCo tasks, version 5: robots that learn to walk, swim, reach and balance.
//!
//! The names and defaults of the settings are Gymnasium's, and so are observations, rewards, terminations and the
//! distributions of first states. [`podracer_physics`] computes the dynamics in f32.
//!
//! # Invariants
//! - A model is compiled once in a process, from a text of this folder.
//! - Positions and velocities are those after a step. All other quantities are those that MuJoCo leaves, of the last
//!   evaluation within the step; a state keeps them for its observation and for the next reward.
//! - A picture is a function of the positions.

mod ant;
mod humanoid;
mod interval;
mod pendulums;
mod picture;
mod planar;
mod reacher;
mod robot;

pub use ant::{Ant, AntQuantities};
pub use humanoid::{Humanoid, HumanoidQuantities, HumanoidStandup};
pub use interval::{Bound, Infinity, Interval};
pub use pendulums::{InvertedDoublePendulum, InvertedPendulum, Tip};
pub use picture::Camera;
pub use planar::{HalfCheetah, Hopper, Swimmer, Walker2d};
pub use reacher::Reacher;
pub use robot::Robot;

use podracer_dsl::prelude::*;
use podracer_physics::{Data, Forward};

use crate::environment::{Environment, TimeStep};
use crate::space::Space;

/// A task of a robot, which is an [`Environment`] with a [`State`].
pub trait Task: Environment<State = State<Self::Derived>, Observation = Tensor> {
    /// Quantities of the last evaluation that observations and rewards read.
    type Derived: Tree;

    /// The robot with its model.
    fn robot(&self) -> &'static Robot;

    /// Steps after which an episode is truncated.
    fn limit(&self) -> usize;

    /// The positions `[nq]` and velocities `[nv]` of a first state.
    fn first(&self, key: Key) -> [Tensor; 2];

    /// The quantities of an evaluation. In a first state, `first` is true, and no contact force is known.
    fn derived(&self, forward: &Forward, first: bool) -> Self::Derived;

    /// The number of elements of the observation.
    fn observed(&self) -> usize;

    /// The names of the observation's parts.
    fn parts(&self) -> &'static str;

    /// The observation of a state, f32 `[n]`.
    fn observation(&self, state: &State<Self::Derived>) -> Tensor;

    /// The reward of a step, f32 `[]`, and true if it terminates the episode.
    fn outcome(&self, step: &Step<Self::Derived>) -> (Tensor, Tensor);

    /// The view of the pictures.
    fn camera(&self) -> Camera;

    /// The state at positions `[nq]` and velocities `[nv]`, at the begin of an episode.
    #[track_caller]
    fn state_at(&self, [qpos, qvel]: [Tensor; 2]) -> State<Self::Derived> {
        let model = &self.robot().model;
        let data = Data { qpos, qvel, ..model.data(F32) };
        let still = zeros(F32, [model.nu]);
        let derived = model.forward(&data, still, |forward| self.derived(forward, true));
        State { qpos, qvel, qacc_warmstart: data.qacc_warmstart, derived, time: scalar(0) }
    }
}

/// The state of a robot with the derived quantities of its task.
#[derive(Tree, Clone)]
pub struct State<D: Tree = ()> {
    /// Positions, in metres, radians and quaternions, f32 `[nq]`.
    pub qpos: Tensor,
    /// Velocities, f32 `[nv]`.
    pub qvel: Tensor,
    /// Accelerations for the start of the solver, f32 `[nv]`.
    pub qacc_warmstart: Tensor,
    /// Quantities of the last evaluation.
    pub derived: D,
    /// Steps since the episode began, `i32[]`.
    pub time: Tensor,
}

impl<D: Tree> State<D> {
    fn data(&self) -> Data {
        let (qpos, qvel, qacc_warmstart) = (self.qpos, self.qvel, self.qacc_warmstart);
        Data { time: zeros(F32, []), qpos, qvel, act: zeros(F32, [0]), qacc_warmstart }
    }
}

/// A step, as a reward reads it.
pub struct Step<D: Tree = ()> {
    /// The state before the step.
    pub before: State<D>,
    /// The state after the step.
    pub after: State<D>,
    /// The action, f32 `[nu]`, not clipped.
    pub action: Tensor,
}

/// Makes environments of tasks.
macro_rules! environments {
    ($($task:ty),*) => {$(
        impl Environment for $task {
            type State = State<<$task as Task>::Derived>;
            type Observation = Tensor;

            fn initial_state(&self, key: Key) -> Self::State {
                self.state_at(self.first(key))
            }

            fn step(&self, state: Self::State, action: Tensor, _key: Key) -> (Self::State, TimeStep) {
                let Robot { model, frame_skip } = self.robot();
                let read = |forward: &Forward| self.derived(forward, false);
                let (data, derived) = model.steps(*frame_skip, &state.data(), action, read);
                let Data { qpos, qvel, qacc_warmstart, .. } = data;
                let after = State { qpos, qvel, qacc_warmstart, derived, time: state.time + 1 };
                let step = Step { before: state, after, action };
                let (reward, terminated) = self.outcome(&step);
                let observation = self.observation(&step.after);
                let truncated = step.after.time.ge(self.limit()) & !terminated;
                (step.after, TimeStep { observation, reward, terminated, truncated })
            }

            fn observe(&self, state: Self::State) -> Tensor {
                self.observation(&state)
            }

            fn observation_space(&self) -> Space {
                Space::unbounded([self.observed()]).described(self.parts())
            }

            fn action_space(&self) -> Space {
                self.robot().action_space()
            }

            fn render(&self, state: &Self::State) -> Option<Tensor> {
                Some(self.camera().picture(&self.robot().model, &state.data()))
            }
        }
    )*};
}

environments! {
    HalfCheetah, Hopper, Walker2d, Swimmer, Reacher, InvertedPendulum, InvertedDoublePendulum, Ant, Humanoid, HumanoidStandup
}
