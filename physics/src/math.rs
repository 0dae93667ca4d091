//! Vectors, quaternions (`w x y z`), rotations and symmetric matrices in `f64`.

pub(crate) type Vec3 = [f64; 3];
pub(crate) type Quat = [f64; 4];
/// A matrix, as rows.
pub(crate) type Mat3 = [[f64; 3]; 3];

pub(crate) const IDENTITY: Quat = [1.0, 0.0, 0.0, 0.0];

/// Numbers below this are zero for MuJoCo.
pub(crate) const TINY: f64 = 1e-15;

pub(crate) fn add(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] + b[i])
}

pub(crate) fn sub(a: Vec3, b: Vec3) -> Vec3 {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(crate) fn scale(a: Vec3, by: f64) -> Vec3 {
    a.map(|x| x * by)
}

pub(crate) fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn norm(a: &[f64]) -> f64 {
    a.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The unit vector of the same direction, or `None` for a vector without one.
pub(crate) fn unit<const N: usize>(a: [f64; N]) -> Option<[f64; N]> {
    let length = norm(&a);
    (length > 1e-14 && length.is_finite()).then(|| a.map(|x| x / length))
}

/// Hamilton's product.
pub(crate) fn mul(a: Quat, b: Quat) -> Quat {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

pub(crate) fn conjugate(q: Quat) -> Quat {
    [q[0], -q[1], -q[2], -q[3]]
}

pub(crate) fn about(axis: Vec3, angle: f64) -> Quat {
    let (sin, cos) = (0.5 * angle).sin_cos();
    [cos, axis[0] * sin, axis[1] * sin, axis[2] * sin]
}

pub(crate) fn matrix(q: Quat) -> Mat3 {
    let [w, x, y, z] = q;
    [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
}

pub(crate) fn rotate(m: &Mat3, v: Vec3) -> Vec3 {
    [dot(m[0], v), dot(m[1], v), dot(m[2], v)]
}

pub(crate) fn column(m: &Mat3, j: usize) -> Vec3 {
    [m[0][j], m[1][j], m[2][j]]
}

/// The quaternion of a rotation with these columns. The largest of its components is positive.
pub(crate) fn from_axes(x: Vec3, y: Vec3, z: Vec3) -> Quat {
    let diagonal = [x[0], y[1], z[2]];
    let trace = diagonal.iter().sum::<f64>();
    // Twice the vector part times the real part, and the symmetric sums.
    let skew = [y[2] - z[1], z[0] - x[2], x[1] - y[0]];
    if trace > 0.0 {
        let w = 0.5 * (1.0 + trace).sqrt();
        let by = 0.25 / w;
        return [w, skew[0] * by, skew[1] * by, skew[2] * by];
    }
    let m = [x, y, z];
    let mut i = 0;
    for k in 1..3 {
        if diagonal[k] > diagonal[i] {
            i = k;
        }
    }
    let (j, k) = ((i + 1) % 3, (i + 2) % 3);
    let largest = 0.5 * (1.0 + diagonal[i] - diagonal[j] - diagonal[k]).max(0.0).sqrt();
    let by = 0.25 / largest;
    let mut q = [skew[i] * by, 0.0, 0.0, 0.0];
    q[1 + i] = largest;
    q[1 + j] = (m[i][j] + m[j][i]) * by;
    q[1 + k] = (m[i][k] + m[k][i]) * by;
    q
}

/// The shortest rotation that takes the z axis to a direction; about x if they are opposite.
pub(crate) fn from_z(direction: Vec3) -> Quat {
    let z = [0.0, 0.0, 1.0];
    let direction = unit(direction).unwrap_or(z);
    let across = cross(z, direction);
    let sin = norm(&across);
    let axis = if sin < 1e-14 { [1.0, 0.0, 0.0] } else { scale(across, 1.0 / sin) };
    about(axis, sin.atan2(direction[2]))
}

/// Principal values of a symmetric matrix in descending order, and the rotation of the principal axes.
///
/// Jacobi's method on a quaternion: MuJoCo's choice, so that signs and order of the axes agree with it.
pub(crate) fn principal(m: Mat3) -> (Vec3, Quat) {
    let mut q = IDENTITY;
    let mut values = [0.0; 3];
    for _ in 0..500 {
        let axes = matrix(q);
        let d = congruence(&axes, &m);
        values = [d[0][0], d[1][1], d[2][2]];
        let (mut row, mut col) = (1, 2);
        for (i, j) in [(0, 2), (0, 1)] {
            if d[i][j].abs() > d[row][col].abs() {
                (row, col) = (i, j);
            }
        }
        let off = d[row][col];
        if off.abs() < 1e-12 {
            break;
        }
        let ratio = (d[col][col] - d[row][row]) / (2.0 * off);
        let root = (1.0 + ratio * ratio).sqrt();
        let tangent = if ratio >= 0.0 { 1.0 / (ratio + root) } else { -1.0 / (root - ratio) };
        let about_axis = 3 - row - col;
        let mut axis = [0.0; 3];
        axis[about_axis] = if about_axis == 1 { 1.0 } else { -1.0 };
        let turn = about(axis, tangent.atan());
        q = unit(mul(q, turn)).unwrap_or(IDENTITY);
    }
    for j in [0, 1, 0] {
        if values[j] + 1e-14 < values[j + 1] {
            values.swap(j, j + 1);
            let mut turn = [std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0, 0.0];
            turn[1 + (j + 2) % 3] = turn[0];
            q = unit(mul(q, turn)).unwrap_or(IDENTITY);
        }
    }
    (values, q)
}

/// `axes^T m axes`.
pub(crate) fn congruence(axes: &Mat3, m: &Mat3) -> Mat3 {
    let images: [Vec3; 3] = std::array::from_fn(|j| rotate(m, column(axes, j)));
    std::array::from_fn(|i| std::array::from_fn(|j| dot(column(axes, i), images[j])))
}

/// `axes diag(values) axes^T`.
pub(crate) fn diagonal_in(axes: &Mat3, values: Vec3) -> Mat3 {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| (0..3).map(|k| axes[i][k] * values[k] * axes[j][k]).sum())
    })
}

/// A symmetric positive definite matrix, factored.
pub(crate) struct Cholesky {
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// The factor, or the index of the first pivot that is not positive, or that rounding alone makes positive.
    pub(crate) fn new(m: &[Vec<f64>]) -> Result<Cholesky, usize> {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(m.len());
        for (i, given) in m.iter().enumerate() {
            let mut row = vec![0.0; i + 1];
            for j in 0..=i {
                let known = (0..j).map(|k| row[k] * if j == i { row[k] } else { rows[j][k] });
                let rest = given[j] - known.sum::<f64>();
                row[j] = if i != j {
                    rest / rows[j][j]
                } else if rest > TINY.max(1e-12 * given[i]) && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return Err(i);
                };
            }
            rows.push(row);
        }
        Ok(Cholesky { rows })
    }

    /// `x` with `m x = b`.
    pub(crate) fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.rows.len();
        let mut x = b.to_vec();
        for i in 0..n {
            let known = (0..i).map(|k| self.rows[i][k] * x[k]).sum::<f64>();
            x[i] = (x[i] - known) / self.rows[i][i];
        }
        for i in (0..n).rev() {
            let known = (i + 1..n).map(|k| self.rows[k][i] * x[k]).sum::<f64>();
            x[i] = (x[i] - known) / self.rows[i][i];
        }
        x
    }
}
