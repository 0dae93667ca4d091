//! The actor-critic network that the agents share: a torso, a recurrent core, a policy and a value.

use super::{Core, Networks, TorsoNet, last_action};
use crate::distributions::{Categorical, Distribution, MultiCategorical, MultivariateNormalDiag};
use crate::learn::{Input, Mode, of_legal};
use crate::nn::{Initializer, Linear, Lstm, LstmState, Mlp};
use podracer_dsl::prelude::*;
use podracer_dsl::{fail, helper};
use podracer_envs::Space;

/// Memory of an [`ActorCritic`] within an episode; `None` if it has no recurrent core.
pub type Memory = Option<LstmState>;

/// Policy and value networks. The torso maps an observation to features, the core maps features and
/// memory to features, and two networks map these to policy and value.
#[derive(Tree, Clone)]
pub struct ActorCritic {
    /// The torso: observation to features.
    pub torso: TorsoNet,
    /// The recurrent core, if there is one.
    pub core: Option<Lstm>,
    /// True if the core sees the last action and reward in addition to the features.
    #[tree(fixed)]
    pub feedback: bool,
    /// The action space.
    #[tree(fixed)]
    pub action: Space,
    /// Number of agents that share the network; `None` for one agent, which sees the whole observation.
    #[tree(fixed)]
    pub agents: Option<usize>,
    /// Policy network: features to the logits of the actions, or to the mean of a Gaussian. A
    /// multi-discrete action has the logits of its elements, concatenated; a dict has the outputs
    /// of its parts, concatenated.
    pub actor: Mlp,
    /// Value network: features to one value.
    pub critic: Mlp,
    /// The logarithm of the Gaussian's standard deviation, f32 `[A]`, concatenated over the boxes
    /// of a dict; `None` for discrete actions.
    pub log_std: Option<Tensor>,
}

/// The parts of an [`ActorCritic`].
#[derive(Clone, Debug)]
pub struct ActorCriticShape {
    /// Torso and hidden layers.
    pub networks: Networks,
    /// Initializer of the torso's weights.
    pub weights: Initializer,
    /// The recurrent core after the torso, and the sharing of the network by several agents.
    pub core: Core,
    /// True if the core sees the last action (one-hot if discrete, each element if multi-discrete) and the last reward, clipped to [-1, 1].
    pub feedback: bool,
}

impl ActorCriticShape {
    /// Checks that the networks support these observations and actions.
    ///
    /// # Errors
    /// Returns the reason, with the setting's name, if they do not.
    pub fn check(&self, observation: &Space, action: &Space) -> Result<(), String> {
        let (observation, _, _) = self.of_one_agent(observation, action)?;
        self.networks.check(&observation)
    }

    /// The spaces of one agent, and the number of agents if several share the network.
    fn of_one_agent(
        &self,
        observation: &Space,
        action: &Space,
    ) -> Result<(Space, Space, Option<usize>), String> {
        if !self.core.parameter_sharing {
            return Ok((observation.clone(), action.clone(), None));
        }
        if self.core.lstm.is_some() {
            return Err("agent.parameter_sharing: agents that share a network have no memory: leave agent.lstm out".to_owned());
        }
        let shape = observation.shape();
        match (observation, &shape[..], action.counts()) {
            (Space::Box { .. }, &[agents, ref row @ ..], counts @ &[count, ..])
                if agents == counts.len() && counts.iter().all(|&other| other == count) =>
            {
                Ok((Space::unbounded(row), Space::discrete(count), Some(agents)))
            }
            _ => Err(format!(
                "agent.parameter_sharing: each of N agents decides about one element of an action of N choices of as many values by one row of an \
                 observation [N, ..]; observations are {shape:?}, and actions are {action:?}"
            )),
        }
    }
}

