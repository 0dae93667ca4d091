//! DiscoRL: Oh et al., "Discovering state-of-the-art reinforcement learning algorithms", 2025. The
//! update rule that the authors published as Disco103, and rules with the same structure in other
//! sizes.

use super::UpdateRule;
use crate::Number;
use crate::distributions::{Categorical, Distribution};
use crate::learn::Axes;
use crate::learn::weighted;
use crate::losses::{pick, softmax_cross_entropy};
use crate::nn::{Activation, Initializer, Linear, Lstm, LstmState, Mlp};
use crate::returns::{
    TxPair, general_off_policy_returns_from_q_and_v, signed_logp1, transform_from_2hot,
    transform_to_2hot,
};
use podracer_dsl::prelude::*;

/// Sizes of a [`DiscoRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscoShape {
    /// Number of categories in each of an agent's predictions `y` and `z`. The rule gives them
    /// their meaning.
    pub predictions: usize,
    /// Units of the layer that embeds a prediction for the rule.
    pub embedding: usize,
    /// Channels of the layer that relates each action to the others.
    pub channels: usize,
    /// Units of the LSTM over a trajectory.
    pub units: usize,
    /// Units of the LSTM over the agent's life.
    pub life_units: usize,
}

/// The sizes of Disco103: 754,778 parameters.
impl Default for DiscoShape {
    fn default() -> Self {
        DiscoShape { predictions: 600, embedding: 16, channels: 16, units: 256, life_units: 128 }
    }
}

impl DiscoShape {
    /// Number of channels per action after the rule's two layers.
    pub const OF_ACTION: usize = 2;
    /// Number of inputs to a rule per action of a step.
    const SEEN_OF_ACTION: usize = 9;
    /// Number of inputs to a rule per step.
    const SEEN: usize = 27;
}

/// Embeddings that turn a trajectory into a rule's inputs.
#[derive(Tree, Clone)]
pub struct DiscoSight {
    /// A prediction `y`, as probabilities, to one number.
    pub y: Mlp,
    /// A prediction `z`, as probabilities, to one number.
    pub z: Mlp,
    /// Two layers over the inputs of each action, concatenated with their mean over the actions.
    pub actions: Vec<Linear>,
}

/// The part of a rule with memory of an agent's life, which takes one step per update.
#[derive(Tree, Clone)]
pub struct Lifetime {
    /// Its own embeddings.
    pub sight: DiscoSight,
    /// All inputs of a step to the input of `core`, before the mean over all steps.
    pub input: Linear,
    /// The LSTM over updates.
    pub core: Lstm,
}

/// An update rule: from a trajectory it computes targets for an agent's policy and predictions.
#[derive(Tree, Clone)]
pub struct DiscoRule {
    /// Embeddings of the LSTM's inputs.
    pub sight: DiscoSight,
    /// The LSTM, which runs backwards over a trajectory.
    pub core: Lstm,
    /// State of the life's LSTM to factors of the LSTM's outputs.
    pub gate: Linear,
    /// Features to a number for the life's LSTM.
    pub summary: Linear,
    /// Features to the target of `y`.
    pub y: Linear,
    /// Features to the target of `z`.
    pub z: Linear,
    /// Features and channels of each action, concatenated with their means over the actions, to
    /// channels.
    pub policy: Linear,
    /// Channels of an action to the logit of its target.
    pub logit: Linear,
    /// The memory of the agent's life.
    pub life: Lifetime,
}

/// The outputs of an agent's network, with the leading axes of the observations.
#[derive(Tree, Clone, Copy)]
pub struct DiscoOutputs {
    /// Logits of the policy. f32 `[.., A]`
    pub logits: Tensor,
    /// Logits of the prediction of an observation. f32 `[.., M]`
    pub y: Tensor,
    /// Logits of the prediction of each action. f32 `[.., A, M]`
    pub z: Tensor,
    /// Logits of the policy after each action. f32 `[.., A, A]`
    pub next_policy: Tensor,
    /// Logits of the value of each action, in bins. f32 `[.., A, bins]`
    pub q: Tensor,
}

