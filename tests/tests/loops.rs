//! Small training loops, compiled without a cache, for the tests of the loop itself.

use podracer_dsl::prelude::{Tensor, Tree};
use podracer_envs::{AnyEnvironment, Environment};
use podracer_rl::agents::{
    A2c, A2cSettings, BootstrappedDqn, BootstrappedSettings, Dqn, DqnSettings, Impala,
    ImpalaSettings, LearnFrom, MuZeroSettings, OffPolicySettings, OnlineActorCritic,
    OnlineSettings, PlanningSettings, Ppo, PpoSettings, Pqn, PqnSettings, R2d2, R2d2Settings, Sac,
    SacActions, SacOptimizers, SacSettings, SearchSettings, Td3, Td3Settings, UnitBox,
};
use podracer_rl::anakin::{Actors, AgentLoop, Episodes, Learner};
use podracer_rl::learn::{
    AdamSettings, Agent, AgentSettings, AnyAgent, Axes, Learn, ReplaySettings, Replayed, Task,
};
use podracer_rl::net::{Core, Networks};
use podracer_rl::optim::Optimizer;
use podracer_runtime::{
    AnakinLoop, AnakinProgram, Array, Client, CompileOptions, Device, ExecutableCache, Placement,
    ProgramOptions, XlaOptions,
};

pub type Replicated<A> = Learner<<A as Learn>::State>;
pub type Lanes<E, A> = Actors<<A as Agent>::Memory, <E as Environment>::State, <A as Learn>::Store>;
pub type Loop<E, A> = AnakinLoop<Replicated<A>, Lanes<E, A>, <A as Learn>::Metrics, Episodes>;
pub type Compiled<E, A> =
    AnakinProgram<Replicated<A>, Lanes<E, A>, <A as Learn>::Metrics, Episodes>;

/// Size of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Number of devices.
    pub replicas: usize,
    /// Environments of all devices together.
    pub environments: usize,
    /// Steps of an iteration.
    pub unroll: usize,
    /// Iterations of a call.
    pub iterations: usize,
}

/// Two environments, four steps, one iteration, one device.
pub const TINY: Size = Size { replicas: 1, environments: 2, unroll: 4, iterations: 1 };

/// The loop before it is compiled.
#[track_caller]
pub fn traced<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    size: Size,
) -> Loop<E, A> {
    let environments = size.environments / size.replicas;
    let agent_loop = AgentLoop::new(environment.clone(), agent.clone(), environments, size.unroll)
        .spread(Axes::replicas(size.replicas));
    let init = |key| agent_loop.init(key);
    let iteration = |state| agent_loop.iterate(state);
    AnakinLoop::trace("loop", size.replicas, size.iterations, init, iteration)
        .expect("the loop traces")
}

/// Options of the loops here: quickly compiled, and nothing is cached.
pub fn options(replicas: usize) -> ProgramOptions {
    let xla = XlaOptions::unoptimized().to_vec();
    let compile = CompileOptions { replicas, xla, ..CompileOptions::default() };
    ProgramOptions { compile, cache: ExecutableCache::disabled(), ..ProgramOptions::default() }
}

/// The compiled loop.
#[track_caller]
pub fn compiled<E: Environment, A: Learn<Observation = E::Observation>>(
    client: &Client,
    environment: &E,
    agent: &A,
    size: Size,
) -> Compiled<E, A> {
    let traced = traced(environment, agent, size);
    traced.compile(client, &options(size.replicas)).expect("the loop compiles")
}

/// A client of its own.
pub fn client(devices: usize) -> Client {
    podracer_tests::xla::open(devices).expect("the plugin is installed")
}

/// One layer of 8 units.
pub fn networks() -> Networks {
    Networks { hidden: vec![8], ..Networks::default() }
}

/// PPO with one layer of 8 units, with the given optimizer and without memory.
pub fn ppo<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Ppo<O> {
    Ppo {
        observation: environment.observation_space(),
        action: environment.action_space(),
        optimizer,
        iterations: None,
        settings: PpoSettings { networks: networks(), ..PpoSettings::default() },
    }
}

