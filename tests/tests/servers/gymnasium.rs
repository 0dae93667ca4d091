//! Gymnasium's environments: the trajectories of a server are bit-identical to the environments'
//! own.

use std::path::Path;

use podracer::sebulba::Sebulba;
use podracer_dsl::prelude::DType;
use podracer_envs::host::HostEnvironment;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::{Bounds, Space};
use podracer_rl::agents::{Ppo, PpoSettings};
use podracer_rl::learn::AdamSettings;
use podracer_rl::net::Networks;
use podracer_runtime::IterationReport;
use podracer_runtime::setters::*;
use serde_json::{Value, json};

use super::{begun, direct, floats, python, seed};
use crate::loops;

/// The folder of `walks.py`, `choices.py`, `odd.py` and `painted.py`.
pub(super) const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers");
const RUN: u64 = 5;
const FIRST: usize = 100;
const ENVIRONMENTS: usize = 5;
const STEPS: usize = 40;

/// Configuration of a server, with changes.
pub(super) fn configuration(changes: &Value) -> Value {
    let mut configuration = json!({
        "name": "gymnasium", "id": "CartPole-v1", "kwargs": {"max_episode_steps": 12}, "vectorization": "sync",
        "autoreset": "same-step", "bootstrap_time_limit": true,
    });
    for (key, value) in changes.as_object().unwrap() {
        configuration[key] = value.clone();
    }
    configuration
}

/// Through servers with these changes the environments behave as they do alone. Returns the numbers
/// of terminated and of truncated episodes.
fn compare(python: &Path, changes: &Value, actions: &[Vec<Value>]) -> (usize, usize) {
    let configuration = configuration(changes);
    let seeds: Vec<u64> = (0..ENVIRONMENTS).map(|i| seed(RUN, FIRST + i)).collect();
    let order = json!({
        "id": configuration["id"], "kwargs": configuration["kwargs"], "seeds": seeds, "actions": actions,
        "modules": MODULES,
    });
    let expected = direct(python, include_str!("direct.py"), &order);
    let numbers = |value: &Value| -> Vec<f32> {
        let numbers = value.as_array().unwrap().iter();
        numbers.map(|number| number.as_f64().unwrap() as f32).collect()
    };

    let options = ServerOptions::new(python, &configuration).unwrap().modules(MODULES);
    let batch = Servers::start(&options.servers(2), ENVIRONMENTS).unwrap();
    let (mut batch, mut memory) = begun(batch, RUN, FIRST);
    assert_eq!(floats(memory.observation()), numbers(&expected["first"]));
    let discrete = batch.spec().action.ty().dtype == DType::I32;
    let mut ends = (0, 0);
    for (time, (actions, expected)) in
        actions.iter().zip(expected["steps"].as_array().unwrap()).enumerate()
    {
        let flat = actions.iter().flat_map(|action| match action {
            Value::Array(each) => each.clone(),
            one => vec![one.clone()],
        });
        let bytes: Vec<u8> = flat
            .flat_map(|action| match discrete {
                true => (action.as_i64().unwrap() as i32).to_le_bytes(),
                false => (action.as_f64().unwrap() as f32).to_le_bytes(),
            })
            .collect();
        batch.step(&bytes, &mut memory.step()).unwrap();
        assert_eq!(floats(memory.observation()), numbers(&expected[0]), "{changes} step {time}");
        assert_eq!(
            floats(memory.next_observation()),
            numbers(&expected[1]),
            "{changes} step {time}"
        );
        assert_eq!(memory.reward(), numbers(&expected[2]));
        for i in 0..ENVIRONMENTS {
            let end = memory.done(i);
            assert_eq!(json!(end.0), expected[3][i]);
            assert_eq!(json!(end.1), expected[4][i]);
            ends = (ends.0 + usize::from(end.0), ends.1 + usize::from(end.1));
        }
    }
    ends
}

