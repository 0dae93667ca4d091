//! A population is its members' runs in one program.

use podracer::anakin::Anakin;
use podracer::population::{Population, PopulationState};
use podracer_dsl::prelude::{Tensor, Tree};
use podracer_envs::{CartPole, Environment};
use podracer_rl::agents::{Ppo, PpoSettings};
use podracer_rl::learn::{AdamSettings, Learn};
use podracer_rl::population::Exploit;
use podracer_rl::{Number, optim::sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{Array, Checkpoint, Host};
use podracer_tests::compare::difference;

use crate::loops;

const SEEDS: [u64; 4] = [3, 0, u64::MAX, 7];
/// Number of calls of a training, with `iterations` iterations each.
const CALLS: usize = 2;
const ITERATIONS: usize = 5;

/// The arrays of the runs' checkpoints at their end, and the returns of their episodes.
type Trained = Vec<(Vec<(String, Array)>, Vec<f64>)>;

fn cartpole() -> CartPole {
    CartPole { time_limit: 9, ..CartPole::default() }
}

fn ppo(rate: impl Into<Number>) -> Anakin<CartPole, Ppo> {
    let settings = PpoSettings {
        optimizer: AdamSettings::new(rate),
        networks: loops::networks(),
        ..PpoSettings::default()
    };
    let environment = cartpole();
    let agent = Ppo::with(settings, environment.observation_space(), environment.action_space());
    sized(Anakin::new(environment, agent))
}

fn sized<E: Environment, A: Learn<Observation = E::Observation>>(
    anakin: Anakin<E, A>,
) -> Anakin<E, A> {
    anakin.environments(4).unroll(6).iterations_per_call(ITERATIONS)
}

fn arrays(checkpoint: &Checkpoint<'_>) -> Vec<(String, Array)> {
    let arrays = checkpoint.arrays.iter();
    arrays.map(|(name, array)| (name.clone(), array.to_host().expect("on the host"))).collect()
}

/// A run of its own.
fn alone<E: Environment, A: Learn<Observation = E::Observation>>(
    anakin: &Anakin<E, A>,
    seed: u64,
) -> (Vec<(String, Array)>, Vec<f64>) {
    let client = loops::client(1);
    let compiled = anakin.compile_with(&client, &loops::options(1)).expect("it compiles");
    let mut state = compiled.init(seed).expect("a seed");
    let mut returns = Vec::new();
    for _ in 0..CALLS {
        let metrics;
        (state, metrics) = compiled.run(state).expect("a call");
        returns.push(metrics.episode_return);
    }
    (arrays(&compiled.checkpoint(&state, 0).expect("a checkpoint")), returns)
}

/// The same runs as a population.
fn together<M: Tree, E: Environment, A: Learn<Observation = E::Observation>>(
    seeds: &[u64],
    data: impl Into<Host<M>>,
    make: impl Fn(M) -> Anakin<E, A>,
    devices: usize,
) -> Trained {
    let client = loops::client(devices);
    let population = Population::new(seeds.to_vec(), data, make).devices(devices);
    let compiled = population.compile_with(&client, &loops::options(devices)).expect("it compiles");
    let mut state: PopulationState<M, E, A> = compiled.init().expect("the seeds");
    let mut returns = vec![Vec::new(); seeds.len()];
    for _ in 0..CALLS {
        let metrics;
        (state, metrics) = compiled.run(state).expect("a call");
        assert_eq!(metrics.len(), seeds.len());
        for (returns, metrics) in returns.iter_mut().zip(metrics) {
            returns.push(metrics.episode_return);
        }
    }
    let checkpoints = compiled.members(&state, 0).expect("checkpoints");
    checkpoints.iter().map(arrays).zip(returns).collect()
}

/// Compares runs, with this tolerance.
#[track_caller]
fn same(expected: &Trained, got: &Trained, tolerance: f64) {
    assert_eq!(expected.len(), got.len());
    for (member, ((expected, returns), (got, got_returns))) in expected.iter().zip(got).enumerate()
    {
        let names = |arrays: &[(String, Array)]| -> Vec<String> {
            arrays.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(expected), names(got));
        for ((name, expected), (_, got)) in expected.iter().zip(got) {
            assert_eq!(difference(expected, got, tolerance), None, "{name} of member {member}");
        }
        assert_eq!(returns, got_returns, "member {member}");
    }
}

fn rates() -> ([f32; 4], Array) {
    let rates = [1e-2, 1e-3, 3e-3, 1e-4];
    (rates, Array::from_slice([4], &rates).expect("four"))
}

/// A member's state, random numbers and episodes equal its own run's.
#[test]
fn members_are_runs_with_their_seeds() {
    let agent = loops::ppo(&cartpole(), sgd(0.05));
    let anakin = sized(Anakin::new(cartpole(), agent));
    let expected: Trained = SEEDS.iter().map(|&seed| alone(&anakin, seed)).collect();
    assert_ne!(expected[0], expected[1], "seeds make a difference");
    same(&expected, &together(&SEEDS, (), |()| anakin.clone(), 1), 1e-5);
}

#[test]
fn members_on_two_devices_are_those_on_one() {
    let agent = loops::dqn(&cartpole());
    let anakin = sized(Anakin::new(cartpole(), agent));
    let one = together(&SEEDS, (), |()| anakin.clone(), 1);
    same(&one, &together(&SEEDS, (), |()| anakin.clone(), 2), 1e-6);
}

#[test]
fn members_learn_at_rates_of_their_own() {
    let (rates, data) = rates();
    let expected: Trained = rates.iter().map(|&rate| alone(&ppo(f64::from(rate)), 5)).collect();
    assert_ne!(expected[0], expected[1], "rates make a difference");
    same(&expected, &together(&[5; 4], data, |rate: Tensor| ppo(rate), 2), 1e-5);
}

/// A member that goes wrong leaves the others alone.
#[test]
fn nothing_of_a_member_reaches_another() {
    let (mut rates, data) = rates();
    let expected = together(&[5; 4], data, |rate: Tensor| ppo(rate), 1);
    rates[1] = f32::NAN;
    let data = Array::from_slice([4], &rates).expect("four");
    let mut got = together(&[5; 4], data, |rate: Tensor| ppo(rate), 1);
    let is_nan = |(name, array): &(String, Array)| {
        name.contains("params") && array.to_vec::<f32>().is_ok_and(|all| all[0].is_nan())
    };
    assert!(got[1].0.iter().any(is_nan), "the member has gone wrong");
    got[1] = expected[1].clone();
    same(&expected, &got, 0.0);
}

/// A member's checkpoint equals a run's checkpoint, and the population resumes bit-identically from
/// its own.
#[test]
fn a_member_goes_on_by_itself_and_a_population_as_a_whole() {
    let client = loops::client(2);
    let anakin = ppo(1e-3);
    let population = Population::new(SEEDS, (), |()| ppo(1e-3)).devices(2);
    let compiled = population.compile_with(&client, &loops::options(2)).expect("it compiles");
    let (state, _) = compiled.run(compiled.init().expect("the seeds")).expect("a call");
    let members = compiled.members(&state, 5).expect("checkpoints");
    let whole = compiled.checkpoint(&state, 5).expect("a checkpoint");
    let again = compiled.restore(&whole).expect("the same population");
    let ((next, _), (after, _)) =
        (compiled.run(state).expect("a call"), compiled.run(again).expect("a call"));
    let next = compiled.members(&next, 10).expect("checkpoints");
    let after = compiled.members(&after, 10).expect("checkpoints");

    let single = anakin.compile_with(&client, &loops::options(1)).expect("it compiles");
    for ((member, next), after) in members.iter().zip(&next).zip(&after) {
        assert_eq!(arrays(next), arrays(after));
        assert_eq!(member.iterations, 5);
        let state = single.restore(member).expect("a run's checkpoint");
        let (state, _) = single.run(state).expect("a call");
        let gone_on = single.checkpoint(&state, 10).expect("a checkpoint");
        let trained = |checkpoint| vec![(arrays(checkpoint), Vec::new())];
        same(&trained(&gone_on), &trained(next), 1e-5);
    }
}

#[test]
fn members_without_data_or_a_device_are_mistakes() {
    let said = |seeds: &[u64], rows: usize, devices: usize| {
        let data = Array::from_slice([rows], &vec![1e-3_f32; rows]).expect("rows");
        let population =
            Population::new(seeds.to_vec(), data, |rate: Tensor| ppo(rate)).devices(devices);
        population.trace().err().expect("a mistake").to_string()
    };
    let none = said(&[], 0, 1);
    assert!(none.contains("seeds must be at least 1"), "{none}");
    let short = said(&[1, 2], 3, 1);
    assert!(short.contains("`` of f32[3]: expected a row for each of 2 seeds"), "{short}");
    let uneven = said(&[1, 2, 3], 3, 2);
    assert!(uneven.contains("3 members do not divide over 2 devices"), "{uneven}");
}

/// Learning rates of four members; one of them is replaced after each call.
fn exploited(devices: usize) -> (Vec<f64>, Vec<usize>, Trained) {
    let client = loops::client(devices);
    let (_, data) = rates();
    let exploit = Exploit { share: 0.25, ..Exploit::every(ITERATIONS) };
    let make = |rate: Tensor| {
        let settings = PpoSettings {
            optimizer: AdamSettings::new(rate),
            networks: loops::networks(),
            ..PpoSettings::default()
        };
        let environment = CartPole::default();
        let spaces = (environment.observation_space(), environment.action_space());
        Anakin::new(environment, Ppo::with(settings, spaces.0, spaces.1))
            .environments(4)
            .unroll(32)
            .iterations_per_call(ITERATIONS)
    };
    let population = Population::new(SEEDS, data, make).devices(devices).exploit(exploit);
    let compiled = population.compile_with(&client, &loops::options(devices)).expect("it compiles");
    let (state, metrics) = compiled.run(compiled.init().expect("the seeds")).expect("a call");
    let rates = compiled.data(&state).expect("the rates").into_leaves()[0].to_f64();
    let from = state.sharded.contest.as_ref().expect("a contest").from.to_host();
    let from = from.expect("on the host").to_vec::<i32>().expect("positions");
    let from = from.into_iter().map(|row| row as usize).collect();
    let agents = compiled.agents(&state).expect("agents").into_iter();
    let agents =
        agents.map(|agent| agent.into_leaves().into_iter().map(|leaf| (String::new(), leaf)));
    let returns = metrics.iter().map(|member| vec![member.episode_return]);
    (rates, from, agents.map(Iterator::collect).zip(returns).collect())
}

#[test]
fn the_worst_member_takes_over_from_the_best() {
    let (before, _) = rates();
    let (after, from, members) = exploited(1);
    let place = |worst: bool| {
        let returns = (0..SEEDS.len()).map(|member| (members[member].1[0], member));
        let by_return = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0);
        let found = if worst { returns.min_by(by_return) } else { returns.max_by(by_return) };
        found.expect("members").1
    };
    let (worst, best) = (place(true), place(false));
    let expected: Vec<usize> =
        (0..SEEDS.len()).map(|member| if member == worst { best } else { member }).collect();
    assert_eq!(from, expected);
    assert_eq!(members[worst].0, members[best].0, "the agent is the best one's");
    for (member, (&rate, &before)) in after.iter().zip(&before).enumerate() {
        if member != worst {
            assert_eq!(rate as f32, before);
        }
    }
    let factor = after[worst] / f64::from(before[best]);
    assert!([0.8, 1.2].iter().any(|known| (factor - known).abs() < 1e-6), "{factor}");

    let (rates, sources, two) = exploited(2);
    assert_eq!((rates, sources), (after, from));
    same(&members, &two, 1e-5);
}

#[test]
fn members_that_cannot_be_exploited_are_mistakes() {
    let said = |seeds: &[u64], exploit: Exploit| {
        let population = Population::new(seeds.to_vec(), (), |()| ppo(1e-3)).exploit(exploit);
        population.trace().err().expect("a mistake").to_string()
    };
    let every = Exploit::every;
    let none = said(&[1], every(5));
    assert!(none.contains("1 member: the worst of at least 2"), "{none}");
    let never = said(&[1, 2], every(0));
    assert!(never.contains("every must be at least 1"), "{never}");
    let all = said(&[1, 2], Exploit { share: 0.7, ..every(5) });
    assert!(all.contains("share is 0.7 and must be above 0 and at most a half"), "{all}");
    let nothing = said(&[1, 2], Exploit { factors: vec![0.0], ..every(5) });
    assert!(nothing.contains("factors are [0.0]"), "{nothing}");
}
