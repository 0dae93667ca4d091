//! The loop of an agent and an environment: the two functions that Anakin runs.
//!
//! Every environment has its own key, folded from the run's key and the environment's *global*
//! index. So `n` devices with `N / n` environments each draw what one device with `N` environments
//! draws.

pub use crate::lanes::{Feedback, Learner};
use crate::lanes::{KEYS, lane_keys, run_keys};
use crate::learn::{
    Act, Agent, Axes, Input, LaneId, Learn, Mode, Rollout, RolloutOf, checked_act,
    checked_begin_episode, checked_store,
};
use podracer_dsl::prelude::*;
use podracer_envs::{
    AutoReset, Environment, TimeStep, WithStatistics,
    wrappers::{Episode, StatisticsState},
};

/// The part of a run's state that belongs to single lanes, `[N / n, ...]` on each of `n` devices.
#[derive(Tree, Clone)]
pub struct Actors<M: Tree, S: Tree, X: Tree> {
    /// Lanes of this device.
    pub lanes: Lane<M, S>,
    /// The agent's store.
    pub store: X,
}

/// One environment, with its agent's memory and its keys.
#[derive(Tree, Clone)]
pub struct Lane<M: Tree, S: Tree> {
    /// The agent's memory.
    pub memory: M,
    /// The environment.
    pub environment: StatisticsState<S>,
    /// The outcome of the last step, for the next input.
    pub feedback: Feedback,
    /// The key for later steps.
    pub key: Key,
}

/// The episodes that ended in one iteration, on each device.
#[derive(Tree, Clone)]
pub struct Episodes {
    /// Number of episodes. i32 `[1]`
    pub count: Tensor,
    /// Sum of the episodes' returns. f32 `[1]`
    pub return_sum: Tensor,
    /// Sum of the episodes' lengths, in steps. i32 `[1]`
    pub length_sum: Tensor,
    /// Sum of the episodes' successes, f32 `[1]`; `None` for an environment without
    /// [`Environment::success`].
    pub success_sum: Option<Tensor>,
}

/// One step of one lane, as in [`Rollout`].
#[derive(Tree, Clone)]
struct Step<O: Tree, X: Tree> {
    input: Input<O>,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    next_observation: Option<O>,
    extras: X,
}

/// An agent in an environment.
#[derive(Clone)]
pub struct AgentLoop<E: Environment, A: Learn<Observation = E::Observation>> {
    environment: AutoReset<WithStatistics<E>>,
    agent: A,
    /// Lanes of one device.
    lanes: usize,
    /// Steps of each lane in an iteration.
    unroll: usize,
    axes: Axes,
}

/// The state of a device's part of a run.
pub type LoopState<E, A> = Placed<
    Learner<<A as Learn>::State>,
    Actors<<A as Agent>::Memory, <E as Environment>::State, <A as Learn>::Store>,
>;

type Lanes<E, A> = Lane<<A as Agent>::Memory, <E as Environment>::State>;
type RolloutStep<A> = Step<<A as Agent>::Observation, <A as Agent>::Extras>;

impl<E: Environment, A: Learn<Observation = E::Observation>> AgentLoop<E, A> {
    /// An agent in an environment, with `lanes` lanes on each device and `unroll` steps per lane
    /// and iteration. The devices are the replicas of the program. There is one replica, unless
    /// [`AgentLoop::spread`] sets more.
    pub fn new(environment: E, agent: A, lanes: usize, unroll: usize) -> Self {
        AgentLoop {
            environment: environment.with_statistics().auto_reset(),
            agent,
            lanes,
            unroll,
            axes: Axes::replicas(1),
        }
    }

    /// Spreads the run over axes. Each member of the axes has its own `lanes` lanes.
    #[must_use]
    pub fn spread(self, axes: Axes) -> Self {
        AgentLoop { axes, ..self }
    }

    /// The initial state of a run with this key.
    #[track_caller]
    pub fn init(&self, key: Key) -> LoopState<E, A> {
        let [params_key, learner_key, lanes_key] = run_keys(key);
        let learner = Learner::new(&self.agent, params_key, learner_key);
        let indices = arange(self.lanes) + self.axes.index() * self.lanes as i32;
        let action = self.environment.action_space().ty();
        let lanes = vmap((indices, whole(lanes_key)), |(index, key)| {
            let [environment_key, key] = lane_keys(key, index);
            let id = LaneId { index, lanes: self.lanes * self.axes.members() };
            Lane {
                memory: self.agent.init_memory(id),
                environment: self.environment.initial_state(environment_key),
                feedback: Feedback::begin(&action),
                key,
            }
        });
        let params = self.agent.params(&learner.agent);
        // Only the types are needed: no rollout is left in the program.
        let (rollout, _) = self.rollout(&params, lanes.clone());
        let store = checked_store(&self.agent, &rollout.spec(), &self.axes);
        Placed { replicated: learner, sharded: Actors { lanes, store } }
    }

    /// One iteration: acts for `unroll` steps and learns from them. Returns the agent's metrics,
    /// and the episodes that ended.
    #[track_caller]
    pub fn iterate(
        &self,
        state: LoopState<E, A>,
    ) -> (LoopState<E, A>, Placed<A::Metrics, Episodes>) {
        let Placed { replicated: learner, sharded: Actors { lanes, store } } = state;
        let (learner, store, metrics, (lanes, episodes)) =
            learner.iterate::<A, _>(store, &self.axes, |state, store, cx| {
                self.agent.iterate(state, store, |params| self.rollout(params, lanes), cx)
            });
        let state = Placed { replicated: learner, sharded: Actors { lanes, store } };
        (state, Placed { replicated: metrics, sharded: episodes })
    }

