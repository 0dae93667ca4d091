//! The actor-critic network that the agents share: a torso, a recurrent core, a policy and a value.

use super::{Input, Mode, Networks, Torso};
use crate::distributions::{Categorical, Distribution, MultiCategorical, MultivariateNormalDiag};
use crate::nn::{Activation, ConvNet, Initializer, Linear, Lstm, LstmState, Mlp, ResidualNet};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Memory of an [`ActorCritic`] of an episode; `None` if it has no recurrent core.
pub type Memory = Option<LstmState>;

/// Policy and value networks: observation to features (the torso), features and memory to features (the core), features
/// to policy and to value.
#[derive(Tree, Clone)]
pub struct ActorCritic {
    /// The torso, if it is [`Torso::Conv`].
    pub conv: Option<ConvNet>,
    /// The torso, if it is [`Torso::Residual`].
    pub residual: Option<ResidualNet>,
    /// The recurrent core, if there is one.
    pub core: Option<Lstm>,
    /// The action space, if the core sees the last action and reward beside the features.
    #[tree(fixed)]
    pub feedback: Option<Space>,
    /// Number of values of each element of a multi-discrete action; `None` for other actions.
    #[tree(fixed)]
    pub counts: Option<Vec<usize>>,
    /// Policy network: features to the logits of the actions, or to the mean of a Gaussian. The logits of a multi-discrete
    /// action are those of its elements, one behind the other.
    pub actor: Mlp,
    /// Value network: features to one value.
    pub critic: Mlp,
    /// The logarithm of the Gaussian's standard deviation, f32 `[A]`; `None` for discrete actions.
    pub log_std: Option<Tensor>,
}

/// The parts of an [`ActorCritic`].
#[derive(Clone, Debug)]
pub struct ActorCriticShape {
    /// Torso and hidden layers.
    pub networks: Networks,
    /// Initializer of the torso's weights.
    pub weights: Initializer,
    /// Units of the recurrent core after the torso; `None` for a network that remembers nothing.
    pub lstm: Option<usize>,
    /// True if the core sees the last action (one-hot if discrete, each element if multi-discrete) and the last reward, clipped to [-1, 1].
    pub feedback: bool,
}

