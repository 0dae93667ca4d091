//! Statistics of methods on several tasks (Agarwal et al., "Deep Reinforcement Learning at the Edge
//! of the Statistical Precipice", 2021), as in rliable.
//!
//! # Invariants
//! - Every interval is the 95% percentile bootstrap, stratified by task: runs are resampled within
//!   their task.
//! - Equal scores give equal intervals.

use podracer_envs::host::Random;

use super::{DRAWS, Estimate, interquartile_mean, mean, percentiles};

/// The scores of a method: the runs of each task. No task is empty.
pub(crate) type Scores = [Vec<f64>];

/// The aggregate scores of a method over tasks and runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Aggregate {
    /// The median over tasks of the mean over runs.
    pub(crate) median: Estimate,
    /// The mean of the middle half of the runs.
    pub(crate) interquartile_mean: Estimate,
    /// The mean over the runs.
    pub(crate) mean: Estimate,
    /// The mean distance to a score of 1, for runs below it.
    pub(crate) optimality_gap: Estimate,
}

impl Aggregate {
    pub(crate) fn of(scores: &Scores) -> Self {
        let over = |statistic: fn(&Scores) -> f64| stratified(scores, statistic);
        Aggregate {
            median: over(median),
            interquartile_mean: over(iqm),
            mean: over(|scores| mean(&scores.concat()).unwrap_or(f64::NAN)),
            optimality_gap: over(|scores| {
                let gaps: Vec<f64> =
                    scores.concat().iter().map(|score| 1.0 - score.min(1.0)).collect();
                mean(&gaps).unwrap_or(f64::NAN)
            }),
        }
    }
}

/// The mean of the middle half of the runs, over every task.
pub(crate) fn iqm(scores: &Scores) -> f64 {
    interquartile_mean(&scores.concat()).unwrap_or(f64::NAN)
}

/// The median over tasks of the mean over runs.
fn median(scores: &Scores) -> f64 {
    let mut means: Vec<f64> = scores.iter().map(|runs| mean(runs).unwrap_or(f64::NAN)).collect();
    means.sort_by(f64::total_cmp);
    let middle = means.len() / 2;
    match means.len() % 2 {
        1 => means[middle],
        _ => (means[middle - 1] + means[middle]) / 2.0,
    }
}

/// A statistic of scores with its interval.
pub(crate) fn stratified(scores: &Scores, statistic: impl Fn(&Scores) -> f64) -> Estimate {
    let drawn = Resampled::of(scores).take(DRAWS).map(|drawn| statistic(&drawn)).collect();
    Estimate::of(statistic(scores), drawn)
}

/// The performance profile: for each `tau`, the fraction of runs with a score above `tau`.
pub(crate) fn performance_profile(scores: &Scores, taus: &[f64]) -> Vec<Estimate> {
    let fractions = |scores: &Scores| -> Vec<f64> {
        let mut all = scores.concat();
        all.sort_by(f64::total_cmp);
        let above = |tau: &f64| all.len() - all.partition_point(|score| score <= tau);
        taus.iter().map(|tau| above(tau) as f64 / all.len() as f64).collect()
    };
    let drawn: Vec<Vec<f64>> =
        Resampled::of(scores).take(DRAWS).map(|drawn| fractions(&drawn)).collect();
    let estimate = |(index, value): (usize, f64)| {
        Estimate::of(value, drawn.iter().map(|fractions| fractions[index]).collect())
    };
    fractions(scores).into_iter().enumerate().map(estimate).collect()
}

/// The probability that a run of the first method has a greater score than a run of the second, as
/// the mean over tasks; equal scores count half (the statistic of Mann and Whitney).
pub(crate) fn probability_of_improvement(first: &Scores, second: &Scores) -> Estimate {
    let of_task = |(first, second): (&Vec<f64>, &Vec<f64>)| {
        let against = |one: f64| -> f64 {
            second
                .iter()
                .map(|other| {
                    if one > *other {
                        1.0
                    } else if one == *other {
                        0.5
                    } else {
                        0.0
                    }
                })
                .sum()
        };
        first.iter().map(|one| against(*one)).sum::<f64>() / (first.len() * second.len()) as f64
    };
    let probability = |first: &Scores, second: &Scores| {
        let tasks: Vec<f64> = first.iter().zip(second).map(of_task).collect();
        mean(&tasks).unwrap_or(f64::NAN)
    };
    // One generator draws for both methods, so that their draws are independent.
    let both: Vec<Vec<f64>> = first.iter().chain(second).cloned().collect();
    let drawn = Resampled::of(&both).take(DRAWS).map(|drawn| {
        let (first, second) = drawn.split_at(first.len());
        probability(first, second)
    });
    Estimate::of(probability(first, second), drawn.collect())
}

