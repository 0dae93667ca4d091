//! Episodes during a training: periodic evaluations, which keep the parameters of the best, and
//! recorded episodes.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};

use super::ready::Ready;
use super::recorder::Recorder;
use super::totals::RunTotals;
use crate::evaluation::{Play, Played};
use crate::run_directory::{Evaluated, RunDirectory};
use crate::training::{Evaluator, Run};

/// The episodes that are played during a training, in addition to those that it learns from.
pub(crate) struct Episodes {
    evaluations: Option<Evaluations>,
    recorder: Option<Recorder>,
}

impl Episodes {
    /// Compiles the programs that play them, if the training has any.
    pub(crate) fn compile(ready: &Ready) -> Result<Self> {
        Ok(Episodes {
            evaluations: Evaluations::compile(ready)?,
            recorder: Recorder::compile(ready)?,
        })
    }

    /// Plays the episodes that are due after a call, and records them. `before` is the number of
    /// iterations before the call. Episodes that `interrupt` ends early are not recorded.
    pub(crate) fn after_call(
        &mut self,
        before: u64,
        run: &mut dyn Run,
        totals: &mut RunTotals,
        (ready, directory): (&Ready, &mut RunDirectory),
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let iterations = totals.counters.iterations;
        let due = |every: u64| iterations / every != before / every;
        if let Some(evaluations) = self.evaluations.as_mut().filter(|one| due(one.every)) {
            evaluations.evaluate(run, totals, (ready, directory), interrupt)?;
        }
        if let Some(recorder) = self.recorder.as_mut().filter(|one| due(one.every)) {
            let began = Instant::now();
            let progress = (iterations, totals.counters.env_steps);
            recorder.record(progress, run, directory, interrupt)?;
            totals.evaluated(began.elapsed());
        }
        Ok(())
    }
}

/// The evaluations of a training.
struct Evaluations {
    evaluator: Box<dyn Evaluator>,
    /// Number of iterations between evaluations.
    every: u64,
    episodes: usize,
}

impl Evaluations {
    /// Compiles the programs that play; `None` for a training without evaluations.
    fn compile(ready: &Ready) -> Result<Option<Self>> {
        let train = &ready.settings.train;
        let Some(every) = train.eval_every else { return Ok(None) };
        let (episodes, sampled) = (train.eval_episodes, train.eval_sampled);
        // The run's reaction to such parameters is a separate setting.
        let play = Play { episodes, seed: train.seed, sampled, allow_nan: true, views: false };
        let evaluator = ready.evaluator(&play)?;
        Ok(Some(Evaluations { evaluator, every, episodes }))
    }

    /// Makes an evaluation, and records it.
    fn evaluate(
        &mut self,
        run: &mut dyn Run,
        totals: &mut RunTotals,
        (ready, directory): (&Ready, &mut RunDirectory),
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let iterations = totals.counters.iterations;
        let began = Instant::now();
        let failed = || format!("the evaluation after {iterations} iterations failed");
        let played = self
            .evaluator
            .play(&run.checkpoint()?, interrupt, &mut |_, _| Ok(()))
            .with_context(failed)?;
        totals.evaluated(began.elapsed());
        if played.len() < self.episodes {
            return Ok(());
        }
        let counters = &mut totals.counters;
        let mean = |number_of: fn(&Played) -> f64| {
            played.iter().map(number_of).sum::<f64>() / played.len() as f64
        };
        let mean_return = mean(|episode| f64::from(episode.episode_return));
        let mean_length = mean(|episode| f64::from(episode.length));
        let successes: Option<f64> =
            played.iter().map(|episode| episode.success.map(f64::from)).sum();
        let success = successes.map(|sum| ("eval_success", sum / played.len() as f64));
        let values = [("eval_return", mean_return), ("eval_length", mean_length)];
        let values: Vec<_> = values.into_iter().chain(success).collect();
        directory.record_evaluation((iterations, counters.env_steps), &values)?;
        let evaluated = Evaluated { iterations, mean_return };
        counters.evaluated = Some(evaluated);
        if mean_return.is_finite()
            && counters.best.is_none_or(|best| mean_return > best.mean_return)
        {
            counters.best = Some(evaluated);
            let about = (&ready.settings, &ready.recorded);
            directory.write_best(run.checkpoint()?, about, *counters)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use crate::cli::fake::{podracer, short, with};

    const EVERY: &str = "--set=train.eval_every=30";

    /// Iteration and mean return of each evaluation in the metrics.
    fn evaluations(run: &Path) -> Vec<(u64, f64)> {
        let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let evaluation =
            |line: Value| Some((line["iteration"].as_u64()?, line["eval_return"].as_f64()?));
        lines.filter_map(evaluation).collect()
    }

    /// A call has 16 iterations, and an evaluation takes place at the end of a call.
    #[test]
    fn evaluations_are_recorded_and_the_best_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let result =
            podracer(&short(run, &[EVERY, "--set=train.eval_episodes=2", "--json"])).json();
        // Calls 2 and 4; the fake training plays badly after the fourth.
        assert_eq!(evaluations(run), [(32, 2.5), (64, 0.0)]);
        let expected = serde_json::json!({
            "best_eval_after_iterations": 32.0, "best_eval_return": 2.5,
            "eval_after_iterations": 64.0, "eval_return": 0.0, "greedy_return": 1.0,
        });
        assert_eq!(result["evaluation"], expected);
        let name = run.to_str().unwrap();
        let best = podracer(&["eval", name, "--best", "--episodes=2", "--json"]).json();
        assert_eq!(
            (&best["iterations"], &best["episode_return"]["mean"]),
            (&32.into(), &2.5.into())
        );
        assert_eq!(podracer(&["eval", name, "--json"]).json()["iterations"], 80);
    }

    #[test]
    fn a_run_that_goes_on_makes_the_same_evaluations() {
        let folder = tempfile::tempdir().unwrap();
        let (alone, run) = (folder.path().join("alone"), folder.path().join("run"));
        podracer(&short(&alone, &[EVERY]));
        // The checkpoint is older than the best evaluation, which is repeated.
        let every = ["--set=train.checkpoint_every=16", EVERY];
        with(&short(&run, &every), Some(3), None);
        fs::remove_dir_all(run.join("checkpoints/2-32")).unwrap();
        assert_eq!(podracer(&["resume", run.to_str().unwrap()]).code, 0);
        assert_eq!(evaluations(&run), evaluations(&alone));
        let best = podracer(&["eval", run.to_str().unwrap(), "--best", "--json"]).json();
        assert_eq!(best["iterations"], 32);
    }
}