/// The steps of a mean: the two leading axes `[T, N]`, on all devices.
#[derive(Clone)]
pub struct Steps {
    /// Weights of the steps, f32 `[T, N]` of mean 1 ([`step_weights`](crate::learn::step_weights));
    /// `None` if all steps count equally.
    pub weights: Option<Tensor>,
    /// The axes over which steps are spread.
    pub axes: Axes,
}

impl Steps {
    /// The mean of numbers `[T, N, ..]` over the steps. f32 `[..]`
    #[track_caller]
    pub fn mean(&self, numbers: Tensor) -> Tensor {
        let weights = self.weights.map(|weights| {
            let more = vec![1; numbers.rank() - weights.rank()];
            weights.reshape([weights.shape(), more].concat()).broadcast_to(numbers.shape())
        });
        self.axes.mean(weighted(numbers, weights).mean_axis([0, 1]))
    }
}

/// The memory of an agent's life.
#[derive(Tree, Clone, Copy)]
pub struct DiscoMemory {
    /// State of the LSTM over the life.
    pub core: LstmState,
    /// Moving average of the advantages. f32 `[]`
    pub mean: Tensor,
    /// Moving average of their squares. f32 `[]`
    pub square: Tensor,
    /// Remaining weight of the averages' initial zeros. f32 `[]`
    pub begun: Tensor,
}

impl DiscoMemory {
    const DECAY: f64 = 0.99;

    /// The memory at the start of a life.
    #[track_caller]
    pub fn new(shape: &DiscoShape) -> DiscoMemory {
        let core = LstmState::zeros(shape.life_units);
        DiscoMemory { core, mean: scalar(0.0), square: scalar(0.0), begun: scalar(1.0) }
    }

    /// The averages after a rollout with advantages `[T, N]`.
    #[track_caller]
    fn follow(self, advantage: Tensor, steps: &Steps) -> DiscoMemory {
        let next =
            |old: Tensor, new: Tensor| Self::DECAY * old + (1.0 - Self::DECAY) * steps.mean(new);
        DiscoMemory {
            mean: next(self.mean, advantage),
            square: next(self.square, advantage.square()),
            begun: self.begun * Self::DECAY,
            ..self
        }
    }

    /// Advantages minus their average, divided by their standard deviation.
    #[track_caller]
    fn normalized(self, advantage: Tensor) -> Tensor {
        let unbiased = |average: Tensor| average / (1.0 - self.begun);
        let mean = unbiased(self.mean);
        let variance = (unbiased(self.square) - mean.square()).maximum(0.0);
        (advantage - mean) / (variance.sqrt() + 1e-6)
    }
}

/// A rollout as input of a [`DiscoRule`].
#[derive(Tree, Clone, Copy)]
pub struct DiscoSeen {
    /// Actions. i32 `[T, N]`
    pub action: Tensor,
    /// Rewards. f32 `[T, N]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state. bool `[T, N]`
    pub terminated: Tensor,
    /// True if the episode is over after the step. bool `[T, N]`
    pub done: Tensor,
    /// Logits of the behaviour policy. f32 `[T, N, A]`
    pub behaviour: Tensor,
    /// The agent's outputs before each step. `[T, N, ..]`
    pub now: DiscoOutputs,
    /// The agent's outputs after each step. `[T, N, ..]`
    pub after: DiscoOutputs,
    /// Outputs of its target network before each step. `[T, N, ..]`
    pub target: DiscoOutputs,
    /// Outputs of its target network after each step. `[T, N, ..]`
    pub target_after: DiscoOutputs,
}

/// Values along a rollout, `[T, N, ..]`.
#[derive(Tree, Clone, Copy)]
pub struct DiscoValues {
    /// Values before each step, from the agent's action values. f32 `[T, N]`
    pub value: Tensor,
    /// Values after each step. f32 `[T, N]`
    pub value_after: Tensor,
    /// Action values of the target network. f32 `[T, N, A]`
    pub q: Tensor,
    /// Action values minus their mean under the policy. f32 `[T, N, A]`
    pub excess: Tensor,
    /// Returns, by Retrace with the target network's values. f32 `[T, N]`
    pub q_target: Tensor,
    /// Returns minus the target network's values. f32 `[T, N]`
    pub advantage: Tensor,
}

