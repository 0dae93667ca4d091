//! Boards do what pgx's and jumanji's do, move for move. Where chance decides, the records have its outcomes.

use crate::golden::{array, records_of};
use crate::run::run;
use podracer_dsl::prelude::*;
use podracer_envs::boards::game_2048::{Board, State as State2048};
use podracer_envs::boards::{ConnectFour, Game2048, Othello, Snake, TicTacToe};
use podracer_envs::{AnyEnvironment, Environment};
use serde_json::Value;

/// The CRC-32 of bytes, as zlib computes it.
fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
    !bytes.fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The checksum of each slice over the axes after the first `axes`, as the records have them.
fn checksums(values: &Array, axes: usize) -> Vec<f64> {
    let each: usize = values.ty().shape[axes..].iter().product();
    let bytes = values.to_f64();
    let bytes = bytes.chunks_exact(each).map(|one| one.iter().map(|&value| value as u8));
    bytes.map(|one| f64::from(crc32(one))).collect()
}

/// The checksum of each slice of floats from 0 to 1, as the records have it: of 1024 times each element, two bytes each.
fn float_checksums(values: &Array, axes: usize) -> Vec<f64> {
    let each: usize = values.ty().shape[axes..].iter().product();
    let floats = values.to_f64();
    let slices = floats.chunks_exact(each);
    let whole = |value: &f64| ((value * 1024.0).round() as u16).to_le_bytes();
    let bytes = slices.map(|one| one.iter().flat_map(whole));
    bytes.map(|one| f64::from(crc32(one))).collect()
}

/// Asserts that the numbers of `[games, steps]` are equal, and says where they first differ.
#[track_caller]
fn equal(what: &str, got: &[f64], record: &Value, field: &str) {
    let expected = array(&record[field]);
    let steps = expected.ty().shape.get(1).copied().unwrap_or(1);
    let note = &record["note"];
    let expected = expected.to_f64();
    assert_eq!(got.len(), expected.len(), "{note}: {what}: counts");
    let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
    let place = differs.map(|place| (place / steps, place % steps));
    assert_eq!(place, None, "{note}: {what}: the first game and step that differ");
}

/// A state's observation and its mask of legal actions.
fn seen<E: Environment<Observation = Tensor>>(env: &E, state: &E::State) -> (Tensor, Tensor) {
    (env.observe(state.clone()), env.legal_actions(state).expect("a mask"))
}

/// Plays the games of a record, side by side.
fn play<E: Environment<Observation = Tensor>>(
    env: &E,
    player: impl Fn(&E::State) -> Tensor,
    record: &Value,
) -> Vec<Array> {
    let actions = array(&record["actions"]);
    let spec = Spec::<Tensor>(actions.ty().clone());
    run(spec, std::slice::from_ref(&actions), |actions| {
        vmap(actions, |actions| {
            let first = env.initial_state(Key::new(0u32));
            let before = seen(env, &first);
            let (_, steps) = scan(first, actions, |state, action| {
                let (state, timestep) = env.step(state, action, Key::new(0u32));
                let player = player(&state);
                (state.clone(), (seen(env, &state), timestep, player))
            });
            (before, steps)
        })
    })
}

/// Compares all records of a game of two players.
fn follows<E: Environment<Observation = Tensor>>(
    name: &str,
    env: &E,
    player: impl Fn(&E::State) -> Tensor,
) {
    assert_eq!(env.players(), 2);
    assert_eq!(AnyEnvironment::new(env.clone()).with_statistics().auto_reset().players(), 2);
    for record in records_of("boards.json", name) {
        let results = play(env, &player, &record);
        let results: [Array; 9] = results.try_into().expect("nine results");
        let [first, mask, shown, masks, observed, rewards, terminated, truncated, players] =
            results;
        equal("first observation", &checksums(&first, 1), &record, "observation");
        equal("first mask", &checksums(&mask, 1), &record, "legal");
        equal("rewards", &rewards.to_f64(), &record, "rewards");
        equal("terminated", &terminated.to_f64(), &record, "terminated");
        equal("players", &players.to_f64(), &record, "players");
        equal("masks", &checksums(&masks, 2), &record, "legals");
        equal("observations", &checksums(&shown, 2), &record, "observations");
        assert_eq!(shown, observed);
        assert!(truncated.to_f64().iter().all(|&truncated| truncated == 0.0));
    }
}

