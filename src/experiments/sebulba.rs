//! An agent in environments on the host as a training loop for the command line.

use std::fmt::Write;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;
use podracer_dsl::Tensor;
use podracer_dsl::prelude::{ArgumentSpec, TensorType};
use podracer_envs::host::{HostEnvironment, HostSpec, NativeEnvironment, Pool};
use podracer_envs::{Environment, Space};
use podracer_runtime::{
    Activity, Checkpoint, Client, ClientOptions, HostArray, OptionValue, Origin, Schedule,
    SebulbaLoop, SebulbaRun, ThreadTimes, UpdateReport, simplify,
};
use podracer_stdlib::agents::Agent;
use podracer_stdlib::sebulba::HostLoop;

use super::World;
use super::recent::RecentReturns;
use crate::evaluation::{Play, Played, play};
use crate::export::{ArgumentKind, Portable, policy};
use crate::sebulba::{Sebulba, compiled_environments};
use crate::settings::{self, SebulbaSettings, Settings};
use crate::training::{CallMetrics, Ended, LoopModule, Run, Stage, Training};

/// Environments on the host, for the actor threads of a run: what a batch of them is, and how one is made.
pub struct Hosts {
    shape: SebulbaSettings,
    spec: HostSpec,
    make: Rc<dyn Fn() -> Result<Box<dyn HostEnvironment>>>,
}

impl Hosts {
    /// Batches of `spec`, which `make` gives one after another, for a run of this shape.
    pub fn new<H: HostEnvironment + 'static>(
        shape: &SebulbaSettings,
        spec: HostSpec,
        make: impl Fn() -> Result<H> + 'static,
    ) -> Self {
        Hosts { shape: shape.clone(), spec, make: Rc::new(move || Ok(Box::new(make()?))) }
    }

    /// Environments in plain Rust.
    pub fn native(prototype: impl NativeEnvironment, shape: &SebulbaSettings) -> Self {
        let environments = shape.environments;
        let spec = Pool::new(&prototype, environments).spec().clone();
        Hosts::new(shape, spec, move || Ok(Pool::new(&prototype, environments)))
    }

    /// Environments of the DSL, compiled for the host.
    pub fn compiled<E: Environment<Observation = Tensor>>(
        environment: E,
        shape: &SebulbaSettings,
    ) -> Self {
        let (environments, unroll) = (shape.environments, shape.unroll);
        let spec = HostLoop::new(environment.clone(), environments, unroll).spec();
        Hosts::new(shape, spec, move || {
            // A client of its own: what its threads do takes no turn on the devices that act and learn.
            let host = Client::cpu(ClientOptions { cpu_devices: Some(1) })?;
            compiled_environments(&host, 0, environment.clone(), environments, unroll)
        })
    }
}

impl World for Hosts {
    fn spaces(&self) -> (Space, Space) {
        (self.spec.observation.clone(), self.spec.action.clone())
    }

    /// Who acts and learns is decided already.
    fn training<A: Agent<Observation = Tensor>>(
        self,
        settings: &Settings,
        agent: A,
    ) -> Box<dyn Training> {
        let shape = &self.shape;
        let schedule = match shape.schedule {
            settings::Schedule::FreeRunning => Schedule::FreeRunning,
            settings::Schedule::Deterministic => Schedule::Deterministic { lag: shape.lag },
        };
        // Before that the programs can be looked at, for one device each.
        let or = |named: &[usize], one: usize| match named {
            [] => vec![one],
            named => named.to_vec(),
        };
        let sebulba = Sebulba::new(agent)
            .named(&settings.experiment)
            .actors(&or(&shape.actors, 0))
            .learners(&or(&shape.learners, 1))
            .threads(shape.threads)
            .unroll(shape.unroll)
            .schedule(schedule)
            .queue(shape.queue)
            .patience(Duration::from_secs(shape.patience as u64));
        Box::new(SebulbaTraining {
            sebulba,
            frames_per_step: settings.environment.get("action_repeat").and_then(toml::Value::as_integer).map_or(1, |n| n as usize),
            hosts: self,
        })
    }
}

/// An agent, its environments, and who acts and learns.
struct SebulbaTraining<A: Agent<Observation = Tensor>> {
    sebulba: Sebulba<A>,
    hosts: Hosts,
    frames_per_step: usize,
}

impl<A: Agent<Observation = Tensor>> SebulbaTraining<A> {
    fn trace(&self) -> Result<SebulbaLoop> {
        self.sebulba.trace(&self.hosts.spec)
    }
}

impl<A: Agent<Observation = Tensor>> Training for SebulbaTraining<A> {
    /// The programs that run over and over, one after another.
    fn emit(&self, stage: Stage, _: usize) -> Result<String> {
        let mut text = String::new();
        for program in self.trace()?.programs() {
            let of_stage = match stage {
                Stage::Trace => program.func.to_string(),
                Stage::Simplified => simplify(&program.func).to_string(),
                Stage::StableHlo | Stage::Hlo => program.lowered.module.key().to_owned(),
            };
            write!(text, "// {}\n{}\n\n", program.name, of_stage.trim_end())?;
        }
        Ok(text)
    }