impl DiscoValues {
    /// Greatest value of the bins, on the scale of [`TxPair::SignedHyperbolic`].
    pub const GREATEST: f64 = 300.0;

    /// Values along a rollout: Retrace of Munos et al. 2016 along each lane, for the policy of `seen.now`.
    #[track_caller]
    pub fn of(seen: &DiscoSeen, discount: Number, lambda: Number) -> DiscoValues {
        let _scope = scope("DiscoValues::of");
        let numbers = |q: Tensor| {
            let bins = q.shape().last().copied().unwrap_or_default();
            let mean = transform_from_2hot(q.softmax(-1), -Self::GREATEST, Self::GREATEST, bins);
            TxPair::SignedHyperbolic.apply_inv(mean)
        };
        let under = |policy: DiscoOutputs, q: Tensor| (policy.logits.softmax(-1) * q).sum_axis(-1);
        let q = numbers(seen.target.q);
        let v = under(seen.now, q);
        let v_after = under(seen.after, numbers(seen.target_after.q));
        let log_prob = |logits: Tensor| Categorical::new(logits).log_prob(seen.action);
        let ratio = (log_prob(seen.now.logits) - log_prob(seen.behaviour)).exp();
        let trace = lambda * ratio.minimum(1.0);
        let discounts =
            select(seen.terminated, 0.0, discount.into_tensor().broadcast_to(v.shape()));
        let q_taken = pick(q, seen.action);
        let lanes = [q_taken, v_after, seen.reward, discounts, trace, seen.done].map(|x| x.axis(1));
        let [q_taken, v_after, reward, discounts, trace, done] = lanes;
        let lanes = (q_taken, v_after, reward, discounts, trace, done);
        let q_target = vmap(lanes, |(q_taken, v_after, reward, discounts, trace, done)| {
            // Traces end at the end of an episode.
            let trace = select(done.slice(..-1), 0.0, trace.slice(1..));
            let q_taken = q_taken.slice(1..);
            general_off_policy_returns_from_q_and_v(q_taken, v_after, reward, discounts, trace)
        });
        let q_target = q_target.swap_axes(0, 1);
        DiscoValues {
            value: under(seen.now, numbers(seen.now.q)),
            value_after: under(seen.after, numbers(seen.after.q)),
            q,
            excess: q - v.expand_dims(-1),
            q_target,
            advantage: q_target - v,
        }
    }
}

/// Targets that a rule computes for a rollout, as logits. `[T, N, ..]`
#[derive(Tree, Clone, Copy)]
pub struct DiscoTargets {
    /// Logits of the policy's target. f32 `[T, N, A]`
    pub policy: Tensor,
    /// Logits of the target of the prediction `y`. f32 `[T, N, M]`
    pub y: Tensor,
    /// Logits of the target of the prediction `z` for the action taken. f32 `[T, N, M]`
    pub z: Tensor,
}

/// Losses of an agent's outputs against their targets. f32 `[T, N]`
#[derive(Tree, Clone, Copy)]
pub struct DiscoLosses {
    /// Divergence of the policy from its target, in nats.
    pub policy: Tensor,
    /// Divergence of the prediction `y` from its target, in nats.
    pub y: Tensor,
    /// Divergence of the prediction `z` for the action taken from its target, in nats.
    pub z: Tensor,
    /// Divergence of the policy predicted after the action from the policy after it, in nats; 0 if
    /// the episode terminated.
    pub next_policy: Tensor,
    /// Cross entropy of the action's value in bins, in nats.
    pub value: Tensor,
}

impl DiscoTargets {
    /// The losses of an agent's `outputs` before each step of a rollout.
    #[track_caller]
    pub fn losses(
        &self,
        outputs: &DiscoOutputs,
        seen: &DiscoSeen,
        values: &DiscoValues,
    ) -> DiscoLosses {
        let _scope = scope("DiscoTargets::losses");
        let divergence =
            |from: Tensor, to: Tensor| Categorical::new(from).kl_divergence(&Categorical::new(to));
        let here = seen.action.one_hot(outputs.z.dim(2)).expand_dims(-1);
        let taken = |of_actions: Tensor| (of_actions * here).sum_axis(-2);
        let next = divergence(seen.after.logits, taken(outputs.next_policy));
        let q = taken(outputs.q);
        let greatest = DiscoValues::GREATEST;
        let value = TxPair::SignedHyperbolic.apply(values.q_target);
        let value = transform_to_2hot(value, -greatest, greatest, q.dim(2));
        DiscoLosses {
            policy: divergence(self.policy, outputs.logits),
            y: divergence(self.y, outputs.y),
            z: divergence(self.z, taken(outputs.z)),
            next_policy: select(seen.terminated, 0.0, next),
            value: softmax_cross_entropy(q, value),
        }
    }
}

