//! Legal actions: policies give the others probability 0, in acting and in learning.

use crate::agent_loop::{Iteration, linear};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space, TimeStep};
use podracer_rl::agents::{
    A2c, A2cSettings, Impala, ImpalaSettings, OnlineActorCritic, OnlineSettings, Ppo, PpoSettings,
    Pqn, PqnSettings,
};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{Learn, Task};
use podracer_rl::net::Core;

/// At each time two of three actions are legal. Counts those taken that are not. If `paired`, an action is that and a switch
/// that does nothing.
#[derive(Clone)]
struct Turns {
    tells: bool,
    paired: bool,
}

#[derive(Tree, Clone, Copy)]
struct Turn {
    time: Tensor,
    illegal: Tensor,
}

fn legal(time: Tensor) -> Tensor {
    arange(3).ne(time.rem(3))
}

impl Environment for Turns {
    type State = Turn;
    type Observation = Tensor;

    fn initial_state(&self, _: Key) -> Turn {
        Turn { time: scalar(0), illegal: scalar(0) }
    }
    fn step(&self, turn: Turn, action: Tensor, _: Key) -> (Turn, TimeStep) {
        let action = if self.paired { action.index(0) } else { action };
        let wrong = !legal(turn.time).at(action);
        let turn = Turn { time: turn.time + 1, illegal: turn.illegal + wrong.astype(I32) };
        let reward = action.astype(F32);
        (turn, TimeStep::new(self.observe(turn), reward, turn.time.rem(5).eq(0)))
    }
    fn observe(&self, turn: Turn) -> Tensor {
        one_hot(turn.time.rem(3), 3)
    }
    fn observation_space(&self) -> Space {
        Space::bounded([3], 0.0, 1.0)
    }
    fn action_space(&self) -> Space {
        if self.paired { Space::multi_discrete([3, 2]) } else { Space::discrete(3) }
    }
    fn truncates(&self) -> bool {
        false
    }
    fn legal_actions(&self, turn: &Turn) -> Option<Tensor> {
        let legal = legal(turn.time);
        let all = if self.paired { concatenate(&[legal, full([2], true)], 0) } else { legal };
        self.tells.then_some(all)
    }
    fn next_episode(&self, finished: Turn, _: Key) -> Turn {
        finished
    }
}

/// The illegal actions of 30 steps in each of two lanes, and the entropies of the iterations.
fn taken<A: Learn<Observation = Tensor>>(turns: Turns, agent: A) -> (f64, Vec<f64>) {
    let iterations = Iteration::several(&AgentLoop::new(turns, agent, 2, 10), 3);
    let last = &iterations[2];
    let illegal = last.leaf(&last.after, "environment.illegal").iter().sum();
    (illegal, iterations.iter().map(|one| one.metric("entropy")[0]).collect())
}

fn check<A: Learn<Observation = Tensor>>(paired: bool, agent: A) {
    let (illegal, entropies) = taken(Turns { tells: true, paired }, agent.clone());
    assert_eq!(illegal, 0.0);
    // Between two actions, and of a switch.
    let most = if paired { 4f64.ln() } else { 2f64.ln() } + 1e-4;
    assert!(entropies.iter().all(|entropy| (0.01..most).contains(entropy)), "{entropies:?}");
    let (illegal, entropies) = taken(Turns { tells: false, paired }, agent);
    assert!(illegal > 5.0 && entropies[0] > most, "{illegal}, {entropies:?}");
}

#[test]
fn no_agent_takes_an_illegal_action() {
    for paired in [false, true] {
        let turns = Turns { tells: true, paired };
        let (observation, action) = (turns.observation_space(), turns.action_space());
        let settings = PpoSettings { networks: linear(), ..PpoSettings::default() };
        check(paired, Ppo::with(settings.clone(), observation.clone(), action.clone()));
        let core = Core { lstm: Some(3), ..Core::default() };
        let recurrent = PpoSettings { core, minibatches: 1, ..settings };
        check(paired, Ppo::with(recurrent, observation.clone(), action.clone()));
        let settings = ImpalaSettings { core, networks: linear(), ..ImpalaSettings::default() };
        check(paired, Impala::with(settings, observation.clone(), action.clone()));
        let settings = A2cSettings { core, networks: linear(), ..A2cSettings::default() };
        check(paired, A2c::with(settings, observation.clone(), action.clone()));
        let settings = OnlineSettings { networks: linear(), ..OnlineSettings::default() };
        check(paired, OnlineActorCritic::with(settings, observation, action));
    }
}

/// Neither do random actions, nor the greatest value of a state come from actions that are not legal.
#[test]
fn an_agent_of_action_values_explores_among_legal_actions() {
    let illegal = |tells: bool| {
        let turns = Turns { tells, paired: false };
        let (observation, action) = (turns.observation_space(), turns.action_space());
        let settings = PqnSettings { minibatches: 2, networks: linear(), ..PqnSettings::default() };
        let task = Task { observation, action, iterations: 3, model: None };
        let agent = Pqn::for_task(&settings, &task).expect("settings that fit");
        let iterations = Iteration::several(&AgentLoop::new(turns, agent, 2, 10), 3);
        let last = &iterations[2];
        assert!(last.metric("loss")[0].is_finite());
        last.leaf(&last.after, "environment.illegal").iter().sum::<f64>()
    };
    assert_eq!(illegal(true), 0.0);
    assert!(illegal(false) > 5.0);
}
