//! A game of two players against the user. For the agent it is an environment, with an opponent
//! that reads moves.

use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use podracer_envs::Space;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep, StepMemory};

use super::{Colours, Picture, Pictures};

/// Results of games, for the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Games that the user won.
    pub won: usize,
    /// Games without a winner.
    pub drawn: usize,
    /// Games that the agent won.
    pub lost: usize,
    /// True if the user left before the last game was over.
    pub left: bool,
}

/// A game of two players, with one side as the agent's environment.
pub struct Versus {
    game: Box<dyn HostEnvironment>,
    pictures: Pictures,
    /// The last reset or step of the game: the agent's or the user's.
    memory: StepMemory,
    /// The outcome of the agent's last step.
    outcome: Option<(f32, bool, bool)>,
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    person_begins: bool,
    /// True if the user's lines are written to the output.
    echoes: bool,
    /// Games to play.
    games: usize,
    /// Moves of both players in this game.
    moves: usize,
    tally: Arc<Mutex<Tally>>,
}

impl Versus {
    /// `games` games of an environment of two players, with its pictures. The user's moves are
    /// lines of `input`.
    pub fn new(
        (game, pictures): (Box<dyn HostEnvironment>, Pictures),
        (input, output): (Box<dyn BufRead + Send>, Box<dyn Write + Send>),
        games: usize,
        person_begins: bool,
    ) -> Self {
        let memory = StepMemory::new(game.spec());
        let tally = Arc::default();
        Versus {
            game,
            pictures,
            memory,
            outcome: None,
            input,
            output,
            person_begins,
            echoes: false,
            games,
            moves: 0,
            tally,
        }
    }

    /// The same, optionally writing the user's lines to the output: for input that is not typed and
    /// that no terminal shows.
    #[must_use]
    pub fn echoing(self, echoes: bool) -> Self {
        Versus { echoes, ..self }
    }

    /// Results of the games, which are complete after they are played.
    #[must_use]
    pub fn tally(&self) -> Arc<Mutex<Tally>> {
        Arc::clone(&self.tally)
    }

