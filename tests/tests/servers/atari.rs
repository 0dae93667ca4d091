//! Atari games: a server shows what ale-py shows, with channels last.

use podracer::loading::{Overrides, load};
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
    // Lost lives end episodes of Breakout, and a number of frames cuts other episodes off.
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
        let ends: Vec<_> = (0..4).map(|i| memory.done(i)).collect();
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
        ("resize", json!("bilinear")),
        ("fewest_noops", json!(1)),
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
    // Every field can be set differently, with any preset.
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

/// Episodes end by themselves and are cut off; screens are within rounding of those that are resized in floats.
#[test]
fn a_game_of_table_9_is_that_of_the_emulator() {
    let Some(python) = python("atari") else {
        return;
    };
    const ENVIRONMENTS: usize = 2;
    // The first loses its balls one after another, the second lets the time pass before it plays.
    let late = |time: usize| if time < 100 { 0 } else { [1, 3, 3, 4, 4][time % 5] };
    let actions: Vec<Vec<usize>> = (0..190).map(|time| vec![1, late(time)]).collect();
    let order = json!({
        "game": "breakout",
        "seeds": (0..ENVIRONMENTS).map(|i| seed(9, 2 + i)).collect::<Vec<_>>(),
        "actions": actions,
        "most_frames": 600,
    });
    let expected = direct(&python, include_str!("frames.py"), &order);
    let settings = environment(&[
        "preset=seed",
        "game=breakout",
        "stack=1",
        "most_frames=600",
        "bootstrap_time_limit=true",
    ]);
    let batch = Servers::start(&ServerOptions::new(python, &settings).unwrap(), 2).unwrap();
    assert_eq!(batch.spec().observation, Space::pixels([84, 84, 1]));
    let (mut batch, mut memory) = begun(batch, 9, 2);
    let close = |what: &str, got: &[u8], expected: &Value| {
        let expected = expected.as_str().unwrap().as_bytes().chunks(2);
        let expected = expected.map(|hex| u8::from_str_radix(str::from_utf8(hex).unwrap(), 16));
        for (place, (got, expected)) in got.iter().zip(expected).enumerate() {
            let expected = expected.unwrap();
            assert!(got.abs_diff(expected) <= 1, "{what}[{place}]: got {got}, expected {expected}");
        }
    };
    close("the first observation", memory.observation(), &expected[0][0]);
    let (mut terminated, mut truncated) = (0, 0);
    for (time, actions) in actions.iter().enumerate() {
        let bytes: Vec<u8> =
            actions.iter().flat_map(|&action| (action as i32).to_le_bytes()).collect();
        batch.step(&bytes, &mut memory.step()).unwrap();
        let expected = &expected[1 + time];
        let ends: Vec<_> = (0..ENVIRONMENTS).map(|i| memory.done(i)).collect();
        assert_eq!(json!(ends.iter().map(|end| end.0).collect::<Vec<_>>()), expected[3], "{time}");
        assert_eq!(json!(ends.iter().map(|end| end.1).collect::<Vec<_>>()), expected[4], "{time}");
        let rewards: Vec<i64> = memory.reward().iter().map(|&reward| reward as i64).collect();
        assert_eq!(json!(rewards), expected[2], "step {time}");
        close(&format!("step {time}"), memory.observation(), &expected[0]);
        for (i, end) in ends.iter().enumerate().filter(|(_, end)| end.0 || end.1) {
            let size = 84 * 84;
            let last = &memory.next_observation()[i * size..][..size];
            let text = &expected[1].as_str().unwrap()[2 * i * size..][..2 * size];
            close(&format!("the end at step {time}"), last, &json!(text));
            (terminated, truncated) =
                (terminated + usize::from(end.0), truncated + usize::from(end.1));
        }
    }
    assert!(terminated > 0 && truncated > 0, "{terminated} terminated, {truncated} truncated");
}

#[test]
fn a_game_of_table_9_waits_for_1_to_30_frames_and_resizes_as_opencv() {
    let Some(python) = python("atari") else {
        return;
    };
    const EPISODES: usize = 300;
    let program = concat!(
        include_str!("../../../envs/src/host/server/server.py"),
        include_str!("../../../envs/src/host/server/atari.py"),
        include_str!("games.py"),
    );
    let mut order = serde_json::to_value(environment(&["preset=seed", "stack=1"])).unwrap();
    order["episodes"] = json!(EPISODES);
    let found = direct(&python, program, &order);
    // Of `cv2.resize(screen, (84, 84), interpolation=cv2.INTER_LINEAR)`, OpenCV 5.0.0.
    let of_opencv = "978118ca84cd475361cee905d230a792fb96ef75ee1ed8855208698e79f357de";
    assert_eq!(found["small"], of_opencv);
    let mut counts = [0; 31];
    for waited in found["waited"].as_array().unwrap() {
        counts[waited.as_u64().unwrap() as usize] += 1;
    }
    assert_eq!(counts[0], 0);
    // Ten of each are expected. The draws are seeded: they are the same in each test.
    assert!(counts[1..].iter().all(|&count| 0 < count && count < 30), "{counts:?}");
    assert_eq!(counts.iter().sum::<usize>(), EPISODES);
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
