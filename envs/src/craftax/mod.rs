//! Craftax-Classic: a world to survive in, with achievements to collect.

mod acts;
mod body;
mod creatures;
mod map;
mod picture;
mod turn;
mod view;
mod world;

pub use creatures::{Luck, Whims};
pub use world::Seeds;

use crate::environment::{Environment, TimeStep};
use crate::space::Space;
use acts::Done;
use creatures::NEAR;
use map::{Map, block};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::ops::Range;
use turn::{Scene, only};

/// Craftax-Classic: the player walks through a world of grass, woods, lakes, mountains and caves.
/// The player gathers wood, stone, coal, iron and diamonds, makes tools, eats, drinks and sleeps,
/// and fights zombies and skeletons. More of them come at night.
///
/// Each of 22 achievements pays 1 the first time, and each point of health is worth 0.1. The
/// episode is terminated when health or lava ends the player's life, and truncated after
/// `time_limit` steps.
///
/// The rules, the worlds and the symbolic observations follow craftax 1.6.1's
/// Craftax-Classic-Symbolic-v1 (Matthews et al., "Craftax: A Lightning-Fast Benchmark for
/// Open-Ended Reinforcement Learning", 2024), after Crafter (Hafner, "Benchmarking the Spectrum of
/// Agent Capabilities", 2021). The package counts an end by the time limit as a death. The random
/// numbers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CraftaxClassic {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// 10,000 steps, as in the package.
impl Default for CraftaxClassic {
    fn default() -> Self {
        CraftaxClassic { time_limit: 10_000 }
    }
}

/// Numbers of actions.
mod action {
    pub const LEFT: i32 = 1;
    pub const DOWN: i32 = 4;
    pub const DO: i32 = 5;
    pub const SLEEP: i32 = 6;
    pub const PLACE_STONE: i32 = 7;
    pub const PLACE_TABLE: i32 = 8;
    pub const PLACE_FURNACE: i32 = 9;
    pub const PLACE_PLANT: i32 = 10;
    pub const MAKE_WOOD_PICKAXE: i32 = 11;
    pub const MAKE_STONE_PICKAXE: i32 = 12;
    pub const MAKE_IRON_PICKAXE: i32 = 13;
    pub const MAKE_WOOD_SWORD: i32 = 14;
    pub const MAKE_STONE_SWORD: i32 = 15;
    pub const MAKE_IRON_SWORD: i32 = 16;
    pub const COUNT: usize = 17;
}

/// Numbers of items.
mod item {
    pub const WOOD: usize = 0;
    pub const STONE: usize = 1;
    pub const COAL: usize = 2;
    pub const IRON: usize = 3;
    pub const DIAMOND: usize = 4;
    pub const SAPLING: usize = 5;
    pub const WOOD_PICKAXE: usize = 6;
    pub const STONE_PICKAXE: usize = 7;
    pub const IRON_PICKAXE: usize = 8;
    pub const WOOD_SWORD: usize = 9;
    pub const STONE_SWORD: usize = 10;
    pub const IRON_SWORD: usize = 11;
}

/// Numbers of achievements.
mod achievement {
    pub const COLLECT_WOOD: usize = 0;
    pub const PLACE_TABLE: usize = 1;
    pub const EAT_COW: usize = 2;
    pub const COLLECT_SAPLING: usize = 3;
    pub const COLLECT_DRINK: usize = 4;
    pub const MAKE_WOOD_PICKAXE: usize = 5;
    pub const MAKE_WOOD_SWORD: usize = 6;
    pub const PLACE_PLANT: usize = 7;
    pub const DEFEAT_ZOMBIE: usize = 8;
    pub const COLLECT_STONE: usize = 9;
    pub const PLACE_STONE: usize = 10;
    pub const EAT_PLANT: usize = 11;
    pub const DEFEAT_SKELETON: usize = 12;
    pub const MAKE_STONE_PICKAXE: usize = 13;
    pub const MAKE_STONE_SWORD: usize = 14;
    pub const WAKE_UP: usize = 15;
    pub const PLACE_FURNACE: usize = 16;
    pub const COLLECT_COAL: usize = 17;
    pub const COLLECT_IRON: usize = 18;
    pub const COLLECT_DIAMOND: usize = 19;
    pub const MAKE_IRON_PICKAXE: usize = 20;
    pub const MAKE_IRON_SWORD: usize = 21;
}

