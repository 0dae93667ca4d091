//! Code that SAC and TD3 share: settings, the critics' gradient step on batches of transitions,
//! actions scaled to [-1, 1], and networks of observations and actions.

use crate::Number;
use crate::learn::{
    AnyAgent, Axes, LearnFromReplay, Optimized, ReplaySettings, Replayed, RolloutShape, Step, Task,
    Transition, Window, Windows, weighted,
};
use crate::losses::l2_loss;
use crate::net::{Networks, TorsoNet};
use crate::nn::{Activation, Ensemble, Fan, Initializer, Law, Mlp};
use crate::optim::{Adam, Flatten, Optimizer, adam, flatten};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_1_SQRT_2;

/// Settings of an actor and critics that learn from a replay.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct OffPolicySettings {
    /// Adam's step size for the actor.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub actor_learning_rate: Number,
    /// Adam's step size for the critics.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub critic_learning_rate: Number,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Step size of an update of the target networks towards the networks.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub polyak: Number,
    /// Number of steps of the returns in the critics' targets.
    #[schemars(range(min = 1, max = 1_000))]
    pub n_step: usize,
    /// The networks of actor and critics, each with its own torso.
    #[serde(flatten)]
    pub networks: Networks,
    /// The replay. Until it holds its minimum of steps, actions are drawn uniformly.
    #[serde(flatten)]
    pub replay: ReplaySettings,
}

impl Default for OffPolicySettings {
    fn default() -> Self {
        OffPolicySettings {
            actor_learning_rate: 3e-4.into(),
            critic_learning_rate: 3e-4.into(),
            discount: 0.99.into(),
            polyak: 0.005.into(),
            n_step: 1,
            networks: Networks {
                hidden: vec![256, 256],
                activation: Activation::Relu,
                ..Networks::default()
            },
            replay: ReplaySettings {
                minimum: 5_000,
                batch: 256,
                // One gradient step per environment step.
                replay_ratio: 256.0,
                ..ReplaySettings::default()
            },
        }
    }
}

impl OffPolicySettings {
    /// Optimizers of actor and critics.
    pub(super) fn optimizers(&self) -> [Flatten<Adam>; 2] {
        [self.actor_learning_rate, self.critic_learning_rate].map(|rate| flatten(adam(rate)))
    }

    /// An agent with its replay, if networks and replay fit the task.
    pub(super) fn replayed<A>(&self, agent: A, task: &Task) -> Result<AnyAgent, String>
    where
        A: LearnFromReplay<Observation = Tensor> + Clone + 'static,
    {
        self.networks.check(&task.observation)?;
        self.replay.check(self.n_step + 1)?;
        Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay, task)))
    }

    /// Checks that the transitions of the lanes fit into the replay.
    pub(super) fn check_rollout(
        &self,
        rollout: RolloutShape,
        devices: usize,
    ) -> Result<(), String> {
        let window = Window { length: self.n_step + 1, period: 1, learnt: 1 };
        self.replay.check_rollout(window, rollout, devices)
    }
}

/// Critics with the state of optimizer `O`.
pub(super) type Critics<O> =
    Optimized<Ensemble<TorsoMlp>, <O as Optimizer>::State<Ensemble<TorsoMlp>>>;

/// A batch of transitions.
pub(super) struct Batch {
    /// The transitions. `[B, ..]`
    pub(super) transitions: Transition,
    /// Weights of their losses, 0 for transitions that are not learnt from. f32 `[B]`
    weights: Tensor,
}

impl Batch {
    /// The transitions over `n` steps at the start of the windows.
    #[track_caller]
    pub(super) fn of(windows: &Windows<Step>, n: usize, discount: Number) -> Batch {
        let Windows { steps, weights, .. } = windows;
        let transitions = vmap(axis(steps.clone(), 1), |steps| steps.transition(n, discount));
        let weights = select(transitions.counts, *weights, 0.0);
        Batch { transitions, weights }
    }

    /// The number of transitions, `B`.
    pub(super) fn len(&self) -> usize {
        self.weights.len()
    }

    /// The mean of losses f32 `[B]`, weighted by the transitions' weights. f32 `[]`
    #[track_caller]
    pub(super) fn mean(&self, losses: Tensor) -> Tensor {
        weighted(losses, Some(self.weights)).mean()
    }
}

/// The results of [`Batch::critic_step`].
#[derive(Tree, Clone, Copy)]
pub(super) struct CriticStep {
    /// Half of the squared errors, summed over the critics and averaged over the batch. f32 `[]`
    pub(super) loss: Tensor,
    /// Mean value of the actions taken. f32 `[]`
    pub(super) value: Tensor,
    /// Mean magnitude of the critics' errors in each transition. f32 `[B]`
    pub(super) priorities: Tensor,
}

