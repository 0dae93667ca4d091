//! Agents: one definition runs in every loop.
//!
//! The state of an agent is split as in Earl, by who may touch what: `Actor` belongs to one environment and changes at
//! every step; `Nets` is what the gradient is taken of; `Opt` is the optimizer's; `Experience` outlives a cycle (a
//! replay buffer). A *cycle* is one trajectory of every environment and the updates that it gives rise to.

mod impala;
mod network;
mod normalized;
mod online;
mod ppo;

pub use impala::{Impala, ImpalaBatch, ImpalaMetrics};
pub use network::{ActorCritic, Memory, Policy, Torso, no_memory};
pub use normalized::{Moments, Normalized, NormalizedBatch, NormalizedExperience, NormalizedNets};
pub use online::{OnlineActorCritic, OnlineBatch, OnlineMetrics, OnlineOutput};
pub use ppo::{Ppo, PpoBatch, PpoMetrics, PpoOutput};

use crate::returns::gae_with_ends;
use podracer_dsl::prelude::*;

/// What `unroll` steps of `N` environments left: the axes `[T, N]` come first.
#[derive(Tree, Clone)]
pub struct Trajectory<O: Tree, X: Tree> {
    /// What the agent acted on. `[T, N, ...]`
    pub observation: O,
    /// What it did. `[T, N, ...]`
    pub action: Tensor,
    /// f32 `[T, N]`
    pub reward: Tensor,
    /// The episode ended in a terminal state: nothing follows. bool `[T, N]`
    pub terminated: Tensor,
    /// The episode was cut off: what would have followed has a value. bool `[T, N]`
    pub truncated: Tensor,
    /// The step was none, and only begins an episode: no loss, statistic or memory may depend on what stands there. bool
    /// `[T, N]` if the environment has such steps, none otherwise. `terminated` and `truncated` are both set there, so that
    /// what flows back along the trajectory stops before it and after it; [`step_weights`] are for means.
    pub skipped: Vec<Tensor>,
    /// What the environment showed after each step, an episode's last observation included, `[T, N, ...]`. One tree if
    /// the environment truncates, none otherwise: everywhere else it is the next step's `observation`.
    pub next_observation: Vec<O>,
    /// What the agent would act on next. `[N, ...]`
    pub last_observation: O,
    /// What [`Agent::act`] gave beside the action. `[T, N, ...]`
    pub output: X,
}

impl<X: Tree> Trajectory<Tensor, X> {
    /// Generalized advantages, f32 `[T, N]`. `value` are the values of the observations, f32 `[T, N]`, and `value_after` gives
    /// that of another one, after a step of which so much is remembered, `[T, N, ...]`: where an episode was cut off, what
    /// follows is the value of its own last observation, not of the next episode's first.
    #[track_caller]
    fn advantages<M: Tree>(
        &self,
        value: Tensor,
        memory: M,
        value_after: impl Fn((M, Tensor)) -> Tensor,
        discount: f64,
        lambda: f64,
    ) -> Tensor {
        let values = |after: (M, Tensor)| vmap(after, &value_after);
        let memory_at_end = tree_map(&memory, |leaf| leaf.index(-1));
        let v_last = values((memory_at_end, self.last_observation)).expand_dims(0);
        let v_next = concatenate(&[value.slice_axis(0, 1..value.dim(0)), v_last], 0);
        let v_t = match self.next_observation.first() {
            Some(&next) => select(self.truncated, vmap((memory, next), values), v_next),
            None => v_next,
        };
        let discount_t = select(self.terminated, 0.0, discount) + zeros(F32, value.shape());
        let ended = self.terminated | self.truncated;
        vmap(
            (self.reward.axis(1), discount_t.axis(1), value.axis(1), v_t.axis(1), ended.axis(1)),
            |(r_t, discount_t, v_tm1, v_t, ended)| {
                gae_with_ends(r_t, discount_t, v_tm1, v_t, ended, lambda)
            },
        )
        .swap_axes(0, 1)
    }
}

/// What steps count for in means over them, which are then those over the steps that `count`, on all devices: a bool of
/// any shape. f32 of the same shape, of mean 1 unless none counts.
#[track_caller]
pub fn step_weights(count: Tensor) -> Tensor {
    let count = count.astype(F32);
    // Not 0, where no device has a step.
    count / pmean(count.mean(), Replicas).maximum(1e-9)
}

