//! The actor-critic network that the agents share: what sees the observation, what remembers, a policy and a value.

use crate::distributions::{Categorical, Distribution, MultivariateNormalDiag};
use crate::nn::{Activation, ConvNet, Initializer, Linear, Lstm, LstmState, Mlp, ResidualNet};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// How observations become the features that policy and value share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Torso {
    /// They are the features.
    #[default]
    None,
    /// [`ConvNet`], for images: channels, side of the window and stride of each layer, then dense features. [`Torso::dqn`]
    /// and [`Torso::impala`] are published ones.
    Conv {
        /// Of each layer.
        convs: Vec<(usize, usize, usize)>,
        /// Units of the dense layer.
        features: usize,
    },
    /// [`ResidualNet`], for images: the channels of each section, then dense features.
    Residual {
        /// Of each section.
        sections: Vec<usize>,
        /// Units of the dense layer.
        features: usize,
    },
}

impl Torso {
    /// That of [`ConvNet::impala`].
    pub fn impala() -> Torso {
        Torso::Conv { convs: ConvNet::IMPALA.to_vec(), features: 256 }
    }

    /// That of [`ConvNet::dqn`].
    pub fn dqn() -> Torso {
        Torso::Conv { convs: ConvNet::DQN.to_vec(), features: 512 }
    }

    /// That of [`ResidualNet::impala`].
    pub fn impala_deep() -> Torso {
        Torso::Residual { sections: ResidualNet::IMPALA.to_vec(), features: 256 }
    }

    /// Whether it can see such observations.
    ///
    /// # Errors
    /// Why not, for images that are none or too small.
    pub fn check(&self, observation: &Space) -> Result<(), String> {
        let shape = observation.shape();
        let (Torso::Conv { .. } | Torso::Residual { .. }) = self else {
            return Ok(());
        };
        let &[mut height, mut width, _] = shape else {
            return Err(format!(
                "convolutions see images [height, width, channels], and observations are {shape:?}"
            ));
        };
        if let Torso::Conv { convs, .. } = self {
            for (layer, &(_, side, stride)) in convs.iter().enumerate() {
                if side > height.min(width) {
                    return Err(format!(
                        "layer {layer} has windows of {side} by {side}, and what it sees is {height} by {width}"
                    ));
                }
                let places = |extent: usize| (extent - side) / stride.max(1) + 1;
                (height, width) = (places(height), places(width));
            }
        }
        Ok(())
    }
}

/// What a recurrent network remembers of an environment's episode: one state, or none where it has no core.
pub type Memory = Vec<LstmState>;

/// The memory at the start of an episode, for a core of so many units.
#[track_caller]
pub fn no_memory(lstm: Option<usize>) -> Memory {
    lstm.map(LstmState::zeros).into_iter().collect()
}

/// Policy and value networks: observation to features (the torso), features and memory to features (the core), features
/// to policy and to value.
#[derive(Tree, Clone)]
pub struct ActorCritic {
    /// The torso, if it is of this kind: one or none.
    pub conv: Vec<ConvNet>,
    /// The torso, if it is of this kind: one or none.
    pub residual: Vec<ResidualNet>,
    /// The core: one or none.
    pub core: Vec<Lstm>,
    /// Features to the logits of the actions, or to the mean of a Gaussian.
    pub actor: Mlp,
    /// Features to one value.
    pub critic: Mlp,
    /// The logarithm of the Gaussian's standard deviation, f32 `[A]`; none for discrete actions.
    pub log_std: Vec<Tensor>,
}

