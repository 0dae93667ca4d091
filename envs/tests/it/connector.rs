//! Circuit boards of one's own: read from text, routed, and written as text.

use crate::run::{close, initial, keys, run, state_spec, steps};
use podracer_dsl::prelude::*;
use podracer_envs::connector::{Board, BoardError, View};
use podracer_envs::{Connector, Environment, check_environment};

const SMALL: &str = "
    A..
    ##.
    A..
    B.B
";

/// An environment with one column and one wire more than the board has.
fn routed() -> Connector {
    let board = Some(Board::parse(SMALL).expect("a board"));
    Connector { size: 4, wires: 3, board, ..Connector::default() }
}

/// Text of states with a leading axis in their leaves.
fn texts(env: &Connector, states: &[Array]) -> Vec<String> {
    let count = states[0].ty().shape[0];
    (0..count)
        .map(|i| {
            let leaves: Vec<Array> = states.iter().map(|leaf| leaf.index_leading(i)).collect();
            let text = run(state_spec(env), &leaves, |state| env.text(&state).expect("text"));
            let columns = text[0].ty().shape[1];
            let lines = text[0].bytes().chunks(columns).map(|line| String::from_utf8_lossy(line));
            lines.collect::<Vec<_>>().join("\n")
        })
        .collect()
}

#[test]
fn a_board_of_ones_own_is_routed() {
    let env = routed();
    check_environment(&env).expect("an environment");
    env.check_settings().expect("the board fits");
    let first = initial(&env, &keys(1).index_leading(0));
    let masks = run(state_spec(&env), &first, |state| {
        (env.legal_actions(&state).expect("a mask"), env.observe(state))
    });
    // To stay, up, right, down, left; the wire that the board lacks can only stay.
    let legal = [1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0].map(f64::from);
    assert_eq!(masks[0].to_f64(), legal);
    // Obstacles, and the cells behind the board, look like parts of the first wire.
    let planes = masks[1].to_f64();
    let path: Vec<f64> = planes.chunks(10).map(|cell| cell[0]).collect();
    assert_eq!(path, [0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1].map(f64::from));

    let moves = [2, 2, 0, 2, 2, 0, 3, 0, 0, 3, 0, 0, 4, 0, 0, 4, 0, 0];
    let actions = Array::ints(DType::I32, [6, 3], &moves);
    let walked = steps(&env, &first, &actions, &keys(6));
    let texts = texts(&env, &walked.states);
    assert_eq!(texts[0], "AA.\n##.\nA..\nBBB");
    assert_eq!(texts[5], "Aaa\n##a\nAaa\nBbB");
    assert_eq!(walked.terminated.to_f64(), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let rewards = [-0.06, 0.94, -0.03, -0.03, -0.03, 0.97];
    close("rewards", &walked.rewards, &rewards, 1e-6);
    let last: Vec<Array> = walked.states.iter().map(|leaf| leaf.index_leading(5)).collect();
    let success = run(state_spec(&env), &last, |state| env.success(&state).expect("a share"));
    assert_eq!(success[0].to_f64(), [1.0]);
}

#[test]
fn texts_that_are_no_boards_are_errors() {
    let error = |text: &str| Board::parse(text).unwrap_err();
    assert_eq!(error("A.\nA.."), BoardError::Ragged { row: 1, expected: 2, got: 3 });
    assert_eq!(error("A.a\n..A"), BoardError::Character { row: 0, column: 2, got: 'a' });
    assert_eq!(error("AB\nA."), BoardError::Pins { wire: 'B', got: 1 });
    assert_eq!(error("AA\nA.").to_string(), "wire A has 3 pins: each letter stands for two");
    assert_eq!(error("..\n#."), BoardError::NoWire);
    let settings = |board: &str| serde_json::from_str::<Connector>(board);
    let missing = settings(r#"{"board": "/nowhere/board.txt"}"#).unwrap_err().to_string();
    assert!(missing.contains("cannot read the board `/nowhere/board.txt`"), "{missing}");
    let large = settings(r#"{"size": 3, "wires": 1, "board": ["A..A"]}"#).expect("a board");
    let problem = large.check_settings().unwrap_err();
    assert!(problem.contains("1 by 4 cells and 1 wires"), "{problem}");
    // A board is written as it was read.
    let rows: Vec<String> = Board::parse(SMALL).expect("a board").into();
    assert_eq!(rows, ["A..", "##.", "A..", "B.B"]);
}

/// A wire's row by the documentation of [`View::Wires`], from a state's leaves.
fn row_of_wire(env: &Connector, state: &[Vec<f64>], wire: usize) -> Vec<f64> {
    let [board, rows, columns, targets, time] = state else { panic!("five leaves") };
    let size = env.size as i64;
    let (row, column) = (rows[wire] as i64, columns[wire] as i64);
    let mut numbers = Vec::new();
    for (down, right) in (-3..=3).flat_map(|down| (-3..=3).map(move |right| (down, right))) {
        let (r, c) = (row + down, column + right);
        let outside = r < 0 || c < 0 || r >= size || c >= size;
        let number = if outside { 0 } else { board[(r * size + c) as usize] as usize };
        // The wire of a cell and its part, counted from 0: path, head, target.
        let part = number.checked_sub(1).map(|n| (n / 3, n % 3)).filter(|&(of, _)| of < env.wires);
        let other = |kind: usize| part.is_some_and(|(of, part)| of != wire && part == kind);
        let goal = part == Some((wire, 2));
        let taken = outside || (number > 0 && !goal);
        numbers.extend([taken, other(1), other(2), goal].map(|is| f64::from(u8::from(is))));
    }
    let target = targets[wire] as i64;
    let share = |cells: i64| cells as f64 / size as f64;
    numbers.extend([target / size - row, target % size - column, row, column].map(share));
    let connected = target == row * size + column;
    numbers.extend([f64::from(u8::from(connected)), time[0] / env.time_limit as f64]);
    numbers
}

#[test]
fn wires_see_what_is_around_their_heads() {
    let drawn = Connector { size: 8, wires: 6, view: View::Wires, ..Connector::default() };
    for env in [drawn, Connector { view: View::Wires, ..routed() }] {
        check_environment(&env).expect("an environment");
        let first = initial(&env, &keys(1).index_leading(0));
        let (count, wires) = (20, env.wires);
        let actions: Vec<i128> =
            (0..count * wires).map(|i| ((i * i + i / wires) % 5) as i128).collect();
        let actions = Array::ints(DType::I32, [count, wires], &actions);
        let walked = steps(&env, &first, &actions, &keys(count));
        for step in 0..count {
            let state: Vec<Array> =
                walked.states.iter().map(|leaf| leaf.index_leading(step)).collect();
            let seen = run(state_spec(&env), &state, |state| env.observe(state));
            let state: Vec<Vec<f64>> = state.iter().map(Array::to_f64).collect();
            // A wire that a board lacks sees nothing that matters.
            let there = (0..wires).filter(|&wire| state[1][wire] >= 0.0);
            let seen: Vec<Vec<f64>> = seen[0].to_f64().chunks(202).map(<[f64]>::to_vec).collect();
            for wire in there {
                let expected = row_of_wire(&env, &state, wire);
                assert_eq!(seen[wire].len(), expected.len());
                for (i, (got, expected)) in seen[wire].iter().zip(&expected).enumerate() {
                    assert!((got - expected).abs() < 1e-6, "step {step}, wire {wire}, number {i}");
                }
            }
        }
    }
}
