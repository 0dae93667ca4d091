//! Proximal policy optimization (Schulman et al. 2017, equations 7 and 9), with the clipped value loss and the
//! normalised advantages of its reference implementation.
//!
//! With a recurrent core a minibatch is of whole trajectories, each gone through from the memory that acting had at its
//! start, as in CleanRL's `ppo_atari_lstm` and PureJaxRL's `ppo_rnn`: which environments it takes is drawn, not which steps.

use super::minibatches::{Minibatches, merged};
use super::settings::clipped_adam;
use super::steps::weighted;
use super::{
    Act, ActorCritic, ActorCriticAgent, ActorCriticOptimizer, ActorCriticSettings,
    ActorCriticShape, Agent, AgentSettings, AnyAgent, Axes, Cx, Input, LaneId, Learn, Memory, Mode,
    Networks, Normalized, Optimized, Rollout, RolloutShape, Staleness, Task, scan_mean,
    step_weights,
};
use crate::Number;
use crate::losses::{clipped_surrogate_pg_loss, clipped_value_loss};
use crate::nn::Initializer;
use crate::optim::{Optimizer, Schedule, global_norm};
use crate::ravel::ravel;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Proximal policy optimization (Schulman et al. 2017). The defaults are those of CleanRL's and PureJaxRL's CartPole.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct PpoSettings {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: Number,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Passes over each rollout.
    #[schemars(range(min = 1, max = 10_000))]
    pub epochs: usize,
    /// Minibatches per pass: of steps, or with an LSTM of lanes with all of their steps.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub minibatches: usize,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of generalized advantage estimation.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Greatest distance of the probability ratio from 1, and of the value from the old one.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip: Number,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the value loss.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Units of an LSTM between torso and hidden layers; 0 for none.
    #[schemars(range(max = 65_536))]
    pub lstm: usize,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
    /// If true, minibatches are drawn by an exactly uniform permutation, which sorts, in place of a Feistel bijection.
    pub exact_shuffle: bool,
    /// If true, observations are normalised by their running mean and variance.
    pub normalize_observations: bool,
    /// If true, rewards are divided by the running standard deviation of the discounted return.
    pub normalize_rewards: bool,
}

impl Default for PpoSettings {
    fn default() -> Self {
        PpoSettings {
            learning_rate: 2.5e-4.into(),
            anneal_learning_rate: true,
            adam_epsilon: 1e-5.into(),
            max_gradient_norm: 0.5.into(),
            epochs: 4,
            minibatches: 4,
            discount: 0.99.into(),
            lambda: 0.95.into(),
            clip: 0.2.into(),
            entropy_cost: 0.01.into(),
            value_cost: 0.5.into(),
            lstm: 0,
            networks: Networks::default(),
            exact_shuffle: false,
            normalize_observations: false,
            normalize_rewards: false,
        }
    }
}

impl ActorCriticSettings for PpoSettings {
    type Optimizer = ActorCriticOptimizer;

    fn optimizer(&self, learning_rate: Schedule) -> ActorCriticOptimizer {
        clipped_adam(learning_rate, self.adam_epsilon, self.max_gradient_norm)
    }

    fn learning_rate(&self) -> Number {
        self.learning_rate
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::orthogonal(2f64.sqrt()), self.lstm, false)
    }
}

impl AgentSettings for PpoSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(self.normalized(self.for_task(task)?, task))
    }

    fn check_rollout(&self, lanes: usize, steps: usize) -> Result<(), String> {
        self.drawn().check(RolloutShape { lanes, unroll: steps }, self.lstm)
    }
}

/// The parts that a variant of PPO is made of: its `AgentSettings::agent` is `Ok(ppo.normalized(Variant(ppo.for_task(task)?), task))`.
impl PpoSettings {
    /// PPO for a task, with its learning rate annealed over the task's gradient steps where the settings say so.
    ///
    /// # Errors
    /// Observations that the networks do not take, as a sentence.
    pub fn for_task(&self, task: &Task) -> Result<Ppo, String> {
        self.networks.check(&task.observation)?;
        let steps = self.drawn().updates();
        let rate = task.learning_rate(self.learning_rate, self.anneal_learning_rate, steps);
        Ok(Ppo::for_task(task, self, self.optimizer(rate)))
    }

