//! Agents that learn by the rules of DiscoRL.

use crate::Number;
use crate::distributions::{Categorical, Distribution};
use crate::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Optimized, Rollout, Staleness, View,
    of_legal, step_weights,
};
use crate::meta::{
    DiscoLosses, DiscoMemory, DiscoOutputs, DiscoRule, DiscoSeen, DiscoShape, DiscoTargets,
    DiscoValues, Rule, Steps,
};
use crate::net::{Networks, TorsoNet};
use crate::nn::{Activation, Initializer, Linear, Lstm, LstmState, Mlp};
use crate::optim::{Optimizer, incremental_update};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The network of a [`DiscoAgent`]. It maps an observation to the policy and a prediction. One step
/// of an LSTM per action then gives the predictions for the result of that action.
#[derive(Tree, Clone)]
pub struct DiscoNet {
    /// Observation to features.
    pub torso: TorsoNet,
    /// Features to features. The activation follows every layer, including the last.
    pub hidden: Mlp,
    /// Features to the logits of the policy.
    pub policy: Linear,
    /// Features to the prediction `y`.
    pub y: Linear,
    /// Features to the initial cell state of `model`. The initial output of `model` is the tanh of
    /// that cell state.
    pub root: Linear,
    /// One-hot action to the embedding of its result.
    pub model: Lstm,
    /// Outputs of `model` to the prediction `z` for the action.
    pub z: Mlp,
    /// Outputs of `model` to the policy after the action.
    pub next_policy: Mlp,
    /// Outputs of `model` to the action's value in bins.
    pub q: Mlp,
}

impl DiscoNet {
    /// Number of bins of an action's value.
    pub const BINS: usize = 601;

    /// A new network. Its first outputs are nearly equal for all observations: the weights of its
    /// last layers have the standard deviation 0.01.
    #[track_caller]
    pub fn init(
        key: Key,
        (observation, actions): (&Space, usize),
        networks: &Networks,
        (model_units, predictions): (usize, usize),
    ) -> DiscoNet {
        let keys = key.split_n(9);
        let (weights, last) = (Initializer::lecun_normal(), Initializer::Normal(0.01));
        let (torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let sizes = [&[features], &networks.hidden[..]].concat();
        let hidden = Mlp::init(keys.at(1), &sizes, networks.activation, weights, weights);
        let features = sizes.last().copied().unwrap_or_default();
        let head = |i: usize, outputs: usize| {
            let sizes = [model_units, model_units, outputs];
            Mlp::init(keys.at(i), &sizes, Activation::Relu, weights, last)
        };
        DiscoNet {
            torso,
            hidden,
            policy: Linear::init(keys.at(2), features, actions, last),
            y: Linear::init(keys.at(3), features, predictions, last),
            root: Linear::init(keys.at(4), features, model_units, weights),
            model: Lstm::init(keys.at(5), actions, model_units),
            z: head(6, predictions),
            next_policy: head(7, actions),
            q: head(8, Self::BINS),
        }
    }

    /// The features of an observation. f32 `[F]`
    #[track_caller]
    fn features(&self, observation: Tensor) -> Tensor {
        let features = self.torso.apply(observation);
        if self.hidden.layers.is_empty() {
            return features;
        }
        self.hidden.activation.apply(self.hidden.apply(features))
    }

    /// The outputs for an observation.
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> DiscoOutputs {
        let features = self.features(observation);
        let c = self.root.apply(features);
        let root = LstmState { c, h: c.tanh() };
        let actions = eye(F32, self.policy.bias.len());
        let (z, next_policy, q) = vmap(actions, |action: Tensor| {
            let led_to = self.model.step(root, action).h;
            (self.z.apply(led_to), self.next_policy.apply(led_to), self.q.apply(led_to))
        });
        DiscoOutputs {
            logits: self.policy.apply(features),
            y: self.y.apply(features),
            z,
            next_policy,
            q,
        }
    }

    /// The outputs for observations `[T, N, ..]`.
    #[track_caller]
    fn apply_all(&self, observations: Tensor) -> DiscoOutputs {
        vmap(observations, |lanes: Tensor| vmap(lanes, |observation| self.apply(observation)))
    }
}

/// An agent for discrete actions that learns by a [`DiscoRule`], such as Disco103 (Oh et al. 2025).
#[derive(Clone)]
pub struct DiscoAgent<O> {
    /// Space of the observations.
    pub observation: Space,
    /// Number of the actions.
    pub actions: usize,
    /// Torso, and hidden layers after it.
    pub networks: Networks,
    /// Units of the network's model of actions, and of the hidden layer of each head after it.
    pub model_units: usize,
    /// The agent's update rule.
    pub rule: Rule<DiscoRule>,
    /// The optimizer.
    pub optimizer: O,
    /// Discount of the values that the rule reads.
    pub discount: Number,
    /// Lambda of the returns that the rule reads.
    pub lambda: Number,
    /// Weight of the loss of the action values.
    pub value_cost: Number,
    /// Step size of an update of the target network towards the network.
    pub target_step: Number,
}

/// State of a [`DiscoAgent`] with optimizer state `S`.
#[derive(Tree, Clone)]
pub struct DiscoState<S: Tree> {
    /// The network that acts and learns.
    pub net: Optimized<DiscoNet, S>,
    /// The target network, which follows `net`.
    pub target: DiscoNet,
    /// The rule's memory over the agent's life.
    pub memory: DiscoMemory,
}

/// Metrics of an iteration: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct DiscoMetrics {
    /// The whole loss.
    pub loss: Tensor,
    /// The loss's parts.
    pub losses: DiscoLosses,
    /// The policy's entropy before the update, in nats.
    pub entropy: Tensor,
}

