//! Zombies, cows, skeletons and their arrows: movement, attacks, appearance and disappearance.

use super::map::{Map, Write, bits, block, is_among, is_inside, is_solid};
use super::turn::{Scene, distance, either, first, of_kind, on, pick, same};
use super::{Arrows, COWS, Creatures, Place, SKELETONS, ZOMBIES, way};
use crate::cells::draw_cell;
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Distance from the player beyond which creatures disappear; they appear within it.
const FAR: i32 = 14;
/// Rows and columns around the player within which creatures appear.
pub(super) const NEAR: usize = 27;

/// Random draws for the moves of zombies or skeletons.
#[derive(Tree, Clone, Copy)]
pub struct Whims {
    /// Directions, from 1 to 4. `i32[n]`
    pub ways: Tensor,
    /// True to move along the rows if the player is equally far along both axes. `bool[n]`
    pub along_rows: Tensor,
    /// Uniform draws that decide whether they move in their random direction. `f32[n]`
    pub urges: Tensor,
}

/// Draws of a step.
#[derive(Tree, Clone, Copy)]
pub struct Luck {
    /// Uniform draw that decides whether grass has a sapling. `f32[]`
    pub sapling: Tensor,
    /// Draws of the three zombies.
    pub zombies: Whims,
    /// Directions of the cows, from 1 to 8; those above 4 do not move. `i32[3]`
    pub cows: Tensor,
    /// Draws of the two skeletons.
    pub skeletons: Whims,
    /// Uniform draws that decide whether a cow, a zombie and a skeleton appear. `f32[3]`
    pub births: Tensor,
    /// Draws of their positions. `f32[3]`
    pub places: Tensor,
}

impl Luck {
    /// The random draws of a step.
    #[track_caller]
    pub fn draw(key: Key) -> Luck {
        let draws = key.uniform([20]);
        let mut from = 0;
        let mut take = |count: usize| {
            from += count;
            draws.slice(from - count..from)
        };
        let sapling = take(1).index(0);
        let mut eighths = |count: usize| (take(count) * 8.0).astype(I32);
        let cows = eighths(3) + 1;
        let (zombies, skeletons) = (eighths(3), eighths(2));
        let mut whims = |draws: Tensor| Whims {
            ways: (draws >> 1) + 1,
            along_rows: (draws & 1).eq(0),
            urges: take(draws.len()),
        };
        let (zombies, skeletons) = (whims(zombies), whims(skeletons));
        Luck { sapling, zombies, cows, skeletons, births: take(3), places: take(3) }
    }
}

/// One creature as it moves.
struct One {
    /// A mask of this creature. `bool[CREATURES]`
    is: Tensor,
    place: Place,
    /// Its distance from the player. `i32[]`
    away: Tensor,
    /// True if it is present and may attack. `bool[]`
    ready: Tensor,
}

impl Scene {
    /// All creatures and arrows move, one after another. Returns the cells that become paths, -1
    /// for none: `i32[3]`
    ///
    /// Each kind moves in a loop, so that a creature's moves are not computed again for the
    /// creatures after it.
    #[track_caller]
    pub(super) fn stir(self, map: Map, luck: &Luck) -> (Scene, Tensor) {
        let numbers = |kind: Range<usize>| arange(kind.end).slice(kind.start..);
        let whims = (numbers(ZOMBIES), luck.zombies);
        let (scene, ()) =
            scan(self, whims, |scene, (number, whim)| (scene.move_zombie(map, number, &whim), ()));
        let (scene, ()) = scan(scene, (numbers(COWS), luck.cows), |mut scene, (number, to)| {
            let cow = scene.one(number);
            let to = on(cow.place, way(to));
            let free = scene.is_free(map, to);
            scene.move_to(&cow, free, to);
            (scene, ())
        });
        let whims = (numbers(SKELETONS), luck.skeletons);
        let (scene, ()) = scan(scene, whims, |scene, (number, whim)| {
            (scene.move_skeleton(map, number, &whim), ())
        });
        let none = full([scene.arrows.rows.len()], -1);
        let arrows = arange(scene.arrows.rows.len());
        scan((scene, none), arrows, |(scene, broken), number| (scene.fly(map, number, broken), ()))
            .0
    }

