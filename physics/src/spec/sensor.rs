//! The table of sensors.

/// The objects that a sensor reads, with the attribute that names the object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reads {
    Site,
    Joint,
    /// A joint of type ball.
    Ball,
    /// A hinge or slide joint.
    Scalar,
    Tendon,
    Actuator,
    Body,
    /// `objtype` and `objname`, perhaps with `reftype` and `refname`.
    Frame,
    Nothing,
}

/// Name, MuJoCo's number, number of values, object.
pub(crate) const SENSORS: &[(&str, i32, usize, Reads)] = &[
    ("touch", 0, 1, Reads::Site),
    ("accelerometer", 1, 3, Reads::Site),
    ("velocimeter", 2, 3, Reads::Site),
    ("gyro", 3, 3, Reads::Site),
    ("force", 4, 3, Reads::Site),
    ("torque", 5, 3, Reads::Site),
    ("magnetometer", 6, 3, Reads::Site),
    ("jointpos", 9, 1, Reads::Scalar),
    ("jointvel", 10, 1, Reads::Scalar),
    ("tendonpos", 11, 1, Reads::Tendon),
    ("tendonvel", 12, 1, Reads::Tendon),
    ("actuatorpos", 13, 1, Reads::Actuator),
    ("actuatorvel", 14, 1, Reads::Actuator),
    ("actuatorfrc", 15, 1, Reads::Actuator),
    ("jointactuatorfrc", 16, 1, Reads::Scalar),
    ("tendonactuatorfrc", 17, 1, Reads::Tendon),
    ("ballquat", 18, 4, Reads::Ball),
    ("ballangvel", 19, 3, Reads::Ball),
    ("jointlimitpos", 20, 1, Reads::Joint),
    ("jointlimitvel", 21, 1, Reads::Joint),
    ("jointlimitfrc", 22, 1, Reads::Joint),
    ("tendonlimitpos", 23, 1, Reads::Tendon),
    ("tendonlimitvel", 24, 1, Reads::Tendon),
    ("tendonlimitfrc", 25, 1, Reads::Tendon),
    ("framepos", 26, 3, Reads::Frame),
    ("framequat", 27, 4, Reads::Frame),
    ("framexaxis", 28, 3, Reads::Frame),
    ("frameyaxis", 29, 3, Reads::Frame),
    ("framezaxis", 30, 3, Reads::Frame),
    ("framelinvel", 31, 3, Reads::Frame),
    ("frameangvel", 32, 3, Reads::Frame),
    ("framelinacc", 33, 3, Reads::Frame),
    ("frameangacc", 34, 3, Reads::Frame),
    ("subtreecom", 35, 3, Reads::Body),
    ("subtreelinvel", 36, 3, Reads::Body),
    ("subtreeangmom", 37, 3, Reads::Body),
    ("e_potential", 43, 1, Reads::Nothing),
    ("e_kinetic", 44, 1, Reads::Nothing),
    ("clock", 45, 1, Reads::Nothing),
];
