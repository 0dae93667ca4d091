//! Time limits: episodes of bounded length.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, report_at};

/// Cuts episodes off: the step that makes the episode `steps` long is `truncated`, unless it is `terminated` anyway.
#[derive(Clone, Debug)]
pub struct TimeLimit<E> {
    environment: E,
    steps: usize,
    /// The line that made the wrapper.
    made: Loc,
}

/// The state of a [`TimeLimit`].
#[derive(Tree, Clone, Copy)]
pub struct TimeLimitState<S: Tree> {
    /// State of the wrapped environment.
    pub environment: S,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl<E: Environment> TimeLimit<E> {
    /// Wraps an environment.
    #[track_caller]
    pub fn new(environment: E, steps: usize) -> Self {
        TimeLimit { environment, steps, made: Loc::caller() }
    }
}

impl<E: Environment> Environment for TimeLimit<E> {
    type State = TimeLimitState<E::State>;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> Self::State {
        if self.steps == 0 {
            let message = "an episode has at least one step, got a limit of 0";
            report_at(self.made, "time_limit", message, &[]);
        }
        TimeLimitState { environment: self.environment.initial_state(key), time: zeros(I32, []) }
    }

    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<E::Observation>) {
        let (environment, timestep) =
            checked_step(&self.environment, state.environment, action, key);
        let time = state.time + 1;
        let cut_off = time.ge(self.steps) & !timestep.terminated;
        let timestep = TimeStep { truncated: timestep.truncated | cut_off, ..timestep };
        (TimeLimitState { environment, time }, timestep)
    }

    fn observe(&self, state: Self::State) -> E::Observation {
        self.environment.observe(state.environment)
    }

    forward!(environment, |state| &state.environment, except truncates);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        TimeLimitState {
            environment: self.environment.next_episode(finished.environment, key),
            time: zeros(I32, []),
        }
    }
}