    /// An agent with the normalisation of observations and rewards that the settings ask for.
    pub fn normalized<A: Learn<Observation = Tensor>>(&self, agent: A, task: &Task) -> AnyAgent {
        if !(self.normalize_observations || self.normalize_rewards) {
            return AnyAgent::new(agent);
        }
        AnyAgent::new(Normalized {
            observations: self.normalize_observations,
            rewards: self.normalize_rewards.then_some(self.discount),
            ..Normalized::new(agent, task.observation.clone(), self.discount)
        })
    }

    /// The minibatches of an iteration.
    fn drawn(&self) -> Minibatches {
        let &PpoSettings { epochs, minibatches, exact_shuffle, lstm, .. } = self;
        Minibatches { epochs, count: minibatches, exact_shuffle, whole_lanes: lstm > 0 }
    }
}

/// The agent of [`PpoSettings`].
pub type Ppo<O = ActorCriticOptimizer> = ActorCriticAgent<PpoSettings, O>;

/// Data of a step that [`Ppo`] leaves for learning.
#[derive(Tree, Clone)]
pub struct PpoExtras {
    /// The logarithm of the action's probability when it was drawn. f32 `[]`
    pub log_prob: Tensor,
    /// The value of the input when the action was drawn. f32 `[]`
    pub value: Tensor,
    /// The memory after the step.
    pub memory: Memory,
}

/// A rollout as minibatches draw from it; `B = T N` steps in the order of the rollout, `U` gradient steps of `M` steps each.
/// With a core the unit that is drawn is not a step of `B` but a lane of `N`, with its `T` steps.
#[derive(Tree, Clone)]
pub struct PpoBatch {
    /// The inputs. `[B, ..]`, or `[N, T, ..]`
    pub input: Input,
    /// The actions. `[B, ..]`, or `[N, T, ..]`
    pub action: Tensor,
    /// The memory at the rollout's start, `[N, ..]`.
    pub memory: Memory,
    /// True if a step begins an episode within the rollout, bool `[N, T]`; `None` without a core.
    pub begins: Option<Tensor>,
    /// The steps of each gradient step, i32 `[U, M]`, or the lanes, `[U, M / T]`.
    pub minibatch: Tensor,
    /// Log probability, value and advantage of each step of a minibatch. f32 `[U, M, 3]`
    pub drawn: Tensor,
    /// The mean advantage of each minibatch, over all devices. f32 `[U]`
    pub advantage_mean: Tensor,
    /// Standard deviation of each minibatch's advantages, over all devices. f32 `[U]`
    pub advantage_std: Tensor,
    /// The weight of each step of a minibatch, f32 `[U, M]`; `None` where all count alike.
    pub weights: Option<Tensor>,
    /// [`PpoMetrics::explained_variance`]. f32 `[]`
    pub explained_variance: Tensor,
}

/// Terms of the loss, f32 `[]`: means over the steps of a minibatch.
#[derive(Tree, Clone, Copy)]
pub struct PpoTerms {
    /// The policy loss plus the weighted value loss minus the weighted entropy.
    pub loss: Tensor,
    /// The clipped surrogate objective, negated.
    pub policy_loss: Tensor,
    /// Half of the clipped squared error.
    pub value_loss: Tensor,
    /// The policy's entropy, in nats.
    pub entropy: Tensor,
    /// An estimate of the divergence from the policy that acted: mean of (ratio - 1) - log ratio.
    pub approximate_kl: Tensor,
    /// The share of steps whose probability ratio is clipped.
    pub clip_fraction: Tensor,
}

/// Metrics of an iteration, f32 `[]`: means over its minibatches.
#[derive(Tree, Clone, Copy)]
pub struct PpoMetrics {
    /// [`PpoTerms::loss`].
    pub loss: Tensor,
    /// [`PpoTerms::policy_loss`].
    pub policy_loss: Tensor,
    /// [`PpoTerms::value_loss`].
    pub value_loss: Tensor,
    /// [`PpoTerms::entropy`].
    pub entropy: Tensor,
    /// [`PpoTerms::approximate_kl`].
    pub approximate_kl: Tensor,
    /// [`PpoTerms::clip_fraction`].
    pub clip_fraction: Tensor,
    /// The gradient's global norm before it is clipped.
    pub gradient_norm: Tensor,
    /// The part of the returns' variance that the values explained when the steps were acted: 1 - Var(return - value) / Var(return),
    /// and 0 where returns do not vary.
    pub explained_variance: Tensor,
}