/// Applies a layer of channels to the features of each action, f32 `[.., A, C]`, concatenated with
/// their mean over the actions.
#[track_caller]
fn among_actions(layer: &Linear, x: Tensor) -> Tensor {
    let mean = x.mean_axis(keepdims(-2)).broadcast_to(x.shape());
    layer_of(layer, concatenate(&[x, mean], -1)).relu()
}

/// Applies a layer to the last axis of a tensor. The other axes are merged, so that it is one
/// product.
#[track_caller]
fn layer_of(layer: &Linear, x: Tensor) -> Tensor {
    let (leading, inputs) = (x.rank() - 1, layer.weight.len());
    let rows = x.elements() / inputs.max(1);
    let shape = [&x.shape()[..leading], &[layer.bias.len()]].concat();
    layer.apply(x.reshape([rows, inputs])).reshape(shape)
}

impl DiscoSight {
    #[track_caller]
    fn init(key: Key, shape: &DiscoShape) -> DiscoSight {
        let &DiscoShape { predictions, embedding, channels, .. } = shape;
        let keys = key.split_n(4);
        let weights = Initializer::lecun_normal();
        let sizes = [predictions, embedding, 1];
        let prediction =
            |i: usize| Mlp::init(keys.at(i), &sizes, Activation::Relu, weights, weights);
        let seen = 2 * DiscoShape::SEEN_OF_ACTION;
        DiscoSight {
            y: prediction(0),
            z: prediction(1),
            actions: vec![
                Linear::init(keys.at(2), seen, channels, weights),
                Linear::init(keys.at(3), 2 * channels, DiscoShape::OF_ACTION, weights),
            ],
        }
    }

    /// Embeds each prediction, logits `[.., M]`, as one number. f32 `[..]`
    #[track_caller]
    fn embed(net: &Mlp, logits: Tensor) -> Tensor {
        let hidden = layer_of(&net.layers[0], logits.softmax(-1));
        layer_of(&net.layers[1], net.activation.apply(hidden)).squeeze(-1)
    }

    /// All inputs of each step, f32 `[T, N, 27]`, and of each action, f32 `[T, N, A, 2]`.
    #[track_caller]
    fn see(&self, seen: &DiscoSeen, values: &DiscoValues, memory: DiscoMemory) -> (Tensor, Tensor) {
        let DiscoSeen { action, reward, terminated, now, after, target, target_after, .. } = *seen;
        let taken = |of_actions: Tensor| pick(of_actions, action);
        let logits = [now.logits, after.logits, seen.behaviour, target.logits];
        let [policy, policy_after, behaviour, target_policy] = logits.map(|x| x.softmax(-1));
        let z = [now, after, target, target_after].map(|outputs| Self::embed(&self.z, outputs.z));
        let actions = policy.dim(2);
        let of_actions = [
            policy,
            behaviour,
            target_policy,
            z[0],
            z[2],
            signed_logp1(values.q),
            signed_logp1(values.excess),
            memory.normalized(values.excess),
            action.one_hot(actions),
        ];
        let of_actions =
            self.actions.iter().fold(stack(&of_actions, -1), |x, layer| among_actions(layer, x));
        let y = |outputs: DiscoOutputs| Self::embed(&self.y, outputs.y);
        // A prediction per action: its value for the action taken, its mean and its greatest value,
        // before and after the step.
        let of_z = |before: Tensor, later: Tensor| {
            let mean = |by: Tensor, of_actions: Tensor| (by * of_actions).sum_axis(-1);
            let most = |of_actions: Tensor| of_actions.max_axis(-1);
            let means = [mean(policy, before), mean(policy_after, later)];
            [taken(before), means[0], means[1], most(before), most(later)]
        };
        let of_step = [
            taken(policy),
            taken(behaviour),
            signed_logp1(reward),
            1.0 - terminated.astype(F32),
            signed_logp1(values.value),
            signed_logp1(values.value_after),
            signed_logp1(values.advantage),
            memory.normalized(values.advantage),
            taken(target_policy),
            y(now),
            y(after),
            y(target),
            y(target_after),
        ];
        let of_step = [&of_step[..], &of_z(z[0], z[1]), &of_z(z[2], z[3])].concat();
        let here = action.one_hot(actions).expand_dims(-1);
        let mean = of_actions.mean_axis(-2);
        let at_action = (of_actions * here).sum_axis(-2);
        (concatenate(&[stack(&of_step, -1), mean, at_action], -1), of_actions)
    }
}

