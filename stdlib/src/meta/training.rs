//! Training of a rule: agents learn by it, and the rule learns from the agents' results.

use super::{Arms, BanditSettings, LpgRule, LpgShape, UpdateRule};
use crate::Number;
use crate::agents::{LearnedAgent, Predictor};
use crate::anakin::{AgentLoop, Episodes, LoopState};
use crate::counter::next_count;
use crate::distributions::Distribution;
use crate::learn::{Axes, Input, Learn, Optimized, RolloutOf};
use crate::net::Networks;
use crate::optim::{Adam, Optimizer, adam};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of a [`MetaTraining`]: the numbers in Oh et al. 2020, or in Jackson et al. 2023 if the
/// former lack them.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct MetaSettings {
    /// Sizes of the rule.
    #[serde(flatten)]
    pub rule: LpgShape,
    /// Number of agent updates through which the gradient of one update of the rule flows.
    #[schemars(range(min = 1, max = 10_000))]
    pub inner_updates: usize,
    /// Bounds of the length of an agent's life, in updates. Then a new life begins with another
    /// task. The logarithm of the length is drawn uniformly.
    #[schemars(inner(range(min = 1, max = i32::MAX)))]
    #[schemars(extend("x-must" = "have two numbers of updates, such as [250, 2500]"))]
    pub lifetime: [usize; 2],
    /// The bandit that chooses the learning rates for a life.
    #[serde(flatten)]
    pub bandit: BanditSettings,
    /// Discount of the rewards in the rule's loss.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of the advantages in the rule's loss.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Weight of the agents' entropy, which the rule is rewarded for.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the predictions' entropy.
    #[schemars(range(min = 0.0))]
    pub prediction_entropy_cost: Number,
    /// Weight of the squares of the policy's targets.
    #[schemars(range(min = 0.0))]
    pub policy_target_cost: Number,
    /// Weight of the squares of the predictions' targets.
    #[schemars(range(min = 0.0))]
    pub prediction_target_cost: Number,
    /// Learning rate of the values in the rule's loss.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub value_learning_rate: Number,
    /// True to store only the result of an update for the backward pass, and to recompute the rest:
    /// less memory, more time.
    pub checkpoint: bool,
    /// Networks of the values in the rule's loss, for observations that are not integers.
    #[serde(flatten)]
    pub value_networks: Networks,
}

impl Default for MetaSettings {
    fn default() -> Self {
        MetaSettings {
            rule: LpgShape::default(),
            inner_updates: 5,
            lifetime: [250, 2500],
            bandit: BanditSettings::default(),
            discount: 0.99.into(),
            lambda: 0.95.into(),
            entropy_cost: 0.05.into(),
            prediction_entropy_cost: 1e-3.into(),
            policy_target_cost: 5e-3.into(),
            prediction_target_cost: 1e-3.into(),
            value_learning_rate: 1e-3.into(),
            checkpoint: true,
            value_networks: Networks::default(),
        }
    }
}

/// The rule's side of a training, equal on all devices.
#[derive(Tree, Clone)]
pub struct MetaState<S: Tree> {
    /// The rule, with its optimizer's state.
    pub rule: Optimized<LpgRule, S>,
    /// Statistics of the factors of learning rates.
    pub arms: Arms,
    /// Number of updates of the rule so far. i32 `[]`
    pub iteration: Tensor,
}

/// An agent, from the start of its life to its end.
#[derive(Tree, Clone)]
pub struct Life<D: Tree, S: Tree, V: Tree> {
    /// The task of the life.
    pub task: D,
    /// The agent in its environments.
    pub state: S,
    /// Values of the task for the rule's loss, which the agent does not know.
    pub value: V,
    /// The factor of the agent's learning rates, by its index. i32 `[]`
    pub arm: Tensor,
    /// Number of updates left. i32 `[]`
    pub left: Tensor,
    /// The key of later lives.
    pub key: Key,
}

/// Metrics of an update of the rule, means over the agents. f32 `[]`
#[derive(Tree, Clone, Copy)]
pub struct LifeMetrics {
    /// The loss of the rule.
    pub meta_loss: Tensor,
    /// The agents' policy gradient, as a part of the loss.
    pub policy_loss: Tensor,
    /// Half of the squared error of the values.
    pub value_loss: Tensor,
    /// The agents' entropy, in nats.
    pub entropy: Tensor,
    /// The predictions' entropy, in nats.
    pub prediction_entropy: Tensor,
    /// The agents' reward per step.
    pub reward: Tensor,
    /// Share of agents that reached the end of their life.
    pub done: Tensor,
}

