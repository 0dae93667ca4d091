//! Wrappers: environments around environments. They chain: `env.time_limit(500).with_statistics().auto_reset()`.
//! [`AutoReset`] goes outermost: a wrapper around it would not see where one episode ends and the next begins.

/// Methods of a wrapper that answer as the wrapped environment does. Its state is the field `environment` of the wrapper's.
macro_rules! forward {
    ($($method:ident),*) => { $($crate::wrappers::forward!(@$method);)* };
    (@observation_space) => {
        fn observation_space(&self) -> $crate::space_tree::Spaces<Self::Observation> {
            self.environment.observation_space()
        }
    };
    (@action_space) => {
        fn action_space(&self) -> Space {
            self.environment.action_space()
        }
    };
    (@players) => {
        fn players(&self) -> usize {
            self.environment.players()
        }
    };
    (@truncates) => {
        fn truncates(&self) -> bool {
            self.environment.truncates()
        }
    };
    (@resets) => {
        fn resets(&self) -> bool {
            self.environment.resets()
        }
    };
    (@render) => {
        fn render(&self, state: &Self::State) -> Option<Tensor> {
            self.environment.render(&state.environment)
        }
    };
    (@text) => {
        fn text(&self, state: &Self::State) -> Option<Tensor> {
            self.environment.text(&state.environment)
        }
    };
    (@success) => {
        fn success(&self, state: &Self::State) -> Option<Tensor> {
            self.environment.success(&state.environment)
        }
    };
    (@legal_actions) => {
        fn legal_actions(&self, state: &Self::State) -> Option<Tensor> {
            self.environment.legal_actions(&state.environment)
        }
    };
}
use forward;

mod auto_reset;
mod flatten_observation;
mod frame_stack;
mod reward;
mod statistics;
mod sticky_actions;
mod time_limit;

pub use auto_reset::AutoReset;
pub use flatten_observation::{FlattenObservation, flat_space, unflatten};
pub use frame_stack::{FrameStack, FrameStackState};
pub use reward::{RewardChange, TransformReward};
pub use statistics::{Episode, StatisticsState, WithStatistics};
pub use sticky_actions::{StickyActions, StickyActionsState};
pub use time_limit::{TimeLimit, TimeLimitState};
