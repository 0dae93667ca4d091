//! Puzzles do what jumanji's do, move for move, from the same first states; and their own are as jumanji's are.

use super::{chi_squared, crc32, number, numbers, records, run};
use podracer_dsl::prelude::*;
use podracer_envs::Environment;
use podracer_envs::puzzles::{
    GraphColoring, Knapsack, Maze, Minesweeper, RubiksCube, SlidingTiles, Sokoban, SokobanState,
    TravellingSalesman,
};
use podracer_tests::golden;
use serde_json::Value;

/// The arrays of a record with these names, and their types.
pub(super) fn given<const N: usize>(
    record: &Value,
    fields: [&str; N],
) -> ([Array; N], [Spec<Tensor>; N]) {
    let arrays = fields.map(|field| golden::array(&record[field]).expect("an array"));
    let types = arrays.each_ref().map(|one| Spec::<Tensor>(one.ty().clone()));
    (arrays, types)
}

/// A game without resets: the observation after each step, its rewards, and its end.
fn game<E: Environment<Observation = Tensor>, S: Tree>(
    env: &E,
    first: E::State,
    actions: Tensor,
    seen: impl Fn(&E::State, Tensor) -> S,
) -> (S, (Tensor, Tensor)) {
    let (_, steps) = scan(first, actions, |state, action| {
        let (state, step) = env.step(state, action, Key::new(0u32));
        let seen = seen(&state, step.observation);
        (state, (seen, (step.reward, step.terminated | step.truncated)))
    });
    steps
}

/// Compares the bytes of each game with the checksums of a record's fields.
#[track_caller]
pub(super) fn compare(record: &Value, fields: &[&str], results: &[Array]) {
    assert_eq!(fields.len(), results.len());
    for (field, result) in fields.iter().zip(results) {
        let (bytes, expected) = (result.bytes(), numbers(record, field));
        let each = bytes.chunks_exact(bytes.len() / expected.len());
        let got: Vec<f64> = each.map(|one| f64::from(crc32(one.iter().copied()))).collect();
        let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!((got.len(), differs), (expected.len(), None), "{}, {field}", record["env"]);
    }
}

/// Compares how often each whole number is among some with the counts of a record's field.
#[track_caller]
fn counted_alike(record: &Value, field: &str, result: &Array) {
    let expected = numbers(record, field);
    let mut got = vec![0.0; expected.len()];
    result.to_f64().iter().for_each(|&number| got[number as usize] += 1.0);
    let chi = chi_squared(&got, &expected);
    assert!(chi < 2.5, "{field} of {}: {chi}", record["env"]);
}

#[test]
fn sliding_tiles_follow_jumanji() {
    for record in records("puzzles.json", "sliding-tiles") {
        let (size, time_limit) = (number(&record, "size"), number(&record, "time_limit"));
        let env = SlidingTiles { size, time_limit, ..SlidingTiles::default() };
        let (arrays, [tiles, actions]) = given(&record, ["tiles", "actions"]);
        let results = run((tiles, actions), &arrays, |given| {
            vmap(given, |(tiles, actions)| {
                game(&env, env.at(tiles), actions, |state, observation| {
                    // The planes match the tiles.
                    let planes = observation.reshape([size * size, size * size]);
                    let shown = planes.argmax(1).eq(state.tiles).all();
                    let tiles = select(shown, state.tiles, -1).astype(U8);
                    (tiles, env.legal_actions(state).expect("a mask"))
                })
            })
        });
        compare(&record, &["states", "masks", "rewards", "over"], &results);
    }
}

#[test]
fn bags_follow_jumanji() {
    for record in records("puzzles.json", "knapsack") {
        let (arrays, [weights, values, actions]) = given(&record, ["weights", "values", "actions"]);
        let (items, budget) =
            (arrays[0].ty().shape[1], record["budget"].as_f64().expect("a number"));
        let env = Knapsack { items, budget };
        let results = run((weights, values, actions), &arrays, |given| {
            vmap(given, |(weights, values, actions)| {
                game(&env, env.at(weights, values), actions, |state, observation| {
                    // The mask itself has all items where none fits any more.
                    (state.packed, state.room, observation.index_axis(1, 3).eq(1.0))
                })
            })
        });
        compare(&record, &["packed", "room", "masks", "rewards", "over"], &results);
    }
}