    /// Those that run over and over. How many devices there are was decided before.
    fn modules(&self, _: usize) -> Result<Vec<LoopModule>> {
        let traced = self.trace()?;
        let shape = &self.hosts.shape;
        let [mut act, mut finish, mut learn] = traced.programs().map(|program| LoopModule {
            name: program.name,
            replicas: 1,
            threads: 1,
            waiting_bytes: 0,
            module: program.lowered.module.clone(),
        });
        (act.threads, finish.threads) = (shape.threads, shape.threads);
        learn.replicas = traced.shape().learners;
        // What is not the state is a trajectory of every thread, of which more may wait.
        let bytes = |types: &[TensorType]| types.iter().map(TensorType::bytes).sum::<usize>();
        let packets = bytes(&learn.module.arguments).saturating_sub(bytes(&learn.module.results));
        learn.waiting_bytes = packets * shape.queue;
        Ok(vec![act, finish, learn])
    }

    fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        let spec = &self.hosts.spec;
        let one = self.sebulba.clone().learners(&[1]);
        let traced = one.trace(spec)?;
        let [_, _, learn] = traced.programs();
        let about = format!(
            "one update from the packets of {} actor threads, each with {} steps of {} environments",
            one.actor_threads(),
            one.steps(),
            spec.environments
        );
        let init = Portable::new(
            "init",
            "the learner's state at the start of a run, from the run's key",
            traced.init().lowered.clone(),
            &[("key", ArgumentKind::Key)],
            &["state"],
        );
        let learn = Portable::new(
            "learn",
            about,
            learn.lowered.clone(),
            &[("state", ArgumentKind::State), ("packets", ArgumentKind::Input)],
            &["state", "metrics"],
        );
        let observation = spec.observation.ty().into_spec();
        let [act, greedily] = policy("sebulba", one.agent(), &observation, batch)?;
        Ok(vec![init, learn, act, greedily])
    }

    fn xla_options(&self, platform: &str, _: usize) -> Vec<(String, OptionValue)> {
        self.sebulba.xla_options(platform, self.hosts.spec.environments)
    }

    fn start(
        &self,
        client: &Client,
        _: &[usize],
        seed: u64,
        xla: &[(String, OptionValue)],
        from: Option<&Checkpoint>,
    ) -> Result<Box<dyn Run>> {
        let origin = from.map_or(Origin::Seed(seed), Origin::Checkpoint);
        let run = self.sebulba.clone().xla(xla.to_vec()).begin(
            client,
            &self.hosts.spec,
            origin,
            |_thread| (self.hosts.make)(),
        )?;
        let steps = self.sebulba.actor_threads() * self.hosts.spec.environments;
        Ok(Box::new(TrainingRun {
            times: run.times(),
            restarts: 0,
            run,
            steps_per_update: (steps * self.sebulba.steps()) as u64,
            updates: self.hosts.shape.iterations_per_call,
            frames_per_step: self.frames_per_step,
            recent: RecentReturns::restored(from)?,
        }))
    }

    fn play(
        &self,
        device: (&Client, usize),
        checkpoint: &Checkpoint,
        order: &Play,
        interrupt: &AtomicBool,
    ) -> Result<Vec<Played>> {
        let mut environments = (self.hosts.make)()?;
        let agent = self.sebulba.agent();
        play(agent, checkpoint, &mut environments, order, device, interrupt)
    }
}

/// A run under way.
struct TrainingRun {
    run: SebulbaRun,
    /// As of the last call.
    times: Vec<ThreadTimes>,
    /// As of the last call.
    restarts: usize,
    steps_per_update: u64,
    /// Of a call.
    updates: usize,
    frames_per_step: usize,
    recent: RecentReturns,
}

