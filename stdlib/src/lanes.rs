//! Parts that all loops of agents and environments share: keys, and the path from a step's outcome
//! to the next step's input.

use crate::counter::next_count;
use crate::learn::{Axes, Cx, Input, Iterated, Learn, checked_metrics};
use podracer_dsl::prelude::*;

/// Number of keys per step: to act, to step, and to begin the next episode. A lane's key of an
/// iteration is split into the next iteration's key and the keys of the iteration's steps.
pub(crate) const KEYS: usize = 3;

/// The part of a run's state that is equal on all learner devices.
#[derive(Tree, Clone)]
pub struct Learner<S: Tree> {
    /// State of the agent.
    pub agent: S,
    /// The key for later learning.
    pub key: Key,
    /// Number of iterations done. i32 `[]`
    pub iteration: Tensor,
}

/// The keys of a run: for its parameters, its learner, and its lanes.
#[track_caller]
pub(crate) fn run_keys(key: Key) -> [Key; 3] {
    let keys = key.split_n(3);
    [0, 1, 2].map(|i| keys.at(i))
}

/// The keys of the lane with a global index: for its first state, and for all of its steps.
#[track_caller]
pub(crate) fn lane_keys(lanes_key: Key, index: Tensor) -> [Key; 2] {
    let keys = lanes_key.fold_in(index).split_n(2);
    [0, 1].map(|i| keys.at(i))
}

impl<S: Tree> Learner<S> {
    /// The learner at the start of a run.
    #[track_caller]
    pub(crate) fn new<A: Learn<State = S>>(agent: &A, params_key: Key, key: Key) -> Self {
        Learner { agent: agent.init(params_key), key, iteration: scalar(0) }
    }

    /// One iteration; `step` is [`Learn::iterate`] or [`Learn::learn`], with its remaining
    /// arguments bound.
    #[track_caller]
    pub(crate) fn iterate<A: Learn<State = S>, W: Tree>(
        self,
        store: A::Store,
        axes: &Axes,
        step: impl FnOnce(S, A::Store, Cx) -> Iterated<A, W>,
    ) -> (Self, A::Store, A::Metrics, W) {
        let [key, cx_key] = self.key.split_into();
        let cx = Cx { key: cx_key, iteration: self.iteration, axes: axes.clone() };
        let before = (self.agent.spec(), store.spec());
        let learning = part("the agent's learning");
        let (agent, store, metrics, with) = step(self.agent, store, cx);
        drop(learning);
        let agent = expect_types("learn(..).state", agent, &before.0);
        let store = expect_types("learn(..).store", store, &before.1);
        let metrics = checked_metrics(metrics);
        let iteration = next_count(self.iteration);
        (Learner { agent, key, iteration }, store, metrics, with)
    }
}

/// The outcome of a lane's last step, as part of the next [`Input`].
#[derive(Tree, Clone, Copy)]
pub struct Feedback {
    /// Value of [`Input::last_action`].
    pub last_action: Tensor,
    /// Value of [`Input::last_reward`]. f32 `[]`
    pub last_reward: Tensor,
    /// Value of [`Input::first`]. bool `[]`
    pub first: Tensor,
}

impl Feedback {
    /// The feedback before a lane's first step, with actions of this type.
    #[track_caller]
    pub fn begin(action: &TensorType) -> Feedback {
        Feedback {
            last_action: zeros(action.dtype, action.shape.clone()),
            last_reward: scalar(0.0),
            first: constant(true),
        }
    }

    /// The feedback after a step of one lane.
    #[track_caller]
    pub fn after(action: Tensor, reward: Tensor, done: Tensor) -> Feedback {
        Feedback {
            last_action: select(done, action.zeros_like(), action),
            last_reward: select(done, 0.0, reward),
            first: done,
        }
    }

    /// The input of the next step.
    pub fn input<O: Tree>(self, observation: O, legal_actions: Option<Tensor>) -> Input<O> {
        let Feedback { last_action, last_reward, first } = self;
        Input { observation, legal_actions, last_action, last_reward, first }
    }
}
