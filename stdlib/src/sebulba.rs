//! An agent that acts and learns on different devices, in environments on the host: the functions that Sebulba
//! schedules. Everything random is drawn as [`crate::anakin`] draws it, and the learning is the same code: a cycle whose
//! trajectories were acted with the parameters of its beginning is Anakin's.

use crate::agents::{Agent, Learning, Trajectory};
use crate::anakin::{KEYS, LearnerFor, cycle, first_learner, lane_keys, run_keys};
use podracer_dsl::prelude::*;
use podracer_envs::host::{HostSpec, StepOutcome};
use podracer_envs::{AutoReset, Environment};

/// What an actor thread keeps on its device, for `N` environments and trajectories of `T` steps.
#[derive(Tree, Clone)]
pub struct ActorState<A: Tree, X: Tree> {
    /// The agent's state in each environment. `[N, ...]`
    pub actor: A,
    /// The same at the start of the trajectory, and the trajectory's keys.
    pub start: ActorLanes<A>,
    /// The trajectory so far.
    pub steps: Steps<X>,
    /// How many of its steps were acted; the outcome of the last one is not in yet. i32 `[]`, from 0 to `T`
    pub time: Tensor,
}

/// What of an [`ActorState`] the next trajectory depends on.
#[derive(Tree, Clone)]
pub struct ActorCarry<A: Tree> {
    /// The agent's state in each environment. `[N, ...]`
    pub actor: A,
    /// The last trajectory's keys, from which the next ones come. u32 `[N, 2]`
    pub keys: Tensor,
    /// Whether there was one: `T`, and 0 otherwise. i32 `[]`
    pub time: Tensor,
}

/// The agent's state in each environment at the start of a trajectory, and the key that all of the trajectory's are drawn
/// from.
#[derive(Tree, Clone)]
pub struct ActorLanes<A: Tree> {
    /// The agent's. `[N, ...]`
    pub actor: A,
    /// The keys' words. u32 `[N, 2]`
    pub keys: Tensor,
}

/// The steps of a trajectory, as in [`Trajectory`]: `[T, N, ...]`.
#[derive(Tree, Clone)]
#[allow(missing_docs, reason = "the names are the trajectory's")]
pub struct Steps<X: Tree> {
    pub observation: Tensor,
    pub action: Tensor,
    pub reward: Tensor,
    pub terminated: Tensor,
    pub truncated: Tensor,
    pub next_observation: Vec<Tensor>,
    pub output: X,
}

/// What goes from an actor to a learner: its share of a trajectory.
#[derive(Tree, Clone)]
pub struct TrajectoryShard<A: Tree, X: Tree> {
    /// Agent and keys at the trajectory's start. `[N, ...]`
    pub start: ActorLanes<A>,
    /// What would be acted on next. `[N, ...]`
    pub last_observation: Tensor,
    /// `[T, N, ...]`
    pub steps: Steps<X>,
}

/// An agent, split into acting and learning.
#[derive(Clone)]
pub struct ActorLearner<A: Agent<Observation = Tensor>> {
    /// The agent.
    pub agent: A,
    /// The environments of one actor thread.
    pub environments: HostSpec,
    /// Steps of a trajectory.
    pub unroll: usize,
    /// Devices that learn; they divide the environments of a thread.
    pub learners: usize,
    /// Into how many successive updates a cycle's batch is split along its environments.
    pub splits: usize,
    /// How often a cycle's batch is learnt from.
    pub repeats: usize,
}

/// The state of the learning devices.
pub type LearnerStateFor<A> = Placed<LearnerFor<A>, <A as Agent>::Experience>;
/// The state of an actor thread.
pub type ActorFor<A> = ActorState<<A as Agent>::Actor, <A as Agent>::Output>;
/// What an actor thread sends.
pub type ShardFor<A> = TrajectoryShard<<A as Agent>::Actor, <A as Agent>::Output>;

impl<A: Agent<Observation = Tensor>> ActorLearner<A> {
    /// The learner at the start of a run of `threads` actor threads.
    #[track_caller]
    pub fn init(&self, key: Key, threads: usize) -> LearnerStateFor<A> {
        let [nets_key, learner_key, _] = run_keys(key);
        let environments = threads * self.environments.environments;
        Placed {
            replicated: first_learner(&self.agent, nets_key, learner_key),
            sharded: self.agent.init_experience(environments / self.learners / self.splits),
        }
    }

