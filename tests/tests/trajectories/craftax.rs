//! Craftax-Classic is craftax's: from the same keys and actions the same worlds and the same games, through ends and new worlds.

use super::puzzles::{compare, given};
use super::{close, numbers, records, run, run_quickly};
use podracer_dsl::prelude::*;
use podracer_envs::TimeStep;
use podracer_envs::craftax::{
    CraftaxClassic, Creatures, Luck, Plants, Player, Seeds, State, Whims,
};

const GAMES: usize = 20;
const STEPS: usize = 1000;

/// The keys that `split` gives again and again, as craftax draws.
struct Chain(Key);

impl Chain {
    fn next(&mut self) -> Key {
        let (rest, key) = self.0.clone().split();
        self.0 = rest;
        key
    }

    fn uniform(&mut self) -> Tensor {
        self.next().uniform([])
    }
}

/// The world of a key in craftax, with the draw of its diamond's place.
fn seeds(key: Key, diamond: Tensor) -> Seeds {
    let mut chain = Chain(key);
    let noise = |key: Key, rows: usize, columns: usize| {
        let (_, key) = key.split();
        let (_, key) = key.split();
        key.uniform([rows + 1, columns + 1])
    };
    let water = noise(chain.next(), 4, 4);
    let _ = chain.next();
    let mountains = noise(chain.next(), 4, 4);
    let paths = noise(chain.next(), 8, 32);
    let _ = chain.next();
    let ores = [(); 3].map(|()| chain.next().uniform([64, 64]));
    let woods = noise(chain.next(), 16, 16);
    let trees = chain.0.clone().uniform([64, 64]);
    let [coal, iron, diamonds] = ores;
    Seeds {
        angles: [water, mountains, paths, woods],
        cells: [coal, iron, diamonds, trees],
        diamond,
    }
}

/// The luck of a key in craftax, with the draws of places of a new cow, zombie and skeleton.
fn luck(key: Key, places: Tensor) -> Luck {
    let mut step = Chain(key);
    let sapling = Chain(step.next()).uniform();
    // Each kind continues from the previous kind's keys.
    let next_kind = |chain: &Chain| Chain(chain.0.clone().split().0);
    let whims = |chain: &mut Chain, count: usize, mut after: Box<dyn FnMut(&mut Chain)>| {
        let (mut ways, mut along_rows, mut urges) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            ways.push(chain.next().randint([], 0..4) + 1);
            along_rows.push(chain.uniform().ge(0.5));
            urges.push(chain.uniform());
            after(chain);
        }
        Whims { ways: stack(&ways, 0), along_rows: stack(&along_rows, 0), urges: stack(&urges, 0) }
    };
    let mut chain = next_kind(&Chain(step.next()));
    // A zombie's last key is the next zombie's first.
    let zombies = whims(&mut chain, 3, Box::new(|chain| *chain = Chain(chain.next())));
    let mut chain = next_kind(&chain);
    let cows = [(); 3].map(|()| chain.next().randint([], 0..8) + 1);
    let mut chain = next_kind(&chain);
    let skeletons = whims(&mut chain, 2, Box::new(|_| ()));
    let mut spawn = Chain(step.next());
    let births = [(); 3].map(|()| {
        let chance = spawn.uniform();
        let _ = spawn.next();
        chance
    });
    let (cows, births) = (stack(&cows, 0), stack(&births, 0));
    Luck { sapling, zombies, cows, skeletons, births, places }
}

/// A weighted sum of whole numbers.
fn mixed(values: Tensor) -> Tensor {
    let values = values.flatten().astype(I32);
    (values * (arange(values.len()) * 7919).rem(65521)).sum()
}