/// The online actor-critic with one layer of 8 units, with the given optimizer.
pub fn online<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> OnlineActorCritic<O> {
    OnlineActorCritic {
        observation: environment.observation_space(),
        action: environment.action_space(),
        optimizer,
        iterations: None,
        settings: OnlineSettings { networks: networks(), ..OnlineSettings::default() },
    }
}

/// IMPALA with one layer of 8 units after an LSTM of `lstm` units, if that is any, with the given optimizer.
pub fn impala<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    lstm: Option<usize>,
    optimizer: O,
) -> Impala<O> {
    Impala {
        observation: environment.observation_space(),
        action: environment.action_space(),
        optimizer,
        iterations: None,
        settings: ImpalaSettings {
            core: Core { lstm, ..Core::default() },
            networks: networks(),
            ..ImpalaSettings::default()
        },
    }
}

/// Two gradient steps for 24 steps of lanes, from the first iteration on, by priority.
fn replayed<A>(agent: A) -> Replayed<A> {
    let settings = ReplaySettings {
        capacity: 48,
        minimum: 24,
        batch: 8,
        replay_ratio: 2.0 / 3.0,
        prioritized: true,
        ..ReplaySettings::default()
    };
    Replayed { agent, settings, iterations: 3 }
}

fn off_policy() -> OffPolicySettings {
    OffPolicySettings { networks: networks(), ..OffPolicySettings::default() }
}

/// SAC with one layer of 8 units, with the given optimizer.
pub fn sac<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Replayed<Sac<O>> {
    replayed(Sac {
        observation: environment.observation_space(),
        actions: SacActions::new(&environment.action_space()).expect("actions that SAC has"),
        optimizers: SacOptimizers {
            actor: optimizer.clone(),
            critics: optimizer.clone(),
            temperature: optimizer,
        },
        settings: SacSettings { off_policy: off_policy(), ..SacSettings::default() },
    })
}

/// TD3 with one layer of 8 units, with the given optimizer.
pub fn td3<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Replayed<Td3<O>> {
    replayed(Td3 {
        observation: environment.observation_space(),
        actions: UnitBox::new(&environment.action_space()).expect("actions of a box"),
        actor_optimizer: optimizer.clone(),
        critic_optimizer: optimizer,
        settings: Td3Settings { off_policy: off_policy(), ..Td3Settings::default() },
    })
}

/// A2C with one layer of 8 units after an LSTM of `lstm` units, if that is any, with the given optimizer.
pub fn a2c<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    lstm: Option<usize>,
    optimizer: O,
) -> A2c<O> {
    A2c {
        observation: environment.observation_space(),
        action: environment.action_space(),
        optimizer,
        iterations: None,
        settings: A2cSettings {
            core: Core { lstm, ..Core::default() },
            networks: networks(),
            ..A2cSettings::default()
        },
    }
}

/// PQN with one layer of 8 units with layer normalisation and two minibatches, with the given optimizer.
pub fn pqn<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Pqn<O> {
    let (observation, action) = (environment.observation_space(), environment.action_space());
    let networks = Networks { layer_norm: true, ..networks() };
    let settings = PqnSettings { minibatches: 2, networks, ..PqnSettings::default() };
    let task = Task { observation, action, iterations: 20, model: None };
    Pqn::for_task(&settings, &task).expect("settings that fit").with_optimizer(optimizer)
}

/// DQN with one layer of 8 units, of transitions over two steps of two frames each. Adam's large epsilon keeps rounding errors
/// small.
pub fn dqn<E: Environment<Observation = Tensor>>(environment: &E) -> Replayed<Dqn> {
    let optimizer = DqnSettings::default().optimizer;
    let settings = DqnSettings {
        optimizer: AdamSettings {
            adam_epsilon: 1.0.into(),
            learning_rate: 0.1.into(),
            ..optimizer
        },
        n_step: 2,
        frames: 2,
        target_period: 2,
        networks: networks(),
        ..DqnSettings::default()
    };
    let (observation, action) = (environment.observation_space(), environment.action_space());
    replayed(Dqn::for_task(&Task { observation, action, iterations: 3, model: None }, &settings))
}

