//! Robots of one's own: rewards, ends, and what happens when a simulation diverges.

use podracer_dsl::prelude::*;
use podracer_envs::mujoco::{OwnRobot, RobotModel, Task};
use podracer_envs::{Environment, TimeStep};
use podracer_physics::Forward;
use serde_json::{Value, json};

use crate::run::run;

const INCHWORM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/inchworm.xml");

/// The inchworm with settings.
fn robot(mut settings: Value) -> OwnRobot {
    settings["model"] = json!(INCHWORM);
    serde_json::from_value(settings).unwrap()
}

/// The reward, the end and the observation of a step with full control, and the quantities that rewards read: the
/// places of the first body before and after, cosine and power.
fn stepped(env: &OwnRobot) -> Vec<Vec<f64>> {
    let arrays = run((), &[], |()| {
        let model = env.model();
        let state = env.state_at([model.data(F32).qpos, zeros(F32, [model.nv])]);
        let ctrl = ones(F32, [model.nu]);
        let data = model.data(F32);
        let read = |forward: &Forward| {
            let power = (forward.qfrc_actuator() * forward.qvel()).abs().sum();
            let upright = forward.xmat().index(1).index(8);
            (forward.xpos().index(1), upright, power)
        };
        let before = model.forward(&data, ctrl, read).0;
        let (_, (after, upright, power)) = model.steps(env.frame_skip(), &data, ctrl, read);
        let (_, TimeStep { observation, reward, terminated, .. }) = env.stepped(state, ctrl);
        (reward, terminated, observation, before, after, upright, power)
    });
    arrays.iter().map(Array::to_f64).collect()
}

#[test]
fn a_reward_is_the_sum_of_its_terms() {
    let parts = stepped(&robot(json!({})));
    let [reward, terminated, observation, before, after, upright, power] = &parts[..] else {
        panic!("seven results")
    };
    // Without weights there is no reward, and x is not observed.
    assert_eq!((reward[0], terminated[0], observation.len()), (0.0, 0.0, 4 + 5));
    let dt = 0.05;
    let distance = [after[0] - 1.0, after[1], after[2] - 2.0].map(f64::abs);
    let distance = distance.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (settings, expected) in [
        (json!({ "forward_reward_weight": 2.0 }), 2.0 * (after[0] - before[0]) / dt),
        (json!({ "upright_reward_weight": 3.0 }), 3.0 * upright[0]),
        (json!({ "height_reward_weight": 4.0 }), 4.0 * after[2]),
        (json!({ "healthy_reward": 5.0 }), 5.0),
        (json!({ "healthy_reward": 5.0, "healthy_z_range": [-1.0, 0.0] }), 0.0),
        (json!({ "distance_cost_weight": 6.0, "target": [1.0, 0.0, 2.0] }), -6.0 * distance),
        (json!({ "ctrl_cost_weight": 7.0 }), -7.0 * 2.0),
        (json!({ "energy_cost_weight": 8.0 }), -8.0 * power[0]),
        (json!({ "healthy_reward": 1.0, "ctrl_cost_weight": 0.1 }), 0.8),
    ] {
        let reward = stepped(&robot(settings.clone()))[0][0];
        assert!((reward - expected).abs() < 1e-4, "{settings}: {reward} and {expected}");
        let zero = expected == 0.0;
        assert!(zero || reward != 0.0, "{settings}: the term is 0 and tests nothing");
    }
}

#[test]
fn an_episode_ends_where_the_body_is_not_healthy() {
    for (settings, expected) in [
        (json!({ "healthy_z_range": [0.0, 1.0] }), 0.0),
        (json!({ "healthy_z_range": [0.2, "inf"] }), 1.0),
        (json!({ "healthy_upright_range": [0.5, "inf"] }), 0.0),
        (json!({ "healthy_upright_range": ["-inf", 0.5] }), 1.0),
        (json!({ "healthy_z_range": [0.2, "inf"], "terminate_when_unhealthy": false }), 0.0),
    ] {
        assert_eq!(stepped(&robot(settings.clone()))[1], [expected], "{settings}");
    }
}

