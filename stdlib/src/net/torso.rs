//! Inputs of networks: the features of observations, and of the last action and reward.

use super::{Networks, Torso};
use crate::learn::Input;
use crate::nn::{ConvNet, Initializer, ResidualNet};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The network from observations to features, chosen by [`Networks::torso`].
#[derive(Tree, Clone)]
pub enum TorsoNet {
    /// No network: the features are the observation's elements.
    Flat,
    /// No network, for an observation that is an integer below `n`: the features are a vector with
    /// 1 at the integer and 0 elsewhere.
    OneHot {
        /// Number of observations.
        #[tree(fixed)]
        n: usize,
    },
    /// A convolutional network, the torso [`Torso::Conv`].
    Conv {
        /// The convolutional network.
        conv: ConvNet,
    },
    /// A residual network, the torso [`Torso::Residual`].
    Residual {
        /// The residual network.
        residual: ResidualNet,
    },
}

impl TorsoNet {
    /// A new network for these observations, and the number of its features. A torso that does not
    /// support the observations is an error.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        networks: &Networks,
        weights: Initializer,
    ) -> (TorsoNet, usize) {
        if let Err(message) = networks.fit(observation) {
            let _ = fail("TorsoNet::init", message, &[], observation.ty());
        }
        let image = || <[usize; 3]>::try_from(observation.shape()).unwrap_or([1; 3]);
        let &Networks { torso, ref convs, ref sections, features, .. } = networks;
        match torso {
            Torso::None => match *observation {
                Space::Discrete { n, .. } => (TorsoNet::OneHot { n }, n),
                _ => (TorsoNet::Flat, observation.elements()),
            },
            Torso::Conv => {
                let net = ConvNet::init(key, image(), convs, features, weights);
                let conv = if networks.layer_norm { net.with_layer_norm() } else { net };
                (TorsoNet::Conv { conv }, features)
            }
            Torso::Residual => {
                let residual = ResidualNet::init(key, image(), sections, features, weights);
                (TorsoNet::Residual { residual }, features)
            }
        }
    }

    /// The features of one observation, f32 `[F]`. A u8 observation is scaled to at most 1.
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> Tensor {
        let observation = scaled(observation);
        match self {
            TorsoNet::Flat => observation.flatten(),
            TorsoNet::OneHot { n } => observation.one_hot(*n),
            TorsoNet::Conv { conv } => conv.apply(observation),
            TorsoNet::Residual { residual } => residual.apply(observation),
        }
    }
}

/// An observation with u8 pixels scaled to at most 1; other observations are unchanged.
#[track_caller]
pub(crate) fn scaled(observation: Tensor) -> Tensor {
    match observation.dtype() {
        U8 => observation.astype(F32) / 255.0,
        _ => observation,
    }
}

/// The last action as features, f32 `[space.flatdim()]`: one-hot if it is discrete, each element if
/// it is multi-discrete, each part of a dict. Numbers are clipped, as the environment took them. The
/// features are zeros at an episode's first step, which has no last action.
#[track_caller]
pub fn last_action(space: &Space, input: &Input) -> Tensor {
    select(input.first, 0.0, space.flatten(space.clip_action(input.last_action)))
}
