//! An agent in an environment as a training loop for the command line.

use std::collections::VecDeque;
use std::rc::Rc;

use anyhow::{Context, Result};
use podracer_dsl::Tree;
use podracer_envs::Environment;
use podracer_runtime::{
    Anakin, AnakinLoop, AnakinState, Client, CompileOptions, Device, ExecutableCache, Host,
    HostArray, OptionValue, ProgramOptions, XlaOptions, simplify,
};
use podracer_stdlib::agents::Agent;
use podracer_stdlib::anakin::{Actors, AgentLoop, Episodes, Learner};

use crate::settings::AnakinSettings;
use crate::training::{CallMetrics, LoopModule, Run, Stage, Training};

type Replicated<A> = Learner<<A as Agent>::Nets, <A as Agent>::Opt>;
type Sharded<E, A> =
    Actors<<A as Agent>::Actor, <E as Environment>::State, <A as Agent>::Experience>;
type Loop<E, A> = AnakinLoop<Replicated<A>, Sharded<E, A>, <A as Agent>::Metrics, Episodes>;
type Compiled<E, A> = Anakin<Replicated<A>, Sharded<E, A>, <A as Agent>::Metrics, Episodes>;
type State<E, A> = AnakinState<Replicated<A>, Sharded<E, A>>;

/// What an experiment measures of the trained networks: names and values.
pub type Evaluation<A> =
    Rc<dyn Fn(&Client, &Device<<A as Agent>::Nets>) -> Result<Vec<(String, f64)>>>;

/// Up to so many environments the products are so small that handing them to other threads costs more than it gains.
const ONE_THREAD: usize = 32;

/// An agent, an environment and the shape of their loop.
pub struct AnakinTraining<E, A: Agent> {
    /// The experiment's name.
    pub name: String,
    /// Where the agent acts.
    pub environment: E,
    /// Who learns.
    pub agent: A,
    /// Environments, unroll, updates per call.
    pub shape: AnakinSettings,
    /// What is measured at the end.
    pub evaluation: Option<Evaluation<A>>,
}

impl<E: Environment, A: Agent<Observation = E::Observation>> AnakinTraining<E, A> {
    fn trace(&self, replicas: usize) -> Result<Loop<E, A>> {
        let AnakinSettings {
            environments,
            unroll,
            updates_per_call,
        } = self.shape;
        let agent_loop = AgentLoop::new(
            self.environment.clone(),
            self.agent.clone(),
            environments / replicas,
            unroll,
        );
        let name = self.name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        Ok(AnakinLoop::trace(
            &name,
            replicas,
            updates_per_call,
            |key| agent_loop.init(key),
            |state| agent_loop.update(state),
        )?)
    }
}

impl<E: Environment, A: Agent<Observation = E::Observation>> Training for AnakinTraining<E, A> {
    fn emit(&self, stage: Stage, replicas: usize) -> Result<String> {
        let traced = self.trace(replicas)?;
        Ok(match stage {
            Stage::Trace => traced.traced().func().to_string(),
            Stage::Simplified => simplify(traced.traced().func()).to_string(),
            Stage::StableHlo | Stage::Hlo => traced.lower()?.module.key().to_owned(),
        })
    }

    fn module(&self, replicas: usize) -> Result<LoopModule> {
        let lowered = self.trace(replicas)?.lower()?;
        Ok(LoopModule {
            module: lowered.module,
            donated: lowered.donated,
        })
    }

    fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        let mut options = XlaOptions::for_platform(platform).pairs();
        if platform == "cpu" && self.shape.environments <= ONE_THREAD {
            let name = "xla_cpu_multi_thread_eigen".to_owned();
            options.push((name, OptionValue::Bool(false)));
        }
        options
    }

    fn start(
        &self,
        client: &Client,
        devices: &[usize],
        seed: u64,
        xla: &[(String, OptionValue)],
    ) -> Result<Box<dyn Run>> {
        let start = std::time::Instant::now();
        let traced = self.trace(devices.len())?;
        let compile = CompileOptions {
            replicas: devices.len(),
            device_assignment: Some(devices.to_vec()),
            xla: xla.to_vec(),
        };
        let options = ProgramOptions {
            compile,
            cache: ExecutableCache::user(),
        };
        let anakin = traced
            .compile(client, &options)
            .context("cannot compile the training loop")?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let state = anakin.init(seed)?;
        let steps_per_update = (self.shape.environments * self.shape.unroll) as u64;
        let updates = self.shape.updates_per_call;
        Ok(Box::new(AnakinRun::<E, A> {
            anakin,
            client: client.clone(),
            evaluation: self.evaluation.clone(),
            state: Some(state),
            compile_seconds,
            steps_per_update,
            updates,
            recent: VecDeque::new(),
        }))
    }
}

