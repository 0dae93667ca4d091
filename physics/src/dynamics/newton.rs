//! Newton's method on the constraints' convex cost: MuJoCo's primal problem.
//!
//! The accelerations `x` minimize `1/2 (x - a)^T M (x - a) + sum over rows of s(J x - aim)`, where `a` are the accelerations
//! without constraints, and `s` is half the row's weight times the square where the row pushes, and linear or zero elsewhere.

use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

use super::constraint::{Constraints, Kind};
use super::mass::Symmetric;
use super::position::Position;
use super::stage::stage;
use crate::model::Model;
use crate::real::{ONE, Real, Truth, ZERO};
use crate::vector::Spatial;

use Real::Constant;

/// The greatest number of iterations. States of the tasks of Gymnasium need at most six.
const ITERATIONS: i32 = 20;

/// The problem of one state.
pub(crate) struct Problem<'a> {
    pub(crate) model: &'a Model,
    pub(crate) position: &'a Position,
    pub(crate) mass: &'a Symmetric,
    /// The forces without constraints, `qfrc_smooth [nv]`.
    pub(crate) force: &'a [Real],
    pub(crate) constraints: &'a Constraints,
}

/// The minimum.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The accelerations, `qacc [nv]`.
    pub(crate) qacc: Vec<Real>,
    /// The forces of the constraints on the degrees of freedom, `qfrc_constraint [nv]`.
    pub(crate) force: Vec<Real>,
    /// The force of the contacts on each body.
    pub(crate) touching: Vec<Spatial>,
}

/// The rows' accelerations beyond their aims, or along a direction.
type Rows = (Vec<Real>, Vec<Vec<Real>>);

