//! Puts an agent into an environment: the two functions that Anakin loops.
//!
//! Every environment has its own key, folded from the run's key and the environment's *global* index, so that `n`
//! devices with `N / n` environments each see what one device with `N` sees.

use crate::agents::{Agent, Learning, Trajectory};
use crate::ravel::{ravel, unravel};
use podracer_dsl::prelude::*;
use podracer_envs::{
    AutoReset, Environment, WithStatistics,
    wrappers::{Episode, StatisticsState},
};

/// The replicated part of a run's state: equal on all devices.
#[derive(Tree, Clone)]
pub struct Learner<N: Tree, O: Tree> {
    /// The networks.
    pub nets: N,
    /// The optimizer's state.
    pub opt: O,
    /// What the next cycle's draws of the learner come from.
    pub key: Key,
}

/// The sharded part: what belongs to single environments, `[N / n, ...]` on each of `n` devices.
#[derive(Tree, Clone)]
pub struct Actors<A: Tree, S: Tree, X: Tree> {
    /// The agent's state in each environment, the environment, its key.
    pub lanes: Lane<A, S>,
    /// What the agent keeps from cycle to cycle.
    pub experience: X,
}

/// One environment and who acts in it.
#[derive(Tree, Clone)]
pub struct Lane<A: Tree, S: Tree> {
    /// The agent's state in it.
    pub actor: A,
    /// The environment.
    pub environment: StatisticsState<S>,
    /// What its next draws come from.
    pub key: Key,
}

/// The episodes that ended in one update, on each device.
#[derive(Tree, Clone)]
pub struct Episodes {
    /// How many. i32 `[1]`
    pub count: Tensor,
    /// The sum of their returns. f32 `[1]`
    pub return_sum: Tensor,
    /// The sum of their lengths, in steps. i32 `[1]`
    pub length_sum: Tensor,
}

/// What one step of one environment leaves.
#[derive(Tree, Clone)]
struct Step<O: Tree, X: Tree> {
    observation: O,
    action: Tensor,
    reward: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    next_observation: Vec<O>,
    output: X,
}

/// The keys of a step: to act, to step, to begin the next episode. A lane's key of a cycle is split into the next cycle's
/// and those of each step.
pub(crate) const KEYS: usize = 3;

/// An agent in an environment.
#[derive(Clone)]
pub struct AgentLoop<E: Environment, A: Agent<Observation = E::Observation>> {
    environment: AutoReset<WithStatistics<E>>,
    agent: A,
    /// Environments of one device.
    environments: usize,
    /// Steps of a cycle.
    unroll: usize,
}

/// The state of a device's part of a run.
pub type LoopState<E, A> = Placed<
    Learner<<A as Agent>::Nets, <A as Agent>::Opt>,
    Actors<<A as Agent>::Actor, <E as Environment>::State, <A as Agent>::Experience>,
>;

type Lanes<E, A> = Lane<<A as Agent>::Actor, <E as Environment>::State>;
type Steps<A> = Step<<A as Agent>::Observation, <A as Agent>::Output>;
/// The trajectory of an agent.
pub(crate) type CycleFor<A> = Trajectory<<A as Agent>::Observation, <A as Agent>::Output>;
/// The learner of an agent.
pub(crate) type LearnerFor<A> = Learner<<A as Agent>::Nets, <A as Agent>::Opt>;

/// The learner at the start of a run.
#[track_caller]
pub(crate) fn first_learner<A: Agent>(agent: &A, nets_key: Key, learner_key: Key) -> LearnerFor<A> {
    let nets = agent.init_nets(nets_key);
    let opt = agent.init_opt(&nets);
    Learner { nets, opt, key: learner_key }
}

/// The keys of a run: of its networks, its learner, its environments.
#[track_caller]
pub(crate) fn run_keys(key: Key) -> [Key; 3] {
    let keys = key.split_n(3);
    [0, 1, 2].map(|i| keys.at(i))
}

