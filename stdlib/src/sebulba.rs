//! An agent that acts and learns on different devices, in environments on the host: the functions
//! that Sebulba schedules. Random numbers are drawn as in [`crate::anakin`], and the learning is
//! the same code. An iteration with rollouts that were acted with the current parameters equals
//! Anakin's iteration.
//!
//! # Invariants
//! - Every lane has its own time, from 0 to `T` within a rollout, and its own key. So an inference
//!   may contain all lanes or any of them, in any order, with the same result.
//! - A lane index of `N` or more is padding: nothing is written for it.

use crate::lanes::{Feedback, KEYS, Learner, lane_keys, run_keys};
use crate::learn::{
    Act, Agent, Axes, Input, LaneId, Learn, Mode, Rollout, RolloutOf, checked_act,
    checked_begin_episode, checked_store,
};
use podracer_dsl::prelude::*;
use podracer_envs::host::{HostSpec, StepOutcome};

/// State that an actor thread keeps on its device, for `N` lanes and rollouts of `T` steps.
#[derive(Tree, Clone)]
pub struct ActorState<M: Tree, X: Tree> {
    /// The part that the next rollout begins with.
    pub carry: ActorCarry<M>,
    /// True if a lane's next step does not follow the last step of its previous rollout. bool
    /// `[N]`; `None` as in [`ActorLearner::keeps_lanes`].
    pub taken_over: Option<Tensor>,
    /// The start of the present rollout.
    pub start: RolloutStart<M>,
    /// The rollout so far.
    pub steps: Steps<X>,
}

/// The part of an [`ActorState`] that the next rollout begins with.
#[derive(Tree, Clone)]
pub struct ActorCarry<M: Tree> {
    /// The agent's memory after the last step. `[N, ..]`
    pub memory: M,
    /// The last actions. `[N, ..]`
    pub last_action: Tensor,
    /// The root keys of the present rollout, as words. u32 `[N, 2]`
    pub keys: Tensor,
    /// Number of steps acted in the present rollout; the outcome of the last step is not known yet.
    /// 0 only before a lane's first step. i32 `[N]`, from 0 to `T`
    pub time: Tensor,
}

/// Memory and feedback before the first step of a rollout. `[N, ..]`
#[derive(Tree, Clone)]
pub struct RolloutStart<M: Tree> {
    /// The agent's memory before the first step.
    pub memory: M,
    /// The outcome of the step before the first step.
    pub feedback: Feedback,
    /// True if the first step does not follow the last step of the lane's previous rollout. bool;
    /// `None` as in [`ActorLearner::keeps_lanes`].
    pub taken_over: Option<Tensor>,
}

/// The steps of a rollout, as in [`Rollout`]: `[T, N, ..]`.
#[derive(Tree, Clone)]
#[allow(missing_docs, reason = "the names are the rollout's")]
pub struct Steps<X: Tree> {
    pub observation: Tensor,
    pub action: Tensor,
    pub reward: Tensor,
    pub terminated: Tensor,
    pub truncated: Tensor,
    pub next_observation: Option<Tensor>,
    pub legal_actions: Option<Tensor>,
    pub extras: X,
}

/// A learner device's part of an actor thread's rollout.
#[derive(Tree, Clone)]
pub struct TrajectoryShard<M: Tree, X: Tree> {
    /// The start of the rollout. `[N, ..]`
    pub start: RolloutStart<M>,
    /// The observation to act on next. `[N, ..]`
    pub last_observation: Tensor,
    /// The masks of the actions that are legal next, for environments that have masks. bool `[N,
    /// n]`
    pub last_legal_actions: Option<Tensor>,
    /// The steps of the rollout. `[T, N, ..]`
    pub steps: Steps<X>,
}

/// An agent, split into acting and learning.
#[derive(Clone)]
pub struct ActorLearner<A: Learn<Observation = Tensor>> {
    /// The agent that acts and learns.
    pub agent: A,
    /// The environments of one actor thread.
    pub environments: HostSpec,
    /// Number of actor threads of the run.
    pub threads: usize,
    /// Number of steps of a rollout.
    pub unroll: usize,
    /// Number of learner devices per process; it divides the lanes of a thread.
    pub learners: usize,
    /// Number of processes that learn together, with equally many threads and learners.
    pub processes: usize,
    /// True if the agent keeps data of lanes between rollouts, and so must know if a rollout does
    /// not follow the previous rollout.
    pub keeps_lanes: bool,
}

