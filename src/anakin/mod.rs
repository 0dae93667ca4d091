//! Anakin: an agent in an environment, as one program that trains it.
//!
//! [`Anakin`] describes a training. [`Anakin::compile`] makes it a [`CompiledAnakin`], with states
//! that live on the devices. The loop knows neither agents nor environments: it is the runtime's
//! [`AnakinLoop`].

mod metrics;

use std::path::Path;

use anyhow::{Context, Result};

use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::{eval_shape, key};
use podracer_dsl::{Loc, Tree, called_from};
use podracer_envs::{Environment, check_environment, leaf_spaces};
use podracer_rl::anakin::{Actors, AgentLoop, Episodes, Feedback, Learner};
use podracer_rl::learn::{Agent, Axes, Learn, check_agent};
use podracer_runtime::setters::ConfigureAnakin;
use podracer_runtime::{
    AnakinLoop, AnakinProgram, AnakinSettings, AnakinState, Array, Checkpoint, CheckpointError,
    Client, CompileOptions, OptionValue, ProgramOptions, RuntimeError, lower_kept,
};

use crate::UsageError;
use crate::builder;
use crate::export::{ArgumentKind, Portable, policy};
use crate::parameters;

pub use metrics::TrainingMetrics;

/// Prefix of the state's arrays in a checkpoint.
pub(crate) const STATE: &str = "state.";
/// The part of a checkpoint with the agent's store, for [`Checkpoint::leave_out`].
pub const STORE: &str = "state.sharded.store";

type Replicated<A> = Learner<<A as Learn>::State>;
type Sharded<E, A> = Actors<<A as Agent>::Memory, <E as Environment>::State, <A as Learn>::Store>;
/// The loop of an agent in an environment, traced.
pub type TracedAnakin<E, A> =
    AnakinLoop<Replicated<A>, Sharded<E, A>, <A as Learn>::Metrics, Episodes>;
/// The loop of an agent in an environment, compiled.
pub type Program<E, A> =
    AnakinProgram<Replicated<A>, Sharded<E, A>, <A as Learn>::Metrics, Episodes>;
/// The state of a training on its devices.
pub type TrainingState<E, A> = AnakinState<Replicated<A>, Sharded<E, A>>;

/// State of a training after a call, and the metrics of the call.
pub type Called<E, A> = (TrainingState<E, A>, TrainingMetrics<<A as Learn>::Metrics>);

/// An agent in an environment, and the shape of their loop.
///
/// ```no_run
/// use podracer::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let environment = podracer::envs::Catch::default();
/// let agent = Ppo::new(environment.observation_space(), environment.action_space());
/// let anakin = Anakin::new(environment, agent)
///     .environments(256)
///     .unroll(32)
///     .iterations_per_call(16)
///     .compile(&Client::cpu(ClientOptions::default())?)?;
/// let mut state = anakin.init(0)?;
/// for _ in 0..10 {
///     let metrics;
///     (state, metrics) = anakin.run(state)?;
///     println!("{:.2}", metrics.episode_return);
/// }
/// anakin.save_parameters(&state, "catch.safetensors")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Anakin<E, A> {
    environment: E,
    agent: A,
    settings: AnakinSettings,
    name: String,
    devices: usize,
    /// True if errors name the line that called the loop.
    scope: bool,
}

impl<E: Environment, A: Learn<Observation = E::Observation>> Anakin<E, A> {
    /// A loop with the default settings, on one device.
    pub fn new(environment: E, agent: A) -> Self {
        Self::with(environment, agent, AnakinSettings::default())
    }

    /// A loop with the settings of an experiment's table, on one device.
    pub fn with(environment: E, agent: A, settings: AnakinSettings) -> Self {
        let name = "anakin".to_owned();
        Anakin { environment, agent, settings, name, devices: 1, scope: true }
    }

    /// Number of devices that share the environments.
    #[must_use]
    pub fn devices(self, devices: usize) -> Self {
        Anakin { devices, ..self }
    }