/// The keys of the environment with a global index: for its first state, and for all of its steps.
#[track_caller]
pub(crate) fn lane_keys(lanes_key: Key, index: Tensor) -> [Key; 2] {
    let keys = lanes_key.fold_in(index).split_n(2);
    [0, 1].map(|i| keys.at(i))
}

/// One cycle of learning. `rollout` gives what was acted by these networks, the agent's state in each environment before
/// it, and what else is to come out; an agent that learns [`Learning::ThroughLoop`] is differentiated through it.
#[track_caller]
pub(crate) fn cycle<A: Agent, W: Tree>(
    agent: &A,
    learner: LearnerFor<A>,
    experience: A::Experience,
    rollout: impl FnOnce(&A::Nets) -> (A::Actor, CycleFor<A>, W),
) -> (LearnerFor<A>, A::Experience, A::Metrics, W) {
    let Learner { nets, opt, key } = learner;
    let [key, cycle_key] = key.split_into();
    let (nets, opt, experience, metrics, with) = match agent.learning() {
        Learning::ThroughLoop => {
            let ((_, (experience, metrics, with)), grads) = value_and_grad(nets.clone(), |nets| {
                let (actor, trajectory, with) = rollout(&nets);
                let (experience, batch) =
                    agent.update_experience(&nets, experience, actor, trajectory, cycle_key);
                let (loss, metrics) = agent.loss(nets, &batch, scalar(0));
                (loss, (experience, metrics, with))
            });
            let (nets, opt) = agent.optimize_from_grads(nets, opt, pmean(grads, Replicas));
            (nets, opt, experience, metrics, with)
        }
        Learning::FromBatch { updates } => {
            let (actor, trajectory, with) = rollout(&nets);
            let (experience, batch) =
                agent.update_experience(&nets, experience, actor, trajectory, cycle_key);
            let mut spec = None;
            let ((nets, opt), metrics) = scan((nets, opt), 0..updates, |(nets, opt), update| {
                let ((_, metrics), grads) =
                    value_and_grad(nets.clone(), |nets| agent.loss(nets, &batch, update));
                let stepped = agent.optimize_from_grads(nets, opt, pmean(grads, Replicas));
                spec = Some(metrics.spec());
                (stepped, ravel(&metrics))
            });
            let metrics = tree_map(&metrics, |metrics| metrics.mean_axis(0));
            let metrics = unravel(&metrics, &spec.expect("the loop's body is traced"));
            let nets = agent.settle(nets, &batch);
            (nets, opt, experience, metrics, with)
        }
    };
    (Learner { nets, opt, key }, experience, metrics, with)
}

impl<E: Environment, A: Agent<Observation = E::Observation>> AgentLoop<E, A> {
    /// `environments` on each device, stepped `unroll` times a cycle.
    pub fn new(environment: E, agent: A, environments: usize, unroll: usize) -> Self {
        AgentLoop {
            environment: environment.with_statistics().auto_reset(),
            agent,
            environments,
            unroll,
        }
    }

    /// The agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The state of one device at the start of a run.
    #[track_caller]
    pub fn init(&self, key: Key) -> LoopState<E, A> {
        let [nets_key, learner_key, lanes_key] = run_keys(key);
        let learner = first_learner(&self.agent, nets_key, learner_key);
        let first = axis_index(Replicas) * self.environments as i32;
        let indices = arange(self.environments) + first;
        let lanes = vmap((indices, whole(lanes_key)), |(index, key)| {
            let [environment_key, key] = lane_keys(key, index);
            Lane {
                actor: self.agent.init_actor(),
                environment: self.environment.initial_state(environment_key),
                key,
            }
        });
        let experience = self.agent.init_experience(self.environments);
        Placed { replicated: learner, sharded: Actors { lanes, experience } }
    }

