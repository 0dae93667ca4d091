//! Settings of the compiler: `compiler`.

use crate::ModelResult;
use crate::mjcf::Element;

/// The source of a body's mass and inertia.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FromGeom {
    /// The element `inertial` alone.
    False,
    /// The geoms alone.
    True,
    /// The geoms if the body has no `inertial`.
    Auto,
}

/// Settings that are gone after compilation.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    pub(crate) degree: bool,
    pub(crate) euler_sequence: [u8; 3],
    pub(crate) autolimits: bool,
    pub(crate) bound_mass: f64,
    pub(crate) bound_inertia: f64,
    pub(crate) total_mass: f64,
    pub(crate) balance_inertia: bool,
    pub(crate) inertia_from_geom: FromGeom,
    pub(crate) inertia_groups: [i32; 2],
}

impl Default for Compiler {
    fn default() -> Self {
        Self {
            degree: true,
            euler_sequence: *b"xyz",
            autolimits: true,
            bound_mass: 0.0,
            bound_inertia: 0.0,
            total_mass: -1.0,
            balance_inertia: false,
            inertia_from_geom: FromGeom::Auto,
            inertia_groups: [0, 5],
        }
    }
}

impl Compiler {
    pub(super) fn apply(&mut self, element: &Element) -> ModelResult<()> {
        element.set_choice("angle", &[("degree", true), ("radian", false)], &mut self.degree)?;
        // Global coordinates are gone from MuJoCo, too.
        element.choice("coordinate", &[("local", ())])?;
        if let Some(sequence) = element.text("eulerseq") {
            let axes = |byte: &u8| b"xyzXYZ".contains(byte);
            match <[u8; 3]>::try_from(sequence.as_bytes()) {
                Ok(sequence) if sequence.iter().all(axes) => self.euler_sequence = sequence,
                _ => return Err(element.fault("eulerseq", "three letters of xyzXYZ")),
            }
        }
        element.set("autolimits", &mut self.autolimits)?;
        for (name, bound) in
            [("boundmass", &mut self.bound_mass), ("boundinertia", &mut self.bound_inertia)]
        {
            element.set(name, bound)?;
            if *bound < 0.0 {
                return Err(element.fault(name, "a number that is not negative"));
            }
        }
        element.set("settotalmass", &mut self.total_mass)?;
        element.set("balanceinertia", &mut self.balance_inertia)?;
        let sources =
            &[("false", FromGeom::False), ("true", FromGeom::True), ("auto", FromGeom::Auto)];
        element.set_choice("inertiafromgeom", sources, &mut self.inertia_from_geom)?;
        element.set("inertiagrouprange", &mut self.inertia_groups)?;
        Ok(())
    }

    /// An angle as written, in radians.
    pub(crate) fn radians(&self, angle: f64) -> f64 {
        if self.degree { angle / 180.0 * std::f64::consts::PI } else { angle }
    }
}
