//! Classic control and Catch do what gymnax's do.

use crate::golden::{array, records};
use crate::run::{Steps, close, initial, ints, keys, run, state_spec, steps};
use podracer_dsl::prelude::*;
use podracer_envs::cartpole::Trigonometry;
use podracer_envs::{
    Acrobot, CartPole, Catch, Environment, MountainCar, MountainCarContinuous, Pendulum,
};
use serde_json::Value;

/// gymnax's names of the state's leaves, in our order.
const CARTPOLE: [&str; 5] = ["x", "x_dot", "theta", "theta_dot", "time"];
const CATCH: [&str; 3] = ["ball_y", "ball_x", "paddle_x"];
const PENDULUM: [&str; 3] = ["theta", "theta_dot", "time"];

const MOUNTAIN_CAR: [&str; 3] = ["position", "velocity", "time"];
const ACROBOT: [&str; 5] = ["joint_angle1", "joint_angle2", "velocity_1", "velocity_2", "time"];

fn leaves(record: &Value, names: &[&str]) -> Vec<Array> {
    names.iter().map(|name| array(&record[name])).collect()
}

fn done(steps: &Steps) -> Vec<f64> {
    let (terminated, truncated) = (steps.terminated.to_f64(), steps.truncated.to_f64());
    assert!(
        terminated.iter().zip(&truncated).all(|(a, b)| a * b == 0.0),
        "terminated and truncated exclude each other"
    );
    terminated.iter().zip(truncated).map(|(a, b)| a + b).collect()
}

fn compare(
    what: &str,
    record: &Value,
    names: &[&str],
    steps: &Steps,
    rewards: bool,
    tolerance: f64,
) {
    for (name, states) in names.iter().zip(&steps.states) {
        close(
            &format!("{what}: {name}"),
            states,
            &array(&record["states"][name]).to_f64(),
            tolerance,
        );
    }
    close(
        &format!("{what}: shown"),
        &steps.shown,
        &array(&record["observations"]).to_f64(),
        tolerance,
    );
    if rewards {
        close(
            &format!("{what}: reward"),
            &steps.rewards,
            &array(&record["rewards"]).to_f64(),
            tolerance,
        );
    }
    assert_eq!(done(steps), array(&record["dones"]).to_f64(), "{what}: done");
}

/// Each step alone from the recorded state before it: no error can grow.
fn single_steps<E: Environment<Observation = Tensor>>(
    env: &E,
    record: &Value,
    names: &[&str],
    rewards: bool,
) {
    let note = record["note"].as_str().unwrap_or("");
    let actions = array(&record["actions"]);
    let count = actions.ty().shape[0];
    let before: Vec<Array> = names
        .iter()
        .map(|name| {
            let (first, after) = (array(&record["state"][name]), array(&record["states"][name]));
            let data = first.scalars().chain(after.scalars().take(count - 1));
            Array::new(after.ty().clone(), data)
        })
        .collect();
    let spec = (state_spec(env), Spec::<Tensor>(actions.ty().unstacked()), key());
    let traced = trace(spec, |(state, action, key)| {
        let (state, timestep) = env.step(state, action, key);
        (state.clone(), (env.observe(state), timestep))
    });
    let arguments: Vec<Array> = before.into_iter().chain([actions, keys(count)]).collect();
    let mut results =
        traced.expect("step traces").vmap(count).eval(&arguments).expect("arguments fit");
    let mut last = results.split_off(names.len()).into_iter();
    let mut next = || last.next().expect("five results");
    let steps = Steps {
        states: results,
        shown: next(),
        observations: next(),
        rewards: next(),
        terminated: next(),
        truncated: next(),
    };
    compare(&format!("each step of '{note}'"), record, names, &steps, rewards, 2e-6);
    assert_eq!(steps.observations, steps.shown, "without a reset both observations are the same");
}

fn trajectory<E: Environment<Observation = Tensor>>(
    env: &E,
    record: &Value,
    names: &[&str],
    rewards: bool,
    tolerance: f64,
) {
    let note = record["note"].as_str().unwrap_or("");
    let actions = array(&record["actions"]);
    let state = leaves(&record["state"], names);
    let steps = steps(env, &state, &actions, &keys(actions.ty().shape[0]));
    compare(note, record, names, &steps, rewards, tolerance);
}

