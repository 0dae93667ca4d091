//! Curves of runs' metrics. The runs with the same settings form one line with an interval, and
//! each experiment has a panel of its own.

mod groups;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::chart::{Figure, Line, Panel, time_of_day};
use crate::cli::console::Console;
use crate::cli::named_runs::{folders_of, overview};
use crate::format::{count, plural};
use crate::run_directory::{RunOverview, Sample, Series};
use crate::settings::{UsageError, suggestion};

pub(crate) use groups::{Group, Label, groups, groups_by};
pub(crate) use line::{
    Curve, SEEDS_OF_BAND, Summary, early_end, interpolated, interval, line, middle, smoothed,
};

/// The horizontal axis of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Along {
    /// Environment steps
    Steps,
    /// Seconds of training
    Seconds,
    /// Time of day (UTC in files); each run has a line of its own
    Clock,
}

impl Along {
    /// The label of the axis.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Along::Steps => "environment steps",
            Along::Seconds => "seconds of training",
            Along::Clock => "time of day (UTC)",
        }
    }

    /// A position in words, such as `20k environment steps`.
    pub(crate) fn place(self, at: f64) -> String {
        match self {
            Along::Clock => format!("{} UTC", time_of_day(at, 1.0)),
            _ => format!("{} {}", count(at), self.name()),
        }
    }

    /// The position for these steps, seconds of training, and seconds since 1970.
    pub(crate) fn of(self, (steps, seconds, time): (f64, f64, f64)) -> f64 {
        match self {
            Along::Steps => steps,
            Along::Seconds => seconds,
            Along::Clock => time,
        }
    }

    /// True if runs with the same settings have a mean over this axis. Runs at different times of
    /// day have none.
    pub(crate) fn has_means(self) -> bool {
        self != Along::Clock
    }
}

/// The division of lines into panels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Facet {
    /// A panel for each experiment.
    Experiment,
    /// One panel for each metric.
    Metric,
    /// A panel for each value of a setting.
    Setting(String),
}

impl FromStr for Facet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "experiment" => Facet::Experiment,
            "metric" => Facet::Metric,
            key if key.contains('.') => Facet::Setting(key.to_owned()),
            other => {
                return Err(format!(
                    "expected `experiment`, `metric` or a setting such as `agent.kind`, got `{other}`"
                ));
            }
        })
    }
}

/// Two numbers as `LOW..HIGH`.
pub(crate) fn range(text: &str) -> Result<RangeInclusive<f64>, String> {
    let ends = text.split_once("..").map(|(low, high)| (low.trim().parse(), high.trim().parse()));
    match ends {
        Some((Ok(low), Ok(high))) if f64::is_finite(low) && f64::is_finite(high) && low < high => {
            Ok(low..=high)
        }
        _ => Err(format!("expected two numbers, the lower first, such as `0..500`, got `{text}`")),
    }
}

/// The returns of an experiment that count as 0 and as 1, as `EXPERIMENT=LOW..HIGH`.
fn reference(text: &str) -> Result<(String, RangeInclusive<f64>), String> {
    let (experiment, ends) = text.split_once('=').ok_or_else(|| {
        format!("expected EXPERIMENT=LOW..HIGH, such as `cartpole-ppo=20..500`, got `{text}`")
    })?;
    Ok((experiment.to_owned(), range(ends)?))
}

/// A share of at least 0 and below 1.
fn weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight| (0.0..1.0).contains(weight));
    weight.ok_or_else(|| format!("expected a number of at least 0 and below 1, got `{text}`"))
}

