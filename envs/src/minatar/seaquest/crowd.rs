//! The moving objects of Seaquest: bullets, divers and enemies.
//!
//! gymnax keeps lists in order of appearance. If two objects are in one cell, the order decides
//! which of them a bullet hits. Here few objects have fixed slots. Bullets and divers move up, so
//! that the first slot has the older object; enemies store the time of their appearance.

use crate::minatar::{SIZE, cells};
use podracer_dsl::prelude::*;

/// Slots for bullets. A bullet is fired every five steps and flies for at most nine.
const BULLETS: usize = 2;
/// Slots for divers. A diver appears every 30 steps, and is gone after 60.
const DIVERS: usize = 2;
/// Slots for enemies. At worst an enemy appears in each step, and stays for 30.
const ENEMIES: usize = 32;
/// Steps that a diver waits before each move.
const DIVER_MOVE_SPEED: i32 = 5;
/// Number of steps between shots of an enemy.
const ENEMY_SHOT_INTERVAL: i32 = 10;

/// The columns after a move in each object's direction.
#[track_caller]
fn ahead(column: Tensor, right: Tensor) -> Tensor {
    column + select(right, 1, -1)
}

/// The set of the cells behind objects. `u32[10]`
#[track_caller]
fn behind(row: Tensor, column: Tensor, right: Tensor, present: Tensor) -> Tensor {
    cells(row, ahead(column, !right), present)
}

#[track_caller]
fn inside(column: Tensor) -> Tensor {
    column.ge(0) & column.lt(SIZE)
}

/// The slot for the next object: the second, or the first if both are free. bool `[2]`
#[track_caller]
fn free_place(present: Tensor) -> Tensor {
    let index = arange(2);
    index.eq(present.index(0).astype(I32))
}

/// Bullets of the submarine.
#[derive(Tree, Clone, Copy)]
pub struct Bullets {
    /// True for a bullet that exists. `bool[2]`
    pub present: Tensor,
    /// Its row. `i32[2]`
    pub row: Tensor,
    /// Its column. `i32[2]`
    pub column: Tensor,
    /// True if it flies to the right. `bool[2]`
    pub right: Tensor,
}

impl Bullets {
    #[track_caller]
    pub(super) fn none() -> Bullets {
        let (none, zero) = (constant([false; BULLETS]), zeros(I32, [BULLETS]));
        Bullets { present: none, row: zero, column: zero, right: none }
    }

    /// Adds a bullet.
    #[track_caller]
    pub(super) fn joined(self, now: Tensor, row: Tensor, column: Tensor, right: Tensor) -> Bullets {
        let here = free_place(self.present) & now;
        Bullets {
            present: self.present | here,
            row: select(here, row, self.row),
            column: select(here, column, self.column),
            right: select(here, right, self.right),
        }
    }

    /// The bullets after their move; bullets that leave the board are removed.
    #[track_caller]
    pub(super) fn advanced(self) -> Bullets {
        let column = ahead(self.column, self.right);
        Bullets { column, present: self.present & inside(column), ..self }.moved_up()
    }

    /// Moves the second bullet to the first slot, if that slot is free.
    #[track_caller]
    fn moved_up(self) -> Bullets {
        let moves = !self.present.index(0);
        let free = constant([true, false]);
        let up = |x: Tensor| select(moves, x.reverse(0), x);
        Bullets {
            present: select(moves, self.present.reverse(0) & free, self.present),
            row: up(self.row),
            column: up(self.column),
            right: up(self.right),
        }
    }
}

/// Divers in the water.
#[derive(Tree, Clone, Copy)]
pub struct Divers {
    /// True for a diver that exists. `bool[2]`
    pub present: Tensor,
    /// The row. `i32[2]`
    pub row: Tensor,
    /// The column. `i32[2]`
    pub column: Tensor,
    /// True if the diver swims to the right. `bool[2]`
    pub right: Tensor,
    /// Steps until the diver moves. `i32[2]`
    pub timer: Tensor,
}

impl Divers {
    #[track_caller]
    pub(super) fn none() -> Divers {
        let (none, zero) = (constant([false; DIVERS]), zeros(I32, [DIVERS]));
        Divers { present: none, row: zero, column: zero, right: none, timer: zero }
    }

    /// Adds a diver in the first free slot.
    #[track_caller]
    pub(super) fn joined(self, now: Tensor, row: Tensor, right: Tensor) -> Divers {
        let here = free_place(self.present) & now;
        Divers {
            present: self.present | here,
            row: select(here, row, self.row),
            column: select(here, select(right, 0, 9), self.column),
            right: select(here, right, self.right),
            timer: select(here, DIVER_MOVE_SPEED, self.timer),
        }
    }

    /// The divers after their moves; divers that leave the board are removed.
    #[track_caller]
    pub(super) fn advanced(self) -> Divers {
        let moves = self.timer.eq(0);
        let column = select(moves, ahead(self.column, self.right), self.column);
        let timer = select(moves, DIVER_MOVE_SPEED, self.timer - 1);
        Divers { column, timer, present: self.present & inside(column), ..self }.moved_up()
    }

    /// The divers who stay in the water, and the number of divers in a cell who find a seat.
    /// `i32[]`
    #[track_caller]
    pub(super) fn boarding(self, row: Tensor, column: Tensor, seats: Tensor) -> (Divers, Tensor) {
        let here = self.present & self.row.eq(row) & self.column.eq(column);
        let earlier = concatenate(&[zeros(I32, [1]), here.slice_axis(0, 0..1).astype(I32)], 0);
        let boards = here & earlier.lt(seats);
        let divers = Divers { present: self.present & !boards, ..self };
        (divers.moved_up(), boards.astype(I32).sum())
    }

