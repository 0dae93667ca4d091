//! Newton's method on the constraints' convex cost: MuJoCo's primal problem.
//!
//! The accelerations `x` minimize `1/2 (x - a)^T M (x - a) + sum over rows of s(J x - aim)`, where `a` are the accelerations
//! without constraints, and `s` is half the row's weight times the square where the row pushes, and linear or zero elsewhere.

use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

use super::constraint::{Constraints, RowKind};
use super::contact::Contact;
use super::mass::Symmetric;
use super::position::Kinematics;
use super::stage::{Numbers, detail, replace, stage, values};
use crate::model::Model;
use crate::real::{ONE, Real, Truth, ZERO};
use crate::vector::Spatial;

use Real::Constant;

/// The greatest number of iterations. States of the tasks of Gymnasium need at most six.
const ITERATIONS: i32 = 20;

/// The problem of one state.
#[derive(Clone)]
pub(crate) struct Problem<'a> {
    pub(crate) model: &'a Model,
    pub(crate) position: Kinematics,
    pub(crate) mass: Symmetric,
    /// The forces without constraints, `qfrc_smooth [nv]`.
    pub(crate) force: Vec<Real>,
    pub(crate) constraints: Constraints,
}

impl Numbers for Problem<'_> {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.position.motion.each(f);
        self.mass.each(f);
        self.force.each(f);
        self.constraints.rows.each(f);
        self.constraints.contacts.each(f);
    }
}

/// Accelerations and forces at the minimum.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The accelerations, `qacc [nv]`.
    pub(crate) qacc: Vec<Real>,
    /// The forces of the constraints on the degrees of freedom, `qfrc_constraint [nv]`.
    pub(crate) force: Vec<Real>,
    /// The force of the contacts, and of the rows that join bodies, on each body.
    pub(crate) touching: Vec<Spatial>,
}

/// The rows' accelerations beyond their aims, or along a direction.
type RowValues = (Vec<Real>, Vec<Vec<Real>>);

