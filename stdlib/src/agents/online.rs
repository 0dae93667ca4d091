//! The online actor-critic of Podracer's minimal unit (Hessel et al. 2021, figure 2): agent and environment step, the
//! objective follows, and the gradient flows back through the whole loop, so that the update reuses the forward pass by
//! which the agent acted.

use super::{ActorCritic, Agent, Learning, Torso, Trajectory, step_weights, weighted};
use crate::nn::Initializer;
use crate::optim::{
    Adam, Chain, ClipByGlobalNorm, Flatten, Optimizer, adam, chain, clip_by_global_norm, flatten,
};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The agent and its hyper-parameters.
#[derive(Clone, Debug)]
pub struct OnlineActorCritic<O: Optimizer = Flatten<Chain<ClipByGlobalNorm, Adam>>> {
    /// What it observes.
    pub observation: Space,
    /// What it can do.
    pub action: Space,
    /// What sees the observations, for policy and value alike.
    pub torso: Torso,
    /// Units of each hidden layer after it, of policy and value alike.
    pub hidden: Vec<usize>,
    /// How gradients become updates.
    pub optimizer: O,
    /// The discount of future rewards.
    pub discount: f64,
    /// The lambda of the lambda return.
    pub lambda: f64,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
}

impl OnlineActorCritic {
    /// The agent for these spaces.
    pub fn new(observation: Space, action: Space) -> OnlineActorCritic {
        OnlineActorCritic {
            observation,
            action,
            torso: Torso::None,
            hidden: vec![64, 64],
            optimizer: flatten(chain(clip_by_global_norm(0.5), adam(1e-3).eps(1e-5))),
            discount: 0.99,
            lambda: 0.95,
            entropy_cost: 0.01,
            value_cost: 0.5,
        }
    }
}

/// What acting computes and the loss reads: the gradient flows through it.
#[derive(Tree, Clone, Copy)]
pub struct OnlineOutput {
    /// The logarithm of the action's probability. f32 `[]`
    pub log_prob: Tensor,
    /// The policy's entropy, in nats. f32 `[]`
    pub entropy: Tensor,
    /// The value of the observation. f32 `[]`
    pub value: Tensor,
}

/// What the loss reads, f32 `[T, N]`.
#[derive(Tree, Clone)]
pub struct OnlineBatch {
    /// What acting computed.
    pub output: OnlineOutput,
    /// Generalized advantages; no gradient flows through them.
    pub advantage: Tensor,
    /// What each step counts for; none where all count alike.
    pub weights: Vec<Tensor>,
}

/// Means over a cycle.
#[derive(Tree, Clone, Copy)]
pub struct OnlineMetrics {
    /// The sum of the three.
    pub loss: Tensor,
    /// The policy gradient's objective, negated.
    pub policy_loss: Tensor,
    /// Half of the squared error against the lambda return.
    pub value_loss: Tensor,
    /// In nats.
    pub entropy: Tensor,
}

impl<O: Optimizer> Agent for OnlineActorCritic<O> {
    type Observation = Tensor;
    type Actor = ();
    type Nets = ActorCritic;
    type Opt = O::State<ActorCritic>;
    type Experience = ();
    type Output = OnlineOutput;
    type Batch = OnlineBatch;
    type Metrics = OnlineMetrics;

    fn init_nets(&self, key: Key) -> ActorCritic {
        ActorCritic::init(
            key,
            &self.observation,
            &self.action,
            &self.torso,
            Initializer::lecun_normal(),
            None,
            &self.hidden,
        )
    }

    fn init_opt(&self, nets: &ActorCritic) -> Self::Opt {
        self.optimizer.init(nets)
    }

    fn init_actor(&self) {}

    fn init_experience(&self, _: usize) {}

    fn act(
        &self,
        nets: &ActorCritic,
        (): (),
        observation: Tensor,
        key: Key,
    ) -> (Tensor, (), OnlineOutput) {
        let features = nets.features(observation);
        let policy = nets.policy(features);
        // The score-function estimator: the gradient goes through the probability of the action, not through the draw.
        let action = stop_gradient(policy.sample(key));
        (
            action,
            (),
            OnlineOutput {
                log_prob: policy.log_prob(action),
                entropy: policy.entropy(),
                value: nets.value(features),
            },
        )
    }

    fn act_greedily(&self, nets: &ActorCritic, (): (), observation: Tensor) -> (Tensor, ()) {
        (nets.policy(nets.features(observation)).mode(), ())
    }

    fn update_experience(
        &self,
        nets: &ActorCritic,
        (): (),
        (): (),
        trajectory: Trajectory<Tensor, OnlineOutput>,
        _: Key,
    ) -> ((), OnlineBatch) {
        let _scope = scope("OnlineActorCritic::update_experience");
        let value_after = |((), seen)| stop_gradient(nets.value(nets.features(seen)));
        let value = stop_gradient(trajectory.output.value);
        let advantage = trajectory.advantages(value, (), value_after, self.discount, self.lambda);
        (
            (),
            OnlineBatch {
                output: trajectory.output,
                advantage: stop_gradient(advantage),
                weights: (trajectory.skipped.iter())
                    .map(|&skipped| step_weights(!skipped))
                    .collect(),
            },
        )
    }

    fn loss(&self, _: ActorCritic, batch: &OnlineBatch, _: Tensor) -> (Tensor, OnlineMetrics) {
        let _scope = scope("OnlineActorCritic::loss");
        let OnlineOutput { log_prob, entropy, value } = batch.output;
        let target = stop_gradient(value) + batch.advantage;
        let mean = |numbers| weighted(numbers, &batch.weights).mean();
        let policy_loss = -mean(log_prob * batch.advantage);
        let value_loss = 0.5 * mean((value - target).square());
        let entropy = mean(entropy);
        let loss = policy_loss + self.value_cost * value_loss - self.entropy_cost * entropy;
        (loss, OnlineMetrics { loss, policy_loss, value_loss, entropy })
    }

    fn optimize_from_grads(
        &self,
        nets: ActorCritic,
        opt: Self::Opt,
        grads: ActorCritic,
    ) -> (ActorCritic, Self::Opt) {
        self.optimizer.step(nets, opt, grads)
    }

    fn learning(&self) -> Learning {
        Learning::ThroughLoop
    }
}
