//! Games of an agent against fixed opponents: the agent, its opponent and the game are one program.

use std::fmt;

use anyhow::{Context, Result};
use podracer_dsl::prelude::*;
use podracer_dsl::tree::AnyTree;
use podracer_envs::Environment;
use podracer_envs::boards::{
    ConnectFour, Opponent, OpponentOfAll, OpponentOfOthello, OpponentOfTicTacToe, Othello,
    TicTacToe,
};
use podracer_rl::anakin::Feedback;
use podracer_rl::learn::{Act, Agent, AnyAgent, LaneId, Learn, Mode};
use podracer_rl::search::PlainMcts;
use podracer_runtime::{Array, Client, Host, Placement, Program};
use serde::de::DeserializeOwned;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::builder::on_device;
use crate::evaluation::Played;
use crate::settings::UsageError;

/// Number of games per side against each opponent at the end of a training.
const GAMES: usize = 500;
/// The name of plain Monte Carlo tree search among opponents.
const MCTS: &str = "mcts";

/// A game of two players, and the opponents that agents are measured against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opponents {
    /// Names of the game's own opponents. `mcts:N` is available in every game.
    names: &'static [&'static str],
    /// Names of the opponents for the games at the end of a training.
    at_end: &'static [&'static str],
    play: Play,
}

/// Function that plays one of a game's opponents.
type Play = fn(&Opposed, &Match, &AnyAgent, &Host<AnyTree>, (&Client, usize)) -> Result<Sides>;

/// Tic-tac-toe and its opponents.
pub(super) const TIC_TAC_TOE: Opponents = Opponents {
    names: &["random", "careful", "perfect"],
    at_end: &["random", "perfect"],
    play: played::<TicTacToe, OpponentOfTicTacToe>,
};
/// Connect Four and its opponents.
pub(super) const CONNECT_FOUR: Opponents = Opponents {
    names: &["random", "careful"],
    at_end: &["random", "careful"],
    play: played::<ConnectFour, OpponentOfAll>,
};
/// Othello and its opponents.
pub(super) const OTHELLO: Opponents = Opponents {
    names: &["random", "greedy"],
    at_end: &[],
    play: played::<Othello, OpponentOfOthello>,
};

/// An opponent of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opposed {
    /// One of the game's own opponents, by name.
    Named(&'static str),
    /// Plain Monte Carlo tree search with this number of simulations.
    Mcts(usize),
}

/// The opponent as in `--against`: `perfect`, `mcts:64`.
impl fmt::Display for Opposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opposed::Named(name) => f.write_str(name),
            Opposed::Mcts(simulations) => write!(f, "{MCTS}:{simulations}"),
        }
    }
}

/// The games to play against an opponent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    /// Number of games with the agent moving first, and moving second.
    pub(crate) games: [usize; 2],
    /// Seed of all randomness in the games.
    pub(crate) seed: u64,
    /// True if the agent draws its actions as in training.
    pub(crate) sampled: bool,
}

/// The agent's rewards and moves in the games that it begins, and in the games that it does not
/// begin.
pub(crate) type Sides = [Vec<Played>; 2];

/// Numbers of games by result, for the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Score {
    pub(crate) won: usize,
    pub(crate) drawn: usize,
    pub(crate) lost: usize,
}

impl Score {
    pub(crate) fn of(games: &[Played]) -> Score {
        let count = |counts: fn(f32) -> bool| {
            games.iter().filter(|game| counts(game.episode_return)).count()
        };
        Score { won: count(|x| x > 0.0), drawn: count(|x| x == 0.0), lost: count(|x| x < 0.0) }
    }
}

impl Opponents {
    /// The opponent with a name from the user, such as `perfect` or `mcts:64`. `mcts` alone uses as
    /// many simulations as the agent's own search.
    ///
    /// # Errors [`UsageError`] for an unknown name, and for `mcts` against an agent that does not search.
    pub(crate) fn named(&self, text: &str, simulations: Option<usize>) -> Result<Opposed> {
        if let Some(name) = self.names.iter().find(|name| **name == text) {
            return Ok(Opposed::Named(name));
        }
        let counted = text.strip_prefix(MCTS).map(|rest| match rest.strip_prefix(':') {
            Some(number) => number.parse().ok().filter(|number| *number > 0),
            None if rest.is_empty() => simulations,
            None => None,
        });
        match counted {
            Some(Some(simulations)) => Ok(Opposed::Mcts(simulations)),
            Some(None) if text == MCTS => Err(UsageError::new(
                "this agent does not search: say how many simulations the opponent `mcts` has, such as `mcts:50`",
            )
            .into()),
            _ => {
                let known = self.names.join("`, `");
                Err(UsageError::new(format!(
                    "there is no opponent `{text}`: expected `{known}`, or `mcts:N` with N simulations"
                ))
                .into())
            }
        }
    }

