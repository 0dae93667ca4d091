//! The functions of an agent that the runtime schedules, in Sebulba and in central inference.

use anyhow::Result;
use podracer_dsl::prelude::{Key, Placed, Spec, Tensor, TraceErrors, eval_shape, u32};
use podracer_dsl::trace_replicated;
use podracer_envs::host::{HostSpec, StepOutcome};
use podracer_rl::anakin::{Feedback, Learner};
use podracer_rl::central::UnrollsFor;
use podracer_rl::host_replay::FromHostReplay;
use podracer_rl::learn::{AnyAgent, HostReplayShape, Learn, check_agent};
use podracer_rl::learning::{FromRollouts, LearnerState, Learning};
use podracer_rl::sebulba::{ActorCarry, ActorFor, ActorLearner};
use podracer_runtime::{HostLoopFunctions, HostReplay, SebulbaShape};

use crate::UsageError;

/// The functions of an agent: acting, and one of two ways of learning.
pub(crate) struct Functions<A: Learn<Observation = Tensor>, L> {
    acting: ActorLearner<A>,
    learning: L,
}

impl<A: Learn<Observation = Tensor>> Functions<A, FromRollouts> {
    /// Traces the agent for these environments, and checks it.
    ///
    /// # Errors
    /// Mistakes of the agent, with the user's lines.
    #[track_caller]
    pub(crate) fn new(agent: &A, shape: SebulbaShape, environments: &HostSpec) -> Result<Self> {
        let action = environments.action.ty();
        let input = eval_shape((Spec(environments.observation.ty()),), |(observation,)| {
            Feedback::begin(&action).input(observation, None)
        })?;
        check_agent(agent, &input, &action)?;
        let SebulbaShape { threads, learners, processes, unroll } = shape;
        let (agent, environments) = (agent.clone(), environments.clone());
        let acting = ActorLearner {
            agent,
            environments,
            threads,
            unroll,
            learners,
            processes: processes.count,
            keeps_lanes: false,
        };
        let init = |(key,)| acting.init(Key::from_words(key)).sharded;
        let store = trace_replicated(shape.all_learners(), (u32([2]),), init)?;
        let keeps_lanes = !store.results().leaves().is_empty();
        let acting = ActorLearner { keeps_lanes, ..acting };
        Ok(Functions { acting, learning: FromRollouts })
    }
}

impl Functions<AnyAgent, FromHostReplay> {
    /// Traces the agent and its replay for these environments, and checks both.
    ///
    /// # Errors
    /// [`UsageError`] for an agent without a replay; mistakes of the agent, with the user's lines.
    #[track_caller]
    pub(crate) fn with_host_replay<A: Learn<Observation = Tensor>>(
        agent: &A,
        shape: SebulbaShape,
        environments: &HostSpec,
    ) -> Result<Self> {
        // Its errors come from the agent itself, not from the erased agent.
        Functions::new(agent, shape, environments)?;
        let agent = &AnyAgent::new(agent.clone());
        let Functions { acting, .. } = Functions::new(agent, shape, environments)?;
        let learning = FromHostReplay::new(&acting)?.ok_or_else(|| {
            UsageError::new(
                "a replay on the host is for agents that learn from a replay, and this agent has none",
            )
        })?;
        Ok(Functions { acting, learning })
    }
}

impl<A: Learn<Observation = Tensor>, L: Learning<A>> HostLoopFunctions for Functions<A, L> {
    type Params = A::Params;
    type State = Learner<A::State>;
    type Store = L::Store;
    type Actor = ActorFor<A>;
    type Carry = ActorCarry<A::Memory>;
    type Shard = L::Shard;
    type Data = L::Data;
    type Metrics = L::Metrics;
    type Requests = L::Requests;
    type Unrolls = UnrollsFor<A>;

    fn init(&self, key: Key) -> LearnerState<A, L> {
        self.learning.init(&self.acting, key)
    }
    fn params(&self, learner: &Self::State) -> A::Params {
        self.acting.agent.params(&learner.agent)
    }
    fn start(&self, key: Key, first: Tensor, continues: Tensor) -> ActorFor<A> {
        self.acting.start(key, first, continues)
    }
    fn carried(&self, actor: &ActorFor<A>) -> Self::Carry {
        actor.carry.clone()
    }
    fn act(
        &self,
        params: &A::Params,
        actor: ActorFor<A>,
        outcome: StepOutcome,
    ) -> (Tensor, ActorFor<A>) {
        self.acting.act(params, actor, outcome, None)
    }
    fn finish(&self, actor: ActorFor<A>, outcome: StepOutcome) -> Vec<L::Shard> {
        self.learning.shards(&self.acting, self.acting.finish(actor, outcome))
    }
    fn data(&self, shard: &Spec<L::Shard>) -> Result<Spec<L::Data>, TraceErrors> {
        self.learning.data(&self.acting, shard)
    }
    fn replay(&self, shard: &Spec<L::Shard>) -> Result<Option<HostReplay>, TraceErrors> {
        Ok(self.learning.replay(shard)?.map(|(sizes, step_leaves)| {
            let HostReplayShape { steps, length, period, gradient_steps, batch, ahead } = sizes;
            HostReplay { steps, length, period, gradient_steps, batch, ahead, step_leaves }
        }))
    }
    fn learn(
        &self,
        state: Placed<Self::State, L::Store>,
        data: L::Data,
    ) -> (LearnerState<A, L>, L::Metrics, L::Requests) {
        self.learning.learn(&self.acting, state, data)
    }
    fn act_in(
        &self,
        params: &A::Params,
        actor: ActorFor<A>,
        outcome: StepOutcome,
        lanes: Tensor,
    ) -> (Tensor, ActorFor<A>) {
        self.acting.act(params, actor, outcome, Some(lanes))
    }
    fn unrolls(&self) -> UnrollsFor<A> {
        self.acting.unrolls()
    }
    fn take_out(
        &self,
        unrolls: UnrollsFor<A>,
        actor: &ActorFor<A>,
        outcome: StepOutcome,
        lanes: Tensor,
        rows: Tensor,
    ) -> UnrollsFor<A> {
        self.acting.take_out(actor, outcome, lanes, rows, unrolls)
    }
    fn shards(&self, unrolls: UnrollsFor<A>) -> Vec<L::Shard> {
        self.learning.shards(&self.acting, self.acting.shards(unrolls))
    }
    fn restart(&self, actor: ActorFor<A>, key: Key, first: Tensor, lanes: Tensor) -> ActorFor<A> {
        self.acting.restart(key, first, actor, lanes)
    }
}