/// Kinds of items.
pub const ITEMS: usize = 12;
/// Number of achievements.
pub const ACHIEVEMENTS: usize = 22;
/// Greatest number of creatures at once.
pub const CREATURES: usize = 8;
/// Indices of the zombies, cows and skeletons among the creatures.
const ZOMBIES: Range<usize> = 0..3;
const COWS: Range<usize> = 3..6;
const SKELETONS: Range<usize> = 6..8;
/// Rows and columns of the player's view, with the player in the middle.
const VIEW: (usize, usize) = (7, 9);
/// Number of steps of a day.
const DAY: f64 = 300.0;
/// Number of steps after which a plant is ripe.
const RIPE_AGE: i32 = 600;
/// Reward for a point of health.
const HEALTH: f64 = 0.1;

/// A row and a column, `i32[]` each.
pub type Place = (Tensor, Tensor);

/// Place, needs and sleep of the player.
#[derive(Tree, Clone, Copy)]
pub struct Player {
    /// Row of the player. `i32[]`
    pub row: Tensor,
    /// Column of the player. `i32[]`
    pub column: Tensor,
    /// Direction of the player's view: 1 to 4 for left, right, up and down. `i32[]`
    pub facing: Tensor,
    /// Health, up to 9; the player dies at 0. `i32[]`
    pub health: Tensor,
    /// Food, from 0 to 9. `i32[]`
    pub food: Tensor,
    /// Drink, from 0 to 9. `i32[]`
    pub drink: Tensor,
    /// Energy, from 0 to 9. `i32[]`
    pub energy: Tensor,
    /// Progress towards a point of health. `f32[]`
    pub recover: Tensor,
    /// Progress towards losing a point of food. `f32[]`
    pub hunger: Tensor,
    /// Progress towards losing a point of drink. `f32[]`
    pub thirst: Tensor,
    /// Progress towards losing a point of energy, or gaining a point if it is negative. `f32[]`
    pub fatigue: Tensor,
    /// True if the player sleeps; it then does nothing else. `bool[]`
    pub asleep: Tensor,
}

/// Three zombies, three cows and two skeletons.
#[derive(Tree, Clone, Copy)]
pub struct Creatures {
    /// Rows. `i32[8]`
    pub rows: Tensor,
    /// Columns. `i32[8]`
    pub columns: Tensor,
    /// Health; they are dead at 0. `i32[8]`
    pub healths: Tensor,
    /// False for creatures that died or disappeared. `bool[8]`
    pub alive: Tensor,
    /// Steps until they can attack again. `i32[8]`
    pub cooldowns: Tensor,
    /// True for creatures with cells that count as occupied. `bool[8]`
    ///
    /// The package has a map of occupied cells, which differs from the creatures' positions: a
    /// creature that reappears, or that shares its cell with another creature, clears the cell when
    /// it leaves. The cells of the noted creatures form the package's map.
    pub noted: Tensor,
}

/// Arrows of the skeletons.
#[derive(Tree, Clone, Copy)]
pub struct Arrows {
    /// Rows. `i32[3]`
    pub rows: Tensor,
    /// Columns. `i32[3]`
    pub columns: Tensor,
    /// Row offset per step. `i32[3]`
    pub down: Tensor,
    /// Column offset per step. `i32[3]`
    pub right: Tensor,
    /// False for arrows that are gone. `bool[3]`
    pub flying: Tensor,
}

/// Plants that the player placed.
#[derive(Tree, Clone, Copy)]
pub struct Plants {
    /// Rows. `i32[10]`
    pub rows: Tensor,
    /// Columns. `i32[10]`
    pub columns: Tensor,
    /// Steps since they were placed, or eaten. `i32[10]`
    pub ages: Tensor,
    /// False for absent plants. `bool[10]`
    pub growing: Tensor,
}