#[test]
fn tic_tac_toe_follows_pgx() {
    follows("tic_tac_toe", &TicTacToe::default(), |state| state.player);
}

#[test]
fn connect_four_follows_pgx() {
    follows("connect_four", &ConnectFour::default(), |state| state.player);
}

#[test]
fn othello_follows_pgx() {
    follows("othello", &Othello::default(), |state| state.stones.player);
}

/// The board with these exponents. u32 `[16]`
fn board(tiles: Tensor) -> Board {
    let rows = std::array::from_fn(|row| {
        (0..4).fold(scalar(0u32), |word, column| {
            word | (tiles.index(4 * row + column) << (8 * column))
        })
    });
    Board::of(rows)
}

#[test]
fn game_2048_follows_pgx() {
    let env = Game2048::default();
    for record in records_of("boards.json", "2048") {
        let given = ["boards", "actions", "outcomes"].map(|field| array(&record[field]));
        let [boards, actions, outcomes] =
            given.each_ref().map(|given| Spec::<Tensor>(given.ty().clone()));
        let results = run((boards, actions, outcomes), &given, |(boards, actions, outcomes)| {
            vmap((boards, actions, outcomes), |(tiles, actions, outcomes)| {
                let first = State2048 { board: board(tiles.astype(U32)), over: constant(false) };
                let before = seen(&env, &first);
                let (_, steps) = scan(first, (actions, outcomes), |state, (action, outcome)| {
                    let (state, timestep) = env.step_by(state, action, |_| outcome);
                    (state, (seen(&env, &state), timestep))
                });
                (before, steps)
            })
        });
        let results: [Array; 8] = results.try_into().expect("eight results");
        let [first, mask, shown, masks, observed, rewards, terminated, _] = results;
        equal("first observation", &checksums(&first, 1), &record, "observation");
        equal("first mask", &checksums(&mask, 1), &record, "legal");
        equal("rewards", &rewards.to_f64(), &record, "rewards");
        equal("terminated", &terminated.to_f64(), &record, "terminated");
        equal("masks", &checksums(&masks, 2), &record, "legals");
        equal("observations", &checksums(&shown, 2), &record, "observations");
        assert_eq!(shown, observed);
    }
}

