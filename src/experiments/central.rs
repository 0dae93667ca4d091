//! An agent that infers for workers as a training loop for the command line.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use podracer_envs::host::{HostEnvironment, HostSpec, Workers};
use podracer_rl::learn::{AnyAgent, Learn, Staleness};
use podracer_runtime::setters::ConfigureHostLoop;
use podracer_runtime::{
    Activity, Array, CentralLoop, CentralMeasures, CentralRun, Checkpoint, Client, IterationReport,
    OptionValue, Origin, ThreadTimes,
};

use super::programs;
use super::threads::{Calls, mean, percent, seconds, shares, spans_processes};
use crate::central::{CentralInference, local_counted};
use crate::export::Portable;
use crate::registry::Batches;
use crate::sebulba;
use crate::settings::{CentralSettings, ReplayMemory};
use crate::training::{
    CallMetrics, Elsewhere, Live, LoopModule, Plays, Programs, Repeats, Run, Serves, Stage, Start,
    Traffic, Training,
};

/// An agent in its loop, and the batches of environments of workers in this process.
pub(super) struct CentralTraining {
    pub(super) central: CentralInference<AnyAgent>,
    /// The environments of one worker.
    pub(super) batches: Batches,
    pub(super) frames_per_step: usize,
}

impl CentralTraining {
    /// The lanes of an inference device.
    fn lanes_of_device(&self) -> HostSpec {
        HostSpec { environments: self.central.settings().environments, ..self.batches.spec.clone() }
    }

    fn trace(&self) -> Result<CentralLoop> {
        self.central.trace(&self.lanes_of_device())
    }

    /// Number of acting devices.
    fn acting(&self) -> usize {
        self.central.settings().host.acting().len()
    }

    /// Workers in this process.
    fn local(&self, restarts: &Arc<AtomicUsize>) -> Result<Vec<Box<dyn Workers>>> {
        let of_device =
            |_| (0..self.central.settings().workers).map(|_| self.batches.make()).collect();
        let batches = (0..self.acting()).map(of_device);
        local_counted(batches.collect::<Result<_>>()?, restarts)
    }

    /// Starts with these workers. `restarts` counts the restarts of environments in this process,
    /// and `traffic` is read if workers are elsewhere.
    fn begin(
        &self,
        start: Start<'_>,
        workers: Vec<Box<dyn Workers>>,
        restarts: Arc<AtomicUsize>,
        traffic: Option<Box<dyn Fn() -> Traffic>>,
    ) -> Result<Box<dyn Run>> {
        let Start { client, devices: _, xla, seed, folder, from } = start;
        let origin = from.map_or(Origin::Seed(seed), Origin::Checkpoint);
        let central = self.central.clone().xla(xla.to_vec()).replay_in(folder);
        let run = central.start(client, &self.lanes_of_device(), origin, workers)?;
        let CentralSettings { environments, host, .. } = self.central.settings();
        let lanes = self.acting() * environments;
        let shows = (self.frames_per_step, self.batches.spec.succeeds);
        Ok(Box::new(TrainingRun {
            run,
            measures: CentralMeasures::default(),
            traffic: traffic.map(|read| (read, Traffic::default())),
            restarts,
            counted_restarts: 0,
            inference: self.acting(),
            on_host: host.replay == ReplayMemory::Host,
            calls: Calls::new(host, lanes, shows, client.world(), from)?,
            stale: self.central.agent().staleness() == Staleness::Tolerated && host.lag > 0,
            lag: host.lag,
        }))
    }
}

impl Programs for CentralTraining {
    /// The programs that run repeatedly, one after another.
    fn emit(&self, stage: Stage, _: usize) -> Result<String> {
        Ok(programs::text(&self.trace()?.programs(), stage, self.central.simplifications()))
    }

    /// The programs that run repeatedly, including acting for the largest batch. The devices were
    /// picked before.
    fn modules(&self, _: usize) -> Result<Vec<LoopModule>> {
        let traced = self.trace()?;
        let [act, take_out, shards, learn] = traced.programs();
        let ahead = traced
            .learning()
            .replay()
            .map_or(self.central.settings().host.lag + 2, |replay| replay.ahead);
        let learn = programs::learner(learn, traced.learning().shape().learners, ahead);
        Ok([act, take_out, shards].map(programs::module).into_iter().chain([learn]).collect())
    }

    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        let lanes = self.lanes_of_device();
        let one = self.central.clone().learners(vec![1]);
        programs::portable(one.agent(), one.trace(&lanes)?.learning(), &lanes, batch)
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        self.central.xla_options(platform)
    }
}

impl Training for CentralTraining {
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>> {
        let restarts = Arc::default();
        let workers = self.local(&restarts)?;
        self.begin(start, workers, restarts, None)
    }

    fn spans_processes(&self) -> Result<(), String> {
        spans_processes(&self.central.settings().host, "central")
    }

