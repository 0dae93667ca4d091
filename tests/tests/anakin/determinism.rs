//! A seed gives a bit-identical run in every client and process.

use super::{is_child, run_alone};
use crate::loops::{self, Size};
use podracer_dsl::Tensor;
use podracer_envs::{CartPole, Catch, Environment, Pendulum};
use podracer_rl::learn::Learn;
use podracer_rl::optim::{adam, chain, clip_by_global_norm};
use podracer_runtime::Array;

const SIZE: Size = Size { replicas: 2, environments: 4, unroll: 8, iterations: 3 };

/// All of the state after two calls in a client of its own.
fn train<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    seed: u64,
) -> Vec<(String, Array)> {
    let anakin = loops::compiled(&loops::client(SIZE.replicas), environment, agent, SIZE);
    let mut state = anakin.init(seed).expect("a seed");
    for _ in 0..2 {
        (state, _) = anakin.run(state).expect("a call");
    }
    loops::named(&state)
}

fn cartpole(seed: u64) -> Vec<(String, Array)> {
    let environment = CartPole::default();
    let optimizer = chain(clip_by_global_norm(0.5), adam(1e-3));
    train(&environment, &loops::ppo(&environment, optimizer), seed)
}

/// The states' bytes as text.
fn shown(state: &[(String, Array)]) -> String {
    let bytes = state.iter().flat_map(|(_, array)| array.bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn nets(state: Vec<(String, Array)>) -> Vec<Array> {
    let of_nets = |(path, array): (String, Array)| path.contains(".params").then_some(array);
    state.into_iter().filter_map(of_nets).collect()
}

#[test]
fn a_seed_decides_the_run() {
    let once = cartpole(1 << 40);
    assert_eq!(cartpole(1 << 40), once);
    // The two seeds differ in their upper words only.
    let [once, other] = [once, cartpole(2 << 40)].map(nets);
    assert!(!once.is_empty() && once != other);
}

#[test]
fn the_online_agent_too() {
    let environment = Catch { rows: 4, columns: 3 };
    let agent = loops::online(&environment, adam(1e-3));
    let once = train(&environment, &agent, 5);
    assert_eq!(train(&environment, &agent, 5), once);
    assert_ne!(nets(train(&environment, &agent, 6)), nets(once));
}

/// The runs of one program: what XLA makes of these agents takes a while to compile.
fn repeats<A: Learn<Observation = Tensor>>(agent: &A) {
    let environment = Pendulum { time_limit: 5 };
    let anakin = loops::compiled(&loops::client(SIZE.replicas), &environment, agent, SIZE);
    let train = |seed| {
        let state = anakin.init(seed).expect("a seed");
        loops::named(&anakin.run(state).expect("a call").0)
    };
    let once = train(5);
    assert_eq!(train(5), once);
    assert!(!nets(once.clone()).is_empty());
    assert_ne!(nets(train(6)), nets(once));
}

#[test]
fn agents_with_replays_too() {
    let environment = Pendulum { time_limit: 5 };
    repeats(&loops::sac(&environment, adam(1e-3)));
    repeats(&loops::td3(&environment, adam(1e-3)));
}

#[test]
fn dqn_too() {
    let environment = CartPole { time_limit: 6, ..CartPole::default() };
    let agent = loops::dqn(&environment);
    let once = train(&environment, &agent, 5);
    assert_eq!(train(&environment, &agent, 5), once);
    let online = |state: Vec<(String, Array)>| {
        let online =
            |(path, array): (String, Array)| path.contains("agent.online.params").then_some(array);
        state.into_iter().filter_map(online).collect::<Vec<_>>()
    };
    let other = online(train(&environment, &agent, 6));
    assert!(other.len() == 4 && other != online(once));
}

#[test]
fn processes_agree() {
    const MARK: &str = "the state is ";
    let here = shown(&cartpole(11));
    if is_child() {
        print(&format!("\n{MARK}{here}\n"));
        return;
    }
    let there = run_alone("anakin::determinism::processes_agree", &[]);
    let found = there.lines().find_map(|line| line.strip_prefix(MARK));
    assert_eq!(found, Some(here.as_str()));
}

/// For the process that waits for it.
#[allow(clippy::print_stdout, reason = "it is how the two processes talk")]
fn print(text: &str) {
    println!("{text}");
}