/// The runs to draw, and the form of the chart.
#[derive(Args, Debug)]
pub(crate) struct CurveArguments {
    /// The run directories; a folder of runs, such as a sweep's, stands for its runs, and files are
    /// skipped
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// A setting that names the lines, such as `agent.kind` (its value alone, or `KEY = VALUE` of
    /// each if several are named), or a name for the lines with a value of a setting, such as
    /// `agent.kind=warm:Ours` [repeatable] [default: all settings that differ]
    #[arg(long, value_name = "KEY[=VALUE:NAME]")]
    pub(crate) label: Vec<Label>,
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
    /// The panels: one for each `experiment`, for each `metric` only, or for each value of a
    /// setting such as `environment.name`
    #[arg(long, value_name = "experiment|metric|KEY", default_value = "experiment")]
    pub(crate) facet: Facet,
    /// Weight of the past in an exponential moving average over the points of each run
    #[arg(long, value_name = "WEIGHT", default_value = "0", value_parser = weight)]
    pub(crate) smooth: f64,
    /// Draw each seed as a thin line behind the mean
    #[arg(long)]
    pub(crate) individual: bool,
    /// The returns of an experiment that are drawn as 0 and as 1, such as a random policy's and a
    /// reference's [repeatable]
    #[arg(long, value_name = "EXPERIMENT=LOW..HIGH", value_parser = reference)]
    pub(crate) normalize: Vec<(String, RangeInclusive<f64>)>,
}

impl CurveArguments {
    /// The returns of an experiment that count as 0 and as 1; `None` for other metrics than returns.
    fn reference(&self, experiment: &str, metric: &str) -> Option<&RangeInclusive<f64>> {
        let is_return = [RETURNS, "eval_return"].contains(&metric);
        let found = self.normalize.iter().find(|(name, _)| name == experiment && is_return);
        found.map(|(_, ends)| ends)
    }
}

/// The metric with the mean returns.
const RETURNS: &str = "mean_return";

/// Runs with their metrics.
pub(crate) struct Curves {
    pub(crate) runs: Vec<RunOverview>,
    series: Vec<Series>,
    pub(crate) groups: Vec<Group>,
}

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

impl Curves {
    /// Reads the named runs, and warns about runs that repeat a seed.
    ///
    /// # Errors
    /// A folder without a run, a label or reference that fits no run, and files that cannot be
    /// read.
    pub(crate) fn read(args: &CurveArguments, console: &mut Console<'_>) -> Result<Self> {
        let CurveArguments { runs, label, facet, normalize, .. } = args;
        let folders = folders_of(runs, console)?;
        let runs = folders.iter().map(|run| overview(run)).collect::<Result<Vec<_>>>()?;
        let series = folders.iter().map(|run| Series::read(run)).collect::<Result<_>>()?;
        let known: BTreeSet<&String> = runs.iter().flat_map(|run| run.settings.keys()).collect();
        let facet = match facet {
            Facet::Setting(key) => Some(("--facet", key)),
            _ => None,
        };
        let mut keys = label.iter().map(|label| ("--label", &label.key)).chain(facet);
        if let Some((flag, key)) = keys.find(|(_, key)| !known.contains(key)) {
            return Err(UsageError::new(format!(
                "{flag} {key}: the runs have no setting `{key}`{}",
                suggestion(key, known.iter().map(|key| key.as_str()))
            ))
            .into());
        }
        let experiments: BTreeSet<&str> = runs.iter().map(|run| &*run.experiment).collect();
        let unknown = normalize.iter().find(|(name, _)| !experiments.contains(&**name));
        if let Some((name, _)) = unknown {
            return Err(UsageError::new(format!(
                "--normalize {name}: no run has this experiment{}",
                suggestion(name, experiments.iter().copied())
            ))
            .into());
        }
        let all: Vec<&RunOverview> = runs.iter().collect();
        let groups = groups(&all, label);
        let mut curves = Curves { groups, runs, series };
        curves.repeated().iter().for_each(|(_, said)| console.warn(said));
        if curves.groups.len() > 1 && curves.of_one() {
            // The caption has the experiment.
            for group in curves.groups.iter_mut().filter(|group| !group.settings.is_empty()) {
                group.name.clone_from(&group.settings);
            }
        }
        Ok(curves)
    }

    /// Warnings about the runs that repeat a seed, each with the index of its run.
    pub(crate) fn repeated(&self) -> Vec<(usize, String)> {
        let runs: Vec<&RunOverview> = self.runs.iter().collect();
        self.groups.iter().flat_map(|group| group.repeated(&runs)).collect()
    }

