//! An agent in Sebulba whose replay is on the host: the functions that are not those of [`crate::sebulba`].

use crate::agents::{
    AnyAgent, AnyHostReplay, HostReplayShape, Kept, Requests, RolloutShape, checked_leaves,
};
use crate::lanes::{Learner, run_keys};
use crate::sebulba::{ActorFor, ActorLearner, LearnerStateFor, ShardFor};
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_envs::host::StepOutcome;

/// An agent, split into acting, and into learning from windows of a replay that is on the host.
#[derive(Clone)]
pub struct HostReplayLearner {
    /// The agent with the sizes of the run.
    pub acting: ActorLearner<AnyAgent>,
    replay: AnyHostReplay<Tensor>,
}

/// The host's part of an actor thread's rollout, or the windows that a learner device learns from.
pub type KeptTrees = Kept<AnyTree, AnyTree>;

impl HostReplayLearner {
    /// `None` for an agent that has no replay.
    pub fn new(acting: ActorLearner<AnyAgent>) -> Option<Self> {
        let replay = crate::agents::Learn::host_replay(&acting.agent)?;
        Some(HostReplayLearner { acting, replay })
    }

    /// The learner at the start of a run.
    #[track_caller]
    pub fn init(&self, key: Key) -> LearnerStateFor<AnyAgent> {
        let [params_key, learner_key, _] = run_keys(key.again());
        let rollout = self.acting.rollout_of_device(key);
        Placed {
            replicated: Learner::new(&self.acting.agent, params_key, learner_key),
            sharded: checked_leaves(self.replay.init_store(&rollout, &self.acting.axes())),
        }
    }

    /// Ends the rollout with the outcomes of all lanes' last steps: what the host keeps of the lanes of each learner device.
    #[track_caller]
    pub fn finish(&self, state: ActorFor<AnyAgent>, outcome: StepOutcome) -> Vec<KeptTrees> {
        self.kept(self.acting.finish(state, outcome))
    }

    /// The parts of the learner devices' shards that the host keeps.
    #[track_caller]
    pub fn kept(&self, shards: Vec<ShardFor<AnyAgent>>) -> Vec<KeptTrees> {
        let rollouts = shards.into_iter().map(|shard| self.acting.rollout(shard));
        rollouts.map(|rollout| self.replay.keep(rollout)).collect()
    }

    /// The sizes of the replay.
    ///
    /// # Errors
    /// Mistakes of the agent, with the user's lines.
    pub fn sizes(&self) -> Result<HostReplayShape, TraceErrors> {
        let mut rollout = None;
        eval_shape((key(),), |(key,)| rollout = Some(self.acting.rollout_of_device(key)))?;
        self.replay.sizes(&rollout.expect("it was traced"), &self.acting.axes())
    }

    /// One iteration: learns from windows, and says which ones a later iteration learns from.
    #[track_caller]
    pub fn learn(
        &self,
        state: LearnerStateFor<AnyAgent>,
        windows: KeptTrees,
    ) -> (LearnerStateFor<AnyAgent>, AnyTree, Requests) {
        let ActorLearner { threads, unroll, learners, .. } = self.acting;
        let shape = RolloutShape { lanes: threads * self.acting.lanes() / learners, unroll };
        let Placed { replicated, sharded } = state;
        let (replicated, sharded, metrics, requests) =
            replicated.iterate::<AnyAgent, _>(sharded, &self.acting.axes(), |state, store, cx| {
                self.replay.learn(state, store, windows, shape, cx)
            });
        (Placed { replicated, sharded }, metrics, requests)
    }
}
