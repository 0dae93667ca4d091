//! The parts that many tasks share.

use podracer_dsl::prelude::*;
use podracer_physics::Model;

use crate::space::Space;

/// The distribution of first velocities.
#[derive(Clone, Copy)]
pub(super) enum Spread {
    Uniform,
    Normal,
}

/// The model of an MJCF text of this folder.
pub(super) fn built_in(text: &str) -> Model {
    Model::from_mjcf(text).expect("the models of this folder are valid")
}

/// The controls within their limits, f32 `[nu]`, named by the joints that they drive.
pub(super) fn action_space(model: &Model) -> Space {
    let (low, high): (Vec<f64>, Vec<f64>) =
        model.actuator_ctrlrange.iter().map(|[low, high]| (*low, *high)).unzip();
    let driven = model.actuator_trnid.iter().filter_map(|[joint, _]| *joint);
    let names: Vec<&str> = driven.map(|joint| model.jnt_name[joint].as_str()).collect();
    Space::bounded([model.nu], low, high).described(&names.join(", "))
}

/// Positions and velocities near `qpos0` at rest: positions differ by uniform noise, velocities by `noise`.
#[track_caller]
pub(super) fn near_initial(model: &Model, key: Key, scale: f64, noise: Spread) -> [Tensor; 2] {
    let (positions, velocities) = key.split();
    let qpos = model.data(F32).qpos + positions.uniform_range([model.nq], -scale, scale);
    let qvel = match noise {
        Spread::Uniform => velocities.uniform_range([model.nv], -scale, scale),
        Spread::Normal => scale * velocities.normal([model.nv]),
    };
    [qpos, qvel]
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