impl Problem<'_> {
    /// The solution, by iterations that start from accelerations.
    ///
    /// Its derivative is the derivative of the minimum, by the implicit function theorem: the gradient of the cost stays zero, so
    /// that `H dx = -dg`, where `dg` is the change of the gradient at a fixed `x`, and `H` the second derivative.
    pub(crate) fn solve(&self, start: &[Real], like: Tensor) -> Solution {
        let start: Vec<Tensor> = start.iter().map(|x| x.tensor(like)).collect();
        let numbers = values(&mut self.clone());
        let minimum =
            |(numbers, start): (Vec<Tensor>, Vec<Tensor>)| self.with(numbers).minimum(start, like);
        let x = custom_jvp((numbers, start), minimum, |(numbers, start), (changes, _)| {
            let problem = self.with(numbers.clone());
            let x = problem.minimum(start, like);
            let at: Vec<Real> = x.iter().copied().map(Real::Value).collect();
            let (_, change) = jvp(numbers, changes, |numbers| {
                let problem = self.with(numbers);
                let rows = problem.beyond(&at);
                let pushed = problem.forces(&rows, problem.touching(&rows.1));
                let gradient = problem.gradient(&problem.mass.product(&at), &pushed);
                gradient.into_iter().map(|slope| slope.tensor(like)).collect::<Vec<_>>()
            });
            let change: Vec<Real> = change.into_iter().map(Real::Value).collect();
            let factor = problem.hessian(&problem.beyond(&at)).factor(self.model);
            let step = factor.solve(self.model, &change);
            (x, step.into_iter().map(|step| (-step).tensor(like)).collect::<Vec<_>>())
        });
        let x: Vec<Real> = x.into_iter().map(Real::Value).collect();
        let rows = stage(|| self.beyond(&x));
        let touching = stage(|| self.touching(&rows.1));
        let force = stage(|| self.forces(&rows, touching.clone()));
        let touching = stage(|| self.with_joined(&rows.0, touching));
        Solution { qacc: x, force, touching }
    }

    /// The same problem with other tensors.
    fn with(&self, numbers: Vec<Tensor>) -> Self {
        let mut problem = self.clone();
        replace(&mut problem, numbers);
        problem
    }

    /// The accelerations at the minimum.
    fn minimum(&self, start: Vec<Tensor>, like: Tensor) -> Vec<Tensor> {
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
        x
    }

    /// The gradient of the cost, by the product of the mass matrix and the accelerations, and the constraints' forces.
    fn gradient(&self, momentum: &[Real], pushed: &[Real]) -> Vec<Real> {
        (0..momentum.len()).map(|dof| momentum[dof] - self.force[dof] - pushed[dof]).collect()
    }

    /// Each row of the constraints along motions.
    fn along(&self, x: &[Real]) -> RowValues {
        let motions = self.position.motions(self.model, x);
        let rows = self.constraints.rows.iter().map(|row| row.along(x)).collect();
        let contacts = self.constraints.contacts.iter();
        (rows, contacts.map(|contact| detail(self.model, || contact.rows(&motions))).collect())
    }

    /// Each row's acceleration beyond its aim.
    fn beyond(&self, x: &[Real]) -> RowValues {
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
            let force = detail(self.model, || {
                let force = |&row: &Real| RowKind::Unilateral.force(row, contact.weight);
                contact.force(&rows.iter().map(force).collect::<Vec<_>>())
            });
            for side in &contact.sides {
                on_bodies[side.body] = on_bodies[side.body].add(side.pushed(force));
            }
        }
        on_bodies
    }

    /// The forces on bodies, with the forces of the rows that join two bodies.
    fn with_joined(&self, rows: &[Real], mut on_bodies: Vec<Spatial>) -> Vec<Spatial> {
        for (row, &value) in self.constraints.rows.iter().zip(rows) {
            for &(body, unit) in row.on_bodies.iter().filter(|(body, _)| *body != 0) {
                let force = unit.scale(row.kind.force(value, row.weight));
                on_bodies[body] = on_bodies[body].add(force);
            }
        }
        on_bodies
    }

    /// The forces of the constraints on the degrees of freedom.
    fn forces(&self, (rows, _): &RowValues, touching: Vec<Spatial>) -> Vec<Real> {
        let mut sum = self.position.generalized(self.model, touching);
        for (row, &value) in self.constraints.rows.iter().zip(rows) {
            let force = row.kind.force(value, row.weight);
            row.jacobian.iter().for_each(|&(dof, entry)| sum[dof] += entry * force);
        }
        sum
    }

    /// The cost's second derivative. A contact with what does not move is added to the bodies above it, as their inertia
    /// is to the mass matrix; other contacts are added row by row.
    fn hessian(&self, (rows, contacts): &RowValues) -> Symmetric {
        let model = self.model;
        let bodies = stage(|| {
            // Lower triangles of symmetric matrices.
            let mut bodies = vec![Vec::new(); model.nbody];
            for (contact, rows) in self.constraints.contacts.iter().zip(contacts) {
                if let [side] = &contact.sides[..] {
                    let at_point =
                        detail(model, || contact.at_point(&weights(rows, contact.weight)));
                    bodies[side.body].push((at_point, side.place));
                }
            }
            let own = |body: usize| {
                let matrices = bodies[body].iter().map(|(matrix, place)| matrix.about(*place));
                matrices.fold([[ZERO; 6]; 6], sum)
            };
            model.gathered(own, sum)
        });
        stage(|| {
            let mut hessian = self.mass.clone();
            for i in 0..model.nv {
                let body = &bodies[model.dof_bodyid[i]];
                let motion = self.position.motion[i].six();
                let row = |k: usize| (0..6).map(|l| body[k.max(l)][k.min(l)] * motion[l]).sum();
                let force: [Real; 6] = detail(model, || std::array::from_fn(row));
                hessian.0[i] = detail(model, || {
                    let mut row = hessian.0[i].clone();
                    for j in model.chain(Some(i)) {
                        let motion = self.position.motion[j].six();
                        row[j] += motion.into_iter().zip(force).map(|(a, b)| a * b).sum();
                    }
                    row
                });
            }
            for (row, &value) in self.constraints.rows.iter().zip(rows) {
                let slope = row.kind.slope(value, row.weight);
                add_row(&mut hessian, &row.jacobian, slope);
            }
            for (contact, rows) in self.constraints.contacts.iter().zip(contacts) {
                if contact.sides.len() == 2 {
                    add_directions(&mut hessian, contact, &weights(rows, contact.weight));
                }
            }
            hessian
        })
    }

    /// The next accelerations, and whether these may still be above the minimum.
    fn iteration(&self, x: &[Real]) -> (Vec<Real>, Tensor) {
        let inner = |a: &[Real], b: &[Real]| a.iter().zip(b).map(|(&a, &b)| a * b).sum::<Real>();
        let at = stage(|| self.beyond(x));
        let momentum = stage(|| self.mass.product(x));
        let pushed = stage(|| self.forces(&at, self.touching(&at.1)));
        let gradient = stage(|| self.gradient(&momentum, &pushed));
        let hessian = self.hessian(&at);
        let factor = stage(|| hessian.factor(self.model));
        let direction: Vec<Real> =
            stage(|| factor.solve(self.model, &gradient).into_iter().map(|step| -step).collect());
        let along = stage(|| self.along(&direction));
        // The derivative of the cost along the direction rises, and is linear in pieces. Newton's step on it from the whole
        // step is exact if no row changes.
        let smooth = stage(|| {
            let curvature = inner(&direction, &self.mass.product(&direction));
            let slope = inner(&direction, &momentum) - inner(&direction, &self.force);
            Slope { first: slope + curvature, second: curvature, change: ZERO }
        });
        let rows = stage(|| {
            let rows = self.constraints.rows.iter().zip(&at.0).zip(&along.0);
            let slopes =
                rows.map(|((row, &jar), &step)| Slope::new(row.kind, jar, step, row.weight, 1.0));
            slopes.fold(Slope::ZERO, Slope::add)
        });
        let contacts = self.constraints.contacts.iter().zip(&at.1).zip(&along.1);
        let slopes = contacts.map(|((contact, jars), steps)| {
            let slope = |(i, (&jar, &step)): (usize, (&Real, &Real))| {
                Slope::new(RowKind::Unilateral, jar, step, contact.weight, contact.times(i))
            };
            let slopes = jars.iter().zip(steps).enumerate().map(slope);
            detail(self.model, || slopes.fold(Slope::ZERO, Slope::add))
        });
        let contacts: Vec<Slope> = slopes.collect();
        let Slope { first, second, change } =
            stage(|| contacts.into_iter().fold(smooth.add(rows), Slope::add));
        let tried = ONE - first / second.max(Constant(1e-30));
        // Beyond the minimum, stay between it and here.
        let alpha = stage(|| ZERO.less(tried).select(tried, Constant(0.5)));
        let next = x.iter().zip(&direction).map(|(&x, &step)| x + alpha * step).collect();
        // The whole step ends at the minimum if each row's force still follows the same formula.
        let changed = match change.less(ZERO) {
            Truth::Value { holds, .. } => holds,
            Truth::Known(known) => scalar(known),
        };
        (next, changed)
    }
}

