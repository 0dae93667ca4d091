//! Agents in an environment that plays a tape, by the reference semantics.
//!
//! Every step of the tape is seen as a feature of its own, and policy and value are linear. So the value's gradient at the
//! feature of step `t` comes from step `t` alone, and it is the step's advantage: what credit flows where can be read off
//! one update by gradient descent, however the loop and the loss are written.

use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space, TimeStep};
use podracer_rl::agents::{OnlineActorCritic, OnlineSettings, Ppo, PpoSettings};
use podracer_rl::anakin::{AgentLoop, LoopState};
use podracer_rl::learn::{Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Rollout};
use podracer_rl::net::Networks;
use podracer_rl::optim::{Sgd, sgd};

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
    pub fn new(rewards: &[f64], ends: &[(usize, End)]) -> Tape {
        Tape { rewards: rewards.to_vec(), ends: ends.to_vec() }
    }

    pub fn steps(&self) -> usize {
        self.rewards.len()
    }

    fn end_at(&self, time: usize) -> Option<End> {
        (self.ends.iter().find(|(at, _)| *at == time)).map(|(_, end)| *end)
    }

    /// The feature of the observation at a time: at the beginning of a step, or at the end of an
    /// episode.
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

    /// Continues with the tape, where episodes follow one another.
    fn next_episode(&self, finished: TapeState, _: Key) -> TapeState {
        TapeState { time: finished.time, over: scalar(false) }
    }
}

/// One iteration of a loop: the leaves of the state before and after, and of the metrics.
pub struct Iteration {
    pub paths: Vec<String>,
    pub before: Vec<Array>,
    pub after: Vec<Array>,
    metrics: Vec<(String, Array)>,
}