    /// The creature with this number.
    #[track_caller]
    fn one(&self, number: Tensor) -> One {
        let creatures = &self.creatures;
        let is = arange(creatures.rows.len()).eq(number);
        let place = (pick(is, creatures.rows), pick(is, creatures.columns));
        let ready = (is & creatures.alive & creatures.cooldowns.le(0)).any();
        One { is, place, away: distance(place, self.player.place()), ready }
    }

    /// True for a position that a creature can move to. `bool[]`
    #[track_caller]
    fn is_free(&self, map: Map, place: Place) -> Tensor {
        self.is_open(place, map.read(place))
    }

    /// The direction to the player, along the axis with the greater distance.
    #[track_caller]
    fn towards_player(&self, from: Place, along_rows: Tensor) -> Place {
        let player = self.player.place();
        let (down, right) = (player.0 - from.0, player.1 - from.1);
        let rows = down.abs().gt(right.abs()) | (down.abs().eq(right.abs()) & along_rows);
        (select(rows, down.sign(), 0), select(rows, 0, right.sign()))
    }

    /// Moves a creature to a position if `can` is true. The creature disappears if it was far from
    /// the player.
    #[track_caller]
    fn move_to(&mut self, one: &One, can: Tensor, to: Place) {
        let was_alive = (one.is & self.creatures.alive).any();
        let creatures = self.creatures.forget(was_alive, one.place);
        let (row, column) = either(can, to, one.place);
        let alive = creatures.alive & (!one.is | one.away.lt(FAR));
        self.creatures = Creatures {
            rows: select(one.is, row, creatures.rows),
            columns: select(one.is, column, creatures.columns),
            alive,
            noted: creatures.noted | (one.is & alive),
            ..creatures
        };
    }

    /// Starts the creature's cooldown when it attacks, and otherwise reduces it by one step.
    #[track_caller]
    fn wait(&mut self, one: &One, attacks: Tensor, steps: i32) {
        let cooldowns = self.creatures.cooldowns;
        let after = select(attacks, steps, cooldowns - 1);
        self.creatures.cooldowns = select(one.is, after, cooldowns);
    }

    #[track_caller]
    fn move_zombie(mut self, map: Map, number: Tensor, whim: &Whims) -> Scene {
        let zombie = self.one(number);
        let chases = zombie.away.lt(10) & whim.urges.lt(0.75);
        let towards = self.towards_player(zombie.place, whim.along_rows);
        let to = on(zombie.place, either(chases, towards, way(whim.ways)));
        let attacks = zombie.ready & zombie.away.eq(1);
        let asleep = self.player.asleep;
        self.woken = self.woken | (asleep & attacks);
        self.hurt(attacks, select(asleep, 7, 2));
        let free = self.is_free(map, to);
        self.move_to(&zombie, free & !attacks, to);
        self.wait(&zombie, attacks, 5);
        self
    }

    #[track_caller]
    fn move_skeleton(mut self, map: Map, number: Tensor, whim: &Whims) -> Scene {
        let skeleton = self.one(number);
        let (place, away) = (skeleton.place, skeleton.away);
        let (down, right) = self.towards_player(place, whim.along_rows);
        let close = away.le(3);
        let minded = whim.urges.gt(0.85) & (close | away.ge(10));
        let meant = either(close, (-down, -right), (down, right));
        let to = on(place, either(minded, meant, way(whim.ways)));
        let free = self.is_free(map, to);
        let shoots = (away.ge(4) & away.le(5)) | (close & !free);
        let attacks = skeleton.ready & shoots;
        let arrows = self.arrows;
        let shot = first(!arrows.flying) & attacks;
        self.arrows = Arrows {
            rows: select(shot, place.0, arrows.rows),
            columns: select(shot, place.1, arrows.columns),
            down: select(shot, down, arrows.down),
            right: select(shot, right, arrows.right),
            flying: arrows.flying | shot,
        };
        self.move_to(&skeleton, free & !attacks, to);
        self.wait(&skeleton, attacks, 4);
        self
    }

