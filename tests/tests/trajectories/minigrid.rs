//! MiniGrid's levels match the package's, step for step, from the same first grids; and their own
//! grids match the package's grids.

use super::puzzles::{compare, given};
use super::{chi_squared, number, numbers, records, run};
use podracer_dsl::prelude::*;
use podracer_envs::minigrid::{
    Balls, DoorKey, DynamicObstacles, Empty, Ends, FourRooms, Frame, GoToDoor, KeyCorridor,
    LavaGap, Level, Memory, MultiRoom, NamedBall, NamedDoor, State, Taken, Unlock, Verdict, View,
    World, cell,
};
use podracer_envs::{Environment, TimeStep};
use podracer_tests::golden;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A record's level, which has the record's extents and time limit of itself.
fn level<L: Level + DeserializeOwned>(record: &Value) -> L {
    let level: L = serde_json::from_value(record["settings"].clone()).expect("settings");
    if record.get("rows").is_some() {
        let extents = (number(record, "rows"), number(record, "columns"));
        let frame = Frame { extents, limit: number(record, "time_limit"), ..level.frame() };
        assert_eq!(level.frame(), frame, "{}", record["env"]);
    }
    level
}

/// A level with observations of another form.
#[derive(Clone)]
struct Seen<L> {
    level: L,
    view: View,
}

impl<L: Level> Level for Seen<L> {
    type Task = L::Task;
    const SEES_THROUGH_WALLS: bool = L::SEES_THROUGH_WALLS;
    const ACTIONS: usize = L::ACTIONS;
    const FAILURE: f64 = L::FAILURE;

    fn frame(&self) -> Frame {
        Frame { view: self.view, ..self.level.frame() }
    }

    fn drawn(&self, key: Key) -> (World, L::Task) {
        self.level.drawn(key)
    }

    fn stirred(&self, world: World, task: L::Task, key: Key) -> (World, L::Task) {
        self.level.stirred(world, task, key)
    }

    fn meant(&self, action: Tensor) -> Tensor {
        self.level.meant(action)
    }

    fn verdict(&self, task: &L::Task, before: &World, taken: &Taken) -> Verdict {
        self.level.verdict(task, before, taken)
    }
}

/// Episodes up to their ends, with zeros behind: observations, places of the agent, pictures, rewards, ends (1 of itself, 2 cut off).
fn episodes<L: Level>(
    level: &L,
    view: View,
    first: State<L::Task>,
    actions: Tensor,
) -> (Tensor, Tensor, Tensor, Tensor, Tensor) {
    let level = Seen { level: level.clone(), view };
    let (_, seen) = scan((first, true), actions, |(state, goes_on), action| {
        let (state, step) = level.step(state, action, Key::new(0u32));
        let TimeStep { observation, reward, terminated, truncated } = step;
        let place = stack(&[state.world.row, state.world.column, state.world.direction], 0);
        let picture = state.package_picture(&level);
        let end = terminated.astype(I32) + truncated.astype(I32) * 2;
        let kept = |x: Tensor| select(goes_on, x, x.zeros_like());
        let seen =
            (kept(observation.astype(U8)), kept(place), kept(picture), kept(reward), kept(end));
        ((state, goes_on & end.eq(0)), seen)
    });
    seen
}

/// Steps of an episode that are recorded in pictures.
const PICTURED: usize = 24;

/// Compares the episodes of a record. `task` makes a task of the record's numbers, and of those by step.
fn follow<L: Level>(record: &Value, level: &L, task: impl Fn(Tensor, Option<Tensor>) -> L::Task) {
    let (arrays, _) = given(record, ["cells", "agents", "tasks", "actions"]);
    let mut arguments: Vec<Array> = arrays.to_vec();
    arguments.extend(record.get("balls").map(|balls| golden::array(balls).expect("an array")));
    let spec = |arrays: &[Array]| -> Vec<Spec<Tensor>> {
        arrays.iter().map(|one| Spec::<Tensor>(one.ty().clone())).collect()
    };
    let program = |view: View, steps: usize, given: Vec<Tensor>| {
        vmap(given, |given| {
            let [cells, agent, numbers, actions] = [given[0], given[1], given[2], given[3]];
            let actions = actions.slice(..steps);
            let [row, column, direction] = [0, 1, 2].map(|i| agent.index(i));
            let world = World { cells, row, column, direction, carried: scalar(0) };
            let task = task(numbers, given.get(4).copied());
            episodes(level, view, State::first(level, world, task), actions)
        })
    };
    let results = run(spec(&arguments), &arguments, |given| {
        let (images, places, _, rewards, ends) =
            program(View::Symbolic, number(record, "steps"), given);
        // All rewards but the last are zeros.
        let length = (ends.astype(I32).max_axis(1), rewards.sum_axis(1), rewards.abs().sum_axis(1));
        let steps = ends.gt(0).astype(I32).argmax(1) + 1;
        let steps = select(length.0.gt(0), steps, ends.dim(1) as i32);
        (images, places, length, steps)
    });
    compare(record, &["images", "places"], &results[..2]);
    for (field, result) in [("ends", 2), ("lengths", 5)] {
        assert_eq!(numbers(record, field), results[result].to_f64(), "{field} {}", record["env"]);
    }
    super::close("rewards", &results[3].to_f64(), &numbers(record, "rewards"), 1e-6);
    let sizes: Vec<f64> = numbers(record, "rewards").iter().map(|reward| reward.abs()).collect();
    super::close("sizes of rewards", &results[4].to_f64(), &sizes, 1e-6);

    // Some of the episodes in pictures, as far as they are recorded.
    let some = numbers(record, "pixels").len();
    for array in &mut arguments {
        let rows: Vec<Array> = (0..some).map(|i| array.index_leading(i)).collect();
        *array = Array::stack(&array.ty().unstacked(), &rows);
    }
    let results = run(spec(&arguments), &arguments, |given| {
        let (pixels, _, pictures, ..) = program(View::Pixels, PICTURED, given);
        (pixels, pictures)
    });
    compare(record, &["pixels", "pictures"], &results);
}

