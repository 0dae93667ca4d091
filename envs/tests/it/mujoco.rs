//! MuJoCo's tasks do what Gymnasium's do: single steps, sequences, first states, settings and spaces.

use std::collections::BTreeMap;

use podracer_dsl::prelude::*;
use podracer_envs::mujoco::{
    Ant, HalfCheetah, Hopper, Humanoid, HumanoidStandup, InvertedDoublePendulum, InvertedPendulum,
    Pusher, Reacher, Swimmer, Task, Walker2d,
};
use podracer_test_support::python::run_mujoco;
use serde::Serialize;
use serde_json::{Value, to_value};

use crate::golden::{array, records_of};
use crate::run::run;

/// Largest errors of f32, relative to the number beyond 1: of positions, velocities, observations and rewards.
type Tolerances = [f64; 4];

/// Tests of each task: the name of its records, and its tolerances in the recorded states and in states of the package.
macro_rules! tests_of_tasks {
    ($($module:ident: $name:literal, $task:ty, $recorded:expr, $tolerances:expr;)*) => {
        $(mod $module {
            use super::*;

            #[test]
            fn steps_are_gymnasiums() {
                check_golden($name, &<$task>::default(), $recorded);
            }

            #[test]
            fn steps_of_the_package_are_gymnasiums() {
                check_package($name, &<$task>::default(), $tolerances);
            }

            #[test]
            fn first_states_have_gymnasiums_distributions() {
                check_first_states($name, &<$task>::default());
            }

            #[test]
            fn settings_and_spaces_are_gymnasiums() {
                check_settings($name, &<$task>::default());
            }
        })*
    };
}

tests_of_tasks! {
    half_cheetah: "HalfCheetah-v5", HalfCheetah, RECORDED, TOUCHING;
    hopper: "Hopper-v5", Hopper, RECORDED, TOUCHING;
    walker2d: "Walker2d-v5", Walker2d, RECORDED, TOUCHING;
    swimmer: "Swimmer-v5", Swimmer, RECORDED, FINE;
    reacher: "Reacher-v5", Reacher, RECORDED, FINE;
    pusher: "Pusher-v5", Pusher, DEEP, DEEP;
    inverted_pendulum: "InvertedPendulum-v5", InvertedPendulum, RECORDED, FINE;
    inverted_double_pendulum: "InvertedDoublePendulum-v5", InvertedDoublePendulum, RECORDED, FINE;
    ant: "Ant-v5", Ant, RECORDED, TOUCHING;
    humanoid: "Humanoid-v5", Humanoid, RECORDED, TOUCHING;
    humanoid_standup: "HumanoidStandup-v5", HumanoidStandup, RECORDED, TOUCHING;
}

/// Tolerances of the recorded states.
const RECORDED: Tolerances = [1e-5, 1e-4, 5e-4, 2e-5];

/// Tolerances of tasks without contacts.
const FINE: Tolerances = [2e-6, 2e-5, 2e-5, 1e-5];

/// Tolerances of tasks with contacts: in few of 1,000 states, a contact begins a step earlier or later in f32.
const TOUCHING: Tolerances = [2e-4, 5e-3, 5e-3, 5e-4];

/// Tolerances of Pusher: in some states the object is around the arm, where contacts differ from MuJoCo's contacts.
const DEEP: Tolerances = [1e-3, 5e-2, 1e-2, 1e-3];

/// The records of a kind: `steps`, `sequences` or `resets`.
fn record(records: &[Value], kind: &str) -> Value {
    records.iter().find(|record| record["kind"] == kind).expect("a record of the kind").clone()
}

fn golden(name: &str, kind: &str) -> Value {
    record(&records_of("mujoco.json", name), kind)
}

/// Numbers of a record as f32 with a shape.
fn numbers(value: &Value, shape: &[usize]) -> Array {
    Array::floats(F32, shape, &array(value).to_f64())
}