/// Values in a rule's loss, with the state of their optimizer.
pub type ValueState = Optimized<Predictor, <Adam as Optimizer>::State<Predictor>>;
type LifeIn<D, E, O> = Life<D, LoopState<E, LearnedAgent<O>>, ValueState>;
type Lived<D, E, O> = (LifeIn<D, E, O>, LifeMetrics, Episodes);
type TrainingFor<D, E, O, R> = Placed<MetaState<<R as Optimizer>::State<LpgRule>>, LifeIn<D, E, O>>;

/// Training of a rule over agents of many tasks.
///
/// In an iteration each agent makes some updates by the rule and then acts once more. The policy
/// gradient of this last rollout is the rule's loss, and its gradient flows back through the
/// updates.
#[derive(Clone)]
pub struct MetaTraining<Draw, Make, R> {
    draw: Draw,
    make: Make,
    optimizer: R,
    /// Agents of one device.
    agents: usize,
    axes: Axes,
    settings: MetaSettings,
}

impl<Draw, Make, R: Optimizer> MetaTraining<Draw, Make, R> {
    /// A training with `agents` agents on each of `devices` devices. `draw` draws a task. `make`
    /// makes the loop of an agent in the task that learns by a rule, with a factor of its learning
    /// rates; its lanes are all on the agent's device ([`AgentLoop::spread`] over [`Axes::none`]).
    /// `optimizer` updates the rule.
    pub fn new(
        draw: Draw,
        make: Make,
        optimizer: R,
        (agents, devices): (usize, usize),
        settings: MetaSettings,
    ) -> Self {
        MetaTraining { draw, make, optimizer, agents, axes: Axes::replicas(devices), settings }
    }
}

