//! Reset-only steps: an agent learns the same from a rollout with and without them.

use crate::agent_loop::input;
use crate::golden::{close, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::Number;
use podracer_rl::agents::{
    A2c, A2cSettings, Impala, ImpalaSettings, LearnedAgent, OnlineActorCritic, OnlineSettings, Ppo,
    PpoSettings, Pqn, PqnSettings,
};
use podracer_rl::learn::{
    Act, Agent, Axes, Cx, LaneId, Learn, Mode, Normalized, Rollout, RolloutOf, Staleness, Task,
};
use podracer_rl::meta::{KeptRule, LpgRule, LpgShape, Rule, UpdateRule};
use podracer_rl::net::{Core, Networks};
use podracer_rl::optim::{Sgd, sgd};

const STEPS: usize = 8;
/// In the first environment one episode terminates and one is cut off; in the second one ended just before the trajectory,
/// and one is cut off in the last step but one.
const TERMINATED: [&[usize]; 2] = [&[1], &[]];
const TRUNCATED: [&[usize]; 2] = [&[5], &[6]];
const SKIPPED: [&[usize]; 2] = [&[2, 6], &[0, 7]];

/// Flags at these times of each environment, bool `[T, N]`.
fn flags(times: [&[usize]; 2]) -> Tensor {
    let flag = |at: usize| times[at % 2].contains(&(at / 2));
    let flags: Vec<bool> = (0..2 * STEPS).map(flag).collect();
    constant_of(&Array::bools([STEPS, 2], &flags))
}

/// f32 numbers of about unit size.
fn numbers(shape: &[usize], seed: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| (i as f64 * 1.7 + seed).sin() * 1.5).collect();
    constant_of(&Array::floats(F32, shape, &numbers))
}

fn memories<A: Agent>(agent: &A) -> A::Memory {
    vmap(arange(2), |index| agent.init_memory(LaneId { index, lanes: 2 }))
}

fn rollout<A: Agent<Observation = Tensor>>(
    agent: &A,
    params: &A::Params,
    memory: A::Memory,
    key: Key,
) -> Rollout<A> {
    let acted_on = input(numbers(&[STEPS, 2, 3], 1.0), 2);
    let rows =
        tree_map(&acted_on, |leaf| leaf.reshape([&[2 * STEPS], &leaf.shape()[2..]].concat()));
    let acted = vmap((rows, key.split_n(2 * STEPS)), |(input, key)| {
        let memory = agent.init_memory(LaneId { index: scalar(0), lanes: 2 });
        let Act { action, extras, .. } = agent.act(params, memory, input, Mode::Explore, key);
        (action, extras)
    });
    let (action, extras) =
        tree_map(&acted, |leaf| leaf.reshape([&[STEPS, 2], &leaf.shape()[1..]].concat()));
    let skipped = flags(SKIPPED);
    RolloutOf {
        input: acted_on,
        action,
        reward: numbers(&[STEPS, 2], 2.0),
        terminated: flags(TERMINATED) | skipped,
        truncated: flags(TRUNCATED) | skipped,
        skipped: Some(skipped),
        next_observation: Some(numbers(&[STEPS, 2, 3], 3.0)),
        next_input: input(numbers(&[2, 3], 4.0), 1),
        taken_over: None,
        memory,
        extras,
    }
}

