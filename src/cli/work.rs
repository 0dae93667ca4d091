//! `podracer work`: steps environments for a learner elsewhere. `podracer certificates new`: the
//! identities of the two.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use podracer_envs::host::Latencies;
use podracer_remote::certificates::CertificateError;
use podracer_remote::worker::{
    MakeEnvironment, WorkerError, WorkerOptions, WorkerStatus, WorkerTimes, work,
};
use podracer_remote::{Address, RunDescription, Security, certificates};

use super::console::Console;
use super::numbers::at_least_one;
use super::program::INTERRUPTED;
use super::signals;
use crate::registry::Registry;
use crate::settings::UsageError;

/// Interval between the worker's status lines.
const REPORT: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
pub(super) struct WorkArguments {
    /// The learner's address, unix:PATH or HOST:PORT; several learner hosts, separated by commas,
    /// share the batches
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    connect: Vec<Address>,
    /// Number of environments of this worker
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("environment"))]
    environments: NonZero<usize>,
    /// Number of batches into which the environments are divided: while one waits for its actions,
    /// the others step [default: 2]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("batch"))]
    batches: Option<NonZero<usize>>,
    /// The folder of `podracer certificates new`, for learners that are reached over the network
    #[arg(long, value_name = "FOLDER", conflicts_with = "insecure")]
    certificates: Option<PathBuf>,
    /// Connect over the network without encryption or authentication
    #[arg(long)]
    insecure: bool,
    /// Step this environment instead of the learner's, such as an environment that the learner does
    /// not know; its spaces must be the run's
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,
    /// Change a setting of the environment on this machine, such as environment.servers=4 [repeatable]
    #[arg(long, value_name = "environment.KEY=VALUE")]
    set: Vec<String>,
    /// Use the programs that the learner's environment names, such as environment.python
    #[arg(long)]
    trust: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum CertificatesCommand {
    /// Make an authority, and certificates of a learner and of workers, in a new folder
    New {
        /// The folder for `serve --certificates` and `work --certificates`
        folder: PathBuf,
        /// A name or address of the learner's machine, for other client programs that check it
        /// [repeatable]
        #[arg(long, value_name = "NAME")]
        host: Vec<String>,
    },
}

pub(super) fn new_certificates(
    command: &CertificatesCommand,
    console: &mut Console<'_>,
) -> Result<u8> {
    let CertificatesCommand::New { folder, host } = command;
    let files = certificates::write(folder, host).map_err(|error| match error {
        CertificateError::Exists(_) => UsageError::new(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    let names = files.iter().map(|file| format!("{}\n", file.display()));
    console.print(&names.collect::<String>())?;
    console.say(
        "a worker's machine needs ca.pem, worker.pem and worker.key; ca.key signs further certificates: keep it where neither runs",
    );
    Ok(0)
}

pub(super) fn run(
    args: &WorkArguments,
    registry: &Registry,
    console: &mut Console<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let environments = args.environments.get();
    let options = WorkerOptions {
        addresses: args.connect.clone(),
        security: match (&args.certificates, args.insecure) {
            (Some(folder), _) => Some(Security::Certificates(folder.clone())),
            (None, true) => Some(Security::Insecure),
            (None, false) => None,
        },
        environments,
        batches: args.batches.map_or(environments.min(2), NonZero::get),
    };
    let make = |run: &RunDescription, environments: usize| {
        let (entry, table) = match &args.environment {
            None => registry.of_learner(&run.environment, &run.settings, &args.set, args.trust)?,
            Some(own) => registry.named(own, &args.set)?,
        };
        entry.batches(&table, environments, run.unroll)?.make()
    };
    let make: &MakeEnvironment<'_> = &|run: &RunDescription, environments| {
        make(run, environments).map_err(|error| match error.downcast::<UsageError>() {
            Ok(mistake) => mistake.into(),
            Err(error) => error.into(),
        })
    };
    let status = Arc::new(WorkerStatus::default());
    let heeding = signals::heed();
    let (outcome, done) = thread::scope(|scope| {
        let outcome = scope.spawn(|| work(&options, make, &status, interrupt));
        let (mut since, mut before, mut reported_times) =
            (Instant::now(), 0, WorkerTimes::default());
        while !outcome.is_finished() {
            thread::sleep(Duration::from_millis(20));
            let seconds = since.elapsed().as_secs_f64();
            if seconds >= REPORT.as_secs_f64() {
                let steps = status.environment_steps();
                let speed = (steps - before) as f64 / seconds;
                console.say(&format!(
                    "{steps} steps, {speed:.0} steps/s, {}parameters of update {}, connected {} times",
                    times(&status.times(), &reported_times),
                    status.version(),
                    status.sessions()
                ));
                (since, before, reported_times) = (Instant::now(), steps, status.times());
            }
        }
        (outcome.join(), status.environment_steps())
    });
    drop(heeding);
    let outcome = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    outcome.map_err(|error| match error {
        WorkerError::Security(_) | WorkerError::Options(_) => {
            UsageError::new(error.to_string()).into()
        }
        WorkerError::Environment { address, problem } => {
            let place = format!("cannot make the environments of the learner at {address}");
            match problem.downcast::<UsageError>() {
                Ok(mistake) => UsageError::new(format!("{place}: {mistake}")).into(),
                Err(problem) => anyhow::anyhow!("{place}: {problem:#}"),
            }
        }
        error => anyhow::Error::from(error),
    })?;
    if interrupt.load(Ordering::Acquire) {
        console.say(&format!("stopped after {done} steps"));
        return Ok(INTERRUPTED);
    }
    console.say(&format!("the run is complete: {done} steps"));
    Ok(0)
}

/// The p50 and p99 of the environments' steps and of the learner's answers since an earlier
/// reading, as part of a status line.
fn times(now: &WorkerTimes, earlier: &WorkerTimes) -> String {
    let of = |what: &str, times: &Latencies| {
        let ms = |share| Some(times.percentile(share)? * 1e3);
        let words = |(half, most)| format!("{what} p50 {half:.2} ms, p99 {most:.2} ms, ");
        ms(0.5).zip(ms(0.99)).map(words).unwrap_or_default()
    };
    of("step", &now.step.since(&earlier.step)) + &of("answer", &now.answer.since(&earlier.answer))
}