/// The world and everything in it.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The block of each cell, row by row. A ripe plant has the block of an unripe plant, see
    /// [`plants`](Self::plants). `u8[64 * 64]`
    pub map: Tensor,
    /// The blocks in the player's view, kept because several functions read them. `u8[7, 9]`
    pub seen: Tensor,
    /// Place and needs of the player.
    pub player: Player,
    /// Numbers of wood, stone, coal, iron, diamonds, saplings, and of pickaxes and then swords of
    /// wood, stone and iron. `i32[12]`
    pub inventory: Tensor,
    /// Zombies, cows and skeletons.
    pub creatures: Creatures,
    /// Arrows of the skeletons.
    pub arrows: Arrows,
    /// Plants that the player placed.
    pub plants: Plants,
    /// Daylight, from 0 to 1. `f32[]`
    pub light: Tensor,
    /// True for each achievement of the episode. `bool[22]`
    pub achievements: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// Row and column offsets of a step: 1 to 4 go left, right, up and down; other numbers have offset
/// 0.
#[track_caller]
fn way(number: Tensor) -> Place {
    let by = |plus: i32, minus: i32| number.eq(plus).astype(I32) - number.eq(minus).astype(I32);
    (by(4, 3), by(2, 1))
}

/// Daylight at a time. `f32[]`
#[track_caller]
fn daylight(time: Tensor) -> Tensor {
    let progress = (time.astype(F32) / DAY).rem(1.0) + 0.3;
    1.0 - (progress * PI).cos().abs().powi(3)
}

impl Player {
    /// The player's position.
    pub fn place(&self) -> Place {
        (self.row, self.column)
    }
}

impl State {
    /// The same state with the player's present view.
    #[track_caller]
    pub fn looked(self) -> State {
        State { seen: map::around(self.map, self.player.place(), VIEW.0, VIEW.1), ..self }
    }
}

impl CraftaxClassic {
    /// The initial state of an episode in a world with these blocks, `u8[64 * 64]`.
    #[track_caller]
    pub fn at(&self, map: Tensor) -> State {
        let (row, column) = world::middle();
        let player = Player {
            row,
            column,
            facing: scalar(3),
            health: scalar(9),
            food: scalar(9),
            drink: scalar(9),
            energy: scalar(9),
            recover: scalar(0.0f32),
            hunger: scalar(0.0f32),
            thirst: scalar(0.0f32),
            fatigue: scalar(0.0f32),
            asleep: constant(false),
        };
        let nones = |count: usize| zeros(I32, [count]);
        let nos = |count: usize| full([count], false);
        // Creatures with health appear when something is first hit, far from the player, as in the
        // package.
        let creatures = Creatures {
            rows: nones(CREATURES),
            columns: nones(CREATURES),
            healths: constant([1, 1, 1, 3, 3, 3, 0, 0]),
            alive: nos(CREATURES),
            cooldowns: nones(CREATURES),
            noted: nos(CREATURES),
        };
        let arrows = Arrows {
            rows: nones(3),
            columns: nones(3),
            down: full([3], 1),
            right: full([3], 1),
            flying: nos(3),
        };
        let plants =
            Plants { rows: nones(10), columns: nones(10), ages: nones(10), growing: nos(10) };
        State {
            map,
            seen: zeros(U8, [VIEW.0, VIEW.1]),
            player,
            inventory: nones(ITEMS),
            creatures,
            arrows,
            plants,
            light: daylight(scalar(0)),
            achievements: full([ACHIEVEMENTS], false),
            time: scalar(0),
        }
        .looked()
    }

