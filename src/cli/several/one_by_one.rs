//! Several runs as separate programs: one process each, one after another or several at once, or as
//! tasks of a cluster. However such a sweep ends, the same command resumes it: finished runs stay,
//! and unfinished runs resume.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use podracer_plugins::read_regular_text;
use rustix::process::{Pid, Signal, kill_process};

use super::{Apart, Failed, Planned, Several, Trained};
use crate::cli::console::Console;
use crate::cli::processes::{self, quoted, submitted};
use crate::cli::session::outcome::Outcome;
use crate::cli::signals;
use crate::files::write_whole;
use crate::format::plural;
use crate::run_directory::{RunDirectory, RunOverview, RunState};
use crate::settings::UsageError;

/// Interval between checks of the processes.
const LOOK: Duration = Duration::from_millis(50);
/// Greatest number of bytes of the file with a command's arguments.
pub(crate) const LARGEST: u64 = 1 << 20;
/// The file with the arguments of a folder's runs.
pub(crate) const ARGUMENTS: &str = "arguments.json";
/// The script of an array job.
const SCRIPT: &str = "sweep.sbatch";

/// Trains the runs that belong to this process. `reason` is the reason why they are not one
/// program.
pub(crate) fn train(
    several: &Several<'_>,
    (own, folder): (Range<usize>, &Path),
    reason: Option<&anyhow::Error>,
    (console, interrupt): (&mut Console<'_>, &AtomicBool),
) -> Result<Trained> {
    let Apart { processes, only, .. } = several.apart;
    let chosen: Vec<&Planned> = match only {
        None => several.runs[own.clone()].iter().collect(),
        Some(index) => {
            let number = several.runs.len();
            let run = several.runs.get(index);
            let problem =
                || UsageError::new(format!("--only {index}: there are {number} runs, from 0"));
            vec![run.ok_or_else(problem)?]
        }
    };
    let at_once = processes.map_or(1, |number| number.get());
    if let Some(reason) = reason {
        console.say(&format!(
            "{} that are a program each, {at_once} at once: {reason:#}",
            plural(chosen.len(), "run")
        ));
    }
    let _heeding = signals::heed();
    let failed = train_all(several, folder, &chosen, (at_once, console, interrupt))?;
    let mut finished = Vec::new();
    for index in own.clone() {
        let run = &several.runs[index];
        let path = folder.join(&run.folder);
        let known = failed.iter().any(|one| one.run == run.folder);
        if known || !RunDirectory::is_run(&path) {
            continue;
        }
        if let Some(text) = RunOverview::read(&path)?.result()? {
            let outcome: Outcome = serde_json::from_str(&text)
                .with_context(|| format!("cannot read the result of `{}`", path.display()))?;
            finished.push((index, outcome));
        }
    }
    let missing = own.len() - finished.len() - failed.len();
    let interrupted = interrupt.load(Ordering::Relaxed);
    if interrupted || (missing > 0 && only.is_none()) {
        console.say(&format!("the same command with --run-dir {} continues", folder.display()));
    }
    Ok(Trained { finished, failed, together: None, interrupted })
}

/// True if a folder contains some of these runs already.
pub(crate) fn has_begun(runs: &[Planned], folder: &Path) -> bool {
    let is_there = |run: &Planned| RunDirectory::is_run(&folder.join(&run.folder));
    folder.join(ARGUMENTS).is_file() && runs.iter().any(is_there)
}

/// Records the arguments of the folder's runs, and rejects a folder with other arguments.
pub(crate) fn same_as_before(several: &Several<'_>, folder: &Path) -> Result<()> {
    let path = folder.join(ARGUMENTS);
    let again = serde_json::to_string(&several.again)? + "\n";
    if !path.is_file() {
        return write_whole(&path, again.as_bytes());
    }
    let before = read_regular_text(&path, LARGEST)?;
    if before != again {
        return Err(UsageError::new(format!(
            "`{}` has the runs of another command, {}, and accepts only that command; this command is {}: give it another --run-dir",
            folder.display(),
            before.trim(),
            again.trim()
        ))
        .into());
    }
    Ok(())
}

/// Trains the unfinished runs, and returns those that failed.
fn train_all(
    several: &Several<'_>,
    folder: &Path,
    runs: &[&Planned],
    (at_once, console, interrupt): (usize, &mut Console<'_>, &AtomicBool),
) -> Result<Vec<Failed>> {
    let mut waiting: VecDeque<&Planned> = runs.iter().copied().collect();
    let mut running: Vec<(&Planned, Child)> = Vec::new();
    let (mut failed, mut done) = (Vec::new(), 0);
    let mut stopping = false;
    while !running.is_empty() || !waiting.is_empty() {
        if interrupt.load(Ordering::Relaxed) && !stopping {
            stopping = true;
            waiting.clear();
            for (_, child) in &running {
                // An error means that the process has ended.
                let _ = kill_process(Pid::from_child(child), Signal::INT);
            }
        }
        while running.len() < at_once
            && let Some(run) = waiting.pop_front()
        {
            match begin(several, folder, run)? {
                Begun::Done => done += 1,
                Begun::Elsewhere => {
                    // It may end without a result, and is then checked again.
                    waiting.push_back(run);
                    break;
                }
                Begun::Here(child) => running.push((run, child)),
            }
        }
        thread::sleep(LOOK);
        let mut still = Vec::new();
        for (run, mut child) in running {
            let Some(status) = child.try_wait()? else {
                still.push((run, child));
                continue;
            };
            done += 1;
            let path = folder.join(&run.folder);
            if status.success() {
                let mean = RunOverview::read(&path)?.mean_return;
                let mean = mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
                let number = runs.len();
                console.say(&format!("{done}/{number} {}: mean return {mean}", run.folder));
            } else if !stopping {
                let said = anyhow!(processes::last_words(&folder.join(log_of(run))));
                failed.push(Failed::new(run, &said, console));
            }
        }
        running = still;
    }
    Ok(failed)
}

/// Result of starting a run.
enum Begun {
    /// It has finished before.
    Done,
    /// Another process trains it.
    Elsewhere,
    /// A child of this process trains it.
    Here(Child),
}

/// Starts or resumes a run.
fn begin(several: &Several<'_>, folder: &Path, run: &Planned) -> Result<Begun> {
    let path = folder.join(&run.folder);
    let mut command = Command::new(std::env::current_exe()?);
    let mut goes_on = false;
    if RunDirectory::is_run(&path) {
        let overview = RunOverview::read(&path)?;
        match overview.state {
            RunState::Finished => return Ok(Begun::Done),
            RunState::Running => return Ok(Begun::Elsewhere),
            RunState::Stopped | RunState::Unfinished => goes_on = overview.has_checkpoint(),
        }
        if !goes_on {
            overview.remove()?;
        }
    }
    if goes_on {
        command.arg("resume").arg(&path);
    } else {
        command.arg("train").args(&several.common);
        command.args(run.sets.iter().map(|set| format!("--set={set}")));
        command.arg(format!("--seed={}", run.settings.train.seed)).arg("--run-dir").arg(&path);
    }
    let log = folder.join(log_of(run));
    let log = File::options()
        .create(true)
        .append(true)
        .open(&log)
        .with_context(|| format!("cannot write `{}`", log.display()))?;
    // The launcher's processes train the sweep, not this run.
    command.env("PODRACER_MPI", "none");
    // Ctrl-C in a terminal reaches only this process, which passes it on: a second signal would end
    // the run without a checkpoint.
    command.process_group(0);
    Ok(Begun::Here(processes::start(&mut command, log.try_clone()?, log)?))
}

/// The file with the output of a run's process.
fn log_of(run: &Planned) -> String {
    format!("{}.log", run.folder)
}

/// Writes the script of an array job, and submits it if requested.
pub(crate) fn write_script(
    several: &Several<'_>,
    folder: &Path,
    console: &mut Console<'_>,
) -> Result<u8> {
    let folder = fs::canonicalize(folder)?;
    let directory = std::env::current_dir()?;
    let path = folder.join(SCRIPT);
    let executable = std::env::current_exe()?;
    let text = script(several, [&executable, &directory, &folder]);
    write_whole(&path, text.as_bytes())?;
    submitted(&path, &["sbatch"], several.apart.submit, console)
}

/// The script of an array job, a task for each run.
fn script(several: &Several<'_>, [executable, directory, folder]: [&Path; 3]) -> String {
    let most = several.apart.processes.map_or_else(String::new, |most| format!("%{most}"));
    let path = |path: &Path| quoted(&path.display().to_string());
    let arguments: Vec<String> = several.again.iter().map(|argument| quoted(argument)).collect();
    format!(
        "#!/bin/bash\n\
         # A task for each of {}. Afterwards the same `sweep` with --run-dir, without --launch, prints the table.\n\
         #SBATCH --job-name={}\n\
         #SBATCH --array=0-{}{most}\n\
         #SBATCH --output={}/task-%a.out\n\
         set -euo pipefail\n\
         cd {}\n\
         exec {} {} --run-dir {} --only \"$SLURM_ARRAY_TASK_ID\"\n",
        plural(several.runs.len(), "run"),
        several.name,
        several.runs.len() - 1,
        folder.display(),
        path(directory),
        path(executable),
        arguments.join(" "),
        path(folder),
    )
}
