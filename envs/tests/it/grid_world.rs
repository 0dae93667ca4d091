//! Grid worlds: maps, moves, shortest ways.

use crate::run::{ints, keys, run, state_spec, steps};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, GridMap, GridWorld, MapError};

const SMALL: &str = "
    ...
    .#.
    .#G
";

#[test]
fn distances_go_around_walls() {
    let map = GridMap::parse(SMALL).expect("a map");
    let distances: Vec<Option<usize>> = (0..9).map(|cell| map.distance(cell)).collect();
    assert_eq!(
        distances,
        [Some(4), Some(3), Some(2), Some(5), None, Some(1), Some(6), None, Some(0)]
    );
    assert_eq!(map.starts(), [0, 1, 2, 3, 5, 6]);
    assert_eq!(map.mean_distance(), 21.0 / 6.0);
    assert_eq!(map.greatest_distance(), 6);
}

#[test]
fn pictures_that_are_no_maps_are_errors() {
    let error = |picture: &str| GridMap::parse(picture).unwrap_err();
    assert_eq!(error("..\n...G"), MapError::Ragged { row: 1, expected: 2, got: 4 });
    assert_eq!(error("..x\n..G"), MapError::Character { row: 0, column: 2, got: 'x' });
    assert_eq!(error("...\n.#."), MapError::NoGoal);
    assert_eq!(error("##\nG#"), MapError::NoStart);
    assert_eq!(error("").to_string(), "the map has no goal: mark one with 'G'");
    assert_eq!(error(".#G\n.#.").to_string(), "row 0, column 0: no path leads from here to a goal");
}

#[test]
fn moves_stop_at_walls_and_edges() {
    let env = GridWorld::new(SMALL).expect("a map");
    let walk = |row: i32, column: i32, actions: &[i32]| {
        let scalar = |value: i32| Array::ints(DType::I32, Vec::new(), &[i128::from(value)]);
        let result = steps(
            &env,
            &[scalar(row), scalar(column), scalar(0)],
            &ints(actions),
            &keys(actions.len()),
        );
        result.states[0]
            .to_f64()
            .into_iter()
            .zip(result.states[1].to_f64())
            .map(|(row, column)| (row as i32, column as i32))
            .collect::<Vec<_>>()
    };
    assert_eq!(walk(0, 0, &[0, 3, 1, 1, 1, 2]), [(0, 0), (0, 0), (0, 1), (0, 2), (0, 2), (1, 2)]);
    assert_eq!(walk(0, 1, &[2, 3, 2, 1, 2, 2]), [(0, 1), (0, 0), (1, 0), (1, 0), (2, 0), (2, 0)]);
}

#[test]
fn the_shortest_way_pays_best() {
    let env = GridWorld { time_limit: 10, ..GridWorld::new(SMALL).expect("a map") };
    let scalar = |value: i32| Array::ints(DType::I32, Vec::new(), &[i128::from(value)]);
    let result = steps(&env, &[scalar(0), scalar(0), scalar(0)], &ints(&[1, 1, 2, 2]), &keys(4));
    assert_eq!(result.terminated.to_f64(), [0.0, 0.0, 0.0, 1.0]);
    let total: f64 = result.rewards.to_f64().iter().sum();
    assert!((total - 0.6).abs() < 1e-6, "{total}");
    // Running against a wall until the limit.
    let result = steps(&env, &[scalar(0), scalar(0), scalar(0)], &ints(&[0; 10]), &keys(10));
    assert_eq!(result.truncated.to_f64()[9], 1.0);
    assert_eq!(result.truncated.to_f64()[8], 0.0);
    let total: f64 = result.rewards.to_f64().iter().sum();
    assert!((total + 1.0).abs() < 1e-6, "{total}");
    assert!((env.optimal_return() - (1.0 - 3.5 / 10.0)).abs() < 1e-12);
}