    fn plays(&self) -> Result<&dyn Plays, String> {
        Ok(self)
    }

    fn repeats(&self) -> Result<&dyn Repeats, String> {
        Err(
            "time decided the steps and the parameters of each inference batch ([central]): the iterations of this run \
             cannot be made again; with [sebulba] and sebulba.schedule = \"deterministic\" they can"
                .to_owned(),
        )
    }

    fn serves(&self) -> Option<&dyn Serves> {
        Some(self)
    }
}

impl Serves for CentralTraining {
    fn lanes(&self) -> (HostSpec, usize) {
        (self.lanes_of_device(), self.acting())
    }

    fn serve(&self, start: Start<'_>, elsewhere: Elsewhere) -> Result<Box<dyn Run>> {
        let Elsewhere { workers, traffic } = elsewhere;
        self.begin(start, workers, Arc::default(), Some(traffic))
    }
}

impl Plays for CentralTraining {
    fn agent(&self) -> &AnyAgent {
        self.central.agent()
    }

    fn environments(&self, _: (&Client, usize), _: usize) -> Result<Box<dyn HostEnvironment>> {
        self.batches.make()
    }
}

/// A run in progress.
struct TrainingRun {
    run: CentralRun,
    /// Counts at the end of the last call.
    measures: CentralMeasures,
    /// A reading of the network traffic of workers elsewhere, and the traffic until the end of the
    /// last call.
    traffic: Option<(Box<dyn Fn() -> Traffic>, Traffic)>,
    /// Restarts of environments in this process, and their number at the end of the last call.
    restarts: Arc<AtomicUsize>,
    counted_restarts: usize,
    /// Number of inference threads.
    inference: usize,
    /// True if a thread has a replay on the host.
    on_host: bool,
    calls: Calls,
    /// True if the agent does not correct for old parameters although some will be old.
    stale: bool,
    lag: usize,
}

impl Run for TrainingRun {
    fn compile_seconds(&self) -> f64 {
        self.run.compile_time().as_secs_f64()
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        self.advance_until(&AtomicBool::new(false))
    }

    fn advance_until(&mut self, interrupt: &AtomicBool) -> Result<CallMetrics> {
        let began = Instant::now();
        let reports = self.run.run_until(self.calls.iterations, interrupt)?;
        let seconds = began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let spent = self.calls.spent(self.run.times());
        let others: &[_] = if self.on_host {
            &["learner", "replay", "prefetch"]
        } else {
            &["learner", "prefetch"]
        };
        let mut per_call = shares(&spent, ("inference", self.inference), others);
        let before = std::mem::replace(&mut self.measures, self.run.measures());
        let measured = Measured { now: &self.measures, before: &before, seconds };
        per_call.extend(measured.metrics());
        if let Some((read, before)) = &mut self.traffic {
            let now = read();
            let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
            per_call.extend([
                ("bytes_received_per_second".to_owned(), rate(now.received, before.received)),
                ("bytes_sent_per_second".to_owned(), rate(now.sent, before.sent)),
                ("connections".to_owned(), now.connections as f64),
                ("refused".to_owned(), now.refused as f64),
            ]);
            *before = now;
        }
        let note = self.note(&spent, &reports, &measured);
        let restarts = self.restarts.load(Ordering::Relaxed);
        let new_restarts = restarts - std::mem::replace(&mut self.counted_restarts, restarts);
        let counts = vec![
            ("environment_restarts", new_restarts as u64),
            ("workers_joined", self.measures.joined - before.joined),
            ("workers_left", self.measures.left - before.left),
            ("unrolls_lost", self.measures.lost - before.lost),
            ("steps_late", self.measures.late - before.late),
        ];
        let names = self.run.metric_names();
        self.calls.metrics(&reports, names, seconds, per_call, counts, note)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint<'_>> {
        let mut checkpoint = self.run.checkpoint()?;
        self.calls.recent.save(&mut checkpoint)?;
        Ok(checkpoint)
    }