/// Surprise of counts compared with the expected counts: chi-squared, in standard deviations above
/// its mean.
fn surprise(counts: &[f64], expected: &[f64]) -> f64 {
    let possible = counts.iter().zip(expected).filter(|(_, expected)| **expected > 0.0);
    let chi: f64 = possible.clone().map(|(count, each)| (count - each).powi(2) / each).sum();
    let freedom = possible.count() as f64 - 1.0;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn new_tiles_come_as_often_as_chance_says() {
    const DRAWS: usize = 8_000;
    let env = Game2048::default();
    let boards = [
        [0; 16],
        [0, 1, 1, 1, 2, 0, 3, 4, 5, 6, 0, 7, 8, 9, 1, 2],
        [1, 2, 1, 2, 2, 1, 2, 1, 1, 2, 1, 2, 2, 1, 2, 0],
    ];
    for tiles in boards {
        let results = run((), &[], |()| {
            let board = board(constant(tiles).astype(U32));
            let keys = Key::new(5u32).split_n(DRAWS);
            let drawn = vmap(keys, |key| env.draw_chance(board, key));
            (drawn.bincount(32), env.chance_probabilities(board))
        });
        let [counts, probabilities] = [0, 1].map(|i| results[i].to_f64());
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let expected: Vec<f64> = probabilities.iter().map(|p| p * DRAWS as f64).collect();
        for (outcome, expected) in expected.iter().enumerate() {
            assert_eq!(*expected > 0.0, tiles[outcome % 16] == 0, "outcome {outcome}");
            assert!(*expected > 0.0 || counts[outcome] == 0.0, "outcome {outcome}");
        }
        let surprise = surprise(&counts, &expected);
        assert!(surprise < 4.0, "{surprise} standard deviations");
    }
}

#[test]
fn snake_follows_jumanji() {
    for record in records_of("boards.json", "snake") {
        let setting = |name: &str, default: usize| {
            record["settings"][name].as_u64().map_or(default, |value| value as usize)
        };
        let default = Snake::default();
        let env = Snake {
            rows: setting("num_rows", default.rows),
            columns: setting("num_cols", default.columns),
            time_limit: setting("time_limit", default.time_limit),
        };
        let given =
            ["rows", "columns", "fruit", "actions", "fruits"].map(|field| array(&record[field]));
        let [rows, columns, fruit, actions, fruits] =
            given.each_ref().map(|given| Spec::<Tensor>(given.ty().clone()));
        let specs = (rows, columns, fruit, (actions, fruits));
        let results = run(specs, &given, |(rows, columns, fruit, steps)| {
            vmap((rows, columns, fruit, steps), |(row, column, fruit, steps)| {
                let first = env.first_at(row, column, fruit);
                let before = seen(&env, &first);
                let (_, steps) = scan(first, steps, |state, (action, fruit)| {
                    let (state, timestep) = env.step_by(state, action, |_, _| fruit);
                    (state, (seen(&env, &state), timestep))
                });
                (before, steps)
            })
        });
        let results: [Array; 8] = results.try_into().expect("eight results");
        let [first, mask, shown, masks, observed, rewards, terminated, truncated] = results;
        let over = array(&record["over"]).to_f64();
        let kept = |values: Vec<f64>| -> Vec<f64> {
            values.iter().zip(&over).map(|(value, over)| value * (1.0 - over)).collect()
        };
        let [terminated, truncated] = [terminated, truncated].map(|ends| kept(ends.to_f64()));
        let done: Vec<f64> = terminated.iter().zip(&truncated).map(|(a, b)| a + b).collect();
        equal("first observation", &float_checksums(&first, 1), &record, "observation");
        equal("first mask", &checksums(&mask, 1), &record, "legal");
        equal("rewards", &kept(rewards.to_f64()), &record, "rewards");
        equal("done", &done, &record, "dones");
        equal("masks", &kept(checksums(&masks, 2)), &record, "legals");
        equal("observations", &kept(float_checksums(&shown, 2)), &record, "observations");
        assert_eq!(shown, observed);
        let limited = record["settings"]["time_limit"].is_u64();
        assert_eq!(truncated.contains(&1.0), limited, "{}", record["note"]);
    }
}

#[test]
fn fruit_comes_to_each_free_cell_as_often() {
    const DRAWS: usize = 3_000;
    let env = Snake { rows: 3, columns: 4, time_limit: 10 };
    for body in
        [[0; 12], [0, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0], [8, 7, 6, 5, 1, 2, 3, 4, 0, 0, 9, 10]]
    {
        let results = run((), &[], |()| {
            let body = constant(body);
            vmap(Key::new(3u32).split_n(DRAWS), |key| env.draw_fruit(body, key)).bincount(12)
        });
        let counts = results[0].to_f64();
        let free = body.iter().filter(|&&cell| cell == 0).count() as f64;
        let expected = body.map(|cell| if cell == 0 { DRAWS as f64 / free } else { 0.0 });
        for (count, expected) in counts.iter().zip(expected) {
            assert!(expected > 0.0 || *count == 0.0, "{counts:?}");
        }
        assert_eq!(counts.iter().sum::<f64>(), DRAWS as f64);
        assert!(surprise(&counts, &expected) < 4.0, "{counts:?}");
    }
}
