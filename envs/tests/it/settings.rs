//! Environments as settings: keys, defaults, schemas and mistakes.

use podracer_envs::host::server::{Atari, EnvPool, Gymnasium, Vectorization};
use podracer_envs::host::{NativeCartPole, PixelBreakout, PixelCatch};
use podracer_envs::minatar::{Asterix, Breakout, Freeway, Seaquest, SpaceInvaders};
use podracer_envs::{
    Acrobot, CartPole, Catch, DeepSea, DiscountingChain, GridMap, GridWorld, MemoryChain,
    MountainCar, MountainCarContinuous, Pendulum, SimpleBandit, UmbrellaChain,
};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json, to_value};

#[test]
fn defaults_are_those_of_the_published_environments() {
    #[track_caller]
    fn check<E: Default + DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
        expected: &Value,
    ) {
        assert_eq!(to_value(E::default()).unwrap(), *expected);
        assert_eq!(from_value::<E>(json!({})).unwrap(), E::default());
        assert_eq!(from_value::<E>(expected.clone()).unwrap(), E::default());
    }
    check::<CartPole>(&json!({"time_limit": 500}));
    check::<NativeCartPole>(&json!({"time_limit": 500}));
    check::<Catch>(&json!({"rows": 10, "columns": 5}));
    check::<MemoryChain>(&json!({"length": 10, "bits": 1}));
    check::<Acrobot>(&json!({"time_limit": 500}));
    check::<MountainCar>(&json!({"time_limit": 200}));
    check::<MountainCarContinuous>(&json!({"time_limit": 999}));
    check::<DeepSea>(&json!({
        "size": 20, "deterministic": true, "randomize_actions": true, "mapping_seed": 0,
    }));
    check::<UmbrellaChain>(&json!({"length": 10, "distractors": 0}));
    check::<DiscountingChain>(&json!({"best": 0}));
    check::<Asterix>(&json!({"ramping": true, "time_limit": 1000}));
    check::<Breakout>(&json!({"time_limit": 1000, "trail": true}));
    check::<Freeway>(&json!({"player_speed": 3, "time_limit": 2500}));
    check::<Seaquest>(&json!({"ramping": true, "time_limit": 1000}));
    check::<SpaceInvaders>(&json!({"ramping": true, "time_limit": 1000}));
    check::<SimpleBandit>(&json!({"arms": 11, "mapping_seed": 0}));
    check::<Pendulum>(&json!({"time_limit": 200}));
    check::<PixelBreakout>(&json!({}));
    check::<PixelCatch>(&json!({}));
    check::<GridWorld>(&json!({
        "layout": [
            ".....#.....", ".....#.....", "...........", ".....#.....", ".....#.....", "#.####.....",
            ".....###.##", ".....#.....", ".....#.....", "...........", ".....#....G",
        ],
        "time_limit": 100,
    }));
    let server = json!({
        "bootstrap_time_limit": true, "servers": 1, "restarts": 10, "start_seconds": 40,
        "step_seconds": 30, "python": null,
    });
    let with_server = |mut own: Value| {
        for (name, value) in server.as_object().unwrap() {
            own.as_object_mut().unwrap().entry(name.clone()).or_insert(value.clone());
        }
        own
    };
    check::<Gymnasium>(&with_server(json!({
        "id": "CartPole-v1", "kwargs": {}, "vectorization": "sync", "autoreset": "same-step",
        "packages": "gymnasium",
    })));
    check::<EnvPool>(&with_server(json!({"id": "CartPole-v1", "kwargs": {}, "threads": null})));
    check::<Atari>(&with_server(json!({
        "game": "pong", "preset": "ppo", "threads": null, "height": 84, "width": 84,
        "resize": "area", "stack": 4, "action_repeat": 4, "pool": true, "fewest_noops": 0,
        "most_noops": 30, "fire_reset": true,
        "life_loss_ends": true, "clip_rewards": true, "full_actions": false, "sticky_actions": 0.0,
        "most_frames": 108_000, "bootstrap_time_limit": false,
    })));
}

