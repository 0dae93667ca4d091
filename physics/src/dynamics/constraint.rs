//! The constraints' rows: limits, friction loss, equalities, contacts.

use super::contact::{Contact, pair_touches};
use super::equality::add_equalities;
use super::impedance::Impedance;
use super::position::Kinematics;
use super::stage::{Numbers, detail, stage};
use super::state::State;
use super::transmission::PullPath;
use super::velocity::{BodyMotion, rotation_vector};
use crate::math::IDENTITY;
use crate::model::{Disable, JointType, Model};
use crate::real::{ONE, Real, Truth, ZERO};
use crate::vector::{Spatial, length, scale};

use Real::Constant;

/// The forces that a row can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RowKind {
    /// A force of any size and sign.
    Equality,
    /// A force of at most this size.
    Friction(f64),
    /// A force that is not negative.
    Unilateral,
}

impl RowKind {
    /// The force of a row (`efc_force`) with an acceleration of `jar` beyond its aim.
    pub(crate) fn force(self, jar: Real, weight: Real) -> Real {
        match self {
            Self::Equality => -(jar * weight),
            Self::Friction(most) => -(jar * weight).clamp([-most, most]),
            Self::Unilateral => -(jar.min(ZERO) * weight),
        }
    }

    /// The derivative of the force by `jar`, with the opposite sign.
    pub(crate) fn slope(self, jar: Real, weight: Real) -> Real {
        match self {
            Self::Equality => weight,
            Self::Friction(most) => (jar * weight).abs().less(Constant(most)).select(weight, ZERO),
            Self::Unilateral => jar.less(ZERO).select(weight, ZERO),
        }
    }

    /// A number that is negative if the row's force follows another formula at `next` than at `jar`.
    pub(crate) fn change(self, jar: Real, next: Real, weight: Real) -> Real {
        match self {
            Self::Equality => ZERO,
            Self::Friction(most) => {
                let at = |sign: f64| {
                    let side = |jar: Real| jar * weight - Constant(sign * most);
                    side(jar) * side(next)
                };
                at(1.0).min(at(-1.0))
            }
            Self::Unilateral => jar * next * weight,
        }
    }
}

/// A row with one number for each degree of freedom that it acts on.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: RowKind,
    pub(crate) jacobian: Vec<(usize, Real)>,
    pub(crate) weight: Real,
    pub(crate) aim: Real,
    /// The spatial forces on bodies that a unit force of the row is, for a row that joins two bodies.
    pub(crate) on_bodies: Vec<(usize, Spatial)>,
}

impl Row {
    pub(crate) fn along(&self, x: &[Real]) -> Real {
        along(&self.jacobian, x)
    }
}

impl Numbers for Row {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.jacobian.iter_mut().for_each(|(_, entry)| entry.each(f));
        self.weight.each(f);
        self.aim.each(f);
        self.on_bodies.iter_mut().for_each(|(_, unit)| unit.each(f));
    }
}

/// Rows of the constraints.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    pub(crate) rows: Vec<Row>,
    pub(crate) contacts: Vec<Contact>,
}

impl Constraints {
    pub(crate) fn new(
        model: &Model,
        position: &Kinematics,
        motion: &BodyMotion,
        tendons: &[PullPath],
        state: &State,
    ) -> Self {
        let rows = stage(|| {
            let mut rows = Vec::new();
            if !model.disabled(Disable::Constraint) {
                add_equalities(model, position, motion, tendons, state, &mut rows);
                add_friction(model, tendons, state, &mut rows);
                add_limits(model, tendons, state, &mut rows);
            }
            rows
        });
        let pairs = model.pairs();
        let touches = stage(|| {
            let touches = |pair| detail(model, || pair_touches(model, position, pair));
            pairs.iter().map(touches).collect::<Vec<_>>()
        });
        let mut contacts = stage(|| {
            let contacts = pairs.iter().zip(&touches).flat_map(|(pair, touches)| {
                let contact = |touch| Contact::new(model, position, &motion.velocity, pair, touch);
                touches.iter().map(move |touch| detail(model, || contact(touch)))
            });
            contacts.collect::<Vec<_>>()
        });
        contacts.retain(|contact| !contact.weight.is_zero());
        Self { rows, contacts }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.contacts.is_empty()
    }
}

/// The degrees of freedom of a row that are not zero.
pub(crate) fn sparse(entries: &[Real]) -> Vec<(usize, Real)> {
    entries.iter().copied().enumerate().filter(|(_, entry)| !entry.is_zero()).collect()
}

/// A row of the Jacobian along numbers of the degrees of freedom.
pub(crate) fn along(jacobian: &[(usize, Real)], x: &[Real]) -> Real {
    jacobian.iter().map(|&(dof, entry)| entry * x[dof]).sum()
}

