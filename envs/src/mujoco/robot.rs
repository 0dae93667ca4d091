//! A robot: its model, and the parts that many tasks share.

use podracer_dsl::prelude::*;
use podracer_physics::Model;

use crate::space::Space;

/// A robot with the duration of a task's step.
pub struct Robot {
    /// The compiled model.
    pub model: Model,
    /// Steps of the simulation in one step of the task.
    pub frame_skip: usize,
}

/// The distribution of first velocities.
#[derive(Clone, Copy)]
pub(super) enum Spread {
    Uniform,
    Normal,
}

impl Robot {
    /// The robot of an MJCF text of this folder.
    pub(super) fn new(text: &str, frame_skip: usize) -> Self {
        let model = Model::from_mjcf(text).expect("the models of this folder are valid");
        Robot { model, frame_skip }
    }

    /// Seconds of a step of the task.
    #[must_use]
    pub fn dt(&self) -> f64 {
        self.model.opt.timestep * self.frame_skip as f64
    }

    /// The controls within their limits, f32 `[nu]`, named by the joints that they drive.
    pub(super) fn action_space(&self) -> Space {
        let model = &self.model;
        let (low, high): (Vec<f64>, Vec<f64>) =
            model.actuator_ctrlrange.iter().map(|[low, high]| (*low, *high)).unzip();
        let driven = model.actuator_trnid.iter().filter_map(|[joint, _]| *joint);
        let names: Vec<&str> = driven.map(|joint| model.jnt_name[joint].as_str()).collect();
        Space::bounded([model.nu], low, high).described(&names.join(", "))
    }

    /// Positions and velocities near the initial state: positions differ by uniform noise, velocities by `noise`.
    #[track_caller]
    pub(super) fn near_initial(&self, key: Key, scale: f64, noise: Spread) -> [Tensor; 2] {
        let model = &self.model;
        let (positions, velocities) = key.split();
        let qpos = model.data(F32).qpos + positions.uniform_range([model.nq], -scale, scale);
        let qvel = match noise {
            Spread::Uniform => velocities.uniform_range([model.nv], -scale, scale),
            Spread::Normal => scale * velocities.normal([model.nv]),
        };
        [qpos, qvel]
    }

    /// The velocity between two positions, a step apart.
    #[track_caller]
    pub(super) fn velocity(&self, before: Tensor, after: Tensor) -> Tensor {
        (after - before) / self.dt()
    }
}

/// The sum of squares.
#[track_caller]
pub(super) fn squares(x: Tensor) -> Tensor {
    x.square().sum()
}

/// The elements of a vector from `first` on.
#[track_caller]
pub(super) fn from(x: Tensor, first: usize) -> Tensor {
    x.slice(first..x.len())
}
