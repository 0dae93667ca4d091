//! Networks of action values: a torso, then dense layers, with or without noise, as one stream or
//! as two dueling streams. Also the interpretation of their outputs as values.

use super::{Networks, TorsoNet};
use crate::nn::{Activation, Initializer, LayerNorm, Linear, NoisyLinear, dueling};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// A network from observations to action values.
#[derive(Tree, Clone)]
pub struct QNetwork {
    /// From observations to features.
    pub torso: TorsoNet,
    /// From features to action values.
    pub head: QHead,
}

impl QNetwork {
    /// A new network for these observations. Weights without noise are drawn as in flax, LeCun
    /// normal, and biases are 0. A torso that does not support the observations is an error.
    #[track_caller]
    pub fn init(key: Key, observation: &Space, networks: &Networks, head: &QHeadShape) -> QNetwork {
        let [torso_key, head_key] = key.split_into();
        let weights = Initializer::lecun_normal();
        let (torso, features) = TorsoNet::init(torso_key, observation, networks, weights);
        QNetwork { torso, head: QHead::init(head_key, features, networks, head) }
    }

    /// The head's outputs for an observation, as in [`QHead::apply`].
    #[track_caller]
    pub fn apply(&self, observation: Tensor, noise: Option<Key>) -> Tensor {
        self.head.apply(self.torso.apply(observation), noise)
    }

    /// The expected return of each action for an observation. f32 `[A]`
    #[track_caller]
    pub fn mean(&self, observation: Tensor, noise: Option<Key>) -> Tensor {
        self.head.mean(self.apply(observation, noise))
    }
}

/// Forms of action values: the numbers that a network outputs for each action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActionValues {
    /// The expected return. f32 `[A]`
    Expected,
    /// The logits of the return's probabilities at fixed atoms (C51). f32 `[A, n]`
    Categorical {
        /// Number of atoms.
        atoms: usize,
        /// The least atom.
        least: f64,
        /// The greatest atom.
        greatest: f64,
    },
    /// Quantiles of the return (QR-DQN). f32 `[A, n]`
    Quantile {
        /// Number of quantiles.
        quantiles: usize,
    },
}

impl ActionValues {
    /// The atoms of a categorical distribution, evenly spaced. f32 `[n]`
    #[track_caller]
    fn support(atoms: usize, least: f64, greatest: f64) -> Tensor {
        let step = (greatest - least) / atoms.saturating_sub(1).max(1) as f64;
        let atoms: Vec<f32> = (0..atoms).map(|i| (least + i as f64 * step) as f32).collect();
        constant(&atoms[..])
    }

    /// The atoms of [`ActionValues::Categorical`], or the probabilities `(i + 1/2) / n` of the
    /// quantiles of [`ActionValues::Quantile`] (Dabney et al. 2018, lemma 2). f32 `[n]`; `[0]` for
    /// expected values.
    #[track_caller]
    pub fn points(self) -> Tensor {
        match self {
            ActionValues::Expected => zeros(F32, [0]),
            ActionValues::Categorical { atoms, least, greatest } => {
                ActionValues::support(atoms, least, greatest)
            }
            ActionValues::Quantile { quantiles } => {
                let half = 0.5 / quantiles as f64;
                ActionValues::support(quantiles, half, 1.0 - half)
            }
        }
    }

    /// The expected return of each action. f32 `[A]`
    #[track_caller]
    pub fn mean(self, outputs: Tensor) -> Tensor {
        match self {
            ActionValues::Expected => outputs,
            ActionValues::Categorical { .. } => (outputs.softmax(-1) * self.points()).sum_axis(-1),
            ActionValues::Quantile { .. } => outputs.mean_axis(-1),
        }
    }

    /// Number of outputs per action; `None` for a single value without an axis.
    fn outputs(self) -> Option<usize> {
        match self {
            ActionValues::Expected => None,
            ActionValues::Categorical { atoms, .. } => Some(atoms),
            ActionValues::Quantile { quantiles } => Some(quantiles),
        }
    }
}

/// The parts of a [`QHead`].
#[derive(Clone, Debug)]
pub struct QHeadShape {
    /// Number of actions.
    pub actions: usize,
    /// Form of the action values.
    pub values: ActionValues,
    /// True for two streams, for the state's value and for the actions' advantages. They share all
    /// hidden layers except the last.
    pub dueling: bool,
    /// Size of the layers' initial noise, [`NoisyLinear::init`]'s `sigma0`; `None` for layers
    /// without noise.
    pub noise: Option<f64>,
}

/// A dense layer of a [`QHead`].
#[derive(Tree, Clone)]
pub struct QLayer {
    /// Weights and biases.
    pub dense: QDense,
    /// Normalisation of its output; `None` for the last layer, and for layers without
    /// normalisation.
    pub norm: Option<LayerNorm>,
}

/// Weights and biases of a [`QLayer`].
#[derive(Tree, Clone)]
pub enum QDense {
    /// Without noise.
    Linear(Linear),
    /// With noise for exploration.
    Noisy(NoisyLinear),
}

/// Dense layers from features to action values.
#[derive(Tree, Clone)]
pub struct QHead {
    /// Layers that both streams share.
    pub shared: Vec<QLayer>,
    /// Stream of the advantages, or of the action values if there is only one stream.
    pub advantage: Vec<QLayer>,
    /// Stream of the state's value; `None` if the head is not dueling.
    pub value: Option<Vec<QLayer>>,
    /// Form of the action values.
    #[tree(fixed)]
    pub values: ActionValues,
    /// Function after each layer except the last.
    #[tree(fixed)]
    pub activation: Activation,
}

