//! A game of two players as an environment for one player: the opponent's move is part of the step.

use crate::checked::{checked_legal_actions, checked_step};
use crate::environment::{Environment, TimeStep};
use crate::forward;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Opponent;

/// A game of two players against a fixed opponent, in the same program. The agent sees the game
/// when it is to move, and its own rewards: 1 for a game that it wins, -1 for a game that it loses.
/// A step is the agent's move and the opponent's answer. An opponent who begins makes its first
/// move in the initial state.
///
/// The game is one of [`boards`](crate::boards), with two players who take turns. Steps from a
/// finished game change nothing.
///
/// ```
/// use podracer_envs::boards::{Against, ConnectFour, OpponentOfAll};
/// use podracer_envs::Environment;
///
/// let environment = Against::new(ConnectFour::default(), OpponentOfAll::Careful);
/// assert_eq!((environment.game.players(), environment.players()), (2, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    bound(deserialize = "E: Default, O: Default + Deserialize<'de>")
)]
#[schemars(bound = "E: Default, O: Default + Serialize + JsonSchema")]
pub struct Against<E, O> {
    /// The game, which has no settings.
    #[serde(skip)]
    pub game: E,
    /// The opponent, which plays the other side.
    pub opponent: O,
    /// The player who makes the first move.
    pub begins: Begins,
}

/// Players who may make the first move of a game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Begins {
    /// The agent makes the first move.
    Agent,
    /// The opponent makes the first move.
    Opponent,
    /// A random player in each game.
    #[default]
    Either,
}

impl<E: Environment, O: Opponent<E>> Against<E, O> {
    /// A game against an opponent, which begins half of the games.
    pub fn new(game: E, opponent: O) -> Self {
        Against { game, opponent, begins: Begins::Either }
    }

    /// The same game with a fixed player to begin.
    #[must_use]
    pub fn beginning(self, begins: Begins) -> Self {
        Against { begins, ..self }
    }

    /// The opponent's move.
    #[track_caller]
    fn answered(&self, state: E::State, key: Key) -> (E::State, TimeStep<E::Observation>) {
        let [choice, step] = key.split_into();
        let action = self.opponent.choose(&self.game, &state, choice);
        checked_step(&self.game, state, action, step)
    }
}

impl<E: Environment, O: Opponent<E>> Environment for Against<E, O> {
    type State = E::State;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> E::State {
        let [first, coin, answer] = key.split_into();
        let first = self.game.initial_state(first);
        let answered = || self.answered(first.clone(), answer).0;
        match self.begins {
            Begins::Agent => first,
            Begins::Opponent => answered(),
            Begins::Either => tree_select(coin.bernoulli([], 0.5), &answered(), &first),
        }
    }

    fn step(
        &self,
        state: E::State,
        action: Tensor,
        key: Key,
    ) -> (E::State, TimeStep<E::Observation>) {
        let [step, answer] = key.split_into();
        let (state, moved) = checked_step(&self.game, state, action, step);
        // If the agent's move ended the game, the opponent's move changes nothing, and pays
        // nothing.
        let (state, answered) = self.answered(state, answer);
        let timestep = TimeStep {
            observation: answered.observation,
            reward: moved.reward - answered.reward,
            terminated: moved.terminated | answered.terminated,
            truncated: moved.truncated | answered.truncated,
        };
        (state, timestep)
    }

    fn observe(&self, state: E::State) -> E::Observation {
        self.game.observe(state)
    }

    fn legal_actions(&self, state: &E::State) -> Option<Tensor> {
        checked_legal_actions(&self.game, state)
    }

    forward!(game, |state| state, except players, resets, legal_actions);
}
