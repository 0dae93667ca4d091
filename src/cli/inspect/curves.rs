//! Curves of runs' metrics. The runs with the same settings form one line with an interval.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::chart::{Line, Panel};
use crate::cli::console::Console;
use crate::cli::named_runs::{
    by_seed, compared, folders_of, has_changed, overview, repeated, values_of,
};
use crate::format::{count, plural};
use crate::run_directory::{RunOverview, Sample, Series};
use crate::settings::{UsageError, suggestion};
use crate::statistics::{Bootstrap, Statistic, interquartile_mean, mean};

/// The horizontal axis of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Along {
    /// Environment steps
    Steps,
    /// Seconds of training
    Seconds,
}

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
    fn name(self) -> &'static str {
        match self {
            Summary::Mean => "mean",
            Summary::Iqm => "interquartile mean",
        }
    }

    fn statistic(self) -> Statistic {
        match self {
            Summary::Mean => mean,
            Summary::Iqm => interquartile_mean,
        }
    }
}

impl Along {
    /// The label of the axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Along::Steps => "environment steps",
            Along::Seconds => "seconds of training",
        }
    }

    /// A position in words, such as `20k environment steps`.
    pub(crate) fn place(self, at: f64) -> String {
        format!("{} {}", count(at), self.name())
    }

    /// The position for these steps and seconds.
    pub(crate) fn of(self, (steps, seconds): (f64, f64)) -> f64 {
        match self {
            Along::Steps => steps,
            Along::Seconds => seconds,
        }
    }
}

/// Greatest number of points of a line: each point is the mean of its part.
const POINTS: usize = 300;

/// The runs to draw, and the form of the chart.
#[derive(Args, Debug)]
pub(crate) struct CurveArguments {
    /// The run directories; a folder of runs stands for its runs, and files are skipped
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// A setting that names the lines in the legend, such as `agent.kind`: its value alone, or `KEY
    /// = VALUE` if there are several settings [repeatable] [default: all settings that differ]
    #[arg(long, value_name = "KEY")]
    pub(crate) label: Vec<String>,
    /// A metric in metrics.jsonl, or `returns` (mean_return), or `losses` (all names that end in
    /// `loss`) [repeatable, one chart each] [default: returns; a report adds evaluations and
    /// losses]
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
    /// The horizontal axis
    #[arg(long, value_enum, default_value_t = Along::Steps)]
    pub(crate) along: Along,
    /// The statistic over several seeds
    #[arg(long, value_enum, default_value_t = Summary::Mean)]
    pub(crate) summary: Summary,
}

/// Runs with their metrics.
pub(crate) struct Curves {
    pub(crate) runs: Vec<RunOverview>,
    series: Vec<Series>,
    pub(crate) groups: Vec<Group>,
}

/// Runs of the same settings.
pub(crate) struct Group {
    /// The experiment and the settings that distinguish it from other groups.
    pub(crate) name: String,
    /// The runs, by index: one for each seed.
    pub(crate) members: Vec<usize>,
    /// Runs that repeat the seed of a member, each with that member.
    pub(crate) repeats: Vec<(usize, usize)>,
}

impl Group {
    /// True if the run at this index has the settings of the group.
    pub(crate) fn has(&self, run: usize) -> bool {
        self.members.contains(&run) || self.repeats.iter().any(|(repeat, _)| *repeat == run)
    }

    /// Warnings about the runs that repeat a seed, each with the index of its run.
    pub(crate) fn repeated(&self, runs: &[&RunOverview]) -> Vec<(usize, String)> {
        let said = |&(repeat, kept): &(usize, usize)| (repeat, repeated(runs[repeat], runs[kept]));
        self.repeats.iter().map(said).collect()
    }
}

