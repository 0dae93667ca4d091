//! Sums over the calls of a training.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::axis::Point;
use crate::load::LoadMeter;
use crate::run_directory::{Counters, RunDirectory};
use crate::training::{CallMetrics, Run};

/// Sums over the calls so far, over all processes that trained the run; times belong to this
/// process.
pub(crate) struct RunTotals {
    started: Instant,
    /// Time and environment steps at the beginning of this process's first call.
    began: Option<(Instant, u64)>,
    ended: Option<Instant>,
    /// Duration of the evaluations between the first call and the end of the last call, and since
    /// then.
    evaluating: [Duration; 2],
    pub(crate) first: Option<FirstCall>,
    pub(crate) counters: Counters,
    pub(crate) speed_now: f64,
    /// Seconds of the last call.
    pub(crate) call_seconds: f64,
    pub(crate) note: String,
    pub(crate) points: Vec<Point>,
    meter: LoadMeter,
}

/// The first call of this process.
#[derive(Clone, Copy)]
pub(crate) struct FirstCall {
    ended: Instant,
    /// Environment steps of the training until its end.
    env_steps: u64,
    pub(crate) seconds_since_start: f64,
}

impl RunTotals {
    /// Totals that begin with these counters and this learning curve.
    pub(crate) fn new(started: Instant, counters: Counters, points: Vec<Point>) -> Self {
        Self {
            started,
            began: None,
            ended: None,
            evaluating: [Duration::ZERO; 2],
            first: None,
            counters,
            speed_now: 0.0,
            call_seconds: 0.0,
            note: String::new(),
            points,
            meter: LoadMeter::new(Instant::now()),
        }
    }

    /// Makes one call and records it.
    pub(crate) fn call(
        &mut self,
        run: &mut dyn Run,
        directory: &mut RunDirectory,
        interrupt: &AtomicBool,
    ) -> Result<CallMetrics> {
        let began = Instant::now();
        let call = run.advance_until(interrupt).with_context(|| {
            let iterations = self.counters.iterations;
            format!("the training failed after {iterations} iterations ({})", directory.way_back())
        })?;
        if call.iterations > 0 {
            self.record(&call, (began, Instant::now()), directory)?;
        }
        Ok(call)
    }

    /// Records a call with its start and end times.
    pub(crate) fn record(
        &mut self,
        call: &CallMetrics,
        (began, ended): (Instant, Instant),
        directory: &mut RunDirectory,
    ) -> Result<()> {
        let since = std::mem::take(&mut self.evaluating[1]);
        self.evaluating[0] += since;
        let seconds = (ended - began).as_secs_f64();
        let before = (self.counters.iterations, self.counters.env_steps);
        self.counters.env_steps += call.env_steps;
        self.counters.iterations += call.iterations;
        self.counters.calls += 1;
        self.counters.seconds += seconds;
        self.counters.episodes += call.episodes;
        self.counters.mean_return = call.recent.mean_return();
        self.counters.mean_return_episodes = call.recent.episodes;
        self.call_seconds = seconds;
        self.speed_now = call.env_steps as f64 / seconds.max(f64::MIN_POSITIVE);
        self.note.clone_from(&call.note);
        let env_steps = self.counters.env_steps;
        let mean = self.counters.mean_return;
        self.points.extend(mean.map(|mean| (env_steps, mean)));
        self.began.get_or_insert((began, before.1));
        self.ended = Some(ended);
        self.first.get_or_insert(FirstCall {
            ended,
            env_steps,
            seconds_since_start: (ended - self.started).as_secs_f64(),
        });
        if let Some(load) = self.meter.sample(ended) {
            directory.record_load(load);
        }
        directory.record(call, before, seconds)
    }

    /// Subtracts the duration of an evaluation from the training's.
    pub(crate) fn evaluated(&mut self, time: Duration) {
        self.evaluating[1] += time;
    }

    /// Seconds from the beginning of the first call to the end of the last, without evaluations.
    pub(crate) fn seconds(&self) -> f64 {
        let span = self.began.zip(self.ended);
        span.map_or(0.0, |((began, _), ended)| {
            (ended - began).saturating_sub(self.evaluating[0]).as_secs_f64()
        })
    }

    /// Steps per second after the first call, or of the first call if there is no other.
    pub(crate) fn steady_speed(&self) -> Option<f64> {
        let (first, ended) = (self.first?, self.ended?);
        let (_, before) = self.began?;
        let env_steps = self.counters.env_steps;
        let (steps, seconds) = if env_steps > first.env_steps {
            let time = (ended - first.ended).saturating_sub(self.evaluating[0]);
            (env_steps - first.env_steps, time.as_secs_f64())
        } else {
            (env_steps - before, self.seconds())
        };
        (seconds > 0.0).then(|| steps as f64 / seconds)
    }
}