#[test]
fn colourings_follow_jumanji() {
    for record in records("puzzles.json", "graph-coloring") {
        let (arrays, [edges, actions]) = given(&record, ["edges", "actions"]);
        let nodes = arrays[0].ty().shape[1];
        let env = GraphColoring { nodes, ..GraphColoring::default() };
        let results = run((edges, actions), &arrays, |given| {
            vmap(given, |(edges, actions)| {
                game(&env, env.at(edges), actions, |state, _| {
                    let mask = env.legal_actions(state).expect("a mask");
                    (state.colours.astype(I8), state.node.astype(U8), mask)
                })
            })
        });
        compare(&record, &["states", "nodes", "masks", "rewards", "over"], &results);
    }
}

#[test]
fn mines_follow_jumanji() {
    for record in records("puzzles.json", "minesweeper") {
        let (rows, columns) = (number(&record, "rows"), number(&record, "columns"));
        let (arrays, [mines, actions]) = given(&record, ["mines", "actions"]);
        let env = Minesweeper { rows, columns, mines: arrays[0].ty().shape[1] };
        let results = run((mines, actions), &arrays, |given| {
            vmap(given, |(mines, actions)| {
                let cells = arange(rows * columns).expand_dims(1);
                let mines = cells.eq(mines.expand_dims(0)).any_axis(1).reshape([rows, columns]);
                game(&env, env.at(mines), actions, |state, observation| {
                    // The planes are numbers of mines around, from the second on.
                    let board = (observation.argmax(2) - 1).astype(I8);
                    (board, env.legal_actions(state).expect("a mask"))
                })
            })
        });
        compare(&record, &["states", "masks", "rewards", "over"], &results);
    }
}

#[test]
fn boxes_follow_jumanji() {
    for record in records("puzzles.json", "sokoban") {
        let env = Sokoban { time_limit: number(&record, "time_limit"), ..Sokoban::default() };
        let (arrays, types) = given(&record, ["fixed", "moving", "actions"]);
        let [fixed, moving, actions] = types;
        let results = run((fixed, moving, actions), &arrays, |given| {
            vmap(given, |(fixed, moving, actions)| {
                let player = select(moving.eq(3u8).flatten(), arange(100), 0).sum();
                let first = SokobanState {
                    walls: fixed.eq(1u8),
                    targets: fixed.eq(2u8),
                    boxes: moving.eq(4u8),
                    row: player / 10,
                    column: player.rem(10),
                    time: scalar(0),
                };
                let (seen, outcome) = game(&env, first, actions, |_, observation| {
                    let plane = |i: i32| observation.index_axis(2, i).ne(0.0);
                    select(plane(2), 4u8, select(plane(3), 3u8, 0u8))
                });
                (seen, full([actions.len(), 4], true), outcome)
            })
        });
        compare(&record, &["states", "masks", "rewards", "over"], &results);
    }
}

/// Levels that are drawn are not solved yet, and can be: of each, all states that pushes lead to are searched.
#[test]
fn drawn_levels_can_be_solved() {
    let env = Sokoban { size: 7, boxes: 2, ..Sokoban::default() };
    let draw = |env: &Sokoban, count: usize| {
        run((), &[], |()| {
            vmap(Key::new(4u32).split_n(count), |key| {
                let state = env.initial_state(key);
                let cells = select(state.walls, b'#', select(state.targets, b'.', b' '));
                let player = state.row * env.size as i32 + state.column;
                (cells.flatten(), state.boxes.flatten(), player)
            })
        })
    };
    let levels = draw(&env, 60);
    for level in 0..60 {
        let [cells, boxes, player] = [0, 1, 2].map(|i| levels[i].index_leading(level));
        let boxes: Vec<usize> = (0..49).filter(|&cell| boxes.to_f64()[cell] != 0.0).collect();
        let player = player.to_f64()[0] as usize;
        assert!(can_be_solved(cells.bytes(), boxes, player), "level {level}");
    }
    // Levels with the default settings: four boxes, apart from each other and from walls, not all
    // on targets.
    let levels = draw(&Sokoban::default(), 20_000);
    let (cells, boxes) = (levels[0].bytes(), levels[1].to_f64());
    let (mut floor, mut stored) = (0, 0);
    for (cells, boxes) in cells.chunks(100).zip(boxes.chunks(100)) {
        let with_box: Vec<u8> = (0..100).filter(|&i| boxes[i] != 0.0).map(|i| cells[i]).collect();
        assert!(with_box.len() == 4 && !with_box.contains(&b'#'), "{with_box:?}");
        let on_targets = with_box.iter().filter(|&&cell| cell == b'.').count();
        assert!(on_targets < 4);
        stored += on_targets;
        floor += cells.iter().filter(|&&cell| cell != b'#').count();
    }
    let (floor, stored) = (floor as f64 / 20_000.0, stored as f64 / 20_000.0);
    assert!(
        floor > 25.0 && floor < 50.0 && stored < 1.2,
        "{floor} cells of floor, {stored} boxes on targets"
    );
}