impl Run for TrainingRun {
    fn compile_seconds(&self) -> f64 {
        self.run.compile_time().as_secs_f64()
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let began = Instant::now();
        let reports = self.run.run(self.updates)?;
        let seconds = began.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let times = self.run.times();
        let spent: Vec<ThreadTimes> =
            (times.iter().zip(&self.times)).map(|(now, before)| now.since(before)).collect();
        self.times = times;
        let before = std::mem::replace(&mut self.restarts, self.run.restarts());
        let mut per_call = shares(&spent);
        let restarts = self.restarts - before;
        per_call.push(("environment_restarts".to_owned(), restarts as f64));
        let episodes = reports.iter().flat_map(|report| &report.episodes);
        let env_steps = self.steps_per_update * reports.len() as u64;
        let mut note = note(&spent, &reports);
        if self.frames_per_step > 1 {
            let frames = (env_steps * self.frames_per_step as u64) as f64 / seconds;
            per_call.push(("frames_per_second".to_owned(), frames));
            note = format!("{frames:.0} frames/s; {note}");
        }
        if self.restarts > 0 {
            note += &format!("; environments started again: {}", self.restarts);
        }
        Ok(CallMetrics {
            env_steps,
            updates: reports.len() as u64,
            per_update: per_update(&reports, self.run.metric_names()),
            recent: self.recent.with(episodes.map(|episode| Ended {
                episodes: 1,
                return_sum: f64::from(episode.episode_return),
            })),
            episodes: reports.iter().map(|report| report.episodes.len() as u64).sum(),
            per_call,
            note,
        })
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        let mut checkpoint = self.run.checkpoint()?;
        self.recent.save(&mut checkpoint)?;
        Ok(checkpoint)
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

    fn parameters(&self) -> Result<Vec<(String, HostArray)>> {
        Ok(self.run.parameters()?)
    }

    fn restarts(&self) -> Option<usize> {
        Some(self.run.restarts())
    }

    fn times(&self) -> Vec<(String, f64)> {
        let mut seconds = Vec::new();
        for thread in self.run.times() {
            for (activity, name) in NAMES {
                let spent = thread.of(activity).as_secs_f64();
                if spent > 0.0 {
                    seconds.push((format!("{}: {name}", thread.thread), spent));
                }
            }
        }
        seconds
    }
}

/// What threads do, as the metrics name it.
const NAMES: [(Activity, &str); 10] = [
    (Activity::Environment, "environment"),
    (Activity::Inference, "inference"),
    (Activity::Sending, "sending"),
    (Activity::WaitingForParameters, "waiting_for_parameters"),
    (Activity::WaitingForRoom, "waiting_for_room"),
    (Activity::Update, "update"),
    (Activity::WaitingForTrajectory, "waiting_for_trajectory"),
    (Activity::Publishing, "publishing"),
    (Activity::Idle, "idle"),
    (Activity::Host, "host"),
];

/// The share of each thread's time that each activity took.
fn shares(spent: &[ThreadTimes]) -> Vec<(String, f64)> {
    let mut shares = Vec::new();
    for (index, thread) in spent.iter().enumerate() {
        let total = thread.total().as_secs_f64().max(f64::MIN_POSITIVE);
        let who =
            if index + 1 == spent.len() { "learner".to_owned() } else { format!("actor_{index}") };
        for (activity, name) in NAMES {
            let share = thread.of(activity).as_secs_f64() / total;
            if share > 0.0 {
                shares.push((format!("{who}/{name}"), share));
            }
        }
    }
    shares
}

/// What all actor threads together and the learner spend their time on, and the means of queue and lag.
fn note(spent: &[ThreadTimes], reports: &[UpdateReport]) -> String {
    let Some((learner, actors)) = spent.split_last() else {
        return String::new();
    };
    let percent = |threads: &[ThreadTimes], activities: &[Activity]| {
        let spent = threads
            .iter()
            .flat_map(|thread| activities.iter().map(|&activity| thread.of(activity)));
        let part: Duration = spent.sum();
        let whole: Duration = threads.iter().map(ThreadTimes::total).sum();
        100.0 * part.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    let waiting = [Activity::WaitingForParameters, Activity::WaitingForRoom];
    let learner = std::slice::from_ref(learner);
    let mean = |of: &dyn Fn(&UpdateReport) -> f64| {
        reports.iter().map(of).sum::<f64>() / reports.len().max(1) as f64
    };
    format!(
        "actors: {:.0}% environment, {:.0}% inference, {:.0}% waiting; learner: {:.0}% update, {:.0}% waiting; \
         {:.1} queued, lag {:.1}",
        percent(actors, &[Activity::Environment]),
        percent(actors, &[Activity::Inference]),
        percent(actors, &waiting),
        percent(learner, &[Activity::Update]),
        percent(learner, &[Activity::WaitingForTrajectory]),
        mean(&|report| report.queued as f64),
        mean(&|report| report.lag),
    )
}

/// The agent's metrics, the episodes that ended in each update (NaN where none did), lag and queue.
fn per_update(reports: &[UpdateReport], names: &[String]) -> Vec<(String, Vec<f32>)> {
    let series = |of: &dyn Fn(&UpdateReport) -> f32| reports.iter().map(of).collect::<Vec<f32>>();
    let mut all: Vec<(String, Vec<f32>)> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.clone(), series(&|report| report.metrics[i])))
        .collect();
    let mean = |report: &UpdateReport, of: &dyn Fn(&podracer_runtime::Episode) -> f32| {
        report.episodes.iter().map(of).sum::<f32>() / report.episodes.len() as f32
    };
    let returns = series(&|report| mean(report, &|episode| episode.episode_return));
    let lengths = series(&|report| mean(report, &|episode| episode.length as f32));
    all.push(("episode_return".to_owned(), returns));
    all.push(("episode_length".to_owned(), lengths));
    all.push(("parameter_lag".to_owned(), series(&|report| report.lag as f32)));
    all.push(("queued".to_owned(), series(&|report| report.queued as f32)));
    all
}