impl QHead {
    /// A new head for `features` features, with the hidden layers of `networks` and the weights of [`QNetwork::init`].
    #[track_caller]
    pub fn init(key: Key, features: usize, networks: &Networks, shape: &QHeadShape) -> QHead {
        let &QHeadShape { actions, values, dueling, noise } = shape;
        let Networks { hidden, activation, layer_norm, .. } = networks;
        let [shared_key, advantage_key, value_key] = key.split_into();
        let outputs = values.outputs().unwrap_or(1);
        let shared = if dueling { hidden.len().saturating_sub(1) } else { hidden.len() };
        let (before, own) = hidden.split_at(shared);
        let seen = before.last().copied().unwrap_or(features);
        let layers = |key: Key, sizes: &[usize], outputs: Option<usize>| {
            let sizes = [sizes, &Vec::from_iter(outputs)].concat();
            let keys = key.split_n(sizes.len());
            let layer = |(i, pair): (usize, &[usize])| {
                let dense = match noise {
                    Some(sigma) => {
                        QDense::Noisy(NoisyLinear::init(keys.at(i), pair[0], pair[1], sigma))
                    }
                    None => {
                        let weights = Initializer::lecun_normal();
                        QDense::Linear(Linear::init(keys.at(i), pair[0], pair[1], weights))
                    }
                };
                let last = outputs.is_some() && i + 2 == sizes.len();
                let norm = (*layer_norm && !last).then(|| LayerNorm::init(pair[1]));
                QLayer { dense, norm }
            };
            sizes.windows(2).enumerate().map(layer).collect::<Vec<QLayer>>()
        };
        let stream = |key: Key, last: usize| layers(key, &[&[seen], own].concat(), Some(last));
        QHead {
            shared: layers(shared_key, &[&[features], before].concat(), None),
            advantage: stream(advantage_key, actions * outputs),
            value: dueling.then(|| stream(value_key, outputs)),
            values,
            activation: *activation,
        }
    }

    /// Action values for features f32 `[F]`: f32 `[A]`, or f32 `[A, n]` for distributions
    /// ([`ActionValues`]). Noise is drawn from the key; without a key, layers use their means.
    #[track_caller]
    pub fn apply(&self, features: Tensor, noise: Option<Key>) -> Tensor {
        let _scope = scope("QHead::apply");
        let mut noise = noise.map(|key| Noise::draw(key, self.noise_inputs()));
        let x = self.stream(&self.shared, self.shared.len(), features, &mut noise);
        let of_actions = |outputs: Tensor| match self.values.outputs() {
            Some(n) => outputs.reshape([outputs.dim(0) / n, n]),
            None => outputs,
        };
        let mut stream =
            |layers: &[QLayer]| of_actions(self.stream(layers, layers.len() - 1, x, &mut noise));
        let advantage = stream(&self.advantage);
        match &self.value {
            Some(value) => dueling(stream(value), advantage),
            None => advantage,
        }
    }

    /// The number of normal draws for the layers' noise.
    fn noise_inputs(&self) -> usize {
        let layers = self.shared.iter().chain(&self.advantage).chain(self.value.iter().flatten());
        let draws = layers.map(|layer| match &layer.dense {
            QDense::Linear(_) => 0,
            QDense::Noisy(layer) => layer.weight.dim(0) + layer.weight.dim(1),
        });
        draws.sum()
    }

    /// The expected return of each action, from the outputs of [`QHead::apply`]. f32 `[A]`
    #[track_caller]
    pub fn mean(&self, outputs: Tensor) -> Tensor {
        self.values.mean(outputs)
    }

    /// A stack of layers with `hidden` hidden layers.
    #[track_caller]
    fn stream(
        &self,
        layers: &[QLayer],
        hidden: usize,
        mut x: Tensor,
        noise: &mut Option<Noise>,
    ) -> Tensor {
        for (i, QLayer { dense, norm }) in layers.iter().enumerate() {
            x = match (dense, &mut *noise) {
                (QDense::Linear(layer), _) => layer.apply(x),
                (QDense::Noisy(layer), Some(noise)) => {
                    let [of_in, of_out] = [0, 1].map(|axis| noise.take(layer.weight.dim(axis)));
                    layer.apply_with(x, of_in, of_out)
                }
                (QDense::Noisy(layer), None) => layer.mean().apply(x),
            };
            if let Some(norm) = norm {
                x = norm.apply(x);
            }
            if i < hidden {
                x = self.activation.apply(x);
            }
        }
        x
    }
}

/// The noise of a head's layers, drawn at once. With separate draws for each layer, random bits
/// were nine tenths of Rainbow's program.
struct Noise {
    /// All numbers, f32 `[n]`.
    all: Tensor,
    /// Number of draws that layers have taken.
    taken: usize,
}

impl Noise {
    /// Draws `n` numbers behind a fence. Without it, XLA's CPU compiler repeats the draws in each
    /// kernel that reads them.
    #[track_caller]
    fn draw(key: Key, n: usize) -> Noise {
        let all = fence(key, |key: Key| NoisyLinear::spread(key.normal([n])));
        Noise { all, taken: 0 }
    }

    /// The next numbers, f32 `[n]`.
    #[track_caller]
    fn take(&mut self, n: usize) -> Tensor {
        let part = self.all.slice(self.taken..self.taken + n);
        self.taken += n;
        part
    }
}
