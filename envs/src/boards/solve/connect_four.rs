//! Connect Four, solved: negamax with alpha-beta, a transposition table, and a search that avoids
//! moves that lose at once.
//!
//! A position near the end is solved in microseconds, a position with ten stones in seconds; the
//! empty board takes minutes (Allis, "A Knowledge-based Approach of Connect-Four", 1988: the first
//! player wins, in the middle).

use crate::boards::connect_four::{COLUMNS, DIRECTIONS, FULL, ROWS, STRIDE};

/// The cells at the bottom.
const BOTTOM: u64 = {
    let (mut bottom, mut column) = (0, 0);
    while column < COLUMNS {
        bottom |= 1 << (STRIDE * column);
        column += 1;
    }
    bottom
};

/// Columns from the middle outwards, because the best moves are more often in the middle.
const ORDER: [usize; COLUMNS] = [3, 2, 4, 1, 5, 0, 6];

/// Number of cells.
const CELLS: u32 = (ROWS * COLUMNS) as u32;

/// A position of an unfinished game. Bit `7 * column + height` is a cell, with height 0 at the
/// bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Stones of the player to move.
    pub own: u64,
    /// Stones of the other player.
    pub other: u64,
}

/// True if four stones are in a row.
#[must_use]
pub fn four(stones: u64) -> bool {
    DIRECTIONS.iter().any(|step| {
        let twos = stones & stones >> step;
        twos & twos >> (2 * step) != 0
    })
}

impl Position {
    /// The position after stones in these columns, from the empty board. `None` if a column is full or the game is over.
    #[must_use]
    pub fn after(columns: &[usize]) -> Option<Position> {
        columns.iter().try_fold(Position::default(), |position, &column| {
            let next = position.play(column)?;
            (!four(next.other)).then_some(next)
        })
    }

    /// The position after a stone in a column, from the view of the next player. `None` if the
    /// column is full.
    #[must_use]
    pub fn play(self, column: usize) -> Option<Position> {
        let stone = self.free() & Position::column(column);
        (stone != 0).then_some(Position { own: self.other, other: self.own | stone })
    }

    fn column(column: usize) -> u64 {
        ((1 << ROWS) - 1) << (STRIDE * column)
    }

    /// The lowest free cell of each column that is not full.
    fn free(self) -> u64 {
        ((self.own | self.other) + BOTTOM) & FULL
    }

    /// Free cells, reachable or not, that would make four of these stones.
    fn completing(self, stones: u64) -> u64 {
        let mut cells = (stones << 1) & (stones << 2) & (stones << 3);
        for step in &DIRECTIONS[1..] {
            let twos = (stones << step) & (stones << (2 * step));
            cells |= twos & (stones << (3 * step));
            cells |= twos & (stones >> step);
            let twos = (stones >> step) & (stones >> (2 * step));
            cells |= twos & (stones << step);
            cells |= twos & (stones >> (3 * step));
        }
        cells & FULL & !(self.own | self.other)
    }

    /// Cells to play that do not let the other player win at once; empty if there are none.
    fn safe(self) -> u64 {
        let threats = self.completing(self.other);
        let free = self.free();
        let forced = free & threats;
        let playable = match forced.count_ones() {
            0 => free,
            1 => forced,
            _ => return 0,
        };
        // Not below a winning cell of the other player.
        playable & !(threats >> 1)
    }

    fn stones(self) -> u32 {
        (self.own | self.other).count_ones()
    }

    /// A unique number for each position.
    fn key(self) -> u64 {
        self.own + (self.own | self.other) + BOTTOM
    }
}

/// A solver with a transposition table.
#[derive(Clone, Debug)]
pub struct Solver {
    /// Keys and upper bounds of scores.
    table: Vec<(u64, i8)>,
    /// Number of positions visited.
    pub positions: u64,
}

impl Default for Solver {
    fn default() -> Self {
        Solver::new()
    }
}

impl Solver {
    /// A solver with a table of four million positions, in 64 MB.
    #[must_use]
    pub fn new() -> Self {
        // A prime number, so that all bits of a key determine the slot.
        Solver { table: vec![(0, 0); 4_194_301], positions: 0 }
    }

    /// The score of a position for the player to move: 0 for a draw, positive for a win, negative
    /// for a loss. Its absolute value is greater for an earlier end: `22 - n` for a player who wins
    /// with their `n`-th stone.
    pub fn score(&mut self, position: Position) -> i32 {
        if position.completing(position.own) & position.free() != 0 {
            return (CELLS as i32 + 1 - position.stones() as i32) / 2;
        }
        let (mut low, mut high) = (
            -(CELLS as i32 - position.stones() as i32) / 2,
            (CELLS as i32 + 1 - position.stones() as i32) / 2,
        );
        // Null windows of one score: they cut off most of the tree, and share the table.
        while low < high {
            let mut middle = low + (high - low) / 2;
            if middle <= 0 && low / 2 < middle {
                middle = low / 2;
            } else if middle >= 0 && high / 2 > middle {
                middle = high / 2;
            }
            let score = self.search(position, middle, middle + 1);
            if score <= middle { high = score } else { low = score }
        }
        low
    }

