//! An agent with a replay on the host: the host's part of a rollout, and learning from windows of
//! the replay.

use crate::lanes::{Learner, run_keys};
use crate::learn::{
    AnyAgent, AnyHostReplay, HostReplayShape, Kept, Learn, Requests, RolloutShape, checked_leaves,
};
use crate::learning::Learning;
use crate::sebulba::{ActorLearner, LearnerStateFor, ShardFor};
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;

/// Learning from windows of a replay on the host.
#[derive(Clone)]
pub struct FromHostReplay {
    replay: AnyHostReplay<Tensor>,
    sizes: HostReplayShape,
}

/// The host's part of an actor thread's rollout, or the windows that a learner device learns from.
pub type KeptTrees = Kept<AnyTree, AnyTree>;

impl FromHostReplay {
    /// Returns `None` for an agent without a replay.
    ///
    /// # Errors
    /// Mistakes of the agent, with the user's lines.
    pub fn new(acting: &ActorLearner<AnyAgent>) -> Result<Option<Self>, TraceErrors> {
        let Some(replay) = acting.agent.host_replay() else { return Ok(None) };
        let mut rollout = None;
        eval_shape((key(),), |(key,)| rollout = Some(acting.rollout_of_device(key)))?;
        let sizes = replay.sizes(&rollout.expect("it was traced"), &acting.axes())?;
        Ok(Some(FromHostReplay { replay, sizes }))
    }
}

impl Learning<AnyAgent> for FromHostReplay {
    type Store = AnyTree;
    type Shard = KeptTrees;
    type Data = KeptTrees;
    type Metrics = AnyTree;
    type Requests = Requests;

    #[track_caller]
    fn init(&self, acting: &ActorLearner<AnyAgent>, key: Key) -> LearnerStateFor<AnyAgent> {
        let [params_key, learner_key, _] = run_keys(key.again());
        let rollout = acting.rollout_of_device(key);
        Placed {
            replicated: Learner::new(&acting.agent, params_key, learner_key),
            sharded: checked_leaves(self.replay.init_store(&rollout, &acting.axes())),
        }
    }

    /// The host's parts of the learner devices' shards.
    #[track_caller]
    fn shards(
        &self,
        acting: &ActorLearner<AnyAgent>,
        shards: Vec<ShardFor<AnyAgent>>,
    ) -> Vec<KeptTrees> {
        let rollouts = shards.into_iter().map(|shard| acting.rollout(shard));
        rollouts.map(|rollout| self.replay.keep(rollout)).collect()
    }

    /// Windows of the replay.
    fn data(
        &self,
        _: &ActorLearner<AnyAgent>,
        shard: &Spec<KeptTrees>,
    ) -> Result<Spec<KeptTrees>, TraceErrors> {
        Ok(self.sizes.windows(shard))
    }

    fn replay(
        &self,
        shard: &Spec<KeptTrees>,
    ) -> Result<Option<(HostReplayShape, usize)>, TraceErrors> {
        let steps = eval_shape(shard, |shard| shard.steps)?;
        Ok(Some((self.sizes, steps.types().len())))
    }

    /// Learns from windows, and requests the windows of a later iteration.
    #[track_caller]
    fn learn(
        &self,
        acting: &ActorLearner<AnyAgent>,
        state: LearnerStateFor<AnyAgent>,
        windows: KeptTrees,
    ) -> (LearnerStateFor<AnyAgent>, AnyTree, Requests) {
        let &ActorLearner { threads, unroll, learners, .. } = acting;
        let shape = RolloutShape { lanes: threads * acting.lanes() / learners, unroll };
        let Placed { replicated, sharded } = state;
        let (replicated, sharded, metrics, requests) =
            replicated.iterate::<AnyAgent, _>(sharded, &acting.axes(), |state, store, cx| {
                self.replay.learn(state, store, windows, shape, cx)
            });
        (Placed { replicated, sharded }, metrics, requests)
    }
}
