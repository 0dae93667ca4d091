//! `podracer serve`: trains with workers that connect from elsewhere.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use podracer_envs::host::HostSpec;
use podracer_remote::server::{Server, ServerOptions};
use podracer_remote::{Address, RunDescription, Security};
use serde_json::Value;

use super::arguments::{ResumeArguments, TrainArguments};
use super::ready::Ready;
use super::session::Session;
use super::{Console, Program, resume, train};
use crate::run_directory::RunDirectory;
use crate::settings::{CentralSettings, Settings, TrainingLoop, UsageError};
use crate::training::{Elsewhere, Traffic};

#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    train: TrainArguments,
    /// Where workers connect to: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    listen: Address,
    /// The folder with the certificates of both sides, which `podracer certificates new` makes
    #[arg(long, value_name = "FOLDER", conflicts_with = "insecure")]
    certificates: Option<PathBuf>,
    /// Let in whoever reaches the port, unencrypted
    #[arg(long)]
    insecure: bool,
}

pub(super) fn serve(
    args: &ServeArguments,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    let security = match (&args.certificates, args.insecure) {
        (Some(folder), _) => Some(Security::Certificates(folder.clone())),
        (None, true) => Some(Security::Insecure),
        (None, false) => None,
    };
    let options = ServerOptions::new(args.listen.clone(), security);
    if args.train.seeds.is_some() {
        let problem =
            "--seeds trains several runs as one program, and workers from elsewhere are for one";
        return Err(UsageError::new(problem).into());
    }
    // Before a run directory is made: the corrected command is to find none.
    options.check().map_err(|error| UsageError::new(error.to_string()))?;
    let train = &args.train;
    let run = Path::new(&train.experiment.experiment);
    let mut session = match RunDirectory::is_run(run) {
        true => {
            let args = going_on(train, run)?;
            let reopened = resume::reopen(&args, console, program)?;
            resume::session(&args, reopened, started, console)?
        }
        false => begin(train, started, console, program)?,
    };
    let (server, lanes, elsewhere) = listening(&session, &options)?;
    console.say(&format!(
        "{lanes} lanes for workers: {} work --connect {} --environments N",
        super::program_name(),
        server.address().from_elsewhere()
    ));
    session.elsewhere = Some(elsewhere);
    session.completes = Some(Box::new(move || server.complete()));
    session.run(console, interrupt)
}

/// A training that begins.
fn begin(
    args: &TrainArguments,
    started: Instant,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<Session> {
    let settings = train::settings(args, program)?;
    if !matches!(settings.training_loop, TrainingLoop::Central(_)) {
        return Err(UsageError::new(format!(
            "{} has no [central], and workers from elsewhere are for experiments that have it: give it one, such as by `--set \
             central.environments=64`",
            settings.experiment
        ))
        .into());
    }
    train::begin(args, Ready::new(settings, console, program)?, started, console)
}

/// The arguments of `resume` for a run that goes on.
fn going_on(args: &TrainArguments, run: &Path) -> Result<ResumeArguments> {
    if args.run_dir.is_some() || args.seed.is_some() || !args.experiment.set.is_empty() {
        return Err(UsageError::new(format!(
            "{} is a run, which goes on as it was: --run-dir, --seed and --set are for one that begins",
            run.display()
        ))
        .into());
    }
    Ok(args.going_on(run))
}

/// Listens: the server, the number of lanes, and the workers that will come.
fn listening(session: &Session, options: &ServerOptions) -> Result<(Server, usize, Elsewhere)> {
    let Ready { settings, training, .. } = &session.ready;
    let serves = training.serves().ok_or_else(|| {
        UsageError::new(format!("{} has no [central]: it takes no workers", settings.experiment))
    })?;
    let (lanes, threads) = serves.lanes();
    let all = lanes.environments * threads;
    let run = description(settings, lanes, session.directory.identity()?)?;
    let mut options = options.clone();
    if let TrainingLoop::Central(CentralSettings { reward_bound: Some(bound), .. }) =
        &settings.training_loop
    {
        options.limits.reward = *bound as f32;
    }
    let (server, workers) = Server::start(&options, run, threads)?;
    let totals = server.totals();
    let traffic = move || {
        let now = totals.status();
        let (received, sent, refused) = (now.received, now.sent, now.refused);
        Traffic { received, sent, refused, connections: now.connections as u64 }
    };
    Ok((server, all, Elsewhere { workers, traffic: Box::new(traffic) }))
}

/// The run's description for workers.
fn description(settings: &Settings, spec: HostSpec, id: String) -> Result<RunDescription> {
    let mut environment: Value = serde_json::to_value(&settings.environment)?;
    if let Some(table) = environment.as_object_mut() {
        // Programs and folders are those of the worker's own machine.
        table.remove("python");
    }
    Ok(RunDescription {
        id,
        environment: settings.environment_name().to_owned(),
        settings: environment.to_string(),
        spec,
        unroll: settings.training_loop.unroll(),
    })
}