impl Problem<'_> {
    /// The solution, by iterations that start from accelerations.
    pub(crate) fn solve(&self, start: &[Real], like: Tensor) -> Solution {
        let start: Vec<Tensor> = start.iter().map(|x| x.tensor(like)).collect();
        let all = (scalar(0), scalar(true), start);
        let limit = ITERATIONS.min(self.model.opt.iterations);
        let goes =
            |(round, moves, _): (Tensor, Tensor, Vec<Tensor>)| any_example(moves & round.lt(limit));
        let (_, _, x) = while_loop(all, goes, |(round, moves, x)| {
            let own: Vec<Real> = x.iter().copied().map(Real::Value).collect();
            let (next, changed) = self.iteration(&own);
            let next: Vec<Tensor> =
                x.iter().zip(next).map(|(&x, next)| moves.select(next.tensor(like), x)).collect();
            (round + 1, moves & changed, next)
        });
        let x: Vec<Real> = x.into_iter().map(Real::Value).collect();
        let rows = stage(|| self.beyond(&x));
        let touching = stage(|| self.touching(&rows.1));
        let force = stage(|| self.forces(&rows, touching.clone()));
        Solution { qacc: x, force, touching }
    }

    /// Each row of the constraints along motions.
    fn along(&self, x: &[Real]) -> Rows {
        let motions = self.position.motions(self.model, x);
        let rows = self.constraints.rows.iter().map(|row| row.along(x)).collect();
        (rows, self.constraints.contacts.iter().map(|contact| contact.rows(&motions)).collect())
    }

    /// Each row's acceleration beyond its aim.
    fn beyond(&self, x: &[Real]) -> Rows {
        let (mut rows, mut contacts) = self.along(x);
        for (value, row) in rows.iter_mut().zip(&self.constraints.rows) {
            *value -= row.aim;
        }
        for (values, contact) in contacts.iter_mut().zip(&self.constraints.contacts) {
            values.iter_mut().zip(&contact.aim).for_each(|(value, &aim)| *value -= aim);
        }
        (rows, contacts)
    }

    /// The force of the contacts on each body.
    fn touching(&self, contacts: &[Vec<Real>]) -> Vec<Spatial> {
        let mut on_bodies = vec![Spatial::ZERO; self.model.nbody];
        for (contact, rows) in self.constraints.contacts.iter().zip(contacts) {
            let forces: Vec<Real> =
                rows.iter().map(|&row| Kind::Unilateral.force(row, contact.weight)).collect();
            for (body, force) in contact.forces(&forces) {
                on_bodies[body] = on_bodies[body].add(force);
            }
        }
        on_bodies
    }

    /// The forces of the constraints on the degrees of freedom.
    fn forces(&self, (rows, _): &Rows, touching: Vec<Spatial>) -> Vec<Real> {
        let mut sum = self.position.generalized(self.model, touching);
        for (row, &value) in self.constraints.rows.iter().zip(rows) {
            let force = row.kind.force(value, row.weight);
            row.jacobian.iter().for_each(|&(dof, entry)| sum[dof] += entry * force);
        }
        sum
    }

    /// The cost's second derivative. A contact with what does not move is added to the bodies above it, as their inertia
    /// is to the mass matrix; other contacts are added row by row.
    fn hessian(&self, (rows, contacts): &Rows) -> Symmetric {
        let model = self.model;
        let bodies = stage(|| {
            // Lower triangles of symmetric matrices.
            let mut bodies = vec![[[ZERO; 6]; 6]; model.nbody];
            for (contact, rows) in self.constraints.contacts.iter().zip(contacts) {
                if let [side] = &contact.sides[..] {
                    let coupling = contact.coupling(&weights(rows, contact.weight));
                    let units = contact.units(side).into_iter().map(six);
                    add_products(&mut bodies[side.body], &coupling, &units.collect::<Vec<_>>());
                }
            }
            for body in (1..model.nbody).rev() {
                let below = bodies[body];
                let above = &mut bodies[model.body_parentid[body]];
                for (above, below) in above.iter_mut().zip(below) {
                    above.iter_mut().zip(below).for_each(|(above, below)| *above += below);
                }
            }
            bodies
        });
        stage(|| {
            let mut hessian = self.mass.clone();
            for i in 0..model.nv {
                let motion = six(self.position.motion[i]);
                let body = &bodies[model.dof_bodyid[i]];
                let row = |k: usize| (0..6).map(|l| body[k.max(l)][k.min(l)] * motion[l]).sum();
                let force: [Real; 6] = std::array::from_fn(row);
                for j in model.chain(Some(i)) {
                    let motion = six(self.position.motion[j]);
                    let entry = motion.into_iter().zip(force).map(|(a, b)| a * b).sum();
                    hessian.add_at(i, j, entry);
                }
            }
            for (row, &value) in self.constraints.rows.iter().zip(rows) {
                let slope = row.kind.slope(value, row.weight);
                add_row(&mut hessian, &row.jacobian, slope);
            }
            for (contact, rows) in self.constraints.contacts.iter().zip(contacts) {
                if contact.sides.len() == 2 {
                    let coupling = contact.coupling(&weights(rows, contact.weight));
                    let jacobian = self.jacobian(contact);
                    for (i, row) in jacobian.iter().enumerate() {
                        let pulled: Vec<Real> = (0..model.nv)
                            .map(|dof| {
                                (0..jacobian.len()).map(|j| coupling[i][j] * jacobian[j][dof]).sum()
                            })
                            .collect();
                        for (a, &entry) in row.iter().enumerate() {
                            (0..=a).for_each(|b| hessian.add_at(a, b, entry * pulled[b]));
                        }
                    }
                }
            }
            hessian
        })
    }

    /// The directions of a contact by the degrees of freedom. Those that move both sides are left out: both move alike.
    fn jacobian(&self, contact: &super::contact::Contact) -> Vec<Vec<Real>> {
        let model = self.model;
        let chains: Vec<Vec<usize>> = (contact.sides.iter())
            .map(|side| model.chain(model.last_dof(side.body)).collect())
            .collect();
        let both = |dof: &usize| chains.iter().all(|chain| chain.contains(dof));
        let mut jacobian: Vec<Vec<Real>> = Vec::new();
        for (side, chain) in contact.sides.iter().zip(&chains) {
            let units = contact.units(side);
            jacobian.resize(units.len(), vec![ZERO; model.nv]);
            for &dof in chain.iter().filter(|dof| !both(dof)) {
                for (row, unit) in jacobian.iter_mut().zip(&units) {
                    row[dof] += unit.dot(self.position.motion[dof]);
                }
            }
        }
        jacobian
    }

    /// The next accelerations, and whether these may still be above the minimum.
    fn iteration(&self, x: &[Real]) -> (Vec<Real>, Tensor) {
        let inner = |a: &[Real], b: &[Real]| a.iter().zip(b).map(|(&a, &b)| a * b).sum::<Real>();
        let at = stage(|| self.beyond(x));
        let (gradient, momentum) = stage(|| {
            let momentum = self.mass.product(x);
            let pushed = self.forces(&at, self.touching(&at.1));
            let gradient: Vec<Real> =
                (0..x.len()).map(|dof| momentum[dof] - self.force[dof] - pushed[dof]).collect();
            (gradient, momentum)
        });
        let hessian = self.hessian(&at);
        let factor = stage(|| hessian.factor());
        let direction = stage(|| -> Vec<Real> {
            factor.solve(&gradient).into_iter().map(|step| -step).collect()
        });
        let (along, [slope, curvature]) = stage(|| {
            let momentum_along = self.mass.product(&direction);
            let slope = inner(&direction, &momentum) - inner(&direction, self.force);
            (self.along(&direction), [slope, inner(&direction, &momentum_along)])
        });
        let each = |f: &mut dyn FnMut(Kind, Real, Real, Real, f64)| {
            let rows = self.constraints.rows.iter().zip(&at.0).zip(&along.0);
            rows.for_each(|((row, &jar), &step)| f(row.kind, jar, step, row.weight, 1.0));
            let contacts = self.constraints.contacts.iter().zip(&at.1).zip(&along.1);
            for ((contact, jars), steps) in contacts {
                for (i, (&jar, &step)) in jars.iter().zip(steps).enumerate() {
                    f(Kind::Unilateral, jar, step, contact.weight, contact.times(i));
                }
            }
        };
        // The derivative of the cost along the direction rises, and is linear in pieces. Newton's step on it from the whole
        // step is exact if no row changes.
        let alpha = stage(|| {
            let (mut first, mut second) = (slope + curvature, curvature);
            each(&mut |kind, jar, step, weight, times| {
                let next = jar + step;
                first -= kind.force(next, weight) * step * times;
                second += kind.slope(next, weight) * step * step * times;
            });
            let tried = ONE - first / second.max(Constant(1e-30));
            // Beyond the minimum, stay between it and here.
            ZERO.less(tried).select(tried, Constant(0.5))
        });
        // The whole step ends at the minimum if no row's force follows another formula there.
        let mut change = ZERO;
        each(&mut |kind, jar, step, weight, _| {
            change = change.min(kind.change(jar, jar + step, weight));
        });
        let next = x.iter().zip(&direction).map(|(&x, &step)| x + alpha * step).collect();
        let changed = match change.less(ZERO) {
            Truth::Value { holds, .. } => holds,
            Truth::Known(known) => scalar(known),
        };
        (next, changed)
    }
}