impl Estimate {
    /// A value with the interval of the statistic's resampled values.
    fn of(value: f64, drawn: Vec<f64>) -> Self {
        let [low, high] = percentiles(drawn);
        Estimate { value, low: Some(low), high: Some(high) }
    }
}

/// Scores that are drawn with replacement from the runs of each task, again and again.
struct Resampled<'a> {
    scores: &'a Scores,
    random: Random,
}

impl<'a> Resampled<'a> {
    fn of(scores: &'a Scores) -> Self {
        Resampled { scores, random: Random::from_state(0) }
    }
}

impl Iterator for Resampled<'_> {
    type Item = Vec<Vec<f64>>;

    fn next(&mut self) -> Option<Self::Item> {
        let random = &mut self.random;
        let mut task = |runs: &Vec<f64>| -> Vec<f64> {
            runs.iter().map(|_| runs[random.below(runs.len())]).collect()
        };
        Some(self.scores.iter().map(&mut task).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Scores of 8 runs on 3 tasks for two methods, and the estimates of rliable 1.2.0 with 50,000
    // draws: value, lower and upper end.
    const OURS: [[f64; 8]; 3] = [
        [0.9, 0.722, 0.912, 0.776, 0.921, 1.039, 0.52, 0.853],
        [0.63, 0.555, 0.734, 0.649, 0.507, 0.466, 0.471, 0.473],
        [1.063, 0.704, 0.954, 1.378, 1.185, 0.971, 0.279, 1.336],
    ];
    const THEIRS: [[f64; 8]; 3] = [
        [0.9, 0.665, 0.417, 0.598, 0.792, 0.772, 0.494, 0.413],
        [0.622, 0.643, 0.578, 0.809, 0.783, 0.667, 0.661, 0.779],
        [-0.055, 0.734, 0.406, 0.458, 0.525, 0.719, 1.108, 0.736],
    ];
    /// `aggregate_median`, `aggregate_iqm`, `aggregate_mean` and `aggregate_optimality_gap`.
    const AGGREGATES: [[[f64; 3]; 4]; 2] = [
        [
            [0.8303749999999999, 0.7006, 0.9192],
            [0.7758333333333334, 0.6707, 0.8629],
            [0.7915833333333334, 0.6996, 0.8738],
            [0.25012500000000004, 0.1892, 0.3232],
        ],
        [
            [0.631375, 0.5425, 0.7241],
            [0.66, 0.5751, 0.7284],
            [0.6343333333333333, 0.5469, 0.7181],
            [0.37016666666666664, 0.2918, 0.4543],
        ],
    ];
    /// `probability_of_improvement` of the first over the second.
    const IMPROVEMENT: [f64; 3] = [0.5859375, 0.4582682, 0.7083333];
    /// `create_performance_profile` of the first.
    const TAUS: [f64; 5] = [0.0, 0.5, 0.75, 1.0, 1.5];
    const PROFILE: [[f64; 3]; 5] = [
        [1.0, 1.0, 1.0],
        [0.8333333333333334, 0.7083, 0.9583],
        [0.5, 0.3333, 0.625],
        [0.20833333333333334, 0.0833, 0.3333],
        [0.0, 0.0, 0.0],
    ];

    fn near(found: Estimate, expected: [f64; 3]) {
        let Estimate { value, low: Some(low), high: Some(high) } = found else { panic!("{found}") };
        assert!((value - expected[0]).abs() < 1e-9, "{found:?}: {expected:?}");
        // These intervals come from 2,000 draws, rliable's from 50,000.
        for (found, expected) in [(low, expected[1]), (high, expected[2])] {
            assert!((found - expected).abs() < 0.02, "{found} and {expected}");
        }
    }

    fn scores(of: [[f64; 8]; 3]) -> Vec<Vec<f64>> {
        of.map(|runs| runs.to_vec()).to_vec()
    }

    #[test]
    fn statistics_are_those_of_rliable() {
        let (ours, theirs) = (scores(OURS), scores(THEIRS));
        for (of, expected) in [(&ours, AGGREGATES[0]), (&theirs, AGGREGATES[1])] {
            let found = Aggregate::of(of);
            near(found.median, expected[0]);
            near(found.interquartile_mean, expected[1]);
            near(found.mean, expected[2]);
            near(found.optimality_gap, expected[3]);
        }
        near(probability_of_improvement(&ours, &theirs), IMPROVEMENT);
        let profile = performance_profile(&ours, &TAUS);
        profile.into_iter().zip(PROFILE).for_each(|(found, expected)| near(found, expected));
    }
}