/// A spring that is far too stiff for the timestep: positions overflow within a few steps.
#[test]
fn a_simulation_that_diverges_ends_its_episode_with_finite_numbers() {
    let text = r#"<mujoco>
        <option timestep="1"/>
        <worldbody>
          <body>
            <joint name="slide" type="slide" stiffness="1e9"/>
            <geom size="0.1" mass="1"/>
          </body>
        </worldbody>
        <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator>
      </mujoco>"#;
    let env = OwnRobot {
        model: RobotModel::from_mjcf(text).unwrap(),
        healthy_reward: 1.0,
        ..OwnRobot::default()
    };
    let arrays = run((), &[], |()| {
        let first = env.initial_state(Key::new(0_u32));
        let (_, steps) = scan(first, 0..3, |state, _| {
            let (state, TimeStep { observation, reward, terminated, .. }) =
                env.step(state, ones(F32, [1]), Key::new(0_u32));
            (state, (observation, reward, terminated))
        });
        steps
    });
    assert!(arrays[0].to_f64().iter().all(|x| x.is_finite()));
    let (rewards, terminated) = (arrays[1].to_f64(), arrays[2].to_f64());
    let first = terminated.iter().position(|&end| end == 1.0).expect("it diverges");
    assert_eq!(rewards[first], 0.0);
    assert!(rewards[..first].iter().all(|&reward| reward == 1.0));
}

/// A free robot's observation lacks x and y; a keyframe is the first state.
#[test]
fn first_states_are_near_a_keyframe() {
    let text = r#"<mujoco>
        <worldbody><body><freejoint/><geom size="0.1"/>
          <body name="arm"><joint name="hinge"/><geom size="0.1" pos="0 0 1"/></body></body></worldbody>
        <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
        <keyframe><key name="home" qpos="1 2 3 1 0 0 0 0.5" qvel="0 0 0 0 0 0 0.25"/></keyframe>
      </mujoco>"#;
    let env = OwnRobot {
        model: RobotModel::from_mjcf(text).unwrap(),
        keyframe: "home".to_owned(),
        ..OwnRobot::default()
    };
    env.check().unwrap();
    let seen = run((), &[], |()| env.observe(env.initial_state(Key::new(0_u32))));
    let expected = [3.0, 1.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25];
    let seen = seen[0].to_f64();
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        assert!((seen - expected).abs() <= 0.01, "{seen} and {expected}");
    }
    assert_eq!(env.observation_space().elements(), expected.len());
}

#[test]
fn settings_that_do_not_fit_the_model_say_so() {
    let motor = |motor: &str| {
        let text = format!(
            "<mujoco><worldbody><body name='arm'><joint name='hinge'/><geom size='1'/></body></worldbody>{motor}</mujoco>"
        );
        OwnRobot { model: RobotModel::from_mjcf(&text).unwrap(), ..OwnRobot::default() }
    };
    let limited = "<actuator><motor name='m' joint='hinge' ctrlrange='-1 1'/></actuator>";
    let free = "<actuator><motor name='m' joint='hinge'/></actuator>";
    motor(limited).check().unwrap();
    for (env, expected) in [
        (OwnRobot::default(), "environment.model is missing: the path of the robot's MJCF file"),
        (motor(""), "environment.model has no actuator: an agent has nothing to control"),
        (motor(free), "environment.model: actuator 0 `m` has no limits; give it a `ctrlrange`"),
        (
            OwnRobot { body: "leg".to_owned(), ..motor(limited) },
            "environment.body is `leg`: expected one of world, arm",
        ),
        (
            OwnRobot { keyframe: "home".to_owned(), ..motor(limited) },
            "environment.keyframe is `home`: the model has no keyframe with a name",
        ),
    ] {
        assert_eq!(env.check().unwrap_err(), expected);
    }
}
