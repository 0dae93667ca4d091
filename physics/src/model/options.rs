//! Options of the simulation.

use super::fields::with_fields;

with_fields! {
    /// `mujoco.MjOption`: options of the simulation.
    #[derive(Clone, Debug, PartialEq)]
    Options {
        /// Seconds of a step.
        timestep: f64,
        /// Ratio of the impedances of friction and normal force, for elliptic cones.
        impratio: f64,
        /// Stopping tolerance of the solver.
        tolerance: f64,
        /// Tolerance of the line search.
        ls_tolerance: f64,
        /// Tolerance of the solver without slip.
        noslip_tolerance: f64,
        /// Tolerance of the convex collider.
        ccd_tolerance: f64,
        /// Velocity below which a tree may sleep.
        sleep_tolerance: f64,
        /// Gravity, in m/s^2.
        gravity: [f64; 3],
        /// Velocity of the medium, in m/s.
        wind: [f64; 3],
        /// Magnetic flux.
        magnetic: [f64; 3],
        /// Density of the medium, in kg/m^3.
        density: f64,
        /// Viscosity of the medium.
        viscosity: f64,
        /// 0 Euler, 1 RK4, 2 implicit, 3 implicitfast, 4 discrete.
        integrator: i32,
        /// 0 pyramidal, 1 elliptic.
        cone: i32,
        /// 0 dense, 1 sparse, 2 automatic.
        jacobian: i32,
        /// 0 PGS, 1 CG, 2 Newton.
        solver: i32,
        /// Most iterations of the solver.
        iterations: i32,
        /// Most iterations of the line search.
        ls_iterations: i32,
        /// Most iterations of the solver without slip.
        noslip_iterations: i32,
        /// Most iterations of the convex collider.
        ccd_iterations: i32,
        /// Bits of the disabled parts, `mjtDisableBit`.
        disableflags: i32,
        /// Bits of the enabled parts, `mjtEnableBit`.
        enableflags: i32,
        /// Bits of the disabled groups of actuators.
        disableactuator: i32,
        /// Starting points of gradient descents on signed distances.
        sdf_initpoints: i32,
        /// Most iterations of gradient descents on signed distances.
        sdf_iterations: i32,
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timestep: 0.002,
            impratio: 1.0,
            tolerance: 1e-8,
            ls_tolerance: 0.01,
            noslip_tolerance: 1e-6,
            ccd_tolerance: 1e-6,
            sleep_tolerance: 1e-3,
            gravity: [0.0, 0.0, -9.81],
            wind: [0.0; 3],
            magnetic: [0.0, -0.5, 0.0],
            density: 0.0,
            viscosity: 0.0,
            integrator: 0,
            cone: 0,
            jacobian: 2,
            solver: 2,
            iterations: 100,
            ls_iterations: 50,
            noslip_iterations: 0,
            ccd_iterations: 35,
            disableflags: 0,
            enableflags: 0,
            disableactuator: 0,
            sdf_initpoints: 40,
            sdf_iterations: 10,
        }
    }
}