    /// The curves of a metric for a group's runs that have it; returns are normalized.
    fn of_group(&self, group: &Group, metric: &str, args: &CurveArguments) -> Vec<RunCurve> {
        let curve = |&member: &usize| {
            let samples = self.series[member].metric(metric);
            let reference = args.reference(&self.runs[member].experiment, metric);
            let value = |value: f64| match reference {
                Some(ends) => (value - ends.start()) / (ends.end() - ends.start()),
                None => value,
            };
            let at =
                |sample: &Sample| args.along.of((sample.env_steps, sample.seconds, sample.time));
            let points = samples.iter().map(|sample| (at(sample), value(sample.value))).collect();
            let steps = samples.last()?.env_steps;
            Some(RunCurve { member, steps, points })
        };
        group.members.iter().filter_map(curve).collect()
    }

    /// The normalized mean return at the end of each of a group's runs.
    pub(crate) fn scores(&self, group: &Group, args: &CurveArguments) -> Vec<f64> {
        let last = |curve: RunCurve| curve.points.last().map(|point| point.1);
        self.of_group(group, RETURNS, args).into_iter().filter_map(last).collect()
    }

    /// The normalized mean returns of each of a group's runs at these shares of its own steps;
    /// `None` if a run has no returns.
    pub(crate) fn by_share(
        &self,
        group: &Group,
        args: &CurveArguments,
        shares: &[f64],
    ) -> Option<Vec<Vec<f64>>> {
        let curves = self.of_group(group, RETURNS, args);
        let at = |curve: &RunCurve| -> Option<Vec<f64>> {
            let end = curve.points.last()?.0;
            Some(shares.iter().map(|share| interpolated(&curve.points, share * end)).collect())
        };
        curves.iter().map(at).collect::<Option<Vec<_>>>().filter(|runs| !runs.is_empty())
    }

