//! Sebulba: an agent that acts and learns on different devices, in environments on the host.
//!
//! [`Sebulba`] says what is trained and how. [`Sebulba::start`] makes it a run, whose threads act and learn. What
//! schedules them knows no agents: it is the runtime's [`SebulbaRun`]. An agent is the same here and in
//! [`Anakin`](crate::anakin::Anakin).

use anyhow::{Context, Result};
use podracer_dsl::prelude::{Key, Spec, Tensor, TraceErrors, eval_shape, u32};
use podracer_dsl::trace_replicated;
use podracer_dsl::tree::AnyTree;
use podracer_envs::host::{HostEnvironment, HostSpec, StepOutcome};
use podracer_envs::{Environment, check_environment};
use podracer_runtime::{
    Checkpoint, Client, CompiledEnvironments, HostReplay, Origin, ReplayMemory, SebulbaFunctions,
    SebulbaLoop, SebulbaRun, SebulbaSettings, SebulbaShape,
};
use podracer_stdlib::agents::{AnyAgent, HostReplayShape, Learn, Requests, Staleness, check_agent};
use podracer_stdlib::anakin::{Feedback, Learner};
use podracer_stdlib::host_replay::{HostReplayLearner, KeptTrees};
use podracer_stdlib::sebulba::{
    ActorCarry, ActorFor, ActorLearner, HostLoop, LearnerStateFor, ShardFor,
};

use crate::UsageError;
use crate::builder;
pub use crate::builder::HostTraining;

/// The part of a checkpoint with the agent's store, for [`Checkpoint::leave_out`].
pub const STORE: &str = "state.sharded";

/// An agent, and the shape of the run in which it acts and learns.
///
/// ```no_run
/// use podracer::envs::host::{NativeCartPole, Pool};
/// use podracer::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let batch = || Pool::new(&NativeCartPole::new(500), 16);
/// let spec = podracer::envs::host::HostEnvironment::spec(&batch()).clone();
/// let agent = Ppo::new(spec.observation.clone(), spec.action.clone());
/// let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
/// let mut run = Sebulba::new(agent)
///     .actors(vec![0])
///     .learners(vec![1])
///     .unroll(128)
///     .start(&client, &spec, 0, |_thread| Ok(Box::new(batch())))?;
/// for report in run.run(10)? {
///     println!("{:?}", report.metrics);
/// }
/// # Ok(())
/// # }
/// ```
pub type Sebulba<A> = HostTraining<A, SebulbaSettings>;

impl<A: Learn<Observation = Tensor>> Sebulba<A> {
    /// Traces the programs, for threads with these environments each.
    ///
    /// # Errors
    /// [`UsageError`] for a shape that makes no run; the mistakes of the agent, with the user's lines.
    #[track_caller]
    pub fn trace(&self, environments: &HostSpec) -> Result<SebulbaLoop> {
        self.check(environments)?;
        let host = &self.settings.host;
        let shape = SebulbaShape {
            threads: self.settings.actor_threads(),
            learners: host.learning().len(),
            unroll: host.unroll,
        };
        let (name, simplify) = self.tracing("sebulba");
        if host.replay == ReplayMemory::Host {
            let functions = ReplayFunctions::new(&self.agent, shape, environments)?;
            return Ok(SebulbaLoop::trace(name, shape, environments, &functions, simplify)?);
        }
        let functions = Functions::new(&self.agent, shape, environments)?;
        Ok(SebulbaLoop::trace(name, shape, environments, &functions, simplify)?)
    }

    /// Compiles the programs and starts the threads, each with the batch of environments that `make` gives for its number.
    ///
    /// # Errors
    /// Errors of [`Sebulba::trace`], of `make`, of the runtime and of XLA.
    #[track_caller]
    pub fn start(
        &self,
        client: &Client,
        environments: &HostSpec,
        seed: u64,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        self.begin(client, environments, Origin::Seed(seed), make)
    }

