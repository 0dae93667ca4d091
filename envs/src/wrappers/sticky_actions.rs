//! Sticky actions: actions that are sometimes repeated.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, report_at};

/// With some probability takes the action of the step before in place of the one that is given, Machado et al., "Revisiting
/// the Arcade Learning Environment", 2018. The first action of an episode is always taken. What was repeated may be
/// repeated again. gymnasium's `StickyAction`. Where some actions are not legal, the repeated one may be such.
#[derive(Clone, Debug)]
pub struct StickyActions<E> {
    environment: E,
    probability: f64,
    /// The line that made the wrapper.
    made: Loc,
}

/// The state of [`StickyActions`].
#[derive(Tree, Clone, Copy)]
pub struct StickyActionsState<S: Tree> {
    /// State of the wrapped environment.
    pub environment: S,
    /// The action that the last step took; zeros before the first.
    pub last_action: Tensor,
    /// True if there was a step in this episode. `bool[]`
    pub begun: Tensor,
}

impl<E: Environment> StickyActions<E> {
    /// Wraps an environment; `probability` is in [0, 1).
    #[track_caller]
    pub fn new(environment: E, probability: f64) -> Self {
        StickyActions { environment, probability, made: Loc::caller() }
    }

    fn first(&self, environment: E::State) -> StickyActionsState<E::State> {
        let action = self.environment.action_space().ty();
        let last_action = zeros(action.dtype, action.shape);
        StickyActionsState { environment, last_action, begun: constant(false) }
    }
}

impl<E: Environment> Environment for StickyActions<E> {
    type State = StickyActionsState<E::State>;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> Self::State {
        if !(0.0..1.0).contains(&self.probability) {
            let message = format!("expected a probability in [0, 1), got {}", self.probability);
            report_at(self.made, "sticky_actions", message, &[]);
        }
        self.first(self.environment.initial_state(key))
    }

    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<E::Observation>) {
        let [draw, key] = key.split_into();
        let repeats = state.begun & draw.bernoulli([], self.probability);
        let action = select(repeats, state.last_action, action);
        let (environment, timestep) =
            checked_step(&self.environment, state.environment, action, key);
        let begun = constant(true);
        (StickyActionsState { environment, last_action: action, begun }, timestep)
    }

    fn observe(&self, state: Self::State) -> E::Observation {
        self.environment.observe(state.environment)
    }

    forward!(environment, |state| &state.environment);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        self.first(self.environment.next_episode(finished.environment, key))
    }
}
