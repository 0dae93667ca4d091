//! Tic-tac-toe, solved: minimax over all positions.

use crate::boards::tic_tac_toe::{FULL, LINES};

/// Number of boards, with three states per cell; many of them cannot occur.
const BOARDS: usize = 19_683;

/// The value and the best moves of every position that can occur.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Value of a board for the player to move, by [`number`]: 1, 0 or -1; `None` for a board that
    /// cannot occur.
    values: Vec<Option<i8>>,
    /// Cells, as bits, with moves that keep the value.
    best: Vec<u32>,
}

/// The number of a board: in base three, the digit is 1 for a stone of the player to move, 2 for a
/// stone of the other player.
fn number(own: u32, other: u32) -> usize {
    (0..9)
        .rev()
        .fold(0, |number, cell| 3 * number + ((own >> cell & 1) + 2 * (other >> cell & 1)) as usize)
}

fn won(stones: u32) -> bool {
    LINES.iter().any(|line| stones & line == *line)
}

impl Default for Solution {
    fn default() -> Self {
        Solution::new()
    }
}

impl Solution {
    /// Solves the game.
    #[must_use]
    pub fn new() -> Self {
        let mut solution = Solution { values: vec![None; BOARDS], best: vec![0; BOARDS] };
        solution.solve(0, 0);
        solution
    }

    fn solve(&mut self, own: u32, other: u32) -> i8 {
        let number = number(own, other);
        if let Some(value) = self.values[number] {
            return value;
        }
        let free = FULL & !(own | other);
        let value = if won(other) {
            -1
        } else if free == 0 {
            0
        } else {
            let cells = (0..9).map(|cell| 1 << cell).filter(|stone| free & stone != 0);
            let moves: Vec<(u32, i8)> =
                cells.map(|stone| (stone, -self.solve(other, own | stone))).collect();
            let value = moves.iter().map(|(_, value)| *value).max().unwrap_or(0);
            let best = moves.iter().filter(|(_, each)| *each == value);
            self.best[number] = best.fold(0, |best, (stone, _)| best | stone);
            value
        };
        self.values[number] = Some(value);
        value
    }

    /// The value for the player to move: 1 if that player wins, -1 if the other player wins, 0 for
    /// a draw. `None` for a position that cannot occur. The players' stones are bits, `3 * row +
    /// column`.
    #[must_use]
    pub fn value(&self, own: u32, other: u32) -> Option<i8> {
        if own & other != 0 || (own | other) & !FULL != 0 {
            return None;
        }
        self.values[number(own, other)]
    }

    /// The cells, as bits, with moves that keep the value of a position; none if the game is over.
    #[must_use]
    pub fn best(&self, own: u32, other: u32) -> u32 {
        match self.value(own, other) {
            Some(_) => self.best[number(own, other)],
            None => 0,
        }
    }

    /// [`Solution::best`] for all boards, by their numbers in base three: cell `c` adds `3^c` for a
    /// stone of the player to move, and twice that for a stone of the other player.
    #[must_use]
    pub fn best_moves(&self) -> Vec<u32> {
        self.best.clone()
    }

    /// Number of positions that can occur.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.values.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_game_is_a_draw_of_5478_positions() {
        let solution = Solution::new();
        assert_eq!(solution.positions(), 5478);
        assert_eq!(solution.value(0, 0), Some(0));
        assert_eq!(solution.best(0, 0), FULL, "every first move draws");
        // After a corner only the middle keeps a draw.
        assert_eq!(solution.best(0, 1), 1 << 4);
        assert_eq!(solution.value(0o007, 0o007), None);
        assert_eq!(solution.value(0o030, 0o006), Some(1), "wins at once");
        assert_ne!(solution.best(0o030, 0o006) & 0o040, 0);
        assert_eq!(solution.value(0o006, 0o007), None, "a cell has one stone");
    }
}
