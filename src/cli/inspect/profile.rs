//! `podracer profile`: the time of a training by line of its source. `--memory` is in `memory.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use podracer_plugins::read_regular_text;
use podracer_runtime::SourceLine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::memory::memory;
use crate::cli::arguments::ExperimentArguments;
use crate::cli::console::Console;
use crate::cli::processes::{self, LARGEST};
use crate::cli::program::{INTERRUPTED, Program};
use crate::cli::session::ready::Ready;
use crate::cli::signals;
use crate::files::write_whole;
use crate::format::{aligned, count};
use crate::profile::{Compiled, LineTime, Profile, Recorder};
use crate::run_directory::{PROFILE, RunDirectory, write_profile};
use crate::settings::UsageError;
use crate::sources::Sources;

/// Time between two samples of the threads.
const EVERY: Duration = Duration::from_millis(5);
/// Number of lines shown, unless the user gives another number.
const LINES: usize = 20;
/// The environment variable of the folder for temporary files.
const TEMPORARY: &str = "TMPDIR";
/// File names of the training's output.
const OUT: &str = "out";
const ERR: &str = "err";

#[derive(Args, Debug)]
pub(crate) struct ProfileArguments {
    #[command(flatten)]
    pub(crate) experiment: ExperimentArguments,
    /// Find the lines, and the buffers, that take the memory of the programs instead; nothing is
    /// run
    #[arg(long, conflicts_with_all = ["seconds", "folded", "trace"])]
    memory: bool,
    /// Seconds for which the training is sampled, after a first call
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Number of lines to show, the slowest first; with --memory for each program, with as many
    /// buffers [default: 20, or 12 with --memory]
    #[arg(long, value_name = "NUMBER")]
    lines: Option<usize>,
    /// Write folded stacks, the input of flame graph programs such as inferno and flamegraph.pl
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Write a trace of all threads over time, which ui.perfetto.dev and Chrome's tracing show
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also write the JSON object into this run directory, for the page of the run
    #[arg(long, value_name = "RUN")]
    into: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Be the training that is sampled
    #[arg(long, hide = true)]
    endless: bool,
}

pub(crate) fn profile(
    args: &ProfileArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        let problem =
            format!("--seconds is {} and must be more than 0, and at most 3600", args.seconds);
        return Err(UsageError::new(problem).into());
    }
    let no_run = args.into.as_ref().filter(|run| !RunDirectory::is_run(run));
    if let Some(folder) = no_run {
        let problem = format!("--into: `{}` holds no run", folder.display());
        return Err(UsageError::new(problem).into());
    }
    let settings =
        program.registry.load(&args.experiment.experiment, &args.experiment.overrides())?;
    let ready = Ready::new(settings, console, program)?;
    if args.memory {
        return memory(&ready, (args.lines, args.json), args.into.as_deref(), console);
    }
    if ready.client.platform() != "cpu" {
        let problem = format!(
            "the training would run on `{}`: a profile is taken on a CPU, with --set train.platform=cpu",
            ready.client.platform()
        );
        return Err(UsageError::new(problem).into());
    }
    if args.endless {
        return endless(&ready, console, interrupt);
    }
    let mut training = Child::start(&args.experiment)?;
    let programs = ready.executables(&[])?.into_iter().map(|(one, executable)| {
        anyhow::Ok(Compiled::new(one.name, &executable.compiled().optimized()?))
    });
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let library = ready.client.plugin().library().to_owned();
    let experiment = ready.settings.experiment.clone();
    // From here on the training may use the processors.
    drop(ready);
    let _heeding = signals::heed();
    if training.wait(interrupt)? {
        return Ok(INTERRUPTED);
    }
    console.say(&format!("sampling {} s of {experiment}", args.seconds));
    let mut recorder = Recorder::new(training.process.id(), programs, &library)?;
    let before = training.calls()?;
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < args.seconds {
        if interrupt.load(Ordering::Relaxed) {
            return Ok(INTERRUPTED);
        }
        recorder.sample()?;
        thread::sleep(EVERY);
    }
    let after = training.calls()?;
    let profile = recorder.finish()?;
    drop(training);
    let write = |path: &PathBuf, text: String| write_whole(path, text.as_bytes());
    args.folded.as_ref().map_or(Ok(()), |path| write(path, profile.folded()))?;
    args.trace.as_ref().map_or(Ok(()), |path| write(path, profile.trace().to_string()))?;
    let summary = ProfileSummary {
        profile: &profile,
        iterations: after.iterations - before.iterations,
        env_steps: after.env_steps - before.env_steps,
    };
    let object = summary.json();
    args.into.as_ref().map_or(Ok(()), |run| write_profile(run, PROFILE, &object))?;
    console.print(&match args.json {
        true => serde_json::to_string_pretty(&object)? + "\n",
        false => summary.text(args.lines.unwrap_or(LINES)),
    })?;
    Ok(0)
}

