//! Board games and puzzles: games of two players who take turns, 2048 and Snake.
//!
//! # Two players
//! An environment has one agent, which plays both sides in turn: each step is one move of the player whose turn it is.
//!
//! - [`observe`](crate::Environment::observe) and
//!   [`legal_actions`](crate::Environment::legal_actions) are for the player to move. After a step
//!   that is the other player. Players always alternate: a player who cannot move has an action
//!   that passes.
//! - [`TimeStep::reward`](crate::TimeStep) is the reward of the player who just moved, 1 for a win,
//!   -1 for a loss, 0 otherwise. The other player's reward is its negative. Only the last step of a
//!   game has a reward other than 0.
//! - So the value of a state for the player to move is `reward - value(next state)`: a discount of
//!   -1, in searches, in returns and in advantages.
//! - An action that is not legal ends the game with a reward of -1. The move is still made as far
//!   as possible.
//! - A step from a finished game changes nothing, pays nothing, and is `terminated`. Every action
//!   is then legal, so that a search may normalise over the mask of any state.
//!
//! [`Environment::players`](crate::Environment::players) is 2 for such an environment.
//!
//! The rules, the observations and the effects of illegal actions follow pgx 2.6.0 (Koyamada et
//! al., "Pgx: Hardware-Accelerated Parallel Game Simulators for Reinforcement Learning", 2023). pgx
//! has rewards for both players; here there is only the reward of the player who moved.
//!
//! # Invariants
//! - The stones of a player are a set of cells: one word with a bit per cell. Only pictures,
//!   observations and masks have an element for each cell or action.

mod against;
pub mod connect_four;
pub mod game_2048;
mod opponents;
pub mod othello;
pub mod snake;
pub mod solve;
pub mod tic_tac_toe;

pub use against::{Against, Begins};
pub use connect_four::ConnectFour;
pub use game_2048::Game2048;
pub use opponents::{Opponent, OpponentOfAll, OpponentOfOthello, OpponentOfTicTacToe, any_of};
pub use othello::Othello;
pub use snake::Snake;
pub use tic_tac_toe::TicTacToe;

use crate::space::Space;
use podracer_dsl::prelude::*;
use tic_tac_toe::CELLS as CELLS_OF_TIC_TAC_TOE;

/// The stones of two players, and the player to move.
#[derive(Tree, Clone, Copy)]
pub struct Stones {
    /// Cells with a stone of the player to move: a word of bits, `u32[]` or `u64[]`.
    pub own: Tensor,
    /// Cells with a stone of the other player.
    pub other: Tensor,
    /// The player to move: 0 for the player who began the game, 1 for the other. `i32[]`
    pub player: Tensor,
    /// True if the game is over. `bool[]`
    pub over: Tensor,
}

/// Result of a move.
#[derive(Tree, Clone, Copy)]
struct Moved {
    /// True if the action was legal. `bool[]`
    legal: Tensor,
    /// Stones of the player who moved, after the move.
    own: Tensor,
    /// Stones of the other player, after the move.
    other: Tensor,
    /// True if the game is over after a legal action. `bool[]`
    done: Tensor,
    /// Reward of the player who moved, if `ended`. `f32[]`
    reward: Tensor,
}

impl Stones {
    /// The first position of a game with these stones.
    #[track_caller]
    fn first(own: Tensor, other: Tensor) -> Stones {
        Stones { own, other, player: scalar(0), over: constant(false) }
    }

    /// Cells with a stone of either player.
    #[track_caller]
    fn filled(&self) -> Tensor {
        self.own | self.other
    }

