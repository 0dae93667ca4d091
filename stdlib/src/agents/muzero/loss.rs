//! MuZero's loss on windows of steps (Schrittwieser et al. 2020, equation 1 and appendix G).

use super::network::MuZeroNetwork;
use super::{Encoded, MuZero, MuZeroSettings};
use crate::agents::PlannedStep;
use crate::learn::{Axes, Windows, step_weights, weighted};
use crate::losses::softmax_cross_entropy;
use podracer_dsl::prelude::*;

/// The loss of a batch of windows.
#[derive(Tree, Clone, Copy)]
pub struct MuZeroLoss {
    /// The mean over the first states of unrolls, each times the weight of its window. f32 `[]`
    pub loss: Tensor,
    /// The priority of each window: the mean value error at its first states. f32 `[B]`
    pub priorities: Tensor,
    /// Means, for metrics.
    pub metrics: MuZeroMetrics,
}

/// Metrics of a gradient step: means over the first states of the model's unrolls.
#[derive(Tree, Clone, Copy)]
pub struct MuZeroMetrics {
    /// The loss that the gradient step minimises, [`MuZeroLoss::loss`].
    pub loss: Tensor,
    /// Cross-entropy between the search's policy and the network's: at the first state, plus the
    /// mean over the states that the model made.
    pub policy_loss: Tensor,
    /// Cross-entropy between the value and its target, summed in the same way.
    pub value_loss: Tensor,
    /// Mean cross-entropy of the rewards over the model's steps.
    pub reward_loss: Tensor,
    /// Mean loss of the chance outcomes over the model's steps; `None` for a deterministic model.
    pub chance_loss: Option<Tensor>,
    /// The network's value.
    pub value: Tensor,
    /// The search's value.
    pub search_value: Tensor,
    /// Absolute error of the network's value.
    pub value_error: Tensor,
}

/// Terms of the loss for each of `S` first states. f32 `[S]`
#[derive(Tree, Clone, Copy)]
pub struct MuZeroTerms {
    /// Cross-entropy of policies.
    pub policy_loss: Tensor,
    /// Cross-entropy of values.
    pub value_loss: Tensor,
    /// Cross-entropy of rewards.
    pub reward_loss: Tensor,
    /// Cross-entropy of the chance outcomes, plus the encoder's commitment loss times its weight;
    /// `None` for a deterministic model. `value_loss` includes the values of afterstates.
    pub chance_loss: Option<Tensor>,
    /// The network's value of the first state.
    pub value: Tensor,
    /// The search's value of the first state.
    pub search_value: Tensor,
    /// The absolute error of the network's value.
    pub value_error: Tensor,
    /// True for first states that count. bool `[S]`
    pub counts: Tensor,
}

/// Targets of a state that the model reaches after some steps, for each of `S` first states.
#[derive(Tree, Clone, Copy)]
pub struct MuZeroTargets {
    /// The action that leads to the state; 0 if no action is known. i32 `[S]`
    pub action: Tensor,
    /// The action's reward, 0 after the end of an episode. f32 `[S]`
    pub reward: Tensor,
    /// The state's value, 0 after the end of an episode. f32 `[S]`
    pub value: Tensor,
    /// The search's policy. f32 `[S, A]`
    pub policy: Tensor,
    /// True if the reward is known. bool `[S]`
    pub has_reward: Tensor,
    /// True if the value is known. bool `[S]`
    pub has_value: Tensor,
    /// True if the policy is known. It is unknown after the end of an episode. bool `[S]`
    pub has_policy: Tensor,
}

/// The same numbers with a scaled gradient.
#[track_caller]
fn scale_gradient(x: Tensor, scale: f64) -> Tensor {
    scale * x + (1.0 - scale) * stop_gradient(x)
}