/// Derivatives of the cost along a direction, at the end of a step.
#[derive(Clone, Copy, Debug)]
struct Slope {
    first: Real,
    second: Real,
    /// A number that is negative if a row's force follows another formula at the end of the step.
    change: Real,
}

super::stage::numbers!(Slope: first, second, change);

impl Slope {
    const ZERO: Self = Self { first: ZERO, second: ZERO, change: ZERO };

    /// The part of a row that counts a number of times.
    fn new(kind: RowKind, jar: Real, step: Real, weight: Real, times: f64) -> Self {
        let next = jar + step;
        Self {
            first: -(kind.force(next, weight) * step * times),
            second: kind.slope(next, weight) * step * step * times,
            change: kind.change(jar, next, weight),
        }
    }

    fn add(self, other: Self) -> Self {
        Self {
            first: self.first + other.first,
            second: self.second + other.second,
            change: self.change.min(other.change),
        }
    }
}

fn weights(rows: &[Real], weight: Real) -> Vec<Real> {
    rows.iter().map(|&row| RowKind::Unilateral.slope(row, weight)).collect()
}

fn sum(a: [[Real; 6]; 6], b: [[Real; 6]; 6]) -> [[Real; 6]; 6] {
    std::array::from_fn(|i| crate::vector::add(a[i], b[i]))
}

/// Adds `slope jacobian^T jacobian`.
fn add_row(hessian: &mut Symmetric, jacobian: &[(usize, Real)], slope: Real) {
    for &(i, a) in jacobian {
        for &(j, b) in jacobian.iter().filter(|&&(j, _)| j <= i) {
            hessian.add_at(i, j, slope * a * b);
        }
    }
}

/// Adds `jacobian^T coupling jacobian` of a contact between two bodies, by the weights of its rows.
fn add_directions(hessian: &mut Symmetric, contact: &Contact, weights: &[Real]) {
    let Contact { dofs, jacobian, .. } = contact;
    for (row, coupling) in jacobian.iter().zip(contact.coupling(weights)) {
        let pull = |i: usize| coupling.iter().zip(jacobian).map(|(&c, row)| c * row[i]).sum();
        let pulled: Vec<Real> = (0..dofs.len()).map(pull).collect();
        for (a, &entry) in row.iter().enumerate() {
            (0..=a).for_each(|b| hessian.add_at(dofs[a], dofs[b], entry * pulled[b]));
        }
    }
}