    /// Value of the position for the player to move: win (1), draw (0) or loss (-1).
    pub fn value(&mut self, position: Position) -> i32 {
        if position.completing(position.own) & position.free() != 0 {
            return 1;
        }
        self.search(position, -1, 1).signum()
    }

    /// The score of each column's move for the player who makes it, `None` for a full column.
    pub fn moves(&mut self, position: Position) -> [Option<i32>; COLUMNS] {
        std::array::from_fn(|column| {
            let next = position.play(column)?;
            let left = CELLS as i32 + 1 - position.stones() as i32;
            Some(match four(next.other) {
                true => left / 2,
                false if next.stones() == CELLS => 0,
                false => -self.score(next),
            })
        })
    }

    /// The columns with moves of the greatest score.
    pub fn best(&mut self, position: Position) -> Vec<usize> {
        let moves = self.moves(position);
        let greatest = moves.iter().flatten().max().copied();
        (0..COLUMNS)
            .filter(|&column| moves[column].is_some() && moves[column] == greatest)
            .collect()
    }

    /// The score between `alpha` and `beta`, for a position without an immediately winning move.
    fn search(&mut self, position: Position, mut alpha: i32, mut beta: i32) -> i32 {
        self.positions += 1;
        let stones = position.stones();
        let safe = position.safe();
        if safe == 0 {
            // A full board is a draw; otherwise the next move loses.
            return if stones == CELLS { 0 } else { -((CELLS - stones) as i32) / 2 };
        }
        if stones >= CELLS - 2 {
            return 0;
        }
        alpha = alpha.max(-((CELLS - 2 - stones) as i32) / 2);
        let place = (position.key() % self.table.len() as u64) as usize;
        let most = match self.table[place] {
            (key, bound) if key == position.key() => i32::from(bound),
            _ => (CELLS as i32 - 1 - stones as i32) / 2,
        };
        beta = beta.min(most);
        if alpha >= beta {
            return beta.max(alpha);
        }
        // Moves that make more threats come first, then moves nearer to the middle.
        let mut moves: Vec<(u32, u64)> = Vec::with_capacity(COLUMNS);
        for column in ORDER {
            let stone = safe & Position::column(column);
            if stone != 0 {
                let threats = position.completing(position.own | stone).count_ones();
                moves.push((threats, stone));
            }
        }
        moves.sort_by_key(|(threats, _)| std::cmp::Reverse(*threats));
        for (_, stone) in moves {
            let next = Position { own: position.other, other: position.own | stone };
            let score = -self.search(next, -beta, -alpha);
            if score >= beta {
                return score;
            }
            alpha = alpha.max(score);
        }
        self.table[place] = (position.key(), alpha as i8);
        alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Random;

    /// The score by exhaustive search, without the solver's optimisations.
    fn exhaustive(position: Position) -> i32 {
        let left = (CELLS - position.stones()) as i32;
        let moves = (0..COLUMNS).filter_map(|column| position.play(column));
        moves
            .map(|next| if four(next.other) { (left + 1) / 2 } else { -exhaustive(next) })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn late_positions_have_the_scores_of_all_their_games() {
        let (mut solver, mut draws) = (Solver::new(), Random::from_state(4));
        let (mut signs, mut solved) = ([0; 3], 0);
        while solved < 150 {
            let mut position = Some(Position::default());
            let count = 30 + draws.below(9);
            for _ in 0..count {
                position = position
                    .and_then(|position| position.play(draws.below(COLUMNS)))
                    .filter(|next| !four(next.other));
            }
            let Some(position) = position else { continue };
            let expected = exhaustive(position);
            assert_eq!(solver.score(position), expected, "{position:?}");
            assert_eq!(solver.value(position), expected.signum(), "{position:?}");
            let best = solver.moves(position).iter().flatten().max().copied();
            assert_eq!(best.unwrap_or(0), expected, "{position:?}");
            signs[(expected.signum() + 1) as usize] += 1;
            solved += 1;
        }
        assert!(signs.iter().all(|&count| count > 2), "lost, drawn and won: {signs:?}");
    }

    #[test]
    fn a_win_at_once_is_seen_and_games_that_are_over_are_none() {
        // Three stones in column 0 against three in column 1.
        let position = Position::after(&[0, 1, 0, 1, 0, 1]).expect("a game");
        let mut solver = Solver::new();
        assert_eq!((solver.score(position), solver.value(position)), (18, 1));
        assert_eq!(Position::after(&[0, 1, 0, 1, 0, 1, 0]), None, "the game is over");
        assert_eq!(Position::after(&[2; 7]), None, "the column is full");
    }
}
