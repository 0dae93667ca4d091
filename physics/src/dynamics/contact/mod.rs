//! Contacts: a static list of the pairs of geoms that may touch each other, and their rows.

mod geometry;

use super::impedance::Impedance;
use super::position::Kinematics;
use super::stage::Numbers;
use crate::model::{Disable, GeomType, Model};
use crate::real::{Real, ZERO};
use crate::vector::{Matrix, ORIGIN, Spatial, Vector, add, cross, dot, scale};

use Real::Constant;
pub(crate) use geometry::Touch;
use geometry::{PlacedGeom, covers, touches};

/// Two geoms that may touch each other, with the parameters of their contacts.
#[derive(Clone, Debug)]
pub(crate) struct GeomPair {
    /// The geoms; the type of the first is not above the type of the second.
    pub(crate) geoms: [usize; 2],
    /// The number of dimensions of the contact force: 1, 3, 4 or 6.
    dim: usize,
    friction: [f64; 5],
    margin: f64,
    solref: [f64; 2],
    solimp: [f64; 5],
}

impl Model {
    /// The pairs of geoms that may touch each other.
    pub(crate) fn pairs(&self) -> Vec<GeomPair> {
        if self.disabled(Disable::Contact) || self.disabled(Disable::Constraint) {
            return Vec::new();
        }
        let mut pairs: Vec<GeomPair> = (0..self.npair).map(|pair| self.explicit(pair)).collect();
        for one in 0..self.ngeom {
            for other in one + 1..self.ngeom {
                let pair = self.mixed(one, other);
                if self.may_touch(one, other) && !pairs.iter().any(|p| p.geoms == pair.geoms) {
                    pairs.push(pair);
                }
            }
        }
        pairs
    }

    /// The first pair that may touch each other with contacts that are not covered.
    pub(crate) fn uncovered_pair(&self) -> Option<[usize; 2]> {
        let kind = |geom: usize| self.geom_type[geom];
        let mut pairs = self.pairs().into_iter().map(|pair| pair.geoms);
        pairs.find(|&[one, other]| !covers(kind(one), kind(other)))
    }

    fn explicit(&self, pair: usize) -> GeomPair {
        GeomPair {
            geoms: self.by_type(self.pair_geom1[pair], self.pair_geom2[pair]),
            dim: self.pair_dim[pair] as usize,
            friction: self.pair_friction[pair],
            margin: self.pair_margin[pair],
            solref: self.pair_solref[pair],
            solimp: self.pair_solimp[pair],
        }
    }

    fn by_type(&self, one: usize, other: usize) -> [usize; 2] {
        let later = self.geom_type[one] as i32 > self.geom_type[other] as i32;
        if later { [other, one] } else { [one, other] }
    }

    fn may_touch(&self, one: usize, other: usize) -> bool {
        let (body, other_body) = (self.geom_bodyid[one], self.geom_bodyid[other]);
        let (weld, other_weld) = (self.body_weldid[body], self.body_weldid[other_body]);
        let above = |weld: usize| self.body_weldid[self.body_parentid[weld]];
        let family = weld != 0
            && other_weld != 0
            && (above(weld) == other_weld || above(other_weld) == weld)
            && !self.disabled(Disable::FilterParent);
        let signature = (body.min(other_body) << 16) + body.max(other_body);
        let collide = self.geom_contype[one] & self.geom_conaffinity[other] != 0
            || self.geom_contype[other] & self.geom_conaffinity[one] != 0;
        let planes = [one, other].iter().all(|&geom| self.geom_type[geom] == GeomType::Plane);
        let excluded = self.exclude_signature.contains(&signature);
        weld != other_weld && collide && !family && !planes && !excluded
    }

    /// The parameters of two geoms together.
    fn mixed(&self, one: usize, other: usize) -> GeomPair {
        let geoms = self.by_type(one, other);
        let [first, second] = geoms;
        let [low, high] = [first, second].map(|geom| self.geom_priority[geom]);
        let parameters = |geom: usize| {
            let [slide, spin, roll] = self.geom_friction[geom];
            let friction = [slide, slide, spin, roll, roll];
            (self.geom_condim[geom], friction, self.geom_solref[geom], self.geom_solimp[geom])
        };
        let margin = self.geom_margin[first] + self.geom_margin[second];
        let pair = |(dim, friction, solref, solimp): (i32, _, _, _)| GeomPair {
            geoms,
            dim: dim as usize,
            friction,
            margin,
            solref,
            solimp,
        };
        let (a, b) = (parameters(first), parameters(second));
        if low != high {
            return pair(if low > high { a } else { b });
        }
        let [w, v] = [first, second].map(|geom| self.geom_solmix[geom]);
        let share = match (w >= 1e-15, v >= 1e-15) {
            (true, true) => w / (w + v),
            (false, false) => 0.5,
            (heavy, _) => f64::from(u8::from(heavy)),
        };
        let mix = |a: f64, b: f64| share * a + (1.0 - share) * b;
        let timed = a.2[0] > 0.0 && b.2[0] > 0.0;
        let solref =
            std::array::from_fn(|i| if timed { mix(a.2[i], b.2[i]) } else { a.2[i].min(b.2[i]) });
        let friction = std::array::from_fn(|i| a.1[i].max(b.1[i]));
        pair((a.0.max(b.0), friction, solref, std::array::from_fn(|i| mix(a.3[i], b.3[i]))))
    }
}

