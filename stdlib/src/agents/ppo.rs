//! Proximal policy optimization (Schulman et al. 2017, equations 7 and 9), with the clipped value loss and the
//! normalised advantages of its reference implementation.
//!
//! With a recurrent core a minibatch is of whole trajectories, each gone through from the memory that acting had at its
//! start, as in CleanRL's `ppo_atari_lstm` and PureJaxRL's `ppo_rnn`: which environments it takes is drawn, not which steps.

use super::network::no_memory;
use super::{ActorCritic, Agent, Learning, Memory, Torso, Trajectory, step_weights, weighted};
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
    /// Units of the recurrent core after it; none for a network that remembers nothing.
    pub lstm: Option<usize>,
    /// Units of each hidden layer after that, of policy and value alike.
    pub hidden: Vec<usize>,
    /// How gradients become updates.
    pub optimizer: O,
    /// Passes over each batch.
    pub epochs: usize,
    /// Minibatches of each pass; they divide the steps of a batch, and with a core its environments.
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
            lstm: None,
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
#[derive(Tree, Clone)]
pub struct PpoOutput {
    /// The logarithm of its probability when it was drawn. f32 `[]`
    pub log_prob: Tensor,
    /// The value of the observation then. f32 `[]`
    pub value: Tensor,
    /// What is remembered after it.
    pub memory: Memory,
}

/// What the updates of a cycle read; `B = T N` steps in the order of the trajectory, `U` updates of `M` steps each. With a
/// core what is drawn is not a step of `B` but an environment of `N`, with the `T` steps of its trajectory.
#[derive(Tree, Clone)]
pub struct PpoBatch {
    /// f32 `[B, ...]`, or `[N, T, ...]`
    pub observation: Tensor,
    /// `[B, ...]`, or `[N, T, ...]`
    pub action: Tensor,
    /// The memory at the trajectory's start. `[N, ..]`
    pub memory: Memory,
    /// Whether a step begins an episode, bool `[N, T]`; none without a core.
    pub begins: Vec<Tensor>,
    /// Which steps each update takes, i32 `[U, M]`, or which environments, `[U, M / T]`.
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

/// The first two axes as one.
#[track_caller]
fn merged(x: Tensor) -> Tensor {
    let shape = x.shape();
    x.reshape([&[shape[0] * shape[1]], &shape[2..]].concat())
}

/// Of what each step adds, f32 `[B]`: one reduction, and not one for each.
fn means(steps: &PpoMetrics) -> PpoMetrics {
    let means = stop_gradient(stack(&steps.leaves(), 0)).mean_axis(1);
    steps.with_leaves(&means.unstack())
}

impl<O: Optimizer> Agent for Ppo<O> {
    type Observation = Tensor;
    type Actor = Memory;
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
    ) -> (Tensor, Memory, PpoOutput) {
        let (memory, features) = nets.see(memory, observation);
        let policy = nets.policy(features);
        let action = policy.sample(key);
        (
            action,
            memory.clone(),
            PpoOutput { log_prob: policy.log_prob(action), value: nets.value(features), memory },
        )
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
        nets: &ActorCritic,
        (): (),
        start: Memory,
        trajectory: Trajectory<Tensor, PpoOutput>,
        key: Key,
    ) -> ((), PpoBatch) {
        let _scope = scope("Ppo::update_experience");
        let value_after = |(memory, seen)| {
            let (_, features) = nets.see(memory, seen);
            nets.value(features)
        };
        let PpoOutput { log_prob, value, memory } = trajectory.output.clone();
        let advantage =
            trajectory.advantages(value, memory, value_after, self.discount, self.lambda);

        // What minibatches are drawn from: steps, or environments with all of theirs.
        let whole_trajectories = self.lstm.is_some();
        let units = |x: Tensor| match whole_trajectories {
            true => x.swap_axes(0, 1),
            false => merged(x),
        };
        let steps_of = |drawn: Tensor| match whole_trajectories {
            true => vmap(drawn, merged),
            false => drawn,
        };
        let advantage = units(advantage);
        let count = advantage.dim(0);
        let updates = self.epochs * self.minibatches;
        // Each device shuffles its own. A loop again, or XLA would draw the key for each element of the permutation.
        let epochs = arange(self.epochs) + axis_index(Replicas) * self.epochs as i32;
        let keys = vmap((epochs, whole(key)), |(epoch, key)| key.fold_in(epoch));
        let permutations = map(keys, |key| {
            if self.exact_shuffle { key.permutation(count) } else { key.feistel_permutation(count) }
        });
        let minibatch = if count.is_multiple_of(self.minibatches) {
            permutations.reshape([updates, count / self.minibatches])
        } else {
            let what = match whole_trajectories {
                true => {
                    format!("the trajectories of {count} environments, each whole for the core,")
                }
                false => format!(
                    "a cycle's {count} steps ({} steps of {} environments)",
                    value.dim(0),
                    value.dim(1)
                ),
            };
            let message = format!("{what} do not divide into {} minibatches", self.minibatches);
            let guess = TensorType::new(I32, [updates, count / self.minibatches.max(1)]);
            fail("Ppo", message, &[advantage], guess)
        };
        let steps = stack(&[units(log_prob), units(value), advantage], -1);
        let drawn = steps_of(steps.take(minibatch, 0));
        let of_minibatches = |&skipped: &Tensor| {
            let skipped = steps_of(units(skipped).take(minibatch, 0));
            vmap(!skipped, step_weights)
        };
        let weights: Vec<Tensor> = trajectory.skipped.iter().map(of_minibatches).collect();
        // Each statistic of all minibatches passes one collective.
        let advantage = drawn.index_axis(2, 2);
        let mean = |numbers| pmean(weighted(numbers, &weights).mean_axis(1), Replicas);
        let advantage_mean = mean(advantage);
        let variance = (advantage - advantage_mean.expand_dims(1)).square();
        let advantage_std = mean(variance).sqrt();
        // Who acted has begun the memory anew already where the first step begins an episode.
        let begins = whole_trajectories.then(|| {
            let ended = trajectory.terminated | trajectory.truncated;
            let first = zeros(BOOL, [1, ended.dim(1)]);
            let rest = ended.slice_axis(0, 0..ended.dim(0) - 1);
            units(concatenate(&[first, rest], 0))
        });
        let batch = PpoBatch {
            observation: units(trajectory.observation),
            action: units(trajectory.action),
            memory: start,
            begins: begins.into_iter().collect(),
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
        let (seen, action) = match batch.begins.first() {
            None => (of(batch.observation), of(batch.action)),
            Some(&begins) => {
                let memory = tree_map(&batch.memory, of);
                let trajectories = (memory, of(batch.observation), of(begins));
                let features = vmap(trajectories, |(memory, seen, begins)| {
                    let features = vmap(seen, |seen| nets.features(seen));
                    nets.remember_all(memory, features, begins).1
                });
                (merged(features), merged(of(batch.action)))
            }
        };
        let steps = vmap(
            ((seen, action, log_prob), advantage, value_tm1, target, weights.clone()),
            |((seen, action, log_prob), advantage, value_tm1, target, weight)| {
                let features = match batch.begins[..] {
                    [] => nets.features(seen),
                    _ => seen,
                };
                let policy = nets.policy(features);
                // Of a step that does not count the ratio may be infinite, and its slope times 0 no number.
                let log_ratio = policy.log_prob(action) - log_prob;
                let log_ratio = match weight.first() {
                    Some(weight) => select(weight.eq(0.0), 0.0, log_ratio),
                    None => log_ratio,
                };
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
        Learning::FromBatch { updates: self.epochs * self.minibatches }
    }
}
