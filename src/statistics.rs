//! Statistics of a few numbers, such as the returns of several seeds.

/// The mean; `None` of no numbers.
pub(crate) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The variance of the distribution that a sample comes from; `None` of fewer than two numbers.
pub(crate) fn variance(sample: &[f64]) -> Option<f64> {
    let centre = mean(sample).filter(|_| sample.len() > 1)?;
    let squares = sample.iter().map(|number| (number - centre).powi(2));
    Some(squares.sum::<f64>() / (sample.len() - 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_a_mean_and_with_two_numbers_a_variance() {
        assert_eq!((mean(&[]), variance(&[])), (None, None));
        assert_eq!((mean(&[3.0]), variance(&[3.0])), (Some(3.0), None));
        assert_eq!((mean(&[1.0, 2.0, 3.0]), variance(&[1.0, 2.0, 3.0])), (Some(2.0), Some(1.0)));
    }
}
