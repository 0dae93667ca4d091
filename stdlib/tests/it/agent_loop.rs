//! Agents in an environment that plays a tape, by the reference semantics.
//!
//! Every step of the tape is seen as a feature of its own, and policy and value are linear. So the value's gradient at the
//! feature of step `t` comes from step `t` alone, and it is the step's advantage: what credit flows where can be read off
//! one update by gradient descent, however the loop and the loss are written.

use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space, TimeStep};
use podracer_stdlib::agents::{Agent, Learning, OnlineActorCritic, Ppo, Torso, Trajectory};
use podracer_stdlib::anakin::{AgentLoop, LoopState};
use podracer_stdlib::optim::{Sgd, sgd};

/// Rewards and ends by the steps since the beginning of the run.
#[derive(Clone)]
pub struct Tape {
    rewards: Vec<f64>,
    ends: Vec<(usize, End)>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum End {
    Terminated,
    Truncated,
}

#[derive(Tree, Clone, Copy)]
pub struct TapeState {
    time: Tensor,
    over: Tensor,
}

impl Tape {
    pub fn steps(&self) -> usize {
        self.rewards.len()
    }

    fn end_at(&self, time: usize) -> Option<End> {
        (self.ends.iter().find(|(at, _)| *at == time)).map(|(_, end)| *end)
    }

    /// The feature of what is seen at a time: at the beginning of a step, or at the end of an episode.
    fn feature(&self, time: usize, over: bool) -> usize {
        time + if over { self.steps() + 1 } else { 0 }
    }

    fn ends_as(&self, end: End) -> Tensor {
        let at: Vec<bool> = (0..self.steps()).map(|time| self.end_at(time) == Some(end)).collect();
        constant_of(&Array::bools([at.len()], &at))
    }
}

impl Environment for Tape {
    type State = TapeState;
    type Observation = Tensor;

    fn initial_state(&self, _: Key) -> TapeState {
        TapeState { time: scalar(0), over: scalar(false) }
    }

