//! Optimizers of agents as settings: [`AdamSettings`], and [`OptimizerSettings`] for agents with a
//! choice of optimizer.

use crate::Number;
use crate::optim::{
    Adam, AdamState, Chain, ClipByGlobalNorm, Flatten, Optimizer, RmsProp, RmsPropState, Schedule,
    Sgd, SgdState, adam, chain, clip_by_global_norm, flatten, rmsprop, sgd,
};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// An optimizer with gradients clipped by their global norm, and all parameters as one vector.
pub type Clipped<O> = Flatten<Chain<ClipByGlobalNorm, O>>;

/// Adam with gradients clipped by their global norm, and all parameters as one vector.
pub type ActorCriticOptimizer = Clipped<Adam>;

/// The optimizer applied to gradients that are scaled down to this global norm.
pub(crate) fn clipped<O: Optimizer>(max_gradient_norm: Number, optimizer: O) -> Clipped<O> {
    flatten(chain(clip_by_global_norm(max_gradient_norm), optimizer))
}

/// Settings that describe an optimizer with a learning rate that may fall over a run.
pub trait DescribesOptimizer {
    /// The described optimizer.
    type Optimizer: Optimizer;

    /// The optimizer with this learning rate instead of the rate in the settings.
    fn optimizer(&self, learning_rate: Schedule) -> Self::Optimizer;

    /// Learning rate at the start of a run.
    fn learning_rate(&self) -> Number;

    /// True if the learning rate falls linearly to zero over the run.
    fn anneals(&self) -> bool;

    /// Learning-rate schedule over `steps` gradient steps; constant if `steps` is `None`.
    fn schedule(&self, steps: Option<usize>) -> Schedule {
        match steps {
            Some(steps) if self.anneals() => Schedule::linear(self.learning_rate(), 0.0, steps),
            _ => Schedule::constant(self.learning_rate()),
        }
    }

    /// The optimizer in an iteration (i32 `[]`) of a run of `iterations` iterations, for agents
    /// with a varying number of gradient steps per iteration.
    #[track_caller]
    fn at(&self, iteration: Tensor, iterations: usize) -> Self::Optimizer {
        let rate = self.learning_rate();
        if !self.anneals() {
            return self.optimizer(rate.into());
        }
        let done = iteration.astype(F32) / iterations.max(1) as f64;
        self.optimizer(Number::from(rate * (1.0 - done).maximum(0.0)).into())
    }
}

/// Settings of Adam with clipped gradients, flattened into the settings of an agent. A setting that
/// an experiment omits has the value in the agent's `Default`. serde alone would use the defaults
/// below, as for every flattened struct.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AdamSettings {
    /// Adam's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// Adam's epsilon.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub adam_epsilon: Number,
    /// Greatest global norm of the gradients; greater gradients are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
}

impl AdamSettings {
    /// The default settings with this constant learning rate.
    pub fn new(learning_rate: impl Into<Number>) -> Self {
        AdamSettings { learning_rate: learning_rate.into(), ..AdamSettings::default() }
    }
}

/// The optimizer of CleanRL's PPO, with a constant learning rate.
impl Default for AdamSettings {
    fn default() -> Self {
        AdamSettings {
            learning_rate: 2.5e-4.into(),
            anneal_learning_rate: false,
            adam_epsilon: 1e-5.into(),
            max_gradient_norm: 0.5.into(),
        }
    }
}

impl DescribesOptimizer for AdamSettings {
    type Optimizer = ActorCriticOptimizer;

    fn optimizer(&self, learning_rate: Schedule) -> ActorCriticOptimizer {
        clipped(self.max_gradient_norm, adam(learning_rate).eps(self.adam_epsilon))
    }

    fn learning_rate(&self) -> Number {
        self.learning_rate
    }

    fn anneals(&self) -> bool {
        self.anneal_learning_rate
    }
}

/// Optimizers that the settings of some agents choose from, such as
/// [`Impala`](crate::agents::Impala) and [`A2c`](crate::agents::A2c).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// RMSProp, as in the papers of IMPALA and A3C.
    #[default]
    Rmsprop,
    /// Adam (Kingma and Ba 2015).
    Adam,
    /// Gradient descent, without momentum.
    Sgd,
}

/// Settings of the optimizer of an agent, flattened into the agent's settings `A`, which define the
/// defaults.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default, bound = "A: OptimizerDefaults")]
#[schemars(bound = "A: OptimizerDefaults")]
pub struct OptimizerSettings<A> {
    /// The optimizer: `rmsprop`, `adam` or `sgd`.
    pub optimizer: OptimizerKind,
    /// The optimizer's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// The optimizer's epsilon, outside the square root; in IMPALA's RMSProp it is inside.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub epsilon: Number,
    /// Decay of RMSProp's mean square.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rmsprop_decay: Number,
    /// Greatest global norm of the gradients; greater gradients are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// The agent that defines the defaults.
    #[serde(skip)]
    pub agent: PhantomData<A>,
}

/// Settings of an agent with [`OptimizerSettings`].
pub trait OptimizerDefaults: Sized {
    /// True if RMSProp's epsilon is added inside the square root, as in the original code of Atari
    /// agents; otherwise outside, as in PyTorch.
    const EPSILON_IN_ROOT: bool;

