//! Constants at the reference positions: the mass matrix, inverse weights, lengths.

use super::Model;
use super::kinematics::Frames;
use super::types::{JointType, TransmissionType};
use crate::ModelResult;
use crate::math::{Cholesky, TINY, Vec3, diagonal_in, dot, matrix, mul, rotate};
use crate::spec::Spec;

/// Product of two sparse rows of numbers.
fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Model {
    pub(super) fn set_constants(&mut self, spec: &Spec) -> ModelResult<()> {
        let reference = self.qpos0.clone();
        let frames = Frames::new(self, &reference);
        let mut moments = Vec::new();
        for tendon in 0..self.ntendon {
            let (length, moment) = self.tendon_at(tendon, &frames, &reference);
            self.tendon_length0.push(length);
            moments.push(moment);
        }
        let mut matrix = self.mass_matrix(&frames);
        let diagonal = |matrix: &[Vec<f64>]| -> Vec<f64> {
            matrix.iter().enumerate().map(|(i, row)| row[i]).collect()
        };
        self.dof_M0 = diagonal(&matrix);
        self.add_tendon_armature(&mut matrix, &moments);
        let sum = diagonal(&matrix).iter().sum::<f64>();
        let mean = if self.nv == 0 { 1.0 } else { sum / self.nv as f64 };
        self.stat_meaninertia = spec.meaninertia.unwrap_or(mean);
        let factor = Cholesky::new(&matrix).map_err(|dof| {
            let (body, joint) = (self.dof_bodyid[dof], self.dof_jntid[dof]);
            let joint = &spec.bodies[body].joints[joint - self.body_jntadr[body].unwrap_or(0)];
            joint.element.invalid(
                "the joint moves no mass of its own: another joint moves it in the same way. Leave one out, or set `armature`"
                    .to_owned(),
            )
        })?;
        self.set_dof_weights(&factor);
        self.set_body_weights(&frames, &factor);
        self.set_slider_weights(&moments);
        self.set_springs(spec);
        let weights = moments.iter().map(|moment| product(moment, &factor.solve(moment)));
        self.tendon_invweight0 = weights.collect();
        for actuator in 0..self.nu {
            let (length, moment) = self.actuator_at_reference(actuator, &frames.rotation, &moments);
            let acceleration = factor.solve(&moment);
            self.actuator_length0.push(length);
            self.actuator_acc0.push(product(&acceleration, &acceleration).sqrt());
            if let Some(ratio) = spec.actuators[actuator].gains.damping_ratio {
                let inverse = product(&moment, &acceleration);
                let mass = if inverse < TINY { 0.0 } else { 1.0 / inverse };
                let gain = self.actuator_gainprm[actuator][0].max(0.0);
                self.actuator_biasprm[actuator][2] = -2.0 * ratio * (gain * mass).sqrt();
            }
        }
        self.set_spring_lengths();
        Ok(())
    }

    /// The mass matrix, with armature, as rows.
    fn mass_matrix(&self, frames: &Frames) -> Vec<Vec<f64>> {
        let mut whole = vec![vec![0.0; self.nv]; self.nv];
        for body in 1..self.nbody {
            let rows = frames.jacobian(self, body, frames.centre(self, body));
            let axes = matrix(mul(frames.quat[body], self.body_iquat[body]));
            let inertia = diagonal_in(&axes, self.body_inertia[body]);
            for &(i, linear, angular) in &rows {
                let force = linear.map(|x| x * self.body_mass[body]);
                let torque = rotate(&inertia, angular);
                for &(j, linear, angular) in &rows {
                    whole[i][j] += dot(force, linear) + dot(torque, angular);
                }
            }
        }
        for (dof, row) in whole.iter_mut().enumerate() {
            row[dof] += self.armature(dof);
        }
        whole
    }

    /// Armature of a degree of freedom, with its actuators'.
    pub(crate) fn armature(&self, dof: usize) -> f64 {
        let geared = (0..self.nu).filter(|&actuator| {
            let kind = self.actuator_trntype[actuator];
            matches!(kind, TransmissionType::Joint | TransmissionType::JointInParent)
                && self.actuator_trnid[actuator][0] == Some(self.dof_jntid[dof])
        });
        self.dof_armature[dof] + geared.map(|actuator| self.geared_armature(actuator)).sum::<f64>()
    }

    fn geared_armature(&self, actuator: usize) -> f64 {
        let gear = self.actuator_gear[actuator][0];
        gear * gear * self.actuator_armature[actuator]
    }

    /// Armature of each tendon, with its actuators'.
    pub(crate) fn tendon_armatures(&self) -> Vec<f64> {
        let mut armatures = self.tendon_armature.clone();
        for actuator in 0..self.nu {
            if let (TransmissionType::Tendon, Some(tendon)) =
                (self.actuator_trntype[actuator], self.actuator_trnid[actuator][0])
            {
                armatures[tendon] += self.geared_armature(actuator);
            }
        }
        armatures
    }

    /// The armature of tendons, which `dof_M0` does not have. MuJoCo's mass matrix has no entry for two degrees of
    /// freedom on different branches, so that a tendon between branches couples none of them.
    fn add_tendon_armature(&self, whole: &mut [Vec<f64>], tendons: &[Vec<f64>]) {
        for (moment, armature) in tendons.iter().zip(&self.tendon_armatures()) {
            for i in 0..self.nv {
                let mut next = Some(i);
                while let Some(j) = next {
                    let added = armature * moment[i] * moment[j];
                    whole[i][j] += added;
                    if i != j {
                        whole[j][i] += added;
                    }
                    next = self.dof_parentid[j];
                }
            }
        }
    }

    /// Stiffness and damping of joints that are given by time constant and damping ratio.
    fn set_springs(&mut self, spec: &Spec) {
        let written = spec.bodies.iter().flat_map(|body| &body.joints);
        for (joint, written) in written.enumerate() {
            let [constant, ratio] = written.values.spring_damper;
            if constant <= 0.0 || ratio <= 0.0 {
                continue;
            }
            let first = self.jnt_dofadr[joint];
            let dofs = first..first + self.jnt_type[joint].dofs();
            let weights = &self.dof_invweight0[dofs.clone()];
            let inertia = dofs.len() as f64 / weights.iter().sum::<f64>().max(TINY);
            self.jnt_stiffness[joint] = inertia / (constant * constant * ratio * ratio).max(TINY);
            let damping = 2.0 * inertia / constant.max(TINY);
            self.dof_damping[dofs].fill(damping);
        }
    }

    fn set_dof_weights(&mut self, factor: &Cholesky) {
        let unit = |dof: usize| -> Vec<f64> {
            (0..self.nv).map(|i| f64::from(u8::from(i == dof))).collect()
        };
        let inverse: Vec<f64> = (0..self.nv).map(|dof| factor.solve(&unit(dof))[dof]).collect();
        self.dof_invweight0 = inverse.clone();
        for (joint, &kind) in self.jnt_type.iter().enumerate() {
            let first = self.jnt_dofadr[joint];
            let groups: &[usize] = match kind {
                JointType::Free => &[0, 3],
                JointType::Ball => &[0],
                JointType::Slide | JointType::Hinge => &[],
            };
            for offset in groups {
                let group = first + offset..first + offset + 3;
                let mean = inverse[group.clone()].iter().sum::<f64>() / 3.0;
                self.dof_invweight0[group].fill(mean);
            }
        }
    }

    fn set_body_weights(&mut self, frames: &Frames, factor: &Cholesky) {
        self.body_invweight0.push([0.0; 2]);
        for body in 1..self.nbody {
            let rows = frames.jacobian(self, body, frames.centre(self, body));
            let weight = |part: &dyn Fn(&(usize, Vec3, Vec3)) -> Vec3| {
                let of = |axis: usize| {
                    let mut row = vec![0.0; self.nv];
                    rows.iter().for_each(|entry| row[entry.0] = part(entry)[axis]);
                    product(&row, &factor.solve(&row))
                };
                (of(0) + of(1) + of(2)) / 3.0
            };
            let weights = [weight(&|entry| entry.1), weight(&|entry| entry.2)];
            self.body_invweight0.push(if rows.is_empty() { [0.0; 2] } else { weights });
        }
    }

    /// Weights of leaf bodies that only slide along their own axes: MuJoCo takes the mass without armature.
    fn set_slider_weights(&mut self, moments: &[Vec<f64>]) {
        let sliders = (1..self.nbody).filter(|&body| self.only_slides(body, moments));
        for body in sliders.collect::<Vec<_>>() {
            let weight = 1.0 / self.body_mass[body].max(TINY);
            self.body_invweight0[body] = [weight, 0.0];
            let first = self.body_dofadr[body].unwrap_or(0);
            self.dof_invweight0[first..first + self.body_dofnum[body]].fill(weight);
        }
    }

    /// `body_simple == 2` in MuJoCo: a leaf below a body that does not move, with its inertial frame as its own frame,
    /// and with slides along coordinate axes only.
    fn only_slides(&self, body: usize, moments: &[Vec<f64>]) -> bool {
        let near_zero = |values: &[f64]| values.iter().all(|value| value.abs() < 1e-6);
        let first = self.body_jntadr[body].unwrap_or(0);
        let mut joints = first..first + self.body_jntnum[body];
        let armatures = self.tendon_armatures();
        let mut heavy = armatures.iter().zip(moments).filter(|(armature, _)| **armature > 0.0);
        !joints.is_empty()
            && self.body_weldid[self.body_parentid[body]] == 0
            && !self.body_parentid[1..].contains(&body)
            && near_zero(&self.body_ipos[body])
            && near_zero(&self.body_iquat[body][1..])
            && !heavy.any(|(_, moment)| joints.clone().any(|j| moment[self.jnt_dofadr[j]] != 0.0))
            && joints.all(|joint| {
                let zeros = self.jnt_axis[joint].iter().filter(|&&x| x == 0.0).count();
                self.jnt_type[joint] == JointType::Slide
                    && zeros == 2
                    && near_zero(&self.jnt_pos[joint])
            })
    }

    /// Rest lengths of tendons without one: the length where the joints' springs rest.
    fn set_spring_lengths(&mut self) {
        let rest = self.qpos_spring.clone();
        let frames = Frames::new(self, &rest);
        for tendon in 0..self.ntendon {
            if self.tendon_lengthspring[tendon] == [-1.0; 2] {
                let (length, _) = self.tendon_at(tendon, &frames, &rest);
                self.tendon_lengthspring[tendon] = [length; 2];
            }
        }
    }
}
