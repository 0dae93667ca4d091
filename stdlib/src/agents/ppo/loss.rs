//! The loss of PPO on a minibatch, the data that it reads, and the gradient steps of an iteration.

use super::{PpoSettingsOf, Surrogate};
use crate::agents::{
    Acted, ActorCriticAgent, ActorCriticRollout, ActorCriticSettings, ActorCriticState,
    LearnActorCritic,
};
use crate::learn::{
    Axes, Cx, Input, RolloutShape, Staleness, merged, scan_mean, step_weights, weighted,
};
use crate::losses::clipped_value_loss;
use crate::net::{ActorCritic, Memory};
use crate::optim::{Optimizer, global_norm};
use crate::ravel::ravel;
use podracer_dsl::prelude::*;

/// Data of a step of acting that `Ppo` learns from.
#[derive(Tree, Clone)]
pub struct PpoExtras {
    /// The logarithm of the action's probability when it was drawn. f32 `[]`
    pub log_prob: Tensor,
    /// The value of the input when the action was drawn. f32 `[]`
    pub value: Tensor,
    /// The memory after the step.
    pub memory: Memory,
}

/// A rollout that minibatches are drawn from. It has `B = T N` steps in the order of the rollout,
/// for `U` gradient steps with `M` steps each. With a core, whole lanes of `T` steps are drawn from
/// the `N` lanes instead of steps.
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
    /// The weight of each step of a minibatch, f32 `[U, M]`; `None` if all steps count equally.
    pub weights: Option<Tensor>,
    /// [`PpoMetrics::explained_variance`]. f32 `[]`
    pub explained_variance: Tensor,
}

/// Terms of the loss, f32 `[]`: means over the steps of a minibatch.
#[derive(Tree, Clone, Copy)]
pub struct PpoTerms {
    /// The policy loss plus the weighted value loss minus the weighted entropy.
    pub loss: Tensor,
    /// The surrogate objective, negated.
    pub policy_loss: Tensor,
    /// Half of the clipped squared error.
    pub value_loss: Tensor,
    /// The policy's entropy, in nats.
    pub entropy: Tensor,
    /// An estimate of the divergence from the acting policy: the mean of (ratio - 1) - log ratio.
    pub approximate_kl: Tensor,
    /// The share of steps with a clipped probability ratio.
    pub clip_fraction: Tensor,
}

/// Metrics of an iteration, f32 `[]`: means over its minibatches unless noted otherwise.
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
    /// The share of the returns' variance that the values explained during acting: 1 - Var(return -
    /// value) / Var(return). It is 0 if the returns do not vary.
    pub explained_variance: Tensor,
    /// The learning rate of the iteration's last gradient step, according to the settings.
    pub learning_rate: Tensor,
}

/// The means of each step's terms, f32 `[B]`, in a single reduction.
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

impl<L: Surrogate> PpoSettingsOf<L> {
    /// Prepares the data that the gradient steps of an iteration read.
    #[track_caller]
    pub fn batch(
        &self,
        params: &ActorCritic,
        rollout: ActorCriticRollout<PpoExtras>,
        key: Key,
        axes: &Axes,
    ) -> PpoBatch {
        let _scope = scope("Ppo::batch");
        let &PpoSettingsOf { discount, lambda, core, .. } = self;
        let value_after = |(memory, input): (Memory, Input)| {
            let (_, features) = params.see(memory, &input);
            params.value(features)
        };
        let PpoExtras { log_prob, value, memory } = rollout.extras.clone();
        let advantage = rollout.advantages(value, memory, value_after, discount, lambda);
        let explained_variance = explained_variance(value, advantage, rollout.skipped, axes);

        // Minibatches are drawn from steps, or from whole lanes.
        let whole_lanes = core.lstm.is_some();
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
        let minibatch = self.drawn().draw("Ppo", shape, key, axes);
        let steps = stack(&[units(log_prob), units(value), advantage], -1);
        let drawn = steps_of(steps.take(minibatch, 0));
        let weights = rollout.skipped.map(|skipped| {
            let skipped = steps_of(units(skipped).take(minibatch, 0));
            vmap(!skipped, |counts| step_weights(counts, axes))
        });
        // One collective averages each statistic for all minibatches.
        let mean = |numbers| axes.mean(weighted(numbers, weights).mean_axis(1));
        let advantage = drawn.index_axis(2, 2);
        let advantage_mean = mean(advantage);
        let variance = (advantage - advantage_mean.expand_dims(1)).square();
        let advantage_std = mean(variance).sqrt();
        // If the first step begins an episode, acting has already reset the memory.
        let begins = whole_lanes.then(|| {
            let done = rollout.done();
            let first = zeros(BOOL, [1, done.dim(1)]);
            let rest = done.slice_axis(0, 0..done.dim(0) - 1);
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
        let &PpoSettingsOf { clip, entropy_cost, value_cost, .. } = self;
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
                // For a step that does not count the ratio may be infinite, and its slope times 0
                // is NaN.
                let log_ratio = policy.log_prob(action) - log_prob;
                let log_ratio = match weight {
                    Some(weight) => select(weight.eq(0.0), 0.0, log_ratio),
                    None => log_ratio,
                };
                let ratio = log_ratio.exp();
                let policy_loss = self.surrogate.policy_loss(ratio, advantage, clip);
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

impl<L: Surrogate> LearnActorCritic for PpoSettingsOf<L> {
    type Extras = PpoExtras;
    type Metrics = PpoMetrics;

    fn extras(&self, acted: &Acted) -> PpoExtras {
        PpoExtras {
            log_prob: acted.policy.log_prob(acted.action),
            value: acted.params.value(acted.features),
            memory: acted.memory,
        }
    }

    fn learn<O: Optimizer>(
        agent: &ActorCriticAgent<Self, O>,
        state: ActorCriticState<O>,
        rollout: ActorCriticRollout<PpoExtras>,
        cx: &Cx,
    ) -> (ActorCriticState<O>, PpoMetrics) {
        let settings = &agent.settings.at(cx.iteration, agent.iterations);
        let batch = settings.batch(&state.params, rollout, cx.key.clone(), cx);
        let updates = settings.gradient_steps();
        let (state, (terms, gradient_norm)) = scan_mean(state, updates, |state, update| {
            let (grads, terms) = state.gradient(cx, |params| settings.loss(params, &batch, update));
            // The norm of the vectors that a flattened optimizer takes, so that it is computed
            // once.
            let norm = global_norm(&ravel(&grads));
            (state.step(&agent.optimizer, grads), (terms, norm))
        });
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
            learning_rate: agent.last_learning_rate(cx.iteration),
        };
        (state, metrics)
    }

    fn staleness(&self) -> Staleness {
        Staleness::Tolerated
    }
}