    /// Warns about groups with runs of different lengths, and names the runs.
    pub(crate) fn warn_of_lengths(
        &self,
        metrics: &[String],
        args: &CurveArguments,
        console: &mut Console<'_>,
    ) {
        let of_groups = self.groups.iter().flat_map(|group| {
            metrics.iter().map(move |metric| (group, self.of_group(group, metric, args)))
        });
        let mut said = BTreeSet::new();
        for (group, curves) in of_groups {
            let end = early_end(curves.iter().map(RunCurve::end));
            let Some(end) = end.filter(|_| args.along.has_means()) else { continue };
            let run = |curve: &RunCurve| {
                let path = self.runs[curve.member].run.display();
                format!("`{path}` {}", count(curve.steps))
            };
            let warning = format!(
                "{}: the runs have different numbers of environment steps ({}): their {} ends with the shortest, at {}, and longer runs continue as thin lines",
                group.name,
                curves.iter().map(run).collect::<Vec<_>>().join(", "),
                args.summary.name(),
                args.along.place(end)
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

    /// The groups in panels, each with the panel's title.
    fn facets(&self, facet: &Facet) -> Vec<(String, Vec<&Group>)> {
        let title = |group: &Group| {
            let first = &self.runs[group.members[0]];
            match facet {
                Facet::Metric => String::new(),
                Facet::Experiment => first.experiment.clone(),
                Facet::Setting(key) => {
                    let value = first.settings.get(key).map_or("-", String::as_str);
                    format!("{key} = {value}")
                }
            }
        };
        let mut facets: Vec<(String, Vec<&Group>)> = Vec::new();
        for group in &self.groups {
            let title = title(group);
            match facets.iter_mut().find(|(known, _)| *known == title) {
                Some((_, groups)) => groups.push(group),
                None => facets.push((title, vec![group])),
            }
        }
        facets
    }

    /// The charts of some metrics, with a panel for each metric and facet. `args.facet` and the
    /// title of the figure say what all panels share.
    pub(crate) fn figure(&self, metrics: &[String], args: &CurveArguments) -> Figure {
        let facets = self.facets(&args.facet);
        // A single facet has the title of the figure.
        let titled = facets.len() > 1;
        let mut panels = Vec::new();
        let mut seeds = BTreeMap::<usize, usize>::new();
        let mut until = BTreeSet::new();
        for metric in metrics {
            for (title, groups) in &facets {
                let mut panel = Panel { metric: metric.clone(), ..Panel::default() };
                let experiment = |group: &&Group| &*self.runs[group.members[0]].experiment;
                if groups.iter().all(|group| args.reference(experiment(group), metric).is_some()) {
                    panel.metric = format!("normalized {metric}");
                }
                if titled {
                    panel.title.clone_from(title);
                }
                for group in groups {
                    let curves = self.of_group(group, metric, args);
                    let end = early_end(curves.iter().map(RunCurve::end));
                    if let Some(end) = end.filter(|_| args.along.has_means()) {
                        until.insert(format!("{} up to {}", group.name, args.along.place(end)));
                    }
                    let curve = |curve: RunCurve| smoothed(curve.points, args.smooth);
                    let curves: Vec<Curve> = curves.into_iter().map(curve).collect();
                    let is_mean = args.along.has_means() || curves.len() < 2;
                    *seeds.entry(if is_mean { curves.len() } else { 1 }).or_default() += 1;
                    let mut line = match is_mean {
                        true => line(&curves, args.summary, args.individual),
                        false => Line { runs: curves, ..Line::default() },
                    };
                    line.name.clone_from(match args.facet {
                        Facet::Experiment => &group.settings,
                        _ => &group.name,
                    });
                    panel.lines.push(line);
                }
                panels.push(panel);
            }
        }
        let columns = match facets.len() {
            // A single row or column looks best up to three panels.
            1 => panels.len().div_ceil(3).min(3),
            facets => facets.min(3),
        };
        let title = if self.runs.is_empty() { String::new() } else { self.caption() };
        let title = if titled { String::new() } else { title };
        let note = note(&seeds, &until, args.summary);
        let along = args.along.name().to_owned();
        let clock = args.along == Along::Clock;
        Figure { title, along, panels, columns, note, clock, ..Figure::default() }
    }

    /// A line that describes the runs.
    pub(crate) fn caption(&self) -> String {
        match &self.groups[..] {
            [Group { name, members, .. }] if members.len() == 1 => {
                format!("{name}, seed {}", self.runs[members[0]].seed)
            }
            [Group { name, members, .. }] => format!("{name}, {}", plural(members.len(), "seed")),
            _ if self.of_one() => self.runs[0].experiment.clone(),
            groups => {
                let experiments: BTreeSet<&str> =
                    self.runs.iter().map(|run| &*run.experiment).collect();
                format!(
                    "{}, {}",
                    plural(experiments.len(), "experiment"),
                    plural(groups.len(), "setting")
                )
            }
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
                "returns" => vec![RETURNS],
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

/// The meaning of lines and bands. `seeds` counts the lines by their numbers of seeds, and `until`
/// names the lines that end before some of their runs.
fn note(seeds: &BTreeMap<usize, usize>, until: &BTreeSet<String>, summary: Summary) -> String {
    let numbers: Vec<usize> = seeds.keys().copied().filter(|seeds| *seeds > 0).collect();
    let (Some(least), Some(most)) = (numbers.first(), numbers.last()) else { return String::new() };
    let mut note = match (least, most) {
        (1, 1) => return String::new(),
        (least, most) if least == most => format!("{} of {most} seeds", summary.name()),
        (least, most) => format!("{} of {least} to {most} seeds", summary.name()),
    };
    if *most >= SEEDS_OF_BAND {
        note += "; band: 95% bootstrap interval";
    }
    if *least < SEEDS_OF_BAND && *most > 1 {
        note += "; thin lines: seeds of lines with fewer than three";
    }
    if !until.is_empty() {
        let names = until.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        note += &format!("; {}: {names}, and thin lines beyond", summary.name());
    }
    note
}
