//! `mj_forward`: everything that follows from a state.

use podracer_dsl::prelude::*;

use super::actuation::Actuation;
use super::constraint::Constraints;
use super::mass::Symmetric;
use super::newton::{Problem, Solution};
use super::position::Kinematics;
use super::stage::stage;
use super::state::{State, vector};
use super::transmission::{PullPath, actuators, tendons};
use super::velocity::{gravity_compensation, motion, passive};
use crate::model::Model;
use crate::real::{Real, ZERO};
use crate::vector::{Inertia, ORIGIN, Spatial, Vector, add, cross, scale, sub};

/// The quantities that MuJoCo derives from a state, by their names in `mjData`. A method adds the equations of its
/// quantity to the program: other quantities cost nothing.
pub struct Forward<'a> {
    pub(crate) model: &'a Model,
    pub(crate) like: Tensor,
    pub(crate) state: State,
    pub(crate) position: Kinematics,
    pub(crate) velocity: Vec<Spatial>,
    pub(crate) tendons: Vec<PullPath>,
    pub(crate) actuators: Vec<PullPath>,
    pub(crate) mass: Symmetric,
    pub(crate) bias: Vec<Real>,
    pub(crate) passive: Vec<Real>,
    pub(crate) actuation: Actuation,
    /// The forces without constraints.
    pub(crate) force: Vec<Real>,
    pub(crate) solution: Solution,
}

impl<'a> Forward<'a> {
    pub(crate) fn new(model: &'a Model, state: State, like: Tensor) -> Self {
        let position = Kinematics::new(model, &state.qpos);
        let tendons = stage(|| tendons(model, &position, &state.qpos));
        let actuators = stage(|| actuators(model, &position, &tendons, &state.qpos));
        let mass = Symmetric::mass(model, &position, &tendons);
        let motion = stage(|| motion(model, &position, &state.qvel));
        let bias = stage(|| position.generalized(model, motion.force.clone()));
        let velocity = motion.velocity.clone();
        let passive = stage(|| passive(model, &position, &velocity, &tendons, &state));
        let actuation = stage(|| {
            let lifts = gravity_compensation(model, &position);
            Actuation::new(model, &state, &actuators, &tendons, &lifts)
        });
        let force: Vec<Real> =
            (0..model.nv).map(|dof| passive[dof] + actuation.force[dof] - bias[dof]).collect();
        let constraints = Constraints::new(model, &position, &motion, &tendons, &state);
        let solution = if constraints.is_empty() {
            let factor = stage(|| mass.factor(model));
            Solution {
                qacc: stage(|| factor.solve(model, &force)),
                force: vec![ZERO; model.nv],
                touching: vec![Spatial::ZERO; model.nbody],
            }
        } else {
            let problem = Problem {
                model,
                position: position.clone(),
                mass: mass.clone(),
                force: force.clone(),
                constraints,
            };
            problem.solve(&state.warmstart, like)
        };
        Self {
            model,
            like,
            state,
            position,
            velocity,
            tendons,
            actuators,
            mass,
            bias,
            passive,
            actuation,
            force,
            solution,
        }
    }

    fn vector(&self, numbers: &[Real]) -> Tensor {
        vector(numbers, self.like)
    }

    fn rows<const N: usize>(&self, rows: impl Iterator<Item = [Real; N]>) -> Tensor {
        let rows: Vec<Tensor> = rows.map(|row| self.vector(&row)).collect();
        if rows.is_empty() { zeros(self.like.dtype(), [0, N]) } else { stack(&rows, 0) }
    }

    fn points(&self, points: impl Iterator<Item = (usize, Vector)>) -> Tensor {
        self.rows(points.map(|(body, place)| self.position.world(body, place)))
    }

    /// `qvel [nv]`: the velocities of the state, in m/s and rad/s.
    pub fn qvel(&self) -> Tensor {
        self.vector(&self.state.qvel)
    }

    /// `qacc [nv]`: the accelerations, in m/s^2 and rad/s^2.
    pub fn qacc(&self) -> Tensor {
        self.vector(&self.solution.qacc)
    }

    /// `qacc_smooth [nv]`: the accelerations without constraints.
    pub fn qacc_smooth(&self) -> Tensor {
        self.vector(&self.mass.factor(self.model).solve(self.model, &self.force))
    }

    /// `qfrc_bias [nv]`: Coriolis, centrifugal and gravitational forces.
    pub fn qfrc_bias(&self) -> Tensor {
        self.vector(&self.bias)
    }

    /// `qfrc_passive [nv]`: forces of springs, dampers, the medium and compensated gravity.
    pub fn qfrc_passive(&self) -> Tensor {
        self.vector(&self.passive)
    }

    /// `qfrc_actuator [nv]`: forces of the actuators.
    pub fn qfrc_actuator(&self) -> Tensor {
        self.vector(&self.actuation.force)
    }

    /// `qfrc_constraint [nv]`: forces of the constraints.
    pub fn qfrc_constraint(&self) -> Tensor {
        self.vector(&self.solution.force)
    }

    /// `actuator_force [nu]`: the scalar force of each actuator.
    pub fn actuator_force(&self) -> Tensor {
        self.vector(&self.actuation.scalar)
    }