impl Curves {
    /// Reads the named runs, and warns about runs that repeat a seed.
    ///
    /// # Errors
    /// A folder without a run, a label that is not a setting of any run, and files that cannot be
    /// read.
    pub(crate) fn read(args: &CurveArguments, console: &mut Console<'_>) -> Result<Self> {
        let CurveArguments { runs, label, .. } = args;
        let folders = folders_of(runs, console)?;
        let runs = folders.iter().map(|run| overview(run)).collect::<Result<Vec<_>>>()?;
        let series = folders.iter().map(|run| Series::read(run)).collect::<Result<_>>()?;
        let known: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
        if let Some(wrong) = label.iter().find(|label| !known.contains(label)) {
            return Err(UsageError::new(format!(
                "--label {wrong}: the runs have no setting `{wrong}`{}",
                suggestion(wrong, known.iter().map(|key| key.as_str()))
            ))
            .into());
        }
        let all: Vec<&RunOverview> = runs.iter().collect();
        let groups = groups(&all, label);
        let mut curves = Curves { groups, runs, series };
        curves.repeated().iter().for_each(|(_, said)| console.warn(said));
        if curves.groups.len() > 1 && curves.of_one() {
            // The caption has the experiment.
            let experiment = format!("{}, ", curves.runs[0].experiment);
            for group in &mut curves.groups {
                group.name = group.name.replacen(&experiment, "", 1);
            }
        }
        Ok(curves)
    }

    /// Warnings about the runs that repeat a seed, each with the index of its run.
    pub(crate) fn repeated(&self) -> Vec<(usize, String)> {
        let runs: Vec<&RunOverview> = self.runs.iter().collect();
        self.groups.iter().flat_map(|group| group.repeated(&runs)).collect()
    }

    /// The curves of a metric for a group's runs that have it.
    fn of_group(&self, group: &Group, metric: &str, along: Along) -> Vec<RunCurve> {
        let curve = |&member: &usize| {
            let samples = self.series[member].metric(metric);
            let at = |sample: &Sample| along.of((sample.env_steps, sample.seconds));
            let points = samples.iter().map(|sample| (at(sample), sample.value)).collect();
            let steps = samples.last()?.env_steps;
            Some(RunCurve { member, steps, points })
        };
        group.members.iter().filter_map(curve).collect()
    }

    /// Warns about groups with runs of different lengths, and names the runs.
    pub(crate) fn warn_of_lengths(
        &self,
        metrics: &[String],
        along: Along,
        console: &mut Console<'_>,
    ) {
        let of_groups = self.groups.iter().flat_map(|group| {
            metrics.iter().map(move |metric| (group, self.of_group(group, metric, along)))
        });
        let mut said = BTreeSet::new();
        for (group, curves) in of_groups {
            let Some(end) = early_end(curves.iter().map(RunCurve::end)) else { continue };
            let run = |curve: &RunCurve| {
                let path = self.runs[curve.member].run.display();
                format!("`{path}` {}", count(curve.steps))
            };
            let warning = format!(
                "{}: the runs have different numbers of environment steps ({}): their line ends with the shortest, at {}",
                group.name,
                curves.iter().map(run).collect::<Vec<_>>().join(", "),
                along.place(end)
            );
            if said.insert(warning.clone()) {
                console.warn(&warning);
            }
        }
    }

    /// True if all runs have the same experiment.
    fn of_one(&self) -> bool {
        self.runs.iter().all(|run| run.experiment == self.runs[0].experiment)
    }

    /// The chart of a metric.
    pub(crate) fn panel(&self, metric: &str, along: Along, summary: Summary) -> Panel {
        let mut lines = Vec::new();
        for group in &self.groups {
            let curves = self.of_group(group, metric, along);
            let until = early_end(curves.iter().map(RunCurve::end));
            let curves: Vec<Curve> = curves.into_iter().map(|curve| curve.points).collect();
            let mut line = line(&curves, summary);
            let until =
                until.map_or_else(String::new, |end| format!(" up to {}", along.place(end)));
            line.name = match curves.len() {
                0 | 1 => group.name.clone(),
                seeds => format!(
                    "{}: {} of {seeds} seeds{until}, 95% bootstrap interval",
                    group.name,
                    summary.name()
                ),
            };
            lines.push(line);
        }
        Panel { metric: metric.to_owned(), lines }
    }

    /// A line that describes the runs.
    pub(crate) fn caption(&self) -> String {
        match &self.groups[..] {
            [Group { name, members, .. }] if members.len() == 1 => {
                format!("{name}, seed {}", self.runs[members[0]].seed)
            }
            [Group { name, members, .. }] => format!("{name}, {}", plural(members.len(), "seed")),
            _ if self.of_one() => self.runs[0].experiment.clone(),
            groups => plural(groups.len(), "experiment"),
        }
    }

