//! Learned update rules: networks that define how an agent learns, in place of a hand-written loss,
//! and the loop that trains them through the agents' own updates.
//!
//! # Invariants
//! - An agent's gradient treats the rule's targets as constants. The rule's gradient flows through
//!   the targets, and through the rule's inputs.
//! - No gradient flows through acting: trajectories are data.

mod bandit;
mod disco;
mod haiku;
mod lpg;
mod rule;
mod training;

pub use bandit::{Arms, BanditSettings};
pub use disco::{
    DiscoLosses, DiscoMemory, DiscoOutputs, DiscoRule, DiscoSeen, DiscoShape, DiscoSight,
    DiscoTargets, DiscoValues, Lifetime, Steps,
};
pub use lpg::{LpgRule, LpgShape, Seen, Targets};
pub use rule::{KeptRule, Rule, UpdateRule};
pub use training::{Life, LifeMetrics, MetaSettings, MetaState, MetaTraining, ValueState};