impl ActorCritic {
    /// New networks for these spaces. The weights of policy and value are orthogonal. Their scale
    /// is sqrt(2) in the hidden layers, 0.01 in the policy's last layer, and 1 in the value's last
    /// layer, as in "What Matters In On-Policy Reinforcement Learning?" (Andrychowicz et al. 2021).
    /// A torso that does not support the observations is an error.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        action: &Space,
        shape: &ActorCriticShape,
    ) -> ActorCritic {
        let ActorCriticShape { networks, weights, core: Core { lstm, .. }, feedback } = shape;
        let of_one = shape.of_one_agent(observation, action);
        let (observation, one_action, agents) = of_one.unwrap_or_else(|message| {
            let _ = fail("ActorCritic::init", message, &[], observation.ty());
            (observation.clone(), action.clone(), None)
        });
        let outputs = one_action.flatdim();
        let numbers = gaussian_elements(action);
        let log_std = (numbers > 0).then(|| zeros(F32, [numbers]));
        // The first two keys are for policy and value.
        let [torso_key, core_key] = [2, 3].map(|i| key.fold_in(i));
        let (torso, mut features) = TorsoNet::init(torso_key, &observation, networks, *weights);
        let feedback = *feedback && lstm.is_some();
        let core = lstm.map(|units| {
            let seen = features + if feedback { 1 + outputs } else { 0 };
            features = units;
            Lstm::init(core_key, seen, units)
        });
        let mut sizes = vec![features];
        sizes.extend(&networks.hidden);
        // The hidden layers of both networks have equal shapes: as a batch they take half as long
        // to compile.
        let (hidden, last) = vmap(key.split_n(2), |key| {
            let keys = key.split_n(sizes.len());
            let weight = Initializer::orthogonal(2f64.sqrt());
            let layer =
                |(i, pair): (usize, &[usize])| Linear::init(keys.at(i), pair[0], pair[1], weight);
            let layers: Vec<Linear> = sizes.windows(2).enumerate().map(layer).collect();
            (layers, keys.at(sizes.len() - 1))
        });
        let inputs = sizes.last().copied().unwrap_or_default();
        let mlp = |i: usize, outputs: usize, scale: f64| {
            let mut layers = tree_map(&hidden, |x| x.index(i));
            let key = Key::from_words(last.words().index(i));
            layers.push(Linear::init(key, inputs, outputs, Initializer::orthogonal(scale)));
            let mlp = Mlp { layers, norms: Vec::new(), activation: networks.activation };
            if networks.layer_norm { mlp.with_layer_norm() } else { mlp }
        };
        ActorCritic {
            torso,
            core,
            feedback,
            action: action.clone(),
            agents,
            actor: mlp(0, outputs, 0.01),
            critic: mlp(1, 1, 1.0),
            log_std,
        }
    }

    /// The features of one step's input, f32 `[F]`, or `[N, F]` for `N` agents: the torso's
    /// features, and the last action and reward if the core sees them.
    #[track_caller]
    pub fn features(&self, input: &Input) -> Tensor {
        let features =
            self.of_each_agent(input.observation, |observation| self.torso.apply(observation));
        if !self.feedback {
            return features;
        }
        let reward = input.last_reward.clamp(-1.0, 1.0).expand_dims(0);
        concatenate(&[features, reward, last_action(&self.action, input)], 0)
    }

    /// A step of the core, if there is one: the memory after it, and the core's features. f32 `[F]`
    #[track_caller]
    pub fn remember(&self, memory: Memory, features: Tensor) -> (Memory, Tensor) {
        match (&self.core, memory) {
            (Some(core), Some(state)) => {
                let state = core.step(state, features);
                (Some(state), state.h)
            }
            (_, memory) => (memory, features),
        }
    }

    /// Torso and core: the memory after a step's input, and the features for policy and value, f32 `[F]`.
    #[track_caller]
    pub fn see(&self, memory: Memory, input: &Input) -> (Memory, Tensor) {
        self.remember(memory, self.features(input))
    }

    /// [`ActorCritic::remember`] along a rollout of one lane: the memory after each of its steps,
    /// `[T, ..]`, and features f32 `[T, F]`. `begins` is bool `[T]`, true for a step that begins an
    /// episode; the memory is reset before it.
    #[track_caller]
    pub fn remember_all(
        &self,
        memory: Memory,
        features: Tensor,
        begins: Tensor,
    ) -> (Memory, Tensor) {
        match (&self.core, memory) {
            (Some(core), Some(state)) => {
                let states = core.unroll(state, features, begins);
                (Some(states), states.h)
            }
            (_, memory) => (memory, features),
        }
    }

    /// The policy for features f32 `[F]`. Actions that are not legal (bool `[A]`, for discrete
    /// actions) have probability 0. For multi-discrete actions, `legal` concatenates the values of
    /// the elements.
    #[track_caller]
    pub fn policy(&self, features: Tensor, legal: Option<Tensor>) -> Policy {
        let output = self.of_each_agent(features, |features| self.actor.apply(features)).flatten();
        match (&self.action, self.log_std) {
            (Space::Dict { .. }, log_std) => {
                let (mut outputs, mut numbers) = (0, 0);
                let parts = self.action.parts().map(|(_, space)| {
                    let output = following(output, &mut outputs, space.flatdim());
                    let log_std =
                        log_std.map(|all| following(all, &mut numbers, gaussian_elements(space)));
                    Policy::of_part(space, output, log_std)
                });
                Policy::Parts(self.action.clone(), parts.collect())
            }
            (space, log_std) => Policy::of_part(space, of_legal(output, legal), log_std),
        }
    }

    /// The value for features f32 `[F]`. If several agents share the network, it is the sum of
    /// their values, as in "Value-Decomposition Networks For Cooperative Multi-Agent Learning"
    /// (Sunehag et al. 2018). f32 `[]`
    #[track_caller]
    pub fn value(&self, features: Tensor) -> Tensor {
        let values = self.of_each_agent(features, |features| self.critic.apply(features).index(0));
        if self.agents.is_some() { values.sum() } else { values }
    }

    /// The output of a network for each row of the input if several agents share it, and otherwise
    /// for the input as a whole.
    #[track_caller]
    fn of_each_agent(&self, input: Tensor, network: impl Fn(Tensor) -> Tensor) -> Tensor {
        let _helper = helper();
        match self.agents {
            Some(_) => vmap(input, network),
            None => network(input),
        }
    }
}