    /// One cycle: act for `unroll` steps, learn from them. Gives the metrics, averaged over the cycle's updates, and the
    /// episodes that ended.
    #[track_caller]
    pub fn update(
        &self,
        state: LoopState<E, A>,
    ) -> (LoopState<E, A>, Placed<A::Metrics, Episodes>) {
        let Placed { replicated: learner, sharded: Actors { lanes, experience } } = state;
        let (learner, experience, metrics, (lanes, episodes)) =
            cycle(&self.agent, learner, experience, |nets| {
                let actor = lanes.actor.clone();
                let (lanes, trajectory, episodes) = self.rollout(nets, lanes);
                (actor, trajectory, (lanes, episodes))
            });
        let state = Placed { replicated: learner, sharded: Actors { lanes, experience } };
        let metrics = Placed { replicated: metrics, sharded: episodes };
        (state, metrics)
    }

    /// Acts for `unroll` steps in every environment.
    fn rollout(&self, nets: &A::Nets, lanes: Lanes<E, A>) -> (Lanes<E, A>, CycleFor<A>, Episodes) {
        // All keys of the cycle at once: XLA would compute a key that is drawn in the loop again for every field of the
        // state that reads it.
        let (next, keys) = vmap(lanes.key, |key| {
            let words = key.split_n(1 + KEYS * self.unroll).words();
            let rest = words.slice_axis(0, 1..words.dim(0));
            (words.index(0), rest.reshape([self.unroll, KEYS, 2]))
        });
        let lanes = Lane { key: vmap(next, Key::from_words), ..lanes };
        let none = Episodes::none(self.environments);
        let ((lanes, ended), steps) = scan((lanes, none), keys.axis(1), |(lanes, ended), keys| {
            vmap((lanes, ended, keys), |(lane, ended, keys)| {
                let (lane, step) = self.step(nets, lane, keys);
                let done = step.terminated | step.truncated;
                let ended = ended.and(done, lane.environment.last);
                ((lane, ended), step)
            })
        });
        let last_observation =
            vmap(lanes.environment.clone(), |environment| self.environment.observe(environment));
        let trajectory = Trajectory {
            observation: steps.observation,
            action: steps.action,
            reward: steps.reward,
            terminated: steps.terminated,
            truncated: steps.truncated,
            skipped: Vec::new(),
            next_observation: steps.next_observation,
            last_observation,
            output: steps.output,
        };
        let episodes = tree_map(&ended, |each| each.sum().reshape([1]));
        (lanes, trajectory, episodes)
    }

    /// One step of one environment. `keys` are u32 `[KEYS, 2]`.
    fn step(&self, nets: &A::Nets, lane: Lanes<E, A>, keys: Tensor) -> (Lanes<E, A>, Steps<A>) {
        let [act_key, step_key, reset_key] = [0, 1, 2].map(|i| Key::from_words(keys.index(i)));
        let observation = self.environment.observe(lane.environment.clone());
        let (action, actor, output) =
            self.agent.act(nets, lane.actor, observation.clone(), act_key);
        let (environment, timestep) =
            self.environment.step_with_keys(lane.environment, action, step_key, reset_key);
        let actor = tree_select(timestep.done(), &self.agent.init_actor(), &actor);
        let next_observation =
            if self.environment.truncates() { vec![timestep.observation] } else { Vec::new() };
        let step = Step {
            observation,
            action,
            reward: timestep.reward,
            terminated: timestep.terminated,
            truncated: timestep.truncated,
            next_observation,
            output,
        };
        (Lane { actor, environment, key: lane.key }, step)
    }
}

impl Episodes {
    /// None, in each of `environments`.
    fn none(environments: usize) -> Episodes {
        Episodes {
            count: zeros(I32, [environments]),
            return_sum: zeros(F32, [environments]),
            length_sum: zeros(I32, [environments]),
        }
    }

    /// And the last one of an environment, where it is `done`.
    fn and(&self, done: Tensor, last: Episode) -> Episodes {
        Episodes {
            count: self.count + done.astype(I32),
            return_sum: self.return_sum + select(done, last.episode_return, 0.0),
            length_sum: self.length_sum + select(done, last.length, 0),
        }
    }
}
