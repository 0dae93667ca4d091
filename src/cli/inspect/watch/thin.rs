//! The metrics of a run in bounded memory, read from a file that grows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Instant;

use super::numbers::{MetricsLine, number};
use crate::cli::inspect::curves::Along;
use crate::run_directory::{METRICS, RunClock, Timed, is_metric, next_line, open, open_if_there};
use anyhow::Result;

/// Greatest number of points of a metric: beyond it, neighbours are merged.
const POINTS: usize = 1024;

/// Greatest number of bytes of a file that are read again for a part of a curve.
const CLOSE: u64 = 8 << 20;

/// A point of a curve, the mean of some lines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) steps: f64,
    pub(super) seconds: f32,
    pub(super) value: f32,
}

/// A metric with all its values; each point is the mean of `size` values.
#[derive(Debug)]
struct Thin {
    points: Vec<Point>,
    /// Number of values per point.
    size: usize,
    /// Number of values in the last point so far.
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
            // The last point, which is incomplete, has no neighbour and continues.
            self.points = pairs.map(mean).collect();
            self.size *= 2;
        }
    }
}

/// The point at a share of the distance between two points.
fn between(one: Point, other: Point, share: f32) -> Point {
    let mean = |one: f32, other: f32| one + share * (other - one);
    Point {
        steps: one.steps + f64::from(share) * (other.steps - one.steps),
        seconds: mean(one.seconds, other.seconds),
        value: mean(one.value, other.value),
    }
}

/// A position in the file between two calls, from where it can be read again.
#[derive(Clone, Copy, Debug)]
struct Mark {
    offset: u64,
    steps: f64,
    seconds: f64,
}

/// Positions in the file, some calls apart.
#[derive(Debug)]
struct Marks {
    marks: Vec<Mark>,
    /// Number of calls between two marks.
    every: usize,
    /// Number of calls since the last mark.
    since: usize,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { marks: vec![Mark { offset: 0, steps: 0.0, seconds: 0.0 }], every: 1, since: 0 }
    }
}

impl Marks {
    fn add(&mut self, mark: Mark) {
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        self.marks.push(mark);
        if self.marks.len() > POINTS {
            self.marks = self.marks.iter().copied().step_by(2).collect();
            self.every *= 2;
        }
    }
}

/// The metrics of a run, with the data read so far.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    metrics: Vec<Thin>,
    /// Indices in `metrics` by name.
    places: BTreeMap<String, usize>,
    marks: Marks,
    /// Number of bytes read.
    offset: u64,
    /// Length of the file in bytes at the last look.
    length: u64,
    /// Lines of a call: environment steps, and values of metrics by index.
    timed: Timed<(f64, Vec<(usize, f64)>)>,
    /// The time of day along the run.
    clock: RunClock,
}

impl Metrics {
    /// The metrics of the run in a folder, before its file is read.
    pub(super) fn of(run: &Path) -> Self {
        Metrics { clock: RunClock::of(run), ..Metrics::default() }
    }