impl UpdateRule for DiscoRule {
    type Shape = DiscoShape;

    #[track_caller]
    fn init(key: Key, shape: &DiscoShape) -> DiscoRule {
        let &DiscoShape { predictions, channels, units, life_units, embedding } = shape;
        let keys = key.split_n(11);
        let linear = |i: usize, inputs: usize, outputs: usize| {
            Linear::init(keys.at(i), inputs, outputs, Initializer::lecun_normal())
        };
        DiscoRule {
            sight: DiscoSight::init(keys.at(0), shape),
            core: Lstm::init(keys.at(1), DiscoShape::SEEN, units),
            gate: linear(2, life_units, units),
            summary: linear(3, units, 1),
            y: linear(4, units, predictions),
            z: linear(5, units, predictions),
            policy: linear(6, 2 * (units + DiscoShape::OF_ACTION), channels),
            logit: linear(7, channels, 1),
            life: Lifetime {
                sight: DiscoSight::init(keys.at(8), shape),
                input: linear(9, DiscoShape::SEEN + 2, embedding),
                core: Lstm::init(keys.at(10), embedding, life_units),
            },
        }
    }

    fn shape(&self) -> DiscoShape {
        DiscoShape {
            predictions: self.y.bias.len(),
            embedding: self.life.input.bias.len(),
            channels: self.policy.bias.len(),
            units: self.core.hidden.len(),
            life_units: self.life.core.hidden.len(),
        }
    }
}

impl DiscoRule {
    /// The targets for a rollout, and the memory after it. `values` are [`DiscoValues::of`] the
    /// rollout.
    #[track_caller]
    pub fn targets(
        &self,
        seen: &DiscoSeen,
        values: &DiscoValues,
        memory: DiscoMemory,
        steps: &Steps,
    ) -> (DiscoTargets, DiscoMemory) {
        let _scope = scope("DiscoRule::targets");
        let memory = memory.follow(values.advantage, steps);
        let (of_step, of_actions) = self.sight.see(seen, values, memory);
        let features = vmap((of_step.axis(1), seen.done.axis(1)), |(of_step, done)| {
            let begun = LstmState::zeros(self.core.hidden.len());
            // In the backward direction, an episode's last step comes first.
            self.core.unroll(begun, of_step.reverse(0), done.reverse(0)).h.reverse(0)
        });
        let features = features.swap_axes(0, 1) * self.gate.apply(memory.core.h);
        let (y, z) = (layer_of(&self.y, features), layer_of(&self.z, features));
        let actions = of_actions.dim(2);
        let [t, n, units] = [0, 1, 2].map(|axis| features.dim(axis));
        let beside = features.expand_dims(2).broadcast_to([t, n, actions, units]);
        let channels = among_actions(&self.policy, concatenate(&[beside, of_actions], -1));
        let policy = layer_of(&self.logit, channels).squeeze(-1);

        let (of_life, _) = self.life.sight.see(seen, values, memory);
        let target = DiscoSight::embed(&self.life.sight.y, y).expand_dims(-1);
        let of_life = concatenate(&[of_life, layer_of(&self.summary, features), target], -1);
        let input = steps.mean(layer_of(&self.life.input, of_life));
        let core = self.life.core.step(memory.core, input);
        (DiscoTargets { policy, y, z }, DiscoMemory { core, ..memory })
    }
}
