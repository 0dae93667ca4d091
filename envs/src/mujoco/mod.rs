//! Gymnasium's MuJoCo tasks, version 5: robots that learn to walk, swim, reach, push and balance.
//!
//! The names and defaults of the settings are Gymnasium's, and so are observations, rewards, terminations and the
//! distributions of first states. [`podracer_physics`] computes the dynamics in f32.
//!
//! # Invariants
//! - A model is compiled once in a process, from a text of this folder.
//! - Positions and velocities are those after a step. All other quantities are those that MuJoCo leaves, of the last
//!   evaluation within the step; a state keeps them for its observation and for the next reward.
//! - A picture is a function of the positions.
//! - A simulation that diverges terminates its episode. MuJoCo resets one.

mod ant;
mod humanoid;
mod interval;
mod own;
mod pendulums;
mod picture;
mod planar;
mod pusher;
mod reacher;
mod robot;

pub use ant::{Ant, AntQuantities};
pub use humanoid::{Humanoid, HumanoidQuantities, HumanoidStandup};
pub use interval::{Bound, Infinity, Interval};
pub use own::{OwnRobot, Pose, RobotModel};
pub use pendulums::{InvertedDoublePendulum, InvertedPendulum, Tip};
pub use picture::Camera;
pub use planar::{HalfCheetah, Hopper, Swimmer, Walker2d};
pub use pusher::Pusher;
pub use reacher::Reacher;

use podracer_dsl::prelude::*;
use podracer_physics::{Data, Forward, Model};

use crate::environment::TimeStep;
use crate::space::Space;
use robot::{Spread, action_space, near_initial};

/// Greatest magnitude of positions and velocities: beyond it, a simulation counts as diverged, as in MuJoCo.
const DIVERGED: f64 = 1e10;

/// A task of a robot in the physics of its model. [`robot_environments`](crate::robot_environments) makes an
/// [`Environment`](crate::Environment) of it.
///
/// A task of your own has a model and an [`outcome`](Task::outcome); the other methods have defaults. [`OwnRobot`] is a task
/// by settings alone.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_envs::mujoco::{State, Step, Task};
/// use podracer_physics::{Forward, Model};
/// use std::rc::Rc;
///
/// #[derive(Clone)]
/// struct Slider(Rc<Model>);
///
/// impl Task for Slider {
///     type Derived = ();
///     fn model(&self) -> &Model {
///         &self.0
///     }
///     fn derived(&self, _: &Forward, _: bool) {}
///     fn outcome(&self, step: &Step) -> (Tensor, Tensor) {
///         let velocity = step.velocity(|state| state.qpos.index(0));
///         (velocity - 0.1 * step.action.square().sum(), constant(false))
///     }
/// }
///
/// podracer_envs::robot_environments! { Slider }
/// ```
pub trait Task: Clone + 'static {
    /// Quantities of the last evaluation that observations and rewards read; `()` for none.
    type Derived: Tree;

    /// The model of the robot.
    fn model(&self) -> &Model;

    /// The quantities of an evaluation. In a first state, `first` is true, and no contact force is known.
    fn derived(&self, forward: &Forward, first: bool) -> Self::Derived;

    /// The reward of a step, f32 `[]`, and true if it terminates the episode.
    fn outcome(&self, step: &Step<Self::Derived>) -> (Tensor, Tensor);

    /// As [`check_settings`](crate::Environment::check_settings).
    ///
    /// # Errors
    /// Settings that do not fit, as a sentence that names them.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Steps of the simulation in one step of the task.
    fn frame_skip(&self) -> usize {
        5
    }

    /// Steps after which an episode is truncated.
    fn limit(&self) -> usize {
        1000
    }

    /// The positions `[nq]` and velocities `[nv]` of a first state: near `qpos0` at rest by default.
    #[track_caller]
    fn first(&self, key: Key) -> [Tensor; 2] {
        near_initial(self.model(), key, 0.01, Spread::Uniform)
    }

    /// The number of elements of the observation.
    fn observed(&self) -> usize {
        self.model().nq + self.model().nv
    }

    /// The names of the observation's parts.
    fn parts(&self) -> &'static str {
        "positions, velocities"
    }

    /// The observation of a state, f32 `[n]`: positions and velocities by default.
    #[track_caller]
    fn observation(&self, state: &State<Self::Derived>) -> Tensor {
        concatenate(&[state.qpos, state.qvel], 0)
    }

    /// The view of the pictures.
    fn camera(&self) -> Camera {
        Camera::oblique(3.0, 0.4)
    }

    /// Seconds of a step of the task.
    fn dt(&self) -> f64 {
        self.model().opt.timestep * self.frame_skip() as f64
    }

    /// The state at positions `[nq]` and velocities `[nv]`, at the begin of an episode.
    #[track_caller]
    fn state_at(&self, [qpos, qvel]: [Tensor; 2]) -> State<Self::Derived> {
        let model = self.model();
        let data = Data { qpos, qvel, ..model.data(F32) };
        let still = zeros(F32, [model.nu]);
        let derived = model.forward(&data, still, |forward| self.derived(forward, true));
        let Data { act, qacc_warmstart, .. } = data;
        State { qpos, qvel, act, qacc_warmstart, derived, time: scalar(0) }
    }

    /// The state after a step with the reward and the end of the step. `action` is f32 `[nu]`.
    #[track_caller]
    fn stepped(
        &self,
        state: State<Self::Derived>,
        action: Tensor,
    ) -> (State<Self::Derived>, TimeStep) {
        let read = |forward: &Forward| self.derived(forward, false);
        let (data, derived) = self.model().steps(self.frame_skip(), &state.data(), action, read);
        let Data { qpos, qvel, act, qacc_warmstart, .. } = data;
        let after = State { qpos, qvel, act, qacc_warmstart, derived, time: state.time + 1 };
        let diverged = after.diverged();
        let after = tree_map(&after, |leaf| select(diverged, leaf.zeros_like(), leaf));
        let step = Step { before: state, after, action, dt: self.dt() };
        let (reward, terminated) = self.outcome(&step);
        let reward = select(diverged, 0.0, reward);
        let terminated = terminated | diverged;
        let observation = self.observation(&step.after);
        let truncated = step.after.time.ge(self.limit()) & !terminated;
        (step.after, TimeStep { observation, reward, terminated, truncated })
    }

    /// The space of the controls, f32 `[nu]`, named by the joints that they drive.
    fn controls(&self) -> Space {
        action_space(self.model())
    }

    /// The picture of a state, u8 `[height, width, 3]`.
    #[track_caller]
    fn picture(&self, state: &State<Self::Derived>) -> Tensor {
        self.camera().picture(self.model(), &state.data())
    }
}

