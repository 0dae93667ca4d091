//! Reference values of special functions that `libm` lacks.

/// The inverse of the error function, to about the precision of f64.
pub(super) fn inverse_error_function(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return x * f64::INFINITY;
    }
    // Winitzki's approximation gives two digits; then each step of Halley's method triples the
    // digits.
    let a = 0.147;
    let log = libm::log1p(-x * x);
    let half = 2.0 / (std::f64::consts::PI * a) + log / 2.0;
    let mut y = libm::sqrt(libm::sqrt(half * half - log / a) - half).copysign(x);
    for _ in 0..4 {
        // The tail is exact where the error function itself has no digits left.
        let error = match x {
            x if x > 0.5 => (1.0 - x) - libm::erfc(y),
            x if x < -0.5 => libm::erfc(-y) - (1.0 + x),
            x => libm::erf(y) - x,
        };
        let newton = error / (std::f64::consts::FRAC_2_SQRT_PI * libm::exp(-y * y));
        y -= newton / (1.0 + y * newton);
    }
    y
}

#[cfg(test)]
mod tests {
    use super::inverse_error_function;

    #[test]
    fn inverts_the_error_function() {
        for y in [0.0, 1e-9, 0.01, 0.3, 0.476, 0.477, 1.0, 2.5, 4.0] {
            for y in [y, -y] {
                let got = inverse_error_function(libm::erf(y));
                // Near 1, the argument itself has few digits of its distance to 1.
                let conditioning = 1e-16 * libm::exp(y * y);
                assert!((got - y).abs() <= 4e-16 * y.abs() + conditioning, "{y}: {got}");
            }
        }
    }
}
