//! MuZero's networks with planes as states: convolutions and residual blocks in place of dense
//! layers (Schrittwieser et al. 2020, appendix F).
//!
//! A state is f32 `[H, W, P]`, at the resolution of the torso's last layer, with elements in [0,
//! 1]. An action is one or more planes that are concatenated with the planes of the state.

use super::MuZeroSettings;
use super::network::{mlp, unit_range_of};
use crate::net::{Networks, Torso, scaled};
use crate::nn::{Conv2d, ConvNet, Initializer, Mlp, ResidualBlock, ResidualNet, ResidualSection};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Number of planes after a head's convolution, before its dense layers.
const HEAD_PLANES: usize = 2;

/// The form of an action's planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionPlanes {
    /// One plane, 1 in the action's cell. There is one action per cell, and at most one more, which
    /// passes and has a plane of zeros.
    Cells,
    /// One plane, 1 in the action's column. There is one action per column.
    Columns,
    /// One plane per action: all 1 for the action taken, and all 0 for the others, as for Atari in
    /// the paper.
    Tiled,
}

impl ActionPlanes {
    /// The form for `actions` actions. `image` and `state` are height and width of observation and
    /// state. Cells and columns are meaningful only if the two are equal.
    #[must_use]
    pub fn of(actions: usize, image: [usize; 2], state: [usize; 2]) -> ActionPlanes {
        let [height, width] = state;
        let cells = height * width;
        if image == state && (actions == cells || actions == cells + 1) {
            ActionPlanes::Cells
        } else if image == state && actions == width {
            ActionPlanes::Columns
        } else {
            ActionPlanes::Tiled
        }
    }

    /// Number of planes for `actions` actions.
    #[must_use]
    pub fn count(self, actions: usize) -> usize {
        match self {
            ActionPlanes::Cells | ActionPlanes::Columns => 1,
            ActionPlanes::Tiled => actions,
        }
    }

    /// The planes of an action, one-hot, f32 `[A]`, for a state of this height and width. f32 `[H,
    /// W, count]`
    #[track_caller]
    pub fn planes(self, action: Tensor, [height, width]: [usize; 2]) -> Tensor {
        match self {
            ActionPlanes::Cells => {
                action.slice_axis(0, 0..height * width).reshape([height, width, 1])
            }
            ActionPlanes::Columns => action.reshape([1, width, 1]).broadcast_to([height, width, 1]),
            ActionPlanes::Tiled => {
                let actions = action.len();
                action.reshape([1, 1, actions]).broadcast_to([height, width, actions])
            }
        }
    }
}

/// Convolutions of a torso, without its final dense layer.
#[derive(Tree, Clone)]
pub enum PlanesTorso {
    /// Layers of convolutions, the torso [`Torso::Conv`].
    Conv {
        /// Convolutions, in the order of application.
        convs: Vec<Conv2d>,
    },
    /// Sections of residual blocks, the torso [`Torso::Residual`].
    Residual {
        /// Sections, in the order of application.
        sections: Vec<ResidualSection>,
    },
}

impl PlanesTorso {
    /// New convolutions for images `[height, width, channels]`, and the shape `[H, W, C]` of their
    /// planes.
    #[track_caller]
    fn init(key: Key, image: [usize; 3], networks: &Networks) -> (PlanesTorso, [usize; 3]) {
        let weights = Initializer::lecun_normal();
        let Networks { convs, sections, .. } = networks;
        match networks.torso {
            Torso::Residual => {
                let keys = key.split_n(sections.len());
                let (sections, form) = ResidualNet::layers(&keys, image, sections, weights);
                (PlanesTorso::Residual { sections }, form)
            }
            Torso::Conv | Torso::None => {
                let keys = key.split_n(convs.len());
                let (convs, form) = ConvNet::layers(&keys, image, convs, weights);
                (PlanesTorso::Conv { convs }, form)
            }
        }
    }

    /// Non-negative planes of an image: f32 `[height, width, channels]` to `[H, W, C]`. A u8 image
    /// is scaled to at most 1.
    #[track_caller]
    fn apply(&self, image: Tensor) -> Tensor {
        let image = scaled(image);
        match self {
            PlanesTorso::Conv { convs } => convs.iter().fold(image, |x, conv| conv.apply(x).relu()),
            PlanesTorso::Residual { sections } => {
                sections.iter().fold(image, |x, section| section.apply(x)).relu()
            }
        }
    }
}

/// A convolution to few planes, followed by dense layers.
#[derive(Tree, Clone)]
pub struct PlanesHead {
    /// Convolution with windows of one cell.
    pub conv: Conv2d,
    /// Dense layers from the flattened planes to the outputs.
    pub dense: Mlp,
}

