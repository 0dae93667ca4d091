//! The metrics of a run in bounded memory, read from a file that grows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::run_directory::{Timed, is_metric};

/// Most points of a metric: where there are more, neighbours become one.
const POINTS: usize = 1024;

/// A point of a curve, the mean of some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) steps: f64,
    pub(super) seconds: f32,
    pub(super) value: f32,
}

/// A metric: all of its values, each point the mean of as many of them.
#[derive(Debug)]
struct Thin {
    points: Vec<Point>,
    /// Values of a point.
    size: usize,
    /// Values of the last point so far.
    last: usize,
}

impl Default for Thin {
    fn default() -> Self {
        Thin { points: Vec::new(), size: 1, last: 1 }
    }
}

impl Thin {
    fn add(&mut self, point: Point) {
        match self.points.last_mut().filter(|_| self.last < self.size) {
            Some(mean) => {
                self.last += 1;
                *mean = between(*mean, point, 1.0 / self.last as f32);
            }
            None => {
                self.points.push(point);
                self.last = 1;
            }
        }
        if self.points.len() > POINTS {
            let pairs = self.points.chunks(2);
            let mean = |pair: &[Point]| between(pair[0], pair[pair.len() - 1], 0.5);
            // The last one, which has just begun, has no neighbour, and goes on.
            self.points = pairs.map(mean).collect();
            self.size *= 2;
        }
    }
}

/// The point at a share of the way from one to another.
fn between(one: Point, other: Point, share: f32) -> Point {
    let mean = |one: f32, other: f32| one + share * (other - one);
    Point {
        steps: one.steps + f64::from(share) * (other.steps - one.steps),
        seconds: mean(one.seconds, other.seconds),
        value: mean(one.value, other.value),
    }
}

/// The metrics of a run, as far as they are read.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    by_name: BTreeMap<String, Thin>,
    /// Bytes that are read.
    offset: u64,
    /// Bytes of the file when it was looked at last.
    length: u64,
    timed: Timed<Vec<(String, f64)>>,
}

impl Metrics {
    /// Reads what is new, until a time. A file that became shorter is another one, and read from its beginning.
    pub(super) fn read(&mut self, path: &Path, until: Instant) -> Result<()> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        self.length = file.metadata()?.len();
        if self.length < self.offset {
            *self = Metrics { length: self.length, ..Metrics::default() };
        }
        if self.length == self.offset {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        while Instant::now() < until {
            line.clear();
            let bytes = reader.read_until(b'\n', &mut line)?;
            if bytes == 0 || line.last() != Some(&b'\n') {
                // The rest of a line that is being written comes later.
                break;
            }
            self.offset += bytes as u64;
            if let Ok(Line(numbers)) = serde_json::from_slice(&line) {
                self.add(numbers);
            }
        }
        Ok(())
    }

    fn add(&mut self, numbers: Vec<(Cow<'_, str>, f64)>) {
        let seconds = numbers.iter().find(|(name, _)| name == "seconds").map(|(_, value)| *value);
        let line = numbers.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
        for (at, line) in self.timed.add(line, seconds) {
            let steps = line.iter().find(|(name, _)| name == "env_steps");
            let steps = steps.map_or(0.0, |(_, steps)| *steps);
            for (name, value) in line.into_iter().filter(|(name, _)| is_metric(name)) {
                let point = Point { steps, seconds: at as f32, value: value as f32 };
                self.by_name.entry(name).or_default().add(point);
            }
        }
    }

    /// The names of the metrics.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The points of a metric.
    pub(super) fn points(&self, name: &str) -> &[Point] {
        self.by_name.get(name).map_or(&[], |thin| &thin.points)
    }

    /// Bytes that are read, and those of the file.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Environment steps in a second, over the last tenth of the points that there are; `None` before there are two.
    pub(super) fn speed(&self) -> Option<f64> {
        let points = &self.by_name.values().max_by_key(|thin| thin.points.len())?.points;
        let last = points.last()?;
        let first = points.get(points.len().checked_sub(points.len() / 10 + 2)?)?;
        let seconds = f64::from(last.seconds - first.seconds);
        (seconds > 0.0).then(|| (last.steps - first.steps) / seconds)
    }

    /// Seconds of training.
    pub(super) fn seconds(&self) -> f64 {
        self.timed.until
    }
}

/// The numbers of a line of metrics.
struct Line<'a>(Vec<(Cow<'a, str>, f64)>);