    /// Goes on where [`SebulbaRun::checkpoint`] was called; the rest is as in [`Sebulba::start`]. On as many devices, with the
    /// same agent, sizes and schedule, what follows is what would have followed: to the bit, if the schedule is deterministic
    /// and the environments can be put back.
    ///
    /// ```no_run
    /// use podracer::envs::host::{HostEnvironment, NativeCartPole, Pool};
    /// use podracer::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let batch = || Pool::new(&NativeCartPole::new(500), 16);
    /// # let spec = batch().spec().clone();
    /// # let sebulba = Sebulba::new(Ppo::new(spec.observation.clone(), spec.action.clone()));
    /// let client = Client::cpu(ClientOptions { cpu_devices: Some(2), ..ClientOptions::default() })?;
    /// let checkpoints = Checkpoints::new("cartpole-checkpoints", 2);
    /// let mut run = match checkpoints.latest() {
    ///     Ok(found) => sebulba.resume(&client, &spec, &found.checkpoint, |_| Ok(Box::new(batch())))?,
    ///     Err(CheckpointError::None { .. }) => sebulba.start(&client, &spec, 0, |_| Ok(Box::new(batch())))?,
    ///     Err(error) => return Err(error.into()),
    /// };
    /// for _ in 0..10 {
    ///     run.run(100)?;
    ///     checkpoints.save(&run.checkpoint()?)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Errors of [`Sebulba::start`], and a checkpoint that does not fit.
    #[track_caller]
    pub fn resume(
        &self,
        client: &Client,
        environments: &HostSpec,
        checkpoint: &Checkpoint,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        self.begin(client, environments, Origin::Checkpoint(checkpoint), make)
    }

    /// [`Sebulba::start`] or [`Sebulba::resume`].
    ///
    /// # Errors
    /// Errors of [`Sebulba::start`] and of [`Sebulba::resume`].
    #[track_caller]
    pub fn begin(
        &self,
        client: &Client,
        environments: &HostSpec,
        origin: Origin<'_>,
        make: impl FnMut(usize) -> Result<Box<dyn HostEnvironment>>,
    ) -> Result<SebulbaRun> {
        let programs = self.trace(environments)?;
        let batches = (0..self.settings.actor_threads())
            .map(make)
            .collect::<Result<Vec<_>>>()
            .context("cannot make the environments")?;
        self.compiling(client, environments.environments, |compiler| {
            SebulbaRun::start(&programs, compiler, &self.settings, batches, origin)
        })
        .context("cannot start the training")
    }

    fn check(&self, environments: &HostSpec) -> Result<(), UsageError> {
        builder::at_least_one(&[
            ("threads", self.settings.threads),
            ("queue", self.settings.queue),
        ])?;
        self.check_lanes(environments.environments)?;
        let on_policy = self.settings.fixed_lag() == Some(0);
        if self.agent.staleness() == Staleness::Refused && !on_policy {
            return Err(UsageError::new(
                "this agent learns only from what its present parameters acted: it needs lag = 0",
            ));
        }
        Ok(())
    }
}

/// A batch of environments of the DSL on a CPU device of `client`, for rollouts of `unroll` steps.
///
/// # Errors
/// The mistakes of the environment, with the user's lines; errors of the runtime.
#[track_caller]
pub fn compiled_environments<E: Environment<Observation = Tensor>>(
    client: &Client,
    device: usize,
    environment: E,
    environments: usize,
    unroll: usize,
) -> Result<CompiledEnvironments> {
    check_environment(&environment)?;
    let batch = HostLoop::new(environment, environments, unroll);
    Ok(CompiledEnvironments::compile(
        client,
        &builder::on_device(device),
        batch.spec(),
        |key, first| batch.begin(key, first),
        |lanes, action| batch.step(lanes, action),
    )?)
}

/// The functions of an agent that the runtime schedules.
pub(crate) struct Functions<A: Learn<Observation = Tensor>>(pub(crate) ActorLearner<A>);

impl<A: Learn<Observation = Tensor>> Functions<A> {
    /// Traces the agent for these environments, and checks it.
    ///
    /// # Errors
    /// Mistakes of the agent, with the user's lines.
    #[track_caller]
    pub(crate) fn new(agent: &A, shape: SebulbaShape, environments: &HostSpec) -> Result<Self> {
        let action = environments.action.ty();
        let input = eval_shape((Spec(environments.observation.ty()),), |(observation,)| {
            Feedback::begin(&action).input(observation, None)
        })?;
        check_agent(agent, &input, &action)?;
        let SebulbaShape { threads, learners, unroll } = shape;
        let (agent, environments) = (agent.clone(), environments.clone());
        let learner =
            ActorLearner { agent, environments, threads, unroll, learners, keeps_lanes: false };
        let init = |(key,)| learner.init(Key::from_words(key)).sharded;
        let store = trace_replicated(learners, (u32([2]),), init)?;
        let keeps_lanes = !store.results().leaves().is_empty();
        Ok(Functions(ActorLearner { keeps_lanes, ..learner }))
    }
}

impl<A: Learn<Observation = Tensor>> SebulbaFunctions for Functions<A> {
    type Params = A::Params;
    type State = Learner<A::State>;
    type Store = A::Store;
    type Actor = ActorFor<A>;
    type Carry = ActorCarry<A::Memory>;
    type Shard = ShardFor<A>;
    type Data = Vec<ShardFor<A>>;
    type Metrics = A::Metrics;
    type Requests = ();

