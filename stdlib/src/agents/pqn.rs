//! Parallelised Q-network: Gallici et al., "Simplifying Deep Temporal Difference Learning", 2024,
//! algorithm 1. It is Q-learning without a replay and without a target network: layer normalisation
//! keeps it stable. Each iteration acts with an epsilon-greedy policy in many environments, and
//! computes Peng's Q(lambda) from the rollout once (section 5)
//!
//! ```text
//! G_t = r_t + discount_t ((1 - lambda) max_a Q(s_{t+1}, a) + lambda G_{t+1})
//! ```
//!
//! It then takes gradient steps on `(G_t - Q(s_t, a_t))^2 / 2` in minibatches, as
//! [`Ppo`](crate::agents::Ppo) does.

use crate::Number;
use crate::counter::next_count;
use crate::learn::{
    Act, Agent, AgentSettings, AnyAgent, Axes, Clipped, Cx, DescribesOptimizer, Exploration,
    Exploring, Input, LaneId, Learn, Minibatches, Mode, Optimized, Rollout, RolloutOf,
    RolloutShape, Staleness, Task, View, clipped, epsilon_greedy, merged, of_legal, scan_mean,
    step_weights, weighted,
};
use crate::losses::{l2_loss, pick};
use crate::net::{Networks, Torso, TorsoNet};
use crate::nn::{Activation, Initializer, Mlp};
use crate::optim::{Optimizer, RAdam, Schedule, radam};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parallelised Q-network (Gallici et al. 2024). The defaults are the authors' for MinAtar, where
/// their network has the torso `conv` and no hidden layers after it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct PqnSettings {
    /// RAdam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Greatest global norm of the gradients; greater gradients are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Passes over each rollout.
    #[schemars(range(min = 1, max = 10_000))]
    pub epochs: usize,
    /// Minibatches of steps per pass.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub minibatches: usize,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of the returns: 0 for one-step Q-learning; 1 sums all rewards up to the rollout's
    /// end.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Factor of the rewards before learning.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub reward_scale: Number,
    /// Exploration by random actions.
    #[serde(flatten)]
    pub exploration: Exploration,
    /// The network of the action values.
    #[serde(flatten)]
    pub networks: Networks,
    /// If true, minibatches are drawn by an exactly uniform permutation, which sorts, instead of a
    /// Feistel bijection.
    pub exact_shuffle: bool,
}

impl Default for PqnSettings {
    fn default() -> Self {
        PqnSettings {
            learning_rate: 5e-4.into(),
            anneal_learning_rate: true,
            max_gradient_norm: 10.0.into(),
            epochs: 2,
            minibatches: 32,
            discount: 0.99.into(),
            lambda: 0.65.into(),
            reward_scale: 1.0.into(),
            exploration: Exploration {
                epsilon_start: 1.0.into(),
                epsilon_end: 0.05.into(),
                epsilon_fraction: 0.1,
            },
            networks: Networks {
                torso: Torso::None,
                convs: vec![[16, 3, 1]],
                features: 128,
                hidden: vec![128, 128],
                activation: Activation::Relu,
                layer_norm: true,
                ..Networks::default()
            },
            exact_shuffle: false,
        }
    }
}

impl PqnSettings {
    /// The minibatches of an iteration.
    fn drawn(&self) -> Minibatches {
        let &PqnSettings { epochs, minibatches, exact_shuffle, .. } = self;
        Minibatches { epochs, count: minibatches, exact_shuffle, whole_lanes: false }
    }
}

impl DescribesOptimizer for PqnSettings {
    type Optimizer = PqnOptimizer;

    fn optimizer(&self, learning_rate: Schedule) -> PqnOptimizer {
        clipped(self.max_gradient_norm, radam(learning_rate))
    }

    fn learning_rate(&self) -> Number {
        self.learning_rate
    }

    fn anneals(&self) -> bool {
        self.anneal_learning_rate
    }
}

impl AgentSettings for PqnSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Pqn::for_task(self, task).map(AnyAgent::new)
    }

    fn check_rollout(&self, rollout: RolloutShape, _: usize) -> Result<(), String> {
        self.drawn().check(rollout, None)
    }
}

/// RAdam on gradients of a bounded norm, with all parameters as one vector.
pub type PqnOptimizer = Clipped<RAdam>;