/// The largest error of numbers, relative to the expected number beyond 1.
fn error(ours: &Array, theirs: &Value) -> f64 {
    let (ours, theirs) = (ours.to_f64(), array(theirs).to_f64());
    assert_eq!(ours.len(), theirs.len(), "counts differ");
    let errors = ours.iter().zip(&theirs).map(|(x, y)| (x - y).abs() / y.abs().max(1.0));
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}

/// Steps of a task from the states of a record, compared with the record. Returns complaints. Terminations must be equal.
fn compare<T: Task>(name: &str, task: &T, record: &Value, tolerances: Tolerances) -> Vec<String> {
    let shape = array(&record["actions"]).ty().shape.to_vec();
    let (count, length) = (shape[0], if shape.len() == 3 { shape[1] } else { 1 });
    let model = task.model();
    let inputs = [
        numbers(&record["qpos"], &[count, model.nq]),
        numbers(&record["qvel"], &[count, model.nv]),
        numbers(&record["actions"], &[count, length, model.nu]),
    ];
    let [qpos, qvel, actions] = inputs.each_ref().map(|array| Spec::<Tensor>(array.ty().clone()));
    let results = run((qpos, qvel, actions), &inputs, |(qpos, qvel, actions)| {
        vmap((qpos, qvel, actions), |(qpos, qvel, actions)| {
            let first = task.state_at([qpos, qvel]);
            let (_, outputs) = scan(first, actions, |state, action| {
                let (state, timestep) = task.stepped(state, action);
                let moved = (state.qpos, state.qvel);
                (state, (moved, timestep))
            });
            outputs
        })
    });
    let [qpos, qvel, observation, reward, terminated, truncated] = &results[..] else {
        panic!("six results")
    };
    let mut errors = BTreeMap::new();
    let fields = ["next_qpos", "next_qvel", "observations", "rewards"];
    let mut complaints = Vec::new();
    for ((field, ours), most) in
        fields.iter().zip([qpos, qvel, observation, reward]).zip(tolerances)
    {
        // Sequences have no observations.
        if record[field].is_null() {
            continue;
        }
        let error = error(ours, &record[field]);
        errors.insert(field, format!("{error:.1e}"));
        if error > most {
            complaints.push(format!("{name}: {field} {error:.1e}"));
        }
    }
    eprintln!("{name}, {} of {count} x {length}: {errors:?}", record["kind"]);
    if terminated.to_f64() != array(&record["terminated"]).to_f64() {
        complaints.push(format!("{name}: terminated"));
    }
    assert!(truncated.to_f64().iter().all(|&truncated| truncated == 0.0));
    complaints
}