    /// Acts for `unroll` steps without learning. Returns the rollout, the state after it, and the
    /// episodes that ended.
    #[track_caller]
    pub fn act(&self, state: LoopState<E, A>) -> (Rollout<A>, LoopState<E, A>, Episodes) {
        let Placed { replicated, sharded: Actors { lanes, store } } = state;
        let params = self.agent.params(&replicated.agent);
        let (rollout, (lanes, episodes)) = self.rollout(&params, lanes);
        (rollout, Placed { replicated, sharded: Actors { lanes, store } }, episodes)
    }

    /// The agent of the loop.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Acts for `unroll` steps in every lane.
    fn rollout(
        &self,
        params: &A::Params,
        lanes: Lanes<E, A>,
    ) -> (Rollout<A>, (Lanes<E, A>, Episodes)) {
        let memory = lanes.memory.clone();
        // Derives all keys of the iteration at once: if a key were derived in the loop, XLA would
        // compute it again for every field of the state that reads it.
        let (next, keys) = vmap(lanes.key, |key| {
            let words = key.split_n(1 + KEYS * self.unroll).words();
            let rest = words.slice_axis(0, 1..words.dim(0));
            (words.index(0), rest.reshape([self.unroll, KEYS, 2]))
        });
        let lanes = Lane { key: vmap(next, Key::from_words), ..lanes };
        let none = Episodes::none(self.lanes, lanes.environment.last.success.is_some());
        let ((lanes, finished), steps) =
            scan((lanes, none), keys.axis(1), |(lanes, finished), keys| {
                vmap((lanes, finished, keys), |(lane, finished, keys)| {
                    let (lane, step) = self.step(params, lane, keys);
                    let done = step.terminated | step.truncated;
                    let finished = finished.and(done, lane.environment.last);
                    ((lane, finished), step)
                })
            });
        // Taken from the last step and not from the carry, which XLA drops if the agent does not
        // read it.
        let last = (steps.action.index(-1), steps.reward.index(-1));
        let done = steps.terminated.index(-1) | steps.truncated.index(-1);
        let feedback =
            vmap((last, done), |((action, reward), done)| Feedback::after(action, reward, done));
        let next_input = vmap((lanes.environment.clone(), feedback), |(state, feedback)| {
            self.input(state, feedback)
        });
        let lanes = Lane { feedback, ..lanes };
        let Step { input, action, reward, terminated, truncated, next_observation, extras } = steps;
        let rollout = RolloutOf {
            input,
            action,
            reward,
            terminated,
            truncated,
            skipped: None,
            next_observation,
            next_input,
            taken_over: None,
            memory,
            extras,
        };
        let episodes = tree_map(&finished, |numbers| numbers.sum().reshape([1]));
        (rollout, (lanes, episodes))
    }

    /// The agent's input in a state.
    fn input(&self, state: StatisticsState<E::State>, feedback: Feedback) -> Input<E::Observation> {
        let _part = part("the environment's observe");
        let legal = self.environment.legal_actions(&state);
        feedback.input(self.environment.observe(state), legal)
    }

    /// One step of one lane. `keys` are u32 `[KEYS, 2]`.
    fn step(
        &self,
        params: &A::Params,
        lane: Lanes<E, A>,
        keys: Tensor,
    ) -> (Lanes<E, A>, RolloutStep<A>) {
        let [act_key, step_key, reset_key] = [0, 1, 2].map(|i| Key::from_words(keys.index(i)));
        let input = self.input(lane.environment.clone(), lane.feedback);
        let space = self.environment.action_space();
        let Act { action, memory, extras } = checked_act(
            &self.agent,
            params,
            lane.memory,
            input.clone(),
            Mode::Explore,
            act_key,
            &space.ty(),
        );
        let stepping = part("the environment's step");
        let taken = space.clip_action(action);
        let (environment, timestep) =
            self.environment.step_with_keys(lane.environment, taken, step_key, reset_key);
        drop(stepping);
        let TimeStep { observation, reward, terminated, truncated } = timestep.clone();
        let done = timestep.done();
        let begun = checked_begin_episode(&self.agent, memory.clone());
        let memory = tree_select(done, &begun, &memory);
        let next_observation = self.environment.truncates().then_some(observation);
        let step = Step { input, action, reward, terminated, truncated, next_observation, extras };
        let feedback = Feedback::after(action, reward, done);
        (Lane { memory, environment, feedback, key: lane.key }, step)
    }
}

impl Episodes {
    /// Zero episodes in each of `environments` environments, with or without a success.
    fn none(environments: usize, succeed: bool) -> Episodes {
        Episodes {
            count: zeros(I32, [environments]),
            return_sum: zeros(F32, [environments]),
            length_sum: zeros(I32, [environments]),
            success_sum: succeed.then(|| zeros(F32, [environments])),
        }
    }

    /// These episodes, plus the `last` episode of each environment that is `done`.
    fn and(&self, done: Tensor, last: Episode) -> Episodes {
        Episodes {
            count: self.count + done.astype(I32),
            return_sum: self.return_sum + select(done, last.episode_return, 0.0),
            length_sum: self.length_sum + select(done, last.length, 0),
            success_sum: self
                .success_sum
                .zip(last.success)
                .map(|(sum, success)| sum + select(done, success, 0.0)),
        }
    }
}