/// The state of the learner devices.
pub type LearnerStateFor<A> = Placed<Learner<<A as Learn>::State>, <A as Learn>::Store>;
/// The state of an actor thread.
pub type ActorFor<A> = ActorState<<A as Agent>::Memory, <A as Agent>::Extras>;
/// The shard that an actor thread sends to a learner device.
pub type ShardFor<A> = TrajectoryShard<<A as Agent>::Memory, <A as Agent>::Extras>;

impl<A: Learn<Observation = Tensor>> ActorLearner<A> {
    /// Number of lanes of one actor thread.
    pub(crate) fn lanes(&self) -> usize {
        self.environments.environments
    }

    /// The axes of the learner devices.
    pub(crate) fn axes(&self) -> Axes {
        Axes::replicas(self.learners * self.processes)
    }

    /// The learner at the start of a run.
    #[track_caller]
    pub fn init(&self, key: Key) -> LearnerStateFor<A> {
        let [params_key, learner_key, _] = run_keys(key.again());
        let rollout = self.rollout_of_device(key);
        Placed {
            replicated: Learner::new(&self.agent, params_key, learner_key),
            sharded: checked_store(&self.agent, &rollout, &self.axes()),
        }
    }

    /// The types of one learner device's rollouts.
    #[track_caller]
    pub(crate) fn rollout_of_device(&self, key: Key) -> Spec<Rollout<A>> {
        // Only its types are needed: no rollout is left in the program.
        let outcome = self.environments.outcome().zeros();
        let shards = self.finish(self.start(key, scalar(0), constant(false)), outcome);
        self.rollout(together(&vec![shards[0].clone(); self.threads])).spec()
    }

    /// An actor thread at the start of a run; `first` is the global index of its first lane, i32
    /// `[]`. `continues`, bool `[]`, is true if it gets the carry of another actor and continues
    /// with the steps that follow. It is false at the start of a run, after steps were lost, and if
    /// a lane gets another environment.
    #[track_caller]
    pub fn start(&self, key: Key, first: Tensor, continues: Tensor) -> ActorFor<A> {
        let [params_key, _, lanes_key] = run_keys(key);
        let indices = arange(self.lanes()) + first;
        let action = self.environments.action.ty();
        let (memory, feedback, keys) = vmap((indices, whole(lanes_key)), |(index, key)| {
            let id = LaneId { index, lanes: self.processes * self.threads * self.lanes() };
            let [_, key] = lane_keys(key, index);
            (self.agent.init_memory(id), Feedback::begin(&action), key.words())
        });
        let carry = ActorCarry {
            memory: memory.clone(),
            last_action: feedback.last_action,
            keys,
            time: zeros(I32, [self.lanes()]),
        };
        // Only the types of the results of acting are needed: no network is left in the program.
        let params = self.agent.params(&self.agent.init(params_key));
        let shown = self.environments.observation_type();
        let observation = zeros(shown.dtype, shown.shape.clone());
        let masks = self.environments.legal_actions_type();
        let legal_actions = self.environments.masks.then(|| ones(masks.dtype, masks.shape));
        let input = feedback.input(observation, legal_actions);
        let Act { action, extras, .. } =
            self.act_once(&params, memory.clone(), input, carry.keys, carry.time);
        let per_lane = |dtype| zeros(dtype, [self.lanes()]);
        let steps = Steps {
            observation,
            action,
            reward: per_lane(F32),
            terminated: per_lane(BOOL),
            truncated: per_lane(BOOL),
            next_observation: self.environments.truncates.then_some(observation),
            legal_actions,
            extras,
        };
        let steps = tree_map(&steps, |leaf| {
            zeros(leaf.dtype(), [&[self.unroll], &leaf.shape()[..]].concat())
        });
        let taken_over = self.keeps_lanes.then(|| (!continues).broadcast_to([self.lanes()]));
        let start = RolloutStart { memory, feedback, taken_over };
        ActorState { carry, taken_over, start, steps }
    }

