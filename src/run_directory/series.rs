//! Metrics of a run, read back from `metrics.jsonl`: for charts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::METRICS;

/// A value of a metric.
#[cfg(feature = "plots")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Environment steps of the run then.
    pub env_steps: f64,
    /// Seconds of training then, over all calls so far.
    pub seconds: f64,
    /// The metric's value.
    pub value: f64,
}

/// All metrics of a run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The lines of `metrics.jsonl`, each with its seconds of training.
    lines: Vec<(f64, Map<String, Value>)>,
}

impl Series {
    /// Reads the metrics of the run in a folder. A last line that is not whole is left out.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join(METRICS);
        let cannot = || format!("cannot read `{}`", path.display());
        let file = File::open(&path).with_context(cannot)?;
        let mut lines: Vec<(f64, Map<String, Value>)> = Vec::new();
        // Lines since the last one with the seconds of a call, and the seconds until then.
        let (mut untimed, mut until) = (0, 0.0);
        for line in BufReader::new(file).lines() {
            let Ok(Value::Object(line)) = serde_json::from_str(&line.with_context(cannot)?) else {
                continue;
            };
            let seconds = line.get("seconds").and_then(Value::as_f64);
            lines.push((until, line));
            untimed += 1;
            if let Some(seconds) = seconds {
                // The iterations of a call share its seconds.
                let first = lines.len() - untimed;
                for (done, (at, _)) in lines[first..].iter_mut().enumerate() {
                    *at = until + seconds * (done + 1) as f64 / untimed as f64;
                }
                (untimed, until) = (0, until + seconds);
            }
        }
        Ok(Series { lines })
    }

    /// The lines, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.lines.iter().map(|(seconds, line)| Row { seconds: *seconds, line })
    }

    /// The names of the metrics that have a number somewhere.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        let numbers = self.lines.iter().flat_map(|(_, line)| line);
        let names = numbers.filter(|(_, value)| value.is_number()).map(|(name, _)| name.as_str());
        names.filter(|name| is_metric(name)).collect()
    }

    /// The values of a metric that are numbers.
    #[cfg(feature = "plots")]
    #[must_use]
    pub fn metric(&self, name: &str) -> Vec<Sample> {
        let sample = |row: Row<'_>| {
            let (env_steps, value) = (row.number("env_steps")?, row.number(name)?);
            Some(Sample { env_steps, seconds: row.seconds, value })
        };
        self.rows().filter_map(sample).collect()
    }
}

/// A line of the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Seconds of training then, over all calls so far.
    pub seconds: f64,
    line: &'a Map<String, Value>,
}

impl<'a> Row<'a> {
    /// A number of the line: a metric, `iteration` or `env_steps`.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.line.get(name)?.as_f64()
    }

    /// The line's metrics that are numbers, and its environment steps.
    pub fn numbers(&self) -> impl Iterator<Item = (&'a str, f64)> + use<'a> {
        let numbers = self.line.iter().filter_map(|(name, value)| Some((&**name, value.as_f64()?)));
        numbers.filter(|(name, _)| is_metric(name) || *name == "env_steps")
    }
}

/// True of what is measured, and not the place of a line in the training.
fn is_metric(name: &str) -> bool {
    !["iteration", "iterations", "env_steps", "seconds"].contains(&name)
}