    /// The requested metrics, by their names in the runs.
    ///
    /// # Errors
    /// [`UsageError`] for a metric that no run has.
    pub(crate) fn metrics(&self, asked: &[String]) -> Result<Vec<String>, UsageError> {
        let known: BTreeSet<&str> = self.series.iter().flat_map(Series::names).collect();
        let mut metrics: Vec<String> = Vec::new();
        let asked = if asked.is_empty() {
            vec!["returns"]
        } else {
            asked.iter().map(|one| &**one).collect()
        };
        for asked in asked {
            let found: Vec<&str> = match asked {
                "returns" => vec!["mean_return"],
                "losses" => known.iter().copied().filter(|name| name.ends_with("loss")).collect(),
                name => vec![name],
            };
            let missing = found.iter().any(|name| !known.contains(name));
            if found.is_empty() || missing {
                return Err(UsageError::new(format!(
                    "the runs have no metric `{asked}`{}; they have {}",
                    suggestion(asked, known.iter().copied()),
                    known.iter().copied().collect::<Vec<_>>().join(", ")
                )));
            }
            metrics.extend(found.into_iter().map(str::to_owned));
        }
        Ok(metrics)
    }
}

/// Runs with the same settings except for the seed. Each group has a name that distinguishes it
/// from the others: the settings that differ, or the `labels`. The length of a run and the times of
/// its checkpoints do not matter. A run with settings that population-based training has changed is
/// a separate group.
pub(crate) fn groups(runs: &[&RunOverview], labels: &[String]) -> Vec<Group> {
    let tells = |key: &String| {
        !["train.steps", "train.checkpoint", "train.store", "train.eval", "train.record"]
            .iter()
            .any(|begin| key.starts_with(begin))
    };
    let of_run = |run: &&RunOverview| -> BTreeMap<String, String> {
        let settings = run.settings.iter().filter(|(key, _)| tells(key));
        settings.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let settings: Vec<BTreeMap<String, String>> = runs.iter().map(of_run).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for number in 0..runs.len() {
        let same = |members: &&mut Vec<usize>| settings[members[0]] == settings[number];
        match groups.iter_mut().find(same).filter(|_| !has_changed(runs[number])) {
            Some(members) => members.push(number),
            None => groups.push(vec![number]),
        }
    }
    let firsts: Vec<&RunOverview> = groups.iter().map(|members| runs[members[0]]).collect();
    let names = names(&firsts, tells, labels);
    let group = |(name, members): (String, Vec<usize>)| {
        let (members, repeats) = by_seed(members.into_iter().map(|member| (member, runs[member])));
        Group { name, members, repeats }
    };
    names.into_iter().zip(groups).map(group).collect()
}

/// A name for each of these runs: the settings that differ, or the `labels`. Runs with equal names
/// also get the other settings, and then their seeds.
fn names(runs: &[&RunOverview], tells: impl Fn(&String) -> bool, labels: &[String]) -> Vec<String> {
    let mut of_experiment: BTreeMap<&str, Vec<&RunOverview>> = BTreeMap::new();
    for &run in runs {
        of_experiment.entry(&run.experiment).or_default().push(run);
    }
    let listed = |key: &String| tells(key) && !labels.contains(key);
    let keys = |(&experiment, same): (&&str, &Vec<&RunOverview>)| {
        (experiment.to_owned(), compared(same).into_iter().filter(listed).collect())
    };
    let keys: BTreeMap<String, BTreeSet<String>> = of_experiment.iter().map(keys).collect();
    let others = |run: &RunOverview| -> String {
        let same = &of_experiment[&*run.experiment];
        let values = values_of(run, &keys[&run.experiment], same).into_iter();
        values.map(|(key, value)| format!(", {key} = {value}")).collect()
    };
    let setting = |run: &RunOverview, key: &String| {
        run.settings.get(key).map_or_else(|| "-".to_owned(), String::clone)
    };
    let name = |run: &&RunOverview| match labels {
        [] => run.experiment.clone() + &others(run),
        [label] => setting(run, label),
        labels => {
            let values = labels.iter().map(|label| format!("{label} = {}", setting(run, label)));
            values.collect::<Vec<_>>().join(", ")
        }
    };
    let mut names: Vec<String> = runs.iter().map(name).collect();
    let mut add_to_equal = |more: &dyn Fn(&RunOverview) -> String| {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        names.iter().for_each(|name| *known.entry(name.clone()).or_default() += 1);
        let equal = runs.iter().zip(&mut names).filter(|(_, name)| known[&**name] > 1);
        equal.for_each(|(run, name)| *name += &more(run));
    };
    if !labels.is_empty() {
        add_to_equal(&others);
    }
    add_to_equal(&|run| format!(", seed {}", run.seed));
    names
}

/// Values of a metric of one run, by steps or seconds, in order.
pub(crate) type Curve = Vec<(f64, f64)>;

/// The curve of a run, and its number of environment steps.
struct RunCurve {
    member: usize,
    steps: f64,
    points: Curve,
}

impl RunCurve {
    /// Steps and position of the last point.
    fn end(&self) -> (f64, f64) {
        (self.steps, self.points.last().map_or(0.0, |(at, _)| *at))
    }
}

/// The end of the line if runs differ in length: the earliest end of a run. `None` if the numbers
/// of steps agree within 1%. `ends` has the steps and the position of the last point of each run.
pub(crate) fn early_end(ends: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut low, mut high, mut end) = (f64::INFINITY, 0.0_f64, f64::INFINITY);
    for (steps, place) in ends {
        (low, high, end) = (low.min(steps), high.max(steps), end.min(place));
    }
    (low < 0.99 * high).then_some(end)
}

