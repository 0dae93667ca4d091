//! The state of a model as numbers.

use podracer_dsl::prelude::*;

use crate::real::Real;

/// Start of a step: MuJoCo's `qpos [nq]`, `qvel [nv]`, `act [na]`, `ctrl [nu]`, and the accelerations for
/// the start of the solver, `qacc_warmstart [nv]`. All but the controls are its [`Numbers`](super::stage::Numbers).
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) qpos: Vec<Real>,
    pub(crate) qvel: Vec<Real>,
    pub(crate) act: Vec<Real>,
    pub(crate) ctrl: Vec<Real>,
    pub(crate) warmstart: Vec<Real>,
}

super::stage::numbers!(State: qpos, qvel, act, warmstart);

/// The elements of a vector.
pub(crate) fn numbers(vector: Tensor) -> Vec<Real> {
    vector.unstack().into_iter().map(Real::Value).collect()
}

/// A vector of numbers with the dtype of `like`.
pub(crate) fn vector(numbers: &[Real], like: Tensor) -> Tensor {
    let elements: Vec<Tensor> = numbers.iter().map(|number| number.tensor(like)).collect();
    if elements.is_empty() { zeros(like.dtype(), [0]) } else { stack(&elements, 0) }
}