/// The state of a robot with the derived quantities of its task.
#[derive(Tree, Clone)]
pub struct State<D: Tree = ()> {
    /// Positions, in metres, radians and quaternions, f32 `[nq]`.
    pub qpos: Tensor,
    /// Velocities, f32 `[nv]`.
    pub qvel: Tensor,
    /// Activations of the actuators, f32 `[na]`.
    pub act: Tensor,
    /// Accelerations for the start of the solver, f32 `[nv]`.
    pub qacc_warmstart: Tensor,
    /// Quantities of the last evaluation.
    pub derived: D,
    /// Steps since the episode began, `i32[]`.
    pub time: Tensor,
}

impl<D: Tree> State<D> {
    fn data(&self) -> Data {
        let State { qpos, qvel, act, qacc_warmstart, .. } = *self;
        Data { time: zeros(F32, []), qpos, qvel, act, qacc_warmstart }
    }

    /// True for a simulation that has diverged.
    #[track_caller]
    fn diverged(&self) -> Tensor {
        let sound = |x: Tensor| x.abs().le(DIVERGED).all();
        !(sound(self.qpos) & sound(self.qvel))
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
    /// Seconds of the step.
    pub dt: f64,
}

impl<D: Tree> Step<D> {
    /// The velocity of a place: the difference after and before the step, divided by `dt`.
    #[track_caller]
    pub fn velocity(&self, place: impl Fn(&State<D>) -> Tensor) -> Tensor {
        (place(&self.after) - place(&self.before)) / self.dt
    }
}

/// Types that [`robot_environments`](crate::robot_environments) names.
#[doc(hidden)]
pub mod names {
    pub use podracer_dsl::prelude::{Key, Tensor};
}

/// Makes [environments](crate::Environment) of [tasks](crate::mujoco::Task): `robot_environments! { Crawler, Arm }`.
#[macro_export]
macro_rules! robot_environments {
    ($($task:ty),* $(,)?) => {$(
        impl $crate::Environment for $task {
            type State = $crate::mujoco::State<<$task as $crate::mujoco::Task>::Derived>;
            type Observation = $crate::mujoco::names::Tensor;

            fn check_settings(&self) -> Result<(), String> {
                $crate::mujoco::Task::check(self)
            }

            fn initial_state(&self, key: $crate::mujoco::names::Key) -> Self::State {
                let first = $crate::mujoco::Task::first(self, key);
                $crate::mujoco::Task::state_at(self, first)
            }

            fn step(
                &self,
                state: Self::State,
                action: $crate::mujoco::names::Tensor,
                _key: $crate::mujoco::names::Key,
            ) -> (Self::State, $crate::TimeStep) {
                $crate::mujoco::Task::stepped(self, state, action)
            }

            fn observe(&self, state: Self::State) -> Self::Observation {
                $crate::mujoco::Task::observation(self, &state)
            }

            fn observation_space(&self) -> $crate::Space {
                let size = $crate::mujoco::Task::observed(self);
                $crate::Space::unbounded([size]).described($crate::mujoco::Task::parts(self))
            }

            fn action_space(&self) -> $crate::Space {
                $crate::mujoco::Task::controls(self)
            }

            fn render(&self, state: &Self::State) -> Option<Self::Observation> {
                Some($crate::mujoco::Task::picture(self, state))
            }
        }
    )*};
}

robot_environments! {
    HalfCheetah, Hopper, Walker2d, Swimmer, Reacher, Pusher, InvertedPendulum, InvertedDoublePendulum, Ant, Humanoid,
    HumanoidStandup, OwnRobot
}