/// A direction of a contact's force, or the axis of its torque.
#[derive(Clone, Copy, Debug)]
struct Direction {
    axis: Vector,
    torque: bool,
}

/// A moving side of a contact.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) body: usize,
    /// The point of contact, relative to the reference point of the body's tree.
    pub(crate) place: Vector,
    /// -1 for the first geom, 1 for the second.
    sign: f64,
}

impl Side {
    /// The spatial force on the body of a force and a torque at the point of contact.
    pub(crate) fn pushed(&self, [force, torque]: [Vector; 2]) -> Spatial {
        let at = Spatial::force_at(self.place, force);
        at.add(Spatial { w: torque, v: ORIGIN }).scale(Constant(self.sign))
    }

    /// The spatial force on the body of a unit force, or torque, along a direction.
    fn unit(&self, Direction { axis, torque }: Direction) -> Spatial {
        self.pushed(if torque { [ORIGIN, axis] } else { [axis, ORIGIN] })
    }
}

/// A contact with a pyramidal friction cone.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    pub(crate) sides: Vec<Side>,
    /// The normal, and each direction of friction along which the bodies can move, with its coefficient.
    directions: Vec<(Direction, f64)>,
    /// The number of directions of friction along which the bodies cannot move: each has two rows that equal the normal.
    still: usize,
    /// The degrees of freedom that move two sides differently; none for one side.
    pub(crate) dofs: Vec<usize>,
    /// The motion along each direction for a unit velocity of each of `dofs`.
    pub(crate) jacobian: Vec<Vec<Real>>,
    /// The weight of each row; 0 if there is no contact.
    pub(crate) weight: Real,
    /// The aim of each row.
    pub(crate) aim: Vec<Real>,
}

/// A symmetric matrix of six rows about a point, by the blocks of forces and torques.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointMatrix {
    /// The lower triangle of forces by motions.
    forces: [Real; 6],
    /// Torques by motions.
    mixed: Matrix,
    /// The lower triangle of torques by rotations.
    torques: [Real; 6],
}

crate::dynamics::stage::numbers!(PointMatrix: forces, mixed, torques);

/// The lower triangle of a symmetric matrix of three rows.
fn lower(mut entry: impl FnMut(usize, usize) -> Real) -> [Real; 6] {
    let mut places = (0..3).flat_map(|i| (0..=i).map(move |j| (i, j)));
    std::array::from_fn(|_| {
        let (i, j) = places.next().expect("a triangle of three rows has six entries");
        entry(i, j)
    })
}

/// The entry of a symmetric matrix by its lower triangle.
fn entry(lower: &[Real; 6], i: usize, j: usize) -> Real {
    let (row, column) = (i.max(j), i.min(j));
    lower[row * (row + 1) / 2 + column]
}

impl PointMatrix {
    /// The lower triangle of the matrix about a reference point, for a point at a place.
    pub(crate) fn about(&self, place: Vector) -> [[Real; 6]; 6] {
        let forces = |j: usize| std::array::from_fn(|i| entry(&self.forces, i, j));
        let columns = [0, 1, 2].map(|j| cross(place, forces(j)));
        let crossed: Matrix =
            std::array::from_fn(|i| std::array::from_fn(|j| self.mixed[i][j] + columns[j][i]));
        let turned = crossed.map(|row| cross(place, row));
        let mixed = self.mixed.map(|row| cross(place, row));
        std::array::from_fn(|i| {
            std::array::from_fn(|j| match (i, j) {
                _ if j > i => ZERO,
                (..3, ..3) => entry(&self.torques, i, j) + turned[i][j] + mixed[j][i],
                (_, ..3) => crossed[j][i - 3],
                _ => entry(&self.forces, i - 3, j - 3),
            })
        })
    }
}

