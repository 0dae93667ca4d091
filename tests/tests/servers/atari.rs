//! Atari games: a server shows what ale-py shows, with channels last.

use podracer::settings::{Overrides, load};
use podracer_envs::Space;
use podracer_envs::host::HostEnvironment;
use podracer_envs::host::server::{ServerOptions, Servers};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{begun, direct, python, seed};

/// The settings of an experiment's environment, changed.
fn environment(sets: &[&str]) -> toml::Table {
    let set = sets.iter().map(|&set| format!("environment.{set}")).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    load("atari-pong-ppo", &overrides).unwrap().environment
}

fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[test]
fn a_server_shows_what_ale_py_shows() {
    let Some(python) = python("atari") else {
        return;
    };
    // Lives that are lost end episodes of Breakout, and so many frames cut others off.
    let settings = environment(&["game=breakout", "most_frames=400", "bootstrap_time_limit=true"]);
    let actions: Vec<Vec<usize>> =
        (0..120).map(|time| vec![time % 4, 1, 3, time / 7 % 4]).collect();
    let order = json!({
        "game": "breakout",
        "seeds": (0..4).map(|i| seed(9, 2 + i)).collect::<Vec<_>>(),
        "actions": actions,
        "kwargs": {"life_loss_info": true, "max_num_frames_per_episode": 400, "noop_max": 31},
    });
    let expected = direct(&python, include_str!("stacks.py"), &order);

    let options = ServerOptions::new(python, &settings).unwrap().servers(2);
    let batch = Servers::start(&options, 4).unwrap();
    assert_eq!(batch.spec().observation, Space::pixels([84, 84, 4]));
    assert_eq!(batch.spec().action, Space::discrete(4));
    let (mut batch, mut memory) = begun(batch, 9, 2);
    assert_eq!(expected[0][0], digest(memory.observation()));
    let (mut terminated, mut truncated) = (0, 0);
    for (time, actions) in actions.iter().enumerate() {
        let bytes: Vec<u8> =
            actions.iter().flat_map(|&action| (action as i32).to_le_bytes()).collect();
        batch.step(&bytes, &mut memory.step()).unwrap();
        let ends: Vec<_> = (0..4).map(|i| memory.ended(i)).collect();
        terminated += ends.iter().filter(|end| end.0).count();
        truncated += ends.iter().filter(|end| end.1).count();
        let step = json!([
            digest(memory.observation()),
            digest(memory.next_observation()),
            memory.reward().iter().map(|&reward| reward as i64).collect::<Vec<_>>(),
            ends.iter().map(|end| end.0).collect::<Vec<_>>(),
            ends.iter().map(|end| end.1).collect::<Vec<_>>(),
        ]);
        assert_eq!(step, expected[1 + time], "step {time}");
    }
    assert!(terminated > 3 && truncated > 3, "{terminated} terminated, {truncated} truncated");
}

#[test]
fn the_preset_of_seed_is_table_9() {
    let json = |sets: &[&str]| serde_json::to_value(environment(sets)).unwrap();
    let seed = json(&["preset=seed"]);
    for (key, value) in [
        ("height", json!(84)),
        ("width", json!(84)),
        ("most_noops", json!(30)),
        ("stack", json!(4)),
        ("action_repeat", json!(4)),
        ("pool", json!(true)),
        ("life_loss_ends", json!(false)),
        ("most_frames", json!(108_000)),
        ("clip_rewards", json!(false)),
        ("full_actions", json!(true)),
        ("sticky_actions", json!(0.0)),
    ] {
        assert_eq!(seed[key], value, "{key}");
    }
    // Every field can be said otherwise, whatever the preset.
    assert_eq!(json(&["preset=seed", "clip_rewards=true"])["clip_rewards"], json!(true));
    let ppo: Value = json(&[]);
    for key in ["clip_rewards", "life_loss_ends", "fire_reset"] {
        assert_eq!(ppo[key], json!(true), "{key}");
    }
    assert_eq!(ppo["full_actions"], json!(false));
    let Some(python) = python("atari") else {
        return;
    };
    let options =
        ServerOptions::new(python, &environment(&["preset=seed", "game=breakout"])).unwrap();
    assert_eq!(Servers::start(&options, 1).unwrap().spec().action, Space::discrete(18));
}

#[test]
fn a_game_that_there_is_not_is_an_error() {
    let Some(python) = python("atari") else {
        return;
    };
    let options = ServerOptions::new(python, &environment(&["game=pongs"])).unwrap();
    let error = Servers::start(&options, 1).err().unwrap().to_string();
    assert!(error.contains("there is no game `pongs`") && error.contains("pong"), "{error}");
}
