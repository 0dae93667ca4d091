//! The fields of the model.

use super::fields::with_fields;
use super::options::Options;
use super::types::{EqualityType, GeomType, JointType, ObjectType, TransmissionType, WrapType};

with_fields! {
    /// `mujoco.MjModel`: a compiled model. See the [module](super) for conventions.
    #[allow(non_snake_case, reason = "MuJoCo's names")]
    #[derive(Clone, Debug, Default, PartialEq)]
    Model {
        /// Number of positions.
        nq: usize,
        /// Number of degrees of freedom.
        nv: usize,
        /// Number of controls.
        nu: usize,
        /// Number of activations.
        na: usize,
        /// Number of bodies, with the world.
        nbody: usize,
        /// Number of joints.
        njnt: usize,
        /// Number of geoms.
        ngeom: usize,
        /// Number of sites.
        nsite: usize,
        /// Number of tendons.
        ntendon: usize,
        /// Number of parts of tendons' paths.
        nwrap: usize,
        /// Number of equality constraints.
        neq: usize,
        /// Number of explicit pairs of geoms.
        npair: usize,
        /// Number of excluded pairs of bodies.
        nexclude: usize,
        /// Number of sensors.
        nsensor: usize,
        /// Number of sensors' values.
        nsensordata: usize,
        /// Number of keyframes.
        nkey: usize,

        /// Reference positions.
        qpos0: Vec<f64>,
        /// Rest positions of springs.
        qpos_spring: Vec<f64>,

        /// Parent; the world is its own parent.
        body_parentid: Vec<usize>,
        /// Ancestor that is a child of the world.
        body_rootid: Vec<usize>,
        /// Nearest ancestor with joints, perhaps the body itself; the world if there is none.
        body_weldid: Vec<usize>,
        /// Number of joints.
        body_jntnum: Vec<usize>,
        /// First joint, if any.
        body_jntadr: Vec<Option<usize>>,
        /// Number of degrees of freedom.
        body_dofnum: Vec<usize>,
        /// First degree of freedom.
        body_dofadr: Vec<Option<usize>>,
        /// Number of geoms.
        body_geomnum: Vec<usize>,
        /// First geom, if any.
        body_geomadr: Vec<Option<usize>>,
        /// Position in the parent's frame.
        body_pos: Vec<[f64; 3]>,
        /// Orientation in the parent's frame.
        body_quat: Vec<[f64; 4]>,
        /// Centre of mass in the body's frame.
        body_ipos: Vec<[f64; 3]>,
        /// Orientation of the principal axes in the body's frame.
        body_iquat: Vec<[f64; 4]>,
        /// Mass, in kilograms.
        body_mass: Vec<f64>,
        /// Mass of the body and its descendants.
        body_subtreemass: Vec<f64>,
        /// Principal moments of inertia.
        body_inertia: Vec<[f64; 3]>,
        /// Mean inverse inertia at `qpos0`: translation, rotation.
        body_invweight0: Vec<[f64; 2]>,
        /// Share of gravity that is compensated.
        body_gravcomp: Vec<f64>,

        /// Type of the joint.
        jnt_type: Vec<JointType>,
        /// First position.
        jnt_qposadr: Vec<usize>,
        /// First degree of freedom.
        jnt_dofadr: Vec<usize>,
        /// Body that the joint moves.
        jnt_bodyid: Vec<usize>,
        /// True for a joint with a limit.
        jnt_limited: Vec<bool>,
        /// True if the sum of the actuators' forces has a limit.
        jnt_actfrclimited: Vec<bool>,
        /// True if the compensation of gravity counts as an actuator's force.
        jnt_actgravcomp: Vec<bool>,
        /// Solver's reference of the limit.
        jnt_solref: Vec<[f64; 2]>,
        /// Solver's impedance of the limit.
        jnt_solimp: Vec<[f64; 5]>,
        /// Anchor in the body's frame.
        jnt_pos: Vec<[f64; 3]>,
        /// Axis in the body's frame.
        jnt_axis: Vec<[f64; 3]>,
        /// Linear stiffness of the spring.
        jnt_stiffness: Vec<f64>,
        /// Quadratic and cubic stiffness.
        jnt_stiffnesspoly: Vec<[f64; 2]>,
        /// Limits of the position.
        jnt_range: Vec<[f64; 2]>,
        /// Limits of the sum of the actuators' forces.
        jnt_actfrcrange: Vec<[f64; 2]>,
        /// Distance from a limit below which the constraint is active.
        jnt_margin: Vec<f64>,

        /// Body that it moves.
        dof_bodyid: Vec<usize>,
        /// Joint that has it.
        dof_jntid: Vec<usize>,
        /// Previous degree of freedom on the way to the world.
        dof_parentid: Vec<Option<usize>>,
        /// Solver's reference of the friction loss.
        dof_solref: Vec<[f64; 2]>,
        /// Solver's impedance of the friction loss.
        dof_solimp: Vec<[f64; 5]>,
        /// Largest force of dry friction.
        dof_frictionloss: Vec<f64>,
        /// Inertia that is added to the diagonal of the mass matrix.
        dof_armature: Vec<f64>,
        /// Linear damping.
        dof_damping: Vec<f64>,
        /// Quadratic and cubic damping.
        dof_dampingpoly: Vec<[f64; 2]>,
        /// Diagonal of the inverse mass matrix at `qpos0`, averaged over the axes of a joint.
        dof_invweight0: Vec<f64>,
        /// Diagonal of the mass matrix at `qpos0`.
        dof_M0: Vec<f64>,

        /// Type of the geom.
        geom_type: Vec<GeomType>,
        /// Bits that collide with other geoms' affinity.
        geom_contype: Vec<i32>,
        /// Bits that collide with other geoms' type.
        geom_conaffinity: Vec<i32>,
        /// Dimension of a contact: 1, 3, 4 or 6.
        geom_condim: Vec<i32>,
        /// Body of the geom.
        geom_bodyid: Vec<usize>,
        /// Group of the geom.
        geom_group: Vec<i32>,
        /// Priority: the higher one sets the contact's parameters.
        geom_priority: Vec<i32>,
        /// Weight in the mixture of solver parameters.
        geom_solmix: Vec<f64>,
        /// Solver's reference.
        geom_solref: Vec<[f64; 2]>,
        /// Solver's impedance.
        geom_solimp: Vec<[f64; 5]>,
        /// Sizes by type.
        geom_size: Vec<[f64; 3]>,
        /// Radius of a sphere around the geom; 0 for a plane.
        geom_rbound: Vec<f64>,
        /// Position in the body's frame.
        geom_pos: Vec<[f64; 3]>,
        /// Orientation in the body's frame.
        geom_quat: Vec<[f64; 4]>,
        /// Friction: sliding, torsional, rolling.
        geom_friction: Vec<[f64; 3]>,
        /// Distance below which a contact is active.
        geom_margin: Vec<f64>,
        /// Further distance, for the detection of contacts.
        geom_gap: Vec<f64>,

        /// Type of the site.
        site_type: Vec<GeomType>,
        /// Body of the site.
        site_bodyid: Vec<usize>,
        /// Group of the site.
        site_group: Vec<i32>,
        /// Sizes by type.
        site_size: Vec<[f64; 3]>,
        /// Position in the body's frame.
        site_pos: Vec<[f64; 3]>,
        /// Orientation in the body's frame.
        site_quat: Vec<[f64; 4]>,

        /// Dimension of the contact.
        pair_dim: Vec<i32>,
        /// First geom of the pair.
        pair_geom1: Vec<usize>,
        /// Second geom of the pair.
        pair_geom2: Vec<usize>,
        /// Bodies: the first times 65,536 plus the second.
        pair_signature: Vec<usize>,
        /// Solver's reference.
        pair_solref: Vec<[f64; 2]>,
        /// Solver's reference of friction; zeros for `pair_solref`.
        pair_solreffriction: Vec<[f64; 2]>,
        /// Solver's impedance.
        pair_solimp: Vec<[f64; 5]>,
        /// Distance below which the contact is active.
        pair_margin: Vec<f64>,
        /// Further distance, for the detection of the contact.
        pair_gap: Vec<f64>,
        /// Friction: two sliding, one torsional, two rolling.
        pair_friction: Vec<[f64; 5]>,
        /// Two bodies without collisions: the first times 65,536 plus the second.
        exclude_signature: Vec<usize>,

        /// Type of the constraint.
        eq_type: Vec<EqualityType>,
        /// First of both objects.
        eq_obj1id: Vec<usize>,
        /// Second object.
        eq_obj2id: Vec<Option<usize>>,
        /// Kind of both objects.
        eq_objtype: Vec<ObjectType>,
        /// True for a constraint that is active at first.
        eq_active0: Vec<bool>,
        /// Solver's reference.
        eq_solref: Vec<[f64; 2]>,
        /// Solver's impedance.
        eq_solimp: Vec<[f64; 5]>,
        /// Anchors, poses or coefficients.
        eq_data: Vec<[f64; 12]>,

        /// First part of the path.
        tendon_adr: Vec<usize>,
        /// Number of parts of the path.
        tendon_num: Vec<usize>,
        /// True for a tendon with a limit.
        tendon_limited: Vec<bool>,
        /// True if the sum of the actuators' forces has a limit.
        tendon_actfrclimited: Vec<bool>,
        /// Solver's reference of the limit.
        tendon_solref_lim: Vec<[f64; 2]>,
        /// Solver's impedance of the limit.
        tendon_solimp_lim: Vec<[f64; 5]>,
        /// Solver's reference of the friction loss.
        tendon_solref_fri: Vec<[f64; 2]>,
        /// Solver's impedance of the friction loss.
        tendon_solimp_fri: Vec<[f64; 5]>,
        /// Limits of the length.
        tendon_range: Vec<[f64; 2]>,
        /// Limits of the sum of the actuators' forces.
        tendon_actfrcrange: Vec<[f64; 2]>,
        /// Distance from a limit below which the constraint is active.
        tendon_margin: Vec<f64>,
        /// Linear stiffness of the spring.
        tendon_stiffness: Vec<f64>,
        /// Quadratic and cubic stiffness.
        tendon_stiffnesspoly: Vec<[f64; 2]>,
        /// Linear damping.
        tendon_damping: Vec<f64>,
        /// Quadratic and cubic damping.
        tendon_dampingpoly: Vec<[f64; 2]>,
        /// Inertia along the length.
        tendon_armature: Vec<f64>,
        /// Largest force of dry friction.
        tendon_frictionloss: Vec<f64>,
        /// Lengths between which the spring rests.
        tendon_lengthspring: Vec<[f64; 2]>,
        /// Length at `qpos0`.
        tendon_length0: Vec<f64>,
        /// Inverse inertia along the length at `qpos0`.
        tendon_invweight0: Vec<f64>,
        /// Type of a part.
        wrap_type: Vec<WrapType>,
        /// Object of a part.
        wrap_objid: Vec<usize>,
        /// Coefficient of a joint.
        wrap_prm: Vec<f64>,

        /// Object that the actuator acts on.
        actuator_trntype: Vec<TransmissionType>,
        /// Type of dynamics: 0 none, 1 integrator, 2 filter, 3 exact filter.
        actuator_dyntype: Vec<i32>,
        /// Type of gain: 0 fixed, 1 affine.
        actuator_gaintype: Vec<i32>,
        /// Type of bias: 0 none, 1 affine.
        actuator_biastype: Vec<i32>,
        /// Indices of the object.
        actuator_trnid: Vec<[Option<usize>; 2]>,
        /// First activation.
        actuator_actadr: Vec<Option<usize>>,
        /// Number of activations.
        actuator_actnum: Vec<usize>,
        /// True if the control is clamped.
        actuator_ctrllimited: Vec<bool>,
        /// True if the force is clamped.
        actuator_forcelimited: Vec<bool>,
        /// True if the activation is clamped.
        actuator_actlimited: Vec<bool>,
        /// Parameters of the dynamics.
        actuator_dynprm: Vec<[f64; 10]>,
        /// Parameters of the gain.
        actuator_gainprm: Vec<[f64; 10]>,
        /// Parameters of the bias.
        actuator_biasprm: Vec<[f64; 10]>,
        /// True if the force follows the next activation.
        actuator_actearly: Vec<bool>,
        /// Range of the control.
        actuator_ctrlrange: Vec<[f64; 2]>,
        /// Range of the force.
        actuator_forcerange: Vec<[f64; 2]>,
        /// Range of the activation.
        actuator_actrange: Vec<[f64; 2]>,
        /// Scale of length and force; axes for ball and free joints.
        actuator_gear: Vec<[f64; 6]>,
        /// Inertia that is added at the object, times the square of the gear.
        actuator_armature: Vec<f64>,
        /// Linear damping that is added at the object, times the square of the gear.
        actuator_damping: Vec<f64>,
        /// Quadratic and cubic damping.
        actuator_dampingpoly: Vec<[f64; 2]>,
        /// Norm of the acceleration by a unit force at `qpos0`.
        actuator_acc0: Vec<f64>,
        /// Length at `qpos0`.
        actuator_length0: Vec<f64>,

        /// Type, `mjtSensor`.
        sensor_type: Vec<i32>,
        /// Kind of the object.
        sensor_objtype: Vec<ObjectType>,
        /// Object that is read.
        sensor_objid: Vec<Option<usize>>,
        /// Kind of the reference frame's object.
        sensor_reftype: Vec<ObjectType>,
        /// Object of the reference frame; `None` for the world.
        sensor_refid: Vec<Option<usize>>,
        /// Number of values.
        sensor_dim: Vec<usize>,
        /// Index of the first value.
        sensor_adr: Vec<usize>,
        /// Bound of the values; 0 for none.
        sensor_cutoff: Vec<f64>,
        /// Standard deviation of noise, which is not added.
        sensor_noise: Vec<f64>,

        /// Time, in seconds.
        key_time: Vec<f64>,
        /// Positions, `nq` each.
        key_qpos: Vec<Vec<f64>>,
        /// Velocities, `nv` each.
        key_qvel: Vec<Vec<f64>>,
        /// Activations, `na` each.
        key_act: Vec<Vec<f64>>,
        /// Controls, `nu` each.
        key_ctrl: Vec<Vec<f64>>,
    }
    {
        /// Options of the simulation.
        opt: Options,
        /// `stat.meaninertia`: mean of the mass matrix's diagonal at `qpos0`.
        stat_meaninertia: f64,
        /// Names of bodies; empty for those without.
        body_name: Vec<String>,
        /// Names of joints.
        jnt_name: Vec<String>,
        /// Names of geoms.
        geom_name: Vec<String>,
        /// Names of sites.
        site_name: Vec<String>,
        /// Names of tendons.
        tendon_name: Vec<String>,
        /// Names of actuators.
        actuator_name: Vec<String>,
        /// Names of sensors.
        sensor_name: Vec<String>,
        /// Names of keyframes.
        key_name: Vec<String>,
        /// Group for `actuatorgroupdisable`, which switches actuators off.
        actuator_group: Vec<i32>,
        /// Names and numbers of `custom`.
        numerics: Vec<(String, Vec<f64>)>,
    }
}
