//! Settings of agents: the structs that an experiment's `[agent]` table becomes.

use super::{ActorCriticShape, AnyAgent, RolloutShape};
use crate::Number;
use crate::nn::{Activation, ConvNet, Initializer, ResidualNet};
use crate::optim::{
    Adam, Chain, ClipByGlobalNorm, Flatten, Optimizer, chain, clip_by_global_norm, flatten,
};
use podracer_envs::{AnyEnvironment, Space};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The task that an agent is made for: spaces, and the length of the run.
#[derive(Clone)]
pub struct Task {
    /// The environment's observations.
    pub observation: Space,
    /// The environment's actions.
    pub action: Space,
    /// Iterations of the run: what schedules count to.
    pub iterations: usize,
    /// The environment itself, for agents that search with it; `None` where it steps on the host.
    pub model: Option<AnyEnvironment>,
}

impl Task {
    /// Checks that an i32, as optimizers and schedules have it, counts all gradient steps of the run.
    ///
    /// # Errors
    /// More gradient steps, as a sentence that names the setting.
    pub fn check_gradient_steps(&self, per_iteration: usize) -> Result<(), String> {
        let most = i32::MAX as usize;
        match self.iterations.checked_mul(per_iteration) {
            Some(steps) if steps <= most => Ok(()),
            _ => Err(format!(
                "train.steps makes {} iterations of {per_iteration} gradient steps each: a run counts at most {most} gradient steps, which are {} iterations",
                self.iterations,
                most / per_iteration.max(1)
            )),
        }
    }
}

/// The settings of an agent: one struct whose fields, with their documentation, defaults and ranges, are what an experiment
/// may set. Everything that reads settings (files, `--set`, checks, `podracer describe`, resumed runs) reads this struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the settings of an agent",
    note = "derive `Clone, Default, Serialize, Deserialize, JsonSchema` for the struct, and implement `AgentSettings`"
)]
pub trait AgentSettings:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + 'static
{
    /// True for an agent that searches a tree. On a CPU its program is compiled for the many small loops of that.
    const SEARCHES: bool = false;

    /// The agent for a task.
    ///
    /// # Errors
    /// Settings that do not fit the task, or each other, as a sentence that names them.
    fn agent(&self, task: &Task) -> Result<AnyAgent, String>;

    /// Checks that the agent can learn from the rollouts of `devices` devices, each of the shape `rollout`.
    ///
    /// # Errors
    /// Numbers that do not divide, and a replay that is too small for the lanes, as a sentence that names the settings.
    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        let _ = (rollout, devices);
        Ok(())
    }
}

/// An optimizer of gradients of a bounded norm, with all parameters as one vector.
pub type Clipped<O> = Flatten<Chain<ClipByGlobalNorm, O>>;

/// Adam on gradients of a bounded norm, with all parameters as one vector.
pub type ActorCriticOptimizer = Clipped<Adam>;

/// The optimizer behind gradients that are scaled down to this global norm.
pub(super) fn clipped<O: Optimizer>(max_gradient_norm: Number, optimizer: O) -> Clipped<O> {
    flatten(chain(clip_by_global_norm(max_gradient_norm), optimizer))
}

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

/// The networks of an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Networks {
    /// The network that sees the observations, for policy and value alike: `none`, or for images `conv` (layers of convolutions) or
    /// `residual` (sections of residual blocks).
    pub torso: Torso,
    /// Channels, side of the window and stride of each layer of `conv`.
    #[schemars(length(min = 1, max = 64), inner(inner(range(min = 1, max = 65_536))))]
    #[schemars(extend("x-must" = "have the channels, the side of the window and the stride of each of 1 to 64 layers, all from 1 to 65536, such as [[16, 8, 4], [32, 4, 2]]"))]
    pub convs: Vec<[usize; 3]>,
    /// Channels of each section of `residual`.
    #[schemars(length(min = 1, max = 64), inner(range(min = 1, max = 65_536)))]
    #[schemars(extend("x-must" = "name 1 to 64 sections of 1 to 65536 channels each"))]
    pub sections: Vec<usize>,
    /// Units of the dense layer that ends a torso.
    #[schemars(range(min = 1, max = 65_536))]
    pub features: usize,
    /// Units of each hidden layer after the torso, of policy and value alike.
    #[schemars(length(max = 64), inner(range(min = 1, max = 65_536)))]
    #[schemars(extend("x-must" = "name at most 64 layers of 1 to 65536 units each"))]
    pub hidden: Vec<usize>,
    /// Function after each hidden layer. Convolutions and the dense layer of a torso have max(x, 0).
    pub activation: Activation,
    /// If true, each layer but a network's last one is followed by layer normalisation, before its activation.
    pub layer_norm: bool,
}

/// Two hidden layers; the torsos, where one is chosen, are those of IMPALA (Espeholt et al. 2018).
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
    /// The shape of an actor-critic; `lstm` units of a core, or no core.
    #[must_use]
    pub fn shape(
        &self,
        weights: Initializer,
        lstm: Option<usize>,
        feedback: bool,
    ) -> ActorCriticShape {
        ActorCriticShape {
            networks: self.clone(),
            weights,
            lstm,
            feedback,
            parameter_sharing: false,
        }
    }

    /// Checks that the torso can see such observations.
    ///
    /// # Errors
    /// The reason why not, with the setting's name.
    pub fn check(&self, observation: &Space) -> Result<(), String> {
        self.fit(observation).map_err(|problem| {
            let torso = format!("{:?}", self.torso).to_lowercase();
            format!("agent.torso = {torso}: {problem}")
        })
    }

    /// [`Networks::check`] with errors that name no setting.
    pub(super) fn fit(&self, observation: &Space) -> Result<(), String> {
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