/// The agent of [`PqnSettings`].
#[derive(Clone, Debug)]
pub struct Pqn<O = PqnOptimizer> {
    /// Space of the observations.
    pub observation: Space,
    /// Number of actions.
    pub actions: usize,
    /// Optimizer of all parameters.
    pub optimizer: O,
    /// Probability of a random action as a function of the iteration.
    pub epsilon: Schedule,
    /// Settings of the agent. The settings of the optimizer and of exploration are not read here.
    pub settings: PqnSettings,
}

/// The network of the action values.
#[derive(Tree, Clone)]
pub struct PqnNetwork {
    /// From observations to features.
    pub torso: TorsoNet,
    /// From features to the values of all actions.
    pub head: Mlp,
}

impl PqnNetwork {
    /// A new network. Weights are drawn as in the authors' code: He normal in a torso, LeCun normal
    /// after it.
    #[track_caller]
    pub fn init(key: Key, observation: &Space, actions: usize, networks: &Networks) -> PqnNetwork {
        let [torso_key, head_key] = key.split_into();
        let (torso, features) =
            TorsoNet::init(torso_key, observation, networks, Initializer::he_normal());
        let sizes = [&[features], &networks.hidden[..], &[actions]].concat();
        let weights = Initializer::lecun_normal();
        let head = Mlp::init(head_key, &sizes, networks.activation, weights, weights);
        let head = if networks.layer_norm { head.with_layer_norm() } else { head };
        PqnNetwork { torso, head }
    }

    /// The values of all actions for an observation. f32 `[A]`
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> Tensor {
        self.head.apply(self.torso.apply(observation))
    }

    /// The greatest value of a legal action. f32 `[]`
    #[track_caller]
    fn greatest(&self, input: &Input) -> Tensor {
        of_legal(self.apply(input.observation), input.legal_actions).max()
    }
}

/// State of [`Pqn`].
#[derive(Tree, Clone)]
pub struct PqnState<S: Tree> {
    /// The network and its optimizer.
    pub online: Optimized<PqnNetwork, S>,
    /// Probability of a random action in the next iteration. f32 `[]`
    pub epsilon: Tensor,
}

/// A rollout that minibatches are drawn from. It has `B = T N` steps in the order of the rollout,
/// for `U` gradient steps with `M` steps each.
#[derive(Tree, Clone)]
pub struct PqnBatch {
    /// The observations. `[B, ..]`
    pub observation: Tensor,
    /// The actions. i32 `[B]`
    pub action: Tensor,
    /// Q(lambda) targets of the actions. f32 `[B]`
    pub target: Tensor,
    /// The steps of each gradient step. i32 `[U, M]`
    pub minibatch: Tensor,
    /// The weight of each step of a minibatch, f32 `[U, M]`; `None` if all steps count equally.
    pub weights: Option<Tensor>,
}

/// Metrics of an iteration: means over its minibatches.
#[derive(Tree, Clone, Copy)]
pub struct PqnMetrics {
    /// Half of the squared error.
    pub loss: Tensor,
    /// Value of the actions taken.
    pub action_value: Tensor,
    /// Probability of a random action.
    pub epsilon: Tensor,
}

impl Pqn {
    /// The agent for a task.
    ///
    /// # Errors
    /// Returns a sentence if actions are not discrete, or if the torso does not support the
    /// observations.
    pub fn for_task(settings: &PqnSettings, task: &Task) -> Result<Pqn, String> {
        settings.networks.check(&task.observation)?;
        let Space::Discrete { n: actions, .. } = task.action else {
            return Err(format!(
                "agent.kind = pqn: it learns the value of each of some discrete actions, and the environment's actions are {}",
                task.action.ty()
            ));
        };
        let updates = settings.drawn().updates();
        task.check_gradient_steps(updates)?;
        let rate = settings.schedule(Some(task.iterations * updates));
        Ok(Pqn {
            observation: task.observation.clone(),
            actions,
            optimizer: settings.optimizer(rate),
            epsilon: settings.exploration.schedule(task.iterations),
            settings: settings.clone(),
        })
    }
}

impl<O: Optimizer> Pqn<O> {
    /// The same agent with another optimizer.
    #[must_use]
    pub fn with_optimizer<Q: Optimizer>(self, optimizer: Q) -> Pqn<Q> {
        let Pqn { observation, actions, epsilon, settings, .. } = self;
        Pqn { observation, actions, optimizer, epsilon, settings }
    }