/// How many of `all` steps of this device count: those that were not `skipped`, as in [`Trajectory`]. f32 `[]`
#[track_caller]
fn steps_that_count(skipped: &[Tensor], all: usize) -> Tensor {
    match skipped.first() {
        Some(&skipped) => (!skipped).astype(F32).sum(),
        None => full([], all as f64),
    }
}

/// Numbers times the weight of each, if there are weights; 0 where that is 0, whatever the number.
#[track_caller]
fn weighted(numbers: Tensor, weights: &[Tensor]) -> Tensor {
    match weights.first() {
        Some(&weights) => select(weights.eq(0.0), 0.0, numbers * weights),
        None => numbers,
    }
}

/// Where the gradient of a cycle comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learning {
    /// One update: the loss is differentiated through the whole loop of agent and environment, so that it reuses the
    /// forward pass by which the agent acted (the minimal unit of Podracer's Anakin).
    ThroughLoop,
    /// So many updates on what the trajectory left in the batch.
    FromBatch {
        /// The updates of a cycle.
        updates: usize,
    },
}

/// An agent. Functions of one environment where nothing else is said: batching is the loop's business.
pub trait Agent: Clone + 'static {
    /// What it observes.
    type Observation: Tree;
    /// What it keeps of one environment from step to step, such as an LSTM's state; reset at an episode's end.
    type Actor: Tree;
    /// Its networks: what the gradient is taken of.
    type Nets: Tree;
    /// The optimizer's state.
    type Opt: Tree;
    /// What outlives a cycle.
    type Experience: Tree;
    /// What acting leaves for learning.
    type Output: Tree;
    /// What the updates of one cycle read.
    type Batch: Tree;
    /// Scalars of one update, f32 `[]`.
    type Metrics: Tree;

    /// New networks.
    #[track_caller]
    fn init_nets(&self, key: Key) -> Self::Nets;

    /// The optimizer's state for new networks.
    #[track_caller]
    fn init_opt(&self, nets: &Self::Nets) -> Self::Opt;

    /// The state of one environment's actor at the start of an episode.
    #[track_caller]
    fn init_actor(&self) -> Self::Actor;

    /// An empty experience, for `environments` environments of one device.
    #[track_caller]
    fn init_experience(&self, environments: usize) -> Self::Experience;

    /// Chooses an action.
    #[track_caller]
    fn act(
        &self,
        nets: &Self::Nets,
        actor: Self::Actor,
        observation: Self::Observation,
        key: Key,
    ) -> (Tensor, Self::Actor, Self::Output);

    /// The action that it takes to be best, for evaluation.
    #[track_caller]
    fn act_greedily(
        &self,
        nets: &Self::Nets,
        actor: Self::Actor,
        observation: Self::Observation,
    ) -> (Tensor, Self::Actor);

    /// Takes a cycle's trajectory up, and prepares what its updates read. `actor` is that of the trajectory's start, `[N, ...]`.
    #[track_caller]
    fn update_experience(
        &self,
        nets: &Self::Nets,
        experience: Self::Experience,
        actor: Self::Actor,
        trajectory: Trajectory<Self::Observation, Self::Output>,
        key: Key,
    ) -> (Self::Experience, Self::Batch);

    /// The loss of update number `update` (i32 `[]`) of a cycle: f32 `[]`, a mean over this device's data.
    #[track_caller]
    fn loss(
        &self,
        nets: Self::Nets,
        batch: &Self::Batch,
        update: Tensor,
    ) -> (Tensor, Self::Metrics);

    /// Moves the networks along the gradients, which are already averaged over all devices.
    #[track_caller]
    fn optimize_from_grads(
        &self,
        nets: Self::Nets,
        opt: Self::Opt,
        grads: Self::Nets,
    ) -> (Self::Nets, Self::Opt);

    /// What of the networks no gradient changes, after all updates of a cycle on a batch: running statistics, say. Not asked
    /// of an agent that learns [`Learning::ThroughLoop`].
    #[track_caller]
    fn settle(&self, nets: Self::Nets, batch: &Self::Batch) -> Self::Nets {
        let _ = batch;
        nets
    }

    /// Where the gradient comes from.
    fn learning(&self) -> Learning;
}
