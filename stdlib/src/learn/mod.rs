//! Agents: one definition acts and learns in every loop.
//!
//! [`Agent`] acts in an environment, and is written for one lane. [`Learn`] owns one iteration: one
//! rollout of every lane, and all learning from it. Loops decide where both run, and provide the
//! axes over which data is spread.

mod agent;
mod any;
mod axes;
mod check;
mod exploration;
mod frames;
mod host_replay;
mod iteration;
mod minibatches;
mod normalized;
mod optimizer;
mod replay_settings;
mod replayed;
mod settings;
mod split;
mod steps;
mod transition;
mod unflatten;
mod wrapper;

pub use agent::{Act, Agent, Input, LaneId, Mode, View};
pub use any::AnyAgent;
pub use axes::Axes;
pub use check::{check_agent, checked_act, checked_begin_episode, checked_view};
pub(crate) use check::{checked_leaves, checked_metrics, checked_store};
pub use exploration::{Exploration, Exploring, epsilon_greedy, epsilon_ladder};
pub use frames::{FrameMemory, no_frames, stack_frame, stack_window, stacked_space};
pub use host_replay::{AnyHostReplay, Draws, HostReplayShape, HostStore, Kept, Requests};
pub use iteration::{
    Cx, Iterated, Learn, Optimized, Rollout, RolloutOf, RolloutShape, Staleness, scan_mean,
};
pub(crate) use minibatches::{Minibatches, merged};
pub use normalized::{Moments, Normalized, NormalizedParams, NormalizedState, NormalizedStore};
pub(crate) use optimizer::clipped;
pub use optimizer::{
    ActorCriticOptimizer, AdamSettings, ChosenOptimizer, ChosenState, Clipped, DescribesOptimizer,
    OptimizerDefaults, OptimizerKind, OptimizerSettings,
};
pub use replay_settings::{ReplaySettings, Window};
pub use replayed::{
    KeptStep, LearnFromReplay, ReplayMetrics, Replayed, ReplayedMetrics, ReplayedState,
    ReplayedStore, Windows,
};
pub use settings::{AgentSettings, Task};
pub use split::Split;
pub use steps::step_weights;
pub(crate) use steps::{of_legal, weighted};
pub use transition::{Step, Transition};
pub use unflatten::Unflatten;
pub use wrapper::Wrapper;
