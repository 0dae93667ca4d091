//! Metrics of a run, read back from `metrics.jsonl` for charts.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::METRICS;
#[cfg(feature = "plots")]
use super::RunClock;
use super::reading::{cannot_read, next_line, open};

/// A value of a metric.
#[cfg(feature = "plots")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Environment steps of the run at that time.
    pub env_steps: f64,
    /// Seconds of training at that time, over all calls so far.
    pub seconds: f64,
    /// Time of day in seconds since 1970.
    pub time: f64,
    /// The metric's value.
    pub value: f64,
}

/// All metrics of a run.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The lines of `metrics.jsonl`, each with its seconds of training.
    lines: Vec<(f64, Map<String, Value>)>,
    /// The time of day along the run.
    #[cfg(feature = "plots")]
    clock: RunClock,
}

impl Series {
    /// Reads the metrics of the run in a folder. An incomplete last line is left out.
    ///
    /// # Errors
    /// An error if the file cannot be read.
    pub fn read(run: &Path) -> Result<Self> {
        let cannot = || cannot_read(run, METRICS);
        let mut file = BufReader::new(open(run, METRICS, u64::MAX).with_context(cannot)?);
        let (mut line, mut lines, mut timed) = (Vec::new(), Vec::new(), Timed::default());
        while next_line(&mut file, &mut line).with_context(cannot)? > 0 {
            let Ok(Value::Object(line)) = serde_json::from_slice(&line) else { continue };
            let seconds = line.get("seconds").and_then(Value::as_f64);
            lines.extend(timed.add(line, seconds));
        }
        let Timed { untimed, until } = timed;
        lines.extend(untimed.into_iter().map(|line| (until, line)));
        Ok(Series {
            #[cfg(feature = "plots")]
            clock: Series::clock(run, &lines),
            lines,
        })
    }

    /// The time of day along the run in a folder, by the lines that have one.
    #[cfg(feature = "plots")]
    fn clock(run: &Path, lines: &[(f64, Map<String, Value>)]) -> RunClock {
        let mut clock = RunClock::of(run);
        for (seconds, line) in lines {
            if let Some(time) = line.get("time").and_then(Value::as_f64) {
                clock.add(*seconds, time);
            }
        }
        clock
    }

    /// The lines, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.lines.iter().map(|(seconds, line)| Row { seconds: *seconds, line })
    }

    /// The names of the metrics that have at least one number.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        let numbers = self.lines.iter().flat_map(|(_, line)| line);
        let names = numbers.filter(|(_, value)| value.is_number()).map(|(name, _)| name.as_str());
        names.filter(|name| is_metric(name)).collect()
    }

    /// The numbers among the values of a metric.
    #[cfg(feature = "plots")]
    #[must_use]
    pub fn metric(&self, name: &str) -> Vec<Sample> {
        let sample = |row: Row<'_>| {
            let (env_steps, value) = (row.number("env_steps")?, row.number(name)?);
            let (seconds, time) = (row.seconds, self.clock.at(row.seconds));
            Some(Sample { env_steps, seconds, time, value })
        };
        self.rows().filter_map(sample).collect()
    }
}

/// A line of the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Seconds of training at that time, over all calls so far.
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

/// The seconds of training of lines. The last line of a call has the seconds of the call.
#[derive(Debug)]
pub struct Timed<L> {
    /// Lines since the last line with the seconds of a call.
    untimed: Vec<L>,
    /// Seconds of training until that line.
    pub until: f64,
}

impl<L> Default for Timed<L> {
    fn default() -> Self {
        Timed { untimed: Vec::new(), until: 0.0 }
    }
}

impl<L> Timed<L> {
    /// Adds a line. If it has the seconds of a call, all lines of the call are returned. They share
    /// the seconds evenly, and each comes with its seconds of training.
    pub fn add(
        &mut self,
        line: L,
        seconds: Option<f64>,
    ) -> impl Iterator<Item = (f64, L)> + use<L> {
        self.untimed.push(line);
        let (until, of_call) = (self.until, seconds.unwrap_or(0.0));
        let lines = seconds.map(|_| std::mem::take(&mut self.untimed)).unwrap_or_default();
        self.until += of_call;
        let number = lines.len() as f64;
        let share = move |(done, line)| (until + of_call * (done + 1) as f64 / number, line);
        lines.into_iter().enumerate().map(share)
    }
}

/// True for a measurement, false for the position of a line in the training.
pub fn is_metric(name: &str) -> bool {
    !["iteration", "iterations", "env_steps", "seconds", "time"].contains(&name)
}