impl Numbers for Contact {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.sides.iter_mut().for_each(|side| side.place.each(f));
        self.directions.iter_mut().for_each(|(direction, _)| direction.axis.each(f));
        self.jacobian.each(f);
        self.weight.each(f);
        self.aim.each(f);
    }
}

impl Numbers for Touch {
    fn each(&mut self, f: &mut dyn FnMut(&mut Real)) {
        self.distance.each(f);
        self.place.each(f);
        self.frame.each(f);
    }
}

/// The distances, points and frames of each possible contact of a pair; points are relative to the reference point of
/// the second geom's tree.
pub(crate) fn pair_touches(model: &Model, position: &Kinematics, pair: &GeomPair) -> Vec<Touch> {
    let body = model.geom_bodyid[pair.geoms[1]];
    let shape = |geom: usize| {
        let own = model.geom_bodyid[geom];
        PlacedGeom {
            kind: model.geom_type[geom],
            size: model.geom_size[geom],
            centre: position.seen_from(model, body, own, position.point(own, model.geom_pos[geom])),
            axes: position.frame(own, model.geom_quat[geom]),
        }
    };
    let [first, second] = pair.geoms.map(shape);
    touches(&first, &second, pair.margin, !model.disabled(Disable::MultiCcd))
}

impl Contact {
    pub(crate) fn new(
        model: &Model,
        position: &Kinematics,
        velocity: &[Spatial],
        pair: &GeomPair,
        touch: &Touch,
    ) -> Self {
        let bodies = pair.geoms.map(|geom| model.geom_bodyid[geom]);
        let sides: Vec<Side> = (bodies.into_iter().zip([-1.0, 1.0]))
            .filter(|&(body, _)| model.body_weldid[body] != 0)
            .map(|(body, sign)| {
                let place = position.seen_from(model, body, bodies[1], touch.place);
                Side { body, place, sign }
            })
            .collect();
        let [normal, first, second] = touch.frame;
        let axes = [
            (normal, false),
            (first, false),
            (second, false),
            (normal, true),
            (first, true),
            (second, true),
        ];
        let directions = axes[..pair.dim].iter().map(|&(axis, torque)| Direction { axis, torque });
        let coefficients = [1.0].into_iter().chain(pair.friction);
        let mut contact = Self {
            sides,
            directions: directions.zip(coefficients).collect(),
            still: 0,
            dofs: Vec::new(),
            jacobian: Vec::new(),
            weight: ZERO,
            aim: Vec::new(),
        };
        let speeds = contact.along(velocity);
        // Friction without motion has no rows of its own.
        let moving = |i: usize| i == 0 || !speeds[i].is_zero();
        let kept: Vec<usize> = (0..speeds.len()).filter(|&i| moving(i)).collect();
        contact.still = speeds.len() - kept.len();
        contact.directions = kept.iter().map(|&i| contact.directions[i]).collect();
        contact.add_jacobian(model, position);
        let speeds: Vec<Real> = kept.iter().map(|&i| speeds[i]).collect();

        let distance = touch.distance - Constant(pair.margin);
        let impedance = Impedance::new(model, pair.solref, pair.solimp, distance);
        let translation: f64 = bodies.iter().map(|&body| model.body_invweight0[body][0]).sum();
        let slide = pair.friction[0];
        let inverse = match pair.dim {
            1 => translation,
            _ => translation * (1.0 + slide * slide) * 2.0 * slide * slide / model.opt.impratio,
        };
        contact.weight = distance.less(ZERO).select(impedance.weight(inverse), ZERO);
        contact.aim = (contact.rows_of(&speeds).into_iter())
            .map(|speed| impedance.aim(speed, distance))
            .collect();
        contact
    }

    /// The relative motion of the sides along each direction.
    fn along(&self, motions: &[Spatial]) -> Vec<Real> {
        let along = |&(direction, _): &(Direction, f64)| {
            let of = |side: &Side| {
                let motion = motions[side.body];
                let vector = if direction.torque { motion.w } else { motion.at(side.place) };
                dot(direction.axis, vector) * side.sign
            };
            self.sides.iter().map(of).sum()
        };
        self.directions.iter().map(along).collect()
    }

    /// The rows of values along the directions: the normal plus and minus each direction of friction, and the normal
    /// itself if there is a row without motion along its friction, or no friction.
    fn rows_of(&self, along: &[Real]) -> Vec<Real> {
        let normal = along[0];
        let friction = along.iter().zip(&self.directions).skip(1);
        let mut rows: Vec<Real> = friction
            .flat_map(|(&value, &(_, coefficient))| {
                let value = value * coefficient;
                [normal + value, normal - value]
            })
            .collect();
        if self.still > 0 || along.len() == 1 {
            rows.push(normal);
        }
        rows
    }