/// A search for a way to push all boxes onto targets, in a warehouse of 7 by 7 cells.
fn can_be_solved(cells: &[u8], boxes: Vec<usize>, player: usize) -> bool {
    let mut seen = std::collections::HashSet::new();
    let mut open = vec![(boxes, player)];
    while let Some((boxes, player)) = open.pop() {
        if boxes.iter().all(|&cell| cells[cell] == b'.') {
            return true;
        }
        for step in [-7isize, 1, 7, -1] {
            let to = player.wrapping_add_signed(step);
            let beyond = to.wrapping_add_signed(step);
            let mut boxes = boxes.clone();
            if let Some(pushed) = boxes.iter().position(|&cell| cell == to) {
                if cells[beyond] == b'#' || boxes.contains(&beyond) {
                    continue;
                }
                boxes[pushed] = beyond;
                boxes.sort_unstable();
            }
            if cells[to] != b'#' && seen.insert((boxes.clone(), to)) {
                open.push((boxes, to));
            }
        }
    }
    false
}

/// Each board has the requested number of mines, and each cell has a mine equally often, and so
/// does each pair of cells.
#[test]
fn mines_are_anywhere() {
    const BOARDS: usize = 20_000;
    let env = Minesweeper { rows: 3, columns: 4, mines: 4 };
    let results = run((), &[], |()| {
        let (count, mines, pairs) = vmap(Key::new(9u32).split_n(BOARDS), |key| {
            let mines = env.initial_state(key).mines.flatten();
            let pairs = mines.expand_dims(0) & mines.expand_dims(1);
            (mines.astype(I32).sum(), mines.astype(I32), pairs.astype(I32))
        });
        (count.eq(4).all(), mines.sum_axis(0), pairs.sum_axis(0))
    });
    assert_eq!(results[0].to_f64(), [1.0]);
    let near = |got: f64, share: f64| {
        let boards = BOARDS as f64;
        (got - boards * share).abs() < 5.0 * (boards * share * (1.0 - share)).sqrt()
    };
    assert!(results[1].to_f64().iter().all(|&got| near(got, 4.0 / 12.0)), "{:?}", results[1]);
    for (i, &got) in results[2].to_f64().iter().enumerate() {
        let share = if i % 13 == 0 { 4.0 / 12.0 } else { 4.0 / 12.0 * 3.0 / 11.0 };
        assert!(near(got, share), "cells {} and {}: {got}", i / 12, i % 12);
    }
}

#[test]
fn cubes_follow_jumanji() {
    for record in records("puzzles.json", "rubiks-cube") {
        let (size, time_limit) = (number(&record, "size"), number(&record, "time_limit"));
        let (arrays, [stickers, actions]) = given(&record, ["stickers", "actions"]);
        let env = RubiksCube { size, time_limit, ..RubiksCube::default() };
        let results = run((stickers, actions), &arrays, |given| {
            vmap(given, |(stickers, actions)| {
                game(&env, env.at(stickers), actions, |_, observation| {
                    (
                        observation.argmax(3).astype(U8),
                        full([env.action_space().bounds(0).1 as usize + 1], true),
                    )
                })
            })
        });
        compare(&record, &["states", "masks", "rewards", "over"], &results);
    }
}

#[test]
fn tours_follow_jumanji() {
    for record in records("puzzles.json", "travelling-salesman") {
        let (arrays, [cities, actions]) = given(&record, ["cities", "actions"]);
        let env = TravellingSalesman { cities: arrays[0].ty().shape[1] };
        let results = run((cities, actions), &arrays, |given| {
            vmap(given, |(cities, actions)| {
                game(&env, env.at(cities), actions, |state, observation| {
                    // The planes match the route.
                    let visited = observation.index_axis(1, 2).eq(1.0);
                    let last = observation.index_axis(1, 3).eq(1.0);
                    let shown = visited.eq(state.order.ge(0)).all()
                        & last.eq(state.order.eq(state.visited - 1)).all();
                    // jumanji has the cities in order, and ours the places of the cities.
                    let place = arange(cities.dim(0)).expand_dims(1);
                    let here = place.eq(state.order.expand_dims(0));
                    let cities = arange(cities.dim(0)).expand_dims(0);
                    let way = select(here, cities, 0).sum_axis(1) - (!here.any_axis(1)).astype(I32);
                    let way = select(shown, way, -2).astype(I8);
                    (way, env.legal_actions(state).expect("a mask"))
                })
            })
        });
        compare(&record, &["states", "masks"], &results[..2]);
        super::close("rewards", &results[2].to_f64(), &numbers(&record, "rewards"), 1e-5);
        compare(&record, &["over"], &results[3..]);
    }
}

