//! `podracer play GAME --against RUN`: the user plays against a trained agent.

use std::io::{self, BufReader, IsTerminal};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use podracer_envs::{AnyEnvironment, Environment};
use podracer_runtime::Checkpoints;
use toml::{Table, Value};

use crate::cli::console::Console;
use crate::cli::program::{INTERRUPTED, Program};
use crate::cli::session::Reopened;
use crate::evaluation::Play;
use crate::loading::Overrides;
use crate::play::{Versus, of_dsl};
use crate::registry::Registry;
use crate::run_directory::RunDirectory;
use crate::settings::UsageError;

/// Games that the user plays against the agent of a run.
pub(super) struct Games<'a> {
    /// The table of the environment.
    pub(super) environment: &'a Table,
    pub(super) run: &'a Path,
    /// Number of games.
    pub(super) number: usize,
    pub(super) seed: u64,
    /// True if the agent begins.
    pub(super) second: bool,
    pub(super) sampled: bool,
    pub(super) best: bool,
    pub(super) allow_nan: bool,
    pub(super) trust: bool,
}

/// Plays the games.
pub(crate) fn versus(
    games: &Games<'_>,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let &Games { environment, run, number, seed, second, sampled, best, allow_nan, trust } = games;
    let game = game(environment, program.registry)?;
    let find = |settings: &_| match best {
        true => RunDirectory::find_best(run),
        false => RunDirectory::find(run, settings, Checkpoints::latest_parameters),
    };
    let overrides = Overrides { trust, ..Overrides::default() };
    let Reopened { ready, found, .. } = Reopened::open(run, find, &overrides, console, program)?;
    let trained = made(&ready.settings.environment, program.registry)?;
    fits(&game, environment, &trained, ready.settings.environment_name(), run)?;
    let stage = of_dsl(game, ready.device().0, ready.device().1)?;
    let streams = (Box::new(BufReader::new(io::stdin())) as _, Box::new(io::stdout()) as _);
    let versus = Versus::new(stage, streams, number, !second);
    let versus = versus.echoing(!io::stdin().is_terminal());
    let tally = versus.tally();
    let play = Play { episodes: number, seed, sampled, allow_nan, views: false };
    let mut evaluator = ready.plays()?.evaluator(Box::new(versus), ready.device(), &play)?;
    let played = evaluator.play(&found.checkpoint, interrupt, &mut |_, _| Ok(()));
    let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
    if !tally.left {
        played.with_context(|| format!("cannot play against {}", run.display()))?;
    }
    console
        .print(&format!("you won {}, drew {} and lost {}\n", tally.won, tally.drawn, tally.lost))?;
    Ok(if tally.left { INTERRUPTED } else { 0 })
}

fn name(environment: &Table) -> &str {
    environment.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The environment of a table, which must be written in the DSL.
fn made(environment: &Table, registry: &Registry) -> Result<AnyEnvironment> {
    let name = name(environment);
    let entry = registry.environment(name).with_context(|| format!("no environment {name}"))?;
    Ok(entry.in_dsl(environment).map_err(|_| {
        UsageError::new(format!(
            "`{name}` steps on the host: --against plays games that are written in the DSL"
        ))
    })?)
}

/// The game, which must have two players.
fn game(environment: &Table, registry: &Registry) -> Result<AnyEnvironment> {
    let game = made(environment, registry)?;
    if game.players() == 2 {
        return Ok(game);
    }
    let two = |entry: &&crate::registry::EnvironmentEntry| {
        let table = Table::from_iter([("name".to_owned(), Value::String(entry.name.clone()))]);
        entry.in_dsl(&table).is_ok_and(|environment| environment.players() == 2)
    };
    let games: Vec<&str> =
        registry.environments().iter().filter(two).map(|entry| entry.name.as_str()).collect();
    let problem = format!(
        "`{}` is for one player: --against plays a game of two, which are {}",
        name(environment),
        games.join(", ")
    );
    Err(UsageError::new(problem).into())
}

/// Checks that the game has the spaces of the agent's training.
fn fits(
    game: &AnyEnvironment,
    environment: &Table,
    trained: &AnyEnvironment,
    trained_name: &str,
    run: &Path,
) -> Result<()> {
    let seen = (game.observation_space().ty(), game.action_space());
    let learnt = (trained.observation_space().ty(), trained.action_space());
    if seen == learnt {
        return Ok(());
    }
    let actions = |space: &podracer_envs::Space| match space {
        podracer_envs::Space::Discrete { n, .. } => format!("one of {n} actions"),
        other => format!("actions {}", other.ty()),
    };
    let problem = format!(
        "the agent of `{}` learnt `{trained_name}`, where it sees {} and takes {}: in `{}` it would see {} and take {}; name a run \
         of that game",
        run.display(),
        learnt.0,
        actions(&learnt.1),
        name(environment),
        seen.0,
        actions(&seen.1)
    );
    Err(UsageError::new(problem).into())
}