/// The mean of the curves, or another summary, over their common range, with its 95% interval: the
/// statistics of `runs compare`.
pub(crate) fn line(curves: &[Curve], summary: Summary) -> Line {
    let [first, others @ ..] = curves else { return Line::default() };
    if others.is_empty() {
        return Line { points: thinned(first), ..Line::default() };
    }
    let bootstrap = Bootstrap::of(curves.len());
    let mut line = Line::default();
    for (at, values) in values_along(curves, POINTS) {
        let Some(estimate) = bootstrap.estimate(&values, summary.statistic()) else { continue };
        line.points.push((at, estimate.value));
        line.band.extend(estimate.low.zip(estimate.high));
    }
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

/// The interval of [`line`] at up to `most` positions, each with its low and its high end.
pub(crate) fn interval(curves: &[Curve], summary: Summary, most: usize) -> Vec<(f64, f64, f64)> {
    let bootstrap = Bootstrap::of(curves.len());
    let part = |(at, values): (f64, Vec<f64>)| {
        let estimate = bootstrap.estimate(&values, summary.statistic())?;
        Some((at, estimate.low?, estimate.high?))
    };
    values_along(curves, most).filter_map(part).collect()
}

/// Up to `most` positions in the common range of some curves, each with the curves' values.
fn values_along(curves: &[Curve], most: usize) -> impl Iterator<Item = (f64, Vec<f64>)> {
    let begin = curves.iter().map(|curve| curve[0].0).fold(0.0, f64::max);
    let end = curves.iter().map(|curve| curve[curve.len() - 1].0).fold(f64::INFINITY, f64::min);
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

/// The value at a position, interpolated linearly between the points around it.
fn interpolated(curve: &Curve, at: f64) -> f64 {
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
    fn a_figure_has_another_interval_than_a_report() {
        let returns = [1.0, 2.0, 4.0, 9.0];
        let curves = returns.map(|value| vec![(0.0, value), (10.0, value)]);
        for summary in [Summary::Mean, Summary::Iqm] {
            let report = estimate(&returns, summary.statistic()).unwrap();
            let line = line(&curves, summary);
            assert_eq!(line.points[1], (10.0, report.value));
            assert_eq!(line.band[1], (report.low.unwrap(), report.high.unwrap()));
        }
    }

    #[test]
    fn seeds_become_a_mean_with_its_interval() {
        // One run ends earlier, with points at other positions.
        let curves = [vec![(0.0, 0.0), (10.0, 10.0), (20.0, 20.0)], vec![(0.0, 2.0), (10.0, 12.0)]];
        let line = line(&curves, Summary::Mean);
        assert_eq!(line.points, [(0.0, 1.0), (5.0, 6.0), (10.0, 11.0)]);
        assert_eq!(line.band[1], (5.0, 7.0), "{line:?}");
        let five = [[0.0], [1.0], [2.0], [3.0], [1000.0]].map(|[value]| vec![(0.0, value)]);
        let iqm = super::line(&five, Summary::Iqm);
        assert_eq!(iqm.points, [(0.0, 2.0)], "without the run that is far off");
        assert!(iqm.band[0].0 < 2.0 && iqm.band[0].1 > 2.0, "{iqm:?}");
        let long: Curve = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        assert!(thinned(&long).len() <= POINTS);
    }
}
