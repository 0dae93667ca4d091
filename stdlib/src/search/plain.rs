//! Plain Monte Carlo tree search: a player without a network, as an opponent to measure agents
//! against.

use super::alphazero::{SearchOptions, environment_policy};
use super::policies::MuZeroOptions;
use super::qtransform::qtransform_by_min_max;
use podracer_dsl::prelude::*;
use podracer_envs::boards::{Opponent, any_of};
use podracer_envs::{Environment, Space};

/// Plain Monte Carlo tree search in a game of two players, with the game as the model:
/// [`alphazero_policy`](super::alphazero_policy) with uniform priors and without noise at the root.
/// The value of a state is the outcome of one game with random moves. The most visited action is
/// taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainMcts {
    /// Number of simulations of a search, at least 1. Each adds a node and plays one random game
    /// from it.
    pub simulations: usize,
}

/// Weight of the uniform priors in pUCT. With it the bonus of an action is about the standard
/// deviation of its games' mean.
const EXPLORATION: f64 = 2.0;

impl<E: Environment> Opponent<E> for PlainMcts {
    #[track_caller]
    fn choose(&self, game: &E, state: &E::State, key: Key) -> Tensor {
        let _scope = scope("PlainMcts::choose");
        let states = tree_map(state, |leaf| leaf.expand_dims(0));
        let actions = actions(game);
        let evaluate = |key: Key, states: &E::State, _| {
            let values = vmap((states.clone(), key.split_n(1)), |(state, key)| {
                random_outcome(game, state, key)
            });
            (zeros(F32, [1, actions]), values)
        };
        let options = SearchOptions::MuZero(MuZeroOptions {
            dirichlet_fraction: 0.0.into(),
            temperature: 0.0.into(),
            qtransform: qtransform_by_min_max(-1.0, 1.0),
            pb_c_init: EXPLORATION.into(),
            ..MuZeroOptions::default()
        });
        let simulations = self.simulations;
        environment_policy(key, game, states, evaluate, -1.0, simulations, &options).action.index(0)
    }
}

/// Number of actions, which must be discrete.
fn actions<E: Environment>(game: &E) -> usize {
    match game.action_space() {
        Space::Discrete { n, .. } => n,
        other => panic!("plain MCTS plays games of discrete actions, and this game has {other:?}"),
    }
}

/// The outcome of a game that continues from a state with random moves, for the player to move: 1
/// for a win, -1 for a loss. 0 if the game is already over. f32 `[]`
#[track_caller]
fn random_outcome<E: Environment>(game: &E, state: E::State, key: Key) -> Tensor {
    let begin = (key, state, scalar(1.0), scalar(0.0), scalar(false));
    let (_, _, _, outcome, _) = while_loop(
        begin,
        |(.., over)| !over,
        |(key, state, sign, outcome, _)| {
            let [key, choice, step_key] = key.split_into();
            let all = || full([actions(game)], true);
            let legal = game.legal_actions(&state).unwrap_or_else(all);
            let (state, step) = game.step(state, any_of(legal, choice), step_key);
            // The next move, and its reward, belong to the other player.
            (key, state, -sign, outcome + sign * step.reward, step.done())
        },
    );
    outcome
}
