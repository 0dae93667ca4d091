//! IMPALA's V-trace actor-critic: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted
//! Actor-Learner Architectures", 2018. Acting may be some updates behind learning; importance weights correct for it.
//!
//! The loss is the paper's (section 4.2), **summed** over the steps of the whole batch, of all devices, as in its
//! published code, so that learning rates, costs and the norm that gradients are clipped to are those of the paper:
//!
//! ```text
//! sum_t(-log pi(a_t) A_t + value_cost (vs_t - v_t)^2 / 2 - entropy_cost entropy_t)
//! ```
//!
//! Unlike there, the recurrent core sees features of the observation alone, and not the last action and reward.

use super::network::no_memory;
use super::{
    ActorCritic, Agent, Learning, Memory, Torso, Trajectory, step_weights, steps_that_count,
    weighted,
};
use crate::nn::Initializer;
use crate::optim::{Chain, ClipByGlobalNorm, Flatten, Optimizer, RmsProp};
use crate::optim::{chain, clip_by_global_norm, flatten, rmsprop};
use crate::returns::{Vtrace, VtraceOutput};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The agent and its hyper-parameters.
#[derive(Clone, Debug)]
pub struct Impala<O: Optimizer = Flatten<Chain<ClipByGlobalNorm, RmsProp>>> {
    /// What it observes.
    pub observation: Space,
    /// What it can do.
    pub action: Space,
    /// What sees the observations, for policy and value alike.
    pub torso: Torso,
    /// Units of the recurrent core after it; none for a network that remembers nothing.
    pub lstm: Option<usize>,
    /// Units of each hidden layer after that, of policy and value alike.
    pub hidden: Vec<usize>,
    /// How gradients become updates.
    pub optimizer: O,
    /// The discount of future rewards.
    pub discount: f64,
    /// Targets and advantages.
    pub vtrace: Vtrace,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
    /// Whether what is learnt from is rewards clipped to [-1, 1].
    pub clip_rewards: bool,
}

impl Impala {
    /// The agent for these spaces, with the paper's hyper-parameters for Atari (table G.1) and two hidden layers. An image
    /// wants a torso.
    pub fn new(observation: Space, action: Space) -> Impala {
        let optimizer = rmsprop(6e-4).decay(0.99).eps(0.01);
        Impala {
            observation,
            action,
            torso: Torso::None,
            lstm: None,
            hidden: vec![64, 64],
            optimizer: flatten(chain(clip_by_global_norm(40.0), optimizer)),
            discount: 0.99,
            vtrace: Vtrace::default(),
            entropy_cost: 0.01,
            value_cost: 0.5,
            clip_rewards: false,
        }
    }
}

/// What the loss reads.
#[derive(Tree, Clone)]
pub struct ImpalaBatch {
    /// The memory at the trajectory's start. `[N, ..]`
    pub memory: Memory,
    /// The trajectory; acting left the logarithm of the action's probability, f32 `[T, N]`.
    pub trajectory: Trajectory<Tensor, Tensor>,
    /// Steps of the batch that count, of all devices. f32 `[]`
    pub steps: Tensor,
    /// What each counts for, f32 `[T, N]`; none where all count alike.
    pub weights: Vec<Tensor>,
}

/// Means over the steps of a batch.
#[derive(Tree, Clone, Copy)]
pub struct ImpalaMetrics {
    /// The weighted sum of the three.
    pub loss: Tensor,
    /// The policy gradient's objective, negated.
    pub policy_loss: Tensor,
    /// Half of the squared error against the V-trace target.
    pub value_loss: Tensor,
    /// In nats.
    pub entropy: Tensor,
    /// How much likelier the policy that learns takes the actions than the one that acted: 1 where they are the same.
    pub importance: Tensor,
}

/// The steps of one environment's trajectory, `[T, ..]`, with features in place of observations.
#[derive(Tree, Clone)]
struct Steps {
    features: Tensor,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    next_features: Vec<Tensor>,
    /// Of the policy that acted.
    log_prob: Tensor,
}

/// What each step adds to the loss, f32 `[T]`.
#[derive(Tree, Clone, Copy)]
struct Terms {
    policy_loss: Tensor,
    value_loss: Tensor,
    entropy: Tensor,
    importance: Tensor,
}