#[test]
fn unknown_keys_and_wrong_values_are_refused() {
    #[track_caller]
    fn refused<E: DeserializeOwned + std::fmt::Debug>(settings: Value, expected: &str) {
        let error = from_value::<E>(settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    refused::<Catch>(json!({"row": 2}), "unknown field `row`, expected `rows` or `columns`");
    refused::<CartPole>(json!({"trigonometry": "library"}), "unknown field `trigonometry`");
    refused::<CartPole>(json!({"time_limit": -1}), "invalid value: integer `-1`");
    refused::<PixelCatch>(json!({"rows": 2}), "unknown field `rows`");
    refused::<Gymnasium>(json!({"vectorization": "threads"}), "unknown variant `threads`");
    refused::<Gymnasium>(json!({"id": "A-v0", "game": "pong"}), "unknown field `game`");
    refused::<EnvPool>(json!({"step_second": 3}), "unknown field `step_second`");
    refused::<Atari>(json!({"kwargs": {}}), "unknown field `kwargs`");
    refused::<Atari>(json!({"preset": "dqn"}), "unknown variant `dqn`, expected `ppo` or `seed`");
    refused::<Atari>(json!({"fewest_noops": 1}), "needs resize = \"bilinear\"");
    refused::<Atari>(json!({"preset": "seed", "most_noops": 0}), "fewest_noops = 1 is more than");
    refused::<GridWorld>(json!({"layout": [".G", "."]}), "row 1 has 1 cells, row 0 has 2");
    refused::<GridWorld>(json!({"layout": "..G"}), "invalid type: string");
}

#[test]
fn settings_that_are_given_are_kept() {
    let gymnasium: Gymnasium = from_value(json!({
        "vectorization": "async", "kwargs": {"gravity": 1.6, "deep": {"a": 1}}, "servers": 2,
    }))
    .unwrap();
    assert_eq!(gymnasium.vectorization, Vectorization::Async);
    assert_eq!(gymnasium.kwargs["deep"], json!({"a": 1}));
    assert_eq!((gymnasium.server.servers, gymnasium.server.restarts), (2, 10));
    let again: Gymnasium = from_value(to_value(&gymnasium).unwrap()).unwrap();
    assert_eq!(again, gymnasium);

    let small: GridWorld = from_value(json!({"layout": ["..", "#G"]})).unwrap();
    assert_eq!((small.layout, small.time_limit), (GridMap::parse("..\n#G").unwrap(), 100));
}

#[test]
fn a_preset_decides_the_processing_that_is_not_given() {
    let seed: Atari = from_value(json!({"preset": "seed", "stack": 2})).unwrap();
    assert_eq!(seed.game, "pong");
    assert_eq!(seed.processing.stack, 2);
    assert!(seed.processing.full_actions && !seed.processing.clip_rewards);
    let changed: Atari = from_value(json!({"clip_rewards": false})).unwrap();
    assert!(changed.processing.life_loss_ends && !changed.processing.clip_rewards);
    // Settings that were written out name the preset and every change.
    assert_eq!(from_value::<Atari>(to_value(&changed).unwrap()).unwrap(), changed);
}

/// Each setting as its schema says it: name, type, default, range, enumerated values, and the start of the doc.
fn described<E: JsonSchema>() -> Vec<Value> {
    let schema = to_value(schema_for!(E)).unwrap();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut all: Vec<Value> = properties
        .map(|(name, property)| {
            let values: Vec<&Value> = property["oneOf"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|one| &one["const"])
                .collect();
            assert!(property["description"].as_str().is_some_and(|doc| doc.len() > 14), "{name}");
            json!([
                name,
                property["type"],
                property["default"],
                property["minimum"],
                property["maximum"],
                values
            ])
        })
        .collect();
    all.sort_by_key(|setting| setting[0].as_str().map(str::to_owned));
    all
}

#[test]
fn schemas_say_type_default_range_and_values() {
    assert_eq!(described::<CartPole>(), [json!(["time_limit", "integer", 500, 1, i32::MAX, []])]);
    assert_eq!(described::<NativeCartPole>(), described::<CartPole>());
    assert_eq!(
        described::<Catch>(),
        [
            json!(["columns", "integer", 5, 1, 1_000, []]),
            json!(["rows", "integer", 10, 2, 1_000, []])
        ]
    );
    let grid = described::<GridWorld>();
    assert_eq!((&grid[0][0], &grid[0][1]), (&json!("layout"), &json!("array")));
    assert_eq!(grid[0][2], to_value(GridWorld::default().layout).unwrap());
    let atari = described::<Atari>();
    assert_eq!(atari.len(), 23);
    for setting in [
        json!(["preset", null, "ppo", null, null, ["ppo", "seed"]]),
        json!(["most_noops", "integer", 30, 0, 1_000_000, []]),
        json!(["sticky_actions", "number", 0.0, 0.0, 1.0, []]),
        json!(["servers", "integer", 1, 1, 1_024, []]),
    ] {
        assert!(atari.contains(&setting), "{setting} is not in {atari:#?}");
    }
}