fn initial_states<E: Environment<Observation = Tensor>>(env: &E, record: &Value, names: &[&str]) {
    let keys = array(&record["keys"]);
    let traced = trace(key(), |key| {
        let state = env.initial_state(key);
        (state.clone(), env.observe(state))
    });
    let results =
        traced.expect("initial_state traces").vmap(8).eval(&[keys]).expect("arguments fit");
    for (name, states) in names.iter().zip(&results) {
        close(name, states, &array(&record["states"][name]).to_f64(), 1e-6);
    }
    close("observations", &results[names.len()], &array(&record["observations"]).to_f64(), 2e-6);
}

fn auto_resets<E: Environment<Observation = Tensor>>(env: E, record: &Value, names: &[&str]) {
    let (actions, keys) = (array(&record["actions"]), array(&record["keys"]));
    let state = leaves(&record["state"], names);
    let steps = steps(&env.auto_reset(), &state, &actions, &keys);
    assert!(done(&steps).iter().sum::<f64>() >= 2.0, "the record has episodes");
    compare("auto reset", record, names, &steps, true, 1e-4);
}

fn all_records<E: Environment<Observation = Tensor>>(name: &str, env: E, names: &[&str]) {
    for record in records(name) {
        if record["actions"].is_null() {
            initial_states(&env, &record, names);
        } else if record["auto_reset"] == true {
            auto_resets(env.clone(), &record, names);
        } else {
            let note = record["note"].as_str().unwrap_or("");
            // After the end gymnax pays 0; here a step after the end has no meaning, and a reset comes before it.
            let rewards = !note.starts_with("goes on after done");
            single_steps(&env, &record, names, rewards);
            // Errors of the last bit grow about e^4 a second while the pole is balanced without being watched.
            let tolerance = if note.starts_with("a controller") { 5e-3 } else { 1e-4 };
            trajectory(&env, &record, names, rewards, tolerance);
        }
    }
}

#[test]
fn cartpole_follows_gymnax() {
    all_records(
        "CartPole-v1",
        CartPole { trigonometry: Trigonometry::Library, ..CartPole::default() },
        &CARTPOLE,
    );
}

#[test]
fn cartpole_with_polynomials_follows_gymnax() {
    all_records("CartPole-v1", CartPole::default(), &CARTPOLE);
}

#[test]
fn catch_follows_gymnax() {
    all_records("Catch-bsuite", Catch::default(), &CATCH);
}

#[test]
fn pendulum_follows_gymnax() {
    all_records("Pendulum-v1", Pendulum::default(), &PENDULUM);
}

#[test]
fn mountain_car_follows_gymnax() {
    all_records("MountainCar-v0", MountainCar::default(), &MOUNTAIN_CAR);
}

#[test]
fn continuous_mountain_car_follows_gymnax() {
    all_records("MountainCarContinuous-v0", MountainCarContinuous::default(), &MOUNTAIN_CAR);
}

#[test]
fn acrobot_follows_gymnax() {
    all_records("Acrobot-v1", Acrobot::default(), &ACROBOT);
}

/// Steps of a mountain car or an acrobot from a state.
fn stepped<E: Environment<Observation = Tensor>>(env: &E, state: &[f64], actions: &Array) -> Steps {
    let (last, rest) = state.split_last().expect("a state has a time");
    let mut leaves: Vec<Array> =
        rest.iter().map(|&x| Array::floats(DType::F32, [], &[x])).collect();
    leaves.push(Array::ints(DType::I32, [], &[*last as i128]));
    steps(env, &leaves, actions, &keys(actions.ty().shape[0]))
}

#[test]
fn mountain_cars_stop_at_the_left_wall() {
    let forces = Array::floats(DType::F32, [1, 1], &[-1.0]);
    let continuous = stepped(&MountainCarContinuous::default(), &[-1.19, -0.05, 0.0], &forces);
    let discrete = stepped(&MountainCar::default(), &[-1.19, -0.05, 0.0], &ints(&[0]));
    for steps in [continuous, discrete] {
        close("position", &steps.states[0], &[-1.2], 1e-6);
        close("velocity", &steps.states[1], &[0.0], 0.0);
    }
}