impl<'de: 'a, 'a> Deserialize<'de> for Line<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Line<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line<'de>, A::Error> {
                let mut numbers = Vec::with_capacity(24);
                while let Some(Key(name)) = map.next_key()? {
                    if let Number(Some(value)) = map.next_value()? {
                        numbers.push((name, value));
                    }
                }
                Ok(Line(numbers))
            }
        }
        from.deserialize_map(Numbers)
    }
}

/// A name that is borrowed from the line where that has it as it is.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// A value of a line, if it is a number.
#[derive(Deserialize)]
#[serde(from = "serde_json::Value")]
struct Number(Option<f64>);

impl From<serde_json::Value> for Number {
    fn from(value: serde_json::Value) -> Self {
        Number(value.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_file_that_grows_is_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let mut metrics = Metrics::default();
        metrics.read(&path, later()).unwrap();
        let mut file = File::create(&path).unwrap();
        writeln!(file, r#"{{"iteration":1,"env_steps":10,"loss":4.0,"name":"x","none":null}}"#)
            .unwrap();
        writeln!(
            file,
            r#"{{"iteration":2,"env_steps":20,"loss":2.0,"mean_return":1.5,"seconds":3.0}}"#
        )
        .unwrap();
        write!(file, r#"{{"iteration":3,"env_steps":30,"#).unwrap();
        metrics.read(&path, later()).unwrap();
        let loss = [(10.0, 1.5, 4.0), (20.0, 3.0, 2.0)];
        let loss = loss.map(|(steps, seconds, value)| Point { steps, seconds, value });
        assert_eq!(metrics.points("loss"), loss);
        assert_eq!(metrics.names().collect::<Vec<_>>(), ["loss", "mean_return"]);
        writeln!(file, r#""loss":1.0,"seconds":1.0}}"#).unwrap();
        metrics.read(&path, later()).unwrap();
        assert_eq!(metrics.points("loss").last().unwrap().seconds, 4.0);
        let (read, length) = metrics.progress();
        assert!(read == length && metrics.seconds() == 4.0);
        // A run that began anew.
        fs::write(&path, "{\"env_steps\":5,\"loss\":9.0,\"seconds\":1.0}\n").unwrap();
        metrics.read(&path, later()).unwrap();
        assert_eq!(metrics.points("loss").len(), 1);
        let mut other = Metrics::default();
        other.read(&path, Instant::now()).unwrap();
        assert_eq!(other.progress().0, 0, "there was no time");
    }

    #[test]
    fn many_values_are_few_points_with_the_same_mean() {
        for number in [1, 1023, 1024, 1025, 5000, 100_000] {
            let mut thin = Thin::default();
            for i in 0..number {
                thin.add(Point { steps: f64::from(i), seconds: i as f32, value: (i % 7) as f32 });
            }
            assert!(thin.points.len() <= POINTS, "{number}");
            assert!(thin.points.is_sorted_by(|one, other| one.steps < other.steps), "{number}");
            let whole = &thin.points[..thin.points.len() - 1];
            let size = thin.size as f64;
            for (place, point) in whole.iter().enumerate() {
                let expected = place as f64 * size + (size - 1.0) / 2.0;
                assert!(
                    (point.steps - expected).abs() < 1e-6 * f64::from(number),
                    "{number}: {point:?} of {place}"
                );
            }
        }
    }
}