impl ActorCritic {
    /// New networks for these spaces. The weights of policy and value are orthogonal: of scale sqrt(2) in the hidden layers,
    /// 0.01 in the policy's last, 1 in the value's last, as in "What Matters In On-Policy Reinforcement Learning?"
    /// (Andrychowicz et al. 2021). A torso that cannot see such observations is an error.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        action: &Space,
        shape: &ActorCriticShape,
    ) -> ActorCritic {
        let ActorCriticShape { networks, weights, lstm, feedback } = shape;
        if let Err(message) = networks.fit(observation) {
            let _ = fail("ActorCritic::init", message, &[], observation.ty());
        }
        let (outputs, log_std) = match action {
            Space::Discrete { n } => (*n, None),
            Space::MultiDiscrete { counts, .. } => (counts.iter().sum(), None),
            Space::Box { .. } | Space::Pixels { .. } => {
                (action.elements(), Some(zeros(F32, [action.elements()])))
            }
        };
        // The first two keys are those of policy and value.
        let [torso_key, core_key] = [2, 3].map(|i| key.fold_in(i));
        let image = || <[usize; 3]>::try_from(observation.shape()).unwrap_or([1; 3]);
        let (mut conv, mut residual) = (None, None);
        let Networks { torso, convs, sections, features, hidden } = networks;
        let mut features = *features;
        match torso {
            Torso::None => features = observation.elements(),
            Torso::Conv => {
                conv = Some(ConvNet::init(torso_key, image(), convs, features, *weights));
            }
            Torso::Residual => {
                let net = ResidualNet::init(torso_key, image(), sections, features, *weights);
                residual = Some(net);
            }
        }
        let feedback = (*feedback && lstm.is_some()).then(|| action.clone());
        let core = lstm.map(|units| {
            let seen = features + feedback.as_ref().map_or(0, |_| 1 + outputs);
            features = units;
            Lstm::init(core_key, seen, units)
        });
        let mut sizes = vec![features];
        sizes.extend(hidden);
        // The hidden layers of both networks are alike: as a batch they are half as much to compile.
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
            Mlp { layers, activation: Activation::Tanh }
        };
        ActorCritic {
            conv,
            residual,
            core,
            feedback,
            counts: match action {
                Space::MultiDiscrete { counts, .. } => Some(counts.clone()),
                _ => None,
            },
            actor: mlp(0, outputs, 0.01),
            critic: mlp(1, 1, 1.0),
            log_std,
        }
    }

    /// The features of one step's input, f32 `[F]`: those of the torso, and the last action and reward if the core sees
    /// them. A u8 observation is scaled to at most 1.
    #[track_caller]
    pub fn features(&self, input: &Input) -> Tensor {
        let observation = match input.observation.dtype() {
            U8 => input.observation.astype(F32) / 255.0,
            _ => input.observation,
        };
        let features = match (&self.conv, &self.residual) {
            (Some(net), _) => net.apply(observation),
            (None, Some(net)) => net.apply(observation),
            (None, None) => observation.flatten(),
        };
        let Some(action) = &self.feedback else {
            return features;
        };
        let reward = input.last_reward.clamp(-1.0, 1.0).expand_dims(0);
        let action = match action {
            // The first step of an episode has no last action.
            Space::Discrete { n } => (arange(*n).eq(input.last_action) & !input.first).astype(F32),
            Space::MultiDiscrete { counts, .. } => {
                let element = |(i, &n): (usize, &usize)| arange(n).eq(input.last_action.index(i));
                let taken: Vec<Tensor> = counts.iter().enumerate().map(element).collect();
                (concatenate(&taken, 0) & !input.first).astype(F32)
            }
            Space::Box { .. } | Space::Pixels { .. } => input.last_action.astype(F32).flatten(),
        };
        concatenate(&[features, reward, action], 0)
    }

    /// A step of the core, if there is one: the memory after it, and features that depend on it. f32 `[F]`
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

    /// [`ActorCritic::remember`] along a rollout of one lane: the memory after each of its steps, `[T, ..]`, and features f32
    /// `[T, F]`. `begins` is bool `[T]`, true for a step that begins an episode, before which nothing is remembered.
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

    /// The policy for features f32 `[F]`. Actions that are not legal (bool `[A]`, for discrete ones) have probability 0; of
    /// multi-discrete actions the values of the elements, one behind the other.
    #[track_caller]
    pub fn policy(&self, features: Tensor, legal: Option<Tensor>) -> Policy {
        let output = self.actor.apply(features);
        if let Some(log_std) = self.log_std {
            return Policy::Gaussian(MultivariateNormalDiag::from_log_std(output, log_std));
        }
        let logits = match legal {
            Some(legal) => select(legal, output, f64::NEG_INFINITY),
            None => output,
        };
        match &self.counts {
            Some(counts) => Policy::MultiDiscrete(MultiCategorical::new(logits, counts)),
            None => Policy::Discrete(Categorical::new(logits)),
        }
    }

    /// The value for features f32 `[F]`. f32 `[]`
    #[track_caller]
    pub fn value(&self, features: Tensor) -> Tensor {
        self.critic.apply(features).index(0)
    }
}

/// The distribution of actions in one step.
pub enum Policy {
    /// A distribution of discrete actions.
    Discrete(Categorical),
    /// A distribution of multi-discrete actions, i32 `[K]`, whose elements are independent.
    MultiDiscrete(MultiCategorical),
    /// A distribution of continuous actions, f32 `[A]`.
    Gaussian(MultivariateNormalDiag),
}

impl Policy {
    /// Chooses an action: draws one, or takes the most probable one.
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
        }
    }

    /// The logarithm of an action's probability (density). f32 `[]`
    #[track_caller]
    pub fn log_prob(&self, action: Tensor) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.log_prob(action),
            Policy::MultiDiscrete(policy) => policy.log_prob(action),
            Policy::Gaussian(policy) => policy.log_prob(action),
        }
    }

    /// The entropy, in nats. f32 `[]`
    #[track_caller]
    pub fn entropy(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.entropy(),
            Policy::MultiDiscrete(policy) => policy.entropy(),
            Policy::Gaussian(policy) => policy.entropy(),
        }
    }

    /// The most probable action.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.mode(),
            Policy::MultiDiscrete(policy) => policy.mode(),
            Policy::Gaussian(policy) => policy.mode(),
        }
    }
}