    /// Reads new data, up to a deadline. A file that became shorter is a new file, and is read from
    /// its beginning.
    pub(super) fn read(&mut self, run: &Path, until: Instant) -> Result<()> {
        let Some(mut file) = open_if_there(run, METRICS, u64::MAX)? else { return Ok(()) };
        self.length = file.metadata()?.len();
        if self.length < self.offset {
            *self = Metrics { length: self.length, ..Metrics::of(run) };
        }
        if self.length == self.offset {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        while Instant::now() < until {
            let bytes = next_line(&mut reader, &mut line)?;
            // The rest of an incomplete line comes later. A line that is too long is skipped.
            if bytes == 0 || line.last().is_some_and(|last| *last != b'\n') {
                break;
            }
            self.offset += bytes;
            let Ok(MetricsLine(numbers)) = serde_json::from_slice(&line) else { continue };
            let steps = number(&numbers, "env_steps").unwrap_or(0.0);
            let ends_call = number(&numbers, "seconds").is_some();
            self.add(numbers);
            if ends_call {
                let seconds = self.timed.until;
                self.marks.add(Mark { offset: self.offset, steps, seconds });
            }
        }
        Ok(())
    }

    /// The points of a metric between two positions on an axis, read again from every line. `None`
    /// if the thinned points are as good, or if there is no time before `until`.
    ///
    /// # Errors An error if the file cannot be read.
    pub(super) fn closer(
        &self,
        run: &Path,
        name: &str,
        (along, [from, to]): (Along, [f64; 2]),
        until: Instant,
    ) -> Result<Option<Vec<Point>>> {
        let Marks { marks, .. } = &self.marks;
        let place = |mark: &Mark| self.place_along(along, (mark.steps, mark.seconds));
        let first = marks[marks.partition_point(|mark| place(mark) < from).saturating_sub(1)];
        let end = marks.get(marks.partition_point(|mark| place(mark) <= to));
        let end = end.map_or(self.offset, |mark| mark.offset);
        if self.metric(name).is_none_or(|thin| thin.size == 1) || end - first.offset > CLOSE {
            return Ok(None);
        }
        let mut file = open(run, METRICS, u64::MAX)?;
        file.seek(SeekFrom::Start(first.offset))?;
        let mut part = Metrics::default();
        part.timed.until = first.seconds;
        for line in BufReader::new(file.take(end - first.offset)).split(b'\n') {
            if Instant::now() > until {
                return Ok(None);
            }
            if let Ok(MetricsLine(mut numbers)) = serde_json::from_slice(&line?) {
                numbers.retain(|(one, _)| one == name || !is_metric(one));
                part.add(numbers);
            }
        }
        Ok(Some(part.points(name).to_vec()))
    }

    fn add(&mut self, numbers: Vec<(Cow<'_, str>, f64)>) {
        let [steps, seconds, time] =
            ["env_steps", "seconds", "time"].map(|name| number(&numbers, name));
        let metrics = numbers.into_iter().filter(|(name, _)| is_metric(name));
        let line = metrics.map(|(name, value)| (self.place(&name), value)).collect();
        for (at, (steps, line)) in self.timed.add((steps.unwrap_or(0.0), line), seconds) {
            for (place, value) in line {
                let point = Point { steps, seconds: at as f32, value: value as f32 };
                self.metrics[place].add(point);
            }
        }
        if let Some(time) = time {
            self.clock.add(self.timed.until, time);
        }
    }

    /// The position on an axis after these steps and seconds of training.
    pub(super) fn place_along(&self, along: Along, (steps, seconds): (f64, f64)) -> f64 {
        along.of((steps, seconds, self.clock.at(seconds)))
    }

    /// The index of a metric, which is added if it is new.
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.metrics.push(Thin::default());
        self.places.insert(name.to_owned(), self.metrics.len() - 1);
        self.metrics.len() - 1
    }

    fn metric(&self, name: &str) -> Option<&Thin> {
        self.metrics.get(*self.places.get(name)?)
    }

    /// The names of the metrics.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }

    /// The points of a metric.
    pub(super) fn points(&self, name: &str) -> &[Point] {
        self.metric(name).map_or(&[], |thin| &thin.points)
    }

    /// Number of bytes read, and the length of the file.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Environment steps per second, over the last tenth of the points; `None` with fewer than two
    /// points.
    pub(super) fn speed(&self) -> Option<f64> {
        let points = &self.metrics.iter().max_by_key(|thin| thin.points.len())?.points;
        let last = points.last()?;
        let first = points.get(points.len().checked_sub(points.len() / 10 + 2)?)?;
        let seconds = f64::from(last.seconds - first.seconds);
        (seconds > 0.0).then(|| (last.steps - first.steps) / seconds)
    }

    /// Environment steps per second between neighbouring points.
    pub(super) fn speeds(&self) -> Vec<Point> {
        let longest = self.metrics.iter().max_by_key(|thin| thin.points.len());
        let points: &[Point] = longest.map_or(&[], |thin| &thin.points);
        let between = |pair: &[Point]| {
            let seconds = f64::from(pair[1].seconds - pair[0].seconds);
            let value = ((pair[1].steps - pair[0].steps) / seconds) as f32;
            (seconds > 0.0).then_some(Point { value, ..pair[1] })
        };
        points.windows(2).filter_map(between).collect()
    }

    /// Seconds of training.
    pub(super) fn seconds(&self) -> f64 {
        self.timed.until
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
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
        metrics.read(folder.path(), later()).unwrap();
        let mut file = File::create(&path).unwrap();
        writeln!(file, r#"{{"iteration":1,"env_steps":10,"loss":4.0,"name":"x","none":null}}"#)
            .unwrap();
        writeln!(
            file,
            r#"{{"iteration":2,"env_steps":20,"loss":2.0,"mean_return":1.5,"seconds":3.0}}"#
        )
        .unwrap();
        write!(file, r#"{{"iteration":3,"env_steps":30,"#).unwrap();
        metrics.read(folder.path(), later()).unwrap();
        let loss = [(10.0, 1.5, 4.0), (20.0, 3.0, 2.0)];
        let loss = loss.map(|(steps, seconds, value)| Point { steps, seconds, value });
        assert_eq!(metrics.points("loss"), loss);
        assert_eq!(metrics.names().collect::<Vec<_>>(), ["loss", "mean_return"]);
        writeln!(file, r#""loss":1.0,"seconds":1.0}}"#).unwrap();
        metrics.read(folder.path(), later()).unwrap();
        assert_eq!(metrics.points("loss").last().unwrap().seconds, 4.0);
        let (read, length) = metrics.progress();
        assert!(read == length && metrics.seconds() == 4.0);
        // A run that was started again.
        fs::write(&path, "{\"env_steps\":5,\"loss\":9.0,\"seconds\":1.0}\n").unwrap();
        metrics.read(folder.path(), later()).unwrap();
        assert_eq!(metrics.points("loss").len(), 1);
        let mut other = Metrics::default();
        other.read(folder.path(), Instant::now()).unwrap();
        assert_eq!(other.progress().0, 0, "there was no time");
    }

    #[test]
    fn a_part_that_is_looked_at_has_all_of_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        // A call of four iterations takes two seconds.
        let line = |i: u32| match i % 4 {
            3 => format!("{{\"env_steps\":{},\"loss\":{i},\"seconds\":2.0}}\n", 10 * (i + 1)),
            _ => format!("{{\"env_steps\":{},\"loss\":{i}}}\n", 10 * (i + 1)),
        };
        fs::write(&path, (0..100_000).map(line).collect::<String>()).unwrap();
        let mut metrics = Metrics::default();
        metrics.read(folder.path(), later()).unwrap();
        assert!(metrics.marks.marks.len() <= POINTS);
        for (along, ends) in
            [(Along::Steps, [500_000.0, 501_000.0]), (Along::Seconds, [25_000.0, 25_050.0])]
        {
            let coarse = metrics.points("loss").iter().filter(|point| {
                (ends[0]..=ends[1])
                    .contains(&metrics.place_along(along, (point.steps, f64::from(point.seconds))))
            });
            assert!(coarse.count() < 3);
            let part = (along, ends);
            let close = metrics.closer(folder.path(), "loss", part, later()).unwrap().unwrap();
            let inside: Vec<&Point> = close
                .iter()
                .filter(|point| {
                    (ends[0]..=ends[1]).contains(
                        &metrics.place_along(along, (point.steps, f64::from(point.seconds))),
                    )
                })
                .collect();
            assert!((100..=102).contains(&inside.len()), "{}", inside.len());
            for point in inside {
                let i = f64::from(point.value);
                assert_eq!(point.steps, 10.0 * (i + 1.0));
                assert!((f64::from(point.seconds) - (i + 1.0) / 2.0).abs() < 1e-2, "{point:?}");
            }
        }
        let all = (Along::Steps, [0.0, 1e6]);
        let mut small = Metrics::default();
        assert_eq!(
            small.closer(folder.path(), "loss", all, later()).unwrap(),
            None,
            "nothing is read"
        );
        fs::write(&path, line(3)).unwrap();
        small.read(folder.path(), later()).unwrap();
        assert_eq!(
            small.closer(folder.path(), "loss", all, later()).unwrap(),
            None,
            "all is there"
        );
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
