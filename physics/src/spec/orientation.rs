//! Orientations of frames, in MJCF's five forms.

use super::compiler::Compiler;
use crate::ModelResult;
use crate::math::{
    IDENTITY, Quat, Vec3, about, cross, dot, from_axes, from_z, mul, scale, sub, unit,
};
use crate::mjcf::Element;

/// The form of an orientation that is no quaternion.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    AxisAngle([f64; 4]),
    XyAxes([f64; 6]),
    ZAxis(Vec3),
    Euler(Vec3),
}

/// An orientation as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Orientation {
    quat: Quat,
    form: Option<Form>,
}

impl Default for Orientation {
    fn default() -> Self {
        Self { quat: IDENTITY, form: None }
    }
}

impl Orientation {
    /// Overwrites the orientation by an element's. Returns whether the element has one.
    pub(crate) fn apply(&mut self, element: &Element) -> ModelResult<bool> {
        let forms = ["quat", "axisangle", "xyaxes", "zaxis", "euler"];
        let mut given = forms.iter().filter(|form| element.attribute(form).is_some());
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            let message = format!("`{first}` and `{second}` both turn the frame: leave one out");
            return Err(element.invalid(message));
        }
        let mut has = element.set("quat", &mut self.quat)?;
        let others = [
            element.get("axisangle")?.map(Form::AxisAngle),
            element.get("xyaxes")?.map(Form::XyAxes),
            element.get("zaxis")?.map(Form::ZAxis),
            element.get("euler")?.map(Form::Euler),
        ];
        if let Some(form) = others.into_iter().flatten().next() {
            self.form = Some(form);
            has = true;
        }
        Ok(has)
    }

    /// The unit quaternion.
    ///
    /// # Errors
    /// Axes without a direction.
    pub(crate) fn quat(&self, element: &Element, compiler: &Compiler) -> ModelResult<Quat> {
        match self.form {
            None => unit(self.quat)
                .ok_or_else(|| element.fault("quat", "a quaternion of positive length")),
            Some(Form::AxisAngle([x, y, z, angle])) => {
                let axis = super::direction(element, "axisangle", [x, y, z])?;
                Ok(about(axis, compiler.radians(angle)))
            }
            Some(Form::XyAxes([a, b, c, d, e, f])) => {
                let fault = || element.fault("xyaxes", "two vectors that span a plane");
                let x = unit([a, b, c]).ok_or_else(fault)?;
                let y = [d, e, f];
                let y = unit(sub(y, scale(x, dot(x, y)))).ok_or_else(fault)?;
                Ok(unit(from_axes(x, y, cross(x, y))).unwrap_or(IDENTITY))
            }
            Some(Form::ZAxis(z)) => Ok(from_z(super::direction(element, "zaxis", z)?)),
            Some(Form::Euler(angles)) => {
                let mut quat = IDENTITY;
                for (letter, angle) in compiler.euler_sequence.into_iter().zip(angles) {
                    let mut axis = [0.0; 3];
                    axis[usize::from(letter.to_ascii_lowercase() - b'x')] = 1.0;
                    let turn = about(axis, compiler.radians(angle));
                    // Lower case turns about the moving axes, upper case about the parent's.
                    quat =
                        if letter.is_ascii_lowercase() { mul(quat, turn) } else { mul(turn, quat) };
                }
                Ok(unit(quat).unwrap_or(IDENTITY))
            }
        }
    }
}