/// All of a state as whole numbers, as craftax has it. `i32[n]`
fn all_of(state: &State, observation: Tensor) -> Tensor {
    let Player { row, column, facing, health, food, drink, energy, .. } = state.player;
    let Player { recover, hunger, thirst, fatigue, asleep, .. } = state.player;
    let scalars = [
        &[row, column, facing, health, food, drink, energy][..],
        &[recover, hunger, thirst, fatigue].map(|x| (x * 2.0).astype(I32)),
        &[asleep.astype(I32)],
    ];
    let mut parts = vec![stack(&scalars.concat(), 0), state.inventory];
    let Creatures { rows, columns, healths, alive, cooldowns, noted } = state.creatures;
    for kind in [0..3, 3..6, 6..8] {
        let fields = [rows, columns, healths, alive.astype(I32), cooldowns];
        parts.extend(fields.map(|field| field.slice(kind.clone())));
    }
    let arrows = state.arrows;
    parts.push(arrows.flying.astype(I32));
    let fields = [arrows.rows, arrows.columns, arrows.down, arrows.right];
    parts.extend(fields.map(|field| select(arrows.flying, field, 0)));
    let plants = state.plants;
    parts.extend([plants.rows, plants.columns, plants.ages, plants.growing.astype(I32)]);
    parts.push(state.achievements.astype(I32));

    // Where any of some is.
    let where_any = |flags: Tensor, rows: Tensor, columns: Tensor| {
        let cells = select(flags, rows * 64 + columns, -1);
        arange(64 * 64).expand_dims(1).eq(cells.expand_dims(0)).any_axis(1)
    };
    let ripe = where_any(plants.ripe(), plants.rows, plants.columns);
    let map = select(ripe, 16, state.map.astype(I32));
    let taken = where_any(noted, rows, columns);
    let cells = observation.slice(..1323);
    let rest = concatenate(&[observation.slice(1323..1343), observation.slice(1344..)], 0);
    let sums = stack(&[mixed(map), mixed(taken), mixed(cells)], 0);
    parts.extend([state.time.expand_dims(0), sums, rest.bitcast(I32)]);
    concatenate(&parts, 0)
}

/// Things that a game begins with.
#[derive(Tree, Clone, Copy)]
struct Start {
    place: Tensor,
    items: Tensor,
    energy: Tensor,
    time: Tensor,
    workshop: Tensor,
    skeleton: Tensor,
}

/// Blocks around the player in a workshop, by rows and columns from it: a table, a furnace, coal, iron, a diamond, a plant.
const WORKSHOP: [(i32, i32, u8); 6] =
    [(-1, -1, 11), (-1, 1, 12), (-1, 0, 8), (1, 0, 9), (0, -1, 10), (0, 1, 15)];

/// The state with a game's initial values.
fn begun(state: State, start: Start) -> State {
    let (row, column) = (start.place.index(0), start.place.index(1));
    let (workshop, skeleton) = (start.workshop.ne(0), start.skeleton.ne(0));
    let map = WORKSHOP.into_iter().fold(state.map, |map, (down, right, block)| {
        let here = arange(64 * 64).eq((row + down) * 64 + column + right);
        select(here & workshop, block, map)
    });
    let State { creatures, plants, .. } = state;
    let first = arange(10).eq(0) & workshop;
    let plants = Plants {
        rows: select(first, row, plants.rows),
        columns: select(first, column + 1, plants.columns),
        ages: select(first, 580, plants.ages),
        growing: first,
    };
    let first = arange(8).eq(6) & skeleton;
    let creatures = Creatures {
        rows: select(first, row, creatures.rows),
        columns: select(first, column + 1, creatures.columns),
        healths: select(first, 3, creatures.healths),
        alive: first,
        noted: first,
        ..creatures
    };
    let player = Player { row, column, energy: start.energy, ..state.player };
    let inventory = start.items.broadcast_to([12]);
    State { map, player, time: start.time, plants, creatures, inventory, ..state }.looked()
}