#[test]
fn mazes_follow_jumanji() {
    for record in records("puzzles.json", "maze") {
        let (arrays, [walls, cells, actions]) = given(&record, ["walls", "cells", "actions"]);
        let [rows, columns] = [1, 2].map(|axis| arrays[0].ty().shape[axis]);
        let env = Maze { rows, columns, time_limit: number(&record, "time_limit") };
        let results = run((walls, cells, actions), &arrays, |given| {
            vmap(given, |(walls, cells, actions)| {
                let cell = |at: usize| (cells.index(at), cells.index(at + 1));
                game(&env, env.at(walls, cell(0), cell(2)), actions, |state, observation| {
                    // The planes match the state.
                    let planes = observation.sum_axis(0).sum_axis(0);
                    let seen =
                        planes.eq(stack(&[walls.astype(F32).sum(), scalar(1.0), scalar(1.0)], 0));
                    let row = select(seen.all(), state.row, -1);
                    let mask = env.legal_actions(state).expect("a mask");
                    (stack(&[row, state.column], 0), mask)
                })
            })
        });
        compare(&record, &["states", "masks", "rewards", "over"], &results);
    }
}

/// As many cells are free as in jumanji's mazes, as many have one way out, and each is free as often.
#[test]
fn mazes_are_divided_as_those_of_jumanji() {
    const MAZES: usize = 20_000;
    for record in records("puzzles.json", "mazes") {
        let (rows, columns) = (number(&record, "rows"), number(&record, "columns"));
        let env = Maze { rows, columns, ..Maze::default() };
        let results = run((), &[], |()| {
            let (free, ends, cells) = vmap(Key::new(6u32).split_n(MAZES), |key| {
                let state = env.initial_state(key);
                let free = (!state.walls).astype(I32);
                let around = free.pad(&[(1, 1), (1, 1)], 0);
                let shifted = |down: usize, right: usize| {
                    around.slice_axis(0, down..down + rows).slice_axis(1, right..right + columns)
                };
                let ways = shifted(0, 1) + shifted(2, 1) + shifted(1, 0) + shifted(1, 2);
                let ends = (ways.eq(1) & !state.walls).astype(I32).sum();
                (free.sum(), ends, free.flatten())
            });
            (free, ends, cells.sum_axis(0))
        });
        for (result, field) in results.iter().zip(["free", "ends"]) {
            counted_alike(&record, field, result);
        }
        let often = numbers(&record, "cells");
        for (i, (got, expected)) in results[2].to_f64().iter().zip(&often).enumerate() {
            // Differences of two counts from `n` trials, within five standard deviations.
            let share = expected / MAZES as f64;
            let most = 5.0 * (2.0 * MAZES as f64 * share * (1.0 - share)).sqrt() + 1.0;
            assert!(
                (got - expected).abs() <= most,
                "cell {i} of {rows} x {columns}: {got}, {expected}"
            );
        }
    }
}

/// The gap is in each place as often as in jumanji's puzzles, and as many tiles are right.
#[test]
fn puzzles_are_shuffled_as_those_of_jumanji() {
    const PUZZLES: usize = 20_000;
    for record in records("puzzles.json", "gaps") {
        let (size, shuffles) = (number(&record, "size"), number(&record, "shuffles"));
        let env = SlidingTiles { size, shuffles, ..SlidingTiles::default() };
        let results = run((), &[], |()| {
            vmap(Key::new(5u32).split_n(PUZZLES), |key| {
                let state = env.initial_state(key);
                let right = env.success(&state).expect("a share") * (size * size) as f64;
                (state.row * size as i32 + state.column, right.round().astype(I32))
            })
        });
        for (result, field) in results.iter().zip(["gaps", "right"]) {
            counted_alike(&record, field, result);
        }
    }
}