/// Number of elements of an action that have a Gaussian policy.
fn gaussian_elements(space: &Space) -> usize {
    match space {
        Space::Discrete { .. } | Space::MultiDiscrete { .. } => 0,
        Space::Box { .. } | Space::Pixels { .. } => space.elements(),
        Space::Dict { .. } => space.parts().map(|(_, part)| gaussian_elements(part)).sum(),
    }
}

/// The next `elements` elements of a vector from `begin` on; `begin` moves to their end.
#[track_caller]
fn following(vector: Tensor, begin: &mut usize, elements: usize) -> Tensor {
    *begin += elements;
    vector.slice_axis(0, *begin - elements..*begin)
}

/// The sum of numbers.
#[track_caller]
fn total(numbers: impl Iterator<Item = Tensor>) -> Tensor {
    numbers.reduce(|sum, number| sum + number).unwrap_or_else(|| scalar(0.0))
}

/// The distribution of actions in one step.
pub enum Policy {
    /// A distribution of discrete actions.
    Discrete(Categorical),
    /// A distribution of multi-discrete actions, i32 `[K]`, with independent elements.
    MultiDiscrete(MultiCategorical),
    /// A distribution of continuous actions, f32 `[A]`.
    Gaussian(MultivariateNormalDiag),
    /// A distribution of dict actions, f32 `[k]`: their space, and the distribution of each part.
    /// The parts are independent.
    Parts(Space, Vec<Policy>),
}

impl Policy {
    /// The policy for actions without parts, from a network's output.
    #[track_caller]
    fn of_part(space: &Space, output: Tensor, log_std: Option<Tensor>) -> Policy {
        match (space, log_std) {
            (Space::Discrete { .. }, _) => Policy::Discrete(Categorical::new(output)),
            (Space::MultiDiscrete { counts, .. }, _) => {
                Policy::MultiDiscrete(MultiCategorical::new(output, counts))
            }
            (_, log_std) => {
                let log_std = log_std.unwrap_or_else(|| zeros(F32, output.shape()));
                Policy::Gaussian(MultivariateNormalDiag::from_log_std(output, log_std))
            }
        }
    }

    /// Chooses an action: a draw, or the most probable action.
    #[track_caller]
    pub fn choose(&self, mode: Mode, key: Key) -> Tensor {
        match mode {
            Mode::Explore => self.sample(key),
            Mode::Greedy => self.mode(),
        }
    }

    /// Draws an action.
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.sample(key),
            Policy::MultiDiscrete(policy) => policy.sample(key),
            Policy::Gaussian(policy) => policy.sample(key),
            Policy::Parts(_, parts) => {
                let keys = key.split_n(parts.len());
                let drawn = parts.iter().enumerate().map(|(i, part)| part.sample(keys.at(i)));
                Space::join(&drawn.collect::<Vec<_>>())
            }
        }
    }

    /// The logarithm of an action's probability (density). f32 `[]`
    #[track_caller]
    pub fn log_prob(&self, action: Tensor) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.log_prob(action),
            Policy::MultiDiscrete(policy) => policy.log_prob(action),
            Policy::Gaussian(policy) => policy.log_prob(action),
            Policy::Parts(space, parts) => {
                let values = space.split(action).into_iter().zip(parts);
                total(values.map(|(value, part)| part.log_prob(value)))
            }
        }
    }

    /// The entropy, in nats. f32 `[]`
    #[track_caller]
    pub fn entropy(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.entropy(),
            Policy::MultiDiscrete(policy) => policy.entropy(),
            Policy::Gaussian(policy) => policy.entropy(),
            Policy::Parts(_, parts) => total(parts.iter().map(Policy::entropy)),
        }
    }

    /// The most probable action.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.mode(),
            Policy::MultiDiscrete(policy) => policy.mode(),
            Policy::Gaussian(policy) => policy.mode(),
            Policy::Parts(_, parts) => {
                Space::join(&parts.iter().map(Policy::mode).collect::<Vec<_>>())
            }
        }
    }
}