impl Batch {
    /// Takes a gradient step of the critics. `errors` returns the critics' errors in each
    /// transition, f32 `[B, K]`, and the mean values of the actions taken, f32 `[B]`.
    #[track_caller]
    pub(super) fn critic_step<O: Optimizer>(
        &self,
        critics: Critics<O>,
        optimizer: &O,
        axes: &Axes,
        errors: impl FnOnce(&Ensemble<TorsoMlp>) -> (Tensor, Tensor),
    ) -> (Critics<O>, CriticStep) {
        critics.gradient_step(optimizer, axes, |critics| {
            let (errors, value) = errors(&critics);
            let loss = self.mean(l2_loss(errors).sum_axis(1));
            let priorities = errors.abs().mean_axis(1);
            (loss, stop_gradient(CriticStep { loss, value: value.mean(), priorities }))
        })
    }
}

/// Numbers that are uniform on [-1, 1], from standard normal numbers: twice the normal distribution
/// function, minus 1.
#[track_caller]
pub(super) fn uniform(noise: Tensor) -> Tensor {
    (noise * FRAC_1_SQRT_2).erf()
}

/// Actions of a bounded box as vectors in [-1, 1], element by element: the outputs of actors and
/// the inputs of critics.
#[derive(Clone, Debug)]
pub struct UnitBox(Space);

impl UnitBox {
    /// The scaling of a space's actions.
    ///
    /// # Errors
    /// Returns a sentence if the space is not a box, or if an element has no finite bounds or equal
    /// bounds.
    pub fn new(space: &Space) -> Result<UnitBox, String> {
        let Space::Box { .. } = space else {
            return Err(format!(
                "expected actions of a box with bounds, got {}",
                match space {
                    Space::Discrete { n, .. } => format!("a choice of one in {n}"),
                    Space::MultiDiscrete { counts, .. } => format!("choices among {counts:?}"),
                    Space::Dict { .. } => "a dict of parts".to_owned(),
                    _ => "an image".to_owned(),
                }
            ));
        };
        for element in 0..space.elements() {
            let (low, high) = space.bounds(element);
            if !(low.is_finite() && high.is_finite() && low < high) {
                return Err(format!(
                    "actions are scaled to their bounds: expected finite bounds, the lower one below the upper one, and element {element} of an action lies in [{low}, {high}]"
                ));
            }
        }
        Ok(UnitBox(space.clone()))
    }

    /// Number of elements of an action, `A`.
    pub fn elements(&self) -> usize {
        self.0.elements()
    }

    /// Centre and half width of each element's interval, f32 `[A]` each.
    fn scale(&self) -> (Tensor, Tensor) {
        let elements = self.0.elements();
        let per_element = |f: fn((f64, f64)) -> f64| {
            let values: Vec<f64> = (0..elements).map(|i| f(self.0.bounds(i))).collect();
            constant_of(&Array::floats(F32, [elements], &values))
        };
        (
            per_element(|(low, high)| low.midpoint(high)),
            per_element(|(low, high)| (high - low) / 2.0),
        )
    }

    /// The action of the space for numbers in [-1, 1], f32 `[A]`.
    #[track_caller]
    pub fn action(&self, unit: Tensor) -> Tensor {
        let (middle, half) = self.scale();
        self.0.clip((middle + half * unit).reshape(self.0.shape()))
    }

    /// The numbers in [-1, 1], f32 `[A]`, of an action of the space.
    #[track_caller]
    pub fn unit(&self, action: Tensor) -> Tensor {
        let (middle, half) = self.scale();
        (action.flatten() - middle) / half
    }
}

/// A torso with dense layers after it: an actor, or a critic, which sees an action in addition to
/// the features.
#[derive(Tree, Clone)]
pub struct TorsoMlp {
    /// Observation to features.
    pub torso: TorsoNet,
    /// Features, and the action if there is one, to the outputs.
    pub mlp: Mlp,
}

impl TorsoMlp {
    /// A new network with `outputs` outputs. It sees `actions` numbers of an action in addition to
    /// the observation (0 for an actor). Weights are uniform up to `1 / sqrt(inputs)`, as in the
    /// implementations of TD3's and SAC's authors; biases begin at 0.
    #[track_caller]
    pub fn init(
        key: Key,
        observation: &Space,
        actions: usize,
        outputs: usize,
        networks: &Networks,
    ) -> TorsoMlp {
        let weights =
            Initializer::VarianceScaling { scale: 1.0 / 3.0, fan: Fan::In, law: Law::Uniform };
        let [torso_key, key] = key.split_into();
        let (torso, features) = TorsoNet::init(torso_key, observation, networks, weights);
        let sizes = [&[features + actions], &networks.hidden[..], &[outputs]].concat();
        let mlp = Mlp::init(key, &sizes, networks.activation, weights, weights);
        TorsoMlp { torso, mlp: if networks.layer_norm { mlp.with_layer_norm() } else { mlp } }
    }

    /// The outputs for an observation, f32 `[outputs]`.
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> Tensor {
        self.mlp.apply(self.torso.apply(observation))
    }

    /// The value of an action in [-1, 1], f32 `[A]`. f32 `[]`
    #[track_caller]
    pub fn value(&self, observation: Tensor, unit: Tensor) -> Tensor {
        let seen = concatenate(&[self.torso.apply(observation), unit], 0);
        self.mlp.apply(seen).index(0)
    }
}
