//! Agents that learn by a learned update rule.

use crate::Number;
use crate::distributions::{Categorical, Distribution};
use crate::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Optimized, Rollout, RolloutOf, Staleness,
    View, of_legal, step_weights, weighted,
};
use crate::meta::{LpgRule, Rule, Seen, Targets};
use crate::net::{Networks, TorsoNet};
use crate::nn::{Embedding, Initializer, Mlp};
use crate::optim::{Chain, ClipByGlobalNorm, Optimizer, Sgd, chain, clip_by_global_norm, sgd};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// A function from observations to a vector of numbers.
#[derive(Tree, Clone)]
pub enum Predictor {
    /// A table with a row per observation, for observations that are integers: f32 `[n, outputs]`,
    /// zeros at first.
    Table {
        /// Outputs by observation.
        table: Embedding,
    },
    /// A network, for all other observations.
    Network {
        /// Observation to features.
        torso: TorsoNet,
        /// Features to the outputs.
        layers: Mlp,
    },
}

impl Predictor {
    /// A new predictor: a table for observations that are integers, and otherwise a network with
    /// the hidden layers of `networks`. Weights are drawn as flax draws them.
    #[track_caller]
    pub fn init(key: Key, observation: &Space, networks: &Networks, outputs: usize) -> Predictor {
        if let Space::Discrete { n, .. } = observation {
            return Predictor::Table { table: Embedding { weight: zeros(F32, [*n, outputs]) } };
        }
        let weights = Initializer::lecun_normal();
        let (torso_key, layers_key) = key.split();
        let (torso, features) = TorsoNet::init(torso_key, observation, networks, weights);
        let sizes = [&[features], &networks.hidden[..], &[outputs]].concat();
        let layers = Mlp::init(layers_key, &sizes, networks.activation, weights, weights);
        Predictor::Network { torso, layers }
    }

    /// The outputs for an observation. f32 `[outputs]`
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> Tensor {
        match self {
            Predictor::Table { table } => table.apply(observation),
            Predictor::Network { torso, layers } => layers.apply(torso.apply(observation)),
        }
    }

    /// The outputs for observations `[T, N, ..]`. f32 `[T, N, outputs]`
    #[track_caller]
    pub fn apply_all(&self, observations: Tensor) -> Tensor {
        match self {
            Predictor::Table { table } => table.apply(observations),
            Predictor::Network { .. } => {
                vmap(observations, |lanes| vmap(lanes, |observation| self.apply(observation)))
            }
        }
    }
}

/// An agent for discrete actions that learns by a [`Rule`] (LPG of Oh et al. 2020), which gives the
/// targets of its policy and its predictions.
#[derive(Clone)]
pub struct LearnedAgent<O> {
    /// Space of the observations.
    pub observation: Space,
    /// Number of the actions.
    pub actions: usize,
    /// Networks of policy and predictions, for observations that are not integers.
    pub networks: Networks,
    /// The rule. If the rule is trained, the gradient flows through it.
    pub rule: Rule<LpgRule>,
    /// Optimizer of the policy.
    pub policy_optimizer: O,
    /// Optimizer of the predictions.
    pub prediction_optimizer: O,
    /// Weight of the predictions' loss, 0.5 in the paper.
    pub prediction_cost: Number,
}

/// State of a [`LearnedAgent`] with the optimizer `O`.
#[derive(Tree, Clone)]
pub struct LearnedState<S: Tree> {
    /// The policy: observation to the logits of the actions.
    pub policy: Optimized<Predictor, S>,
    /// The predictions: observation to their logits.
    pub prediction: Optimized<Predictor, S>,
}

/// Metrics of an iteration: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct LearnedMetrics {
    /// The policy's loss plus the weighted loss of the predictions.
    pub loss: Tensor,
    /// The divergence of the predictions from their targets, in nats.
    pub prediction_loss: Tensor,
    /// The policy's entropy, in nats, after the update.
    pub entropy: Tensor,
    /// The predictions' entropy, in nats, after the update.
    pub prediction_entropy: Tensor,
    /// The mean square of the policy's targets.
    pub policy_target_square: Tensor,
    /// The mean sum of squares of the predictions' targets.
    pub prediction_target_square: Tensor,
}

impl LearnedAgent<Chain<ClipByGlobalNorm, Sgd>> {
    /// The agent with tables, for observations that are integers. Gradients have a norm of at most
    /// 0.5; the learning rates are 40 for the policy and 4 for the predictions, as in Jackson et
    /// al. 2023.
    pub fn tabular(observation: Space, actions: usize, rule: Rule<LpgRule>) -> Self {
        let descent = |rate: f64| chain(clip_by_global_norm(0.5), sgd(rate));
        LearnedAgent {
            observation,
            actions,
            networks: Networks::default(),
            rule,
            policy_optimizer: descent(40.0),
            prediction_optimizer: descent(4.0),
            prediction_cost: 0.5.into(),
        }
    }
}

