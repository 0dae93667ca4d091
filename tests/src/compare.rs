//! Distances between two arrays.

use podracer_compiler::{Array, Scalar};

/// Says where `got` is not `expected`, or nothing. A tolerance of 0 asks for equal bits, but any NaN for a NaN; above, floats may
/// differ by `tolerance * max(1, |expected|)`, infinities must be equal, and integers and bools are exact as ever.
pub fn difference(expected: &Array, got: &Array, tolerance: f64) -> Option<String> {
    if expected.ty() != got.ty() {
        return Some(format!("expected {}, got {}", expected.ty(), got.ty()));
    }
    let wrong: Vec<usize> = (0..expected.ty().elements())
        .filter(|&i| !close(expected.get(i), got.get(i), tolerance))
        .collect();
    let &first = wrong.first()?;
    let (a, b) = (expected.get(first), got.get(first));
    let (count, all) = (wrong.len(), expected.ty().elements());
    Some(format!(
        "{count} of {all} elements of {} differ, first element {first}: expected {a:?}, got {b:?}",
        expected.ty()
    ))
}

/// [`difference`] of the results of a function, one after the other.
pub fn differences(expected: &[Array], got: &[Array], tolerance: f64) -> Option<String> {
    if expected.len() != got.len() {
        return Some(format!("expected {} results, got {}", expected.len(), got.len()));
    }
    let one = |(i, (a, b)): (usize, (&Array, &Array))| {
        Some(format!("result {i}: {}", difference(a, b, tolerance)?))
    };
    expected.iter().zip(got).enumerate().find_map(one)
}

/// Distance of an f32 from the expected one, in units in the last place of the latter. Denormal numbers are 0, as XLA has
/// them; numbers that are equal, and two NaN, are 0 apart, and a number is infinitely far from NaN and infinity.
pub fn ulps(expected: f64, got: f64) -> f64 {
    let flushed = |x: f64| if x.abs() < f64::from(f32::MIN_POSITIVE) { 0.0 } else { x };
    let (a, b) = (flushed(expected), flushed(got));
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    if !a.is_finite() || !b.is_finite() {
        return f64::INFINITY;
    }
    let magnitude = (a.abs() as f32).max(f32::MIN_POSITIVE);
    (a - b).abs() / f64::from(magnitude.next_up() - magnitude)
}

fn close(expected: Scalar, got: Scalar, tolerance: f64) -> bool {
    match (expected, got) {
        (Scalar::Float(a), Scalar::Float(b))
            if tolerance > 0.0 && a.is_finite() && b.is_finite() =>
        {
            (a - b).abs() <= tolerance * a.abs().max(1.0)
        }
        _ => expected == got,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podracer_compiler::DType;

    fn f32s(values: &[f64]) -> Array {
        Array::floats(DType::F32, [values.len()], values)
    }

    #[test]
    fn bits_are_compared_where_nothing_else_is_allowed() {
        assert_eq!(difference(&f32s(&[f64::NAN, 1.0]), &f32s(&[-f64::NAN, 1.0]), 0.0), None);
        assert!(difference(&f32s(&[0.0]), &f32s(&[-0.0]), 0.0).is_some());
        assert_eq!(difference(&f32s(&[0.0]), &f32s(&[-0.0]), 1e-6), None);
    }

    #[test]
    fn ulps_count_the_numbers_between() {
        assert_eq!(ulps(1.0, f64::from(1.0f32.next_up().next_up())), 2.0);
        assert_eq!(ulps(-0.0, 1e-40), 0.0);
        assert_eq!(ulps(f64::NAN, f64::NAN), 0.0);
        assert_eq!(ulps(f64::INFINITY, 3e38), f64::INFINITY);
    }

    #[test]
    fn tolerances_are_relative_above_one() {
        assert_eq!(difference(&f32s(&[100.0]), &f32s(&[100.5]), 1e-2), None);
        assert!(difference(&f32s(&[0.01]), &f32s(&[0.03]), 1e-2).is_some());
        assert!(difference(&f32s(&[f64::INFINITY]), &f32s(&[1e30]), 1e-2).is_some());
        assert!(difference(&f32s(&[f64::NAN]), &f32s(&[0.0]), 1e-2).is_some());
    }
}