/// The means of each step's terms, f32 `[B]`: one reduction, and not one for each.
fn means(steps: &PpoTerms) -> PpoTerms {
    let means = stop_gradient(stack(&steps.leaves(), 0)).mean_axis(1);
    steps.with_leaves(&means.unstack())
}

/// [`PpoMetrics::explained_variance`] of values and advantages `[T, N]`, over all devices.
fn explained_variance(
    value: Tensor,
    advantage: Tensor,
    skipped: Option<Tensor>,
    axes: &Axes,
) -> Tensor {
    let weights = skipped.map(|skipped| step_weights(!merged(skipped), axes));
    let mean = |numbers| axes.mean(weighted(numbers, weights).mean());
    let variance = |numbers: Tensor| mean((merged(numbers) - mean(merged(numbers))).square());
    let of_returns = variance(value + advantage);
    select(of_returns.gt(0.0), 1.0 - variance(advantage) / of_returns, 0.0)
}

impl<O: Optimizer> Ppo<O> {
    /// Prepares the data that the gradient steps of an iteration read.
    #[track_caller]
    pub fn batch(
        &self,
        params: &ActorCritic,
        rollout: Rollout<Self>,
        key: Key,
        axes: &Axes,
    ) -> PpoBatch {
        let _scope = scope("Ppo::batch");
        let &PpoSettings { discount, lambda, lstm, .. } = &self.settings;
        let value_after = |(memory, input): (Memory, Input)| {
            let (_, features) = params.see(memory, &input);
            params.value(features)
        };
        let PpoExtras { log_prob, value, memory } = rollout.extras.clone();
        let advantage = rollout.advantages(value, memory, value_after, discount, lambda);
        let explained_variance = explained_variance(value, advantage, rollout.skipped, axes);

        // What minibatches are drawn from: steps, or lanes with all of theirs.
        let whole_lanes = lstm > 0;
        let units = |x: Tensor| match whole_lanes {
            true => x.swap_axes(0, 1),
            false => merged(x),
        };
        let steps_of = |drawn: Tensor| match whole_lanes {
            true => vmap(drawn, merged),
            false => drawn,
        };
        let advantage = units(advantage);
        let shape = RolloutShape { lanes: value.dim(1), unroll: value.dim(0) };
        let minibatch = self.settings.drawn().draw("Ppo", shape, key, axes);
        let steps = stack(&[units(log_prob), units(value), advantage], -1);
        let drawn = steps_of(steps.take(minibatch, 0));
        let weights = rollout.skipped.map(|skipped| {
            let skipped = steps_of(units(skipped).take(minibatch, 0));
            vmap(!skipped, |counts| step_weights(counts, axes))
        });
        // Each statistic of all minibatches passes one collective.
        let mean = |numbers| axes.mean(weighted(numbers, weights).mean_axis(1));
        let advantage = drawn.index_axis(2, 2);
        let advantage_mean = mean(advantage);
        let variance = (advantage - advantage_mean.expand_dims(1)).square();
        let advantage_std = mean(variance).sqrt();
        // Acting has begun the memory anew already where the first step begins an episode.
        let begins = whole_lanes.then(|| {
            let ended = rollout.done();
            let first = zeros(BOOL, [1, ended.dim(1)]);
            let rest = ended.slice_axis(0, 0..ended.dim(0) - 1);
            units(concatenate(&[first, rest], 0))
        });
        PpoBatch {
            input: tree_map(&rollout.input, units),
            action: units(rollout.action),
            memory: rollout.memory,
            begins,
            minibatch,
            drawn,
            advantage_mean,
            advantage_std,
            weights,
            explained_variance,
        }
    }

