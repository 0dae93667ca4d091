//! `podracer plot`: charts of runs' metrics.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::Console;
use crate::chart::{self, Line, Panel};
use crate::files::write_whole;
use crate::format::plural;
use crate::run_directory::{RunOverview, Sample, Series, differences};
use crate::settings::{UsageError, suggestion};
use crate::statistics::{Estimate, estimate, interquartile_mean, mean, variance};

#[derive(Args, Debug)]
pub(super) struct PlotArguments {
    /// The run directories
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// A metric of metrics.jsonl, or `returns` (mean_return), or `losses` (all whose names end in `loss`) [repeatable, a
    /// chart each] [default: returns]
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    /// The horizontal axis
    #[arg(long, value_enum, default_value_t = Along::Steps)]
    along: Along,
    /// The number that several seeds are drawn as
    #[arg(long, value_enum, default_value_t = Summary::Mean)]
    summary: Summary,
    /// The file to write, whose name ends in .svg or .png
    #[arg(short, long, value_name = "FILE", default_value = "plot.svg")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Along {
    /// Environment steps
    Steps,
    /// Seconds of training
    Seconds,
}

/// A number that sums up the runs of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Summary {
    /// Their mean, with its 95% interval by Student's t distribution
    Mean,
    /// The mean without a quarter of them at either end, with its 95% interval by the bootstrap
    Iqm,
}

impl Summary {
    /// Words of a legend for so many seeds.
    fn of(self, seeds: usize) -> String {
        let name = match self {
            Summary::Mean => "mean",
            Summary::Iqm => "interquartile mean",
        };
        format!("{name} of {seeds} seeds, 95% interval")
    }

    /// The value of two or more numbers, and the ends of its interval.
    fn estimate(self, values: &[f64]) -> Estimate {
        let nothing = Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN };
        match self {
            Summary::Mean => {
                let (value, half) = interval(values);
                Estimate { value, low: value - half, high: value + half }
            }
            Summary::Iqm => estimate(values, interquartile_mean).unwrap_or(nothing),
        }
    }
}

impl Along {
    fn of(self, sample: &Sample) -> f64 {
        match self {
            Along::Steps => sample.env_steps,
            Along::Seconds => sample.seconds,
        }
    }
}

/// Most points of a line: each is the mean of its part.
const POINTS: usize = 300;

pub(super) fn plot(args: &PlotArguments, console: &mut Console<'_>) -> Result<u8> {
    let png = match args.output.extension().and_then(OsStr::to_str) {
        Some("svg") => false,
        Some("png") => true,
        _ => {
            let output = args.output.display();
            return Err(UsageError::new(format!(
                "--output is `{output}` and must end in .svg or .png: no other format is written"
            ))
            .into());
        }
    };
    let runs = args.runs.iter().map(|run| RunOverview::read(run)).collect::<Result<Vec<_>>>()?;
    let series = args.runs.iter().map(|run| Series::read(run)).collect::<Result<Vec<_>>>()?;
    let mut groups = groups(&runs);
    let of_one = runs.iter().all(|run| run.experiment == runs[0].experiment);
    if groups.len() > 1 && of_one {
        // The caption has the experiment.
        for (name, _) in &mut groups {
            *name = name.replacen(&format!("{}, ", runs[0].experiment), "", 1);
        }
    }
    let mut panels = Vec::new();
    for metric in metrics(&args.metric, &series)? {
        let mut lines = Vec::new();
        for (name, members) in &groups {
            let curves = members.iter().map(|&member| {
                let samples = series[member].metric(&metric);
                samples.iter().map(|sample| (args.along.of(sample), sample.value)).collect()
            });
            let curves: Vec<Curve> = curves.filter(|curve: &Curve| !curve.is_empty()).collect();
            let mut line = line(&curves, args.summary);
            line.name = match curves.len() {
                0 | 1 => name.clone(),
                seeds => format!("{name}: {}", args.summary.of(seeds)),
            };
            lines.push(line);
        }
        panels.push(Panel { metric, lines });
    }
    let caption = match &groups[..] {
        [(name, members)] if members.len() == 1 => {
            format!("{name}, seed {}", runs[members[0]].seed)
        }
        [(name, members)] => format!("{name}, {}", plural(members.len(), "seed")),
        _ if of_one => runs[0].experiment.clone(),
        groups => plural(groups.len(), "experiment"),
    };
    let along = match args.along {
        Along::Steps => "environment steps",
        Along::Seconds => "seconds of training",
    };
    let file = match png {
        false => chart::svg(&caption, along, &panels)?.into_bytes(),
        true => chart::png(&caption, along, &panels)?,
    };
    write_whole(&args.output, &file)?;
    console.print(&format!("{}\n", args.output.display()))?;
    Ok(0)
}

