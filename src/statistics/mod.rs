//! Statistics of a few numbers, such as the returns of several seeds.

#[cfg(feature = "plots")]
pub(crate) mod study;

use std::fmt;

use podracer_envs::host::Random;
use serde::Serialize;

/// Number of resamplings of a bootstrap.
const DRAWS: usize = 2_000;

/// A statistic of some numbers, with the ends of its 95% interval if there are at least two
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl fmt::Display for Estimate {
    /// Two decimals: `451.04 (410.12 to 482.76)`, or `451.04` without an interval.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Estimate { value, low: Some(low), high: Some(high) } => {
                write!(f, "{value:.2} ({low:.2} to {high:.2})")
            }
            Estimate { value, .. } => write!(f, "{value:.2}"),
        }
    }
}

/// A summary of several numbers; `None` without numbers.
pub(crate) type Statistic = fn(&[f64]) -> Option<f64>;

/// The mean; `None` without numbers.
pub(crate) fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The interquartile mean, without the lowest and the highest quarter of the numbers, rounded down
/// (Agarwal et al. 2021, as in rliable); `None` without numbers.
pub(crate) fn interquartile_mean(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    mean(&sorted[cut..sorted.len() - cut])
}

/// A statistic with the 95% interval of the percentile bootstrap, which resamples the numbers with
/// replacement 2,000 times. Equal numbers give equal intervals. `None` without numbers, and no
/// interval for a single number.
pub(crate) fn estimate(numbers: &[f64], statistic: Statistic) -> Option<Estimate> {
    estimate_of(numbers, statistic, draws(numbers.len()))
}

/// [`estimate`] for several samples of one size, such as the points of a curve: they share the
/// draws, which are made once.
#[cfg(feature = "plots")]
pub(crate) struct Bootstrap(Vec<u32>);

#[cfg(feature = "plots")]
impl Bootstrap {
    /// The draws for samples of `size` numbers.
    pub(crate) fn of(size: usize) -> Self {
        Bootstrap(if size > 1 {
            draws(size).map(|drawn| drawn as u32).collect()
        } else {
            Vec::new()
        })
    }

    /// [`estimate`] for a sample of the size of the draws.
    pub(crate) fn estimate(&self, numbers: &[f64], statistic: Statistic) -> Option<Estimate> {
        estimate_of(numbers, statistic, self.0.iter().map(|drawn| *drawn as usize))
    }
}

/// The indices of the numbers that are drawn from `size` numbers, one draw after another.
fn draws(size: usize) -> impl Iterator<Item = usize> {
    let mut random = Random::from_state(0);
    (0..DRAWS * size).map(move |_| random.below(size))
}

fn estimate_of(
    numbers: &[f64],
    statistic: Statistic,
    mut places: impl Iterator<Item = usize>,
) -> Option<Estimate> {
    let value = statistic(numbers)?;
    if numbers.len() < 2 {
        return Some(Estimate { value, low: None, high: None });
    }
    let mut sample = vec![0.0; numbers.len()];
    let draw = |_| {
        let drawn = sample.iter_mut().zip(&mut places);
        drawn.for_each(|(number, place)| *number = numbers[place]);
        statistic(&sample).unwrap_or(f64::NAN)
    };
    let [low, high] = percentiles((0..DRAWS).map(draw).collect());
    Some(Estimate { value, low: Some(low), high: Some(high) })
}

/// The ends of the 95% interval of the numbers of a bootstrap.
fn percentiles(mut drawn: Vec<f64>) -> [f64; 2] {
    [0.025, 0.975].map(|share| {
        let place = ((drawn.len() - 1) as f64 * share).round() as usize;
        *drawn.select_nth_unstable_by(place, f64::total_cmp).1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_a_mean() {
        assert_eq!([mean(&[]), mean(&[3.0]), mean(&[1.0, 3.0])], [None, Some(3.0), Some(2.0)]);
    }

    /// A single run has no interval.
    #[test]
    fn a_single_run_has_no_interval() {
        let one = estimate(&[437.93], mean).expect("there is a run");
        assert_eq!(one, Estimate { value: 437.93, low: None, high: None });
        assert_eq!(one.to_string(), "437.93");
        let two = estimate(&[1.0, 2.0], mean).expect("there are runs");
        assert_eq!(two.to_string(), "1.50 (1.00 to 2.00)");
    }

    /// The values of `scipy.stats.trim_mean(runs, 0.25)`, which rliable takes.
    #[test]
    fn quarters_at_the_ends_are_left_out() {
        assert_eq!(interquartile_mean(&[1.0, 2.0, 3.0, 100.0]), Some(2.5));
        assert_eq!(interquartile_mean(&[5.0, 1.0, 2.0, 3.0, 100.0]), Some(10.0 / 3.0));
        assert_eq!(interquartile_mean(&[7.0, 1.0, 4.0]), Some(4.0));
        let sixteen: Vec<f64> = (0..16).map(|i| f64::from(i * i)).collect();
        assert_eq!(interquartile_mean(&sixteen), Some(61.5));
    }

    /// Values and intervals from `get_interval_estimates` of rliable 1.2.0 with 50,000 draws, for
    /// 16 runs of one task.
    #[test]
    fn estimates_are_those_of_rliable() {
        let runs = [
            489.2, 500.0, 455.5, 472.25, 500.0, 381.0, 498.75, 430.5, 500.0, 466.0, 212.5, 495.0,
            488.0, 500.0, 350.25, 477.75,
        ];
        let statistics: [Statistic; 2] = [mean, interquartile_mean];
        let expected = [(451.04375, 410.12, 482.76), (480.30625, 440.31, 494.71)];
        for (statistic, (value, low, high)) in statistics.into_iter().zip(expected) {
            let found = estimate(&runs, statistic).expect("there are runs");
            assert!((found.value - value).abs() < 1e-9, "{found:?}");
            // These intervals come from 2,000 draws.
            let near =
                |end: Option<f64>, theirs: f64| end.is_some_and(|end| (end - theirs).abs() < 4.0);
            assert!(near(found.low, low) && near(found.high, high), "{found:?}");
        }
    }

    #[test]
    fn intervals_have_the_width_of_the_theory() {
        let runs: Vec<f64> = (0..100).map(|i| f64::from(i % 10)).collect();
        let found = estimate(&runs, mean).expect("there are runs");
        let Estimate { value, low: Some(low), high: Some(high) } = found else { panic!("{found}") };
        // The standard deviation of the mean of 100 draws from 0 to 9 is 0.287; 1.96 times that is
        // 0.563.
        assert_eq!(value, 4.5);
        assert!((low - 3.937).abs() < 0.06 && (high - 5.063).abs() < 0.06, "{low} {high}");
        assert_eq!(estimate(&runs, mean), estimate(&runs, mean), "no interval is drawn twice");
        assert_eq!(
            estimate(&[3.0; 4], interquartile_mean),
            Some(Estimate { value: 3.0, low: Some(3.0), high: Some(3.0) })
        );
        assert_eq!(estimate(&[], mean), None);
    }
}