    /// The program's name, for profiles and XLA's messages.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = builder::module_name(name);
        self
    }

    /// The loop for a library as the caller: errors do not name its line.
    pub(crate) fn for_library(self) -> Self {
        Anakin { scope: false, ..self }
    }

    /// The same loop with another agent of the same type.
    #[cfg(feature = "cli")]
    pub(crate) fn with_agent(self, agent: A) -> Self {
        Anakin { agent, ..self }
    }

    /// The agent of the loop.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The environment, and the number of its lanes.
    pub fn environment(&self) -> (&E, usize) {
        (&self.environment, self.settings.environments)
    }

    /// The shape of the loop.
    pub(crate) fn settings(&self) -> &AnakinSettings {
        &self.settings
    }

    /// Checks shape, environment and agent.
    pub(crate) fn check(&self) -> Result<()> {
        builder::at_least_one(&[
            ("environments", self.settings.environments),
            ("unroll", self.settings.unroll),
            ("iterations_per_call", self.settings.iterations_per_call),
            ("devices", self.devices),
        ])?;
        check_environment(&self.environment)?;
        let action = self.environment.action_space().ty();
        let input = eval_shape((key(),), |(key,)| {
            let state = self.environment.initial_state(key);
            let legal_actions = self.environment.legal_actions(&state);
            Feedback::begin(&action).input(self.environment.observe(state), legal_actions)
        })?;
        check_agent(&self.agent, &input, &action)?;
        let (environments, devices) = (self.settings.environments, self.devices);
        if !environments.is_multiple_of(devices) {
            return Err(UsageError::new(format!(
                "{environments} environments do not divide over {devices} devices: their number must be a multiple of {devices}"
            ))
            .into());
        }
        Ok(())
    }

    /// The loop on one of `devices` devices, with these axes.
    pub(crate) fn on_axes(&self, devices: usize, axes: Axes) -> AgentLoop<E, A> {
        let (environment, agent) = (self.environment.clone(), self.agent.clone());
        let lanes = self.settings.environments / devices;
        AgentLoop::new(environment, agent, lanes, self.settings.unroll).spread(axes)
    }

    /// XLA's options for this loop by podracer's rule. `platform` is `cpu`, `cuda` or `tpu`.
    pub fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        builder::xla_options(platform, &Simplify::default())
    }

    /// Traces the loop.
    ///
    /// # Errors
    /// [`UsageError`] for a shape that makes no loop;
    /// [`TraceErrors`](podracer_dsl::prelude::TraceErrors) with all mistakes of environment and
    /// agent, with the user's lines.
    #[track_caller]
    pub fn trace(&self) -> Result<TracedAnakin<E, A>> {
        let here = Loc::caller();
        self.check()?;
        let agent_loop = self.on_axes(self.devices, Axes::replicas(self.devices));
        let init = |key| {
            let _scope = self.scope.then(|| called_from("Anakin", here));
            agent_loop.init(key)
        };
        let iterate = |state| {
            let _scope = self.scope.then(|| called_from("Anakin", here));
            agent_loop.iterate(state)
        };
        Ok(AnakinLoop::trace(
            &self.name,
            self.devices,
            self.settings.iterations_per_call,
            init,
            iterate,
        )?)
    }

    /// The programs to run elsewhere, on one device. `init` returns the state at the start of a
    /// run, `train` is one call of the loop, and `act` and `act_greedily` are the policy, for one
    /// observation or a batch of `batch` observations. [`export::write`](crate::export::write)
    /// writes them.
    ///
    /// # Errors
    /// As [`Anakin::trace`].
    #[track_caller]
    pub fn programs(&self, batch: Option<usize>) -> Result<Vec<Portable>> {
        let traced = self.clone().devices(1).trace()?;
        let about = format!(
            "{} iteration(s), each from {} steps of {} environments; metrics are stacked over the iterations",
            self.settings.iterations_per_call, self.settings.unroll, self.settings.environments
        );
        let [init, train] = portable(&self.name, &traced, self.positions(&traced)?, about)?;
        let observation = eval_shape((key(),), |(key,)| {
            let state = self.environment.initial_state(key);
            self.environment.observe(state)
        })?;
        let action = self.environment.action_space();
        let seen = leaf_spaces::<E::Observation>(&self.environment.observation_space());
        let whole = seen.first().map(|(_, space)| space).filter(|_| seen.len() == 1);
        let spaces = (whole, &action);
        let [act, greedily] = policy(&self.name, &self.agent, &observation, spaces, batch)?;
        Ok(vec![init, train, act, greedily])
    }

    /// The parameters among the leaves of the agent's state: index and path of each.
    #[track_caller]
    pub(crate) fn positions(&self, traced: &TracedAnakin<E, A>) -> Result<Vec<(usize, String)>> {
        parameters::positions(&self.agent, &traced.traced_init().results().replicated.agent)
    }

    /// Traces the loop and compiles it for the client's first devices. [`Anakin::devices`] is the
    /// number of devices over all processes of the client's world. Compiled programs are kept in
    /// the user's cache.
    ///
    /// # Errors
    /// Errors of [`Anakin::trace`], and of the runtime and XLA.
    #[track_caller]
    pub fn compile(&self, client: &Client) -> Result<CompiledAnakin<E, A>> {
        let processes = client.processes();
        let compile = CompileOptions {
            replicas: self.devices / processes.count,
            processes,
            xla: self.xla_options(client.platform()),
            ..CompileOptions::default()
        };
        self.compile_with(client, &ProgramOptions { compile, ..ProgramOptions::default() })
    }

    /// Does the same as [`Anakin::compile`] with other devices, options or cache.
    ///
    /// # Errors
    /// As [`Anakin::compile`].
    #[track_caller]
    pub fn compile_with(
        &self,
        client: &Client,
        options: &ProgramOptions,
    ) -> Result<CompiledAnakin<E, A>> {
        let traced = self.trace()?;
        let parameters = self.positions(&traced)?;
        let program =
            traced.compile(client, options).context("cannot compile the training loop")?;
        Ok(CompiledAnakin {
            program,
            parameters,
            steps_per_call: (self.settings.environments
                * self.settings.unroll
                * self.settings.iterations_per_call) as u64,
            iterations_per_call: self.settings.iterations_per_call,
        })
    }
}

