//! Connector does what jumanji's does, move for move, on its boards; and its own boards look like jumanji's.

use super::{checksums, chi_squared, crc32, number, numbers, records, run};
use podracer_dsl::prelude::*;
use podracer_envs::{Connector, Environment};
use podracer_tests::golden;
use serde_json::Value;

/// The actions of a record, i32 `[games, steps, wires]`: its digits, or those that follow from the numbers of game, step and wire.
fn actions(record: &Value, games: usize, wires: usize) -> Array {
    let (steps, digits) = (number(record, "steps"), record["actions"].as_array().expect("a list"));
    let mixed = |i: usize| {
        let (game, step, wire) = (i / (steps * wires), i / wires % steps, i % wires);
        let x = (game * 1_000_003 + step * 10_007 + wire * 101 + 12_345) as u32;
        let x = x.wrapping_mul(2_654_435_761);
        (((x ^ (x >> 15)).wrapping_mul(2_246_822_519)) >> 16) % 5
    };
    let actions: Vec<i128> = match digits.is_empty() {
        true => (0..games * steps * wires).map(|i| i128::from(mixed(i))).collect(),
        false => {
            let digits = digits.iter().flat_map(|one| one.as_str().expect("digits").bytes());
            digits.map(|digit| i128::from(digit - b'0')).collect()
        }
    };
    Array::ints(DType::I32, [games, steps, wires], &actions)
}

#[test]
fn games_follow_jumanji() {
    let mut followed = 0;
    for record in records("connector.json", "connector") {
        let given = ["rows", "columns", "targets"]
            .map(|field| golden::array(&record[field]).expect("an array"));
        let &[games, wires] = &given[0].ty().shape[..] else { panic!("[games, wires]") };
        let game = Connector {
            size: number(&record, "size"),
            wires,
            time_limit: number(&record, "time_limit"),
            ..Connector::default()
        };
        let [rows, columns, targets] = given;
        let arguments = [rows, columns, targets, actions(&record, games, wires)];
        let spec = arguments.each_ref().map(|one| Spec::<Tensor>(one.ty().clone()));
        let [rows, columns, targets, acts] = spec;
        let results = run((rows, columns, targets, acts), &arguments, |given| {
            vmap(given, |(rows, columns, targets, actions)| {
                let first = game.at(rows, columns, targets);
                let (_, steps) = scan(first, actions, |state, action| {
                    let (state, step) = game.step(state, action, Key::new(0u32));
                    let mask = game.legal_actions(&state).expect("a mask");
                    // The planes match the board.
                    let planes = step.observation.slice((.., .., ..3 * wires));
                    let numbers = planes * (arange(3 * wires) + 1).astype(F32);
                    let shown = numbers.sum_axis(2).reshape([game.size * game.size]);
                    let same = shown.eq(state.board.astype(F32)).all();
                    (state, (state.board, mask, step.reward, step.terminated, step.truncated, same))
                });
                (first.board, steps)
            })
        });
        let results: [Array; 7] = results.try_into().expect("seven results");
        let [first, boards, masks, rewards, terminated, truncated, same] = results;
        let cents = rewards.to_f64();
        let cents = cents.chunks_exact(rewards.ty().shape[1]).map(|game| {
            let bytes =
                game.iter().flat_map(|reward| ((reward * 100.0).round() as i16).to_le_bytes());
            f64::from(crc32(bytes))
        });
        assert!(same.to_f64().iter().all(|&same| same == 1.0));
        for (field, got) in [
            ("first", checksums(&first)),
            ("boards", checksums(&boards)),
            ("masks", checksums(&masks)),
            ("rewards", cents.collect()),
            ("terminated", checksums(&terminated)),
            ("truncated", checksums(&truncated)),
        ] {
            let expected = numbers(&record, field);
            let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
            assert_eq!((got.len(), differs), (games, None), "{}, {field}", record["note"]);
        }
        followed += games;
    }
    assert_eq!(followed, 1000);
}

#[test]
fn boards_look_like_those_of_jumanji() {
    const BOARDS: usize = 20_000;
    for record in records("connector.json", "boards") {
        let (size, wires) = (number(&record, "size"), number(&record, "wires"));
        let game = Connector { size, wires, ..Connector::default() };
        let results = run((), &[], |()| {
            vmap(Key::new(7u32).split_n(BOARDS), |key| {
                let state = game.initial_state(key);
                let mask = game.legal_actions(&state).expect("a mask");
                (state.rows, state.columns, state.targets, mask, state.board)
            })
        });
        let of = |i: usize| results[i].to_f64();
        let (rows, columns, targets) = (of(0), of(1), of(2));
        let cells = size * size;
        let (mut heads, mut ends) = (vec![0.0; cells], vec![0.0; cells]);
        let mut distances = vec![0.0; wires * 2 * size];
        for (i, ((row, column), target)) in rows.iter().zip(&columns).zip(&targets).enumerate() {
            let (row, column, target) = (*row as usize, *column as usize, *target as usize);
            heads[row * size + column] += 1.0;
            ends[target] += 1.0;
            let away = row.abs_diff(target / size) + column.abs_diff(target % size);
            assert!(away > 0, "a wire ends where it begins");
            distances[i % wires * 2 * size + away] += 1.0;
        }
        // A number for each head and target, and none twice: wires share no cells.
        let pins = of(4).iter().filter(|&&number| number > 0.0).count();
        assert_eq!(pins, 2 * wires * BOARDS);
        for (field, got) in [("heads", &heads), ("targets", &ends)] {
            let expected = numbers(&record, field);
            let chi = chi_squared(got, &expected);
            assert!(chi < 1.6, "{field}: {chi}");
        }
        let expected = numbers(&record, "distances");
        for wire in 0..wires {
            let part = wire * 2 * size..(wire + 1) * 2 * size;
            let chi = chi_squared(&distances[part.clone()], &expected[part]);
            assert!(chi < 3.0, "the distance of wire {wire}: {chi}");
        }
    }
}