impl<D, E, O, Draw, Make, R> MetaTraining<Draw, Make, R>
where
    D: Tree,
    E: Environment<Observation = Tensor>,
    O: Optimizer,
    R: Optimizer,
    Draw: Fn(Key) -> D,
    Make: Fn(D, LpgRule, Number) -> AgentLoop<E, LearnedAgent<O>>,
{
    /// The initial state of the training, with an untrained rule.
    #[track_caller]
    pub fn init(&self, key: Key) -> TrainingFor<D, E, O, R> {
        let (rule_key, lives_key) = key.split();
        self.init_with(LpgRule::init(rule_key, &self.settings.rule), lives_key)
    }

    /// The initial state of the training, with this rule.
    #[track_caller]
    pub fn init_with(&self, rule: LpgRule, key: Key) -> TrainingFor<D, E, O, R> {
        let indices = arange(self.agents) + self.axes.index() * self.agents as i32;
        let arms = self.settings.bandit.arms();
        let lives = vmap((indices, whole(key)), |(index, key): (Tensor, Key)| {
            self.begin(key.fold_in(index), &rule, &arms)
        });
        let rule = Optimized::new(&self.optimizer, rule);
        Placed { replicated: MetaState { rule, arms, iteration: scalar(0) }, sharded: lives }
    }

    /// The loop of an agent in a task, with the learning-rate factor of an arm.
    fn agent_loop(&self, task: &D, rule: &LpgRule, arm: Tensor) -> AgentLoop<E, LearnedAgent<O>> {
        let factor = self.settings.bandit.factor(arm);
        (self.make)(task.clone(), rule.clone(), factor.into())
    }

    /// The life of a new agent.
    fn begin(&self, key: Key, rule: &LpgRule, arms: &Arms) -> LifeIn<D, E, O> {
        let [task_key, agent_key, value_key, life_key, key] = key.split_into();
        let task = (self.draw)(task_key);
        let arm = self.settings.bandit.choose(arms, life_key.fold_in(0));
        let agent_loop = self.agent_loop(&task, rule, arm);
        let observation = &agent_loop.agent().observation;
        let networks = &self.settings.value_networks;
        let value = Predictor::init(value_key, observation, networks, 1);
        let [least, most] = self.settings.lifetime;
        let (least, most) = (least as f64, most as f64);
        let left = (life_key.uniform([]) * (most / least).ln() + least.ln()).exp();
        Life {
            state: agent_loop.init(agent_key),
            task,
            value: Optimized::new(&adam(self.settings.value_learning_rate), value),
            arm,
            left: left.round().astype(I32),
            key,
        }
    }

    /// One update of the rule.
    #[track_caller]
    pub fn iterate(
        &self,
        state: TrainingFor<D, E, O, R>,
    ) -> (TrainingFor<D, E, O, R>, Placed<LifeMetrics, Episodes>) {
        let Placed { replicated: MetaState { rule, arms, iteration }, sharded: lives } = state;
        let (rule, (lives, metrics, episodes)) =
            rule.gradient_step(&self.optimizer, &self.axes, |rule| {
                let (losses, lived) = vmap(lives, |life| self.live(&rule, life));
                (losses.mean(), lived)
            });
        let arms = arms.after(lives.left.le(0), lives.arm, metrics.reward, &self.axes);
        let lives = vmap(lives, |life: LifeIn<D, E, O>| {
            let (key, next) = life.key.split();
            let over = life.left.le(0);
            let life = Life { key: next, ..life };
            tree_select(over, &self.begin(key, &rule.params, &arms), &life)
        });
        let metrics = tree_map(&metrics, |all| self.axes.mean(all.mean()));
        let episodes = tree_map(&episodes, |all| all.sum().reshape([1]));
        let state = MetaState { rule, arms, iteration: next_count(iteration) };
        (
            Placed { replicated: state, sharded: lives },
            Placed { replicated: metrics, sharded: episodes },
        )
    }

    /// Makes some updates of an agent, and returns the rule's loss for the agent's next rollout.
    /// f32 `[]`
    #[track_caller]
    fn live(&self, rule: &LpgRule, life: LifeIn<D, E, O>) -> (Tensor, Lived<D, E, O>) {
        let MetaSettings { inner_updates, checkpoint: again, .. } = self.settings;
        let agent_loop = self.agent_loop(&life.task, rule, life.arm);
        let (state, (metrics, first)) = scan(life.state, 0..inner_updates, |state, _| {
            let update = |state| {
                let (state, Placed { replicated, sharded }) = agent_loop.iterate(state);
                (state, (replicated, sharded))
            };
            if again { checkpoint(Save::Nothing, state, update) } else { update(state) }
        });
        let (rollout, state, last) = agent_loop.act(state);
        let (value, advantage, value_loss) = self.judge(life.value, &rollout);
        let agent = agent_loop.agent();
        let policy = agent.policy_of(&agent.params(&state.replicated.agent), &rollout);
        let log_prob = policy.log_prob(rollout.action);
        let policy_loss = -(log_prob * advantage).mean();
        let metrics = tree_map(&metrics, |updates| updates.mean());
        let settings = &self.settings;
        let meta_loss = policy_loss
            - settings.entropy_cost * metrics.entropy
            - settings.prediction_entropy_cost * metrics.prediction_entropy
            + settings.policy_target_cost * metrics.policy_target_square
            + settings.prediction_target_cost * metrics.prediction_target_square;
        let left = life.left - inner_updates as i32;
        let of_life = LifeMetrics {
            meta_loss,
            policy_loss,
            value_loss,
            entropy: metrics.entropy,
            prediction_entropy: metrics.prediction_entropy,
            reward: rollout.reward.mean(),
            done: left.le(0).astype(F32),
        };
        let episodes = first.zip_with(&last, |first, last| first.sum_axis(0) + last);
        // The next update of the rule differentiates through later updates of the agent, not
        // through these.
        let lived = Life { state, value, left, ..life };
        (meta_loss, stop_gradient((lived, of_life, episodes)))
    }

    /// Updates the values with a rollout, and returns the advantages of its actions, with mean 0
    /// and standard deviation 1. f32 `[T, N]`
    fn judge<M: Tree, X: Tree>(
        &self,
        value: ValueState,
        rollout: &RolloutOf<Tensor, M, X>,
    ) -> (ValueState, Tensor, Tensor) {
        let &MetaSettings { discount, lambda, value_learning_rate, .. } = &self.settings;
        let values = |net: &Predictor, seen: Tensor| net.apply_all(seen).squeeze(-1);
        let before = values(&value.params, rollout.input.observation);
        let value_after = |((), input): ((), Input)| value.params.apply(input.observation).index(0);
        let advantage =
            stop_gradient(rollout.advantages(before, (), value_after, discount, lambda));
        let target = stop_gradient(before) + advantage;
        let optimizer = adam(value_learning_rate);
        let (value, loss) = value.gradient_step(&optimizer, &Axes::none(), |params| {
            let error = values(&params, rollout.input.observation) - target;
            let loss = 0.5 * error.square().mean();
            (loss, loss)
        });
        let centred = advantage - advantage.mean();
        let scaled = centred / (centred.square().mean().sqrt() + 1e-8);
        (value, scaled, loss)
    }
}
