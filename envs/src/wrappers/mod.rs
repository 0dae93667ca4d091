//! Wrappers: environments around environments. They chain: `env.time_limit(500).with_statistics().auto_reset()`.
//! [`AutoReset`] goes outermost: a wrapper around it would not see where one episode ends and the next begins.

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