    fn print(&mut self, text: &str) -> Result<(), HostError> {
        let written = self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush());
        written.map_err(HostError::failed)
    }

    fn with_tally<T>(&self, f: impl FnOnce(&mut Tally) -> T) -> T {
        f(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of games that are over.
    fn finished(&self) -> usize {
        self.with_tally(|tally| tally.won + tally.drawn + tally.lost)
    }

    /// Begins a game with this first picture; a user who begins makes the first move.
    fn begin(&mut self, board: Option<&Picture>) -> Result<(), HostError> {
        self.moves = 0;
        let stones = if self.person_begins { "X and begin" } else { "O, and the agent begins" };
        let (game, games) = (self.finished() + 1, self.games);
        let notation = Notation::of(&self.game.spec().action);
        let moves = notation.described();
        self.print(&format!(
            "game {game} of {games}: you are {stones}. A move is {moves}; `q` leaves.\n\n"
        ))?;
        if !self.person_begins {
            return Ok(());
        }
        self.print(&board.map_or_else(String::new, |board| notation.board(board)))?;
        let action = self.ask(&notation)?;
        self.play(action)?;
        Ok(())
    }

    /// Makes a move. Returns the picture after it, and the next game's first picture if this game
    /// is over.
    fn play(&mut self, action: i32) -> Result<Vec<Picture>, HostError> {
        self.game.step(&action.to_le_bytes(), &mut self.memory.step())?;
        self.moves += 1;
        Ok(self.pictures.take())
    }

    /// Asks until the answer is a legal move.
    fn ask(&mut self, notation: &Notation) -> Result<i32, HostError> {
        let actions = notation.names.len();
        let allowed = match self.memory.legal_actions() {
            [] => vec![true; actions],
            masks => masks.iter().map(|mask| *mask == 1).collect(),
        };
        let allowed = |action: usize| allowed.get(action) == Some(&true);
        let legal: Vec<&str> =
            (0..actions).filter(|&a| allowed(a)).map(|action| &*notation.names[action]).collect();
        loop {
            self.print("your move: ")?;
            let mut line = String::new();
            if self.input.read_line(&mut line).map_err(HostError::failed)? == 0 {
                let problem = format!(
                    "the input ended in game {} after {} moves: give each move in a line, or `q` to leave",
                    self.finished() + 1,
                    self.moves
                );
                return Err(HostError::failed(problem));
            }
            let answer = line.trim().to_lowercase();
            if self.echoes {
                self.print(&format!("{answer}\n"))?;
            }
            if answer == "q" {
                self.with_tally(|tally| tally.left = true);
                return Err(HostError::failed("the person left"));
            }
            match (0..actions).find(|&action| notation.names[action] == answer) {
                Some(action) if allowed(action) => return Ok(action as i32),
                Some(_) => {
                    self.print(&format!("{answer} is not allowed now: {}\n", legal.join(" ")))?;
                }
                None => {
                    let described = notation.described();
                    self.print(&format!("expected {described}, got `{answer}`\n"))?;
                }
            }
        }
    }

    /// Makes the agent's move and the user's answer. Returns the agent's reward and the end of the
    /// game.
    fn step_once(&mut self, action: i32) -> Result<(f32, bool, bool), HostError> {
        let pictures = self.play(action)?;
        let notation = Notation::of(&self.game.spec().action);
        self.print(&format!("agent: {}\n", notation.names[action as usize]))?;
        let mut reward = self.memory.reward()[0];
        let (mut shown, mut finished) = (pictures, self.memory.done(0));
        let over = |(terminated, truncated)| terminated || truncated;
        if !over(finished) {
            if let Some(board) = shown.first() {
                self.print(&notation.board(board))?;
            }
            let action = self.ask(&notation)?;
            shown = self.play(action)?;
            reward -= self.memory.reward()[0];
            finished = self.memory.done(0);
        }
        if over(finished) {
            if let Some(board) = shown.first() {
                self.print(&notation.board(board))?;
            }
            let result = self.with_tally(|tally| match reward {
                reward if reward < 0.0 => {
                    tally.won += 1;
                    "you win"
                }
                reward if reward > 0.0 => {
                    tally.lost += 1;
                    "the agent wins"
                }
                _ => {
                    tally.drawn += 1;
                    "a draw"
                }
            });
            let (game, moves) = (self.finished(), self.moves);
            self.print(&format!("game {game}: {result} after {moves} moves\n\n"))?;
            if game < self.games {
                self.begin(shown.last())?;
            }
        }
        Ok((reward, finished.0, finished.1))
    }

    fn show(&self, step: &mut HostStep<'_>) {
        step.observation.copy_from_slice(self.memory.observation());
        step.next_observation.copy_from_slice(self.memory.next_observation());
        step.legal_actions.copy_from_slice(self.memory.legal_actions());
    }
}

impl HostEnvironment for Versus {
    fn spec(&self) -> &HostSpec {
        self.game.spec()
    }

    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.check(self.spec())?;
        self.game.reset(seed, first, &mut self.memory.step())?;
        let pictures = self.pictures.take();
        self.begin(pictures.first())?;
        self.show(step);
        step.begin();
        Ok(())
    }

    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        let length = HostError::Length { what: "the actions", expected: 4, got: actions.len() };
        let action = actions.try_into().map(i32::from_le_bytes).map_err(|_| length)?;
        self.outcome = Some(self.step_once(action)?);
        Ok(())
    }

    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.check(self.spec())?;
        let outcome = self.outcome.take();
        let (reward, terminated, truncated) =
            outcome.ok_or(HostError::Order("`receive` comes after `send`"))?;
        self.show(step);
        step.reward[0] = reward;
        (step.terminated[0], step.truncated[0]) = (terminated.into(), truncated.into());
        Ok(())
    }
}

/// Names of moves for the user: the action space's names, or the numbers of the actions.
struct Notation {
    names: Vec<String>,
}

impl Notation {
    fn of(space: &Space) -> Notation {
        let numbers = || (0..space.counts().iter().product()).map(|action| action.to_string());
        let names = space.names();
        Notation { names: if names.is_empty() { numbers().collect() } else { names } }
    }

    /// The moves, shortened to the first three and the last two if there are many.
    fn described(&self) -> String {
        const SHOWN: usize = 12;
        match &self.names[..] {
            few if few.len() <= SHOWN => format!("one of {}", few.join(" ")),
            many => {
                let (first, last) = (&many[..3], &many[many.len() - 2..]);
                format!("one of {} .. {}", first.join(" "), last.join(" "))
            }
        }
    }