fn weights(rows: &[Real], weight: Real) -> Vec<Real> {
    rows.iter().map(|&row| Kind::Unilateral.slope(row, weight)).collect()
}

fn six(spatial: Spatial) -> [Real; 6] {
    let ([a, b, c], [d, e, f]) = (spatial.w, spatial.v);
    [a, b, c, d, e, f]
}

/// Adds the symmetric matrix `sum over i, j of coupling[i][j] units[i] units[j]^T`.
fn add_products(to: &mut [[Real; 6]; 6], coupling: &[Vec<Real>], units: &[[Real; 6]]) {
    for (unit, row) in units.iter().zip(coupling) {
        let pulled: [Real; 6] =
            std::array::from_fn(|k| row.iter().zip(units).map(|(&c, unit)| c * unit[k]).sum());
        for i in 0..6 {
            for j in 0..=i {
                to[i][j] += unit[i] * pulled[j];
            }
        }
    }
}

/// Adds `slope jacobian^T jacobian`.
fn add_row(hessian: &mut Symmetric, jacobian: &[(usize, Real)], slope: Real) {
    for &(i, a) in jacobian {
        for &(j, b) in jacobian.iter().filter(|&&(j, _)| j <= i) {
            hessian.add_at(i, j, slope * a * b);
        }
    }
}
