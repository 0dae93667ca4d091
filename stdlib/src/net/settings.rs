//! Settings of networks: the fields of an experiment's `[agent]` table that select them.

use super::ActorCriticShape;
use crate::nn::{Activation, ConvNet, Initializer, ResidualNet};
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of torso: the network from observations to the features that policy and value share.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Torso {
    /// The observations are the features, without a torso.
    #[default]
    None,
    /// Layers of convolutions, for images.
    Conv,
    /// Sections of residual blocks, for images.
    Residual,
}

/// The memory of an actor-critic, and the sharing of the network by several agents.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Core {
    /// Units of an LSTM between torso and hidden layers. None: there is no LSTM.
    #[schemars(range(min = 1, max = 65_536))]
    pub lstm: Option<usize>,
    /// If true, the agents of an environment share one network. Observations are [N, ..], and an
    /// action has N choices with the same number of values. Each agent makes one choice, from its
    /// row of the observation, and the value is the sum of the agents' values.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parameter_sharing: bool,
}

/// The networks of an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Networks {
    /// The network that sees the observations, shared by policy and value: `none`, or for images
    /// `conv` (layers of convolutions) or `residual` (sections of residual blocks).
    pub torso: Torso,
    /// Channels, side of the window and stride of each layer of `conv`.
    #[schemars(length(min = 1, max = 64), inner(inner(range(min = 1, max = 65_536))))]
    #[schemars(extend("x-must" = "have the channels, the side of the window and the stride of each of 1 to 64 layers, all from 1 to 65536, such as [[16, 8, 4], [32, 4, 2]]"))]
    pub convs: Vec<[usize; 3]>,
    /// Channels of each section of `residual`.
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 65_536)))]
    #[schemars(extend("x-must" = "name 1 to 64 sections of 1 to 65536 channels each"))]
    pub sections: Vec<usize>,
    /// Units of the last layer of a torso, which is dense.
    #[schemars(range(min = 1, max = 65_536))]
    pub features: usize,
    /// Units of each hidden layer after the torso, for both policy and value.
    #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
    #[schemars(extend("x-must" = "name at most 64 layers of 1 to 65536 units each"))]
    pub hidden: Vec<usize>,
    /// Function after each hidden layer. Convolutions and the dense layer of a torso use max(x, 0).
    pub activation: Activation,
    /// If true, each layer except a network's last is followed by layer normalisation, before its
    /// activation.
    pub layer_norm: bool,
}

/// Two hidden layers. The torsos, if chosen, are those in IMPALA (Espeholt et al. 2018).
impl Default for Networks {
    fn default() -> Self {
        Networks {
            torso: Torso::None,
            convs: ConvNet::IMPALA.to_vec(),
            sections: ResidualNet::IMPALA.to_vec(),
            features: 256,
            hidden: vec![64, 64],
            activation: Activation::Tanh,
            layer_norm: false,
        }
    }
}

impl Networks {
    /// The shape of an actor-critic with these networks.
    #[must_use]
    pub fn shape(&self, weights: Initializer, core: Core, feedback: bool) -> ActorCriticShape {
        ActorCriticShape { networks: self.clone(), weights, core, feedback }
    }

    /// Checks that the torso supports these observations.
    ///
    /// # Errors
    /// Returns the reason, with the setting's name, if it does not.
    pub fn check(&self, observation: &Space) -> Result<(), String> {
        self.fit(observation).map_err(|problem| {
            let torso = format!("{:?}", self.torso).to_lowercase();
            format!("agent.torso = {torso}: {problem}")
        })
    }

    /// [`Networks::check`] with errors that do not name the setting.
    pub(crate) fn fit(&self, observation: &Space) -> Result<(), String> {
        if self.torso == Torso::None {
            return Ok(());
        }
        let shape = observation.shape();
        let &[mut height, mut width, _] = &shape[..] else {
            return Err(format!(
                "convolutions see images [height, width, channels], and observations are {shape:?}"
            ));
        };
        if self.torso == Torso::Residual && self.layer_norm {
            return Err(
                "its blocks have no layer normalisation: layer_norm is for `none` and `conv`"
                    .to_owned(),
            );
        }
        if self.torso == Torso::Conv {
            for (layer, &[_, side, stride]) in self.convs.iter().enumerate() {
                if side > height.min(width) {
                    return Err(format!(
                        "layer {layer} has windows of {side} by {side}, and its input is {height} by {width}"
                    ));
                }
                let places = |extent: usize| (extent - side) / stride.max(1) + 1;
                (height, width) = (places(height), places(width));
            }
        }
        Ok(())
    }
}