    fn step(&self, state: TapeState, _: Tensor, _: Key) -> (TapeState, TimeStep) {
        let rewards = constant_of(&Array::floats(F32, [self.steps()], &self.rewards));
        let terminated = self.ends_as(End::Terminated).at(state.time);
        let truncated = self.ends_as(End::Truncated).at(state.time);
        let reward = rewards.at(state.time);
        let state = TapeState { time: state.time + 1, over: terminated | truncated };
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    fn observe(&self, state: TapeState) -> Tensor {
        let feature = state.time + select(state.over, self.steps() as i32 + 1, 0);
        one_hot(feature, 2 * (self.steps() + 1))
    }

    fn observation_space(&self) -> Space {
        Space::bounded([2 * (self.steps() + 1)], 0.0, 1.0)
    }

    fn action_space(&self) -> Space {
        Space::discrete(2)
    }

    fn truncates(&self) -> bool {
        self.ends.iter().any(|(_, end)| *end == End::Truncated)
    }

    /// The tape goes on.
    fn next_episode(&self, finished: TapeState, _: Key) -> TapeState {
        TapeState { time: finished.time, over: scalar(false) }
    }
}

/// One cycle of a loop: the leaves of the state before and after, and those of the metrics.
pub struct Cycle {
    pub paths: Vec<String>,
    pub before: Vec<Array>,
    pub after: Vec<Array>,
    metrics: Vec<(String, Array)>,
}

fn named(paths: &[Path]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

impl Cycle {
    pub fn run<E: Environment, A: Agent<Observation = E::Observation>>(
        agent_loop: &AgentLoop<E, A>,
    ) -> Cycle {
        let mut cycles = Cycle::several(agent_loop, 1);
        cycles.remove(0)
    }

    /// Cycles in a row.
    pub fn several<E: Environment, A: Agent<Observation = E::Observation>>(
        agent_loop: &AgentLoop<E, A>,
        cycles: usize,
    ) -> Vec<Cycle> {
        let init = trace(key(), |key| agent_loop.init(key)).expect("the beginning traces");
        let state: &Spec<LoopState<E, A>> = init.results();
        let update = trace(state, |state| agent_loop.update(state)).expect("the update traces");
        let mut state = init.eval(&[Array::ints(U32, [2], &[0, 7])]).expect("a key fits");
        let paths = named(&init.result_paths());
        let metric_paths = named(&update.result_paths()[paths.len()..]);
        let cycle = |_| {
            let mut after = update.eval(&state).expect("the state fits");
            let metrics = after.split_off(paths.len());
            Cycle {
                paths: paths.clone(),
                before: std::mem::replace(&mut state, after.clone()),
                after,
                metrics: metric_paths.iter().cloned().zip(metrics).collect(),
            }
        };
        (0..cycles).map(cycle).collect()
    }

    pub fn leaf(&self, leaves: &[Array], path: &str) -> Vec<f64> {
        let found: Vec<usize> =
            (0..self.paths.len()).filter(|&i| self.paths[i].ends_with(path)).collect();
        assert_eq!(found.len(), 1, "{path} among {:?}", self.paths);
        leaves[found[0]].to_f64()
    }

    pub fn metric(&self, path: &str) -> Vec<f64> {
        let (_, array) = (self.metrics.iter().find(|(name, _)| name.ends_with(path)))
            .unwrap_or_else(|| panic!("{path} among {:?}", self.metrics));
        array.to_f64()
    }
}

const DISCOUNT: f64 = 0.5;
const LAMBDA: f64 = 0.75;

fn ppo(tape: &Tape) -> Ppo<Sgd> {
    let Ppo { clip, exact_shuffle, .. } = Ppo::new(tape.observation_space(), tape.action_space());
    Ppo {
        observation: tape.observation_space(),
        action: tape.action_space(),
        torso: Torso::None,
        lstm: None,
        hidden: vec![],
        optimizer: sgd(1.0),
        epochs: 1,
        minibatches: 1,
        discount: DISCOUNT,
        lambda: LAMBDA,
        clip,
        entropy_cost: 0.0,
        value_cost: 1.0,
        exact_shuffle,
    }
}

fn online(tape: &Tape) -> OnlineActorCritic<Sgd> {
    OnlineActorCritic {
        observation: tape.observation_space(),
        action: tape.action_space(),
        torso: Torso::None,
        hidden: vec![],
        optimizer: sgd(1.0),
        discount: DISCOUNT,
        lambda: LAMBDA,
        entropy_cost: 0.0,
        value_cost: 1.0,
    }
}

/// The values of the features at the beginning, and the advantages of the steps, read off the value's gradient.
fn values_and_advantages<A: Agent<Observation = Tensor>>(
    tape: &Tape,
    agent: A,
) -> (Vec<f64>, Vec<f64>) {
    let steps = tape.steps();
    let cycle = Cycle::run(&AgentLoop::new(tape.clone(), agent, 1, steps));
    let path = "critic.layers[0].weight";
    let (before, after) = (cycle.leaf(&cycle.before, path), cycle.leaf(&cycle.after, path));
    // The loss is the mean of (v_t - stop(v_t + A_t))^2 / 2.
    let advantages = (0..steps).map(|t| (after[t] - before[t]) * steps as f64).collect();
    (before, advantages)
}

/// Both agents' advantages, which must be the same. Rounding is that of weights of size 1.
fn both(tape: &Tape) -> (Vec<f64>, Vec<f64>) {
    let (values, advantages) = values_and_advantages(tape, ppo(tape));
    let (online_values, online_advantages) = values_and_advantages(tape, online(tape));
    assert_eq!(values, online_values);
    assert_close(&online_advantages, &advantages);
    (values, advantages)
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64]) {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 3e-6 * (1.0 + b.abs());
    assert!(
        got.len() == expected.len() && got.iter().zip(expected).all(close),
        "{got:?} against {expected:?}"
    );
}

/// Generalized advantages, written down once more.
fn advantages_by_hand(tape: &Tape, values: &[f64]) -> Vec<f64> {
    let mut advantages = vec![0.0; tape.steps()];
    let mut next = 0.0;
    for t in (0..tape.steps()).rev() {
        let bootstrap = match tape.end_at(t) {
            None => values[tape.feature(t + 1, false)],
            Some(End::Truncated) => values[tape.feature(t + 1, true)],
            Some(End::Terminated) => 0.0,
        };
        let delta = tape.rewards[t] + DISCOUNT * bootstrap - values[tape.feature(t, false)];
        next = delta + if tape.end_at(t).is_none() { DISCOUNT * LAMBDA * next } else { 0.0 };
        advantages[t] = next;
    }
    advantages
}

pub fn tape() -> Tape {
    Tape {
        rewards: vec![1.0, -2.0, 0.5, 3.0, 0.0, 1.5, -1.0, 2.0],
        ends: vec![(2, End::Terminated), (5, End::Truncated)],
    }
}

#[test]
fn advantages_are_those_of_the_recurrence() {
    let terminated = Tape { ends: vec![(0, End::Terminated), (4, End::Terminated)], ..tape() };
    let endless = Tape { ends: vec![], ..tape() };
    for tape in [tape(), terminated, endless] {
        let (values, advantages) = both(&tape);
        assert_close(&advantages, &advantages_by_hand(&tape, &values));
    }
}

#[test]
fn nothing_leaks_from_one_episode_into_another() {
    let (_, before) = both(&tape());
    // An episode covers the steps of its range.
    for episode in [0..3, 3..6, 6..8] {
        let mut other = tape();
        for t in episode.clone() {
            other.rewards[t] += 10.0;
        }
        let (_, after) = both(&other);
        for t in 0..before.len() {
            let moved = (after[t] - before[t]).abs() > 1.0;
            assert_eq!(moved, episode.contains(&t), "step {t}, rewards of {episode:?} changed");
        }
    }
}

#[test]
fn truncation_bootstraps_from_the_final_observation_and_termination_does_not() {
    let advantage_of_the_end = |end: Option<End>| {
        let tape = Tape { ends: end.map(|end| (2, end)).into_iter().collect(), ..tape() };
        let (values, advantages) = both(&tape);
        (values, advantages[2])
    };
    let (values, terminated) = advantage_of_the_end(Some(End::Terminated));
    let here = tape().rewards[2] - values[tape().feature(2, false)];
    assert_close(&[terminated], &[here]);
    let (values, truncated) = advantage_of_the_end(Some(End::Truncated));
    let final_value = values[tape().feature(3, true)];
    assert_close(&[truncated], &[here + DISCOUNT * final_value]);
    assert!(final_value.abs() > 1e-2, "a value of {final_value} shows nothing");
}

#[test]
fn finished_episodes_are_reported() {
    let cycle = Cycle::run(&AgentLoop::new(tape(), ppo(&tape()), 2, 8));
    // Both environments play the same tape: two episodes of three steps end in each.
    assert_eq!(cycle.metric("count"), [4.0]);
    assert_eq!(cycle.metric("return_sum"), [2.0 * (-0.5 + 4.5)]);
    assert_eq!(cycle.metric("length_sum"), [12.0]);
}

/// An agent that only counts the steps of its episodes, and keeps what it counted.
#[derive(Clone)]
struct Counter {
    steps: usize,
}

impl Agent for Counter {
    type Observation = Tensor;
    type Actor = Tensor;
    type Nets = Tensor;
    type Opt = ();
    type Experience = Tensor;
    type Output = Tensor;
    type Batch = ();
    type Metrics = Tensor;

