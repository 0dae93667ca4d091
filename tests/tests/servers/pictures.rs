//! Pictures that servers draw of Gymnasium's and EnvPool's environments.

use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, StepMemory};
use serde_json::{Value, json};

use super::gymnasium::{MODULES, configuration};
use super::python;

/// Episode and time in each picture of `painted.py` that there is now.
fn paintings(batch: &mut Servers) -> Vec<(u8, u8)> {
    let pictures = batch.draw().unwrap();
    let read = |picture: &Vec<u8>| {
        assert_eq!((picture.len(), picture[0]), (4 * 6 * 3, 200));
        (picture[1], picture[2])
    };
    pictures.iter().map(read).collect()
}

#[test]
fn every_state_has_a_picture_and_the_last_one_of_an_episode_too() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    let begun_with = |changes: Value| {
        let options = ServerOptions::new(&python, &configuration(&changes)).unwrap();
        let mut batch = Servers::start(&options.modules(MODULES).pictures(), 1).unwrap();
        assert_eq!(batch.picture_size(), Ok([4, 6]));
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(5, 0, &mut memory.step()).unwrap();
        assert_eq!(paintings(&mut batch), [(0, 0)]);
        (batch, memory)
    };
    for vectorization in ["sync", "async"] {
        for autoreset in ["same-step", "next-step", "disabled"] {
            let (mut batch, mut memory) = begun_with(json!({
                "id": "painted:Painted-v0", "kwargs": {}, "vectorization": vectorization,
                "autoreset": autoreset,
            }));
            for episode in 0..2 {
                for time in 1..=3 {
                    batch.step(&[0; 4], &mut memory.step()).unwrap();
                    let expected = match time {
                        3 => vec![(episode, 3), (episode + 1, 0)],
                        _ => vec![(episode, time)],
                    };
                    assert_eq!(paintings(&mut batch), expected, "{vectorization} {autoreset}");
                    assert_eq!(memory.done(0), (time == 3, false));
                }
            }
        }
    }
    let changes = json!({"id": "painted:Paintings-v0", "kwargs": {}, "vectorization": "native"});
    let (mut batch, mut memory) = begun_with(changes);
    for expected in [&[(0, 1)][..], &[(0, 2)], &[(0, 3), (0, 3)], &[(1, 0)], &[(1, 1)]] {
        batch.step(&[0; 4], &mut memory.step()).unwrap();
        assert_eq!(paintings(&mut batch), expected);
    }
}

#[test]
fn gymnasiums_own_pictures_are_drawn() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (id, size) in [("CartPole-v1", [400, 600]), ("FrozenLake-v1", [256, 256])] {
        let configuration = configuration(&json!({"id": id, "kwargs": {}}));
        let options = ServerOptions::new(&python, &configuration).unwrap();
        let mut batch = Servers::start(&options.pictures(), 1).unwrap();
        assert_eq!(batch.picture_size(), Ok(size));
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(5, 0, &mut memory.step()).unwrap();
        let first = batch.draw().unwrap();
        assert_eq!((first.len(), first[0].len()), (1, 3 * size[0] * size[1]));
        assert!(first[0].iter().any(|&byte| byte != first[0][0]), "one colour");
        // On ice a step may lead nowhere, and the cart moves by less than a pixel.
        let moved = (0..20).any(|_| {
            batch.step(&1i32.to_le_bytes(), &mut memory.step()).unwrap();
            batch.draw().unwrap() != first
        });
        assert!(moved, "{id}");
    }
}

#[test]
fn without_pictures_the_reason_is_said() {
    let Some(python) = python("gymnasium") else {
        return;
    };
    for (kwargs, expected) in [
        (json!({"modes": ["ansi"]}), "`painted:Painted-v0` has no render mode `rgb_array`"),
        (json!({"fails": true}), "its rendering fails (OSError: there is no paint)"),
        (
            json!({"floats": true}),
            "its pictures are float64[4, 6, 3] and not uint8[height, width, 3]",
        ),
    ] {
        let configuration = configuration(&json!({"id": "painted:Painted-v0", "kwargs": kwargs}));
        let options = ServerOptions::new(&python, &configuration).unwrap().modules(MODULES);
        let mut batch = Servers::start(&options.clone().pictures().restarts(0), 1).unwrap();
        assert_eq!(batch.picture_size(), Err(expected));
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(5, 0, &mut memory.step()).unwrap();
        batch.step(&[0; 4], &mut memory.step()).unwrap();
        let error = batch.draw().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        // If pictures are not requested, none are prepared.
        let batch = Servers::start(&options, 1).unwrap();
        assert_eq!(batch.picture_size(), Err("its server draws none"));
    }
}

#[test]
fn environments_of_envpool_are_drawn_where_it_can_draw_them() {
    let Some(python) = python("envpool") else {
        return;
    };
    let start = |id: &str| {
        let configuration = json!({
            "name": "envpool", "id": id, "kwargs": {"max_episode_steps": 6}, "threads": 1, "bootstrap_time_limit": true,
        });
        let options = ServerOptions::new(&python, &configuration).unwrap();
        Servers::start(&options.pictures(), 1).unwrap()
    };
    let mut batch = start("CartPole-v1");
    assert_eq!(batch.picture_size(), Ok([400, 600]));
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(1, 0, &mut memory.step()).unwrap();
    let first = batch.draw().unwrap();
    for time in 1..=6 {
        batch.step(&1i32.to_le_bytes(), &mut memory.step()).unwrap();
        let over = time == 6;
        assert_eq!(memory.done(0), (false, over));
        let pictures = batch.draw().unwrap();
        // The last state of an episode has a picture, too.
        assert_eq!(pictures.len(), if over { 2 } else { 1 });
        assert!(!over || pictures[0] != first[0]);
    }
    let none = start("FrozenLake-v1");
    let why = none.picture_size().unwrap_err();
    assert!(why.contains("render not implemented for this environment"), "{why}");
}
