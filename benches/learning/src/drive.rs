//! Trains and evaluates seeds of an experiment, or resumes a stopped training.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::page::Entry;
use crate::program::{Output, Program, set_arguments};
use crate::record::{Evaluation, Record};
use crate::rows::Row;

/// Seeds of evaluations begin here. No seed of an evaluation repeats episodes of a training.
const EVALUATIONS: u64 = 1_000;
/// Exit code of a command of podracer that a signal has stopped.
const INTERRUPTED: i32 = 130;

/// Trains with the program, in run directories of one folder.
pub struct Driver {
    program: Program,
    runs: PathBuf,
    /// Number of signals that asked to stop.
    signals: Arc<AtomicUsize>,
}

/// The end of a training and its evaluation.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The training and its evaluation are done: the seed's record.
    Recorded(Box<Record>),
    /// A signal has stopped it. The next call resumes it.
    Interrupted,
    /// It failed, for this reason.
    Failed(String),
}

impl Driver {
    /// A driver that counts Ctrl-C and SIGTERM from now on, and SIGHUP unless `nohup` has started the process.
    ///
    /// # Errors
    /// Where the folder cannot be made, and where signals cannot be listened for.
    pub fn new(program: Program, runs: &Path) -> Result<Driver> {
        fs::create_dir_all(runs).with_context(|| format!("cannot make `{}`", runs.display()))?;
        let signals = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&signals);
        let hangup = (!ignores_hangups()).then_some(SIGHUP);
        let mut heard = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
            .context("cannot listen for Ctrl-C")?;
        thread::spawn(move || {
            heard.forever().for_each(|_| {
                count.fetch_add(1, Ordering::SeqCst);
            });
        });
        Ok(Driver { program, runs: runs.to_owned(), signals })
    }

    /// The problem with the Python packages and the file that a row needs; `None` if they are there, or the row needs none.
    ///
    /// # Errors
    /// A row that needs unknown packages.
    pub fn missing(&self, row: &Row) -> Result<Option<String>> {
        if !row.file.is_empty() && !Path::new(&row.file).is_file() {
            return Ok(Some(format!("it needs the file `{}`", row.file)));
        }
        if row.packages.is_empty() { Ok(None) } else { self.program.packages(&row.packages) }
    }

    /// Trains seeds of an experiment, from the beginning or from the last checkpoints, and evaluates them. Several are trained as one
    /// population.
    ///
    /// # Errors
    /// A program that cannot be started, and files of a run that cannot be read.
    pub fn train(&self, entry: &Entry, seeds: Range<u64>) -> Result<Vec<(u64, Ended)>> {
        let (first, last) = (seeds.start, seeds.end - 1);
        let mut name = format!("{}-{}-{first}", entry.row.name, entry.described.settings);
        if last > first {
            name = format!("{name}-to-{last}");
        }
        let folder = self.runs.join(name);
        let path = folder.to_str().context("the folder of the runs has a name in UTF-8")?;
        let results = if last > first {
            self.together(entry, &seeds, path)?
        } else {
            self.alone(entry, first, &folder, path)?.map(|result| vec![result])
        };
        let ended = |seed: u64| match &results {
            Ok(results) => match results.iter().find(|result| result["seed"] == seed) {
                Some(result) => self.recorded(entry, seed, result),
                None => Ok(Ended::Failed(format!("its training failed, see `{path}`"))),
            },
            Err(ended) => Ok(ended.clone()),
        };
        seeds.map(|seed| Ok((seed, ended(seed)?))).collect()
    }

    /// The result of a seed that is trained by itself.
    fn alone(
        &self,
        entry: &Entry,
        seed: u64,
        run: &Path,
        path: &str,
    ) -> Result<Result<Value, Ended>> {
        let trained = match State::of(run) {
            State::Finished => return Ok(Ok(read_json(&run.join("result.json"))?)),
            State::Stopped => self.call(&["resume", path, "--json"])?,
            State::New => {
                if run.exists() {
                    // A run that was killed before its first checkpoint begins anew.
                    fs::remove_dir_all(run).with_context(|| format!("cannot remove `{path}`"))?;
                }
                self.call_train(entry, &[&format!("--seed={seed}")], path)?
            }
        };
        Ok(trained.map_err(|ended| ended.with_advice(path)))
    }

    /// The results of seeds that are trained as one population, without the failed seeds. The same
    /// command resumes the stopped seeds.
    fn together(
        &self,
        entry: &Entry,
        seeds: &Range<u64>,
        path: &str,
    ) -> Result<Result<Vec<Value>, Ended>> {
        let (first, number) =
            (format!("--seed={}", seeds.start), format!("--seeds={}", seeds.end - seeds.start));
        let trained = self.call_train(entry, &[&first, &number], path)?;
        Ok(match trained {
            Ok(all) => Ok(all["runs"].as_array().context("no runs")?.clone()),
            Err(ended) => Err(ended.with_advice(path)),
        })
    }

    fn call_train(
        &self,
        entry: &Entry,
        seeds: &[&str],
        path: &str,
    ) -> Result<Result<Value, Ended>> {
        let Row { experiment, set, .. } = &entry.row;
        let set = set_arguments(set);
        let begin = [&["train", experiment.as_str()], seeds, &["--run-dir", path, "--json"]];
        let set = set.iter().map(String::as_str);
        self.call(&begin.concat().into_iter().chain(set).collect::<Vec<_>>())
    }

    /// The record of a seed that has been trained: its training's result, and an evaluation with each policy.
    fn recorded(&self, entry: &Entry, seed: u64, result: &Value) -> Result<Ended> {
        let unexpected = || format!("{result} is no result of a training");
        let path = result["run_dir"].as_str().with_context(unexpected)?;
        let mut evaluations = Vec::new();
        for more in [&[][..], &["--sample"]] {
            let episodes = format!("--episodes={}", entry.row.episodes);
            let seed = EVALUATIONS + seed;
            let seed_flag = format!("--seed={seed}");
            let arguments = ["eval", path, &episodes, &seed_flag, "--json"];
            let against = format!("--against={}", entry.row.against);
            let against = if entry.row.against.is_empty() { vec![] } else { vec![&*against] };
            let printed = match self.call(&[&arguments[..], more, &against].concat())? {
                Ok(printed) => printed,
                Err(ended) => return Ok(ended),
            };
            evaluations
                .push(evaluation(&printed, seed).context("podracer eval printed something else")?);
        }
        let number = |key: &str| result[key].as_u64().with_context(unexpected);
        let [greedy, sampled] = evaluations[..] else {
            unreachable!("both policies are evaluated")
        };
        Ok(Ended::Recorded(Box::new(Record {
            experiment: entry.row.name.clone(),
            settings: entry.described.settings.clone(),
            seed,
            steps: number("env_steps")?,
            seconds: result["total_seconds"].as_f64().with_context(unexpected)?,
            together: result["together"].as_u64().unwrap_or(1),
            compile_seconds: result["compile_seconds"].as_f64().with_context(unexpected)?,
            learning_return: result["mean_return"].as_f64(),
            greedy,
            sampled,
            against: entry.row.against.clone(),
            processor: processor(Path::new(path))?,
            devices: number("devices")?,
            program: entry.emitted(&self.program).unwrap_or_else(|error| {
                eprintln!("{}: the record has no hash of its program: {error:#}", entry.row.name);
                None
            }),
            podracer: version(),
            params_sha256: result["params_sha256"].as_str().with_context(unexpected)?.to_owned(),
        })))
    }

    /// Runs a command with JSON in its last line of output.
    fn call(&self, arguments: &[&str]) -> Result<Result<Value, Ended>> {
        if self.signals.load(Ordering::SeqCst) > 0 {
            return Ok(Err(Ended::Interrupted));
        }
        let Output { status, stdout } = self.program.run(arguments, &self.signals)?;
        // A signal before the training has begun ends podracer at once, in whatever way.
        if status.code() == Some(INTERRUPTED) || self.signals.load(Ordering::SeqCst) > 0 {
            return Ok(Err(Ended::Interrupted));
        }
        let command = arguments.join(" ");
        match stdout.lines().last() {
            // Where some runs of a population fail, the results of the others are printed.
            Some(line) if status.success() || line.starts_with('{') => {
                let problem = || format!("`podracer {command}` printed no JSON");
                Ok(Ok(serde_json::from_str(line).with_context(problem)?))
            }
            _ => Ok(Err(Ended::Failed(format!("`podracer {command}`: {status}")))),
        }
    }
}

