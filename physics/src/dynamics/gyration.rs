//! Gyroscopic forces of single free bodies at the end of a step: a part of MuJoCo's `implicitfast`.

use super::mass::Symmetric;
use super::position::Kinematics;
use super::stage::stage;
use crate::model::{JointType, Model};
use crate::real::{ONE, Real, ZERO};
use crate::vector::{Inertia, ORIGIN, Spatial, Vector, add, cross};

impl Model {
    /// The free joints that no other joint follows, by their first degree of freedom.
    fn single_free(&self) -> Vec<usize> {
        (0..self.njnt)
            .filter(|&joint| self.jnt_type[joint] == JointType::Free)
            .map(|joint| self.jnt_dofadr[joint])
            .filter(|first| !self.dof_parentid.contains(&Some(first + 5)))
            .collect()
    }
}

/// Replaces the accelerations of single free bodies by those with gyroscopic forces at the end of a step. `matrix` is the
/// symmetric matrix of the accelerations without these forces.
pub(crate) fn turn_free_bodies(
    model: &Model,
    position: &Kinematics,
    velocity: &[Spatial],
    matrix: &Symmetric,
    force: &[Real],
    accelerations: &mut [Real],
) {
    let free = model.single_free();
    if free.is_empty() {
        return;
    }
    let composite = model.gathered(|body| position.inertia[body], Inertia::add);
    for first in free {
        let body = model.dof_bodyid[first];
        let turned: [Real; 6] = stage(|| {
            let slopes = slopes(composite[body], velocity[body].w, &position.motion[first..]);
            let row = |i: usize| -> [Real; 7] {
                std::array::from_fn(|j| match j {
                    6 => force[first + i],
                    _ => {
                        let entry = matrix.0[first + i.max(j)][first + i.min(j)];
                        entry + slopes[i][j] * model.opt.timestep
                    }
                })
            };
            solution(std::array::from_fn(row))
        });
        accelerations[first..first + 6].copy_from_slice(&turned);
    }
}

/// The derivative of a free body's inertial forces by its velocities.
fn slopes(inertia: Inertia, turn: Vector, motion: &[Spatial]) -> [[Real; 6]; 6] {
    let momentum = |turn: Vector| inertia.apply(Spatial { w: turn, v: ORIGIN });
    let now = momentum(turn);
    let column = |j: usize| {
        let axis = motion[j].w;
        let change = momentum(axis);
        let part = |change: Vector, now: Vector| add(cross(turn, change), cross(axis, now));
        let force = Spatial { w: part(change.w, now.w), v: part(change.v, now.v) };
        std::array::from_fn::<Real, 6, _>(|i| motion[i].dot(force))
    };
    let columns: [[Real; 6]; 6] =
        std::array::from_fn(|j| if j < 3 { [ZERO; 6] } else { column(j) });
    std::array::from_fn(|i| std::array::from_fn(|j| columns[j][i]))
}

/// The solution of equations as rows, each with its right side, by elimination without pivots: the matrix is near a
/// positive definite one.
fn solution(mut rows: [[Real; 7]; 6]) -> [Real; 6] {
    for k in 0..6 {
        let inverse = ONE / rows[k][k];
        rows[k] = rows[k].map(|entry| entry * inverse);
        for i in (0..6).filter(|&i| i != k) {
            let (factor, pivot) = (rows[i][k], rows[k]);
            rows[i] = std::array::from_fn(|j| rows[i][j] - factor * pivot[j]);
        }
    }
    rows.map(|row| row[6])
}
