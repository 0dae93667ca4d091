//! EnvPool resets in the step after the end of an episode; a server makes it reset in the step that
//! ends the episode.

use podracer_envs::host::HostEnvironment;
use podracer_envs::host::server::{ServerOptions, Servers};
use serde_json::json;

use super::{begun, floats, python};

#[test]
fn episodes_end_and_begin_in_one_step() {
    let Some(python) = python("envpool") else {
        return;
    };
    let configuration = json!({
        "name": "envpool", "id": "CartPole-v1", "kwargs": {"max_episode_steps": 9}, "threads": 1,
        "bootstrap_time_limit": true,
    });
    let batch = Servers::start(&ServerOptions::new(python, &configuration).unwrap(), 6).unwrap();
    let (mut batch, mut memory) = begun(batch, 1, 0);
    let begins = |state: &[f32]| state.iter().all(|number| number.abs() <= 0.05);
    let states =
        |bytes: &[u8]| -> Vec<Vec<f32>> { floats(bytes).chunks(4).map(<[f32]>::to_vec).collect() };
    assert!(states(memory.observation()).iter().all(|state| begins(state)));
    let (mut ended, mut lengths) = ((0, 0), [0; 6]);
    for _ in 0..60 {
        let before = states(memory.observation());
        batch.step(&[1, 0, 0, 0].repeat(6), &mut memory.step()).unwrap();
        let (now, last) = (states(memory.observation()), states(memory.next_observation()));
        for i in 0..6 {
            lengths[i] += 1;
            // The cart moves by its speed, in the step that ends an episode too.
            assert!((last[i][0] - before[i][0] - 0.02 * before[i][1]).abs() < 1e-5);
            let (terminated, truncated) = memory.done(i);
            assert!(!truncated || lengths[i] == 9, "{lengths:?}");
            assert!(!terminated || last[i][2].abs() > 0.209);
            if terminated || truncated {
                assert!(begins(&now[i]), "{:?}", now[i]);
                lengths[i] = 0;
            } else {
                assert_eq!(now[i], last[i]);
            }
            ended = (ended.0 + usize::from(terminated), ended.1 + usize::from(truncated));
        }
    }
    assert!(ended.0 > 0 && ended.1 > 0, "{ended:?}");
}

#[test]
fn a_discrete_observation_is_one_hot() {
    let Some(python) = python("envpool") else {
        return;
    };
    let configuration = json!({
        "name": "envpool", "id": "FrozenLake-v1", "kwargs": {"max_episode_steps": 9}, "threads": 1,
        "bootstrap_time_limit": true,
    });
    let batch = Servers::start(&ServerOptions::new(python, &configuration).unwrap(), 3).unwrap();
    let (mut batch, mut memory) = begun(batch, 1, 0);
    let places = |bytes: &[u8]| -> Vec<usize> {
        let place = |row: &[f32]| {
            assert_eq!(row.iter().filter(|&&number| number == 0.0).count(), 15);
            row.iter().position(|&number| number == 1.0).unwrap()
        };
        floats(bytes).chunks(16).map(place).collect()
    };
    assert_eq!(places(memory.observation()), [0; 3]);
    let mut ended = 0;
    for _ in 0..40 {
        batch.step(&[2, 0, 0, 0].repeat(3), &mut memory.step()).unwrap();
        let (now, last) = (places(memory.observation()), places(memory.next_observation()));
        for i in 0..3 {
            let over = memory.done(i) != (false, false);
            assert_eq!(now[i], if over { 0 } else { last[i] });
            ended += usize::from(over);
        }
    }
    assert!(ended > 3, "{ended}");
}