impl MuZero {
    /// The targets of the states after 0, 1, .. `model_unroll` steps of the model, from each of the
    /// first `starts` steps of a window of one lane, `[L, ..]`, with stacked observations. States
    /// after 0 steps have neither action nor reward.
    ///
    /// In a game of two players the values of neighbouring states belong to different players, and
    /// the discount is negative.
    ///
    /// States after the end of an episode are absorbing: their rewards and values are 0, and they
    /// have no policy. Their actions are the lane's next actions, from whichever episode. Nothing
    /// is known of states after a cut or behind the window, and no unroll begins with a reset-only
    /// step.
    #[track_caller]
    pub fn targets(&self, steps: &PlannedStep, starts: usize) -> Vec<MuZeroTargets> {
        let _scope = scope("MuZero::targets");
        let &MuZeroSettings { model_unroll, n_step, .. } = &self.settings;
        let length = steps.reward.len();
        // Number of rows behind the window.
        let behind = (starts + model_unroll).saturating_sub(length);
        let padded = |leaf: Tensor| {
            let shape = [&[behind], &leaf.shape()[1..]].concat();
            concatenate(&[leaf, zeros(leaf.dtype(), shape)], 0)
        };
        let from_step = |leaf: Tensor, k: usize| leaf.slice_axis(0, k..k + starts);
        let inside = padded(full([length], true));
        let value = padded(steps.value_targets(n_step, self.discount()));
        let policy = padded(steps.plan.policy);
        let [action, reward, terminated, truncated] =
            [steps.action, steps.reward, steps.terminated, steps.truncated].map(padded);
        let mut known = from_step(padded(steps.counts()), 0);
        let mut absorbed = zeros(BOOL, [starts]);
        let mut targets = vec![MuZeroTargets {
            action: zeros(I32, [starts]),
            reward: zeros(F32, [starts]),
            value: from_step(value, 0),
            policy: from_step(policy, 0),
            has_reward: absorbed,
            has_value: known,
            has_policy: known,
        }];
        for k in 1..=model_unroll {
            let before = k - 1;
            let has_reward = known & from_step(inside, before);
            let reward = select(absorbed, 0.0, from_step(reward, before));
            let cut = from_step(truncated, before) & !from_step(terminated, before) & !absorbed;
            absorbed = absorbed | from_step(terminated, before);
            known = has_reward & !cut & (absorbed | from_step(inside, k));
            targets.push(MuZeroTargets {
                action: from_step(action, before),
                reward,
                value: select(absorbed, 0.0, from_step(value, k)),
                policy: from_step(policy, k),
                has_reward,
                has_value: known,
                has_policy: known & !absorbed,
            });
        }
        targets
    }