/// The metrics that are asked for, by their names in the runs.
fn metrics(asked: &[String], series: &[Series]) -> Result<Vec<String>, UsageError> {
    let known: BTreeSet<&str> = series.iter().flat_map(Series::names).collect();
    let mut metrics = Vec::new();
    let asked =
        if asked.is_empty() { vec!["returns"] } else { asked.iter().map(|one| &**one).collect() };
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

/// Runs of the same settings but for the seed, each group with a name that tells it from the others. How long a run is and when it
/// is saved makes no group.
fn groups(runs: &[RunOverview]) -> Vec<(String, Vec<usize>)> {
    let mut shown: Vec<RunOverview> = runs.to_vec();
    for run in &mut shown {
        run.settings.retain(|key, _| {
            !["train.steps", "train.checkpoint", "train.store", "train.eval"]
                .iter()
                .any(|begin| key.starts_with(begin))
        });
    }
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (number, run) in shown.iter().enumerate() {
        match groups.iter_mut().find(|(first, _)| shown[*first].settings == run.settings) {
            Some((_, members)) => members.push(number),
            None => groups.push((number, vec![number])),
        }
    }
    let firsts: Vec<&RunOverview> = groups.iter().map(|(first, _)| &shown[*first]).collect();
    let name = |run: &RunOverview| {
        let same: Vec<&RunOverview> =
            firsts.iter().copied().filter(|other| other.experiment == run.experiment).collect();
        let changed = differences(&same).into_keys();
        let value = |key: &String| run.settings.get(key).map_or("-", String::as_str).to_owned();
        let changed = changed.map(|key| format!(", {key} = {}", value(&key)));
        run.experiment.clone() + &changed.collect::<String>()
    };
    groups.iter().map(|(first, members)| (name(&shown[*first]), members.clone())).collect()
}

/// Values of a metric of one run, by steps or seconds, in order.
type Curve = Vec<(f64, f64)>;

/// The mean of the curves where all of them are, or another summary, with its 95% interval.
fn line(curves: &[Curve], summary: Summary) -> Line {
    let [first, others @ ..] = curves else { return Line::default() };
    if others.is_empty() {
        return Line { points: thinned(first), ..Line::default() };
    }
    let begin = curves.iter().map(|curve| curve[0].0).fold(0.0, f64::max);
    let end = curves.iter().map(|curve| curve[curve.len() - 1].0).fold(f64::INFINITY, f64::min);
    let thinned: Vec<Curve> = curves.iter().map(thinned).collect();
    let longest = thinned.iter().map(Vec::len).max().unwrap_or(1);
    let mut line = Line::default();
    for step in 0..longest {
        let at = begin + (end - begin).max(0.0) * step as f64 / (longest - 1).max(1) as f64;
        let values: Vec<f64> = thinned.iter().map(|curve| interpolated(curve, at)).collect();
        let Estimate { value, low, high } = summary.estimate(&values);
        line.points.push((at, value));
        line.band.push((low, high));
    }
    line
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

/// The value at a place, on the straight line between the points around it.
fn interpolated(curve: &Curve, at: f64) -> f64 {
    let after = curve.partition_point(|point| point.0 < at);
    let (Some(before), Some(after)) = (curve.get(after.wrapping_sub(1)), curve.get(after)) else {
        return curve[after.min(curve.len() - 1)].1;
    };
    before.1 + (after.1 - before.1) * (at - before.0) / (after.0 - before.0)
}

/// The 97.5% quantiles of Student's t distribution for 1, 2, .. degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The mean of two or more numbers, and half the length of its 95% interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let mean = mean(values).unwrap_or(f64::NAN);
    let variance = variance(values).unwrap_or(f64::NAN);
    let t = T.get(values.len() - 2).copied().unwrap_or(1.96);
    (mean, t * (variance / values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::fake::{podracer, short};
    use super::*;

    #[test]
    fn seeds_become_a_mean_with_its_interval() {
        let (mean, half) = interval(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((half - 4.303 / 3f64.sqrt()).abs() < 1e-12);
        // One run ends earlier, and has other places.
        let curves = [vec![(0.0, 0.0), (10.0, 10.0), (20.0, 20.0)], vec![(0.0, 2.0), (10.0, 12.0)]];
        let line = line(&curves, Summary::Mean);
        assert_eq!(line.points, [(0.0, 1.0), (5.0, 6.0), (10.0, 11.0)]);
        assert!((line.band[1].1 - (6.0 + 12.706)).abs() < 1e-9, "{line:?}");
        let five = [[0.0], [1.0], [2.0], [3.0], [1000.0]].map(|[value]| vec![(0.0, value)]);
        let iqm = super::line(&five, Summary::Iqm);
        assert_eq!(iqm.points, [(0.0, 2.0)], "without the run that is far off");
        assert!(iqm.band[0].0 < 2.0 && iqm.band[0].1 > 2.0, "{iqm:?}");
        let long: Curve = (0..100_000).map(|at| (f64::from(at), 1.0)).collect();
        assert!(thinned(&long).len() <= POINTS);
    }

    #[test]
    fn runs_of_the_same_settings_are_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str, more: &[&str]| {
            let path = folder.path().join(name);
            assert_eq!(podracer(&short(&path, more)).code, 0);
            path.to_str().unwrap().to_owned()
        };
        let runs = [
            run("a", &[]),
            run("b", &["--seed=1", "--set=train.checkpoint_every=16"]),
            run("c", &["--set=agent.clip=0.1"]),
        ];
        let output = folder.path().join("plot.svg");
        let plot = |more: &[&str]| {
            let output = ["-o", output.to_str().unwrap()];
            podracer(&[&["plot", &runs[0], &runs[1], &runs[2]], &output[..], more].concat())
        };
        let printed = plot(&["--metric=returns", "--metric=losses"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let text = fs::read_to_string(&output).unwrap();
        let said = "\nagent.clip = 0.2: mean of 2 seeds, 95% interval\n";
        assert_eq!(text.matches(said).count(), 2, "{text}");
        assert_eq!(text.matches("\nagent.clip = 0.1\n").count(), 2, "{text}");
        assert_eq!(plot(&["--along=seconds", "--summary=iqm"]).code, 0);
        let text = fs::read_to_string(&output).unwrap();
        assert!(text.contains("interquartile mean of 2 seeds, 95% interval"), "{text}");
        let printed = plot(&["--metric=entropi"]);
        assert_eq!(printed.code, 2);
        let said = "the runs have no metric `entropi`; they have episodes, loss, mean_return";
        assert!(printed.err.contains(said), "{}", printed.err);
        let picture = folder.path().join("plot.png");
        assert_eq!(podracer(&["plot", &runs[0], "-o", picture.to_str().unwrap()]).code, 0);
        assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
        let printed = podracer(&["plot", &runs[0], "-o", "plot.pdf"]);
        let said = "must end in .svg or .png";
        assert!(printed.code == 2 && printed.err.contains(said), "{}", printed.err);
    }
}