#[test]
fn levels_with_a_goal_follow_minigrid() {
    fn all<L: Level<Task = ()> + DeserializeOwned>(name: &str) {
        for record in records("minigrid.json", name) {
            follow(&record, &level::<L>(&record), |_, _| ());
        }
    }
    all::<Empty>("empty");
    all::<FourRooms>("four-rooms");
    all::<DoorKey>("door-key");
    all::<LavaGap>("lava-gap");
    all::<MultiRoom>("multi-room");
    all::<Unlock>("unlock");
}

#[test]
fn levels_with_a_task_follow_minigrid() {
    for record in records("minigrid.json", "memory") {
        follow(&record, &level::<Memory>(&record), |numbers, _| {
            let [column, right_row, wrong_row] = [0, 1, 2].map(|i| numbers.index(i));
            Ends { column, right_row, wrong_row }
        });
    }
    for record in records("minigrid.json", "go-to-door") {
        follow(&record, &level::<GoToDoor>(&record), |numbers, _| {
            let [row, column, colour] = [0, 1, 2].map(|i| numbers.index(i));
            NamedDoor { row, column, colour }
        });
    }
    for record in records("minigrid.json", "key-corridor") {
        follow(&record, &level::<KeyCorridor>(&record), |numbers, _| NamedBall {
            colour: numbers.index(0),
        });
    }
}

/// Obstacles that move as they did in a record.
#[derive(Clone)]
struct Recorded(DynamicObstacles);

#[derive(Tree, Clone, Copy)]
struct Moves {
    balls: Balls,
    /// The cells of the balls after each step. `i32[steps, balls]`
    later: Tensor,
    step: Tensor,
}

impl Level for Recorded {
    type Task = Moves;
    const SEES_THROUGH_WALLS: bool = DynamicObstacles::SEES_THROUGH_WALLS;
    const ACTIONS: usize = DynamicObstacles::ACTIONS;
    const FAILURE: f64 = DynamicObstacles::FAILURE;

    fn frame(&self) -> Frame {
        self.0.frame()
    }

    fn drawn(&self, _: Key) -> (World, Moves) {
        unreachable!("episodes begin as recorded")
    }

    fn stirred(&self, world: World, moves: Moves, _: Key) -> (World, Moves) {
        let to = moves.later.take(moves.step, 0);
        let among = |balls: Tensor| {
            arange(world.cells.len()).expand_dims(1).eq(balls.expand_dims(0)).any_axis(1)
        };
        let cells = select(among(moves.balls.cells), cell::EMPTY, world.cells.astype(I32));
        let ball = cell::code(cell::kind::BALL, cell::colour::BLUE);
        let cells = select(among(to), ball, cells).astype(U8);
        let moves = Moves { balls: Balls { cells: to }, step: moves.step + 1, ..moves };
        (World { cells, ..world }, moves)
    }

    fn verdict(&self, moves: &Moves, before: &World, taken: &Taken) -> Verdict {
        self.0.verdict(&moves.balls, before, taken)
    }
}

#[test]
fn obstacles_follow_minigrid() {
    for record in records("minigrid.json", "dynamic-obstacles") {
        let level = Recorded(level(&record));
        follow(&record, &level, |cells, later| Moves {
            balls: Balls { cells },
            later: later.expect("moves"),
            step: scalar(0),
        });
    }
}

/// Asserts that two counts have equal shares, within five standard deviations. The counts come from
/// `trials` trials each.
#[track_caller]
fn as_often(what: &str, (got, trials): (&[f64], usize), (expected, theirs): (&[f64], usize)) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let (trials, theirs) = (trials as f64, theirs as f64);
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let share = (got + expected) / (trials + theirs);
        let deviation = (share * (1.0 - share) * (1.0 / trials + 1.0 / theirs)).sqrt();
        let difference = (got / trials - expected / theirs).abs();
        assert!(
            difference <= 5.0 * deviation,
            "{what} {i}: {got} of {trials}, {expected} of {theirs}"
        );
    }
}