    fn store(&self) -> &'static str {
        sebulba::STORE
    }

    fn caveat(&self) -> Option<String> {
        let mut caveats = Vec::new();
        if self.run.resumed() {
            caveats.push(
                "the workers begin fresh episodes and unrolls: the run is another than without the stop".to_owned(),
            );
        }
        if self.stale {
            caveats.push(format!(
                "this agent is on-policy, and with central.lag = {} the acting parameters may be older: \
                 the metrics parameter_lag and versions_in_unroll show by how much; central.lag = 0 keeps them at their least",
                self.lag
            ));
        }
        (!caveats.is_empty()).then(|| caveats.join("; "))
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        Ok(self.run.parameters()?)
    }

    fn restarts(&self) -> Option<usize> {
        Some(self.restarts.load(Ordering::Relaxed))
    }

    fn times(&self) -> Vec<(String, f64)> {
        seconds(&self.run.times())
    }

    fn live(&self) -> Option<Live> {
        let (meter, motion) = (self.run.meter(), self.run.motion());
        let before = Cell::new((Instant::now(), meter().observations));
        Some(Box::new(move || {
            let (now, measures) = (Instant::now(), meter());
            let (then, answered) = before.replace((now, measures.observations));
            let seconds = (now - then).as_secs_f64().max(f64::MIN_POSITIVE);
            // Actions equal steps: during a long call, its speed is known before its end.
            let speed = (measures.observations - answered) as f64 / seconds;
            vec![
                ("seconds_without_motion", motion.still().as_secs_f64()),
                ("observations", measures.observations as f64),
                ("observations_per_second", speed),
                ("env_steps_per_second", speed),
                ("workers", measures.workers as f64),
                ("lanes_taken", measures.lanes as f64),
                ("workers_late", measures.workers_late as f64),
            ]
        }))
    }
}

impl TrainingRun {
    /// A summary of a call for the progress bar.
    fn note(
        &self,
        spent: &[ThreadTimes],
        reports: &[IterationReport],
        measured: &Measured<'_>,
    ) -> String {
        let (inference, others) = spent.split_at(self.inference.min(spent.len()));
        let learner = &others[..others.len().min(1)];
        let held = [Activity::WaitingForParameters, Activity::WaitingForRoom];
        format!(
            "{} workers, {} lanes; inference: {:.0}% busy, {:.0}% held by learning, batches {:.0}% full, {:.0}% by timeout, \
             p99 {:.1} ms; learner: {:.0}% iteration, {:.0}% waiting; {:.1} queued, lag {:.1}, {:.1} versions in an unroll",
            measured.now.workers,
            measured.now.lanes,
            percent(inference, &[Activity::Inference, Activity::Sending]),
            percent(inference, &held),
            100.0 * measured.fill(),
            100.0 * measured.by_timeout(),
            1e3 * measured
                .now
                .answer
                .since(&measured.before.answer)
                .percentile(0.99)
                .unwrap_or(0.0),
            percent(learner, &[Activity::Iteration]),
            percent(learner, &[Activity::WaitingForTrajectory, Activity::WaitingForWindows]),
            mean(reports, |report| report.queued as f64),
            mean(reports, |report| report.lag),
            measured.versions(),
        )
    }
}

/// Counts of a call: at its end, compared with its beginning.
struct Measured<'a> {
    now: &'a CentralMeasures,
    before: &'a CentralMeasures,
    /// Seconds of the call.
    seconds: f64,
}

impl Measured<'_> {
    fn counted(&self, count: impl Fn(&CentralMeasures) -> u64) -> f64 {
        (count(self.now) - count(self.before)) as f64
    }

    fn ratio(
        &self,
        part: impl Fn(&CentralMeasures) -> u64,
        whole: impl Fn(&CentralMeasures) -> u64,
    ) -> f64 {
        self.counted(part) / self.counted(whole).max(1.0)
    }

    /// Share of the batches' places that environments filled.
    fn fill(&self) -> f64 {
        self.ratio(|one| one.observations, |one| one.room)
    }

    fn by_timeout(&self) -> f64 {
        self.ratio(|one| one.by_timeout, |one| one.batches)
    }

    /// Mean number of parameter versions in an unroll.
    fn versions(&self) -> f64 {
        self.ratio(|one| one.versions, |one| one.unrolls)
    }

    fn metrics(&self) -> Vec<(String, f64)> {
        let seconds = self.seconds;
        let inference = self.now.inference.since(&self.before.inference);
        let answer = self.now.answer.since(&self.before.answer);
        let step = self.now.step.since(&self.before.step);
        let all = [
            ("workers", Some(self.now.workers as f64)),
            ("lanes_taken", Some(self.now.lanes as f64)),
            ("observations_per_second", Some(self.counted(|one| one.observations) / seconds)),
            ("batch_size", Some(self.ratio(|one| one.observations, |one| one.batches))),
            ("batch_fill", Some(self.fill())),
            ("batches_by_timeout", Some(self.by_timeout())),
            ("padding", Some(1.0 - self.ratio(|one| one.observations, |one| one.padded))),
            ("inference_seconds_p50", inference.percentile(0.5)),
            ("inference_seconds_p99", inference.percentile(0.99)),
            ("answer_seconds_p50", answer.percentile(0.5)),
            ("answer_seconds_p99", answer.percentile(0.99)),
            ("workers_late", Some(self.now.workers_late as f64)),
            ("worker_step_seconds_p50", step.percentile(0.5)),
            ("worker_step_seconds_p99", step.percentile(0.99)),
            ("versions_in_unroll", Some(self.versions())),
            ("most_versions_in_unroll", Some(self.now.most_versions as f64)),
        ];
        let given = all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }
}
