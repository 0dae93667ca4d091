//! The time of day along a run, for charts over absolute time.

use std::path::Path;
use std::time::UNIX_EPOCH;

use super::RunDirectory;

/// Greatest number of samples: beyond it, every second sample is left out.
const SAMPLES: usize = 1024;

/// The time of day at positions of a run. Trainings pause for evaluations, checkpoints and stops,
/// so that the time of day is more than the start plus the seconds of training.
#[derive(Clone, Debug)]
pub struct RunClock {
    /// The start of a run without samples, in seconds since 1970.
    began: f64,
    /// Seconds of training, each with the time in seconds since 1970, in order.
    samples: Vec<(f64, f64)>,
    /// Number of recorded samples per kept sample, and the number since the last kept sample.
    every: usize,
    since: usize,
}

impl Default for RunClock {
    fn default() -> Self {
        RunClock { began: 0.0, samples: Vec::new(), every: 1, since: 0 }
    }
}

impl RunClock {
    /// The clock of the run in a folder, without samples so far. Until it has a sample, the run
    /// begins at the time of its settings.
    #[must_use]
    pub fn of(run: &Path) -> Self {
        let settings = RunDirectory::began(run).ok();
        let since_1970 = settings.and_then(|began| began.duration_since(UNIX_EPOCH).ok());
        RunClock { began: since_1970.unwrap_or_default().as_secs_f64(), ..RunClock::default() }
    }

    /// Adds a sample: `time` in seconds since 1970, after these seconds of training. A sample that
    /// is not later than the last sample is left out.
    pub fn add(&mut self, seconds: f64, time: f64) {
        let last = self.samples.last().copied().unwrap_or((f64::NEG_INFINITY, f64::NEG_INFINITY));
        if seconds <= last.0 || time < last.1 {
            return;
        }
        self.since += 1;
        if self.since < self.every {
            return;
        }
        self.since = 0;
        self.samples.push((seconds, time));
        if self.samples.len() > SAMPLES {
            self.samples = self.samples.iter().copied().step_by(2).collect();
            self.every *= 2;
        }
    }

    /// The time in seconds since 1970 after these seconds of training. A pause between two samples
    /// counts as a pause right after the first of them.
    #[must_use]
    pub fn at(&self, seconds: f64) -> f64 {
        let after = self.samples.partition_point(|sample| sample.0 < seconds);
        let before = after.checked_sub(1).map(|before| self.samples[before]);
        match (before, self.samples.get(after)) {
            (None, None) => self.began + seconds,
            (Some((from, time)), None) => time + (seconds - from),
            (None, Some((to, time))) => time - (to - seconds),
            (Some((_, earliest)), Some((to, time))) => (time - (to - seconds)).max(earliest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_between_two_samples() {
        let mut clock = RunClock { began: 500.0, ..RunClock::default() };
        assert_eq!(clock.at(10.0), 510.0);
        // The run is stopped after 2 s of training, and resumed an hour later.
        for (seconds, time) in [(1.0, 1001.0), (2.0, 1002.0), (4.0, 4604.0)] {
            clock.add(seconds, time);
        }
        let times = [0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0].map(|seconds| clock.at(seconds));
        assert_eq!(times, [1000.0, 1001.0, 1001.5, 1002.0, 4603.0, 4604.0, 4605.0]);
        // The clock of the machine was set back.
        clock.add(5.0, 4000.0);
        assert_eq!(clock.at(5.0), 4605.0);
    }

    #[test]
    fn many_samples_are_kept_in_bounded_memory() {
        let mut clock = RunClock::default();
        for second in 1..=100_000 {
            clock.add(f64::from(second), 1e9 + 2.0 * f64::from(second));
        }
        assert!(clock.samples.len() <= SAMPLES);
        let (half, end) = (clock.at(50_000.0), clock.at(100_000.0));
        assert!(
            (half - 1e9 - 1e5).abs() < 200.0 && (end - 1e9 - 2e5).abs() < 200.0,
            "{half} {end}"
        );
    }
}