#[test]
fn trajectories_are_those_of_the_environments_in_each_autoreset_mode() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    // The first environments are pushed to one side, the others kept upright for a while.
    let action = |time: usize, i: usize| json!(if i < 2 { 1 } else { time % 2 });
    let actions: Vec<Vec<Value>> =
        (0..STEPS).map(|time| (0..ENVIRONMENTS).map(|i| action(time, i)).collect()).collect();
    let mut all = Vec::new();
    for vectorization in ["sync", "async"] {
        for autoreset in ["same-step", "next-step", "disabled"] {
            let changes = json!({"vectorization": vectorization, "autoreset": autoreset});
            let ends = compare(&python, &changes, &actions);
            assert!(ends.0 > 2 && ends.1 > 2, "{ends:?}");
            all.push(ends);
        }
    }
    assert!(all.iter().all(|ends| *ends == all[0]), "{all:?}");
}

/// A step of one environment.
#[derive(Clone, Debug, PartialEq)]
struct Taken {
    shown: Vec<f32>,
    reward: f32,
    ended: (bool, bool),
    last: Vec<f32>,
}

/// The steps of each environment of a native batch that are some. It is pushed to the side that it shows.
fn native(python: &Path, changes: &Value) -> Vec<Vec<Taken>> {
    let configuration = configuration(changes);
    let options = ServerOptions::new(python, &configuration).unwrap().modules(MODULES);
    let batch = Servers::start(&options.servers(2), ENVIRONMENTS).unwrap();
    let (mut batch, mut memory) = begun(batch, RUN, FIRST);
    let mut lanes = vec![Vec::new(); ENVIRONMENTS];
    for _ in 0..STEPS {
        let rows = |bytes: &[u8]| -> Vec<Vec<f32>> {
            let numbers = floats(bytes);
            let rows = numbers.chunks(numbers.len() / ENVIRONMENTS);
            rows.map(<[f32]>::to_vec).collect()
        };
        let before = rows(memory.observation());
        let action = |shown: &Vec<f32>| i32::from(shown[0] > 0.0).to_le_bytes();
        let actions: Vec<u8> = before.iter().flat_map(action).collect();
        batch.step(&actions, &mut memory.step()).unwrap();
        let last = rows(memory.next_observation());
        for (i, (shown, last)) in before.into_iter().zip(last).enumerate() {
            let (reward, ended) = (memory.reward()[i], memory.done(i));
            if !memory.skipped(i) {
                lanes[i].push(Taken { shown, reward, ended, last });
            }
        }
    }
    lanes
}

fn ends(lane: &[Taken]) -> usize {
    let ended = |step: &&Taken| step.ended != (false, false);
    lane.iter().filter(ended).count()
}

#[test]
fn a_native_batch_has_the_same_episodes_in_each_autoreset_mode() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let walks = |mode| {
        let id = "walks:Walks-v0";
        let changes = json!({"id": id, "kwargs": {"mode": mode}, "vectorization": "native"});
        native(&python, &changes)
    };
    let expected = walks("SameStep");
    assert_eq!(walks("Disabled"), expected);
    let of = |ended| expected.iter().flatten().filter(|step| step.ended == ended).count();
    assert!(of((true, false)) > 2 && of((false, true)) > 2);
    for (expected, got) in expected.iter().zip(walks("NextStep")) {
        assert_eq!(got, expected[..got.len()]);
        // Each end costs a step, except the last step's.
        let skipped = STEPS - got.len();
        assert!((skipped..=skipped + 1).contains(&ends(&got)), "{skipped}");
    }
}

#[test]
fn a_native_batch_that_does_not_show_ends_is_an_error() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let configuration = configuration(&json!({
        "id": "walks:Walks-v0", "kwargs": {"mode": "SameStep", "shows_ends": false},
        "vectorization": "native",
    }));
    let options = ServerOptions::new(python, &configuration).unwrap().modules(MODULES);
    let batch = Servers::start(&options.restarts(0), 2).unwrap();
    let (mut batch, mut memory) = begun(batch, RUN, FIRST);
    let error = (0..9).find_map(|_| batch.step(&[0; 8], &mut memory.step()).err());
    let error = error.expect("an episode has at most nine steps").to_string();
    assert!(error.contains("bootstrap_time_limit = false"), "{error}");
}

