//! Learned update rules: networks that say how an agent learns, in place of a loss that somebody wrote down, and the loop that trains
//! them through the agents' own updates.
//!
//! # Invariants
//! - An agent's gradient takes the rule's targets for constants. The gradient of the rule flows through them, and through what the rule saw.
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