/// The start of a loop and one call of it, to run elsewhere. `parameters` names the parameters
/// among the leaves of the state; `about` describes the effect of a call.
pub(crate) fn portable<R: Tree, S: Tree, M: Tree, L: Tree>(
    name: &str,
    traced: &AnakinLoop<R, S, M, L>,
    parameters: Vec<(usize, String)>,
    about: String,
) -> Result<[Portable; 2]> {
    let init = Portable::new(
        "init",
        "the state of a training at its start, from the run's key",
        lower_kept(&format!("{name}_init"), traced.traced_init())?,
        &[("key", ArgumentKind::Key)],
        &["state"],
    )
    .with_parameters(parameters);
    let train = Portable::new(
        "train",
        about,
        traced.lower()?,
        &[("state", ArgumentKind::State)],
        &["state", "metrics", "log"],
    );
    Ok([init, train])
}

impl<E, A> ConfigureAnakin for Anakin<E, A> {
    fn anakin_settings(&mut self) -> &mut AnakinSettings {
        &mut self.settings
    }
}

/// A training loop for its devices.
pub struct CompiledAnakin<E: Environment, A: Learn<Observation = E::Observation>> {
    program: Program<E, A>,
    /// The parameters among the leaves of the agent's state: index and path.
    parameters: Vec<(usize, String)>,
    steps_per_call: u64,
    iterations_per_call: usize,
}