/// A native vector environment resets in the step after the end, and in no other way.
#[test]
fn the_native_cart_poles_of_gymnasium() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let kwargs = json!({"max_episode_steps": 12});
    let lanes = native(&python, &json!({"vectorization": "native", "kwargs": kwargs}));
    for lane in &lanes {
        assert!(ends(lane) > 2 && lane.len() < STEPS);
        let (mut begins, mut length) = (true, 0);
        for Taken { shown, reward, ended, last } in lane {
            if begins {
                assert!(shown.iter().all(|number| number.abs() <= 0.05), "{shown:?}");
                length = 0;
            }
            length += 1;
            // The cart moves by its speed, in the step that ends an episode too.
            assert!((last[0] - shown[0] - 0.02 * shown[1]).abs() < 1e-5);
            assert_eq!((*reward, ended.1), (1.0, length == 12 && !ended.0));
            begins = *ended != (false, false);
        }
    }
}

#[test]
fn continuous_actions_are_clipped_to_their_bounds() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let actions: Vec<Vec<Value>> = (0..STEPS)
        .map(|time| (0..ENVIRONMENTS).map(|i| json!([(time + i) as f64 - 5.0])).collect())
        .collect();
    let changes = json!({"id": "Pendulum-v1"});
    assert_eq!(compare(&python, &changes, &actions), (0, 3 * ENVIRONMENTS));
}

#[test]
fn choices_and_trees_of_observations_are_those_of_gymnasium() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let choose = |time: usize, i: usize, counts: &[usize]| {
        let chosen = counts.iter().enumerate().map(|(k, n)| (time * 5 + i + k) % n);
        json!(chosen.collect::<Vec<_>>())
    };
    let all = |counts: &[usize]| -> Vec<Vec<Value>> {
        (0..STEPS).map(|t| (0..ENVIRONMENTS).map(|i| choose(t, i, counts)).collect()).collect()
    };
    for (kwargs, counts) in [
        (json!({}), &[3, 2][..]),
        (json!({"shifted": true}), &[3, 2]),
        (json!({"binary": true}), &[2, 2, 2]),
    ] {
        for (vectorization, autoreset) in
            [("sync", "same-step"), ("sync", "disabled"), ("async", "next-step")]
        {
            let changes = json!({
                "id": "choices:Choices-v0", "kwargs": kwargs, "vectorization": vectorization,
                "autoreset": autoreset,
            });
            assert_eq!(compare(&python, &changes, &all(counts)), (0, 8 * ENVIRONMENTS));
        }
    }
}

/// A dict of a choice and a tuple of numbers and choices; some numbers are outside their bounds.
#[test]
fn actions_of_several_parts_are_those_of_gymnasium() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let action = |time: usize, i: usize| {
        let number = (time * 7 + i) as f64 / 10.0;
        json!([(time + i) % 4, number.sin() * 1.5, number.cos() * 3.0, time % 3, i % 2])
    };
    let actions: Vec<Vec<Value>> =
        (0..STEPS).map(|time| (0..ENVIRONMENTS).map(|i| action(time, i)).collect()).collect();
    for (kwargs, vectorization, autoreset) in [
        (json!({"mixed": true}), "sync", "same-step"),
        (json!({"mixed": true, "shifted": true}), "sync", "disabled"),
        (json!({"mixed": true, "shifted": true}), "async", "next-step"),
    ] {
        let changes = json!({
            "id": "choices:Choices-v0", "kwargs": kwargs, "vectorization": vectorization,
            "autoreset": autoreset,
        });
        assert_eq!(compare(&python, &changes, &actions), (0, 8 * ENVIRONMENTS));
    }
    let mixed = json!({"id": "choices:Choices-v0", "kwargs": {"mixed": true}});
    let options = ServerOptions::new(python, &configuration(&mixed)).unwrap().modules(MODULES);
    let mut batch = Servers::start(&options, 1).unwrap();
    let wheels = Space::bounded([2], [-1.0, -2.0], [1.0, 0.0]);
    let parts = [
        ("gear", Space::discrete(4)),
        ("rest.0", wheels),
        ("rest.1", Space::multi_discrete([3, 2])),
    ];
    assert_eq!(batch.spec().action, Space::dict(parts));
    for (action, expected) in [
        ([4.0, 0.0, 0.0, 2.0, 1.0], "element 0 of the action is 4 and must be one of 0..4"),
        ([3.0, 0.0, 0.0, 2.0, -1.0], "element 4 of the action is -1 and must be one of 0..2"),
    ] {
        let told = batch.send(&action.map(f32::to_le_bytes).concat()).unwrap_err().to_string();
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn the_leaves_of_an_observation_are_named_and_bounded() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let configuration = configuration(&json!({"id": "choices:Choices-v0", "kwargs": {}}));
    let options = ServerOptions::new(python, &configuration).unwrap().modules(MODULES);
    let mut batch = Servers::start(&options, 2).unwrap();
    assert_eq!(batch.spec().action, Space::multi_discrete([3, 2]));
    let Space::Box { shape, low, high: Bounds::Each(high), description } =
        batch.spec().observation.clone()
    else {
        panic!("{:?}", batch.spec().observation);
    };
    assert_eq!(
        description,
        "choices 0..5, hand.card 5..11, hand.weights 11..13, pair.0 13..15, pair.1 15..17, switches 17..20"
    );
    assert_eq!((shape, low.of(11), high[11], high[12]), (vec![20], -2.0, 1.0, f64::INFINITY));
    let actions = [1, 1, 0, 2].map(i32::to_le_bytes).concat();
    assert_eq!(
        batch.send(&actions).unwrap_err().to_string(),
        "environment 1: element 1 of the action is 2 and must be one of 0..2"
    );
}

