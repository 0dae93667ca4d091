//! Learning from the actors' data: from rollouts as they come, or from windows of a replay on the
//! host.

use crate::lanes::Learner;
use crate::learn::{HostReplayShape, Learn};
use crate::sebulba::{ActorLearner, LearnerStateFor, ShardFor};
use podracer_dsl::prelude::*;

/// The learner's part of a loop with environments on the host, of the agent `A`.
pub trait Learning<A: Learn<Observation = Tensor>> {
    /// The part of the learner's state that differs between learner devices.
    type Store: Tree;
    /// The part of a rollout that is sent to one learner device.
    type Shard: Tree;
    /// Data of an iteration, on each learner device.
    type Data: Tree;
    /// Scalars of an iteration, f32 `[]`.
    type Metrics: Tree;
    /// Requests of an iteration to a replay on the host; `()` without such a replay.
    type Requests: Tree;

    /// The learner at the start of a run.
    fn init(&self, acting: &ActorLearner<A>, key: Key) -> LearnerState<A, Self>;

    /// The parts of an actor thread's rollout, one for each learner device, that are sent to the
    /// devices.
    fn shards(&self, acting: &ActorLearner<A>, shards: Vec<ShardFor<A>>) -> Vec<Self::Shard>;

    /// The types of an iteration's data, given the types of a shard.
    ///
    /// # Errors
    /// Returns the mistakes of the agent, with the user's lines.
    fn data(
        &self,
        acting: &ActorLearner<A>,
        shard: &Spec<Self::Shard>,
    ) -> Result<Spec<Self::Data>, TraceErrors>;

    /// The sizes of the replay on the host, and the number of a shard's leaves that are steps;
    /// `None` without such a replay.
    ///
    /// # Errors
    /// Returns the mistakes of the agent, with the user's lines.
    fn replay(
        &self,
        shard: &Spec<Self::Shard>,
    ) -> Result<Option<(HostReplayShape, usize)>, TraceErrors>;

    /// One iteration.
    fn learn(
        &self,
        acting: &ActorLearner<A>,
        state: LearnerState<A, Self>,
        data: Self::Data,
    ) -> (LearnerState<A, Self>, Self::Metrics, Self::Requests);
}

/// The state of the learner devices.
pub type LearnerState<A, L> = Placed<Learner<<A as Learn>::State>, <L as Learning<A>>::Store>;

/// Learns from rollouts as they come.
#[derive(Clone, Copy, Debug)]
pub struct FromRollouts;

impl<A: Learn<Observation = Tensor>> Learning<A> for FromRollouts {
    type Store = A::Store;
    type Shard = ShardFor<A>;
    type Data = Vec<ShardFor<A>>;
    type Metrics = A::Metrics;
    type Requests = ();

    #[track_caller]
    fn init(&self, acting: &ActorLearner<A>, key: Key) -> LearnerStateFor<A> {
        acting.init(key)
    }

    fn shards(&self, _: &ActorLearner<A>, shards: Vec<ShardFor<A>>) -> Vec<ShardFor<A>> {
        shards
    }

    /// A shard of every actor thread, in the order of the threads.
    fn data(
        &self,
        acting: &ActorLearner<A>,
        shard: &Spec<ShardFor<A>>,
    ) -> Result<Spec<Vec<ShardFor<A>>>, TraceErrors> {
        eval_shape(shard, |shard| vec![shard; acting.threads])
    }

    fn replay(
        &self,
        _: &Spec<ShardFor<A>>,
    ) -> Result<Option<(HostReplayShape, usize)>, TraceErrors> {
        Ok(None)
    }

    #[track_caller]
    fn learn(
        &self,
        acting: &ActorLearner<A>,
        state: LearnerStateFor<A>,
        shards: Vec<ShardFor<A>>,
    ) -> (LearnerStateFor<A>, A::Metrics, ()) {
        let (state, metrics) = acting.learn(state, shards);
        (state, metrics, ())
    }
}
