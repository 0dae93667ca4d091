//! Players that are part of a program: opponents of an agent that learns or is evaluated.

use super::solve::tic_tac_toe::Solution;
use super::{CELLS_OF_TIC_TAC_TOE, Othello, Stones, TicTacToe, on};
use crate::environment::Environment;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A player of a game, without memory.
pub trait Opponent<E: Environment>: Clone + 'static {
    /// The action to take in a state, for the player to move. i32 `[]`
    fn choose(&self, game: &E, state: &E::State, key: Key) -> Tensor;
}

/// Players for any game of two players with a mask of legal actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpponentOfAll {
    /// Any legal action, with equal probability.
    #[default]
    Random,
    /// Wins in this move if it can. Otherwise takes an action after which the other player cannot
    /// win in the next move, if there is one. Draws uniformly among equally good actions.
    Careful,
}

/// Players of tic-tac-toe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpponentOfTicTacToe {
    /// Any free cell, with equal probability.
    #[default]
    Random,
    /// Wins at once if it can, and blocks the other player's immediate wins.
    Careful,
    /// Never loses: exhaustive minimax. Draws uniformly among the actions that keep the value of
    /// the game.
    Perfect,
}

/// Players of Othello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpponentOfOthello {
    /// Any legal action, with equal probability.
    #[default]
    Random,
    /// Turns as many stones as it can.
    Greedy,
}

/// One of the true elements of a mask, bool `[n]`, drawn uniformly; 0 if there is none. i32 `[]`
#[track_caller]
pub fn any_of(mask: Tensor, key: Key) -> Tensor {
    let ranks = mask.astype(I32).cumsum(0);
    let count = ranks.index(-1);
    let rank = (key.uniform([]) * count.astype(F32)).astype(I32) + 1;
    select(mask & ranks.eq(rank), arange(mask.len()), 0).sum()
}

/// The elements of `better` if there are any, otherwise all of `mask`.
#[track_caller]
fn rather(better: Tensor, mask: Tensor) -> Tensor {
    select(better.any(), better, mask)
}

/// The mask of the game, or all actions.
#[track_caller]
fn legal<E: Environment>(game: &E, state: &E::State) -> Tensor {
    let all = constant(true).broadcast_to([actions(game)]);
    game.legal_actions(state).unwrap_or(all)
}

/// Number of actions, which are discrete.
fn actions<E: Environment>(game: &E) -> usize {
    game.action_space().bounds(0).1 as usize + 1
}

/// The reward of each action for the player to move, f32 `[n]`, and the states after the actions.
#[track_caller]
fn tried<E: Environment>(game: &E, state: &E::State) -> (Tensor, E::State) {
    vmap((arange(actions(game)), whole(state.clone())), |(action, state)| {
        // Games of two players draw no random numbers.
        let (next, timestep) = game.step(state, action, Key::new(0u32));
        (timestep.reward, next)
    })
}

impl<E: Environment> Opponent<E> for OpponentOfAll {
    fn choose(&self, game: &E, state: &E::State, key: Key) -> Tensor {
        let legal = legal(game, state);
        if *self == OpponentOfAll::Random {
            return any_of(legal, key);
        }
        let (rewards, after) = tried(game, state);
        let answers = vmap(after, |state| tried(game, &state).0.max());
        let safe = rather(legal & answers.le(0.0), legal);
        any_of(rather(legal & rewards.gt(0.0), safe), key)
    }
}

impl Opponent<TicTacToe> for OpponentOfTicTacToe {
    fn choose(&self, game: &TicTacToe, state: &Stones, key: Key) -> Tensor {
        match self {
            OpponentOfTicTacToe::Random => OpponentOfAll::Random.choose(game, state, key),
            OpponentOfTicTacToe::Careful => OpponentOfAll::Careful.choose(game, state, key),
            OpponentOfTicTacToe::Perfect => {
                let table = constant(Solution::new().best_moves());
                let best = table.at(position_number(state));
                any_of(on(best, &CELLS_OF_TIC_TAC_TOE), key)
            }
        }
    }
}

/// The number of a position in [`Solution::best_moves`]. i32 `[]`
#[track_caller]
fn position_number(state: &Stones) -> Tensor {
    let digits = [state.own, state.other].map(|set| on(set, &CELLS_OF_TIC_TAC_TOE).astype(I32));
    let powers = constant((0..9).map(|cell| 3i32.pow(cell)).collect::<Vec<_>>());
    ((digits[0] + 2 * digits[1]) * powers).sum()
}

impl Opponent<Othello> for OpponentOfOthello {
    fn choose(&self, game: &Othello, state: &super::othello::State, key: Key) -> Tensor {
        let legal = legal(game, state);
        if *self == OpponentOfOthello::Random {
            return any_of(legal, key);
        }
        let (_, after) = tried(game, state);
        // The player who moved is then the other player.
        let stones = vmap(after, |state| state.stones.other.popcount().astype(I32));
        let stones = select(legal, stones, -1);
        any_of(stones.eq(stones.max()), key)
    }
}
