//! `podracer eval`: plays whole episodes with the parameters of a run's last checkpoint.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use podracer_runtime::{Checkpoint, Checkpoints};
use serde::Serialize;
use toml::Value;

use super::console::Console;
use super::numbers::at_least_one;
use super::program::{INTERRUPTED, Program};
use super::session::Reopened;
use super::session::ready::Ready;
use super::signals;
use crate::evaluation::{Play, Played, agent_state};
use crate::format::plural;
use crate::loading::Overrides;
use crate::registry::{Match, Registry, Score};
use crate::run_directory::RunDirectory;
use crate::settings::UsageError;

#[derive(Args, Debug)]
pub(super) struct EvalArguments {
    /// The run directory
    pub(super) run: PathBuf,
    /// Play a game of two players against a fixed opponent, moving first in half of the games:
    /// `random`, another opponent of the game, or `mcts:N`, plain tree search with N simulations
    /// (`mcts`: as many as the agent's)
    #[arg(long, value_name = "OPPONENT")]
    pub(super) against: Option<String>,
    /// Play in another implementation of the environment: `gymnasium`, for the environments that
    /// Gymnasium has too
    #[arg(long = "in", value_name = "PACKAGE", conflicts_with = "against", value_parser = ["gymnasium"])]
    pub(super) elsewhere: Option<String>,
    /// Number of episodes
    #[arg(long, default_value = "100", allow_negative_numbers = true, value_parser = at_least_one("episode"))]
    pub(super) episodes: NonZero<usize>,
    /// Seed of the episodes; no seed repeats episodes of the training
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Draw actions from the policy, as in training, instead of taking the greedy ones
    #[arg(long)]
    pub(super) sample: bool,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(super) trust: bool,
    /// Play even with parameters that are NaN or infinite
    #[arg(long)]
    pub(super) allow_nan: bool,
    /// Play with the parameters of the best evaluation during the training (train.eval_every)
    #[arg(long)]
    pub(super) best: bool,
    /// Print the result as one JSON object, the last line of standard output
    #[arg(long)]
    pub(super) json: bool,
}

/// The result, which `--json` prints.
#[derive(Debug, Serialize)]
struct EvalResult {
    experiment: String,
    run_dir: String,
    /// Iterations of the checkpoint.
    iterations: u64,
    /// `greedy` or `sampled`.
    policy: &'static str,
    seed: u64,
    episodes: usize,
    episode_return: Spread,
    /// Steps, or the agent's moves against an opponent.
    episode_length: Spread,
    /// Share of the task that was done, for environments that report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    episode_success: Option<Spread>,
    /// The package with the environment, if it is not podracer's own.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    elsewhere: Option<String>,
    interrupted: bool,
    #[serde(flatten)]
    against: Option<Against>,
}

/// The results of games against a fixed opponent.
#[derive(Debug, Serialize)]
struct Against {
    opponent: String,
    moving_first: Score,
    moving_second: Score,
}

/// Mean, standard deviation and range of some numbers.
#[derive(Debug, Serialize)]
struct Spread {
    mean: f64,
    /// The standard deviation of these numbers.
    std: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// Mean, standard deviation and range of the numbers; NaN without any.
    fn of(numbers: &[f64]) -> Self {
        let mean_of = |numbers: &mut dyn Iterator<Item = f64>, count: usize| {
            numbers.sum::<f64>() / count as f64
        };
        let mean = mean_of(&mut numbers.iter().copied(), numbers.len());
        let squares = &mut numbers.iter().map(|number| (number - mean).powi(2));
        Spread {
            mean,
            std: mean_of(squares, numbers.len()).sqrt(),
            min: numbers.iter().copied().fold(f64::NAN, f64::min),
            max: numbers.iter().copied().fold(f64::NAN, f64::max),
        }
    }
}

/// Text such as `mean 0.950, std 0.310, from -1 to 1`.
impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spread { mean, std, min, max } = self;
        write!(f, "mean {mean:.3}, std {std:.3}, from {min} to {max}")
    }
}

/// A line for each side.
impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (order, score) in [("first", self.moving_first), ("second", self.moving_second)] {
            let Score { won, drawn, lost } = score;
            let opponent = &self.opponent;
            writeln!(
                f,
                "against {opponent}, moving {order}: won {won}, drew {drawn}, lost {lost}"
            )?;
        }
        Ok(())
    }
}

/// Plays the games of `play` against the opponent with this name. The agent moves first in half of
/// them, rounded up.
fn matches(
    opponent: &str,
    play: &Play,
    ready: &Ready,
    checkpoint: &Checkpoint,
    registry: &Registry,
) -> Result<(Vec<Played>, Against)> {
    let name = ready.settings.environment_name();
    let opponents = registry.environment(name).and_then(|entry| entry.opponents);
    let Some(opponents) = opponents else {
        return Err(UsageError::new(format!(
            "--against: `{name}` has no fixed opponents; {} have",
            registry.with_opponents().join(", ")
        ))
        .into());
    };
    let agent = ready.plays()?.agent();
    let simulations = ready.settings.agent.get("simulations").and_then(Value::as_integer);
    let simulations = simulations.and_then(|number| usize::try_from(number).ok());
    let opponent = opponents.named(opponent, simulations)?;
    let second = play.episodes / 2;
    let games = [play.episodes - second, second];
    let games = Match { games, seed: play.seed, sampled: play.sampled };
    let state = agent_state(agent, checkpoint, play.allow_nan)?;
    let sides = opponents.play(&opponent, &games, agent, &state, ready.device())?;
    let [moving_first, moving_second] = [0, 1].map(|side| Score::of(&sides[side]));
    let against = Against { opponent: opponent.to_string(), moving_first, moving_second };
    Ok((sides.concat(), against))
}