/// A loop on its devices.
struct AnakinRun<E: Environment, A: Agent<Observation = E::Observation>> {
    anakin: Compiled<E, A>,
    client: Client,
    evaluation: Option<Evaluation<A>>,
    /// Absent only after a call that failed.
    state: Option<State<E, A>>,
    compile_seconds: f64,
    steps_per_update: u64,
    /// Of a call.
    updates: usize,
    recent: VecDeque<f32>,
}

impl<E: Environment, A: Agent<Observation = E::Observation>> Run for AnakinRun<E, A> {
    fn compile_seconds(&self) -> f64 {
        self.compile_seconds
    }

    fn advance(&mut self) -> Result<CallMetrics> {
        let state = self
            .state
            .take()
            .context("the run ended with an error before")?;
        let (state, metrics) = self.anakin.run(state)?;
        self.state = Some(state);
        let mut per_update = named_series(&metrics.replicated)?;
        let episodes = EpisodeSeries::read(&metrics.sharded, self.updates)?;
        per_update.extend(episodes.series());
        self.recent.extend(episodes.last_returns());
        let surplus = self.recent.len().saturating_sub(Episodes::KEPT);
        self.recent.drain(..surplus);
        Ok(CallMetrics {
            env_steps: self.steps_per_update * self.updates as u64,
            updates: self.updates as u64,
            per_update,
            recent_returns: self.recent.iter().copied().collect(),
            episodes: episodes.total(),
        })
    }

    fn parameters(&self) -> Result<Vec<(String, HostArray)>> {
        let state = self
            .state
            .as_ref()
            .context("the run ended with an error before")?;
        Ok(state.replicated.nets.named_arrays()?)
    }

    fn evaluate(&mut self) -> Result<Vec<(String, f64)>> {
        match (&self.evaluation, &self.state) {
            (Some(evaluation), Some(state)) => evaluation(&self.client, &state.replicated.nets),
            _ => Ok(Vec::new()),
        }
    }
}

/// The leaves of a tree of `[updates]` as named series.
fn named_series<T: Tree>(metrics: &Host<T>) -> Result<Vec<(String, Vec<f32>)>> {
    let mut series = Vec::new();
    let mut failed = Ok(());
    metrics.visit(|path, leaf| match leaf.to_vec::<f32>() {
        Ok(values) => series.push((path.to_string(), values)),
        Err(error) => failed = Err(error),
    });
    failed?;
    Ok(series)
}

/// The episodes of a call. The parts of the devices stand one after another, each with one entry per update.
struct EpisodeSeries {
    updates: usize,
    counts: Vec<i32>,
    return_sums: Vec<f32>,
    length_sums: Vec<i32>,
    last_returns: Vec<f32>,
    last_steps: Vec<i32>,
}

impl EpisodeSeries {
    fn read(episodes: &Host<Episodes>, updates: usize) -> Result<Self> {
        Ok(EpisodeSeries {
            updates,
            counts: episodes.count.to_vec()?,
            return_sums: episodes.return_sum.to_vec()?,
            length_sums: episodes.length_sum.to_vec()?,
            last_returns: episodes.last_returns.to_vec()?,
            last_steps: episodes.last_steps.to_vec()?,
        })
    }

    /// The entries of one update, those of all devices.
    fn of_update(&self, update: usize) -> impl Iterator<Item = usize> {
        (update..self.counts.len()).step_by(self.updates)
    }

    /// The episodes that ended.
    fn total(&self) -> u64 {
        self.counts.iter().map(|&count| count as u64).sum()
    }

    /// Mean return and length of the episodes that ended in each update; NaN where none did.
    fn series(&self) -> [(String, Vec<f32>); 2] {
        let mean = |sum: &dyn Fn(usize) -> f32| {
            let of = |update| {
                let (total, count) = self.of_update(update).fold((0.0, 0), |(total, count), i| {
                    (total + sum(i), count + self.counts[i])
                });
                total / count as f32
            };
            (0..self.updates).map(of).collect()
        };
        [
            ("episode_return".to_owned(), mean(&|i| self.return_sums[i])),
            (
                "episode_length".to_owned(),
                mean(&|i| self.length_sums[i] as f32),
            ),
        ]
    }

    /// The last returns of each update, in the order in which the episodes ended.
    fn last_returns(&self) -> Vec<f32> {
        let mut returns = Vec::new();
        for update in 0..self.updates {
            let mut ended = Vec::new();
            for i in self.of_update(update) {
                let kept = (self.counts[i] as usize).min(Episodes::KEPT);
                let range = (i + 1) * Episodes::KEPT - kept..(i + 1) * Episodes::KEPT;
                ended.extend(range.map(|at| (self.last_steps[at], self.last_returns[at])));
            }
            ended.sort_by_key(|&(step, _)| step);
            returns.extend(ended.into_iter().map(|(_, value)| value));
        }
        returns
    }
}
