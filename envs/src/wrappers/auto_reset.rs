//! Automatic resets: the next episode begins in the step that ends one.

use crate::checked::{checked_legal_actions, checked_next_episode, checked_step, checked_success};
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, report_at};

/// Resets the state in the step that ends an episode. The [`TimeStep`] still shows the end: its observation is the final
/// one. `observe` of the returned state shows the first observation of the next episode.
///
/// The step's key is split in two, for the step and for the reset, as gymnax does. In a batch, a reset that is much work, such as drawing a map,
/// is computed for those environments alone whose episode ended; see [`Tensor::rarely`]. One of little work is computed for all and selected.
#[derive(Clone, Debug)]
pub struct AutoReset<E> {
    environment: E,
}

impl<E: Environment> AutoReset<E> {
    /// Wraps an environment.
    pub fn new(environment: E) -> Self {
        AutoReset { environment }
    }

    /// [`step`](Environment::step) with both keys drawn by the caller, such as for many steps at once.
    #[track_caller]
    pub fn step_with_keys(
        &self,
        state: E::State,
        action: Tensor,
        step_key: Key,
        reset_key: Key,
    ) -> (E::State, TimeStep<E::Observation>) {
        let (state, timestep) = checked_step(&self.environment, state, action, step_key);
        (self.begin_if(timestep.done(), state, reset_key), timestep)
    }

    /// [`AutoReset::step_with_keys`], with the [`success`](Environment::success) of the state that the step leads to, before any reset.
    #[track_caller]
    pub fn step_with_success(
        &self,
        state: E::State,
        action: Tensor,
        step_key: Key,
        reset_key: Key,
    ) -> (E::State, TimeStep<E::Observation>, Option<Tensor>) {
        let (state, timestep) = checked_step(&self.environment, state, action, step_key);
        let success = checked_success(&self.environment, &state);
        (self.begin_if(timestep.done(), state, reset_key), timestep, success)
    }

    /// The next episode's first state if the state ended one, else the state itself.
    #[track_caller]
    fn begin_if(&self, done: Tensor, state: E::State, key: Key) -> E::State {
        let first = || checked_next_episode(&self.environment, state.clone(), key);
        cond(done.rarely(), first, || state.clone())
    }
}

impl<E: Environment> Environment for AutoReset<E> {
    type State = E::State;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> E::State {
        if self.environment.resets() {
            let message = "the environment begins the next episode itself: loops do so, give them it without `auto_reset()`";
            report_at(Loc::NONE, "auto_reset", message, &[]);
        }
        self.environment.initial_state(key)
    }

    fn step(
        &self,
        state: E::State,
        action: Tensor,
        key: Key,
    ) -> (E::State, TimeStep<E::Observation>) {
        let (step_key, reset_key) = key.split();
        self.step_with_keys(state, action, step_key, reset_key)
    }

    fn observe(&self, state: E::State) -> E::Observation {
        self.environment.observe(state)
    }

    forward!(environment, |state| state, except resets, legal_actions);

    fn legal_actions(&self, state: &E::State) -> Option<Tensor> {
        checked_legal_actions(&self.environment, state)
    }

    fn resets(&self) -> bool {
        true
    }

    fn next_episode(&self, finished: E::State, key: Key) -> E::State {
        self.environment.next_episode(finished, key)
    }
}
