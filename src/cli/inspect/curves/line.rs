//! Lines over the seeds of a group: the mean with its interval, and the seeds behind it.

use clap::ValueEnum;

use crate::chart::Line;
use crate::statistics::{Bootstrap, Statistic, interquartile_mean, mean};

/// A statistic over the runs with the same settings, with the 95% interval of the bootstrap over
/// runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Summary {
    /// Mean of the runs
    Mean,
    /// The mean without the lowest and the highest quarter
    Iqm,
}

impl Summary {
    /// The name of the statistic.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Summary::Mean => "mean",
            Summary::Iqm => "interquartile mean",
        }
    }

    pub(crate) fn statistic(self) -> Statistic {
        match self {
            Summary::Mean => mean,
            Summary::Iqm => interquartile_mean,
        }
    }
}

/// Greatest number of points of a line: each point is the mean of its part.
const POINTS: usize = 300;
/// Least number of seeds of a line with a band. An interval of two seeds is as wide as their
/// distance, and both seeds show more.
pub(crate) const SEEDS_OF_BAND: usize = 3;

/// Values of a metric of one run, by steps or seconds, in order.
pub(crate) type Curve = Vec<(f64, f64)>;

/// The end of the line if runs differ in length: the earliest end of a run. `None` if the numbers
/// of steps agree within 1%. `ends` has the steps and the position of the last point of each run.
pub(crate) fn early_end(ends: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut low, mut high, mut end) = (f64::INFINITY, 0.0_f64, f64::INFINITY);
    for (steps, place) in ends {
        (low, high, end) = (low.min(steps), high.max(steps), end.min(place));
    }
    (low < 0.99 * high).then_some(end)
}

/// The mean of the curves, or another summary, over their common range. Three curves or more have a
/// band, the 95% interval of `runs compare`. Two curves have thin lines of their own, and with
/// `individual` all curves have them. A curve that is longer than the shortest continues as a thin
/// line behind the end of the mean.
pub(crate) fn line(curves: &[Curve], summary: Summary, individual: bool) -> Line {
    let [first, others @ ..] = curves else { return Line::default() };
    if others.is_empty() {
        return Line { points: thinned(first), ..Line::default() };
    }
    let bootstrap = Bootstrap::of(curves.len());
    let mut line = Line::default();
    for (at, values) in values_along(curves, POINTS) {
        let Some(estimate) = bootstrap.estimate(&values, summary.statistic()) else { continue };
        line.points.push((at, estimate.value));
        let band = estimate.low.zip(estimate.high).filter(|_| curves.len() >= SEEDS_OF_BAND);
        line.band.extend(band);
    }
    let end = common_range(curves).1;
    let whole = individual || curves.len() < SEEDS_OF_BAND;
    let ends = |curve: &Curve| curve.last().map_or(0.0, |point| point.0);
    let tail = |curve: Curve| -> Curve {
        let behind = curve.iter().filter(|point| point.0 > end);
        [(end, interpolated(&curve, end))].iter().chain(behind).copied().collect()
    };
    let runs = curves.iter().map(thinned);
    line.runs = match whole {
        true => runs.collect(),
        false => runs.filter(|curve| ends(curve) > 1.01 * end).map(tail).collect(),
    };
    line
}

/// The points of [`line`], without the interval.
pub(crate) fn middle(curves: &[Curve], summary: Summary) -> Curve {
    if let [curve] = curves {
        return thinned(curve);
    }
    let point = |(at, values): (f64, Vec<f64>)| Some((at, summary.statistic()(&values)?));
    values_along(curves, POINTS).filter_map(point).collect()
}

/// The interval of [`line`] at up to `most` positions, each with its low and its high end; none for
/// fewer curves than a band needs.
pub(crate) fn interval(curves: &[Curve], summary: Summary, most: usize) -> Vec<(f64, f64, f64)> {
    if curves.len() < SEEDS_OF_BAND {
        return Vec::new();
    }
    let bootstrap = Bootstrap::of(curves.len());
    let part = |(at, values): (f64, Vec<f64>)| {
        let estimate = bootstrap.estimate(&values, summary.statistic())?;
        Some((at, estimate.low?, estimate.high?))
    };
    values_along(curves, most).filter_map(part).collect()
}

/// The first and the last position that all curves reach.
fn common_range(curves: &[Curve]) -> (f64, f64) {
    let begin = curves.iter().map(|curve| curve[0].0).fold(0.0, f64::max);
    let end = curves.iter().map(|curve| curve[curve.len() - 1].0).fold(f64::INFINITY, f64::min);
    (begin, end)
}

/// Up to `most` positions in the common range of some curves, each with the curves' values.
fn values_along(curves: &[Curve], most: usize) -> impl Iterator<Item = (f64, Vec<f64>)> {
    let (begin, end) = common_range(curves);
    let thinned: Vec<Curve> = curves.iter().map(thinned).collect();
    let longest = thinned.iter().map(Vec::len).max().unwrap_or(0).min(most);
    (0..longest).map(move |step| {
        let at = begin + (end - begin).max(0.0) * step as f64 / (longest - 1).max(1) as f64;
        (at, thinned.iter().map(|curve| interpolated(curve, at)).collect())
    })
}

