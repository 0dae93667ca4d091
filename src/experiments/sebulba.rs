//! An agent in environments on the host as a training loop for the command line.

use std::time::Instant;

use anyhow::Result;
use podracer_envs::host::HostEnvironment;
use podracer_rl::learn::AnyAgent;
use podracer_runtime::setters::ConfigureHostLoop;
use podracer_runtime::{
    Activity, Array, Checkpoint, Client, IterationReport, OptionValue, Origin, SebulbaLoop,
    SebulbaRun, SebulbaSettings, ThreadTimes,
};

use super::explain;
use super::programs;
use super::threads::{Calls, mean, percent, seconds, shares, spans_processes};
use crate::export::Portable;
use crate::registry::Batches;
use crate::sebulba::{self, Sebulba};
use crate::training::{
    CallMetrics, Evaluate, Explanation, Live, LoopModule, Plays, Programs, Repeats, Run, Stage,
    Start, Suspect, Training,
};

/// An agent in its loop, and the batches of environments of its actor threads.
pub(super) struct SebulbaTraining {
    pub(super) sebulba: Sebulba<AnyAgent>,
    pub(super) batches: Batches,
    pub(super) frames_per_step: usize,
}

impl SebulbaTraining {
    fn trace(&self) -> Result<SebulbaLoop> {
        self.sebulba.trace(&self.batches.spec)
    }
}

impl Programs for SebulbaTraining {
    /// The programs that run in every iteration, one after another.
    fn emit(&self, stage: Stage, _: usize) -> Result<String> {
        Ok(programs::text(&self.trace()?.programs(), stage, self.sebulba.simplifications()))
    }

    /// The programs that run in every iteration. The devices were picked before.
    fn modules(&self, _: usize) -> Result<Vec<LoopModule>> {
        let traced = self.trace()?;
        let SebulbaSettings { threads, queue, .. } = *self.sebulba.settings();
        let [act, finish, learn] = traced.programs();
        let of_actors = |program| LoopModule { threads, ..programs::module(program) };
        let ahead = traced.replay().map_or(queue, |replay| replay.ahead);
        let learn = programs::learner(learn, traced.shape().learners, ahead);
        Ok(vec![of_actors(act), of_actors(finish), learn])
    }

    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        let spec = &self.batches.spec;
        let one = self.sebulba.clone().learners(vec![1]);
        programs::portable(one.agent(), &one.trace(spec)?, spec, batch)
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        self.sebulba.xla_options(platform)
    }
}

impl Training for SebulbaTraining {
    fn start(&self, start: Start<'_>) -> Result<Box<dyn Run>> {
        let Start { client, devices: _, xla, seed, folder, from } = start;
        let origin = from.map_or(Origin::Seed(seed), Origin::Checkpoint);
        let settings = self.sebulba.settings();
        let sebulba = self.sebulba.clone().xla(xla.to_vec()).replay_in(folder);
        let run =
            sebulba.begin(client, &self.batches.spec, origin, |_thread| self.batches.make())?;
        let lanes = settings.actor_threads() * self.batches.spec.environments;
        let shows = (self.frames_per_step, self.batches.spec.succeeds);
        Ok(Box::new(TrainingRun {
            run,
            restarts: 0,
            actors: settings.actor_threads(),
            calls: Calls::new(&settings.host, lanes, shows, client.world(), from)?,
        }))
    }

    fn spans_processes(&self) -> Result<(), String> {
        spans_processes(&self.sebulba.settings().host, "sebulba")
    }

    fn plays(&self) -> Result<&dyn Plays, String> {
        Ok(self)
    }

    fn repeats(&self) -> Result<&dyn Repeats, String> {
        match self.sebulba.settings().fixed_lag() {
            Some(_) => Ok(self),
            None => Err(
                "the actors of this run took new parameters whenever there were some (sebulba.schedule = \"free-running\"): time decided the data that it learnt from, and its iterations cannot be made again; with sebulba.schedule = \"deterministic\" they can"
                    .to_owned(),
            ),
        }
    }
}

impl Repeats for SebulbaTraining {
    fn explain(&self, suspect: &Suspect, evaluate: &mut Evaluate) -> Result<Option<Explanation>> {
        explain::sebulba(&self.sebulba, &self.batches, suspect, evaluate)
    }
}

impl Plays for SebulbaTraining {
    fn agent(&self) -> &AnyAgent {
        self.sebulba.agent()
    }

    fn environments(&self, _: (&Client, usize), _: usize) -> Result<Box<dyn HostEnvironment>> {
        self.batches.make()
    }
}

/// A run in progress.
struct TrainingRun {
    run: SebulbaRun,
    /// Restarts of environments at the end of the last call.
    restarts: usize,
    /// Number of actor threads.
    actors: usize,
    calls: Calls,
}

impl Run for TrainingRun {
    fn compile_seconds(&self) -> f64 {
        self.run.compile_time().as_secs_f64()
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let began = Instant::now();
        let reports = self.run.run(self.calls.iterations)?;
        let seconds = began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let spent = self.calls.spent(self.run.times());
        let before = std::mem::replace(&mut self.restarts, self.run.restarts());
        let per_call = shares(&spent, ("actor", self.actors), &["learner", "replay"]);
        let counts = vec![("environment_restarts", (self.restarts - before) as u64)];
        let mut note = note(&spent, self.actors, &reports);
        if self.restarts > 0 {
            note += &format!("; environments started again: {}", self.restarts);
        }
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
        let fresh = self.run.fresh_episodes();
        (fresh > 0).then(|| {
            format!(
                "the environments of {fresh} actor thread(s) cannot be put back as they were: they begin fresh episodes, and the run \
                 is another than without the stop"
            )
        })
    }

    fn parameters(&self) -> Result<Vec<(String, Array)>> {
        Ok(self.run.parameters()?)
    }

    fn restarts(&self) -> Option<usize> {
        Some(self.run.restarts())
    }

    fn times(&self) -> Vec<(String, f64)> {
        seconds(&self.run.times())
    }

    fn live(&self) -> Option<Live> {
        let motion = self.run.motion();
        Some(Box::new(move || vec![("seconds_without_motion", motion.still().as_secs_f64())]))
    }
}

/// The joint time shares of the actor threads, the learner's, and the means of queue and lag.
fn note(spent: &[ThreadTimes], actors: usize, reports: &[IterationReport]) -> String {
    let (actors, others) = spent.split_at(actors.min(spent.len()));
    let learner = &others[..others.len().min(1)];
    let waiting = [Activity::WaitingForParameters, Activity::WaitingForRoom];
    format!(
        "actors: {:.0}% environment, {:.0}% inference, {:.0}% waiting; learner: {:.0}% iteration, {:.0}% waiting; \
         {:.1} queued, lag {:.1}",
        percent(actors, &[Activity::Environment]),
        percent(actors, &[Activity::Inference]),
        percent(actors, &waiting),
        percent(learner, &[Activity::Iteration]),
        percent(learner, &[Activity::WaitingForTrajectory, Activity::WaitingForWindows]),
        mean(reports, |report| report.queued as f64),
        mean(reports, |report| report.lag),
    )
}