    /// The terms of the loss from each of the first `starts` steps of a window of one lane,
    /// `[frames - 1 + L, ..]`. The terms of the states that the model made are divided by the
    /// number of those states, and half of the gradient passes each step of the model.
    ///
    /// The encoder of chance outcomes sees zeros in place of observations after the end of an
    /// episode.
    #[track_caller]
    pub fn terms(&self, network: &MuZeroNetwork, steps: PlannedStep, starts: usize) -> MuZeroTerms {
        let _scope = scope("MuZero::terms");
        let settings = &self.settings;
        let steps = steps.stacked(settings.frames).clipped(settings.reward_clipping);
        let (value_support, reward_support) = (settings.value_support(), settings.reward_support());
        let targets = stop_gradient(self.targets(&steps, starts));
        let entropy = |logits: Tensor, probs: Tensor, known: Tensor| {
            weighted(softmax_cross_entropy(logits, probs), Some(known.astype(F32)))
        };
        let observation = steps.observation.slice_axis(0, 0..starts);
        let embedding = vmap(observation, |seen| network.represent(seen));
        let (policy, value) = vmap(embedding, |embedding| network.predict(embedding));
        let (first, unrolled) = (&targets[0], &targets[1..]);
        let root_value = value_support.mean(value);
        let stacked = unrolled[0].zip_all(&unrolled[1..], |leaves| stack(leaves, 0));
        let values: Vec<Tensor> = targets.iter().map(|target| target.value).collect();
        let values_before = stack(&values[..unrolled.len()], 0);
        // A loop, with a body that is compiled once; unrolled steps would be compiled one by one.
        let xs = (stacked, values_before, arange(unrolled.len()) + 1);
        let (_, made) = scan(embedding, xs, |embedding, (target, value_before, k)| {
            let mut embedding = embedding;
            let mut edge = target.action.one_hot(self.actions);
            let mut has_reward = target.has_reward;
            let (mut afterstate_loss, mut chance_loss) = (None, None);
            if let Some(chance) = network.chance() {
                let both = (embedding, edge);
                embedding = vmap(both, |(embedding, action)| chance.after(embedding, action));
                let (outcome, value) = vmap(embedding, |after| chance.predict(after));
                let wanted = value_support.probs(value_before);
                afterstate_loss = Some(entropy(value, wanted, target.has_reward));
                // The last observations stand for the observations behind the window.
                let last = steps.reward.len() as i32 - 1;
                let seen = steps.observation.take((arange(starts) + k).minimum(last), 0);
                let seen = vmap((seen, target.has_policy), |(seen, there)| {
                    select(there, seen, seen.zeros_like())
                });
                let encoded = Encoded::of(vmap(seen, |seen| chance.encode(seen)));
                let known = Some(target.has_value.astype(F32));
                let commitment = weighted(settings.commitment_cost * encoded.commitment, known);
                let wanted = stop_gradient(encoded.code);
                chance_loss = Some(entropy(outcome, wanted, target.has_value) + commitment);
                edge = encoded.code;
                // Without the observation after it, an outcome is unknown.
                has_reward = has_reward & target.has_value;
            }
            let (after, reward, (policy, value)) = vmap((embedding, edge), |(embedding, edge)| {
                let (after, reward) = network.step(embedding, edge);
                (after, reward, network.predict(after))
            });
            let reward_loss = entropy(reward, reward_support.probs(target.reward), has_reward);
            let mut value_loss =
                entropy(value, value_support.probs(target.value), target.has_value);
            if let Some(loss) = afterstate_loss {
                value_loss += loss;
            }
            let policy_loss = entropy(policy, target.policy, target.has_policy);
            (scale_gradient(after, 0.5), (policy_loss, value_loss, reward_loss, chance_loss))
        });
        let (policy_made, value_made, reward_made, chance_made) = made;
        let policy_loss = entropy(policy, first.policy, first.has_policy);
        let value_loss = entropy(value, value_support.probs(first.value), first.has_value);
        let counts = first.has_value;
        let value_error = select(counts, (root_value - first.value).abs(), 0.0);
        MuZeroTerms {
            policy_loss: policy_loss + policy_made.mean_axis(0),
            value_loss: value_loss + value_made.mean_axis(0),
            reward_loss: reward_made.mean_axis(0),
            chance_loss: chance_made.map(|losses| losses.mean_axis(0)),
            value: root_value,
            search_value: steps.plan.value.slice_axis(0, 0..starts),
            value_error,
            counts,
        }
    }

    /// The loss of a batch of windows.
    #[track_caller]
    pub fn loss(
        &self,
        network: &MuZeroNetwork,
        windows: &Windows<PlannedStep>,
        axes: &Axes,
    ) -> MuZeroLoss {
        let _scope = scope("MuZero::loss");
        let &MuZeroSettings { value_cost, frames, .. } = &self.settings;
        let length = windows.steps.reward.dim(0) - (frames - 1);
        let starts = self.settings.planning.starts(length);
        // [B, S]
        let terms =
            vmap(axis(windows.steps.clone(), 1), |steps| self.terms(network, steps, starts));
        let weights = step_weights(terms.counts, axes);
        let mean = |term: Tensor| weighted(term, Some(weights)).mean();
        let mut loss = terms.policy_loss + value_cost * terms.value_loss + terms.reward_loss;
        if let Some(chance_loss) = terms.chance_loss {
            loss += chance_loss;
        }
        let loss = mean(windows.weights.expand_dims(1) * loss);
        let starts_that_count = terms.counts.astype(F32).sum_axis(1).maximum(1.0);
        let metrics = MuZeroMetrics {
            loss,
            policy_loss: mean(terms.policy_loss),
            value_loss: mean(terms.value_loss),
            reward_loss: mean(terms.reward_loss),
            chance_loss: terms.chance_loss.map(mean),
            value: mean(terms.value),
            search_value: mean(terms.search_value),
            value_error: mean(terms.value_error),
        };
        MuZeroLoss {
            loss,
            priorities: stop_gradient(terms.value_error.sum_axis(1) / starts_that_count),
            metrics: stop_gradient(metrics),
        }
    }
}