impl<O: Optimizer> Impala<O> {
    /// Goes through one environment's trajectory as acting went; `last` are the features of its last observation.
    fn terms(&self, nets: &ActorCritic, memory: Memory, steps: Steps, last: Tensor) -> Terms {
        let ended = steps.terminated | steps.truncated;
        // Who acted has begun the memory anew already where the first step begins an episode.
        let begins = concatenate(&[scalar(false).expand_dims(0), ended.slice(..-1)], 0);
        let (memories, features) = nets.remember_all(memory, steps.features, begins);
        let (log_prob, entropy, v_tm1) = vmap((features, steps.action), |(features, action)| {
            let policy = nets.policy(features);
            (policy.log_prob(action), policy.entropy(), nets.value(features))
        });
        let value_after = |(memory, features)| nets.value(nets.remember(memory, features).1);
        // What follows the last step counts if no episode ended there: the memory goes on.
        let memory = tree_map(&memories, |leaf| leaf.index(-1));
        let v_last = value_after((memory, last)).expand_dims(0);
        let v_next = concatenate(&[v_tm1.slice(1..), v_last], 0);
        // Where an episode was cut off, it is the value of its own last observation.
        let v_t = match steps.next_features.first() {
            Some(&next) => select(steps.truncated, vmap((memories, next), value_after), v_next),
            None => v_next,
        };
        let reward = if self.clip_rewards { steps.reward.clamp(-1.0, 1.0) } else { steps.reward };
        let discount_t = select(steps.terminated, 0.0, reward.full_like(self.discount));
        let rho_tm1 = stop_gradient((log_prob - steps.log_prob).exp());
        let VtraceOutput { errors, pg_advantage, .. } =
            self.vtrace.apply(v_tm1, stop_gradient(v_t), reward, discount_t, rho_tm1, ended);
        Terms {
            policy_loss: -log_prob * stop_gradient(pg_advantage),
            value_loss: 0.5 * errors.square(),
            entropy,
            importance: rho_tm1,
        }
    }
}

impl<O: Optimizer> Agent for Impala<O> {
    type Observation = Tensor;
    type Actor = Memory;
    type Nets = ActorCritic;
    type Opt = O::State<ActorCritic>;
    type Experience = ();
    type Output = Tensor;
    type Batch = ImpalaBatch;
    type Metrics = ImpalaMetrics;

    fn init_nets(&self, key: Key) -> ActorCritic {
        ActorCritic::init(
            key,
            &self.observation,
            &self.action,
            &self.torso,
            Initializer::lecun_normal(),
            self.lstm,
            &self.hidden,
        )
    }

    fn init_opt(&self, nets: &ActorCritic) -> Self::Opt {
        self.optimizer.init(nets)
    }

    fn init_actor(&self) -> Memory {
        no_memory(self.lstm)
    }

    fn init_experience(&self, _: usize) {}

    fn act(
        &self,
        nets: &ActorCritic,
        memory: Memory,
        observation: Tensor,
        key: Key,
    ) -> (Tensor, Memory, Tensor) {
        let (memory, features) = nets.see(memory, observation);
        let policy = nets.policy(features);
        let action = policy.sample(key);
        (action, memory, policy.log_prob(action))
    }

    fn act_greedily(
        &self,
        nets: &ActorCritic,
        memory: Memory,
        observation: Tensor,
    ) -> (Tensor, Memory) {
        let (memory, features) = nets.see(memory, observation);
        (nets.policy(features).mode(), memory)
    }

    fn update_experience(
        &self,
        _: &ActorCritic,
        (): (),
        memory: Memory,
        trajectory: Trajectory<Tensor, Tensor>,
        _: Key,
    ) -> ((), ImpalaBatch) {
        let skipped = trajectory.skipped.iter();
        let weights = skipped.map(|&skipped| step_weights(!skipped)).collect();
        let steps = steps_that_count(&trajectory.skipped, trajectory.reward.elements());
        let batch = ImpalaBatch { memory, trajectory, steps: psum(steps, Replicas), weights };
        ((), batch)
    }

    fn loss(&self, nets: ActorCritic, batch: &ImpalaBatch, _: Tensor) -> (Tensor, ImpalaMetrics) {
        let _scope = scope("Impala::loss");
        let trajectory = &batch.trajectory;
        let see = |observations: Tensor| vmap(observations, |seen| nets.features(seen));
        let see_all = |observations: Tensor| vmap(observations, see);
        let next = trajectory.next_observation.iter();
        let steps = Steps {
            features: see_all(trajectory.observation),
            action: trajectory.action,
            reward: trajectory.reward,
            terminated: trajectory.terminated,
            truncated: trajectory.truncated,
            next_features: next.map(|&next| see_all(next)).collect(),
            log_prob: trajectory.output,
        };
        let last = see(trajectory.last_observation);
        let terms = vmap((batch.memory.clone(), axis(steps, 1), last), |(memory, steps, last)| {
            self.terms(&nets, memory, steps, last)
        });
        let weights = batch.weights.iter().map(|weights| weights.swap_axes(0, 1));
        let weights: Vec<Tensor> = weights.collect();
        let Terms { policy_loss, value_loss, entropy, importance } =
            tree_map(&terms, |term| weighted(term, &weights).mean());
        let loss = policy_loss + self.value_cost * value_loss - self.entropy_cost * entropy;
        let metrics = ImpalaMetrics { loss, policy_loss, value_loss, entropy, importance };
        // The gradient is averaged over devices: that of a mean times all steps is the sum's.
        (batch.steps * loss, metrics)
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
        Learning::FromBatch { updates: 1 }
    }
}