fn named(paths: &[Path]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

impl Iteration {
    pub fn run<E: Environment, A: Learn<Observation = E::Observation>>(
        agent_loop: &AgentLoop<E, A>,
    ) -> Iteration {
        let mut iterations = Iteration::several(agent_loop, 1);
        iterations.remove(0)
    }

    /// Iterations in a row.
    pub fn several<E: Environment, A: Learn<Observation = E::Observation>>(
        agent_loop: &AgentLoop<E, A>,
        iterations: usize,
    ) -> Vec<Iteration> {
        let init = trace(key(), |key| agent_loop.init(key)).expect("the beginning traces");
        let state: &Spec<LoopState<E, A>> = init.results();
        let update = trace(state, |state| agent_loop.iterate(state)).expect("the update traces");
        let mut state = init.eval(&[Array::ints(U32, [2], &[0, 7])]).expect("a key fits");
        let paths = named(&init.result_paths());
        let metric_paths = named(&update.result_paths()[paths.len()..]);
        let iteration = |_| {
            let mut after = update.eval(&state).expect("the state fits");
            let metrics = after.split_off(paths.len());
            Iteration {
                paths: paths.clone(),
                before: std::mem::replace(&mut state, after.clone()),
                after,
                metrics: metric_paths.iter().cloned().zip(metrics).collect(),
            }
        };
        (0..iterations).map(iteration).collect()
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

/// The input that shows an observation with `axes` axes of steps and lanes in front, and nothing else.
pub fn input(observation: Tensor, axes: usize) -> Input {
    let shape = &observation.shape()[..axes];
    Input {
        observation,
        legal_actions: None,
        last_action: zeros(I32, shape),
        last_reward: zeros(F32, shape),
        first: zeros(BOOL, shape),
    }
}

/// Networks without hidden layers: policy and value are linear.
pub fn linear() -> Networks {
    Networks { hidden: vec![], ..Networks::default() }
}

pub fn ppo(tape: &Tape) -> Ppo<Sgd> {
    Ppo {
        observation: tape.observation_space(),
        action: tape.action_space(),
        optimizer: sgd(1.0),
        iterations: None,
        settings: PpoSettings {
            networks: linear(),
            epochs: 1,
            minibatches: 1,
            discount: DISCOUNT.into(),
            lambda: LAMBDA.into(),
            entropy_cost: 0.0.into(),
            value_cost: 1.0.into(),
            ..PpoSettings::default()
        },
    }
}

pub fn online(tape: &Tape) -> OnlineActorCritic<Sgd> {
    OnlineActorCritic {
        observation: tape.observation_space(),
        action: tape.action_space(),
        optimizer: sgd(1.0),
        iterations: None,
        settings: OnlineSettings {
            networks: linear(),
            discount: DISCOUNT.into(),
            lambda: LAMBDA.into(),
            entropy_cost: 0.0.into(),
            value_cost: 1.0.into(),
            ..OnlineSettings::default()
        },
    }
}

/// The values of the features at the beginning, and the advantages of the steps, read off the value's gradient.
fn values_and_advantages<A: Learn<Observation = Tensor>>(
    tape: &Tape,
    agent: A,
) -> (Vec<f64>, Vec<f64>) {
    let steps = tape.steps();
    let iteration = Iteration::run(&AgentLoop::new(tape.clone(), agent, 1, steps));
    let path = "critic.layers[0].weight";
    let (before, after) =
        (iteration.leaf(&iteration.before, path), iteration.leaf(&iteration.after, path));
    // The loss is the mean of (v_t - stop(v_t + A_t))^2 / 2.
    let advantages = (0..steps).map(|t| (after[t] - before[t]) * steps as f64).collect();
    (before, advantages)
}

/// Both agents' advantages, which must be equal up to the rounding of weights of size 1.
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

/// Gradient descent with a step size of 1 moves the parameters by the gradient.
#[test]
fn metrics_of_ppo_are_those_by_hand() {
    let tape = tape();
    let run = |agent| Iteration::run(&AgentLoop::new(tape.clone(), agent, 1, tape.steps()));
    let iteration = run(ppo(&tape));
    let (values, advantages) = values_and_advantages(&tape, ppo(&tape));
    let returns: Vec<f64> =
        advantages.iter().enumerate().map(|(t, a)| values[tape.feature(t, false)] + a).collect();
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let variance =
        |x: &[f64]| mean(&x.iter().map(|one| (one - mean(x)).powi(2)).collect::<Vec<_>>());
    let explained = 1.0 - variance(&advantages) / variance(&returns);
    assert_close(&iteration.metric("explained_variance"), &[explained]);
    let leaves = iteration.paths.iter().zip(iteration.before.iter().zip(&iteration.after));
    let moved = leaves.filter(|(path, _)| path.contains(".params.")).map(|(_, (before, after))| {
        let pairs = before.to_f64().into_iter().zip(after.to_f64());
        pairs.map(|(before, after)| (after - before).powi(2)).sum::<f64>()
    });
    assert_close(&iteration.metric("gradient_norm"), &[moved.sum::<f64>().sqrt()]);
    assert_eq!(iteration.metric("clip_fraction"), [0.0], "it learns from what it acted");

    // In the second of two gradient steps the policy differs from the policy that acted.
    let mut twice = ppo(&tape);
    (twice.settings.epochs, twice.settings.clip) = (2, 1e-9.into());
    assert_eq!(run(twice).metric("clip_fraction"), [0.5]);
}

#[test]
fn finished_episodes_are_reported() {
    let iteration = Iteration::run(&AgentLoop::new(tape(), ppo(&tape()), 2, 8));
    // Both environments play the same tape: two episodes of three steps end in each.
    assert_eq!(iteration.metric("count"), [4.0]);
    assert_eq!(iteration.metric("return_sum"), [2.0 * (-0.5 + 4.5)]);
    assert_eq!(iteration.metric("length_sum"), [12.0]);
}

/// An agent that counts the steps of its episodes and of its lane, and keeps the arguments of
/// acting.
#[derive(Clone)]
struct Counter;

#[derive(Tree, Clone)]
struct Counted {
    of_episode: Tensor,
    of_lane: Tensor,
}

#[derive(Tree, Clone)]
struct Given {
    counted: Counted,
    last_action: Tensor,
    last_reward: Tensor,
    first: Tensor,
}

impl Agent for Counter {
    type Observation = Tensor;
    type Params = ();
    type Memory = Counted;
    type Extras = Given;

    fn init_memory(&self, lane: LaneId) -> Counted {
        Counted { of_episode: scalar(0), of_lane: 100 * lane.index + lane.lanes as i32 }
    }
    fn begin_episode(&self, memory: Counted) -> Counted {
        Counted { of_episode: scalar(0), ..memory }
    }
    fn act(
        &self,
        (): &(),
        memory: Counted,
        input: Input,
        mode: Mode,
        _: Key,
    ) -> Act<Counted, Given> {
        assert_eq!(mode, Mode::Explore);
        let Input { last_action, last_reward, first, .. } = input;
        let extras = Given { counted: memory.clone(), last_action, last_reward, first };
        let action = memory.of_episode.rem(2);
        let Counted { of_episode, of_lane } = memory;
        let memory = Counted { of_episode: of_episode + 1, of_lane: of_lane + 1 };
        Act { action, memory, extras }
    }
}

impl Learn for Counter {
    type State = Tensor;
    type Store = (Given, Input);
    type Metrics = Tensor;

    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, _: &Axes) -> (Given, Input) {
        let rollout = rollout.zeros();
        (rollout.extras, rollout.input)
    }
    fn params(&self, _: &Tensor) {}
    fn learn(
        &self,
        state: Tensor,
        _: (Given, Input),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Tensor, (Given, Input), Tensor) {
        (state, (rollout.extras, rollout.input), cx.iteration.astype(F32))
    }
}

#[test]
fn the_memory_begins_anew_with_each_episode_where_the_agent_says_so() {
    let agent_loop = AgentLoop::new(tape(), Counter, 1, 8);
    let one = Iteration::run(&agent_loop);
    let of_episode = one.leaf(&one.after, "store.0.counted.of_episode");
    assert_eq!(of_episode, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    assert_eq!(one.leaf(&one.after, "lanes.memory.of_episode"), [2.0]);
    // The lane's data is kept; it began with the number of lanes.
    assert_eq!(one.leaf(&one.after, "lanes.memory.of_lane"), [9.0]);
}

#[test]
fn lanes_know_their_numbers() {
    let agent_loop = AgentLoop::new(tape(), Counter, 3, 1);
    let one = Iteration::run(&agent_loop);
    assert_eq!(one.leaf(&one.before, "lanes.memory.of_lane"), [3.0, 103.0, 203.0]);
}

/// Within one rollout and over several, the input of a step is the outcome of the previous step. An
/// episode's first step has none.
#[test]
fn acting_is_given_the_last_action_and_reward() {
    let tape = tape();
    let mut expected = Vec::new();
    let (mut of_episode, mut last) = (0, None);
    for time in 0..tape.steps() {
        let (action, reward) = last.unwrap_or((0.0, 0.0));
        expected.push((action, reward, f64::from(u8::from(last.is_none()))));
        last = Some((f64::from(of_episode % 2), tape.rewards[time]));
        of_episode += 1;
        if tape.end_at(time).is_some() {
            (of_episode, last) = (0, None);
        }
    }
    for unroll in [1, 2, 8] {
        let agent_loop = AgentLoop::new(tape.clone(), Counter, 1, unroll);
        let iterations = Iteration::several(&agent_loop, tape.steps() / unroll);
        for part in ["store.0.", "store.1."] {
            let all = |name: &str| -> Vec<f64> {
                let path = format!("{part}{name}");
                let of = |one: &Iteration| one.leaf(&one.after, &path);
                iterations.iter().flat_map(of).collect()
            };
            let (actions, rewards) = (all("last_action"), all("last_reward"));
            let steps = actions.into_iter().zip(rewards).zip(all("first"));
            let steps: Vec<_> =
                steps.map(|((action, reward), first)| (action, reward, first)).collect();
            assert_eq!(steps, expected, "unroll {unroll}, {part}");
        }
        for (number, one) in iterations.iter().enumerate() {
            assert_eq!(one.leaf(&one.before, "replicated.iteration"), [number as f64]);
        }
    }
}
