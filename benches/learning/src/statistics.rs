//! Means and their intervals.

/// The 97.5 % quantiles of Student's t with 1, 2, .. degrees of freedom.
const QUANTILES: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Greatest number of values with an interval.
pub const MOST_VALUES: usize = QUANTILES.len() + 1;

/// The mean of some values, and the half-width of its 95 % interval by Student's t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Mean of the values.
    pub mean: f64,
    /// Half of the interval's width; `None` of a single value, which says nothing about the spread.
    pub half_width: Option<f64>,
}

impl Mean {
    /// The mean of `values`, at most [`MOST_VALUES`] of them; `None` without any.
    pub fn of(values: &[f64]) -> Option<Mean> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let half_width = values.len().checked_sub(2).and_then(|index| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / (n - 1.0)).sqrt();
            Some(QUANTILES.get(index)? * deviation / n.sqrt())
        });
        Some(Mean { mean, half_width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        // 1..5: deviation sqrt(2.5), t = 2.776 with four degrees of freedom.
        let five = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are values");
        assert_eq!(five.mean, 3.0);
        let half_width = five.half_width.expect("there are several");
        assert!((half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12, "{half_width}");
        assert_eq!(Mean::of(&[7.0]), Some(Mean { mean: 7.0, half_width: None }));
        assert_eq!(Mean::of(&[]), None);
        assert!(Mean::of(&[1.0; MOST_VALUES]).expect("there are values").half_width == Some(0.0));
    }
}