    /// An actor thread at the start of a run; `first` is the global index of its first environment. i32 `[]`
    #[track_caller]
    pub fn start(&self, key: Key, first: Tensor) -> ActorFor<A> {
        let [nets_key, _, lanes_key] = run_keys(key);
        let environments = self.environments.environments;
        let indices = arange(environments) + first;
        let lanes = vmap((indices, whole(lanes_key)), |(index, key)| {
            let [_, key] = lane_keys(key, index);
            ActorLanes { actor: self.agent.init_actor(), keys: key.words() }
        });
        // Only the types of what acting gives are needed: no network is left in the program.
        let nets = self.agent.init_nets(nets_key);
        let shown = self.environments.observation_type();
        let observation = zeros(shown.dtype, shown.shape.clone());
        let (action, _, output) = self.act_once(&nets, lanes.clone(), observation, scalar(0));
        let each = |dtype| zeros(dtype, [environments]);
        let steps = Steps {
            observation,
            action,
            reward: each(F32),
            terminated: each(BOOL),
            truncated: each(BOOL),
            next_observation: self
                .environments
                .truncates
                .then_some(observation)
                .into_iter()
                .collect(),
            output,
        };
        let steps = tree_map(&steps, |leaf| {
            zeros(leaf.dtype(), [&[self.unroll], &leaf.shape()[..]].concat())
        });
        ActorState { actor: lanes.actor.clone(), start: lanes, steps, time: scalar(0) }
    }

    /// One inference: takes up the outcome of the last step, and acts on what it shows. After the last step of a
    /// trajectory the next one begins.
    #[track_caller]
    pub fn act(
        &self,
        nets: &A::Nets,
        state: ActorFor<A>,
        outcome: StepOutcome,
    ) -> (Tensor, ActorFor<A>) {
        // At a trajectory's first step there is no outcome to take up. What is written then is overwritten by the next.
        let steps = close(state.steps, state.time - 1, &outcome);
        let over = state.time.ge(self.unroll);
        let time = select(over, 0, state.time);
        let actor = self.reset(outcome.terminated | outcome.truncated, state.actor);
        let next_keys = vmap(Keys::from_words(state.start.keys), |key| next_key(&key).words());
        let start = ActorLanes {
            actor: tree_select(time.eq(0), &actor, &state.start.actor),
            keys: select(over, next_keys, state.start.keys),
        };
        let lanes = ActorLanes { actor, keys: start.keys };
        let (action, actor, output) = self.act_once(nets, lanes, outcome.observation, time);
        let steps = Steps {
            observation: put(steps.observation, outcome.observation, time),
            action: put(steps.action, action, time),
            output: put_tree(&steps.output, &output, time),
            ..steps
        };
        let time = time + 1;
        let state = ActorState { actor, start, steps, time };
        (action, state)
    }

    /// What of an actor's state, after a trajectory's last step, the next one depends on.
    pub fn carried(&self, state: &ActorFor<A>) -> ActorCarry<A::Actor> {
        ActorCarry { actor: state.actor.clone(), keys: state.start.keys, time: state.time }
    }

    /// The trajectory, after its last step's outcome has arrived: a share of its environments for each learner.
    #[track_caller]
    pub fn finish(&self, state: ActorFor<A>, outcome: StepOutcome) -> Vec<ShardFor<A>> {
        let packet = TrajectoryShard {
            start: state.start,
            last_observation: outcome.observation,
            steps: close(state.steps, scalar(self.unroll as i32 - 1), &outcome),
        };
        let share = self.environments.environments / self.learners;
        (0..self.learners)
            .map(|learner| {
                let range = learner * share..(learner + 1) * share;
                packet.along_environments(|leaf, axis| leaf.slice_axis(axis, range.clone()))
            })
            .collect()
    }

