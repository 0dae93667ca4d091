//! Statistics of episodes: their returns, lengths and successes.

use crate::checked::{checked_step, checked_success};
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;

/// Keeps the return, length and success of the running and of the last finished episode in the state, where metrics read them.
/// Time limits go inside, [`AutoReset`](crate::AutoReset) outside.
#[derive(Clone, Debug)]
pub struct WithStatistics<E> {
    environment: E,
}

/// Return, length and success of an episode.
#[derive(Tree, Clone, Copy)]
pub struct Episode {
    /// Sum of the rewards, not discounted. `f32[]`
    pub episode_return: Tensor,
    /// Number of steps. `i32[]`
    pub length: Tensor,
    /// [`Environment::success`] of the episode's state, or of its last one. `f32[]`
    pub success: Option<Tensor>,
}

impl Episode {
    /// No step yet, from a first state with this success.
    fn empty(success: Option<Tensor>) -> Self {
        Episode { episode_return: zeros(F32, []), length: zeros(I32, []), success }
    }
}

/// The state of [`WithStatistics`].
#[derive(Tree, Clone, Copy)]
pub struct StatisticsState<S: Tree> {
    /// State of the wrapped environment.
    pub environment: S,
    /// The running episode so far.
    pub running: Episode,
    /// The last finished episode; one without steps before the first has finished.
    pub last: Episode,
    /// Number of finished episodes; `last` is meaningless while it is 0. `i32[]`
    pub finished: Tensor,
}

impl<E: Environment> WithStatistics<E> {
    /// Wraps an environment.
    pub fn new(environment: E) -> Self {
        WithStatistics { environment }
    }
}

impl<E: Environment> Environment for WithStatistics<E> {
    type State = StatisticsState<E::State>;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> Self::State {
        let environment = self.environment.initial_state(key);
        let first = Episode::empty(checked_success(&self.environment, &environment));
        StatisticsState { environment, running: first, last: first, finished: zeros(I32, []) }
    }

    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<E::Observation>) {
        let (environment, timestep) =
            checked_step(&self.environment, state.environment, action, key);
        let running = Episode {
            episode_return: state.running.episode_return + timestep.reward,
            length: state.running.length + 1,
            success: checked_success(&self.environment, &environment),
        };
        let done = timestep.done();
        let last = tree_select(done, &running, &state.last);
        let finished = state.finished + done.astype(I32);
        (StatisticsState { environment, running, last, finished }, timestep)
    }

    fn observe(&self, state: Self::State) -> E::Observation {
        self.environment.observe(state.environment)
    }

    forward!(environment, |state| &state.environment);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        let environment = self.environment.next_episode(finished.environment, key);
        let running = Episode::empty(checked_success(&self.environment, &environment));
        StatisticsState { environment, running, ..finished }
    }
}