    /// Moves an arrow, by its number. `broken` has the cells that became paths, -1 for none:
    /// `i32[3]`
    #[track_caller]
    fn fly(mut self, map: Map, number: Tensor, broken: Tensor) -> (Scene, Tensor) {
        let arrows = self.arrows;
        let one = arange(arrows.rows.len()).eq(number);
        let to = (arrows.rows + arrows.down, arrows.columns + arrows.right);
        let to = (pick(one, to.0), pick(one, to.1));
        let was_flying = (one & arrows.flying).any();
        let there = map.read_after(broken, to);
        // Arrows fly over water.
        let blocked = is_solid(there) & there.ne(block::WATER);
        let flying = is_inside(to) & !blocked & !self.is_taken(to);
        let breaks = was_flying & is_among(there, bits(&[block::FURNACE, block::TABLE]));
        let broken = select(one, Write::new(breaks, to, block::PATH).cell(), broken);
        self.hurt(was_flying & same(to, self.player.place()), 2);
        self.arrows = Arrows {
            rows: select(one, to.0, arrows.rows),
            columns: select(one, to.1, arrows.columns),
            flying: arrows.flying & (!one | flying),
            ..arrows
        };
        (self, broken)
    }

    /// New creatures appear around the player. `near` has the blocks around the player, `u8[NEAR,
    /// NEAR]`; `light` is the previous step's light.
    #[track_caller]
    pub(super) fn breed(self, near: Tensor, light: Tensor, luck: &Luck) -> Scene {
        let by_night = (1.0 - light).square() * 0.1 + 0.02;
        let kinds = [COWS, ZOMBIES, SKELETONS].map(of_kind);
        let probabilities = stack(&[scalar(0.1f32), by_night, scalar(0.05f32)], 0);
        let (grass, path) = (bits(&[block::GRASS]), bits(&[block::PATH]));
        let births = Birth {
            kind: stack(&kinds, 0),
            health: constant([3, 5, 3]),
            ground: constant([grass, grass | path, path]),
            beyond: constant([3, 9, 9]),
            happens: luck.births.lt(probabilities),
            place: luck.places,
        };
        let middle = NEAR as i32 / 2;
        let corner = (self.player.row - middle, self.player.column - middle);
        let bear = |creatures: Creatures, birth| (creatures.with(near, corner, &birth), ());
        let (creatures, ()) = scan(self.creatures, births, bear);
        Scene { creatures, ..self }
    }
}

/// A creature that may appear.
#[derive(Tree, Clone, Copy)]
struct Birth {
    /// Creatures of its kind. `bool[CREATURES]`
    kind: Tensor,
    /// Initial health. `i32[]`
    health: Tensor,
    /// Blocks on which it may appear, as bits. `u32[]`
    ground: Tensor,
    /// Distance from the player beyond which it may appear. `i32[]`
    beyond: Tensor,
    /// False if it does not appear even if it can. `bool[]`
    happens: Tensor,
    /// Uniform draw of its position. `f32[]`
    place: Tensor,
}

impl Creatures {
    /// The creatures with a newborn creature, if there are not enough of its kind. `near` has the
    /// blocks from a corner on.
    #[track_caller]
    fn with(self, near: Tensor, corner: Place, birth: &Birth) -> Creatures {
        let shape = [NEAR, NEAR];
        let middle = NEAR as i32 / 2;
        let away = |axis| (iota(I32, shape, axis) - middle).abs();
        let away = away(0) + away(1);
        // Cells of the noted creatures, -1 for others.
        let (rows, columns) = (self.rows - corner.0, self.columns - corner.1);
        let inside = |i: Tensor| i.ge(0) & i.lt(NEAR as i32);
        let inside = self.noted & inside(rows) & inside(columns);
        let taken = select(inside, rows * NEAR as i32 + columns, -1);
        let cell = iota(I32, shape, 0) * NEAR as i32 + iota(I32, shape, 1);
        let free =
            taken.unstack().into_iter().fold(constant(true), |free, taken| free & cell.ne(taken));
        let room = is_among(near, birth.ground) & away.gt(birth.beyond) & away.lt(FAR) & free;
        let (row, column) = draw_cell(room, birth.place);

        let absent = birth.kind & !self.alive;
        let born = first(absent) & birth.happens & room.any();
        // As in the package: if no creature of the kind is absent, the first is noted at its
        // position.
        let again = first(birth.kind) & !absent.any();
        Creatures {
            rows: select(born, corner.0 + row, self.rows),
            columns: select(born, corner.1 + column, self.columns),
            healths: select(born, birth.health, self.healths),
            alive: self.alive | born,
            noted: self.noted | born | again,
            ..self
        }
    }
}
