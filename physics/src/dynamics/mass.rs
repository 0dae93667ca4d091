//! The mass matrix and its factor.

use super::position::Position;
use super::stage::{numbers, stage};
use super::transmission::Path;
use crate::model::Model;
use crate::real::{ONE, Real, ZERO};

/// A symmetric matrix: row `i` has the columns up to `i`. An entry that no tree couples is a constant zero, so that
/// products and factors leave it out.
#[derive(Clone, Debug)]
pub(crate) struct Symmetric(pub(crate) Vec<Vec<Real>>);

/// A symmetric positive definite matrix as `L^T D L`, with ones on the diagonal of the lower triangular `L`. Elimination
/// goes from the last degree of freedom to the first, from leaves to roots: for the sparsity of a tree, no entry
/// becomes nonzero.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    lower: Vec<Vec<Real>>,
    /// The inverse of `D`.
    inverse: Vec<Real>,
}

numbers!(Factor: lower, inverse);

impl super::stage::Numbers for Symmetric {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.0.each(f);
    }
}

impl Symmetric {
    /// The mass matrix, by composite bodies, with armature.
    pub(crate) fn mass(model: &Model, position: &Position, tendons: &[Path]) -> Self {
        let composite = stage(|| {
            let mut composite = position.inertia.clone();
            for body in (1..model.nbody).rev() {
                let parent = model.body_parentid[body];
                composite[parent] = composite[parent].add(composite[body]);
            }
            composite
        });
        let armatures = model.tendon_armatures();
        stage(|| {
            let mut mass = Self::zero(model.nv);
            for i in 0..model.nv {
                let momentum = composite[model.dof_bodyid[i]].apply(position.motion[i]);
                mass.0[i][i] = Real::Constant(model.armature(i));
                for j in model.chain(Some(i)) {
                    mass.0[i][j] += position.motion[j].dot(momentum);
                    for (tendon, &armature) in tendons.iter().zip(&armatures) {
                        mass.0[i][j] += tendon.moment[i] * tendon.moment[j] * armature;
                    }
                }
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

    pub(crate) fn factor(&self) -> Factor {
        let mut lower = self.0.clone();
        let mut inverse = vec![ZERO; lower.len()];
        for k in (0..lower.len()).rev() {
            inverse[k] = ONE / lower[k][k];
            let row = lower[k].clone();
            for i in 0..k {
                let scaled = row[i] * inverse[k];
                for (j, &entry) in row[..=i].iter().enumerate() {
                    lower[i][j] -= scaled * entry;
                }
                lower[k][i] = scaled;
            }
        }
        Factor { lower, inverse }
    }
}

impl Factor {
    /// `x` with `matrix x = b`.
    pub(crate) fn solve(&self, b: &[Real]) -> Vec<Real> {
        let mut x = b.to_vec();
        for k in (0..x.len()).rev() {
            for i in 0..k {
                let known = self.lower[k][i] * x[k];
                x[i] -= known;
            }
        }
        for (x, &inverse) in x.iter_mut().zip(&self.inverse) {
            *x = *x * inverse;
        }
        for k in 0..x.len() {
            for i in 0..k {
                let known = self.lower[k][i] * x[i];
                x[k] -= known;
            }
        }
        x
    }
}