    /// The set of the cells behind the divers. `u32[10]`
    #[track_caller]
    pub(super) fn trail(&self) -> Tensor {
        behind(self.row, self.column, self.right, self.present)
    }

    /// Moves the second diver to the first slot, if that slot is free.
    #[track_caller]
    fn moved_up(self) -> Divers {
        let moves = !self.present.index(0);
        let free = constant([true, false]);
        let up = |x: Tensor| select(moves, x.reverse(0), x);
        Divers {
            present: select(moves, self.present.reverse(0) & free, self.present),
            row: up(self.row),
            column: up(self.column),
            right: up(self.right),
            timer: up(self.timer),
        }
    }
}

/// Fish and submarines.
#[derive(Tree, Clone, Copy)]
pub struct Enemies {
    /// True for an enemy that exists. `bool[32]`
    pub present: Tensor,
    /// True for a submarine, false for a fish. `bool[32]`
    pub submarine: Tensor,
    /// The row. `i32[32]`
    pub row: Tensor,
    /// The column. `i32[32]`
    pub column: Tensor,
    /// True if the enemy swims to the right. `bool[32]`
    pub right: Tensor,
    /// Steps until it moves. `i32[32]`
    pub timer: Tensor,
    /// Steps until it shoots, if it is a submarine. `i32[32]`
    pub shot_timer: Tensor,
    /// The step of its appearance, unique among enemies. `i32[32]`
    pub came: Tensor,
}

impl Enemies {
    #[track_caller]
    pub(super) fn none() -> Enemies {
        let (none, zero) = (constant([false; ENEMIES]), zeros(I32, [ENEMIES]));
        Enemies {
            present: none,
            submarine: none,
            row: zero,
            column: zero,
            right: none,
            timer: zero,
            shot_timer: zero,
            came: zero,
        }
    }

    /// The enemies of one kind. `bool[32]`
    #[track_caller]
    pub(super) fn of_kind(&self, submarines: bool) -> Tensor {
        self.present & if submarines { self.submarine } else { !self.submarine }
    }

    /// Adds an enemy, unless another enemy swims in its row in the other direction.
    #[track_caller]
    pub(super) fn joined(
        self,
        now: Tensor,
        row: Tensor,
        right: Tensor,
        submarine: Tensor,
        move_speed: Tensor,
        time: Tensor,
    ) -> Enemies {
        let opposed = (self.present & self.row.eq(row) & self.right.ne(right)).any();
        let index = arange(ENEMIES);
        let free = select(self.present, ENEMIES as i32, index).min();
        let here = index.eq(free) & now & !opposed;
        Enemies {
            present: self.present | here,
            submarine: select(here, submarine, self.submarine),
            row: select(here, row, self.row),
            column: select(here, select(right, 0, 9), self.column),
            right: select(here, right, self.right),
            timer: select(here, move_speed, self.timer),
            shot_timer: select(here, ENEMY_SHOT_INTERVAL, self.shot_timer),
            came: select(here, time, self.came),
        }
    }

    /// The enemies after the moves of one kind; enemies that leave the board are removed.
    #[track_caller]
    pub(super) fn advanced(self, submarines: bool, move_speed: Tensor) -> Enemies {
        let kind = self.of_kind(submarines);
        let moves = kind & self.timer.eq(0);
        let column = select(moves, ahead(self.column, self.right), self.column);
        let waits = select(kind, self.timer - 1, self.timer);
        let timer = select(moves, move_speed, waits);
        Enemies { column, timer, present: self.present & inside(column), ..self }
    }

    /// The enemies after their shots, and the cells with shots to the right and to the left. `u32[10]`, `u32[10]`
    #[track_caller]
    pub(super) fn shooting(self) -> (Enemies, Tensor, Tensor) {
        let submarines = self.of_kind(true);
        let shoots = submarines & self.shot_timer.eq(0);
        let shot_timer = select(shoots, ENEMY_SHOT_INTERVAL, (self.shot_timer - 1).maximum(0));
        let shots = |right: Tensor| cells(self.row, self.column, shoots & right);
        (Enemies { shot_timer, ..self }, shots(self.right), shots(!self.right))
    }

    /// The set of the cells behind the enemies. `u32[10]`
    #[track_caller]
    pub(super) fn trail(&self) -> Tensor {
        behind(self.row, self.column, self.right, self.present)
    }
}

/// Removes bullets and enemies of one kind that meet, and returns the number of these enemies.
/// `i32[]`
///
/// A bullet hits the oldest enemy in its cell. If two bullets are in the cell, the later bullet
/// hits, and the other continues.
#[track_caller]
pub(super) fn hit(
    bullets: Bullets,
    enemies: Enemies,
    submarines: bool,
) -> (Bullets, Enemies, Tensor) {
    let kind = enemies.of_kind(submarines);
    let late = i32::MAX;
    let target = |bullet: usize| {
        let here = kind
            & bullets.present.index(bullet)
            & enemies.row.eq(bullets.row.index(bullet))
            & enemies.column.eq(bullets.column.index(bullet));
        let oldest = select(here, enemies.came, late).min();
        (here & enemies.came.eq(oldest), oldest.ne(late))
    };
    let ((first, first_meets), (second, second_meets)) = (target(0), target(1));
    let same = (first & second).any();
    let gone = first | second;
    let spent = stack(&[first_meets & !same, second_meets], 0);
    let left = Bullets { present: bullets.present & !spent, ..bullets }.moved_up();
    let others = Enemies { present: enemies.present & !gone, ..enemies };
    (left, others, gone.astype(I32).sum())
}
