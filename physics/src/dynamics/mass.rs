//! The mass matrix and its factor.

use super::position::Kinematics;
use super::stage::{Numbers, detail, numbers, stage};
use super::transmission::PullPath;
use crate::model::Model;
use crate::real::{ONE, Real, ZERO};
use crate::vector::Inertia;

/// A symmetric matrix: row `i` has the columns up to `i`. An entry that no tree couples is a constant zero, so that
/// products and factors leave it out.
#[derive(Clone, Debug)]
pub(crate) struct Symmetric(pub(crate) Vec<Vec<Real>>);

/// A symmetric positive definite matrix as `L^T D L`, with a diagonal of 1 in the lower triangular `L`. Elimination
/// goes from the last degree of freedom to the first, from leaves to roots: for the sparsity of a tree, no entry
/// becomes nonzero.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    lower: Vec<Vec<Real>>,
    /// The inverse of `D`.
    inverse: Vec<Real>,
}

numbers!(Factor: lower, inverse);

impl Model {
    /// The sum over each body and the bodies below it; for the world, its own value.
    pub(crate) fn gathered<T: Numbers + Copy>(
        &self,
        own: impl Fn(usize) -> T,
        add: fn(T, T) -> T,
    ) -> Vec<T> {
        let mut sums = vec![own(0); self.nbody];
        for body in (1..self.nbody).rev() {
            let below = (body + 1..self.nbody).filter(|&child| self.body_parentid[child] == body);
            sums[body] = detail(self, || below.fold(own(body), |sum, child| add(sum, sums[child])));
        }
        sums
    }
}

impl Numbers for Symmetric {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.0.each(f);
    }
}

impl Symmetric {
    /// The mass matrix, by composite bodies, with armature.
    pub(crate) fn mass(model: &Model, position: &Kinematics, tendons: &[PullPath]) -> Self {
        let composite = stage(|| model.gathered(|body| position.inertia[body], Inertia::add));
        let armatures = model.tendon_armatures();
        stage(|| {
            let mut mass = Self::zero(model.nv);
            for i in 0..model.nv {
                let momentum =
                    detail(model, || composite[model.dof_bodyid[i]].apply(position.motion[i]));
                mass.0[i] = detail(model, || {
                    let mut row = vec![ZERO; i + 1];
                    row[i] = Real::Constant(model.armature(i));
                    for j in model.chain(Some(i)) {
                        row[j] += position.motion[j].dot(momentum);
                        for (tendon, &armature) in tendons.iter().zip(&armatures) {
                            row[j] += tendon.moment[i] * tendon.moment[j] * armature;
                        }
                    }
                    row
                });
            }
            mass
        })
    }

    pub(crate) fn zero(size: usize) -> Self {
        Self((0..size).map(|i| vec![ZERO; i + 1]).collect())
    }

    /// Adds to the entry of two degrees of freedom.
    pub(crate) fn add_at(&mut self, i: usize, j: usize, value: Real) {
        self.0[i.max(j)][i.min(j)] += value;
    }

    pub(crate) fn product(&self, x: &[Real]) -> Vec<Real> {
        let mut product = vec![ZERO; x.len()];
        for (i, row) in self.0.iter().enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                product[i] += entry * x[j];
                if i != j {
                    product[j] += entry * x[i];
                }
            }
        }
        product
    }

    /// The factor, row by row from the last: each row is computed once, and read by the rows before it.
    pub(crate) fn factor(&self, model: &Model) -> Factor {
        let size = self.0.len();
        let (mut rows, mut lower) = (self.0.clone(), self.0.clone());
        let mut inverse = vec![ZERO; size];
        for k in (0..size).rev() {
            rows[k] = detail(model, || {
                let entry = |j: usize| {
                    let known: Real = (k + 1..size).map(|m| lower[m][k] * rows[m][j]).sum();
                    self.0[k][j] - known
                };
                (0..=k).map(entry).collect()
            });
            (inverse[k], lower[k]) = detail(model, || {
                let inverse = ONE / rows[k][k];
                (inverse, rows[k].iter().map(|&entry| entry * inverse).collect())
            });
        }
        Factor { lower, inverse }
    }
}

impl Factor {
    /// `x` with `matrix x = b`.
    pub(crate) fn solve(&self, model: &Model, b: &[Real]) -> Vec<Real> {
        let size = b.len();
        let mut x = b.to_vec();
        for k in (0..size).rev() {
            x[k] = detail(model, || b[k] - (k + 1..size).map(|m| self.lower[m][k] * x[m]).sum());
        }
        for k in 0..size {
            x[k] = detail(model, || {
                x[k] * self.inverse[k] - (0..k).map(|i| self.lower[k][i] * x[i]).sum()
            });
        }
        x
    }
}