impl PlanesHead {
    /// The outputs for a state, f32 `[H, W, P]` to `[outputs]`.
    #[track_caller]
    pub fn apply(&self, state: Tensor) -> Tensor {
        self.dense.apply(self.conv.apply(state).relu().flatten())
    }
}

/// Networks of representation, dynamics and prediction, with convolutions.
#[derive(Tree, Clone)]
pub struct PlanesNetwork {
    /// Observation to planes.
    pub torso: PlanesTorso,
    /// The torso's planes to the state's planes.
    pub representation: Conv2d,
    /// Residual blocks after `representation`.
    pub representation_blocks: Vec<ResidualBlock>,
    /// State and planes of the action to the difference that is added to the state.
    pub dynamics: Conv2d,
    /// Residual blocks after `dynamics`.
    pub dynamics_blocks: Vec<ResidualBlock>,
    /// Planes after the dynamics to logits of the reward's bins.
    pub reward: PlanesHead,
    /// State to logits of the actions.
    pub policy: PlanesHead,
    /// State to logits of the value's bins.
    pub value: PlanesHead,
    /// The form of an action's planes.
    #[tree(fixed)]
    pub action_planes: ActionPlanes,
}

/// A new convolution that keeps the resolution, with windows of `side` by `side`.
#[track_caller]
fn same(key: Key, inputs: usize, outputs: usize, side: usize) -> Conv2d {
    let weights = Initializer::lecun_normal();
    Conv2d::init(key, inputs, outputs, [side; 2], [1; 2], Padding::Same, weights)
}

impl PlanesNetwork {
    /// New networks, for observations that the torso supports. Weights are drawn LeCun normal, but
    /// the last layers of the heads are 0.
    #[track_caller]
    pub fn init(key: Key, observation: &Space, actions: usize, settings: &MuZeroSettings) -> Self {
        let MuZeroSettings { networks, planes, blocks, head_hidden, .. } = settings;
        let (planes, blocks) = (*planes, *blocks);
        let image = <[usize; 3]>::try_from(observation.shape()).unwrap_or([1; 3]);
        let keys = key.split_n(8);
        let (torso, [height, width, channels]) = PlanesTorso::init(keys.at(0), image, networks);
        let action_planes = ActionPlanes::of(actions, [image[0], image[1]], [height, width]);
        let both = planes + action_planes.count(actions);
        let residual = |i: usize| -> Vec<ResidualBlock> {
            let keys = keys.at(i).split_n(2 * blocks.max(1));
            let conv = |k: usize| same(keys.at(k), planes, planes, 3);
            let block = |k: usize| ResidualBlock { first: conv(2 * k), second: conv(2 * k + 1) };
            (0..blocks).map(block).collect()
        };
        let head = |i: usize, outputs: usize| {
            let [conv, dense] = keys.at(i).split_into();
            let sizes = (HEAD_PLANES * height * width, &head_hidden[..], outputs);
            PlanesHead {
                conv: same(conv, planes, HEAD_PLANES, 1),
                dense: mlp(dense, networks, sizes, Initializer::Zeros),
            }
        };
        PlanesNetwork {
            torso,
            representation: same(keys.at(1), channels, planes, 3),
            representation_blocks: residual(2),
            dynamics: same(keys.at(3), both, planes, 3),
            dynamics_blocks: residual(4),
            reward: head(5, settings.reward_support().bins()),
            policy: head(6, actions),
            value: head(7, settings.value_support().bins()),
            action_planes,
        }
    }

    /// The state of an observation. f32 `[H, W, P]`
    #[track_caller]
    pub fn represent(&self, observation: Tensor) -> Tensor {
        let x = self.representation.apply(self.torso.apply(observation));
        unit_range_of(self.representation_blocks.iter().fold(x, |x, block| block.apply(x)))
    }

    /// The state after an action, f32 `[H, W, P]`, and the logits of the reward's bins. `action` is
    /// one-hot, f32 `[A]`.
    #[track_caller]
    pub fn step(&self, state: Tensor, action: Tensor) -> (Tensor, Tensor) {
        let resolution = [state.dim(0), state.dim(1)];
        let both = concatenate(&[state, self.action_planes.planes(action, resolution)], -1);
        let x = state + self.dynamics.apply(both);
        let x = self.dynamics_blocks.iter().fold(x, |x, block| block.apply(x));
        (unit_range_of(x), self.reward.apply(x))
    }

    /// Logits of the actions, f32 `[A]`, and of the value's bins.
    #[track_caller]
    pub fn predict(&self, state: Tensor) -> (Tensor, Tensor) {
        (self.policy.apply(state), self.value.apply(state))
    }
}
