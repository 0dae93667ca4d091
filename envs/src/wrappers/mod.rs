//! Wrappers: environments around environments. They chain: `env.time_limit(500).with_statistics().auto_reset()`.
//! [`AutoReset`] goes outermost: a wrapper around it would not see where one episode ends and the next begins.

mod auto_reset;
mod statistics;
mod time_limit;

pub use auto_reset::AutoReset;
pub use statistics::{Episode, StatisticsState, WithStatistics};
pub use time_limit::{TimeLimit, TimeLimitState};