    /// One inference, for `B` lanes: records the outcomes of their last steps, and acts on the new
    /// observations. After the last step of a lane's rollout its next rollout begins. `lanes` are
    /// i32 `[B]`, all different except for padding. `None` means all lanes, at the same time of
    /// their rollouts, which needs no gather and no scatter.
    #[track_caller]
    pub fn act(
        &self,
        params: &A::Params,
        state: ActorFor<A>,
        outcome: StepOutcome,
        lanes: Option<Tensor>,
    ) -> (Tensor, ActorFor<A>) {
        let of_lanes = |all: Tensor| match lanes {
            Some(lanes) => all.take(lanes, 0),
            None => all,
        };
        let ActorCarry { memory, last_action, keys, time } = tree_map(&state.carry, of_lanes);
        // A lane's first step has no outcome to record. The value written is overwritten by the
        // next outcome.
        let steps = close(state.steps, time - 1, &outcome, lanes);
        let over = time.ge(self.unroll);
        let first = outcome.terminated | outcome.truncated | time.eq(0);
        let time = select(over, 0, time);
        let taken_over = state.taken_over.map(of_lanes);
        let start = tree_map(&state.start, of_lanes);
        let ended = (memory, last_action, outcome.reward, first);
        let rollout = (over, keys, time, taken_over, start);
        let (start, keys) =
            vmap((ended, rollout), |(ended, (over, keys, time, taken_over, start))| {
                let (memory, last_action, reward, first) = ended;
                let begun = checked_begin_episode(&self.agent, memory.clone());
                let memory = tree_select(first, &begun, &memory);
                let now = RolloutStart {
                    memory,
                    feedback: Feedback::after(last_action, reward, first),
                    taken_over,
                };
                let next = next_key(&Key::from_words(keys)).words();
                ((tree_select(time.eq(0), &now, &start), now), select(over, next, keys))
            });
        let (start, RolloutStart { memory, feedback, .. }) = start;
        let input = feedback.input(outcome.observation, outcome.legal_actions);
        let Act { action, memory, extras } = self.act_once(params, memory, input, keys, time);
        let steps = Steps {
            observation: put(steps.observation, outcome.observation, time, lanes),
            action: put(steps.action, action, time, lanes),
            legal_actions: put_tree(&steps.legal_actions, &outcome.legal_actions, time, lanes),
            extras: put_tree(&steps.extras, &extras, time, lanes),
            ..steps
        };
        let carry = ActorCarry { memory, last_action: action, keys, time: time + 1 };
        let put_back = |all: Tensor, some: Tensor| match lanes {
            Some(lanes) => all.set(lanes, some),
            None => some,
        };
        let state = ActorState {
            carry: state.carry.zip_with(&carry, put_back),
            taken_over: state.taken_over.map(|all| put_back(all, zeros(BOOL, time.shape()))),
            start: state.start.zip_with(&start, put_back),
            steps,
        };
        let taken = vmap(action, |action| self.environments.action.clip_action(action));
        (taken, state)
    }

    /// Ends the rollout with the outcomes of the lanes' last steps, and divides its lanes over the
    /// learner devices, one shard each.
    #[track_caller]
    pub fn finish(&self, state: ActorFor<A>, outcome: StepOutcome) -> Vec<ShardFor<A>> {
        let last = full([self.lanes()], self.unroll as i32 - 1);
        let shard = TrajectoryShard {
            start: state.start,
            last_observation: outcome.observation,
            last_legal_actions: outcome.legal_actions,
            steps: close(state.steps, last, &outcome, None),
        };
        self.divided(&shard)
    }

    pub(crate) fn divided(&self, shard: &ShardFor<A>) -> Vec<ShardFor<A>> {
        let share = self.lanes() / self.learners;
        (0..self.learners)
            .map(|learner| {
                let range = learner * share..(learner + 1) * share;
                shard.along_lanes(|leaf, axis| leaf.slice_axis(axis, range.clone()))
            })
            .collect()
    }

    /// One iteration: learns from one rollout of every actor thread, with this device's shards.
    #[track_caller]
    pub fn learn(
        &self,
        state: LearnerStateFor<A>,
        shards: Vec<ShardFor<A>>,
    ) -> (LearnerStateFor<A>, A::Metrics) {
        let rollout = self.rollout(together(&shards));
        let Placed { replicated, sharded } = state;
        let (replicated, sharded, metrics, ()) =
            replicated.iterate::<A, _>(sharded, &self.axes(), |state, store, cx| {
                let (state, store, metrics) = self.agent.learn(state, store, rollout, cx);
                (state, store, metrics, ())
            });
        (Placed { replicated, sharded }, metrics)
    }

    /// The rollout of a shard, as the input of learning.
    pub(crate) fn rollout(&self, shard: ShardFor<A>) -> Rollout<A> {
        let TrajectoryShard { start, last_observation, last_legal_actions, steps } = shard;
        let Steps { observation, action, reward, terminated, truncated, .. } = steps;
        let after = vmap((action, reward, terminated | truncated), |step| {
            vmap(step, |(action, reward, done)| Feedback::after(action, reward, done))
        });
        let shifted = start.feedback.zip_with(&after, |first, rest| {
            concatenate(&[first.expand_dims(0), rest.slice_axis(0, 0..self.unroll - 1)], 0)
        });
        let next = tree_map(&after, |leaf| leaf.index(-1));
        RolloutOf {
            input: shifted.input(observation, steps.legal_actions),
            action,
            reward,
            terminated,
            truncated,
            skipped: self.environments.skips.then(|| terminated & truncated),
            next_observation: steps.next_observation,
            next_input: next.input(last_observation, last_legal_actions),
            taken_over: start.taken_over,
            memory: start.memory,
            extras: steps.extras,
        }
    }

