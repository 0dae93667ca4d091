//! AlphaZero's search compared with mctx's, with a recurrent function that plays by the same rules.

use super::models::found;
use super::trees::Trees;
use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_envs::boards::TicTacToe;
use podracer_rl::search::*;
use podracer_tests::{check_all, golden, xla};
use serde_json::Value;

/// Logits f32 `[B, 9]` and values f32 `[B]` of observations `[B, 3, 3, 2]`, as in `tests/golden/make_alphazero.py`.
fn evaluate(observation: Tensor) -> (Tensor, Tensor) {
    let batch = observation.dim(0);
    let cells = observation.reshape([batch, 9, 2]).astype(U32);
    let words = (cells << iota(U32, [batch, 9, 2], 1)).sum_axis(1);
    let (own, other) = (words.index_axis(1, 0), words.index_axis(1, 1));
    let word = (own * 0x9E37_79B1u32) ^ (other * 0x85EB_CA77u32);
    let action = iota(U32, [batch, 9], 1) + 1;
    let each = (word.expand_dims(1) + action * 0xC2B2_AE3Du32) * 0x27D4_EB2Fu32;
    let logits = (each >> 24).astype(F32) / 64.0 - 2.0;
    let value = ((word * 0x1656_67B1u32) >> 24).astype(F32) / 128.0 - 1.0;
    (logits, value)
}

/// The boards after moves, i32 `[B, M]`; -1 is no move.
fn boards(moves: Tensor) -> <TicTacToe as Environment>::State {
    let (game, key) = (TicTacToe::default(), Key::new(0u64));
    vmap(moves, |moves| {
        let moved = |state, action: Tensor| {
            let (after, _) = game.step(state, action.maximum(0), key.again());
            (tree_select(action.lt(0), &state, &after), ())
        };
        scan(game.initial_state(key.again()), moves, moved).0
    })
}

#[test]
fn searches_of_tic_tac_toe_by_its_rules_are_those_of_mctx() {
    let records = golden::records("alphazero.json").expect("the file is sound");
    let mut complaints = Vec::new();
    for record in records.expect("it is there") {
        let number = |name: &str| record["attrs"][name].as_u64().expect("a number");
        let simulations = number("simulations") as usize;
        let options = match record["op"].as_str() {
            Some("muzero") => SearchOptions::MuZero(MuZeroOptions::default()),
            Some("gumbel_muzero") => SearchOptions::Gumbel(GumbelMuZeroOptions::default()),
            other => panic!("no policy is called {other:?}"),
        };
        let rows = record["attrs"]["moves"].as_array().expect("a list");
        let row = |row: &Value| -> Vec<i128> {
            let numbers = row.as_array().expect("a list").iter();
            numbers.filter_map(Value::as_i64).map(i128::from).collect()
        };
        let moves: Vec<i128> = rows.iter().flat_map(row).collect();
        let shape = [rows.len(), moves.len() / rows.len()];
        let moves = Array::ints(DType::I32, shape, &moves);
        let traced = trace((key(), i32(shape)), |(key, moves)| {
            let (game, states) = (TicTacToe::default(), boards(moves));
            let output =
                alphazero_policy(key, &game, states, evaluate, -1.0, simulations, &options);
            found(&output)
        });
        let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
        let results = xla::run_quickly(traced.func(), &[Array::key(number("seed")), moves]);
        let expected = Trees::of(&record["outputs"]).expect("the record has them");
        let got = Trees::new(expected.count, &results.expect("it runs")).expect("they are as many");
        complaints.extend((0..got.count).filter_map(|tree| {
            let unequal = got.unequal(tree, &expected, tree);
            let search = format!("{} with {simulations} simulations", record["op"]);
            (!unequal.is_empty()).then(|| format!("{search}: tree {tree} differs in {unequal:?}"))
        }));
    }
    check_all(&complaints);
}