#[test]
fn classic_control_is_truncated_at_its_limit_and_terminated_at_its_goal() {
    let flags = |steps: &Steps| (steps.terminated.to_f64(), steps.truncated.to_f64());
    let (goal, limit) = ((vec![1.0], vec![0.0]), (vec![0.0], vec![1.0]));
    let push = Array::floats(DType::F32, [1, 1], &[0.5]);
    let (car, continuous) = (MountainCar::default(), MountainCarContinuous::default());
    let acrobot = Acrobot::default();
    // In a step that reaches goal and limit the goal counts.
    let at_goal = stepped(&continuous, &[0.44, 0.05, 998.0], &push);
    assert_eq!(flags(&at_goal), goal);
    close("reward", &at_goal.rewards, &[100.0 - 0.025], 1e-5);
    assert_eq!(flags(&stepped(&continuous, &[-0.5, 0.0, 998.0], &push)), limit);
    assert_eq!(flags(&stepped(&car, &[0.49, 0.05, 199.0], &ints(&[2]))), goal);
    assert_eq!(flags(&stepped(&car, &[-0.5, 0.0, 199.0], &ints(&[2]))), limit);
    let upright = stepped(&acrobot, &[3.1, 0.1, 0.0, 0.0, 499.0], &ints(&[1]));
    assert_eq!((flags(&upright), upright.rewards.to_f64()), (goal, vec![0.0]));
    let hanging = stepped(&acrobot, &[0.1, 0.1, 0.0, 0.0, 499.0], &ints(&[1]));
    assert_eq!((flags(&hanging), hanging.rewards.to_f64()), (limit, vec![-1.0]));
}

#[test]
fn cartpole_is_truncated_at_its_limit_and_terminated_at_its_bounds() {
    for record in records("CartPole-v1")
        .iter()
        .filter(|record| !record["actions"].is_null() && record["auto_reset"] == false)
    {
        let actions = array(&record["actions"]);
        let steps = steps(
            &CartPole::default(),
            &leaves(&record["state"], &CARTPOLE),
            &actions,
            &keys(actions.ty().shape[0]),
        );
        let (terminated, truncated) =
            (steps.terminated.to_f64().contains(&1.0), steps.truncated.to_f64().contains(&1.0));
        let note = record["note"].as_str().unwrap_or("");
        if note.starts_with("ends by the time limit") {
            assert!(truncated && !terminated, "{note}");
        } else if !note.starts_with("a controller") {
            assert!(terminated && !truncated, "{note}");
        }
    }
}

#[test]
fn catch_pays_for_the_paddle_under_the_ball_on_any_board() {
    let env = Catch { rows: 4, columns: 3 };
    let first = initial(&env, &Array::ints(DType::U32, [2], &[0, 7]));
    let ball = first[1].to_f64()[0];
    // The paddle begins in the middle, column 1; one step towards the ball, then stay.
    let toward = ball as i32;
    let result = steps(&env, &first, &ints(&[toward, 1, 1]), &keys(3));
    assert_eq!(result.rewards.to_f64(), [0.0, 0.0, 1.0]);
    assert_eq!(result.terminated.to_f64(), [0.0, 0.0, 1.0]);
    let away = if ball == 0.0 { 2 } else { 0 };
    let result = steps(&env, &first, &ints(&[away, 1, 1]), &keys(3));
    assert_eq!(result.rewards.to_f64(), [0.0, 0.0, -1.0]);
}

#[test]
fn a_batch_of_environments_differentiates_through_its_steps() {
    let env = CartPole::default();
    // A position comes from the old velocity, so the first velocity is in the second position twice, each time with tau.
    let velocities = Array::floats(DType::F32, [3], &[0.0, 0.1, -0.2]);
    let gradient = run(f32([3]), &[velocities], |velocities| {
        grad(velocities, |velocities| {
            let x = vmap(velocities, |x_dot| {
                let zero = scalar(0.0);
                let state = podracer_envs::cartpole::State {
                    x: zero,
                    x_dot,
                    theta: zero,
                    theta_dot: zero,
                    time: scalar(0),
                };
                let (state, _) = scan(state, 0..2, |state, _| {
                    (env.step(state, scalar(1), Key::new(0u32)).0, ())
                });
                state.x
            });
            x.sum()
        })
    });
    close("d x / d x_dot", &gradient[0], &[0.04; 3], 1e-6);
}