    /// The position after a move, the reward of the player who moved, and whether the game is over.
    #[track_caller]
    fn after(&self, play: impl FnOnce() -> Moved) -> (Stones, Tensor, Tensor) {
        let unchanged = Moved {
            legal: constant(true),
            own: self.own,
            other: self.other,
            done: constant(false),
            reward: scalar(0.0),
        };
        let outcome = computed_if(!self.over, unchanged, play);
        let Moved { legal, own, other, done, reward } = outcome;
        let reward = select(legal, select(done, reward, 0.0), -1.0);
        let over = self.over | !legal | done;
        let next = Stones {
            own: select(self.over, self.own, other),
            other: select(self.over, self.other, own),
            player: select(self.over, self.player, 1 - self.player),
            over,
        };
        (next, select(self.over, 0.0, reward), over)
    }

    /// The stones of the player who began the game, and of the other player.
    #[track_caller]
    fn by_player(&self) -> [Tensor; 2] {
        let began = self.player.eq(0);
        [select(began, self.own, self.other), select(began, self.other, self.own)]
    }

    /// The planes of the player to move and of the other player, `f32[rows, columns, 2]`. `bits`
    /// has the bits of the cells in row-major order.
    #[track_caller]
    fn observation(&self, rows: usize, columns: usize, bits: &[u32]) -> Tensor {
        let planes = [self.own, self.other].map(|stones| on(stones, bits).astype(F32));
        stack(&planes, 1).reshape([rows, columns, 2])
    }

    /// The stones in planes of an unfinished game, where the player to move is assumed to have
    /// begun it. The inverse of [`Stones::observation`] for words of this type.
    #[track_caller]
    fn seen(planes: Tensor, bits: &[u32], dtype: DType) -> Stones {
        let planes = planes.reshape([bits.len(), 2]);
        let weights = full([bits.len()], 1).astype(dtype) << constant(bits).astype(dtype);
        let [own, other] = [0, 1].map(|player| {
            let stones = planes.index_axis(1, player).gt(0.5);
            select(stones, weights, zeros(dtype, [bits.len()])).sum()
        });
        Stones::first(own, other)
    }

    /// The board as text: X for the player who began, O for the other player. u8 `[rows, columns]`
    #[track_caller]
    fn text(&self, rows: usize, columns: usize, bits: &[u32]) -> Tensor {
        let players = self.players(rows, columns, bits);
        let dots = full([rows, columns], b'.');
        select(players.eq(1), b'X', select(players.eq(2), b'O', dots))
    }

    /// The player with a stone in each cell: 1 for the player who began, 2 for the other player, 0 for none. `i32[rows, columns]`
    #[track_caller]
    fn players(&self, rows: usize, columns: usize, bits: &[u32]) -> Tensor {
        let [first, second] = self.by_player().map(|stones| on(stones, bits).astype(I32));
        (first + 2 * second).reshape([rows, columns])
    }
}

/// The tree of `compute` if it is `wanted`, bool `[]`, and `otherwise` if not. It is computed in a
/// loop that runs once, because outside a loop XLA would compute a move again for every cell of the
/// observation that depends on it.
#[track_caller]
fn computed_if<T: Tree>(wanted: Tensor, otherwise: T, compute: impl FnOnce() -> T) -> T {
    while_loop((wanted, otherwise), |(wanted, _)| wanted, |_| (constant(false), compute())).1
}

/// True for each bit that is in the set. `bool[bits]`
#[track_caller]
fn on(set: Tensor, bits: &[u32]) -> Tensor {
    let dtype = set.dtype();
    let shifts = constant(bits).astype(dtype);
    ((set.broadcast_to([bits.len()]) >> shifts) & 1).ne(0)
}

/// The names of a board's cells, row by row: `a1`, `b1` and so on, with a letter for each column.
fn cell_names(rows: usize, columns: usize) -> impl Iterator<Item = String> {
    let letters = move || ('a'..='z').take(columns);
    (1..=rows).flat_map(move |row| letters().map(move |letter| format!("{letter}{row}")))
}

/// The space of the planes of two players.
fn two_planes(rows: usize, columns: usize) -> Space {
    Space::bounded([rows, columns, 2], 0.0, 1.0)
        .described("stones of the player to move, stones of the other player")
}
