//! Proximal policy optimization (Schulman et al. 2017, equations 7 and 9), with the clipped value loss and the
//! normalised advantages of its reference implementation.

use super::{ActorCritic, Agent, Learning, Torso, Trajectory, step_weights, weighted};
use crate::losses::{clipped_surrogate_pg_loss, clipped_value_loss};
use crate::nn::Initializer;
use crate::optim::{
    Adam, Chain, ClipByGlobalNorm, Flatten, Optimizer, adam, chain, clip_by_global_norm, flatten,
};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The agent and its hyper-parameters.
#[derive(Clone, Debug)]
pub struct Ppo<O: Optimizer = Flatten<Chain<ClipByGlobalNorm, Adam>>> {
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
    /// Passes over each batch.
    pub epochs: usize,
    /// Minibatches of each pass; they divide the batch.
    pub minibatches: usize,
    /// The discount of future rewards.
    pub discount: f64,
    /// The lambda of generalized advantage estimation.
    pub lambda: f64,
    /// How far the probability ratio and the value may move.
    pub clip: f64,
    /// The weight of the entropy bonus.
    pub entropy_cost: f64,
    /// The weight of the value loss.
    pub value_cost: f64,
    /// Whether minibatches are drawn by an exactly uniform permutation, which sorts, in place of a Feistel bijection.
    pub exact_shuffle: bool,
}

impl Ppo {
    /// PPO for these spaces, with the hyper-parameters that CleanRL and PureJaxRL use for CartPole.
    pub fn new(observation: Space, action: Space) -> Ppo {
        Ppo {
            observation,
            action,
            torso: Torso::None,
            hidden: vec![64, 64],
            optimizer: flatten(chain(clip_by_global_norm(0.5), adam(2.5e-4).eps(1e-5))),
            epochs: 4,
            minibatches: 4,
            discount: 0.99,
            lambda: 0.95,
            clip: 0.2,
            entropy_cost: 0.01,
            value_cost: 0.5,
            exact_shuffle: false,
        }
    }
}

/// What [`Ppo`] keeps of an action.
#[derive(Tree, Clone, Copy)]
pub struct PpoOutput {
    /// The logarithm of its probability when it was drawn. f32 `[]`
    pub log_prob: Tensor,
    /// The value of the observation then. f32 `[]`
    pub value: Tensor,
}

/// What the updates of a cycle read; `B = T N` steps in the order of the trajectory, `U` updates of `M` steps each.
#[derive(Tree, Clone)]
pub struct PpoBatch {
    /// f32 `[B, ...]`
    pub observation: Tensor,
    /// `[B, ...]`
    pub action: Tensor,
    /// Which steps each update takes. i32 `[U, M]`
    pub minibatch: Tensor,
    /// Log probability, value and advantage of each of them. f32 `[U, M, 3]`
    pub drawn: Tensor,
    /// The mean advantage of each minibatch, over all devices. f32 `[U]`
    pub advantage_mean: Tensor,
    /// Its standard deviation. f32 `[U]`
    pub advantage_std: Tensor,
    /// What each step of a minibatch counts for, f32 `[U, M]`; none where all count alike.
    pub weights: Vec<Tensor>,
}

/// Means over a minibatch.
#[derive(Tree, Clone, Copy)]
pub struct PpoMetrics {
    /// The sum of the three.
    pub loss: Tensor,
    /// The clipped surrogate objective, negated.
    pub policy_loss: Tensor,
    /// Half of the clipped squared error.
    pub value_loss: Tensor,
    /// In nats.
    pub entropy: Tensor,
    /// An estimate of the divergence from the policy that acted: mean of (ratio - 1) - log ratio.
    pub approximate_kl: Tensor,
}

/// Of what each step adds, f32 `[B]`: one reduction, and not one for each.
fn means(steps: &PpoMetrics) -> PpoMetrics {
    let means = stop_gradient(stack(&steps.leaves(), 0)).mean_axis(1);
    steps.with_leaves(&means.unstack())
}

impl<O: Optimizer> Agent for Ppo<O> {
    type Observation = Tensor;
    type Actor = ();
    type Nets = ActorCritic;
    type Opt = O::State<ActorCritic>;
    type Experience = ();
    type Output = PpoOutput;
    type Batch = PpoBatch;
    type Metrics = PpoMetrics;