    /// Prepares the data that the gradient steps of an iteration read.
    #[track_caller]
    pub fn batch(
        &self,
        network: &PqnNetwork,
        rollout: Rollout<Self>,
        key: Key,
        axes: &Axes,
    ) -> PqnBatch {
        let _scope = scope("Pqn::batch");
        let &PqnSettings { discount, lambda, reward_scale, .. } = &self.settings;
        let reward = match reward_scale.is(1.0) {
            true => rollout.reward,
            false => reward_scale * rollout.reward,
        };
        let rollout = RolloutOf { reward, ..rollout };
        let value = rollout.extras;
        let value_after = |((), input): ((), Input)| network.greatest(&input);
        // Adds the baseline back, which generalized advantages subtract.
        let target = value + rollout.advantages(value, (), value_after, discount, lambda);
        let shape = RolloutShape { lanes: value.dim(1), unroll: value.dim(0) };
        let minibatch = self.settings.drawn().draw("Pqn", shape, key, axes);
        let weights = rollout.skipped.map(|skipped| {
            let counts = !merged(skipped).take(minibatch, 0);
            vmap(counts, |counts| step_weights(counts, axes))
        });
        PqnBatch {
            observation: merged(rollout.input.observation),
            action: merged(rollout.action),
            target: merged(target),
            minibatch,
            weights,
        }
    }

    /// The loss of gradient step number `update` (i32 `[]`) of an iteration, f32 `[]`, and the mean
    /// value of the actions, f32 `[]`. The loss is a mean over this device's data.
    #[track_caller]
    pub fn loss(&self, network: PqnNetwork, batch: &PqnBatch, update: Tensor) -> (Tensor, Tensor) {
        let _scope = scope("Pqn::loss");
        let rows = batch.minibatch.at(update);
        let rows_of = |x: Tensor| x.take(rows, 0);
        let weights = batch.weights.map(|weights| weights.at(update));
        let q = vmap(rows_of(batch.observation), |observation| network.apply(observation));
        let q = pick(q, rows_of(batch.action));
        let error = rows_of(stop_gradient(batch.target)) - q;
        let mean = |numbers: Tensor| weighted(numbers, weights).mean();
        (mean(l2_loss(error)), stop_gradient(mean(q)))
    }
}

impl<O: Optimizer> Agent for Pqn<O> {
    type Observation = Tensor;
    type Params = Exploring<PqnNetwork>;
    type Memory = ();
    /// The greatest value of a legal action. f32 `[]`
    type Extras = Tensor;

    fn init_memory(&self, _: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    fn act(
        &self,
        params: &Exploring<PqnNetwork>,
        (): (),
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<(), Tensor> {
        let Input { observation, legal_actions, .. } = input;
        let q = params.network.apply(observation);
        let action = epsilon_greedy(q, legal_actions, params.epsilon, mode, key);
        Act { action, memory: (), extras: of_legal(q, legal_actions).max() }
    }

    fn view(&self, params: &Exploring<PqnNetwork>, (): (), input: Input, _: Mode, _: Key) -> View {
        View::of_action_values(params.network.apply(input.observation), input.legal_actions)
    }
}

impl<O: Optimizer> Learn for Pqn<O> {
    type State = PqnState<O::State<PqnNetwork>>;
    type Store = ();
    type Metrics = PqnMetrics;

    fn init(&self, key: Key) -> Self::State {
        let network =
            PqnNetwork::init(key, &self.observation, self.actions, &self.settings.networks);
        let online = Optimized::new(&self.optimizer, network);
        PqnState { online, epsilon: self.epsilon.value(scalar(0)) }
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> Exploring<PqnNetwork> {
        Exploring { network: state.online.params.clone(), epsilon: state.epsilon }
    }

    fn staleness(&self) -> Staleness {
        Staleness::Tolerated
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), PqnMetrics) {
        let PqnState { online, epsilon } = state;
        let Cx { key, iteration, axes } = cx;
        let batch = self.batch(&online.params, rollout, key, &axes);
        let updates = self.settings.drawn().updates();
        let (online, (loss, action_value)) = scan_mean(online, updates, |online, update| {
            let step = |network: PqnNetwork| {
                let (loss, action_value) = self.loss(network, &batch, update);
                (loss, (stop_gradient(loss), action_value))
            };
            online.gradient_step(&self.optimizer, &axes, step)
        });
        let metrics = PqnMetrics { loss, action_value, epsilon };
        (PqnState { online, epsilon: self.epsilon.value(next_count(iteration)) }, (), metrics)
    }
}
