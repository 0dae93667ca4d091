//! Enumerations with MuJoCo's numbers.

/// The type of a joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum JointType {
    /// Six degrees of freedom, seven positions: place and quaternion.
    Free = 0,
    /// Three degrees of freedom, a quaternion.
    Ball = 1,
    /// Translation along an axis.
    Slide = 2,
    /// Rotation about an axis.
    Hinge = 3,
}

impl JointType {
    /// Number of positions in `qpos`.
    #[must_use]
    pub fn positions(self) -> usize {
        match self {
            Self::Free => 7,
            Self::Ball => 4,
            Self::Slide | Self::Hinge => 1,
        }
    }

    /// Number of degrees of freedom.
    #[must_use]
    pub fn dofs(self) -> usize {
        match self {
            Self::Free => 6,
            Self::Ball => 3,
            Self::Slide | Self::Hinge => 1,
        }
    }
}

/// The type of a geom or site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum GeomType {
    /// A plane, normal to z.
    Plane = 0,
    /// A sphere: radius.
    Sphere = 2,
    /// A capsule along z: radius, half of the cylinder's length.
    Capsule = 3,
    /// An ellipsoid: three radii.
    Ellipsoid = 4,
    /// A cylinder along z: radius, half of the length.
    Cylinder = 5,
    /// A box: halves of three sides.
    Box = 6,
}

/// The type of an equality constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EqualityType {
    /// A point of one body at a point of another.
    Connect = 0,
    /// A frame of one body at a frame of another.
    Weld = 1,
    /// A polynomial of one joint's position equal to another's.
    Joint = 2,
    /// A polynomial of one tendon's length equal to another's.
    Tendon = 3,
}

/// The object that an actuator acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum TransmissionType {
    /// A joint; rotations in the child's frame.
    Joint = 0,
    /// A joint; rotations in the parent's frame.
    JointInParent = 1,
    /// A tendon of either kind.
    Tendon = 3,
}

/// A part of a tendon's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum WrapType {
    /// A joint with a coefficient.
    Joint = 1,
    /// A site that the path goes through.
    Site = 3,
}

/// The kind of an object that a sensor or constraint names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ObjectType {
    /// No object, or none needed.
    Unknown = 0,
    /// A body's inertial frame.
    Body = 1,
    /// A body's own frame.
    XBody = 2,
    /// A joint of any type.
    Joint = 3,
    /// A geom of any type.
    Geom = 5,
    /// A site of any type.
    Site = 6,
    /// A tendon of either kind.
    Tendon = 18,
    /// An actuator of any type.
    Actuator = 19,
}
