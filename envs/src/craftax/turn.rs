//! A step in progress: everything that moves, and helpers for positions.

use super::map::{block, is_inside, is_solid};
use super::{ACHIEVEMENTS, Arrows, CREATURES, Creatures, Place, Plants, Player, RIPE_AGE, State};
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Everything that moves in a step.
#[derive(Tree, Clone, Copy)]
pub(super) struct Scene {
    pub(super) player: Player,
    pub(super) creatures: Creatures,
    pub(super) arrows: Arrows,
    /// True if a zombie woke the player up. `bool[]`
    pub(super) woken: Tensor,
}

/// A mask with only the first true element. `bool[n]`
#[track_caller]
pub(super) fn first(flags: Tensor) -> Tensor {
    let number = arange(flags.len());
    number.eq(select(flags, number, flags.len() as i32).min())
}

/// The number selected from `i32[n]` by a mask with a single true element, `bool[n]`. `i32[]`
#[track_caller]
pub(super) fn pick(one: Tensor, of: Tensor) -> Tensor {
    select(one, of, 0).sum()
}

/// True if two positions are equal. `bool` of the positions' shape
#[track_caller]
pub(super) fn same(a: Place, b: Place) -> Tensor {
    a.0.eq(b.0) & a.1.eq(b.1)
}

/// Number of steps from one position to another, along one axis and then the other. `i32[]`
#[track_caller]
pub(super) fn distance(a: Place, b: Place) -> Tensor {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// One of two positions.
#[track_caller]
pub(super) fn either(first: Tensor, a: Place, b: Place) -> Place {
    (select(first, a.0, b.0), select(first, a.1, b.1))
}

/// The position after an offset.
#[track_caller]
pub(super) fn on(place: Place, (down, right): Place) -> Place {
    (place.0 + down, place.1 + right)
}

/// A mask of one achievement. `bool[ACHIEVEMENTS]`
#[track_caller]
pub(super) fn only(achievement: usize) -> Tensor {
    arange(ACHIEVEMENTS).eq(achievement as i32)
}

/// A mask of the creatures of a kind, by the range of their indices. `bool[CREATURES]`
#[track_caller]
pub(super) fn of_kind(kind: Range<usize>) -> Tensor {
    let flags: Vec<bool> = (0..CREATURES).map(|number| kind.contains(&number)).collect();
    constant(flags)
}

impl Creatures {
    /// Positions of the creatures. `i32[CREATURES]` each
    pub fn places(&self) -> Place {
        (self.rows, self.columns)
    }

    /// Unmarks all creatures noted at a position, if `when` is true.
    #[track_caller]
    pub(super) fn forget(self, when: Tensor, place: Place) -> Creatures {
        Creatures { noted: self.noted & !(same(self.places(), place) & when), ..self }
    }
}

impl Plants {
    /// Positions of the plants. `i32[10]` each
    pub fn places(&self) -> Place {
        (self.rows, self.columns)
    }

    /// True for the plants that can be eaten. `bool[10]`
    #[track_caller]
    pub fn ripe(&self) -> Tensor {
        self.growing & self.ages.ge(RIPE_AGE)
    }

    /// True if there is a ripe plant at the position. `bool[]`
    #[track_caller]
    pub(super) fn is_ripe(&self, place: Place) -> Tensor {
        (self.ripe() & same(self.places(), place)).any()
    }

    /// The plants one step later.
    #[track_caller]
    pub(super) fn older(self) -> Plants {
        Plants { ages: select(self.growing, self.ages + 1, 0), ..self }
    }
}

impl Scene {
    pub(super) fn new(state: &State) -> Scene {
        let State { player, creatures, arrows, .. } = *state;
        Scene { player, creatures, arrows, woken: constant(false) }
    }

    /// True if a creature is noted at the position, or if the player stands at it. `bool[]`
    #[track_caller]
    pub(super) fn is_taken(&self, place: Place) -> Tensor {
        let noted = self.creatures.noted & same(self.creatures.places(), place);
        noted.any() | same(self.player.place(), place)
    }

    /// True for a position on the map with a harmless block that can be walked on. `bool[]`
    #[track_caller]
    pub(super) fn is_open(&self, place: Place, there: Tensor) -> Tensor {
        let way = !is_solid(there) & there.ne(block::LAVA);
        is_inside(place) & way & !self.is_taken(place)
    }

    /// The player is hurt, and wakes up, if `hit` is true.
    #[track_caller]
    pub(super) fn hurt(&mut self, hit: Tensor, damage: impl IntoTensor) {
        self.player.health -= select(hit, damage, 0);
        self.player.asleep = self.player.asleep & !hit;
    }
}