/// At most [`POINTS`] points, each the mean of neighbours.
fn thinned(curve: &Curve) -> Curve {
    let size = curve.len().div_ceil(POINTS).max(1);
    let mean = |part: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        part.iter().map(of).sum::<f64>() / part.len() as f64
    };
    curve
        .chunks(size)
        .map(|part| (mean(part, |point| point.0), mean(part, |point| point.1)))
        .collect()
}

/// The exponential moving average with a weight in [0, 1) of the values before, without the bias of
/// its start (Kingma and Ba 2015, algorithm 1).
pub(crate) fn smoothed(curve: Curve, weight: f64) -> Curve {
    let (mut sum, mut weights) = (0.0, 0.0);
    let next = |(at, value): (f64, f64)| {
        (sum, weights) = (weight * sum + value, weight * weights + 1.0);
        (at, sum / weights)
    };
    curve.into_iter().map(next).collect()
}

/// The value at a position, interpolated linearly between the points around it.
pub(crate) fn interpolated(curve: &Curve, at: f64) -> f64 {
    let after = curve.partition_point(|point| point.0 < at);
    let (Some(before), Some(after)) = (curve.get(after.wrapping_sub(1)), curve.get(after)) else {
        return curve[after.min(curve.len() - 1)].1;
    };
    before.1 + (after.1 - before.1) * (at - before.0) / (after.0 - before.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::estimate;

    /// A figure and a report compute the same interval.
    #[test]
    fn a_figure_has_the_interval_of_a_report() {
        let returns = [1.0, 2.0, 4.0, 9.0];
        let curves = returns.map(|value| vec![(0.0, value), (10.0, value)]);
        for summary in [Summary::Mean, Summary::Iqm] {
            let report = estimate(&returns, summary.statistic()).unwrap();
            let line = line(&curves, summary, false);
            assert_eq!(line.points[1], (10.0, report.value));
            assert_eq!(line.band[1], (report.low.unwrap(), report.high.unwrap()));
        }
    }

    #[test]
    fn seeds_become_a_mean_with_its_interval() {
        // One run ends earlier, with points at other positions.
        let curves = [vec![(0.0, 0.0), (10.0, 10.0), (20.0, 20.0)], vec![(0.0, 2.0), (10.0, 12.0)]];
        let two = line(&curves, Summary::Mean, false);
        assert_eq!(two.points, [(0.0, 1.0), (5.0, 6.0), (10.0, 11.0)]);
        assert_eq!((&two.band[..], &two.runs[..]), (&[][..], &curves[..]), "two seeds are shown");
        let [one, other] = curves;
        let three = line(&[one.clone(), other.clone(), other.clone()], Summary::Mean, false);
        assert_eq!(three.band.len(), 3);
        assert_eq!(three.runs, [[(10.0, 10.0), (20.0, 20.0)]], "behind the mean's end");
        assert_eq!(line(&[one, other.clone(), other], Summary::Mean, true).runs.len(), 3);
        let five = [[0.0], [1.0], [2.0], [3.0], [1000.0]].map(|[value]| vec![(0.0, value)]);
        let iqm = line(&five, Summary::Iqm, false);
        assert_eq!(iqm.points, [(0.0, 2.0)], "without the run that is far off");
        assert!(iqm.band[0].0 < 2.0 && iqm.band[0].1 > 2.0, "{iqm:?}");
        let long: Curve = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        assert!(thinned(&long).len() <= POINTS);
    }

    #[test]
    fn smoothing_begins_at_the_first_value() {
        let curve = vec![(0.0, 8.0), (1.0, 8.0), (2.0, 0.0)];
        assert_eq!(smoothed(curve.clone(), 0.0), curve);
        // Weights 1/4, 1/2 and 1 of 7/4.
        assert_eq!(smoothed(curve, 0.5)[2], (2.0, 8.0 * 0.75 / 1.75));
    }

    /// `tests/cli/watch.rs` checks the page's script against the same values.
    #[test]
    fn smoothing_is_the_same_in_charts_and_on_the_page() {
        let known: serde_json::Value = serde_json::from_str(include_str!("smoothed.json")).unwrap();
        let points: Curve = serde_json::from_value(known["points"].clone()).unwrap();
        for of_weight in known["smoothed"].as_array().unwrap() {
            let values = smoothed(points.clone(), of_weight["weight"].as_f64().unwrap());
            let expected: Vec<f64> = serde_json::from_value(of_weight["values"].clone()).unwrap();
            assert_eq!(values.len(), expected.len());
            for ((at, value), (point, expected)) in values.iter().zip(points.iter().zip(expected)) {
                assert!(*at == point.0 && (value - expected).abs() < 1e-9, "{of_weight}: {value}");
            }
        }
    }
}