    /// The rows of motions of the bodies.
    pub(crate) fn rows(&self, motions: &[Spatial]) -> Vec<Real> {
        self.rows_of(&self.along(motions))
    }

    /// The number of rows that each of [`Contact::rows`] stands for.
    pub(crate) fn times(&self, row: usize) -> f64 {
        let own = 2 * (self.directions.len() - 1);
        if row < own { 1.0 } else { (2 * self.still).max(1) as f64 }
    }

    /// Values along the directions of values of the rows: the transpose of [`Contact::rows_of`].
    fn directions_of(&self, rows: &[Real]) -> Vec<Real> {
        let normal = (rows.iter().enumerate()).map(|(i, &row)| row * self.times(i)).sum();
        let friction = (1..self.directions.len())
            .map(|i| (rows[2 * i - 2] - rows[2 * i - 1]) * self.directions[i].1);
        [normal].into_iter().chain(friction).collect()
    }

    /// The force and the torque at the point of contact of the forces of the rows.
    pub(crate) fn force(&self, rows: &[Real]) -> [Vector; 2] {
        let (mut force, mut torque) = (ORIGIN, ORIGIN);
        for (&(direction, _), value) in self.directions.iter().zip(self.directions_of(rows)) {
            let sum = if direction.torque { &mut torque } else { &mut force };
            *sum = add(*sum, scale(direction.axis, value));
        }
        [force, torque]
    }

    /// The matrix of the directions' couplings through the weights of the rows.
    pub(crate) fn coupling(&self, weights: &[Real]) -> Vec<Vec<Real>> {
        let count = self.directions.len();
        let mut coupling = vec![vec![ZERO; count]; count];
        let along = self.directions_of(weights);
        coupling[0][0] = along[0];
        for i in 1..count {
            let coefficient = self.directions[i].1;
            coupling[i][i] =
                (weights[2 * i - 2] + weights[2 * i - 1]) * (coefficient * coefficient);
            (coupling[0][i], coupling[i][0]) = (along[i], along[i]);
        }
        coupling
    }

    /// The force at the point of contact for a motion of the body at that point, through the weights of the rows.
    pub(crate) fn at_point(&self, weights: &[Real]) -> PointMatrix {
        let coupling = self.coupling(weights);
        let axes = |torque: bool| -> Vec<Vector> {
            let axis = |&(direction, _): &(Direction, f64)| {
                if direction.torque == torque { direction.axis } else { ORIGIN }
            };
            self.directions.iter().map(axis).collect()
        };
        let [forces, torques] = [false, true].map(axes);
        let product = |a: &[Vector], b: &[Vector], i: usize, j: usize| -> Real {
            let row = |(coupling, a): (&Vec<Real>, &Vector)| {
                a[i] * coupling.iter().zip(b).map(|(&entry, b)| entry * b[j]).sum::<Real>()
            };
            coupling.iter().zip(a).map(row).sum()
        };
        let whole = |a: &[Vector], b: &[Vector]| -> Matrix {
            std::array::from_fn(|i| std::array::from_fn(|j| product(a, b, i, j)))
        };
        PointMatrix {
            forces: lower(|i, j| product(&forces, &forces, i, j)),
            mixed: whole(&torques, &forces),
            torques: lower(|i, j| product(&torques, &torques, i, j)),
        }
    }

    /// Fills `dofs` and `jacobian`. A degree of freedom that moves both sides moves both alike.
    fn add_jacobian(&mut self, model: &Model, position: &Kinematics) {
        let [one, other] = &self.sides[..] else { return };
        let chains = [one, other]
            .map(|side| -> Vec<usize> { model.chain(model.last_dof(side.body)).collect() });
        let own = |own: usize| {
            let others = &chains[1 - own];
            chains[own].iter().filter(|dof| !others.contains(dof)).map(move |&dof| (dof, own))
        };
        let mut dofs: Vec<(usize, usize)> = own(0).chain(own(1)).collect();
        dofs.sort_unstable();
        let row = |&(direction, _): &(Direction, f64)| {
            let units = [one, other].map(|side| side.unit(direction));
            dofs.iter().map(|&(dof, side)| units[side].dot(position.motion[dof])).collect()
        };
        self.jacobian = self.directions.iter().map(row).collect();
        self.dofs = dofs.into_iter().map(|(dof, _)| dof).collect();
    }
}
