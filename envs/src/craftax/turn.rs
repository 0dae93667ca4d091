//! A step in the making: who and what moves, and helpers about places.

use super::map::{block, is_inside, is_solid};
use super::{ACHIEVEMENTS, Arrows, CREATURES, Creatures, Place, Plants, Player, RIPE_AGE, State};
use podracer_dsl::prelude::*;
use std::ops::Range;

/// All that moves in a step.
#[derive(Tree, Clone, Copy)]
pub(super) struct Scene {
    pub(super) player: Player,
    pub(super) creatures: Creatures,
    pub(super) arrows: Arrows,
    /// True if a zombie woke the player up. `bool[]`
    pub(super) woken: Tensor,
}

/// The first of those that are true, alone. `bool[n]`
#[track_caller]
pub(super) fn first(flags: Tensor) -> Tensor {
    let number = arange(flags.len());
    number.eq(select(flags, number, flags.len() as i32).min())
}

/// The number of one alone of some, `i32[n]`: its mask is `bool[n]`. `i32[]`
#[track_caller]
pub(super) fn pick(one: Tensor, of: Tensor) -> Tensor {
    select(one, of, 0).sum()
}

/// True where two places are the same. `bool` of the places' shape
#[track_caller]
pub(super) fn same(a: Place, b: Place) -> Tensor {
    a.0.eq(b.0) & a.1.eq(b.1)
}

/// Steps from one place to another, first along one axis and then along the other. `i32[]`
#[track_caller]
pub(super) fn distance(a: Place, b: Place) -> Tensor {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

/// One of two places.
#[track_caller]
pub(super) fn either(first: Tensor, a: Place, b: Place) -> Place {
    (select(first, a.0, b.0), select(first, a.1, b.1))
}

/// A place and a way on from it.
#[track_caller]
pub(super) fn on(place: Place, (down, right): Place) -> Place {
    (place.0 + down, place.1 + right)
}

/// One achievement alone. `bool[ACHIEVEMENTS]`
#[track_caller]
pub(super) fn only(achievement: usize) -> Tensor {
    arange(ACHIEVEMENTS).eq(achievement as i32)
}

/// Creatures of a kind, by the range of their numbers. `bool[CREATURES]`
#[track_caller]
pub(super) fn of_kind(kind: Range<usize>) -> Tensor {
    let flags: Vec<bool> = (0..CREATURES).map(|number| kind.contains(&number)).collect();
    constant(flags)
}

impl Creatures {
    /// Where the creatures are. `i32[CREATURES]` each
    pub fn places(&self) -> Place {
        (self.rows, self.columns)
    }

    /// No creature is noted at a place any more, if `when` is true.
    #[track_caller]
    pub(super) fn forget(self, when: Tensor, place: Place) -> Creatures {
        Creatures { noted: self.noted & !(same(self.places(), place) & when), ..self }
    }
}

impl Plants {
    /// Where plants are. `i32[10]` each
    pub fn places(&self) -> Place {
        (self.rows, self.columns)
    }

    /// True for the plants that can be eaten. `bool[10]`
    #[track_caller]
    pub fn ripe(&self) -> Tensor {
        self.growing & self.ages.ge(RIPE_AGE)
    }

    /// True where a ripe plant is. `bool[]`
    #[track_caller]
    pub(super) fn is_ripe(&self, place: Place) -> Tensor {
        (self.ripe() & same(self.places(), place)).any()
    }

    /// Plants a step later.
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

    /// True where a creature is noted, or the player is. `bool[]`
    #[track_caller]
    pub(super) fn is_taken(&self, place: Place) -> Tensor {
        let noted = self.creatures.noted & same(self.creatures.places(), place);
        noted.any() | same(self.player.place(), place)
    }

    /// True for a place on the map where somebody can go unharmed, by its block. `bool[]`
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