    /// `qM [nv, nv]`: the mass matrix, as `mj_fullM` gives it.
    #[allow(non_snake_case, reason = "MuJoCo's name")]
    pub fn qM(&self) -> Tensor {
        let entry = |i: usize, j: usize| self.mass.0[i.max(j)][i.min(j)];
        let rows: Vec<Tensor> = (0..self.model.nv)
            .map(|i| {
                let row: Vec<Real> = (0..self.model.nv).map(|j| entry(i, j)).collect();
                self.vector(&row)
            })
            .collect();
        stack(&rows, 0)
    }

    /// `xpos [nbody, 3]`: the places of the bodies' frames.
    pub fn xpos(&self) -> Tensor {
        self.points((0..self.model.nbody).map(|body| (body, self.position.place[body])))
    }

    /// `xmat [nbody, 9]`: the orientations of the bodies' frames.
    pub fn xmat(&self) -> Tensor {
        let flat = |body: &[[Real; 3]; 3]| std::array::from_fn::<_, 9, _>(|i| body[i / 3][i % 3]);
        self.rows(self.position.rotation.iter().map(flat))
    }

    /// `xipos [nbody, 3]`: the centres of mass of the bodies.
    pub fn xipos(&self) -> Tensor {
        let model = self.model;
        let centre = |body: usize| (body, self.position.point(body, model.body_ipos[body]));
        self.points((0..model.nbody).map(centre))
    }

    /// `geom_xpos [ngeom, 3]`: the centres of the geoms.
    pub fn geom_xpos(&self) -> Tensor {
        let model = self.model;
        let of = |geom: usize| {
            let body = model.geom_bodyid[geom];
            (body, self.position.point(body, model.geom_pos[geom]))
        };
        self.points((0..model.ngeom).map(of))
    }

    /// `site_xpos [nsite, 3]`: the places of the sites.
    pub fn site_xpos(&self) -> Tensor {
        let model = self.model;
        let of = |site: usize| {
            let body = model.site_bodyid[site];
            (body, self.position.point(body, model.site_pos[site]))
        };
        self.points((0..model.nsite).map(of))
    }

    /// The centre of mass of a body and its descendants, relative to the reference point of the body's tree.
    fn centre(&self, body: usize) -> Vector {
        let model = self.model;
        let below = |other: &usize| {
            let mut ancestors =
                std::iter::successors(Some(*other), |&b| (b != 0).then(|| model.body_parentid[b]));
            ancestors.any(|ancestor| ancestor == body)
        };
        let total = model.body_subtreemass[body];
        let weighted = (1..model.nbody).filter(below).map(|other| {
            let place = self.position.point(other, model.body_ipos[other]);
            let place = self.position.seen_from(model, body, other, place);
            scale(place, Real::Constant(model.body_mass[other] / total))
        });
        weighted.fold(ORIGIN, add)
    }

    /// `subtree_com [nbody, 3]`: the centre of mass of each body and its descendants.
    pub fn subtree_com(&self) -> Tensor {
        self.points((0..self.model.nbody).map(|body| (body, self.centre(body))))
    }

    /// The centre of mass of the whole robot of each body, where MuJoCo has the origin of spatial vectors.
    fn origins(&self) -> Vec<Vector> {
        let model = self.model;
        let centres: Vec<Vector> = (0..model.nbody)
            .map(|body| if model.body_rootid[body] == body { self.centre(body) } else { ORIGIN })
            .collect();
        let of = |body: usize| {
            let root = model.body_rootid[body];
            self.position.seen_from(model, body, root, centres[root])
        };
        (0..model.nbody).map(of).collect()
    }

    /// `cvel [nbody, 6]`: angular velocity, then the velocity of the body's point at the centre of mass of its robot.
    pub fn cvel(&self) -> Tensor {
        let velocities = self.velocity.iter().zip(self.origins());
        self.rows(
            velocities
                .map(|(velocity, origin)| Spatial { w: velocity.w, v: velocity.at(origin) }.six()),
        )
    }

    /// `cinert [nbody, 10]`: the inertia about the centre of mass of the body's robot (xx, yy, zz, xy, xz, yz), mass times
    /// the body's place from that centre, and mass.
    pub fn cinert(&self) -> Tensor {
        let inertias = self.position.inertia.iter().zip(self.origins());
        self.rows(inertias.map(|(inertia, origin)| {
            let Inertia { mass, moment, rotational } = inertia.about(origin);
            let [xx, yy, zz, xy, xz, yz] = rotational;
            let [x, y, z] = moment;
            [xx, yy, zz, xy, xz, yz, x, y, z, mass]
        }))
    }

    /// `cfrc_ext [nbody, 6]`, as `mj_rnePostConstraint` computes it: the torque of the contacts and joined bodies on each
    /// moving body, about the centre of mass of its robot, and their force. The forces of spatial tendons, which MuJoCo
    /// adds, are left out.
    pub fn cfrc_ext(&self) -> Tensor {
        let forces = self.solution.touching.iter().zip(self.origins());
        self.rows(forces.map(|(force, origin)| {
            Spatial { w: sub(force.w, cross(origin, force.v)), v: force.v }.six()
        }))
    }

    /// `ten_length [ntendon]`: the lengths of the tendons.
    pub fn ten_length(&self) -> Tensor {
        let lengths: Vec<Real> = self.tendons.iter().map(|path| path.length).collect();
        self.vector(&lengths)
    }
}