/// The rollout without its reset-only steps.
fn shortened<A: Agent<Observation = Tensor>>(rollout: Rollout<A>) -> Rollout<A> {
    let rows = SKIPPED.map(|skipped| {
        let rows = (0..STEPS).filter(|time| !skipped.contains(time));
        let rows: Vec<i128> = rows.map(|time| time as i128).collect();
        constant_of(&Array::ints(I32, [rows.len()], &rows))
    });
    let kept = |leaf: Tensor| {
        let lanes = [0, 1].map(|i| leaf.index_axis(1, i as isize).take(rows[i], 0));
        stack(&lanes, 1)
    };
    RolloutOf {
        input: tree_map(&rollout.input, kept),
        action: kept(rollout.action),
        reward: kept(rollout.reward),
        terminated: kept(rollout.terminated),
        truncated: kept(rollout.truncated),
        skipped: None,
        next_observation: rollout.next_observation.map(kept),
        extras: tree_map(&rollout.extras, kept),
        ..rollout
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Marked,
    Shortened,
    Unmarked,
}

/// The state, the store and the metrics after one gradient step of size 1.
fn learnt<A: Learn<Observation = Tensor>>(
    agent: &A,
    of_memory: impl Fn(A::Memory, Tensor) -> A::Memory,
    kind: Kind,
) -> Vec<Array> {
    run(key(), &[words(5)], |key| {
        let keys = key.split_n(3);
        let state = agent.init(keys.at(0));
        // The learning policy differs from the acting policy.
        let params = agent.params(&state);
        let acting = match agent.staleness() {
            Staleness::Refused => params,
            _ => tree_map(&params, |leaf| leaf * 1.1),
        };
        // An episode is under way in the first lane. In the second one begins after a reset-only step.
        let remembered = match kind {
            Kind::Shortened => [0.3, 0.0],
            Kind::Marked | Kind::Unmarked => [0.3, 0.3],
        };
        let remembered = constant_of(&Array::floats(F32, [2, 1], &remembered));
        let memory = of_memory(memories(agent), remembered);
        let whole = rollout(agent, &acting, memory, keys.at(1));
        let rollout = match kind {
            Kind::Marked => whole,
            Kind::Shortened => shortened::<A>(whole),
            Kind::Unmarked => RolloutOf { skipped: None, ..whole },
        };
        let cx = Cx { key: keys.at(2), iteration: scalar(0), axes: Axes::replicas(1) };
        agent.learn(state, agent.init_store(&rollout.spec(), &cx), rollout, cx)
    })
}

fn check<A: Learn<Observation = Tensor>>(agent: &A) {
    let of_memory = |memory: A::Memory, remembered| tree_map(&memory, |leaf| leaf + remembered);
    let [marked, shortened, unmarked] =
        [Kind::Marked, Kind::Shortened, Kind::Unmarked].map(|kind| learnt(agent, of_memory, kind));
    for (i, (got, expected)) in marked.iter().zip(&shortened).enumerate() {
        close(&format!("result {i}"), got, expected, 5e-7);
    }
    let difference = |(one, other): (&Array, &Array)| {
        let pairs = one.to_f64().into_iter().zip(other.to_f64());
        pairs.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
    };
    let greatest = unmarked.iter().zip(&marked).map(difference).fold(0.0, f64::max);
    assert!(greatest > 1e-3, "{greatest}");
}

fn spaces() -> (Space, Space) {
    (Space::unbounded([3]), Space::discrete(3))
}

fn networks() -> Networks {
    Networks { hidden: vec![8], ..Networks::default() }
}

fn ppo(lstm: Option<usize>, action: Space) -> Ppo<Sgd> {
    let settings = PpoSettings {
        epochs: 1,
        minibatches: 1,
        core: Core { lstm, ..Core::default() },
        networks: networks(),
        ..PpoSettings::default()
    };
    Ppo { observation: spaces().0, action, optimizer: sgd(1.0), iterations: None, settings }
}

#[test]
fn ppo_learns_nothing_of_reset_only_steps() {
    let (observation, action) = spaces();
    check(&ppo(None, action.clone()));
    check(&ppo(None, Space::unbounded([2])));
    check(&ppo(Some(4), action.clone()));
    check(&Normalized::new(ppo(None, action), observation, Number::from(0.9)));
}

#[test]
fn impala_learns_and_remembers_nothing_of_them() {
    for lstm in [None, Some(4)] {
        let (observation, action) = spaces();
        let settings = ImpalaSettings {
            core: Core { lstm, ..Core::default() },
            networks: networks(),
            ..ImpalaSettings::default()
        };
        check(&Impala { observation, action, optimizer: sgd(0.1), iterations: None, settings });
    }
}

#[test]
fn a2c_learns_and_remembers_nothing_of_them() {
    for lstm in [None, Some(4)] {
        let (observation, action) = spaces();
        let settings = A2cSettings {
            core: Core { lstm, ..Core::default() },
            networks: networks(),
            ..A2cSettings::default()
        };
        check(&A2c { observation, action, optimizer: sgd(1.0), iterations: None, settings });
    }
}

#[test]
fn pqn_learns_nothing_of_them() {
    let (observation, action) = spaces();
    let settings =
        PqnSettings { epochs: 1, minibatches: 1, networks: networks(), ..PqnSettings::default() };
    let task = Task { observation, action, iterations: 10, model: None };
    let agent = Pqn::for_task(&settings, &task).expect("settings that fit");
    check(&agent.with_optimizer(sgd(1.0)));
}

#[test]
fn a_rule_says_nothing_of_them() {
    let shape = LpgShape { predictions: 4, embedding: 3, units: 5 };
    let leaf = |ty: &TensorType| {
        let numbers: Vec<f64> = (0..ty.elements()).map(|i| (i as f64 * 1.7).sin()).collect();
        Array::floats(F32, ty.shape.clone(), &numbers)
    };
    let leaves = LpgRule::spec_of(&shape).types().iter().map(leaf).collect();
    let (observation, _) = spaces();
    check(&LearnedAgent {
        observation,
        actions: 3,
        networks: networks(),
        rule: Rule::Kept(KeptRule::new(shape, leaves).expect("it is a rule")),
        policy_optimizer: sgd(1.0),
        prediction_optimizer: sgd(1.0),
        prediction_cost: 0.5.into(),
    });
}

#[test]
fn neither_does_an_agent_that_learns_through_its_acting() {
    let (observation, action) = spaces();
    let settings = OnlineSettings { networks: networks(), ..OnlineSettings::default() };
    check(&OnlineActorCritic {
        observation,
        action,
        optimizer: sgd(1.0),
        iterations: None,
        settings,
    });
}

/// Each of several minibatches is normalised by itself.
#[test]
fn weights_are_of_mean_one_where_steps_count() {
    let traced = trace((), |()| {
        let count = Array::bools([2, 4], &[true, false, true, true, false, false, false, false]);
        vmap(constant_of(&count), |count| {
            podracer_rl::learn::step_weights(count, &Axes::replicas(1))
        })
    });
    let weights = traced.expect("it traces").eval(&[]).expect("values");
    let third = f64::from(4.0f32 / 3.0);
    assert_eq!(weights[0].to_f64(), [third, 0.0, third, third, 0.0, 0.0, 0.0, 0.0]);
}