    fn init(&self, key: Key) -> LearnerStateFor<A> {
        self.0.init(key)
    }
    fn params(&self, learner: &Self::State) -> A::Params {
        self.0.agent.params(&learner.agent)
    }
    fn carried(&self, actor: &ActorFor<A>) -> Self::Carry {
        actor.carry.clone()
    }
    fn start(&self, key: Key, first: Tensor, continues: Tensor) -> ActorFor<A> {
        self.0.start(key, first, continues)
    }
    fn act(
        &self,
        params: &A::Params,
        actor: ActorFor<A>,
        outcome: StepOutcome,
    ) -> (Tensor, ActorFor<A>) {
        self.0.act(params, actor, outcome, None)
    }
    fn finish(&self, actor: ActorFor<A>, outcome: StepOutcome) -> Vec<ShardFor<A>> {
        self.0.finish(actor, outcome)
    }
    fn data(&self, shard: &Spec<ShardFor<A>>) -> Result<Spec<Self::Data>, TraceErrors> {
        eval_shape(shard, |shard| vec![shard; self.0.threads])
    }
    fn learn(
        &self,
        state: LearnerStateFor<A>,
        shards: Vec<ShardFor<A>>,
    ) -> (LearnerStateFor<A>, A::Metrics, ()) {
        let (state, metrics) = self.0.learn(state, shards);
        (state, metrics, ())
    }
}

/// The functions of an agent whose replay is on the host.
pub(crate) struct ReplayFunctions {
    pub(crate) acting: Functions<AnyAgent>,
    pub(crate) learning: HostReplayLearner,
    sizes: HostReplayShape,
}

impl ReplayFunctions {
    /// Traces the agent and its replay for these environments, and checks both.
    ///
    /// # Errors
    /// [`UsageError`] for an agent that has no replay; mistakes of the agent, with the user's lines.
    #[track_caller]
    pub(crate) fn new<A: Learn<Observation = Tensor>>(
        agent: &A,
        shape: SebulbaShape,
        environments: &HostSpec,
    ) -> Result<Self> {
        // Its mistakes are those of the agent itself, not of the erased one.
        Functions::new(agent, shape, environments)?;
        let agent = &AnyAgent::new(agent.clone());
        let acting = Functions::new(agent, shape, environments)?;
        let learning = HostReplayLearner::new(acting.0.clone()).ok_or_else(|| {
            UsageError::new(
                "a replay on the host is for agents that learn from a replay, and this agent has none"
                    .to_owned(),
            )
        })?;
        let sizes = learning.sizes()?;
        Ok(ReplayFunctions { acting, learning, sizes })
    }
}

impl SebulbaFunctions for ReplayFunctions {
    type Params = AnyTree;
    type State = Learner<AnyTree>;
    type Store = AnyTree;
    type Actor = ActorFor<AnyAgent>;
    type Carry = ActorCarry<AnyTree>;
    type Shard = KeptTrees;
    type Data = KeptTrees;
    type Metrics = AnyTree;
    type Requests = Requests;

    fn init(&self, key: Key) -> LearnerStateFor<AnyAgent> {
        self.learning.init(key)
    }
    fn params(&self, learner: &Self::State) -> AnyTree {
        self.acting.params(learner)
    }
    fn carried(&self, actor: &Self::Actor) -> Self::Carry {
        self.acting.carried(actor)
    }
    fn start(&self, key: Key, first: Tensor, continues: Tensor) -> Self::Actor {
        self.acting.start(key, first, continues)
    }
    fn act(
        &self,
        params: &AnyTree,
        actor: Self::Actor,
        outcome: StepOutcome,
    ) -> (Tensor, Self::Actor) {
        self.acting.act(params, actor, outcome)
    }
    fn finish(&self, actor: Self::Actor, outcome: StepOutcome) -> Vec<KeptTrees> {
        self.learning.finish(actor, outcome)
    }
    fn data(&self, shard: &Spec<KeptTrees>) -> Result<Spec<KeptTrees>, TraceErrors> {
        Ok(self.sizes.windows(shard))
    }
    fn replay(&self, shard: &Spec<KeptTrees>) -> Result<Option<HostReplay>, TraceErrors> {
        let HostReplayShape { steps, length, period, gradient_steps, batch, ahead } = self.sizes;
        let steps_of = eval_shape(shard, |shard| shard.steps)?;
        let step_leaves = steps_of.types().len();
        Ok(Some(HostReplay { steps, length, period, gradient_steps, batch, ahead, step_leaves }))
    }
    fn learn(
        &self,
        state: LearnerStateFor<AnyAgent>,
        windows: KeptTrees,
    ) -> (LearnerStateFor<AnyAgent>, AnyTree, Requests) {
        self.learning.learn(state, windows)
    }
}