impl ActorCritic {
    /// `hidden` are the units of the layers that policy and value each have between features and output. Their weights are
    /// orthogonal: of scale sqrt(2) in the hidden layers, 0.01 in the policy's last, 1 in the value's last, as in "What
    /// Matters In On-Policy Reinforcement Learning?" (Andrychowicz et al. 2021). Those of the torso begin as `weights` says.
    /// `lstm` are the units of the core. An error, where the torso cannot see such observations.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        action: &Space,
        torso: &Torso,
        weights: Initializer,
        lstm: Option<usize>,
        hidden: &[usize],
    ) -> ActorCritic {
        if let Err(message) = torso.check(observation) {
            let _ = fail("ActorCritic::init", message, &[], observation.ty());
        }
        let (outputs, log_std) = match action {
            Space::Discrete { n } => (*n, Vec::new()),
            Space::Box { .. } | Space::Pixels { .. } => {
                (action.elements(), vec![zeros(F32, [action.elements()])])
            }
        };
        // The first two keys are those of policy and value.
        let [torso_key, core_key] = [2, 3].map(|i| key.fold_in(i));
        let image = || <[usize; 3]>::try_from(observation.shape()).unwrap_or([1; 3]);
        let (mut conv, mut residual) = (Vec::new(), Vec::new());
        let mut features = match torso {
            Torso::None => observation.elements(),
            Torso::Conv { convs, features } => {
                conv.push(ConvNet::init(torso_key, image(), convs, *features, weights));
                *features
            }
            Torso::Residual { sections, features } => {
                residual.push(ResidualNet::init(torso_key, image(), sections, *features, weights));
                *features
            }
        };
        let mut core = Vec::new();
        if let Some(units) = lstm {
            core.push(Lstm::init(core_key, features, units));
            features = units;
        }
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
            actor: mlp(0, outputs, 0.01),
            critic: mlp(1, 1, 1.0),
            log_std,
        }
    }

    /// What the torso makes of an observation, f32 `[F]`; u8 is scaled to at most 1.
    #[track_caller]
    pub fn features(&self, observation: Tensor) -> Tensor {
        let seen = match observation.dtype() {
            U8 => observation.astype(F32) / 255.0,
            _ => observation,
        };
        match (self.conv.first(), self.residual.first()) {
            (Some(net), _) => net.apply(seen),
            (None, Some(net)) => net.apply(seen),
            (None, None) => seen.flatten(),
        }
    }

    /// A step of the core, if there is one: the memory after it, and features that depend on it. f32 `[F]`
    #[track_caller]
    pub fn remember(&self, memory: Memory, features: Tensor) -> (Memory, Tensor) {
        match (self.core.first(), memory.first()) {
            (Some(core), Some(&state)) => {
                let state = core.step(state, features);
                (vec![state], state.h)
            }
            _ => (memory, features),
        }
    }

    /// Torso and core: the memory after an observation, and the features that policy and value are of, f32 `[F]`.
    #[track_caller]
    pub fn see(&self, memory: Memory, observation: Tensor) -> (Memory, Tensor) {
        self.remember(memory, self.features(observation))
    }

    /// [`ActorCritic::remember`] along a trajectory: the memory after each of its steps, `[T, ..]`, and features f32
    /// `[T, F]`. `begins` is `bool[T]`, whether a step begins an episode, before which nothing is remembered.
    #[track_caller]
    pub fn remember_all(
        &self,
        memory: Memory,
        features: Tensor,
        begins: Tensor,
    ) -> (Memory, Tensor) {
        match (self.core.first(), memory.first()) {
            (Some(core), Some(&state)) => {
                let states = core.unroll(state, features, begins);
                (vec![states], states.h)
            }
            _ => (memory, features),
        }
    }

    /// The policy, of features.
    #[track_caller]
    pub fn policy(&self, features: Tensor) -> Policy {
        let output = self.actor.apply(features);
        match self.log_std.first() {
            None => Policy::Discrete(Categorical::new(output)),
            Some(log_std) => {
                Policy::Gaussian(MultivariateNormalDiag::from_log_std(output, *log_std))
            }
        }
    }

    /// The value, of features. f32 `[]`
    #[track_caller]
    pub fn value(&self, features: Tensor) -> Tensor {
        self.critic.apply(features).index(0)
    }
}

/// What the policy says of one observation.
pub enum Policy {
    /// Of discrete actions.
    Discrete(Categorical),
    /// Of continuous ones, f32 `[A]`.
    Gaussian(MultivariateNormalDiag),
}

impl Policy {
    /// Draws an action.
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.sample(key),
            Policy::Gaussian(policy) => policy.sample(key),
        }
    }

    /// The logarithm of an action's probability (density). f32 `[]`
    #[track_caller]
    pub fn log_prob(&self, action: Tensor) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.log_prob(action),
            Policy::Gaussian(policy) => policy.log_prob(action),
        }
    }

    /// The entropy, in nats. f32 `[]`
    #[track_caller]
    pub fn entropy(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.entropy(),
            Policy::Gaussian(policy) => policy.entropy(),
        }
    }

    /// The most probable action.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        match self {
            Policy::Discrete(policy) => policy.mode(),
            Policy::Gaussian(policy) => policy.mode(),
        }
    }
}
