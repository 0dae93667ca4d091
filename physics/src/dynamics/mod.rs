//! Dynamics of a compiled model, as functions of tensors.
//!
//! The model is known while tracing: trees are loops of Rust, and a step is straight-line code on scalars, except for the
//! solver's loop. Under `vmap` each scalar is an array over the environments.

mod actuation;
mod constraint;
mod contact;
mod damping;
mod equality;
mod forward;
mod gyration;
mod impedance;
mod integrate;
mod mass;
mod newton;
mod position;
mod stage;
mod state;
mod transmission;
mod velocity;

use podracer_dsl::prelude::*;

pub use forward::Forward;
use integrate::{Carry, RateStage};
use stage::rounds;
use state::{State, numbers, vector};

use crate::Model;

/// The number of environments that are stepped together, so that their numbers stay in a CPU's cache.
const LANES: usize = 64;

/// The state of a simulation: the part of MuJoCo's `mjData` that a step needs of the step before.
#[derive(Tree, Clone, Debug)]
pub struct Data {
    /// Seconds since the start, `[]`.
    pub time: Tensor,
    /// Positions, `[nq]`, in meters, radians and quaternions `w x y z`.
    pub qpos: Tensor,
    /// Velocities, `[nv]`, in m/s and rad/s.
    pub qvel: Tensor,
    /// Activations of the actuators, `[na]`.
    pub act: Tensor,
    /// Accelerations of the last step, `[nv]`: the start of the solver.
    pub qacc_warmstart: Tensor,
}

impl Model {
    /// The state at rest at `qpos0`, `f32` or `f64`.
    #[must_use]
    pub fn data(&self, dtype: DType) -> Data {
        let vector = |values: &[f64]| {
            let array = Array::floats(dtype, [values.len()], values);
            constant_of(&array)
        };
        Data {
            time: zeros(dtype, []),
            qpos: vector(&self.qpos0),
            qvel: zeros(dtype, [self.nv]),
            act: zeros(dtype, [self.na]),
            qacc_warmstart: zeros(dtype, [self.nv]),
        }
    }

    /// `mj_forward`: the result of `read` for the quantities that follow from a state and controls `[nu]`.
    #[track_caller]
    pub fn forward<R: IntoTree>(
        &self,
        data: &Data,
        ctrl: Tensor,
        read: impl FnOnce(&Forward) -> R,
    ) -> R::Tree {
        let forward = Forward::new(self, State::new(data, ctrl), data.time);
        read(&forward).into_tree()
    }

    /// The state after a step of `opt.timestep` seconds with controls `[nu]`: `mj_step`.
    #[track_caller]
    #[must_use]
    pub fn step(&self, data: &Data, ctrl: Tensor) -> Data {
        self.steps(1, data, ctrl, |_| ()).0
    }

    /// The state after `count` steps with the same controls `[nu]`, and what `read` makes of the derived quantities that
    /// the last step leaves: the quantities of its start, as in MuJoCo.
    #[track_caller]
    pub fn steps<R: IntoTree>(
        &self,
        count: usize,
        data: &Data,
        ctrl: Tensor,
        read: impl FnOnce(&Forward) -> R,
    ) -> (Data, R::Tree) {
        let step = |(data, ctrl): (Data, Tensor)| {
            let like = data.time;
            let state = State::new(&data, ctrl);
            let carry = Carry::new(self, state);
            let evaluations = constant_of(&RateStage::rows(self, count, like.dtype()));
            let (carry, outputs) = rounds(carry, evaluations, like, |carry, row| {
                let forward = Forward::new(self, carry.state.clone(), like);
                let next = carry.next(&forward, RateStage::new(row));
                (next, read(&forward))
            });
            let state = carry.state;
            let seconds = count as f64 * self.opt.timestep;
            let next = Data {
                time: data.time + seconds,
                qpos: vector(&state.qpos, like),
                qvel: vector(&state.qvel, like),
                act: vector(&state.act, like),
                qacc_warmstart: vector(&state.warmstart, like),
            };
            (next, tree_map(&outputs, |output| output.index(-1)))
        };
        tile(LANES, (data.clone(), ctrl), |arguments| kernel(arguments, step))
    }
}

impl State {
    fn new(data: &Data, ctrl: Tensor) -> Self {
        Self {
            qpos: numbers(data.qpos),
            qvel: numbers(data.qvel),
            act: numbers(data.act),
            ctrl: numbers(ctrl),
            warmstart: numbers(data.qacc_warmstart),
        }
    }
}