/// PPO on several choices at once, from a tree of observations, in two servers. The greatest return is 60, and chance has 30.
#[test]
fn ppo_learns_in_servers_of_choices_and_trees() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let configuration = configuration(&json!({"id": "choices:Choices-v0", "kwargs": {}}));
    let options = ServerOptions::new(python, &configuration).unwrap().modules(MODULES).servers(2);
    let start = || Servers::start(&options, 16);
    let spec = start().unwrap().spec().clone();
    let settings = PpoSettings {
        optimizer: AdamSettings { learning_rate: 0.01.into(), ..PpoSettings::default().optimizer },
        networks: Networks { hidden: vec![16], ..Networks::default() },
        ..PpoSettings::default()
    };
    let agent = Ppo::with(settings, spec.observation.clone(), spec.action.clone());
    let sebulba = Sebulba::new(agent).actors(vec![0]).learners(vec![0]).unroll(20);
    let mut run = sebulba
        .start(&loops::client(1), &spec, 0, |_| Ok(Box::new(start()?)))
        .expect("the run starts");
    let returns = |reports: &[IterationReport]| {
        let all: Vec<f32> = reports
            .iter()
            .flat_map(|report| report.episodes.iter().map(|episode| episode.episode_return))
            .collect();
        all.iter().sum::<f32>() / all.len() as f32
    };
    let (first, last) = (run.run(2).expect("it runs"), run.run(30).expect("it runs"));
    let (first, last) = (returns(&first), returns(&last[25..]));
    assert!(first < 40.0 && last > 55.0, "{first} and {last}");
}

/// One-hot vectors equal Gymnasium's `flatten`, in each autoreset mode.
#[test]
fn a_discrete_observation_is_one_hot() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (id, actions, kwargs) in [
        ("FrozenLake-v1", 4, json!({"max_episode_steps": 9})),
        ("Taxi-v4", 6, json!({"max_episode_steps": 9})),
        ("Blackjack-v1", 2, json!({})),
    ] {
        let action = |time: usize, i: usize| json!((time * 5 + i * i) % actions);
        let actions: Vec<Vec<Value>> =
            (0..STEPS).map(|time| (0..ENVIRONMENTS).map(|i| action(time, i)).collect()).collect();
        for (vectorization, autoreset) in
            [("sync", "same-step"), ("sync", "disabled"), ("async", "next-step")]
        {
            let changes = json!({
                "id": id, "kwargs": kwargs, "vectorization": vectorization, "autoreset": autoreset,
            });
            let ends = compare(&python, &changes, &actions);
            assert!(ends.0 + ends.1 > ENVIRONMENTS, "{ends:?}");
        }
    }
}