    fn init_nets(&self, key: Key) -> ActorCritic {
        ActorCritic::init(
            key,
            &self.observation,
            &self.action,
            &self.torso,
            Initializer::orthogonal(2f64.sqrt()),
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
    ) -> (Tensor, (), PpoOutput) {
        let features = nets.features(observation);
        let policy = nets.policy(features);
        let action = policy.sample(key);
        (
            action,
            (),
            PpoOutput {
                log_prob: policy.log_prob(action),
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
        trajectory: Trajectory<Tensor, PpoOutput>,
        key: Key,
    ) -> ((), PpoBatch) {
        let _scope = scope("Ppo::update_experience");
        let values =
            |observations: Tensor| vmap(observations, |seen| nets.value(nets.features(seen)));
        let PpoOutput { log_prob, value } = trajectory.output;
        let advantage = trajectory.advantages(value, values, self.discount, self.lambda);

        let merge = |x: Tensor| {
            let shape = x.shape();
            x.reshape([&[shape[0] * shape[1]], &shape[2..]].concat())
        };
        let advantage = merge(advantage);
        let steps = advantage.dim(0);
        let updates = self.epochs * self.minibatches;
        // Each device shuffles its own steps. A loop again, or XLA would draw the key for each element of the permutation.
        let epochs = arange(self.epochs) + axis_index(Replicas) * self.epochs as i32;
        let keys = vmap((epochs, whole(key)), |(epoch, key)| key.fold_in(epoch));
        let permutations = map(keys, |key| {
            if self.exact_shuffle {
                key.permutation(steps)
            } else {
                key.feistel_permutation(steps)
            }
        });
        let minibatch = if steps.is_multiple_of(self.minibatches) {
            permutations.reshape([updates, steps / self.minibatches])
        } else {
            let message = format!(
                "a cycle's {steps} steps ({} steps of {} environments) do not divide into {} minibatches",
                value.dim(0),
                value.dim(1),
                self.minibatches
            );
            let guess = TensorType::new(I32, [updates, steps / self.minibatches.max(1)]);
            fail("Ppo", message, &[advantage], guess)
        };
        let steps = stack(&[merge(log_prob), merge(value), advantage], 1);
        let drawn = steps.take(minibatch, 0);
        let of_minibatches = |&skipped: &Tensor| {
            let count = !merge(skipped).take(minibatch, 0);
            vmap(count, step_weights)
        };
        let weights: Vec<Tensor> = trajectory.skipped.iter().map(of_minibatches).collect();
        // Each statistic of all minibatches passes one collective.
        let advantage = drawn.index_axis(2, 2);
        let mean = |numbers| pmean(weighted(numbers, &weights).mean_axis(1), Replicas);
        let advantage_mean = mean(advantage);
        let variance = (advantage - advantage_mean.expand_dims(1)).square();
        let advantage_std = mean(variance).sqrt();
        let batch = PpoBatch {
            observation: merge(trajectory.observation),
            action: merge(trajectory.action),
            minibatch,
            drawn,
            advantage_mean,
            advantage_std,
            weights,
        };
        ((), batch)
    }

    fn loss(&self, nets: ActorCritic, batch: &PpoBatch, update: Tensor) -> (Tensor, PpoMetrics) {
        let _scope = scope("Ppo::loss");
        let rows = batch.minibatch.at(update);
        let drawn = batch.drawn.at(update);
        let [log_prob, value_tm1, advantage] = [0, 1, 2].map(|i| drawn.index_axis(1, i));
        let target = value_tm1 + advantage;
        let advantage =
            (advantage - batch.advantage_mean.at(update)) / (batch.advantage_std.at(update) + 1e-8);
        let of = |x: Tensor| x.take(rows, 0);
        let weights = batch.weights.iter().map(|weights| weights.at(update));
        let weights: Vec<Tensor> = weights.collect();
        let acted = (of(batch.observation), of(batch.action), log_prob);
        let steps = vmap(
            (acted, advantage, value_tm1, target, weights.clone()),
            |((observation, action, log_prob), advantage, value_tm1, target, weight)| {
                let features = nets.features(observation);
                let policy = nets.policy(features);
                // Of a step that does not count the ratio may be infinite, and its slope times 0 no number.
                let log_ratio = weight
                    .iter()
                    .fold(policy.log_prob(action) - log_prob, |log_ratio, weight| {
                        select(weight.eq(0.0), 0.0, log_ratio)
                    });
                let ratio = log_ratio.exp();
                let policy_loss = clipped_surrogate_pg_loss(ratio, advantage, self.clip);
                let value = nets.value(features);
                let value_loss = clipped_value_loss(value, value_tm1, target, self.clip);
                let entropy = policy.entropy();
                PpoMetrics {
                    loss: policy_loss + self.value_cost * value_loss - self.entropy_cost * entropy,
                    policy_loss,
                    value_loss,
                    entropy,
                    approximate_kl: ratio - 1.0 - log_ratio,
                }
            },
        );
        let steps = tree_map(&steps, |term| weighted(term, &weights));
        (steps.loss.mean(), means(&steps))
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
        Learning::FromBatch {
            updates: self.epochs * self.minibatches,
        }
    }
}
