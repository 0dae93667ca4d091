//! Agents: the algorithms, each with its settings.

mod a2c;
mod actor_critic;
mod alphazero;
mod disco;
mod dqn;
mod impala;
mod learned;
mod muzero;
mod off_policy;
mod online;
mod planning;
mod ppo;
mod pqn;
mod r2d2;
mod sac;
mod td3;

pub use a2c::{A2c, A2cMetrics, A2cSettings};
pub use actor_critic::{
    Acted, ActorCriticAgent, ActorCriticLoss, ActorCriticRollout, ActorCriticSettings,
    ActorCriticState, Evaluated, LaneSteps, LearnActorCritic, of_each_lane,
};
pub use alphazero::{
    AlphaZero, AlphaZeroMetrics, AlphaZeroNetwork, AlphaZeroSettings, AlphaZeroTerms,
};
pub use disco::{DiscoAgent, DiscoMetrics, DiscoNet, DiscoState};
pub use dqn::{
    BootstrappedDqn, BootstrappedMemory, BootstrappedSettings, BootstrappedState, BootstrappedStep,
    Dqn, DqnExploration, DqnLoss, DqnMemory, DqnMetrics, DqnSettings, DqnState, DqnValues,
    PriorNetwork,
};
pub use impala::{Impala, ImpalaMetrics, ImpalaSettings, RewardClipping};
pub use learned::{LearnedAgent, LearnedMetrics, LearnedState, Predictor};
pub use muzero::{
    ActionPlanes, ChanceNetwork, Encoded, ModelKind, MuZero, MuZeroLoss, MuZeroMetrics,
    MuZeroNetwork, MuZeroSettings, MuZeroTargets, MuZeroTerms, PlanesHead, PlanesNetwork,
    PlanesTorso, Support,
};
pub use off_policy::{OffPolicySettings, TorsoMlp, UnitBox};
pub use online::{OnlineActorCritic, OnlineExtras, OnlineMetrics, OnlineSettings};
pub use planning::{
    LearnFrom, PlanExtras, PlannedStep, PlanningSettings, SearchKind, SearchSettings,
};
pub use ppo::{
    ClippedSurrogate, Ppo, PpoBatch, PpoExtras, PpoMetrics, PpoSettings, PpoSettingsOf, PpoTerms,
    Surrogate,
};
pub use pqn::{Pqn, PqnBatch, PqnMetrics, PqnNetwork, PqnOptimizer, PqnSettings, PqnState};
pub use r2d2::{
    R2d2, R2d2Memory, R2d2Metrics, R2d2Optimizer, R2d2Settings, R2d2Start, R2d2State, R2d2Step,
    R2d2Terms, RecurrentQ,
};
pub use sac::{
    Sac, SacActions, SacMetrics, SacOptimizer, SacOptimizers, SacParams, SacSettings, SacState,
};
pub use td3::{Td3, Td3Metrics, Td3Networks, Td3Params, Td3Settings, Td3State};