#[test]
fn networks_read_discrete_observations() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (id, parts) in [("FrozenLake-v1", "0..16"), ("Blackjack-v1", "0 0..32, 1 32..43, 2 43..45")]
    {
        let configuration = configuration(&json!({"id": id, "kwargs": {}}));
        let options = ServerOptions::new(&python, &configuration).unwrap().servers(2);
        let start = || Servers::start(&options, 8);
        let spec = start().unwrap().spec().clone();
        assert_eq!(spec.observation_type().dtype, DType::F32);
        let Space::Box { description, .. } = &spec.observation else {
            panic!("{id}: {:?}", spec.observation);
        };
        assert_eq!(description, parts);
        let agent =
            Ppo::with(PpoSettings::default(), spec.observation.clone(), spec.action.clone());
        let sebulba = Sebulba::new(agent).actors(vec![0]).learners(vec![0]).unroll(16);
        let mut run = sebulba
            .start(&loops::client(1), &spec, 0, |_| Ok(Box::new(start()?)))
            .expect("the run starts");
        let reports = run.run(3).expect("it runs");
        assert!(reports.iter().any(|report| !report.episodes.is_empty()));
    }
}

#[test]
fn mujoco_steps_as_it_does_alone() {
    let Some(python) = python("mujoco") else {
        return;
    };
    let action = |time: usize, i: usize| {
        json!((0..6).map(|j| ((time * 7 + i * 3 + j) % 5) as f64 / 2.0 - 1.0).collect::<Vec<_>>())
    };
    let actions: Vec<Vec<Value>> =
        (0..20).map(|time| (0..ENVIRONMENTS).map(|i| action(time, i)).collect()).collect();
    let changes = json!({"id": "HalfCheetah-v5"});
    assert_eq!(compare(&python, &changes, &actions), (0, ENVIRONMENTS));
}

#[test]
fn without_bootstrapping_a_time_limit_terminates() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let configuration =
        configuration(&json!({"bootstrap_time_limit": false, "kwargs": {"max_episode_steps": 3}}));
    let batch = Servers::start(&ServerOptions::new(python, &configuration).unwrap(), 2).unwrap();
    assert!(!batch.spec().truncates);
    let (mut batch, mut memory) = begun(batch, 0, 0);
    for time in 1..=6 {
        batch.step(&[0; 8], &mut memory.step()).unwrap();
        assert_eq!(memory.done(1), (time % 3 == 0, false));
    }
}

#[test]
fn what_cannot_be_served_is_an_error_that_says_why() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (changes, expected) in [
        (json!({"id": "CartPole-v9"}), "VersionNotFound: Environment version `v9`"),
        (
            json!({"id": "choices:Choices-v0", "kwargs": {"notes": true}}),
            "the observation space has Text(1, 3, charset=",
        ),
    ] {
        let options = ServerOptions::new(&python, &configuration(&changes)).unwrap();
        let error = Servers::start(&options.modules(MODULES), 2).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn steps_of_another_shape_are_an_error_that_says_which() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let parts = [
        concat!(env!("CARGO_MANIFEST_DIR"), "/../envs/src/host/server/server.py"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/../envs/src/host/server/values.py"),
    ];
    for (what, shape, expected) in [
        (
            "observations",
            json!([1, 3]),
            "the observations have the shape (1, 3) and must have (2, 3)",
        ),
        (
            "observations",
            json!([2, 1]),
            "the observations have the shape (2, 1) and must have (2, 3)",
        ),
        (
            "observations",
            json!([2, 4]),
            "the observations have the shape (2, 4) and must have (2, 3)",
        ),
        ("rewards", json!([1]), "rewards have the shape (1,) and must have (2,)"),
        ("terminated", json!([]), "terminated have the shape () and must have (2,)"),
    ] {
        let configuration = json!({
            "name": "shapes", "parts": parts, "bootstrap_time_limit": true, "wrong": { what: shape },
        });
        let options = ServerOptions::new(&python, &configuration).unwrap();
        let options = options.source(include_str!("shapes.py")).restarts(0);
        let (mut batch, mut memory) = begun(Servers::start(&options, 2).unwrap(), 0, 0);
        batch.step(&[0; 8], &mut memory.step()).unwrap();
        let error = batch.step(&[0; 8], &mut memory.step()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