    /// One cycle: learns from one trajectory of every actor thread. Gives the metrics, averaged over the cycle's updates.
    #[track_caller]
    pub fn learn(
        &self,
        state: LearnerStateFor<A>,
        packets: Vec<ShardFor<A>>,
    ) -> (LearnerStateFor<A>, A::Metrics) {
        let packet = together(packets);
        let state = (state.replicated, state.sharded);
        let ((learner, experience), metrics) = if self.splits * self.repeats == 1 {
            self.learn_from(state, packet)
        } else {
            let parts = packet.along_environments(|leaf, axis| {
                let mut shape = leaf.shape();
                let at = axis as usize;
                shape[at] /= self.splits;
                shape.insert(at, self.splits);
                leaf.reshape(shape).move_axis(axis, 0)
            });
            let (state, metrics) = scan(state, 0..self.repeats, |state, _| {
                scan(state, parts, |state, part| self.learn_from(state, part))
            });
            let mean = |metric: Tensor| metric.mean_axis([0, 1]);
            (state, tree_map(&metrics, mean))
        };
        let state = Placed { replicated: learner, sharded: experience };
        (state, metrics)
    }

    fn learn_from(
        &self,
        (learner, experience): (LearnerFor<A>, A::Experience),
        packet: ShardFor<A>,
    ) -> ((LearnerFor<A>, A::Experience), A::Metrics) {
        let (learner, experience, metrics, ()) = cycle(&self.agent, learner, experience, |nets| {
            let Steps {
                observation,
                action,
                reward,
                terminated,
                truncated,
                next_observation,
                output,
            } = packet.steps;
            let actor = packet.start.actor.clone();
            let output = match self.agent.learning() {
                Learning::FromBatch { .. } => output,
                // The loss is differentiated through acting: with the same networks and keys, the same acting again.
                Learning::ThroughLoop => {
                    let ActorLanes { actor, keys } = packet.start;
                    let steps = (arange(self.unroll), observation, terminated | truncated);
                    let (_, outputs) = scan(actor, steps, |actor, (time, seen, done)| {
                        let lanes = ActorLanes { actor, keys };
                        let (_, actor, output) = self.act_once(nets, lanes, seen, time);
                        (self.reset(done, actor), output)
                    });
                    outputs
                }
            };
            let skipped = (self.environments.skips).then(|| terminated & truncated);
            let trajectory = Trajectory {
                observation,
                action,
                reward,
                terminated,
                truncated,
                skipped: skipped.into_iter().collect(),
                next_observation,
                last_observation: packet.last_observation,
                output,
            };
            (actor, trajectory, ())
        });
        ((learner, experience), metrics)
    }

    /// Acts in every environment at a step of a trajectory: actions, the agent's next states, what is left for learning.
    fn act_once(
        &self,
        nets: &A::Nets,
        lanes: ActorLanes<A::Actor>,
        observation: Tensor,
        time: Tensor,
    ) -> (Tensor, A::Actor, A::Output) {
        let keys = Keys::from_words(lanes.keys);
        vmap((lanes.actor, keys, observation), |(actor, key, seen)| {
            self.agent.act(nets, actor, seen, step_key(&key, time, 0))
        })
    }

    /// The agent's state in each environment, at the beginning of an episode where the last one is done.
    fn reset(&self, done: Tensor, actor: A::Actor) -> A::Actor {
        vmap((done, actor), |(done, actor)| tree_select(done, &self.agent.init_actor(), &actor))
    }
}

/// The key of the trajectory after that of `key`: the first of those that [`crate::anakin`] splits a cycle's key into.
#[track_caller]
fn next_key(key: &Key) -> Key {
    key.fold_in(0)
}

/// One of a step's keys (0 to act, 1 to step, 2 to begin an episode): the others of them. Each is computed by itself,
/// where the step is.
#[track_caller]
fn step_key(key: &Key, time: Tensor, which: usize) -> Key {
    key.fold_in(time * KEYS as i32 + (1 + which as i32))
}

impl<A: Tree, X: Tree> TrajectoryShard<A, X> {
    /// The packet with `f` of each leaf and its axis of environments.
    fn along_environments(&self, mut f: impl FnMut(Tensor, isize) -> Tensor) -> Self {
        TrajectoryShard {
            start: tree_map(&self.start, |leaf| f(leaf, 0)),
            last_observation: f(self.last_observation, 0),
            steps: tree_map(&self.steps, |leaf| f(leaf, 1)),
        }
    }
}

/// The packets of all threads as one, in order.
fn together<A: Tree, X: Tree>(packets: Vec<TrajectoryShard<A, X>>) -> TrajectoryShard<A, X> {
    let leaves: Vec<Vec<Tensor>> = packets.iter().map(Tree::leaves).collect();
    let mut index = 0..;
    packets[0].along_environments(|leaf, axis| match (&leaves[..], index.next()) {
        ([_], _) | (_, None) => leaf,
        (all, Some(i)) => {
            let each: Vec<Tensor> = all.iter().map(|leaves| leaves[i]).collect();
            concatenate(&each, axis)
        }
    })
}