    fn init_nets(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_opt(&self, _: &Tensor) {}
    fn init_actor(&self) -> Tensor {
        scalar(0)
    }
    fn init_experience(&self, environments: usize) -> Tensor {
        zeros(I32, [self.steps, environments])
    }
    fn act(&self, _: &Tensor, actor: Tensor, _: Tensor, _: Key) -> (Tensor, Tensor, Tensor) {
        (scalar(0), actor + 1, actor)
    }
    fn act_greedily(&self, _: &Tensor, actor: Tensor, _: Tensor) -> (Tensor, Tensor) {
        (scalar(0), actor)
    }
    fn update_experience(
        &self,
        _: &Tensor,
        _: Tensor,
        _: Tensor,
        trajectory: Trajectory<Tensor, Tensor>,
        _: Key,
    ) -> (Tensor, ()) {
        (trajectory.output, ())
    }
    fn loss(&self, nets: Tensor, (): &(), _: Tensor) -> (Tensor, Tensor) {
        (nets, nets)
    }
    fn optimize_from_grads(&self, nets: Tensor, (): (), _: Tensor) -> (Tensor, ()) {
        (nets, ())
    }
    fn learning(&self) -> Learning {
        Learning::FromBatch { updates: 1 }
    }
}

#[test]
fn the_actors_state_begins_anew_with_each_episode() {
    let cycle = Cycle::run(&AgentLoop::new(tape(), Counter { steps: 8 }, 1, 8));
    assert_eq!(cycle.leaf(&cycle.after, "experience"), [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    assert_eq!(cycle.leaf(&cycle.after, "actor"), [2.0]);
}