    /// A step with given random draws.
    #[track_caller]
    pub fn step_with(&self, state: State, action: Tensor, luck: &Luck) -> (State, TimeStep) {
        let before = state;
        let action = select(before.player.asleep, 0, action);
        let done = Done {
            scene: Scene::new(&before),
            map: Map { blocks: before.map, own: None },
            inventory: before.inventory,
            plants: before.plants,
            achieved: before.achievements,
        };
        let Done { scene, map, inventory, plants, achieved } =
            done.act(action, before.seen, luck.sapling);
        let (scene, broken) = scene.stir(map, luck);
        let blocks = map.after(broken);
        let near = map::around(blocks, scene.player.place(), NEAR, NEAR);
        let scene = scene.breed(near, before.light, luck);
        let (mut player, wakes) = scene.player.live(action);
        let map = Map { blocks, own: None };
        let in_lava = map.read(player.place()).eq(block::LAVA);
        player.health = select(in_lava, 0, player.health).maximum(0);
        let achieved = achieved | (only(achievement::WAKE_UP) & (wakes | scene.woken));
        let new = (achieved & !before.achievements).astype(F32).sum();
        let healthier = (player.health - before.player.health).astype(F32);
        let reward = new + healthier * HEALTH;
        let time = before.time + 1;
        let (rows, columns) = ((NEAR - VIEW.0) / 2, (NEAR - VIEW.1) / 2);
        let state = State {
            map: blocks,
            seen: near.slice_axis(0, rows..rows + VIEW.0).slice_axis(1, columns..columns + VIEW.1),
            player,
            inventory: inventory.minimum(9),
            creatures: scene.creatures,
            arrows: scene.arrows,
            plants: plants.older(),
            light: daylight(time),
            achievements: achieved,
            time,
        };
        let terminated = state.player.health.le(0);
        let truncated = time.ge(self.time_limit) & !terminated;
        let observation = self.observe(state);
        (state, TimeStep { observation, reward, terminated, truncated })
    }
}

impl Environment for CraftaxClassic {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        self.at(Seeds::draw(key).blocks())
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        self.step_with(state, action, &Luck::draw(key))
    }

    /// Planes over the cells of the player's view, `[7, 9]`, with elements 0 or 1, for each block,
    /// and for zombies, cows, skeletons and arrows. Then the items, health, food, drink and energy,
    /// in tenths and rounded to 16-bit floats; the player's direction; daylight; and whether the
    /// player sleeps. `f32[1345]`
    fn observe(&self, state: State) -> Tensor {
        let blocks = view::seen_blocks(&state).expand_dims(2).eq(arange(block::COUNT));
        let moving = stack(&view::moving(&state), 2);
        let cells = concatenate(&[blocks, moving], 2).astype(F32).flatten();
        let Player { health, food, drink, energy, facing, asleep, .. } = state.player;
        let needs = stack(&[health, food, drink, energy], 0);
        let numbers = concatenate(&[state.inventory, needs], 0);
        let tenths = (numbers.astype(F16) / 10.0).astype(F32);
        let facing = (arange(4) + 1).eq(facing).astype(F32);
        let rest = stack(&[state.light, asleep.astype(F32)], 0);
        concatenate(&[cells, tenths, facing, rest], 0)
    }

    fn observation_space(&self) -> Space {
        let moving = 4;
        let features = VIEW.0 * VIEW.1 * (block::COUNT + moving) + ITEMS + 4 + 4 + 2;
        Space::bounded([features], 0.0, 1.0)
            .described("blocks and creatures, items, needs, direction, daylight, sleep")
    }

    /// Do nothing; go left, right, up and down; use the block in front; sleep; place a stone, a
    /// table, a furnace and a plant; make pickaxes and then swords of wood, stone and iron.
    fn action_space(&self) -> Space {
        Space::discrete(action::COUNT).named([
            "nothing",
            "left",
            "right",
            "up",
            "down",
            "do",
            "sleep",
            "place stone",
            "place table",
            "place furnace",
            "place plant",
            "wood pickaxe",
            "stone pickaxe",
            "iron pickaxe",
            "wood sword",
            "stone sword",
            "iron sword",
        ])
    }

    /// The share of the achievements.
    fn success(&self, state: &State) -> Option<Tensor> {
        Some(state.achievements.astype(F32).mean())
    }

    /// The cells in the player's view with blocks and creatures, the player in blue, and below them the player's needs and items with their
    /// numbers.
    fn render(&self, state: &State) -> Option<Tensor> {
        Some(picture::picture(state))
    }
}