    /// Number added inside Adam's square root. It must be above 0 if gradients flow through Adam's
    /// steps: the root of 0 has no derivative.
    const ADAM_EPSILON_IN_ROOT: f64 = 0.0;

    /// The default settings of the optimizer.
    fn optimizer() -> OptimizerSettings<Self>;
}

impl<A: OptimizerDefaults> Default for OptimizerSettings<A> {
    fn default() -> Self {
        A::optimizer()
    }
}

impl<A: OptimizerDefaults> DescribesOptimizer for OptimizerSettings<A> {
    type Optimizer = Clipped<ChosenOptimizer>;

    fn learning_rate(&self) -> Number {
        self.learning_rate
    }

    fn anneals(&self) -> bool {
        self.anneal_learning_rate
    }

    fn optimizer(&self, learning_rate: Schedule) -> Clipped<ChosenOptimizer> {
        let &OptimizerSettings { rmsprop_decay, epsilon, max_gradient_norm, .. } = self;
        let optimizer = match self.optimizer {
            OptimizerKind::Rmsprop => ChosenOptimizer::RmsProp(RmsProp {
                eps_in_sqrt: A::EPSILON_IN_ROOT,
                ..rmsprop(learning_rate).decay(rmsprop_decay).eps(epsilon)
            }),
            OptimizerKind::Adam => {
                let adam = adam(learning_rate).eps(epsilon);
                ChosenOptimizer::Adam(adam.eps_root(A::ADAM_EPSILON_IN_ROOT))
            }
            OptimizerKind::Sgd => ChosenOptimizer::Sgd(sgd(learning_rate)),
        };
        clipped(max_gradient_norm, optimizer)
    }
}

/// The optimizer chosen by the settings.
#[derive(Clone, Debug)]
pub enum ChosenOptimizer {
    /// The optimizer is RMSProp.
    RmsProp(RmsProp),
    /// The optimizer is Adam.
    Adam(Adam),
    /// The optimizer is gradient descent.
    Sgd(Sgd),
}

/// State of [`ChosenOptimizer`]: its optimizer's state, under the same key paths.
#[derive(Tree, Clone)]
pub enum ChosenState<P: Tree> {
    /// [`RmsPropState`].
    RmsProp {
        /// Number of updates made, i32 `[]`.
        count: Tensor,
        /// Mean of the squared gradients.
        nu: P,
        /// Mean of the gradients, if centered.
        mu: Option<P>,
        /// Trace of steps, with momentum.
        trace: Option<P>,
    },
    /// [`AdamState`].
    Adam {
        /// Number of updates made, i32 `[]`.
        count: Tensor,
        /// Mean of the gradients.
        mu: P,
        /// Mean of the gradients' squares.
        nu: P,
    },
    /// State of gradient descent, [`SgdState`].
    Sgd {
        /// Number of updates made, i32 `[]`.
        count: Tensor,
        /// Trace of gradients, with momentum.
        trace: Option<P>,
    },
}

impl<P: Tree> From<RmsPropState<P>> for ChosenState<P> {
    fn from(RmsPropState { count, nu, mu, trace }: RmsPropState<P>) -> Self {
        ChosenState::RmsProp { count, nu, mu, trace }
    }
}

impl<P: Tree> From<AdamState<P>> for ChosenState<P> {
    fn from(AdamState { count, mu, nu }: AdamState<P>) -> Self {
        ChosenState::Adam { count, mu, nu }
    }
}

impl<P: Tree> From<SgdState<P>> for ChosenState<P> {
    fn from(SgdState { count, trace }: SgdState<P>) -> Self {
        ChosenState::Sgd { count, trace }
    }
}

impl Optimizer for ChosenOptimizer {
    type State<P: Tree> = ChosenState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> ChosenState<P> {
        match self {
            ChosenOptimizer::RmsProp(rmsprop) => rmsprop.init(params).into(),
            ChosenOptimizer::Adam(adam) => adam.init(params).into(),
            ChosenOptimizer::Sgd(sgd) => sgd.init(params).into(),
        }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: ChosenState<P>, params: &P) -> (P, ChosenState<P>) {
        match (self, state) {
            (ChosenOptimizer::RmsProp(rmsprop), ChosenState::RmsProp { count, nu, mu, trace }) => {
                let state = RmsPropState { count, nu, mu, trace };
                let (updates, state) = rmsprop.update(grads, state, params);
                (updates, state.into())
            }
            (ChosenOptimizer::Adam(adam), ChosenState::Adam { count, mu, nu }) => {
                let (updates, state) = adam.update(grads, AdamState { count, mu, nu }, params);
                (updates, state.into())
            }
            (ChosenOptimizer::Sgd(sgd), ChosenState::Sgd { count, trace }) => {
                let (updates, state) = sgd.update(grads, SgdState { count, trace }, params);
                (updates, state.into())
            }
            (_, state) => {
                let message = "the state belongs to another optimizer: each has its own";
                let _ = fail("ChosenOptimizer", message, &[], TensorType::scalar(F32));
                (grads, state)
            }
        }
    }
}