fn check_records<T: Task>(name: &str, task: &T, records: &[Value], tolerances: Tolerances) {
    let complaints = ["steps", "sequences"]
        .map(|kind| compare(name, task, &record(records, kind), tolerances))
        .concat();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn check_golden<T: Task>(name: &str, task: &T, tolerances: Tolerances) {
    check_records(name, task, &records_of("mujoco.json", name), tolerances);
}

/// The tasks of an installed package, with other states than the records'.
fn check_package<T: Task>(name: &str, task: &T, tolerances: Tolerances) {
    let script = include_str!("../../../tests/golden/make_mujoco.py");
    let count = if std::env::var_os("PODRACER_ALL").is_some() { "1000" } else { "50" };
    let Some(output) = run_mujoco(script, &["steps", count, name], "").unwrap() else { return };
    let answer: Value = serde_json::from_str(&output).unwrap();
    check_records(name, task, answer["records"].as_array().unwrap(), tolerances);
}

fn check_first_states<T: Task>(name: &str, task: &T) {
    let record = golden(name, "resets");
    let count = record["count"].as_u64().unwrap() as usize;
    let states = run((), &[], |()| vmap(Key::new(0u32).split_n(count), |key| task.first(key)));
    for (field, states) in ["qpos", "qvel"].into_iter().zip(&states) {
        let of = |kind: &str| array(&record[field][kind]).to_f64();
        let (means, stds, least, most) = (of("mean"), of("std"), of("min"), of("max"));
        let rows = states.to_f64();
        for element in 0..means.len() {
            let drawn: Vec<f64> = rows.chunks(means.len()).map(|row| row[element]).collect();
            let mean = drawn.iter().sum::<f64>() / count as f64;
            let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
            let (low, high) = drawn
                .iter()
                .fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
            let what = format!("{name}: {field}[{element}]");
            let near = |kind: &str, ours: f64, theirs: f64, most: f64| {
                let error = (ours - theirs).abs();
                assert!(error <= most + 1e-6, "{what}: {kind} {ours}, Gymnasium's {theirs}");
            };
            // Six standard errors of the difference, and a fifth of the range for the extremes.
            near("mean", mean, means[element], 0.2 * stds[element]);
            near("std", square.sqrt(), stds[element], 0.1 * stds[element]);
            let range = most[element] - least[element];
            near("min", low, least[element], 0.2 * range);
            near("max", high, most[element], 0.2 * range);
        }
    }
    let first = &record["first"];
    let inputs = [array(&first["qpos"]), array(&first["qvel"])]
        .map(|array| Array::floats(F32, &array.ty().shape, &array.to_f64()));
    let [qpos, qvel] = inputs.each_ref().map(|array| Spec::<Tensor>(array.ty().clone()));
    let seen =
        run((qpos, qvel), &inputs, |(qpos, qvel)| task.observation(&task.state_at([qpos, qvel])));
    let error = error(&seen[0], &first["observation"]);
    assert!(error <= 1e-5, "{name}: first observation {error:.1e}");
}

/// A setting with numbers as floats.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.iter().map(plain).collect(),
        value => value.clone(),
    }
}

fn check_settings<T: Task + Serialize>(name: &str, task: &T) {
    let attrs = &golden(name, "steps")["attrs"];
    let sorted = |settings: &Value| -> BTreeMap<String, Value> {
        let settings = settings.as_object().unwrap().iter();
        settings.map(|(key, value)| (key.clone(), plain(value))).collect()
    };
    let (mut ours, mut theirs) = (sorted(&to_value(task).unwrap()), sorted(&attrs["settings"]));
    theirs.remove("xml_file");
    assert_eq!(theirs.remove("frame_skip").unwrap(), task.frame_skip() as f64);
    assert_eq!(ours.remove("time_limit").unwrap(), plain(&attrs["max_episode_steps"]));
    assert_eq!(ours, theirs, "{name}");
    let dt = attrs["dt"].as_f64().unwrap();
    assert!((task.dt() - dt).abs() < 1e-12, "{name}");
    let (low, high) = task.controls().all_bounds();
    let bounds = |key: &str| array(&attrs[key]).to_f64();
    let f32s = |bounds: Vec<f64>| bounds.iter().map(|&x| x as f32).collect::<Vec<_>>();
    assert_eq!(f32s(low), f32s(bounds("action_low")), "{name}");
    assert_eq!(f32s(high), f32s(bounds("action_high")), "{name}");
    assert_eq!(task.observed(), attrs["observation_size"], "{name}");
}

#[test]
fn settings_choose_the_parts_of_observations() {
    fn check<T: Task>(task: &T, elements: usize) {
        let seen = eval_shape(key(), |key| task.observation(&task.state_at(task.first(key))));
        assert_eq!(seen.expect("it traces").types()[0].shape[..], [elements]);
        assert_eq!(task.observed(), elements);
    }
    let all = |excluded| Humanoid {
        exclude_current_positions_from_observation: excluded,
        ..Humanoid::default()
    };
    check(&all(false), 350);
    check(&Humanoid { include_cinert_in_observation: false, ..all(true) }, 218);
    check(&Ant { include_cfrc_ext_in_observation: false, ..Ant::default() }, 27);
    let exclude_current_positions_from_observation = false;
    check(&Swimmer { exclude_current_positions_from_observation, ..Swimmer::default() }, 10);
    check(&Hopper { exclude_current_positions_from_observation, ..Hopper::default() }, 12);
}