impl<E: Environment, A: Learn<Observation = E::Observation>> CompiledAnakin<E, A> {
    /// The state at the start of a run: equal for equal seed, devices and options.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn init(&self, seed: u64) -> Result<TrainingState<E, A>, RuntimeError> {
        self.program.init(seed)
    }

    /// Runs the iterations of one call: one dispatch on all devices. The state is moved, so that
    /// the devices reuse its memory for the next state.
    ///
    /// # Errors Errors of the runtime. [`RunError`](podracer_runtime::RunError) by downcast: it returns the state if nothing was launched.
    pub fn run(&self, state: TrainingState<E, A>) -> Result<Called<E, A>> {
        let (state, metrics) = self.program.run(state)?;
        let (agent, episodes) = (metrics.replicated.clone(), metrics.sharded.clone());
        let metrics =
            TrainingMetrics::read(agent, &episodes, self.iterations_per_call, metrics.reports)?;
        Ok((state, metrics))
    }

    /// Environment steps of a call, over all environments and devices.
    #[must_use]
    pub fn steps_per_call(&self) -> u64 {
        self.steps_per_call
    }

    /// Iterations of a call.
    #[must_use]
    pub fn iterations_per_call(&self) -> usize {
        self.iterations_per_call
    }

    /// The runtime's compiled loop, which counts transfers between host and devices.
    #[must_use]
    pub fn program(&self) -> &Program<E, A> {
        &self.program
    }

    /// A checkpoint of the whole state after `iterations` iterations, for
    /// [`Checkpoints`](podracer_runtime::Checkpoints) to keep.
    ///
    /// ```no_run
    /// # use podracer::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let environment = podracer::envs::Catch::default();
    /// # let agent = Ppo::new(environment.observation_space(), environment.action_space());
    /// let anakin = Anakin::new(environment, agent).compile(&Client::cpu(ClientOptions::default())?)?;
    /// let checkpoints = Checkpoints::new("catch-checkpoints", 2);
    /// // The last checkpoint, if there is one, and the beginning otherwise.
    /// let (mut state, mut iterations) = match checkpoints.latest() {
    ///     Ok(found) => (anakin.restore(&found.checkpoint)?, found.checkpoint.iterations),
    ///     Err(CheckpointError::None { .. }) => (anakin.init(0)?, 0),
    ///     Err(error) => return Err(error.into()),
    /// };
    /// while iterations < 1_000 {
    ///     (state, _) = anakin.run(state)?;
    ///     iterations += anakin.iterations_per_call() as u64;
    ///     checkpoints.save(&anakin.checkpoint(&state, iterations)?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn checkpoint<'a>(
        &self,
        state: &'a TrainingState<E, A>,
        iterations: u64,
    ) -> Result<Checkpoint<'a>, RuntimeError> {
        let mut checkpoint = Checkpoint { iterations, ..Checkpoint::default() };
        checkpoint.insert(STATE, state.named_sources());
        Ok(checkpoint)
    }

    /// Restores the state of a checkpoint on the devices. With equally many devices of the same
    /// kind and the same options, the resumed run is bit-identical to the uninterrupted run. With
    /// other devices the environments are divided differently: the training is equally valid, but
    /// not equal.
    ///
    /// # Errors
    /// [`CheckpointError::Misfit`] for a checkpoint of another agent or environment, or of a store that does not divide
    /// over these devices; [`CheckpointError::Runtime`].
    pub fn restore(
        &self,
        checkpoint: &Checkpoint<'_>,
    ) -> Result<TrainingState<E, A>, CheckpointError> {
        self.program.restore(checkpoint, STATE)
    }

    /// The parameters that acting reads, by key path (`policy.layers[0].weight`).
    ///
    /// # Errors
    /// Errors of the runtime.
    pub fn parameters(&self, state: &TrainingState<E, A>) -> Result<Vec<(String, Array)>> {
        // Copies only these leaves to the host: the optimizer's leaves are twice as large.
        let leaves = state.replicated.agent.named_sources();
        let picked = self.parameters.iter();
        picked.map(|(leaf, path)| Ok((path.clone(), leaves[*leaf].1.to_host()?))).collect()
    }

    /// Writes the parameters as safetensors, with key paths as names.
    ///
    /// # Errors
    /// Errors of the runtime, and a file that cannot be written.
    pub fn save_parameters(
        &self,
        state: &TrainingState<E, A>,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        parameters::save(&self.parameters(state)?, path.as_ref())
    }
}