    /// The board as text, with the names of columns above it, and the numbers of rows if moves name
    /// cells.
    fn board(&self, board: &Picture) -> String {
        let Some(text) = &board.text else { return board.text(Colours::None) + "\n" };
        let columns = text.lines().next().map_or(0, str::len);
        let by_column = self.names.len() == columns;
        let head: Vec<String> = match by_column {
            true => self.names.clone(),
            false => ('a'..='z').take(columns).map(String::from).collect(),
        };
        let margin = |row: &str| if by_column { String::new() } else { format!("{row} ") };
        let mut shown = format!("{}{}\n", margin(" "), head.join(" "));
        for (row, line) in (1..).zip(text.lines()) {
            let cells: Vec<String> = line.chars().map(String::from).collect();
            shown += &format!("{}{}\n", margin(&row.to_string()), cells.join(" "));
        }
        shown + "\n"
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use podracer_envs::boards::{ConnectFour, TicTacToe};
    use podracer_envs::{AnyEnvironment, Environment};
    use podracer_runtime::{Client, ClientOptions};

    use super::*;
    use crate::play::of_dsl;

    /// Output that a test can read.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Plays the agent's moves against the user's lines: the text, the rewards, and the tally.
    fn played<E: Environment>(
        game: E,
        (games, person_begins): (usize, bool),
        lines: &str,
        agent: &[i32],
    ) -> (String, Vec<Result<f32, String>>, Tally) {
        let client =
            Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })
                .unwrap();
        let stage = of_dsl(AnyEnvironment::new(game), &client, 0).unwrap();
        let paper = Paper::default();
        let input = Box::new(Cursor::new(lines.to_owned()));
        let streams = (input as Box<dyn BufRead + Send>, Box::new(paper.clone()) as _);
        let mut versus = Versus::new(stage, streams, games, person_begins).echoing(true);
        let tally = versus.tally();
        let mut memory = StepMemory::new(versus.spec());
        versus.reset(0, 0, &mut memory.step()).unwrap();
        let mut rewards = Vec::new();
        for action in agent {
            let step = versus.step(&action.to_le_bytes(), &mut memory.step());
            rewards.push(step.map(|()| memory.reward()[0]).map_err(|error| error.to_string()));
        }
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let tally = *tally.lock().unwrap();
        (text, rewards, tally)
    }

    #[test]
    fn a_person_wins_at_connect_four_and_loses_the_next_game() {
        let lines = "4\n4\nnine\n4\n4\n1\n2\n5\n6\n";
        let (text, rewards, tally) =
            played(ConnectFour::default(), (2, true), lines, &[0, 0, 0, 3, 3, 3, 3]);
        let expected = [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0];
        // The fourth line ends the first game, and the fifth begins the second game.
        assert_eq!(rewards, expected.map(Ok), "{text}");
        assert_eq!(tally, Tally { won: 1, lost: 1, ..Tally::default() });
        assert!(text.starts_with("game 1 of 2: you are X and begin."), "{text}");
        assert!(text.contains("expected one of 1 2 3 4 5 6 7, got `nine`"));
        assert!(text.contains("game 1: you win after 7 moves"), "{text}");
        assert!(text.contains("game 2: the agent wins after 8 moves"), "{text}");
        assert!(text.contains("O . . X . . .\nO . . X . . .\nO . . X . . .\n"), "{text}");
        assert!(text.contains("your move: 4\nagent: 1\n1 2 3 4 5 6 7\n"), "{text}");
    }

    #[test]
    fn moves_that_are_not_allowed_are_asked_for_again() {
        let (text, rewards, tally) =
            played(TicTacToe::default(), (1, false), "b2\nd1\na1\nq\n", &[4, 8]);
        assert_eq!(rewards[0], Ok(0.0), "{text}");
        assert_eq!(rewards[1], Err("the person left".to_owned()));
        assert!(tally.left && text.contains("b2 is not allowed now: a1 b1 c1 a2 c2 a3 b3 c3"));
        assert!(text.contains("expected one of a1 b1 c1 a2 b2 c2 a3 b3 c3, got `d1`"));
        assert!(text.contains("  a b c\n1 . . .\n2 . X .\n3 . . .\n"), "{text}");
        let (_, rewards, tally) = played(TicTacToe::default(), (1, false), "", &[4]);
        let problem = rewards[0].clone().unwrap_err();
        assert!(problem.contains("the input ended in game 1 after 1 moves"), "{problem}");
        assert_eq!(tally, Tally::default());
    }
}