/// Writes what a step brought. A time below 0 is taken for 0.
fn close<X: Tree>(steps: Steps<X>, time: Tensor, outcome: &StepOutcome) -> Steps<X> {
    Steps {
        reward: put(steps.reward, outcome.reward, time),
        terminated: put(steps.terminated, outcome.terminated, time),
        truncated: put(steps.truncated, outcome.truncated, time),
        next_observation: put_tree(&steps.next_observation, &outcome.next_observation, time),
        ..steps
    }
}

fn put_tree<X: Tree>(steps: &X, step: &X, time: Tensor) -> X {
    steps.zip_with(step, |steps, step| put(steps, step, time))
}

/// `steps` with `step` at a time.
fn put(steps: Tensor, step: Tensor, time: Tensor) -> Tensor {
    let mut at = vec![scalar(0); steps.rank()];
    at[0] = time;
    dynamic_update_slice(steps, step.expand_dims(0), &at)
}

/// A batch of environments of the DSL, for a program that steps them on the host.
#[derive(Clone)]
pub struct HostLoop<E: Environment<Observation = Tensor>> {
    environment: AutoReset<E>,
    environments: usize,
    unroll: usize,
}

/// The environments of a [`HostLoop`].
#[derive(Tree, Clone)]
pub struct HostLanes<S: Tree> {
    /// Their states. `[N, ...]`
    pub environment: S,
    /// The words of the keys that all of a trajectory's are drawn from. u32 `[N, 2]`
    pub keys: Tensor,
    /// The step of the trajectory. i32 `[]`
    pub time: Tensor,
}

impl<E: Environment<Observation = Tensor>> HostLoop<E> {
    /// So many environments, which draw keys for trajectories of `unroll` steps, as Anakin does.
    pub fn new(environment: E, environments: usize, unroll: usize) -> Self {
        HostLoop { environment: environment.auto_reset(), environments, unroll }
    }

    /// What the batch takes and gives.
    pub fn spec(&self) -> HostSpec {
        HostSpec {
            environments: self.environments,
            observation: self.environment.observation_space(),
            action: self.environment.action_space(),
            truncates: self.environment.truncates(),
            skips: false,
        }
    }

    /// The environments and their first observations, from the run's key and the global index of the first. i32 `[]`
    #[track_caller]
    pub fn begin(&self, key: Key, first: Tensor) -> (HostLanes<E::State>, Tensor) {
        let [_, _, lanes_key] = run_keys(key);
        let indices = arange(self.environments) + first;
        let (environment, keys) = vmap((indices, whole(lanes_key)), |(index, key)| {
            let [environment_key, key] = lane_keys(key, index);
            (self.environment.initial_state(environment_key), key.words())
        });
        let observation = vmap(environment.clone(), |state| self.environment.observe(state));
        let lanes = HostLanes { environment, keys, time: scalar(0) };
        (lanes, observation)
    }

    /// One step of all.
    #[track_caller]
    pub fn step(
        &self,
        lanes: HostLanes<E::State>,
        action: Tensor,
    ) -> (HostLanes<E::State>, StepOutcome) {
        let HostLanes { environment, keys, time } = lanes;
        let last = time.eq(self.unroll as i32 - 1);
        let lanes = (environment, Keys::from_words(keys), action);
        let (environment, keys, outcome) = vmap(lanes, |(state, key, action)| {
            let [step_key, reset_key] = [1, 2].map(|which| step_key(&key, time, which));
            let (state, timestep) =
                self.environment.step_with_keys(state, action, step_key, reset_key);
            let shown = self.environment.truncates().then_some(timestep.observation);
            let outcome = StepOutcome {
                observation: self.environment.observe(state.clone()),
                reward: timestep.reward,
                terminated: timestep.terminated,
                truncated: timestep.truncated,
                next_observation: shown.into_iter().collect(),
            };
            let keys = select(last, next_key(&key).words(), key.words());
            (state, keys, outcome)
        });
        let lanes = HostLanes { environment, keys, time: select(last, 0, time + 1) };
        (lanes, outcome)
    }
}