impl<O: Optimizer> LearnedAgent<O> {
    /// The targets that the rule computes for a rollout, `[T, N, ..]`, with the agent's present
    /// state.
    #[track_caller]
    pub fn targets<M: Tree, X: Tree>(
        &self,
        state: &LearnedState<O::State<Predictor>>,
        rollout: &RolloutOf<Tensor, M, X>,
    ) -> Targets {
        let _scope = scope("LearnedAgent::targets");
        let observations = rollout.input.observation;
        let policy = self.policy_of(&state.policy.params, rollout);
        let prediction =
            |observations: Tensor| state.prediction.params.apply_all(observations).softmax(-1);
        let rule = self.rule.tensors();
        let lanes = Seen {
            reward: rollout.reward,
            done: rollout.done(),
            probability: policy.log_prob(rollout.action).exp(),
            prediction: prediction(observations),
            prediction_after: prediction(rollout.observations_after()),
        };
        let targets =
            vmap(tree_map(&lanes, |leaf| leaf.swap_axes(0, 1)), |seen| rule.targets(seen));
        tree_map(&targets, |leaf| leaf.swap_axes(0, 1))
    }

    /// The policy at each step of a rollout.
    #[track_caller]
    pub(crate) fn policy_of<M: Tree, X: Tree>(
        &self,
        policy: &Predictor,
        rollout: &RolloutOf<Tensor, M, X>,
    ) -> Categorical {
        let logits = policy.apply_all(rollout.input.observation);
        Categorical::new(of_legal(logits, rollout.input.legal_actions))
    }
}

impl<O: Optimizer> Agent for LearnedAgent<O> {
    type Observation = Tensor;
    type Params = Predictor;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    fn act(&self, policy: &Predictor, (): (), input: Input, mode: Mode, key: Key) -> Act<(), ()> {
        let logits = stop_gradient(policy.apply(input.observation));
        let policy = Categorical::new(of_legal(logits, input.legal_actions));
        let action = match mode {
            Mode::Explore => policy.sample(key),
            Mode::Greedy => policy.mode(),
        };
        Act { action, memory: (), extras: () }
    }

    fn view(&self, policy: &Predictor, (): (), input: Input, _: Mode, _: Key) -> View {
        View::of_logits(policy.apply(input.observation), input.legal_actions)
    }
}

impl<O: Optimizer> Learn for LearnedAgent<O> {
    type State = LearnedState<O::State<Predictor>>;
    type Store = ();
    type Metrics = LearnedMetrics;

    fn init(&self, key: Key) -> Self::State {
        let keys = key.split_n(2);
        let predictor = |i: usize, outputs: usize| {
            Predictor::init(keys.at(i), &self.observation, &self.networks, outputs)
        };
        let predictions = self.rule.shape().predictions;
        LearnedState {
            policy: Optimized::new(&self.policy_optimizer, predictor(0, self.actions)),
            prediction: Optimized::new(&self.prediction_optimizer, predictor(1, predictions)),
        }
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> Predictor {
        state.policy.params.clone()
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), LearnedMetrics) {
        // Outside both gradients, which treat the targets as constants.
        let targets = self.targets(&state, &rollout);
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, &cx));
        let mean = |numbers| weighted(numbers, weights).mean();
        let (policy, policy_loss) =
            state.policy.gradient_step(&self.policy_optimizer, &cx, |params| {
                let log_prob = self.policy_of(&params, &rollout).log_prob(rollout.action);
                let loss = -mean(log_prob * targets.policy);
                (loss, loss)
            });
        let (prediction, prediction_loss) =
            state.prediction.gradient_step(&self.prediction_optimizer, &cx, |params| {
                let log_probs = params.apply_all(rollout.input.observation).log_softmax(-1);
                let to = targets.prediction.maximum(1e-8).log();
                let loss = mean((log_probs.exp() * (log_probs - to)).sum_axis(-1));
                (self.prediction_cost * loss, loss)
            });
        let predicted = prediction.params.apply_all(rollout.input.observation);
        let metrics = LearnedMetrics {
            loss: policy_loss + self.prediction_cost * prediction_loss,
            prediction_loss,
            entropy: mean(self.policy_of(&policy.params, &rollout).entropy()),
            prediction_entropy: mean(Categorical::new(predicted).entropy()),
            policy_target_square: mean(targets.policy.square()),
            prediction_target_square: mean(targets.prediction.square().sum_axis(-1)),
        };
        (LearnedState { policy, prediction }, (), cx.mean(metrics))
    }

    fn staleness(&self) -> Staleness {
        Staleness::Tolerated
    }
}