/// Trains without an end, and prints its work after each call.
fn endless(ready: &Ready, console: &mut Console<'_>, interrupt: &AtomicBool) -> Result<u8> {
    let folder = tempfile::tempdir().context("cannot make a folder for the run")?;
    let mut run = (ready.training.start(ready.start(folder.path(), None)))
        .with_context(|| format!("cannot start {}", ready.settings.experiment))?;
    let mut done = Done::default();
    while !interrupt.load(Ordering::Relaxed) {
        let call = run.advance_until(interrupt)?;
        done.iterations += call.iterations;
        done.env_steps += call.env_steps;
        console.print(&format!("{}\n", serde_json::to_string(&done)?))?;
    }
    Ok(INTERRUPTED)
}

/// The work of a training so far.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Done {
    iterations: u64,
    env_steps: u64,
}

/// The process of a training, which ends when this value is dropped.
struct Child {
    process: process::Child,
    /// Folder of its output and of its temporary files.
    folder: TempDir,
}

impl Child {
    fn start(experiment: &ExperimentArguments) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for the training")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("profile").arg("--endless").args(experiment.common(None));
        command.args(experiment.set.iter().map(|set| format!("--set={set}")));
        command.env(TEMPORARY, folder.path());
        // Ctrl-C in a terminal reaches only this process, which ends the training.
        command.process_group(0);
        let [out, err] = [OUT, ERR].map(|name| File::create(folder.path().join(name)));
        Ok(Child { process: processes::start(&mut command, out?, err?)?, folder })
    }

    /// Waits for the end of a first call. True if the user stopped it.
    fn wait(&mut self, interrupt: &AtomicBool) -> Result<bool> {
        while self.calls()?.iterations == 0 {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(false)
    }

    /// Reads the training's work up to its last call.
    fn calls(&mut self) -> Result<Done> {
        let said = |name| self.folder.path().join(name);
        if let Some(status) = self.process.try_wait()? {
            bail!("the training ended ({status}): {}", processes::last_words(&said(ERR)));
        }
        let said = read_regular_text(&said(OUT), LARGEST)?;
        let whole = said.rsplit_once('\n').and_then(|(lines, _)| lines.lines().next_back());
        Ok(whole.map(serde_json::from_str).transpose()?.unwrap_or_default())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct ProfileSummary<'a> {
    profile: &'a Profile,
    iterations: u64,
    env_steps: u64,
}

impl ProfileSummary<'_> {
    fn text(&self, most: usize) -> String {
        let ProfileSummary { profile, iterations, env_steps } = self;
        let (lines, others) = profile.lines();
        let seconds = profile.time.as_secs_f64();
        let cores = profile.cpu_time.as_secs_f64() / seconds;
        let mut text = format!(
            "{} samples in {seconds:.1} s on {cores:.2} cores: {} iterations, {} environment steps/s\n\n",
            profile.samples(),
            count(*iterations as f64),
            count(*env_steps as f64 / seconds),
        );
        let given: f64 = lines.values().map(|line| line.share).sum();
        let sorted = sorted(lines);
        let head = ["time", "ms an iteration", "kernels", "operations", "bytes", "line", ""];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let mut sources = Sources::default();
        let per_iteration = profile.cpu_time.as_secs_f64() * 1e3 / (*iterations).max(1) as f64;
        for (line, time) in sorted.iter().take(most) {
            rows.push(vec![
                format!("{:.1}%", 100.0 * time.share),
                format!("{:.3}", time.share * per_iteration),
                count(time.kernels),
                count(time.operations),
                count(time.bytes),
                line.to_string(),
                sources.line(line),
            ]);
        }
        text += &aligned(&rows);
        if let Some(rest) = sorted.get(most..).filter(|rest| !rest.is_empty()) {
            let share: f64 = rest.iter().map(|(_, time)| time.share).sum();
            let _ = writeln!(text, "{:.1}%  in {} other lines", 100.0 * share, rest.len());
        }
        let _ = writeln!(text, "\n{:.1}% of the time is given to lines.", 100.0 * given);
        for (what, share) in others {
            let what = if what.is_empty() { "code without a file" } else { &what };
            let _ = writeln!(text, "{:.1}%  {what}", 100.0 * share);
        }
        text
    }

    fn json(&self) -> Value {
        let ProfileSummary { profile, iterations, env_steps } = self;
        let (lines, others) = profile.lines();
        let lines: Vec<Value> = sorted(lines)
            .iter()
            .map(|(line, time)| {
                json!({
                    "file": line.file, "line": line.line, "share": time.share, "kernels": time.kernels,
                    "operations": time.operations, "bytes": time.bytes,
                })
            })
            .collect();
        json!({
            "samples": profile.samples(), "seconds": profile.time.as_secs_f64(),
            "cpu_seconds": profile.cpu_time.as_secs_f64(), "iterations": iterations, "env_steps": env_steps,
            "lines": lines, "others": others,
        })
    }
}

/// Lines by their time, or by their operations if no sample has them.
fn sorted(lines: BTreeMap<SourceLine, LineTime>) -> Vec<(SourceLine, LineTime)> {
    let mut sorted: Vec<_> = lines.into_iter().collect();
    sorted.sort_by(|(_, a), (_, b)| {
        b.share.total_cmp(&a.share).then(b.operations.total_cmp(&a.operations))
    });
    sorted
}