    /// Acts in lanes at their times in the rollout. `keys` are u32 `[B, 2]`, `time` i32 `[B]`.
    fn act_once(
        &self,
        params: &A::Params,
        memory: A::Memory,
        input: Input,
        keys: Tensor,
        time: Tensor,
    ) -> Act<A::Memory, A::Extras> {
        let lanes = (memory, input, Keys::from_words(keys), time);
        let action_type = self.environments.action.ty();
        vmap(lanes, |(memory, input, key, time)| {
            let key = step_key(&key, time, 0);
            checked_act(&self.agent, params, memory, input, Mode::Explore, key, &action_type)
        })
    }
}

/// The key of the next rollout: the first key of [`crate::anakin`]'s split of an iteration's key.
#[track_caller]
pub(crate) fn next_key(key: &Key) -> Key {
    key.fold_in(0)
}

/// One of a step's keys (0 to act, 1 to step, 2 to begin an episode), which come after the first
/// key of [`crate::anakin`]'s split of an iteration's key. Each is computed separately, at its
/// step.
#[track_caller]
pub(crate) fn step_key(key: &Key, time: Tensor, which: usize) -> Key {
    key.fold_in(time * KEYS as i32 + (1 + which as i32))
}

impl<M: Tree, X: Tree> TrajectoryShard<M, X> {
    /// The shard with each leaf replaced by `f` of the leaf and its axis of lanes.
    fn along_lanes(&self, mut f: impl FnMut(Tensor, isize) -> Tensor) -> Self {
        TrajectoryShard {
            start: tree_map(&self.start, |leaf| f(leaf, 0)),
            last_observation: f(self.last_observation, 0),
            last_legal_actions: self.last_legal_actions.map(|leaf| f(leaf, 0)),
            steps: tree_map(&self.steps, |leaf| f(leaf, 1)),
        }
    }
}

/// The threads' shards, concatenated in order.
fn together<M: Tree, X: Tree>(shards: &[TrajectoryShard<M, X>]) -> TrajectoryShard<M, X> {
    let [first, rest @ ..] = shards else {
        unreachable!("a run has at least one actor thread");
    };
    let joined = |axis| {
        move |leaves: &[Tensor]| match leaves {
            [one] => *one,
            several => concatenate(several, axis),
        }
    };
    TrajectoryShard {
        start: first.start.zip_all(rest.iter().map(|shard| &shard.start), joined(0)),
        last_observation: first
            .last_observation
            .zip_all(rest.iter().map(|shard| &shard.last_observation), joined(0)),
        last_legal_actions: first
            .last_legal_actions
            .zip_all(rest.iter().map(|shard| &shard.last_legal_actions), joined(0)),
        steps: first.steps.zip_all(rest.iter().map(|shard| &shard.steps), joined(1)),
    }
}

/// Writes the outcomes of steps. A time below 0 is treated as 0.
pub(crate) fn close<X: Tree>(
    steps: Steps<X>,
    time: Tensor,
    outcome: &StepOutcome,
    lanes: Option<Tensor>,
) -> Steps<X> {
    Steps {
        reward: put(steps.reward, outcome.reward, time, lanes),
        terminated: put(steps.terminated, outcome.terminated, time, lanes),
        truncated: put(steps.truncated, outcome.truncated, time, lanes),
        next_observation: put_tree(&steps.next_observation, &outcome.next_observation, time, lanes),
        ..steps
    }
}

fn put_tree<X: Tree>(steps: &X, step: &X, time: Tensor, lanes: Option<Tensor>) -> X {
    steps.zip_with(step, |steps, step| put(steps, step, time, lanes))
}

/// The steps `[T, N, ..]` with `step` `[B, ..]` of `lanes` written at `time` i32 `[B]`.
fn put(steps: Tensor, step: Tensor, time: Tensor, lanes: Option<Tensor>) -> Tensor {
    let Some(lanes) = lanes else {
        // All lanes are at the same time, so one slice of memory is written.
        let mut starts = vec![scalar(0); steps.rank()];
        starts[0] = time.index(0);
        return dynamic_update_slice(steps, step.expand_dims(0), &starts);
    };
    let shape = steps.shape();
    let (all, n) = (shape[0] * shape[1], shape[1] as i32);
    let rows = steps.reshape([&[all], &shape[2..]].concat());
    let places = select(lanes.lt(n), time.maximum(0) * n + lanes, all as i32);
    rows.set(places, step).reshape(shape)
}