impl Ended {
    fn with_advice(self, run: &str) -> Ended {
        match self {
            Ended::Failed(problem) => {
                Ended::Failed(format!("{problem}; remove `{run}` to begin it anew"))
            }
            other => other,
        }
    }
}

/// The state of a run directory.
enum State {
    /// There is nothing to resume.
    New,
    /// There is a checkpoint, and steps are missing.
    Stopped,
    /// All steps are done.
    Finished,
}

impl State {
    fn of(run: &Path) -> State {
        let result = read_json(&run.join("result.json")).ok();
        let interrupted = result.and_then(|result| result["interrupted"].as_bool());
        let checkpoint = || {
            let entries = fs::read_dir(run.join("checkpoints")).ok();
            entries.is_some_and(|mut entries| entries.next().is_some())
        };
        match interrupted {
            Some(false) => State::Finished,
            _ if checkpoint() => State::Stopped,
            _ => State::New,
        }
    }
}

fn read_json(path: &Path) -> Result<Value> {
    let problem = || format!("cannot read `{}`", path.display());
    let text = fs::read_to_string(path).with_context(problem)?;
    serde_json::from_str(&text).with_context(problem)
}

fn evaluation(printed: &Value, seed: u64) -> Option<Evaluation> {
    let returns = &printed["episode_return"];
    let (mean, std) = (returns["mean"].as_f64()?, returns["std"].as_f64()?);
    Some(Evaluation { episodes: printed["episodes"].as_u64()?, seed, mean, std })
}

/// True if the process was started with SIGHUP ignored.
fn ignores_hangups() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// The processor that a run was trained on.
fn processor(run: &Path) -> Result<String> {
    let path = run.join("config.toml");
    let problem = || format!("`{}` does not say what the processor was", path.display());
    let text = fs::read_to_string(&path).with_context(problem)?;
    let table: toml::Table = text.parse().with_context(problem)?;
    let processor = table.get("recorded").and_then(|recorded| recorded.get("processor"));
    processor.and_then(|name| name.as_str()).map(str::to_owned).with_context(problem)
}

/// The version, with the date of the last commit where there is a repository.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let git = Command::new("git").args(["log", "-1", "--format=%cs"]).output();
    let date = git.ok().filter(|output| output.status.success());
    match date.and_then(|output| String::from_utf8(output.stdout).ok()) {
        Some(date) => format!("{version} of {}", date.trim()),
        None => version.to_owned(),
    }
}

#[cfg(test)]
mod tests;