fn add_friction(model: &Model, tendons: &[PullPath], state: &State, rows: &mut Vec<Row>) {
    if model.disabled(Disable::FrictionLoss) {
        return;
    }
    let mut add = |most: f64, jacobian: Vec<(usize, Real)>, inverse: f64, solref, solimp| {
        if most > 0.0 {
            let speed = along(&jacobian, &state.qvel);
            let impedance = Impedance::new(model, solref, solimp, ZERO).without_stiffness();
            let (weight, aim) = (impedance.weight(inverse), impedance.aim(speed, ZERO));
            rows.push(Row {
                kind: RowKind::Friction(most),
                jacobian,
                weight,
                aim,
                on_bodies: Vec::new(),
            });
        }
    };
    for dof in 0..model.nv {
        let (solref, solimp) = (model.dof_solref[dof], model.dof_solimp[dof]);
        let most = model.dof_frictionloss[dof];
        add(most, vec![(dof, ONE)], model.dof_invweight0[dof], solref, solimp);
    }
    for (tendon, path) in tendons.iter().enumerate() {
        let (solref, solimp) = (model.tendon_solref_fri[tendon], model.tendon_solimp_fri[tendon]);
        let most = model.tendon_frictionloss[tendon];
        add(most, sparse(&path.moment), model.tendon_invweight0[tendon], solref, solimp);
    }
}

/// A quantity with a lower and an upper limit.
struct Limited {
    value: Real,
    range: [f64; 2],
    jacobian: Vec<(usize, Real)>,
    margin: f64,
    inverse: f64,
    solref: [f64; 2],
    solimp: [f64; 5],
}

fn add_limits(model: &Model, tendons: &[PullPath], state: &State, rows: &mut Vec<Row>) {
    if model.disabled(Disable::Limit) {
        return;
    }
    for joint in (0..model.njnt).filter(|&joint| model.jnt_limited[joint]) {
        let (at, dof) = (model.jnt_qposadr[joint], model.jnt_dofadr[joint]);
        let limited = |value, jacobian| Limited {
            value,
            range: model.jnt_range[joint],
            jacobian,
            margin: model.jnt_margin[joint],
            inverse: model.dof_invweight0[dof],
            solref: model.jnt_solref[joint],
            solimp: model.jnt_solimp[joint],
        };
        match model.jnt_type[joint] {
            JointType::Slide | JointType::Hinge => {
                add_limit(model, state, rows, limited(state.qpos[at], vec![(dof, ONE)]));
            }
            JointType::Ball => {
                let quat = std::array::from_fn(|i| state.qpos[at + i]);
                let turned = rotation_vector(quat, IDENTITY);
                let angle = length(turned);
                let none = angle.vanishes();
                let axis = scale(turned, none.select(ZERO, ONE / none.select(ONE, angle)));
                let limited = limited(angle, (dof..).zip(axis).collect());
                let [low, high] = limited.range;
                rows.push(limited.row(model, state, Constant(low.max(high)) - angle, -ONE));
            }
            JointType::Free => {}
        }
    }
    for tendon in (0..model.ntendon).filter(|&tendon| model.tendon_limited[tendon]) {
        add_limit(
            model,
            state,
            rows,
            Limited {
                value: tendons[tendon].length,
                range: model.tendon_range[tendon],
                jacobian: sparse(&tendons[tendon].moment),
                margin: model.tendon_margin[tendon],
                inverse: model.tendon_invweight0[tendon],
                solref: model.tendon_solref_lim[tendon],
                solimp: model.tendon_solimp_lim[tendon],
            },
        );
    }
}

impl Limited {
    /// The row of a limit at a distance, which the quantity changes with this sign.
    fn row(&self, model: &Model, state: &State, distance: Real, sign: Real) -> Row {
        let distance = distance - Constant(self.margin);
        let jacobian: Vec<(usize, Real)> =
            self.jacobian.iter().map(|&(dof, entry)| (dof, entry * sign)).collect();
        let speed = along(&jacobian, &state.qvel);
        let impedance = Impedance::new(model, self.solref, self.solimp, distance);
        let active: Truth = distance.less(ZERO);
        let weight = active.select(impedance.weight(self.inverse), ZERO);
        let aim = impedance.aim(speed, distance);
        Row { kind: RowKind::Unilateral, jacobian, weight, aim, on_bodies: Vec::new() }
    }
}

/// A row for the nearer limit; one for each where both can be active at once.
fn add_limit(model: &Model, state: &State, rows: &mut Vec<Row>, limited: Limited) {
    let [low, high] = limited.range;
    let (above, below) = (limited.value - Constant(low), Constant(high) - limited.value);
    let mut add = |distance, sign| rows.push(limited.row(model, state, distance, sign));
    if 2.0 * limited.margin < high - low {
        add(above.min(below), above.less(below).select(ONE, -ONE));
    } else {
        add(above, ONE);
        add(below, -ONE);
    }
}