#[test]
fn games_follow_craftax() {
    let env = CraftaxClassic::default();
    let record = records("craftax.json", "craftax-classic").remove(0);
    // The numbers of the drawn cells, as draws of the middle of each cell's part. The worlds match
    // the games, in order.
    let rows = numbers(&record, "worlds");
    let (mut made, mut diamonds) = (Vec::new(), Vec::new());
    // The number of the next world of each step that ends an episode. After all steps follow the
    // worlds where the games begin.
    let mut worlds = vec![0; GAMES * (STEPS + 1)];
    for (number, row) in rows.chunks_exact(4).enumerate() {
        let [game, time, place, count] = [0, 1, 2, 3].map(|i| row[i]);
        made.extend([game as i128, time as i128]);
        diamonds.push((place + 0.5) / count);
        let step = if time == 0.0 { STEPS } else { time as usize - 1 };
        worlds[game as usize * (STEPS + 1) + step] = number as i128;
    }
    let mut places = vec![0.5; GAMES * STEPS * 3];
    for row in numbers(&record, "births").chunks_exact(5) {
        let step = row[0] as usize * STEPS + row[1] as usize;
        places[step * 3 + row[2] as usize] = (row[3] + 0.5) / row[4];
    }
    let made = [
        Array::ints(DType::I32, [diamonds.len(), 2], &made),
        Array::floats(DType::F32, [diamonds.len()], &diamonds),
    ];
    let spec = |array: &Array| Spec::<Tensor>(array.ty().clone());
    let maps = run((spec(&made[0]), spec(&made[1])), &made, |given| {
        vmap(given, |(made, diamond)| {
            let [game, time] = [0, 1].map(|i| made.index(i).astype(U32));
            seeds(Key::new(game + 2000u32).fold_in(time), diamond).blocks()
        })
    });

    let games: Vec<i128> = (0..GAMES as i128).collect();
    let mut arguments = maps;
    arguments.extend([
        Array::ints(DType::I32, [GAMES], &games),
        Array::ints(DType::I32, [GAMES, STEPS + 1], &worlds),
        Array::floats(DType::F32, [GAMES, STEPS, 3], &places),
    ]);
    let fields = ["actions", "place", "items", "energy", "time", "workshop", "skeleton"];
    arguments.extend(given(&record, fields).0);
    let types = (spec(&arguments[0]), arguments[1..].iter().map(spec).collect::<Vec<_>>());
    let results = run_quickly(types, &arguments, |(maps, given)| {
        vmap(given, |given: Vec<Tensor>| {
            let [game, worlds, places, actions] = [0, 1, 2, 3].map(|i| given[i]);
            let [place, items, energy, time, workshop, skeleton] =
                [4, 5, 6, 7, 8, 9].map(|i| given[i]);
            let world = |number: Tensor| env.at(maps.take(number, 0));
            let start = Start { place, items, energy, time, workshop, skeleton };
            let first = begun(world(worlds.index(STEPS)), start);
            let lucks = vmap((arange(STEPS), places), |(step, places)| {
                luck(Key::new(game.astype(U32)).fold_in(step.astype(U32)), places)
            });
            let given = (actions, lucks, worlds.slice(..STEPS));
            let (_, seen) = scan(first, given, |state, (action, luck, next)| {
                let (state, timestep) = env.step_with(state, action, &luck);
                let TimeStep { observation, reward, terminated, .. } = timestep;
                let outcome = (reward, terminated, observation.index(1343));
                let seen = (all_of(&state, observation), outcome);
                (cond(terminated, || world(next), || state), seen)
            });
            seen
        })
    });
    close("light", &results[3].to_f64()[..320], &numbers(&record, "light"), 1e-6);
    let tenths = |reward: &f64| (reward * 10.0).round();
    let rewards: Vec<f64> = results[1].to_f64().iter().map(tenths).collect();
    for (field, got) in [("ends", results[2].to_f64()), ("rewards", rewards)] {
        assert!(got == numbers(&record, field), "{field} differ");
    }
    compare(&record, &["numbers"], &results[..1]);
}

#[test]
fn luck_is_even() {
    let draws = run((), &[], |()| {
        vmap(Key::new(3u32).split_n(8000), |key| {
            let luck = Luck::draw(key);
            let both = |field: fn(&Whims) -> Tensor| {
                concatenate(&[field(&luck.zombies), field(&luck.skeletons)], 0).astype(F32)
            };
            let ways = both(|whims| whims.ways);
            let along_rows = both(|whims| whims.along_rows);
            let uniform = concatenate(
                &[both(|whims| whims.urges), luck.births, luck.places, luck.sapling.expand_dims(0)],
                0,
            );
            (ways, along_rows, luck.cows, (uniform * 10.0).floor())
        })
    });
    for (draws, from, kinds) in
        [(0, 1, 4), (1, 0, 2), (2, 1, 8), (3, 0, 10)].map(|(i, from, n)| (&draws[i], from, n))
    {
        let columns = draws.ty().shape[1];
        for column in 0..columns {
            let mut counts = vec![0.0; kinds];
            let numbers = draws.to_f64();
            let of_column = numbers.iter().skip(column).step_by(columns);
            of_column.for_each(|&number| counts[number as usize - from] += 1.0);
            let expected = vec![8000.0 / kinds as f64; kinds];
            let chi: f64 = counts
                .iter()
                .zip(&expected)
                .map(|(got, mean)| (got - mean) * (got - mean) / mean)
                .sum();
            let freedom = kinds as f64 - 1.0;
            assert!(
                chi < freedom + 5.0 * (2.0 * freedom).sqrt(),
                "column {column} of {kinds}: {counts:?}"
            );
        }
    }
}
