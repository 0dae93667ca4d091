//! Options of the simulation: `option` and `flag`.

use crate::ModelResult;
use crate::mjcf::Element;
use crate::model::Options;

/// Parts of the simulation that a flag disables, with MuJoCo's bits.
const DISABLED: &[(&str, i32)] = &[
    ("constraint", 1),
    ("equality", 1 << 1),
    ("frictionloss", 1 << 2),
    ("limit", 1 << 3),
    ("contact", 1 << 4),
    ("spring", 1 << 5),
    ("damper", 1 << 6),
    ("gravity", 1 << 7),
    ("clampctrl", 1 << 8),
    ("warmstart", 1 << 9),
    ("filterparent", 1 << 10),
    ("actuation", 1 << 11),
    ("refsafe", 1 << 12),
    ("sensor", 1 << 13),
    ("midphase", 1 << 14),
    ("eulerdamp", 1 << 15),
    ("autoreset", 1 << 16),
    ("nativeccd", 1 << 17),
    ("island", 1 << 18),
    ("multiccd", 1 << 19),
];

/// Parts of the simulation that a flag enables.
const ENABLED: &[(&str, i32)] = &[("energy", 1 << 1), ("fwdinv", 1 << 2), ("invdiscrete", 1 << 3)];

pub(super) fn apply(options: &mut Options, element: &Element) -> ModelResult<()> {
    let o = options;
    let numbers = [
        ("timestep", &mut o.timestep),
        ("impratio", &mut o.impratio),
        ("tolerance", &mut o.tolerance),
        ("ls_tolerance", &mut o.ls_tolerance),
        ("noslip_tolerance", &mut o.noslip_tolerance),
        ("ccd_tolerance", &mut o.ccd_tolerance),
        ("sleep_tolerance", &mut o.sleep_tolerance),
        ("density", &mut o.density),
        ("viscosity", &mut o.viscosity),
    ];
    for (name, value) in numbers {
        if element.set(name, value)? && *value < 0.0 {
            return Err(element.fault(name, "a number that is not negative"));
        }
    }
    for (name, value) in
        [("gravity", &mut o.gravity), ("wind", &mut o.wind), ("magnetic", &mut o.magnetic)]
    {
        element.set(name, value)?;
    }
    let counts = [
        ("iterations", &mut o.iterations),
        ("ls_iterations", &mut o.ls_iterations),
        ("noslip_iterations", &mut o.noslip_iterations),
        ("ccd_iterations", &mut o.ccd_iterations),
        ("sdf_iterations", &mut o.sdf_iterations),
        ("sdf_initpoints", &mut o.sdf_initpoints),
    ];
    for (name, value) in counts {
        if element.set(name, value)? && *value < 0 {
            return Err(element.fault(name, "an integer that is not negative"));
        }
    }
    let integrators =
        &[("Euler", 0), ("RK4", 1), ("implicit", 2), ("implicitfast", 3), ("discrete", 4)];
    element.set_choice("integrator", integrators, &mut o.integrator)?;
    element.set_choice("cone", &[("pyramidal", 0), ("elliptic", 1)], &mut o.cone)?;
    element.set_choice("jacobian", &[("dense", 0), ("sparse", 1), ("auto", 2)], &mut o.jacobian)?;
    element.set_choice("solver", &[("PGS", 0), ("CG", 1), ("Newton", 2)], &mut o.solver)?;
    if let Some(groups) = element.get::<Vec<i32>>("actuatorgroupdisable")? {
        for group in groups {
            if !(0..31).contains(&group) {
                return Err(element.fault("actuatorgroupdisable", "integers from 0 to 30"));
            }
            o.disableactuator |= 1 << group;
        }
    }
    for flag in element.all("flag") {
        let words = &[("enable", true), ("disable", false)];
        for &(name, bit) in DISABLED {
            match flag.choice(name, words)? {
                Some(true) => o.disableflags &= !bit,
                Some(false) => o.disableflags |= bit,
                None => {}
            }
        }
        for &(name, bit) in ENABLED {
            match flag.choice(name, words)? {
                Some(true) => o.enableflags |= bit,
                Some(false) => o.enableflags &= !bit,
                None => {}
            }
        }
    }
    Ok(())
}