    /// Plays games against an opponent, all at once, on a device by its index. `state` is the agent's.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(crate) fn play(
        &self,
        opponent: &Opposed,
        games: &Match,
        agent: &AnyAgent,
        state: &Host<AnyTree>,
        device: (&Client, usize),
    ) -> Result<Sides> {
        (self.play)(opponent, games, agent, state, device)
    }

    /// Plays 500 greedy games on each side against each opponent for the end of a training. Returns
    /// the numbers of games won, drawn and lost, by name.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn measure(
        &self,
        agent: &AnyAgent,
        state: &Host<AnyTree>,
        device: (&Client, usize),
    ) -> Result<Vec<(String, f64)>> {
        let games = Match { games: [GAMES; 2], seed: 0, sampled: false };
        let mut numbers = Vec::new();
        for &name in self.at_end {
            let sides = self.play(&Opposed::Named(name), &games, agent, state, device)?;
            for (side, order) in sides.iter().zip(["first", "second"]) {
                let Score { won, drawn, lost } = Score::of(side);
                for (what, number) in [("won", won), ("drawn", drawn), ("lost", lost)] {
                    let name = format!("{what}_against_{name}_moving_{order}");
                    numbers.push((name, number as f64));
                }
            }
        }
        Ok(numbers)
    }
}

/// Plays against one of the opponents `O`, which serde knows by name, or against plain MCTS.
fn played<E, O>(
    opponent: &Opposed,
    games: &Match,
    agent: &AnyAgent,
    state: &Host<AnyTree>,
    device: (&Client, usize),
) -> Result<Sides>
where
    E: Environment<Observation = Tensor> + Default,
    O: Opponent<E> + DeserializeOwned,
{
    let game = E::default();
    match *opponent {
        Opposed::Mcts(simulations) => {
            games_of(agent, &game, &PlainMcts { simulations }, games, state, device)
        }
        Opposed::Named(name) => {
            let named = O::deserialize(StrDeserializer::<ValueError>::new(name));
            games_of(agent, &game, &named.context("no such opponent")?, games, state, device)
        }
    }
}

fn games_of<E: Environment<Observation = Tensor>, O: Opponent<E>>(
    agent: &AnyAgent,
    game: &E,
    opponent: &O,
    games: &Match,
    state: &Host<AnyTree>,
    (client, device): (&Client, usize),
) -> Result<Sides> {
    let [first, second] = games.games;
    let lanes = first + second;
    let mode = if games.sampled { Mode::Explore } else { Mode::Greedy };
    let spec = eval_shape((key(),), |(key,)| agent.init(key))?;
    let traced = trace((&spec, key()), |(state, key)| {
        let params = agent.params(&state);
        vmap((arange(lanes), key.split_n(lanes)), |(index, key)| {
            let second = index.ge(first as i32);
            one_game(agent, &params, game, opponent, (second, LaneId { index, lanes }), mode, key)
        })
    })?;
    let placements = vec![Placement::Replicated; traced.results().leaves().len()];
    let program = Program::compile(client, "matches", &traced, placements, &on_device(device))?;
    // A seed that differs from every seed of the training.
    let seed = program.upload(Array::key(games.seed ^ u64::from_le_bytes(*b"matches ")))?;
    let state = program.upload(state.clone())?;
    let (rewards, moves) = &*program.run((state, seed))?.to_host()?;
    let played = rewards.to_vec::<f32>()?.into_iter().zip(moves.to_vec::<i32>()?);
    let mut played: Vec<Played> = played
        .map(|(episode_return, moves)| Played {
            episode_return,
            length: moves.unsigned_abs(),
            success: None,
        })
        .collect();
    let second = played.split_off(first);
    Ok([played, second])
}

/// The agent's reward in a game, f32 `[]`, and its number of moves, i32 `[]`. `second` is true if the opponent moves first.
#[track_caller]
fn one_game<E: Environment<Observation = Tensor>, O: Opponent<E>>(
    agent: &AnyAgent,
    params: &<AnyAgent as Agent>::Params,
    game: &E,
    opponent: &O,
    (second, lane): (Tensor, LaneId),
    mode: Mode,
    key: Key,
) -> (Tensor, Tensor) {
    let [first, key] = key.split_into();
    let memory = agent.begin_episode(agent.init_memory(lane));
    let feedback = Feedback::begin(&game.action_space().ty());
    let start = (game.initial_state(first), memory, feedback, second);
    let begin = (start, key, scalar(0.0), scalar(0), scalar(false));
    let (_, _, reward, moves, _) = while_loop(
        begin,
        |(.., over)| !over,
        |((state, memory, feedback, waits), key, total, moves, _)| {
            let [key, choice, own, reply, answer] = key.split_into();
            // In the first round of a game that the opponent begins, the agent waits.
            let input = feedback.input(game.observe(state.clone()), game.legal_actions(&state));
            let act = agent.act(params, memory.clone(), input, mode, choice);
            let Act { action, memory: remembered, .. } = act;
            let (moved, step) = game.step(state.clone(), action, own);
            let state = tree_select(waits, &state, &moved);
            let memory = tree_select(waits, &memory, &remembered);
            // A step from a finished game changes nothing and gives no reward.
            let (next, answered) =
                game.step(state.clone(), opponent.choose(game, &state, reply), answer);
            let reward = select(waits, 0.0, step.reward) - answered.reward;
            let over = answered.done();
            let feedback = tree_select(waits, &feedback, &Feedback::after(action, reward, over));
            let state = (next, memory, feedback, scalar(false));
            (state, key, total + reward, moves + (!waits).astype(I32), over)
        },
    );
    (reward, moves)
}