/// A walker that goes down the distances reaches the goal from every start in just as many steps, on the default map.
#[test]
fn walking_down_the_distances_is_optimal_from_every_start() {
    let env = GridWorld::default();
    let map = &env.layout;
    let columns = map.columns();
    let starts = map.starts();
    assert!(map.greatest_distance() >= 15, "the way is not trivial");
    let spec = (state_spec(&env), i32([]), key());
    let step = trace(spec, |(state, action, key)| {
        let (state, timestep) = env.step(state, action, key);
        (state.row, state.column, timestep.terminated, timestep.truncated)
    });
    let step = step.unwrap_or_else(|errors| panic!("{errors}")).vmap(starts.len());
    let mut cells = starts.clone();
    let mut lengths = vec![0; starts.len()];
    for time in 0..map.greatest_distance() {
        let toward = |cell: usize| {
            let (row, column) = (cell / columns, cell % columns);
            let next = [
                (row > 0).then(|| cell - columns),
                (column + 1 < columns).then(|| cell + 1),
                Some(cell + columns),
                (column > 0).then(|| cell - 1),
            ];
            let distance = |next: &Option<usize>| {
                next.and_then(|next| map.distance(next)).unwrap_or(usize::MAX)
            };
            (0..4).min_by_key(|&action| distance(&next[action])).expect("four actions") as i32
        };
        let of = |f: &dyn Fn(usize) -> usize| {
            ints(&cells.iter().map(|&cell| f(cell) as i32).collect::<Vec<_>>())
        };
        let actions = ints(&cells.iter().map(|&cell| toward(cell)).collect::<Vec<_>>());
        let arguments = [
            of(&|cell| cell / columns),
            of(&|cell| cell % columns),
            of(&|_| time),
            actions,
            keys(cells.len()),
        ];
        let results = step.eval(&arguments).expect("arguments fit");
        for i in 0..starts.len() {
            if map.is_goal(cells[i]) {
                continue;
            }
            lengths[i] += 1;
            let cell = results[0].to_f64()[i] as usize * columns + results[1].to_f64()[i] as usize;
            assert_eq!(
                results[2].to_f64()[i] == 1.0,
                map.is_goal(cell),
                "terminated just at the goal"
            );
            assert_eq!(results[3].to_f64()[i], 0.0);
            cells[i] = cell;
        }
    }
    let expected: Vec<usize> =
        starts.iter().map(|&cell| map.distance(cell).expect("reachable")).collect();
    assert_eq!(lengths, expected);
}

#[test]
fn episodes_start_on_every_free_cell() {
    for env in [
        GridWorld::default(),
        GridWorld::new(SMALL).expect("a map"),
        GridWorld::new("G.").expect("a map"),
    ] {
        let starts = env.layout.starts();
        let draws = 8 * starts.len();
        let traced =
            trace(key(), |key| env.initial_state(key)).unwrap_or_else(|errors| panic!("{errors}"));
        let results = traced.vmap(draws).eval(&[keys(draws)]).expect("arguments fit");
        let mut seen: Vec<usize> = results[0]
            .to_f64()
            .into_iter()
            .zip(results[1].to_f64())
            .map(|(row, column)| row as usize * env.layout.columns() + column as usize)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.iter().all(|cell| starts.contains(cell)), "only free cells");
        assert!(
            seen.len() as f64 > 0.98 * starts.len() as f64,
            "{} of {}",
            seen.len(),
            starts.len()
        );
    }
}

#[test]
fn the_observation_shows_the_walker() {
    let env = GridWorld::new(SMALL).expect("a map");
    let state = Array::ints(DType::I32, Vec::new(), &[1]);
    let spec = state_spec(&env);
    let shown =
        run(spec, &[state.clone(), state.clone(), state], |state| env.observe(state)).remove(0);
    assert_eq!(shown.ty().shape[..], [3, 3]);
    assert_eq!(shown.to_f64(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
}
