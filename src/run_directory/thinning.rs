//! The lines of `metrics.jsonl` and the events of TensorBoard: one per iteration in the first
//! minute, and at most one per second after that.
//!
//! # Invariants
//! - Every iteration and every call is in exactly one line, and the lines leave no gaps.
//! - Nothing reads a clock: a call's iterations share its seconds evenly, so that the same calls
//!   and seconds give the same lines.

use super::RunDirectory;
use crate::load::MachineLoad;
use crate::settings::MetricsEvery;
use crate::training::CallMetrics;

/// Seconds of training in which every iteration has a line.
const FULL: f64 = 60.0;

/// The record of some consecutive iterations.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Number of iterations of the run so far.
    pub(super) iteration: u64,
    /// Number of environment steps of the run so far.
    pub(super) env_steps: u64,
    /// Number of iterations in the line.
    pub(super) iterations: u64,
    /// The metrics of each iteration; [`Series::mean`] reduces them to one value.
    pub(super) series: Vec<(String, Series)>,
    /// The calls that ended in these iterations; `None` if no call ended.
    pub(super) calls: Option<Calls>,
}

/// Values of one metric.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Series {
    sum: f64,
    count: u64,
    /// The last value that is not a number.
    odd: Option<f32>,
}

impl Series {
    fn add(&mut self, value: f32) {
        if value.is_finite() {
            self.sum += f64::from(value);
            self.count += 1;
        } else {
            self.odd = Some(value);
        }
    }

    /// The mean over the iterations that have a number: `episode_return` is NaN if no episode
    /// ended. NaN or an infinity if no iteration has a number.
    pub(super) fn mean(&self) -> f32 {
        match self.count {
            0 => self.odd.unwrap_or(f32::NAN),
            count => (self.sum / count as f64) as f32,
        }
    }
}

/// The record of whole calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Sum over the calls.
    pub(super) episodes: u64,
    /// Mean return after the last call.
    pub(super) mean_return: Option<f64>,
    /// Sum over the calls.
    pub(super) seconds: f64,
    /// Sum over the calls.
    pub(super) env_steps: u64,
    /// Means over the time of the calls.
    pub(super) values: Vec<(String, f64)>,
    /// Sums over the calls.
    pub(super) counts: Vec<(String, u64)>,
    /// The last sample of the machine's load; `None` if no sample was due.
    pub(super) load: Option<MachineLoad>,
}

impl Calls {
    fn add(&mut self, call: &CallMetrics, seconds: f64) {
        let before = self.seconds;
        self.episodes += call.episodes;
        self.mean_return = call.recent.mean_return();
        self.seconds += seconds;
        self.env_steps += call.env_steps;
        if before == 0.0 {
            self.values.clone_from(&call.per_call);
        } else {
            // A share of time that a call does not report is 0.
            for (name, mean) in &mut self.values {
                let now = call.per_call.iter().find(|(other, _)| other == name);
                let now = now.map_or(0.0, |(_, value)| *value);
                *mean = (*mean * before + now * seconds) / self.seconds;
            }
            for (name, value) in &call.per_call {
                if self.values.iter().all(|(other, _)| other != name) {
                    self.values.push((name.clone(), value * seconds / self.seconds));
                }
            }
        }
        for (name, count) in &call.counts {
            match self.counts.iter_mut().find(|(other, _)| other == name) {
                Some((_, sum)) => *sum += count,
                None => self.counts.push((name.clone(), *count)),
            }
        }
    }
}

impl RunDirectory {
    /// Adds a sample of the machine's load, for the line of the next call.
    pub fn record_load(&mut self, load: MachineLoad) {
        self.thinning.load = Some(load);
    }
}

/// Collects calls into lines.
pub(super) struct Thinning {
    every: MetricsEvery,
    /// Seconds of all calls so far.
    trained: f64,
    /// Seconds since the last line, in the part with at most one line per second.
    waited: f64,
    pending: Line,
    /// The sample of the machine's load for the next call.
    load: Option<MachineLoad>,
}

impl Thinning {
    pub(super) fn new(every: MetricsEvery) -> Self {
        Thinning { every, trained: 0.0, waited: 0.0, pending: Line::default(), load: None }
    }

    /// Adds a call of `seconds` seconds, and returns the lines that are complete. `iterations` and
    /// `steps` are the run's before the call.
    pub(super) fn add(
        &mut self,
        call: &CallMetrics,
        (iterations, steps): (u64, u64),
        seconds: f64,
    ) -> Vec<Line> {
        let due = if self.every == MetricsEvery::Iteration || self.trained < FULL {
            call.iterations
        } else {
            self.waited += seconds;
            call.iterations.min(self.waited as u64)
        };
        // If iterations take longer than a second, no time is left over for later iterations.
        self.waited = if due == call.iterations { 0.0 } else { self.waited - due as f64 };
        self.trained += seconds;
        let mut lines = Vec::new();
        for iteration in 0..call.iterations {
            let done = iteration + 1;
            let line = &mut self.pending;
            line.iteration = iterations + done;
            line.env_steps = steps + call.env_steps * done / call.iterations.max(1);
            line.iterations += 1;
            for (name, values) in &call.per_iteration {
                let value = usize::try_from(iteration).ok().and_then(|index| values.get(index));
                let place = line.series.iter().position(|(other, _)| other == name);
                let place = place.unwrap_or_else(|| {
                    line.series.push((name.clone(), Series::default()));
                    line.series.len() - 1
                });
                line.series[place].1.add(value.copied().unwrap_or(f32::NAN));
            }
            if done == call.iterations {
                let calls = line.calls.get_or_insert_default();
                calls.add(call, seconds);
                calls.load = self.load.take().or(calls.load);
            }
            // The last of `due` parts of the call ends with the call.
            if done * due / call.iterations > iteration * due / call.iterations {
                lines.extend(self.flush());
            }
        }
        lines
    }

    /// The line of the iterations that are in no line yet, if there are any.
    pub(super) fn flush(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.pending);
        (line.iterations > 0).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample belongs to the call after it. A line of several calls has the last sample.
    #[test]
    fn a_line_has_the_last_sample_of_the_load() {
        let mut thinning = Thinning::new(MetricsEvery::Second);
        thinning.trained = FULL;
        let call = CallMetrics { env_steps: 10, iterations: 1, ..CallMetrics::default() };
        let mut record = |number: u64, cpu: Option<f64>, seconds: f64| {
            let load =
                |cpu| MachineLoad { time: 1e9, cpu, process_cpu: 0.25, process_memory: 4096 };
            thinning.load = cpu.map(load);
            let added = thinning.add(&call, (number, 10 * number), seconds);
            added.iter().map(|line| serde_json::to_value(line).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(record(0, Some(0.5), 0.25).len() + record(1, Some(0.75), 0.25).len(), 0);
        let lines = record(2, None, 0.5);
        let names = ["cpu", "process_cpu", "process_memory"];
        let values = names.map(|name| lines[0][format!("machine/{name}")].as_f64());
        assert_eq!((lines.len(), values), (1, [Some(0.75), Some(0.25), Some(4096.0)]));
        let lines = record(3, None, 1.0);
        assert!(lines[0].get("machine/cpu").is_none(), "{lines:?}");
    }
}