/// Three networks of [`dqn`] with priors; each learns from about half of the steps. No actions are
/// random.
pub fn bootstrapped<E: Environment<Observation = Tensor>>(
    environment: &E,
) -> Replayed<BootstrappedDqn> {
    let Replayed { agent: mut dqn, settings, iterations } = dqn(environment);
    dqn.settings.epsilon = BootstrappedSettings::default().dqn.epsilon;
    let agent =
        BootstrappedDqn { dqn, ensemble: 3, prior_scale: 1.0.into(), mask_probability: 0.5 };
    Replayed { agent, settings, iterations }
}

/// Paths and values of the leaves.
#[track_caller]
pub fn named<T: Tree>(tree: &Device<T>) -> Vec<(String, Array)> {
    tree.named_arrays().expect("the computation succeeded")
}

/// The values of the leaves, for the reference semantics.
#[track_caller]
pub fn arrays<T: Tree>(tree: &Device<T>) -> Vec<Array> {
    named(tree).into_iter().map(|(_, array)| array).collect()
}

/// Leaves of one placement with buffers on the devices: path, and the value on each device.
#[track_caller]
pub fn on_each_device<T: Tree>(
    tree: &Device<T>,
    placement: Placement,
) -> Vec<(String, Vec<Array>)> {
    let mut leaves = Vec::new();
    tree.visit(|path, leaf| {
        if leaf.placement() == placement {
            let values = leaf.buffers().iter().map(|buffer| buffer.to_host());
            let values = values.collect::<Result<_, _>>();
            leaves.push((path.to_string(), values.expect("the computation succeeded")));
        }
    });
    leaves
}

/// R2D2 with an LSTM of 4 units and stacks of 2 frames, with the given optimizer: sequences of 8 steps, 2 of them burn-in, one
/// from every 6th step on, drawn by priority. A gradient step is due for each 24 steps.
pub fn r2d2<E: Environment<Observation = Tensor>, O: Optimizer>(
    environment: &E,
    optimizer: O,
) -> Replayed<R2d2<O>> {
    let settings = R2d2Settings {
        sequence_length: 8,
        burn_in: 2,
        period: 6,
        n_step: 3,
        target_period: 1,
        frames: 2,
        lstm: 4,
        networks: networks(),
        ..R2d2Settings::default()
    };
    let replay = ReplaySettings {
        capacity: 96,
        minimum: 24,
        batch: 4,
        replay_ratio: 1.0,
        ..settings.replay.clone()
    };
    let (observation, action) = (environment.observation_space(), environment.action_space());
    let agent = R2d2 { observation, action, optimizer, settings };
    Replayed { agent, settings: replay, iterations: 1 }
}

/// MuZero with one layer of 8 units in each network and 4 simulations of a search, which learns from each rollout in `gradient_steps`,
/// or with 0 of them from a replay. Adam's large epsilon keeps rounding errors small.
pub fn muzero_settings(gradient_steps: usize) -> MuZeroSettings {
    let default = MuZeroSettings::default();
    let PlanningSettings { optimizer, search, replay, .. } = default.planning.clone();
    MuZeroSettings {
        model_unroll: 2,
        n_step: 2,
        value_support: 2,
        reward_support: 2,
        embedding: 4,
        head_hidden: vec![8],
        planning: PlanningSettings {
            optimizer: AdamSettings {
                learning_rate: 0.1.into(),
                adam_epsilon: 1.0.into(),
                ..optimizer
            },
            learn_from: if gradient_steps == 0 { LearnFrom::Replay } else { LearnFrom::Rollouts },
            gradient_steps,
            search: SearchSettings { simulations: 4, ..search },
            replay: ReplaySettings { capacity: 96, minimum: 24, batch: 4, ..replay },
            ..default.planning
        },
        networks: networks(),
        ..default
    }
}

/// The agent of settings in an environment, which is its model if it needs one.
pub fn agent<E: Environment<Observation = Tensor>>(
    environment: &E,
    settings: &impl AgentSettings,
) -> AnyAgent {
    let (observation, action) = (environment.observation_space(), environment.action_space());
    let model = Some(AnyEnvironment::new(environment.clone()));
    let task = Task { observation, action, iterations: 3, model };
    settings.agent(&task).expect("settings that fit")
}

/// The agent of [`muzero_settings`].
pub fn muzero<E: Environment<Observation = Tensor>>(
    environment: &E,
    gradient_steps: usize,
) -> AnyAgent {
    agent(environment, &muzero_settings(gradient_steps))
}
