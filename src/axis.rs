//! Points of a learning curve, and the ends of a vertical axis, for charts and for the terminal.

/// A point of the learning curve: environment steps, and the mean return of at least the last 100
/// episodes.
pub type Point = (u64, f64);

/// The least and the greatest of the values. 0 replaces one of them if the values fill at least
/// half of the resulting range. `None` without values.
pub(crate) fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let reaches = |end: f64, other: f64| (other - end).abs() >= 0.5 * other.abs();
    if low > high {
        None
    } else if low >= 0.0 && reaches(low, high) {
        Some((0.0, high))
    } else if high <= 0.0 && reaches(high, low) {
        Some((low, 0.0))
    } else {
        Some((low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_or_ends_at_0_where_that_costs_little() {
        let of = |values: &[f64]| ends(values.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[20.0, 500.0]), Some((0.0, 500.0)));
        assert_eq!(of(&[-1200.0, -150.0]), Some((-1200.0, 0.0)));
        // With 0 as an end, more than half of the axis would be empty.
        assert_eq!(of(&[490.0, 500.0]), Some((490.0, 500.0)));
        assert_eq!(of(&[-1.0, 1.0]), Some((-1.0, 1.0)));
    }
}