    /// The loss of gradient step number `update` (i32 `[]`) of an iteration: f32 `[]`, a mean over this device's data.
    #[track_caller]
    pub fn loss(
        &self,
        params: ActorCritic,
        batch: &PpoBatch,
        update: Tensor,
    ) -> (Tensor, PpoTerms) {
        let _scope = scope("Ppo::loss");
        let &PpoSettings { clip, entropy_cost, value_cost, .. } = &self.settings;
        let rows = batch.minibatch.at(update);
        let drawn = batch.drawn.at(update);
        let [log_prob, value_tm1, advantage] = [0, 1, 2].map(|i| drawn.index_axis(1, i));
        let target = value_tm1 + advantage;
        let advantage =
            (advantage - batch.advantage_mean.at(update)) / (batch.advantage_std.at(update) + 1e-8);
        let rows_of = |x: Tensor| x.take(rows, 0);
        let weights = batch.weights.map(|weights| weights.at(update));
        let legal = batch.input.legal_actions.map(rows_of);
        let see = |input: Input| vmap(input, |input| params.features(&input));
        let (features, action, legal) = match batch.begins {
            None => {
                let (input, action) = (tree_map(&batch.input, rows_of), rows_of(batch.action));
                (see(input), action, legal)
            }
            Some(begins) => {
                let memory = tree_map(&batch.memory, rows_of);
                let lanes = (memory, tree_map(&batch.input, rows_of), rows_of(begins));
                let features = vmap(lanes, |(memory, input, begins)| {
                    params.remember_all(memory, see(input), begins).1
                });
                (merged(features), merged(rows_of(batch.action)), legal.map(merged))
            }
        };
        let terms = vmap(
            ((features, legal), (action, log_prob), (advantage, value_tm1, target), weights),
            |((features, legal), (action, log_prob), (advantage, value_tm1, target), weight)| {
                let policy = params.policy(features, legal);
                // Of a step that does not count the ratio may be infinite, and its slope times 0 no number.
                let log_ratio = policy.log_prob(action) - log_prob;
                let log_ratio = match weight {
                    Some(weight) => select(weight.eq(0.0), 0.0, log_ratio),
                    None => log_ratio,
                };
                let ratio = log_ratio.exp();
                let policy_loss = clipped_surrogate_pg_loss(ratio, advantage, clip);
                let value = params.value(features);
                let value_loss = clipped_value_loss(value, value_tm1, target, clip);
                let entropy = policy.entropy();
                PpoTerms {
                    loss: policy_loss + value_cost * value_loss - entropy_cost * entropy,
                    policy_loss,
                    value_loss,
                    entropy,
                    approximate_kl: ratio - 1.0 - log_ratio,
                    clip_fraction: (ratio - 1.0).abs().gt(clip).astype(ratio.dtype()),
                }
            },
        );
        let terms = tree_map(&terms, |term| weighted(term, weights));
        (terms.loss.mean(), means(&terms))
    }
}

impl<O: Optimizer> Agent for Ppo<O> {
    type Observation = Tensor;
    type Params = ActorCritic;
    type Memory = Memory;
    type Extras = PpoExtras;

    fn init_memory(&self, _: LaneId) -> Memory {
        self.no_memory()
    }

    fn begin_episode(&self, _: Memory) -> Memory {
        self.no_memory()
    }

    fn act(
        &self,
        params: &ActorCritic,
        memory: Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<Memory, PpoExtras> {
        let (memory, features) = params.see(memory, &input);
        let policy = params.policy(features, input.legal_actions);
        let action = policy.choose(mode, key);
        let log_prob = policy.log_prob(action);
        let extras = PpoExtras { log_prob, value: params.value(features), memory };
        Act { action, memory, extras }
    }
}

impl<O: Optimizer> Learn for Ppo<O> {
    type State = Optimized<ActorCritic, O::State<ActorCritic>>;
    type Store = ();
    type Metrics = PpoMetrics;

    fn init(&self, key: Key) -> Self::State {
        self.init_state(key)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> ActorCritic {
        state.params.clone()
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
    ) -> (Self::State, (), PpoMetrics) {
        let Cx { key, axes, .. } = cx;
        let batch = self.batch(&state.params, rollout, key, &axes);
        let updates = self.settings.drawn().updates();
        let (state, metrics) = scan_mean(state, updates, |state, update| {
            let (grads, terms) = state.gradient(&axes, |params| self.loss(params, &batch, update));
            // Of one vector, as an optimizer that is flattened takes it: it is computed once.
            let norm = global_norm(&ravel(&grads));
            (state.step(&self.optimizer, grads), (terms, norm))
        });
        let (terms, gradient_norm) = metrics;
        let PpoTerms { loss, policy_loss, value_loss, entropy, approximate_kl, clip_fraction } =
            terms;
        let metrics = PpoMetrics {
            loss,
            policy_loss,
            value_loss,
            entropy,
            approximate_kl,
            clip_fraction,
            gradient_norm,
            explained_variance: batch.explained_variance,
        };
        (state, (), metrics)
    }
}