impl<O: Optimizer> DiscoAgent<O> {
    /// The outputs of a network before and after each step of a rollout, `[T, N, ..]`.
    #[track_caller]
    fn outputs(&self, net: &DiscoNet, rollout: &Rollout<Self>) -> (DiscoOutputs, DiscoOutputs) {
        let observations = rollout.input.observation;
        let (now, after) = match rollout.next_observation {
            Some(after) => (net.apply_all(observations), net.apply_all(after)),
            None => {
                let last = rollout.next_input.observation.expand_dims(0);
                let all = net.apply_all(concatenate(&[observations, last], 0));
                let slice = |from: usize| {
                    tree_map(&all, |leaf| leaf.slice_axis(0, from..from + observations.dim(0)))
                };
                (slice(0), slice(1))
            }
        };
        (self.masked(now, rollout), after)
    }

    /// Outputs with a policy that gives illegal actions the probability 0.
    #[track_caller]
    fn masked(&self, outputs: DiscoOutputs, rollout: &Rollout<Self>) -> DiscoOutputs {
        let logits = of_legal(outputs.logits, rollout.input.legal_actions);
        DiscoOutputs { logits, ..outputs }
    }

    /// A rollout as the rule's input, computed with the agent's present state.
    #[track_caller]
    fn seen(&self, state: &DiscoState<O::State<DiscoNet>>, rollout: &Rollout<Self>) -> DiscoSeen {
        let (now, after) = self.outputs(&state.net.params, rollout);
        let (target, target_after) = self.outputs(&state.target, rollout);
        DiscoSeen {
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
            done: rollout.done(),
            behaviour: rollout.extras,
            now,
            after,
            target,
            target_after,
        }
    }
}

impl<O: Optimizer> Agent for DiscoAgent<O> {
    type Observation = Tensor;
    type Params = DiscoNet;
    type Memory = ();
    /// Logits of the behaviour policy. f32 `[A]`
    type Extras = Tensor;

    fn init_memory(&self, _: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    fn act(&self, net: &DiscoNet, (): (), input: Input, mode: Mode, key: Key) -> Act<(), Tensor> {
        let logits = net.policy.apply(net.features(input.observation));
        let logits = of_legal(logits, input.legal_actions);
        let policy = Categorical::new(logits);
        let action = match mode {
            Mode::Explore => policy.sample(key),
            Mode::Greedy => policy.mode(),
        };
        Act { action, memory: (), extras: logits }
    }

    fn view(&self, net: &DiscoNet, (): (), input: Input, _: Mode, _: Key) -> View {
        View::of_logits(net.policy.apply(net.features(input.observation)), input.legal_actions)
    }
}

impl<O: Optimizer> Learn for DiscoAgent<O> {
    type State = DiscoState<O::State<DiscoNet>>;
    type Store = ();
    type Metrics = DiscoMetrics;

    fn init(&self, key: Key) -> Self::State {
        let shape: DiscoShape = self.rule.shape();
        let task = (&self.observation, self.actions);
        let sizes = (self.model_units, shape.predictions);
        let net = DiscoNet::init(key, task, &self.networks, sizes);
        DiscoState {
            target: net.clone(),
            net: Optimized::new(&self.optimizer, net),
            memory: DiscoMemory::new(&shape),
        }
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> DiscoNet {
        state.net.params.clone()
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), DiscoMetrics) {
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, &cx));
        let steps = Steps { weights, axes: cx.axes.clone() };
        // Outside the gradient, which treats the targets as constants.
        let seen = self.seen(&state, &rollout);
        let values = DiscoValues::of(&seen, self.discount, self.lambda);
        let rule = self.rule.tensors();
        let (targets, memory) = rule.targets(&seen, &values, state.memory, &steps);
        let targets = DiscoTargets {
            policy: of_legal(targets.policy, rollout.input.legal_actions),
            ..targets
        };
        let target = incremental_update(&state.net.params, &state.target, self.target_step);
        // This device's mean: the gradient is averaged over the devices.
        let steps = Steps { axes: Axes::none(), ..steps };
        let (net, metrics) = state.net.gradient_step(&self.optimizer, &cx, |net| {
            let outputs = self.masked(net.apply_all(rollout.input.observation), &rollout);
            let losses = targets.losses(&outputs, &seen, &values);
            let DiscoLosses { policy, y, z, next_policy, value } = losses;
            let loss = steps.mean(policy + y + z + next_policy + self.value_cost * value);
            let entropy = steps.mean(Categorical::new(outputs.logits).entropy());
            (
                loss,
                DiscoMetrics { loss, losses: tree_map(&losses, |each| steps.mean(each)), entropy },
            )
        });
        (DiscoState { net, target, memory }, (), cx.mean(metrics))
    }

    fn staleness(&self) -> Staleness {
        Staleness::Corrected
    }
}
