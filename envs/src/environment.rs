//! What an environment is.

use crate::space::Space;
use crate::wrappers::{AutoReset, TimeLimit, WithStatistics};
use podracer_dsl::prelude::*;

/// What a step gives.
#[derive(Tree, Clone, Copy)]
pub struct TimeStep<O: Tree = Tensor> {
    /// What the environment shows after the step; at an episode's end the final one, before any reset.
    pub observation: O,
    /// `f32[]`.
    pub reward: Tensor,
    /// `bool[]`: the episode ended by itself. Nothing follows, so its value is 0.
    pub terminated: Tensor,
    /// `bool[]`: the episode was cut off from outside, by a time limit. What would have followed has a value, that of
    /// `observation`. Never true together with `terminated`.
    pub truncated: Tensor,
}

impl<O: Tree> TimeStep<O> {
    /// A step of an environment that cuts no episode off by itself.
    #[track_caller]
    pub fn new(observation: O, reward: Tensor, terminated: Tensor) -> Self {
        TimeStep { observation, reward, terminated, truncated: constant(false) }
    }

    /// `bool[]`: whether the episode is over, one way or the other.
    #[track_caller]
    pub fn done(&self) -> Tensor {
        self.terminated | self.truncated
    }

    /// `f32[]`: what the value of `observation` counts: `gamma`, and 0 where terminated. A truncated episode goes on in
    /// expectation, so there it is `gamma`.
    #[track_caller]
    pub fn discount(&self, gamma: f64) -> Tensor {
        select(self.terminated, 0.0, gamma)
    }
}

/// An environment, one at a time: `vmap` makes batches.
///
/// Act on [`observe`](Environment::observe) of the state, learn from the [`TimeStep`]: under
/// [`auto_reset`](Environment::auto_reset) the former already shows the next episode while the latter still shows the
/// end of the last one.
pub trait Environment: Clone + 'static {
    /// All that the next step depends on. Scalar fields batch best.
    type State: Tree;

    /// What the agent sees.
    type Observation: Tree;

    /// The first state of an episode.
    fn initial_state(&self, key: Key) -> Self::State;

    /// One step. `action` has the type that [`action_space`](Environment::action_space) says.
    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<Self::Observation>);

    /// What the agent sees in a state.
    fn observe(&self, state: Self::State) -> Self::Observation;

    /// The type and bounds of the observation; of its first leaf, if it is a tree of several.
    fn observation_space(&self) -> Space;

    /// The type and bounds of the action.
    fn action_space(&self) -> Space;

    /// The actions that are allowed in a state: bool `[n]`, true where allowed, for a discrete action space of `n`
    /// values. At least one is true wherever an episode goes on. `None` if every action of the space is always allowed;
    /// whether there is a mask must not depend on the state.
    fn legal_actions(&self, state: &Self::State) -> Option<Tensor> {
        let _ = state;
        None
    }

    /// Whether `truncated` can ever be true. An environment that says it cannot spares agents the last observations of
    /// episodes, from which they would bootstrap.
    fn truncates(&self) -> bool {
        true
    }

    /// The first state of the episode after `finished`. [`AutoReset`] calls it. Something that outlives episodes, such
    /// as statistics, goes on from `finished` here; an environment has nothing of the kind.
    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        let _ = finished;
        self.initial_state(key)
    }

    /// Cuts episodes off after `steps` steps, as `truncated`.
    fn time_limit(self, steps: usize) -> TimeLimit<Self>
    where
        Self: Sized,
    {
        TimeLimit::new(self, steps)
    }

    /// Keeps the return and length of the running and of the last finished episode in the state.
    fn with_statistics(self) -> WithStatistics<Self>
    where
        Self: Sized,
    {
        WithStatistics::new(self)
    }

    /// Begins the next episode in the step that ends one. State and observation types stay the same.
    fn auto_reset(self) -> AutoReset<Self>
    where
        Self: Sized,
    {
        AutoReset::new(self)
    }
}
