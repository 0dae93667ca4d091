//! Grid worlds as data: worlds follow their tasks, and tasks differ within a batch.

use podracer_dsl::prelude::*;
use podracer_envs::grid_tasks::{Distribution, GridTask, GridTasks, State};
use podracer_envs::{Environment, Tasks};

fn tasks(distribution: Distribution) -> GridTasks {
    GridTasks { distribution, ..GridTasks::default() }
}

/// A task of the sparse world by hand: a wall below the start, the first object to its right, the second far away.
fn by_hand(terminate: f64, respawn: f64) -> GridTask {
    let cell = |row: i32, column: i32| row * 13 + column;
    let walls: Vec<bool> = (0..169).map(|at| at == cell(1, 0)).collect();
    GridTask {
        size: scalar(13),
        time_limit: scalar(4),
        walls: constant(walls),
        start: scalar(cell(0, 0)),
        used: constant([true, true]),
        kind: constant([0, 1]),
        cell: constant([cell(0, 1), cell(12, 12)]),
        reward: constant([2.0, -1.0]),
        terminate: constant([terminate, 0.0]),
        respawn: constant([respawn, 0.0]),
    }
}

/// Rows, columns, rewards, ends and observations of a walk in the task of [`by_hand`].
fn walk(actions: &[i32], terminate: f64, respawn: f64) -> Vec<Vec<f64>> {
    let traced = trace((), |()| {
        let world = tasks(Distribution::Sparse).world(by_hand(terminate, respawn));
        let mut state: State = world.initial_state(Key::new(0));
        let mut steps = Vec::new();
        for (i, &action) in actions.iter().enumerate() {
            let step;
            (state, step) = world.step(state, scalar(action), Key::new(i as u32));
            let ends = [step.terminated, step.truncated].map(|flag| flag.astype(F32));
            let place = [state.row, state.column, step.observation].map(|one| one.astype(F32));
            steps.push(stack(&[&place[..], &[step.reward], &ends].concat(), 0));
        }
        steps
    });
    let steps = traced.expect("it traces").eval(&[]).expect("it runs");
    steps.iter().map(|array| array.to_f64()).collect()
}

#[test]
fn a_walk_collects_what_its_task_has() {
    const DOWN: i32 = 2;
    const RIGHT: i32 = 1;
    const STAY: i32 = 4;
    // A wall, the object, nothing where it was, the limit; observations are cell + 169 * (bits of the objects that are there).
    let steps = walk(&[DOWN, RIGHT, STAY, 6], 0.0, 0.0);
    assert_eq!(steps[0], [0.0, 0.0, 507.0, 0.0, 0.0, 0.0]);
    assert_eq!(steps[1], [0.0, 1.0, 1.0 + 338.0, 2.0, 0.0, 0.0]);
    assert_eq!(steps[2], [0.0, 1.0, 1.0 + 338.0, 0.0, 0.0, 0.0]);
    assert_eq!(steps[3], [1.0, 2.0, 15.0 + 338.0, 0.0, 0.0, 1.0]);
    // It appears again in the step after, and is collected in the next.
    let steps = walk(&[RIGHT, STAY, STAY], 0.0, 1.0);
    let rewards: Vec<f64> = steps.iter().map(|step| step[3]).collect();
    assert_eq!(rewards, [2.0, 0.0, 2.0]);
    let steps = walk(&[RIGHT], 1.0, 0.0);
    assert_eq!(steps[0][4..], [1.0, 0.0]);
}

#[test]
fn tasks_of_a_batch_differ_and_are_those_of_their_keys() {
    for distribution in [Distribution::All, Distribution::RandomAll, Distribution::Dense] {
        let tasks = tasks(distribution);
        let cells = tasks.shape().size * tasks.shape().size;
        let traced = trace((), |()| {
            let keys = Key::new(3).split_n(32);
            let batch = vmap(keys, |key| tasks.draw(key));
            let alone = tasks.draw(Key::new(3).split_n(32).at(7));
            let of_batch = tree_map(&batch, |leaf| leaf.index(7));
            let same = of_batch.zip_with(&alone, |one, other| one.eq(other).all().expand_dims(0));
            let same = concatenate(&same.leaves(), 0).all();
            let places = concatenate(&[batch.start.expand_dims(1), batch.cell], 1);
            let walls = vmap((batch.walls, places), |(walls, places)| walls.take(places, 0).any());
            (same, walls.any(), batch.start, batch.size)
        });
        let found = traced.expect("it traces").eval(&[]).expect("it runs");
        let found: Vec<Vec<f64>> = found.iter().map(|array| array.to_f64()).collect();
        assert_eq!(found[0], [1.0], "{distribution:?}: a task is that of its key");
        assert_eq!(found[1], [0.0], "{distribution:?}: nothing is in a wall");
        assert!(found[2].iter().any(|start| *start != found[2][0]), "{distribution:?}");
        assert!(found[2].iter().all(|start| (0.0..cells as f64).contains(start)));
    }
}