const GRIDS: usize = 8000;

/// Compares the grids that a level draws with a record's grids.
fn drawn_alike<L: Level + DeserializeOwned>(record: &Value) {
    let level: L = level(record);
    let count = number(record, "count");
    let results = run((), &[], |()| {
        let (kinds, codes, agents, empty, doors) = vmap(Key::new(7u32).split_n(GRIDS), |key| {
            let state = level.initial_state(key);
            let codes = state.world.cells.astype(I32);
            let kinds = codes & 15;
            let (_, columns) = level.frame().extents;
            let place = state.world.row * columns as i32 + state.world.column;
            let agent = arange(codes.len()).eq(place).expand_dims(0);
            let looks = arange(4).eq(state.world.direction).expand_dims(1);
            let door = kinds.eq(cell::kind::OPEN_DOOR) | kinds.gt(10);
            let by = |n: usize, of: Tensor| arange(n).expand_dims(1).eq(of.expand_dims(0));
            (
                by(16, kinds).astype(I32),
                by(128, codes).astype(I32).sum_axis(1),
                (agent & looks).astype(I32),
                kinds.eq(cell::kind::EMPTY).astype(I32).sum(),
                door.astype(I32).sum(),
            )
        });
        (kinds.sum_axis(0), codes.sum_axis(0), agents.sum_axis(0), empty, doors)
    });
    let name = format!("{} {}", record["level"], record["settings"]);
    for (field, result) in [("kinds", 0), ("agents", 2)] {
        let (got, expected) = (results[result].to_f64(), numbers(record, field));
        as_often(&format!("{field} of {name}"), (&got, GRIDS), (&expected, count));
    }
    for (field, result) in [("empty", 3), ("doors", 4)] {
        let expected = numbers(record, field);
        let mut got = vec![0.0; expected.len()];
        results[result].to_f64().iter().for_each(|&number| got[number as usize] += 1.0);
        as_often(&format!("{field} of {name}"), (&got, GRIDS), (&expected, count));
    }
    // The colours of doors, keys and balls.
    let things = |counts: Vec<f64>| -> Vec<f64> {
        let kinds = [4, 5, 6, 11, 12];
        let coloured = counts.iter().enumerate().filter(|(code, _)| kinds.contains(&(code % 16)));
        coloured.map(|(_, &count)| count).collect()
    };
    let (got, expected) = (things(results[1].to_f64()), things(numbers(record, "codes")));
    let never = |counts: &[f64]| counts.iter().filter(|&&count| count == 0.0).count();
    assert_eq!(never(&got), never(&expected), "colours of {name}");
    // Of one thing in one colour there is nothing to compare.
    if never(&expected) + 1 < expected.len() {
        let chi = chi_squared(&got, &expected);
        assert!(chi < 4.0, "colours of {name}: {chi}");
    }
}

#[test]
fn grids_are_drawn_as_those_of_minigrid() {
    for record in records("minigrid.json", "drawn") {
        match record["level"].as_str().expect("a name") {
            "empty" => drawn_alike::<Empty>(&record),
            "four-rooms" => drawn_alike::<FourRooms>(&record),
            "door-key" => drawn_alike::<DoorKey>(&record),
            "key-corridor" => drawn_alike::<KeyCorridor>(&record),
            "lava-gap" => drawn_alike::<LavaGap>(&record),
            "dynamic-obstacles" => drawn_alike::<DynamicObstacles>(&record),
            "multi-room" => drawn_alike::<MultiRoom>(&record),
            "memory" => drawn_alike::<Memory>(&record),
            "unlock" => drawn_alike::<Unlock>(&record),
            "go-to-door" => drawn_alike::<GoToDoor>(&record),
            other => panic!("no level is called {other}"),
        }
    }
}

/// Balls go to each free cell around them as often as the package's do.
#[test]
fn obstacles_move_as_those_of_minigrid() {
    for record in records("minigrid.json", "moves") {
        let level = DynamicObstacles { size: 6, obstacles: 3, ..DynamicObstacles::default() };
        let (arrays, types) = given(&record, ["cells", "balls"]);
        let [cells, balls] = types;
        let results = run((cells, balls), &arrays, |(cells, balls)| {
            let balls = vmap(Key::new(8u32).split_n(GRIDS), |key| {
                let (row, column, direction) = (scalar(1), scalar(1), scalar(0));
                let world = World { cells, row, column, direction, carried: scalar(0) };
                level.stirred(world, Balls { cells: balls }, key).1.cells
            });
            let cell = arange(cells.len()).expand_dims(0).expand_dims(0);
            balls.expand_dims(2).eq(cell).astype(I32).sum_axis(0)
        });
        let (got, expected) = (results[0].to_f64(), numbers(&record, "counts"));
        as_often("balls", (&got, GRIDS), (&expected, number(&record, "count")));
    }
}
