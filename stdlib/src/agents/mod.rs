//! Agents: one definition acts and learns in every loop.
//!
//! [`Agent`] acts beside an environment, and is written for one lane. [`Learn`] owns one iteration: one rollout of every
//! lane, and all learning from it. Loops decide where both run, and give them the axes that data is spread over.

mod a2c;
mod actor_critic;
mod agent;
mod alphazero;
mod any;
mod axes;
mod bootstrapped;
mod check;
mod disco;
mod dqn;
mod dqn_loss;
mod dqn_settings;
mod exploration;
mod frames;
mod host_replay;
mod impala;
mod learn;
mod learn_actor_critic;
mod learned;
mod minibatches;
mod muzero;
mod network;
mod normalized;
mod off_policy;
mod online;
mod optimizer;
mod planning;
mod ppo;
mod pqn;
mod q_network;
mod r2d2;
mod replay_settings;
mod replayed;
mod sac;
mod settings;
mod split;
mod steps;
mod td3;
mod torso;
mod trajectory;
mod transition;
mod unflatten;

pub use a2c::{A2c, A2cMetrics, A2cSettings};
pub use actor_critic::{ActorCriticAgent, ActorCriticSettings};
pub use agent::{Act, Agent, Input, LaneId, Mode, View};
pub use alphazero::{
    AlphaZero, AlphaZeroMetrics, AlphaZeroNetwork, AlphaZeroSettings, AlphaZeroTerms,
};
pub use any::AnyAgent;
pub use axes::Axes;
pub use bootstrapped::{
    BootstrappedDqn, BootstrappedMemory, BootstrappedSettings, BootstrappedState, BootstrappedStep,
    PriorNetwork,
};
pub use check::{check_agent, checked_act, checked_begin_episode, checked_view};
pub(crate) use check::{checked_leaves, checked_metrics, checked_store};
pub use disco::{DiscoAgent, DiscoMetrics, DiscoNet, DiscoState};
pub use dqn::{Dqn, DqnMemory, DqnMetrics, DqnState};
pub use dqn_loss::DqnLoss;
pub use dqn_settings::{DqnExploration, DqnSettings, DqnValues};
pub use exploration::{Exploration, Exploring, epsilon_greedy, epsilon_ladder};
pub use frames::{FrameMemory, no_frames, stack_frame, stack_window, stacked_space};
pub use host_replay::{AnyHostReplay, Draws, HostReplayShape, HostStore, Kept, Requests};
pub use impala::{Impala, ImpalaMetrics, ImpalaSettings, RewardClipping};
pub use learn::{
    Cx, Iterated, Learn, Optimized, Rollout, RolloutOf, RolloutShape, Staleness, scan_mean,
};
pub use learn_actor_critic::{
    Acted, ActorCriticLoss, ActorCriticRollout, ActorCriticState, LearnActorCritic,
};
pub use learned::{LearnedAgent, LearnedMetrics, LearnedState, Predictor};
pub use muzero::{
    ActionPlanes, ChanceNetwork, Encoded, ModelKind, MuZero, MuZeroLoss, MuZeroMetrics,
    MuZeroNetwork, MuZeroSettings, MuZeroTargets, MuZeroTerms, PlanesHead, PlanesNetwork,
    PlanesTorso, Support,
};
pub use network::{ActorCritic, ActorCriticShape, Memory, Policy};
pub use normalized::{Moments, Normalized, NormalizedParams, NormalizedState, NormalizedStore};
pub use off_policy::{OffPolicySettings, TorsoMlp, UnitBox};
pub use online::{OnlineActorCritic, OnlineExtras, OnlineMetrics, OnlineSettings};
pub use optimizer::{
    AdamSettings, ChosenOptimizer, ChosenState, DescribesOptimizer, OptimizerDefaults,
    OptimizerKind, OptimizerSettings,
};
pub use planning::{
    LearnFrom, PlanExtras, PlannedStep, PlanningSettings, SearchKind, SearchSettings,
};
pub use ppo::{
    ClippedSurrogate, Ppo, PpoBatch, PpoExtras, PpoMetrics, PpoSettings, PpoSettingsOf, PpoTerms,
    Surrogate,
};
pub use pqn::{Pqn, PqnBatch, PqnMetrics, PqnNetwork, PqnOptimizer, PqnSettings, PqnState};
pub use q_network::{ActionValues, QDense, QHead, QHeadShape, QLayer, QNetwork};
pub use r2d2::{
    R2d2, R2d2Memory, R2d2Metrics, R2d2Optimizer, R2d2Settings, R2d2Start, R2d2State, R2d2Step,
    R2d2Terms, RecurrentQ,
};
pub use replay_settings::{ReplaySettings, Window};
pub use replayed::{
    KeptStep, LearnFromReplay, ReplayMetrics, Replayed, ReplayedMetrics, ReplayedState,
    ReplayedStore, Windows,
};
pub use sac::{
    Sac, SacActions, SacMetrics, SacOptimizer, SacOptimizers, SacParams, SacSettings, SacState,
};
pub use settings::{ActorCriticOptimizer, AgentSettings, Clipped, Networks, Task, Torso};
pub use split::Split;
pub use steps::step_weights;
pub(crate) use steps::weighted;
pub use td3::{Td3, Td3Metrics, Td3Networks, Td3Params, Td3Settings, Td3State};
pub use torso::{TorsoNet, last_action};
pub use trajectory::{Evaluated, LaneSteps, of_each_lane};
pub use transition::{Step, Transition};
pub use unflatten::Unflatten;