pub(super) fn eval(
    args: &EvalArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    // The last bits that another machine computes differently deserve no warning here.
    let find = |settings: &_| match args.best {
        true => RunDirectory::find_best(&args.run),
        false => RunDirectory::find(&args.run, settings, Checkpoints::latest_parameters),
    };
    let overrides = Overrides { trust: args.trust, ..Overrides::default() };
    let Reopened { ready, found, .. } =
        Reopened::open(&args.run, find, &overrides, console, program)?;
    let &EvalArguments { episodes, seed, sample: sampled, allow_nan, .. } = args;
    let play = Play { episodes: episodes.get(), seed, sampled, allow_nan, ..Play::default() };
    let _heeding = signals::heed();
    let (played, against) = match &args.against {
        Some(opponent) => {
            let (played, against) =
                matches(opponent, &play, &ready, &found.checkpoint, program.registry)?;
            (played, Some(against))
        }
        None => {
            let evaluator = match args.elsewhere {
                Some(_) => ready.evaluator_in_gymnasium(&play, program.registry),
                None => ready.evaluator(&play),
            };
            let played = evaluator
                .and_then(|mut one| one.play(&found.checkpoint, interrupt, &mut |_, _| Ok(())))
                .with_context(|| format!("cannot play {}", ready.settings.experiment))?;
            (played, None)
        }
    };
    let spread = |number_of: fn(&Played) -> f64| {
        Spread::of(&played.iter().map(number_of).collect::<Vec<_>>())
    };
    let successes: Vec<f64> =
        played.iter().filter_map(|episode| episode.success).map(f64::from).collect();
    let outcome = EvalResult {
        run_dir: args.run.display().to_string(),
        iterations: found.checkpoint.iterations,
        policy: if play.sampled { "sampled" } else { "greedy" },
        seed: play.seed,
        episodes: played.len(),
        episode_return: spread(|episode| f64::from(episode.episode_return)),
        episode_length: spread(|episode| f64::from(episode.length)),
        episode_success: (!successes.is_empty()).then(|| Spread::of(&successes)),
        elsewhere: args.elsewhere.clone(),
        interrupted: played.len() < play.episodes,
        experiment: ready.settings.experiment,
        against,
    };
    console.print(&if args.json {
        serde_json::to_string(&outcome)? + "\n"
    } else {
        format!(
            "{} after {}{}, {} actions, {}, seed {}\n{}return: {}\nlength: {}\n{}",
            outcome.experiment,
            plural(outcome.iterations as usize, "iteration"),
            outcome.elsewhere.map_or_else(String::new, |package| format!(", in {package}")),
            outcome.policy,
            plural(outcome.episodes, "episode"),
            outcome.seed,
            outcome.against.map_or_else(String::new, |against| against.to_string()),
            outcome.episode_return,
            outcome.episode_length,
            outcome.episode_success.map_or_else(String::new, |share| format!("success: {share}\n")),
        )
    })?;
    Ok(if outcome.interrupted { INTERRUPTED } else { 0 })
}

#[cfg(test)]
mod tests {
    use crate::cli::fake::{podracer, short};

    #[test]
    fn episodes_are_played_with_what_was_learnt() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(podracer(&short(folder.path(), &[])).code, 0);
        let run = folder.path().to_str().unwrap();
        let printed = podracer(&["eval", run, "--episodes=4", "--sample", "--seed=7", "--json"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let result = printed.json();
        for (key, expected) in [
            ("iterations", serde_json::Value::from(80)),
            ("episodes", 4.into()),
            ("policy", "sampled".into()),
            ("seed", 7.into()),
            ("experiment", "cartpole-ppo".into()),
        ] {
            assert_eq!(result[key], expected, "{key}: {result}");
        }
        let spread = serde_json::json!({"mean": 5.5, "std": 0.5, "min": 5.0, "max": 6.0});
        assert_eq!(result["episode_return"], spread);
        assert_eq!(result["episode_length"]["std"], 0.0);
        let printed = podracer(&["eval", run, "--episodes=1"]);
        let expected = "cartpole-ppo after 80 iterations, greedy actions, 1 episode, seed 0\n\
                        return: mean 5.000, std 0.000, from 5 to 5\n";
        assert!(printed.out.starts_with(expected), "{}", printed.out);
        assert_eq!(podracer(&["eval", run, "--episodes=0"]).code, 2);
        let without = podracer(&["eval", run, "--best"]);
        assert_eq!(without.code, 2);
        assert!(without.err.contains("has no best/"), "{}", without.err);
        let nowhere = podracer(&["eval", "nowhere"]);
        assert_eq!(nowhere.code, 2);
        assert!(nowhere.err.contains("`nowhere` holds no run"), "{}", nowhere.err);
    }
}
