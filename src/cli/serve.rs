//! `podracer serve`: trains with workers that connect from elsewhere.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use podracer_envs::host::HostSpec;
use podracer_remote::server::{Server, ServerOptions};
use podracer_remote::{Address, RunDescription, Security};
use podracer_runtime::World;
use serde_json::Value;

use super::console::Console;
use super::program::Program;
use super::resume::{self, ResumeArguments};
use super::session::ready::{Ready, Serving};
use super::session::{Reopened, follow};
use super::together::{self, Facts};
use super::train::{self, TrainArguments};
use crate::program_name::program_name;
use crate::run_directory::RunDirectory;
use crate::settings::{CentralSettings, Settings, TrainingLoop, UsageError};
use crate::training::{Elsewhere, Serves, Traffic};

#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    pub(super) train: TrainArguments,
    /// The address for workers: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    listen: Address,
    /// The folder with the certificates of both sides, made by `podracer certificates new`
    #[arg(long, value_name = "FOLDER", conflicts_with = "insecure")]
    certificates: Option<PathBuf>,
    /// Accept every client that reaches the port, unencrypted
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
    let train = &args.train;
    let world = together::join(console)?;
    let made = args.options(world);
    let made = made.and_then(|options| Ok((options, Made::new(train, console, program)?)));
    let (options, made) = together::agree(world, made, |(_, made)| made.facts())?;
    if let Some(world) = follow::following(world, made.ready()) {
        let id = String::from_utf8_lossy(&world.hear_first(&[])?).into_owned();
        let (address, serving) = listening(made.ready(), &options, id)?;
        world.gather(address.to_string().as_bytes())?;
        let from = made.reopened().map(|reopened| &reopened.found.checkpoint);
        return follow::follow(world, made.ready(), from, Some(serving));
    }
    let mut session = match made {
        Made::Begins(ready) => train::begin(train, *ready, started, console)?,
        Made::GoesOn(args, reopened) => resume::session(&args, *reopened, started, console)?,
    };
    let id = session.directory.identity()?;
    if let Some(world) = world {
        world.hear_first(id.as_bytes())?;
    }
    let (address, serving) = listening(&session.ready, &options, id)?;
    session.serving = Some(serving);
    let address = address.to_string().into_bytes();
    let all = world.map_or_else(|| Ok(vec![address.clone()]), |world| world.gather(&address))?;
    for address in &all {
        console.say(&format!(
            "{} lanes for workers: {} work --connect {} --environments N",
            lanes(&session.ready)?,
            program_name(),
            String::from_utf8_lossy(address)
        ));
    }
    session.run(console, interrupt)
}

impl ServeArguments {
    /// Options of this process's server. They are checked before a run directory is made, so that
    /// the corrected command finds none.
    fn options(&self, world: Option<World>) -> Result<ServerOptions> {
        let security = match (&self.certificates, self.insecure) {
            (Some(folder), _) => Some(Security::Certificates(folder.clone())),
            (None, true) => Some(Security::Insecure),
            (None, false) => None,
        };
        if self.train.seeds.is_some() {
            let problem = "--seeds trains several runs as one program, and workers from elsewhere are for one";
            return Err(UsageError::new(problem).into());
        }
        let before = world.map_or(0, World::earlier_on_host);
        let listen = self.listen.nth(before).ok_or_else(|| {
            UsageError::new(format!(
                "there is no port {before} above that of {}, for process {before} of this machine: listen at a lower one",
                self.listen
            ))
        })?;
        let options = ServerOptions::new(listen, security);
        options.check().map_err(|error| UsageError::new(error.to_string()))?;
        Ok(options)
    }
}

/// A training that begins or resumes, with its devices open.
enum Made {
    Begins(Box<Ready>),
    GoesOn(ResumeArguments, Box<Reopened>),
}

impl Made {
    fn new(args: &TrainArguments, console: &mut Console<'_>, program: Program<'_>) -> Result<Self> {
        let run = Path::new(&args.experiment.experiment);
        let goes_on = match RunDirectory::is_run(run) {
            true => Some(going_on(args, run)?),
            false => args.goes_on(),
        };
        if let Some(args) = goes_on {
            let reopened = resume::reopen(&args, console, program)?;
            return Ok(Made::GoesOn(args, Box::new(reopened)));
        }
        let ready = train::ready(args, console, program)?;
        if !matches!(ready.settings.training_loop, TrainingLoop::Central(_)) {
            return Err(UsageError::new(format!(
                "{} has no [central], and workers from elsewhere are for experiments that have it: give it one, such as by `--set \
                 central.environments=64`",
                ready.settings.experiment
            ))
            .into());
        }
        Ok(Made::Begins(Box::new(ready)))
    }

    fn ready(&self) -> &Ready {
        match self {
            Made::Begins(ready) => ready,
            Made::GoesOn(_, reopened) => &reopened.ready,
        }
    }

    fn reopened(&self) -> Option<&Reopened> {
        match self {
            Made::Begins(_) => None,
            Made::GoesOn(_, reopened) => Some(reopened),
        }
    }

    /// Facts of the training that must be equal in all processes.
    fn facts(&self) -> Result<Facts> {
        self.reopened().map_or_else(|| follow::facts(self.ready()), Reopened::facts)
    }
}

/// The arguments of `resume` for a resumed run.
fn going_on(args: &TrainArguments, run: &Path) -> Result<ResumeArguments> {
    if args.run_dir.is_some() || args.seed.is_some() || !args.experiment.set.is_empty() {
        return Err(UsageError::new(format!(
            "{} is a run, and resumes with its settings: --run-dir, --seed and --set are for a new run",
            run.display()
        ))
        .into());
    }
    Ok(args.going_on(run))
}

fn serves(ready: &Ready) -> Result<&dyn Serves, UsageError> {
    ready.training.serves().ok_or_else(|| {
        let experiment = &ready.settings.experiment;
        UsageError::new(format!("{experiment} has no [central]: it takes no workers"))
    })
}

/// Number of lanes for this process's workers.
fn lanes(ready: &Ready) -> Result<usize, UsageError> {
    let (lanes, threads) = serves(ready)?.lanes();
    Ok(lanes.environments * threads)
}

/// Listens for the workers of a run with this identity. Returns the address as the workers use it,
/// and the future workers.
fn listening(ready: &Ready, options: &ServerOptions, id: String) -> Result<(Address, Serving)> {
    let settings = &ready.settings;
    let (lanes, threads) = serves(ready)?.lanes();
    let run = description(settings, lanes, id)?;
    let mut options = options.clone();
    if let TrainingLoop::Central(CentralSettings { reward_bound, observation_bound, .. }) =
        &settings.training_loop
    {
        let limits = &mut options.limits;
        for (limit, bound) in
            [(&mut limits.reward, reward_bound), (&mut limits.observation, observation_bound)]
        {
            *limit = bound.map_or(*limit, |bound| bound as f32);
        }
    }
    let (server, workers) = Server::start(&options, run, threads)?;
    let address = server.address().from_elsewhere();
    let totals = server.totals();
    let traffic = move || {
        let now = totals.status();
        let (received, sent, refused) = (now.received, now.sent, now.refused);
        Traffic { received, sent, refused, connections: now.connections as u64 }
    };
    let elsewhere = Elsewhere { workers, traffic: Box::new(traffic) };
    Ok((address, Serving { elsewhere, completes: Box::new(move || server.complete()) }))
}

/// The run's description for workers.
fn description(settings: &Settings, spec: HostSpec, id: String) -> Result<RunDescription> {
    let mut environment: Value = serde_json::to_value(&settings.environment)?;
    if let Some(table) = environment.as_object_mut() {
        // Programs and folders belong to the worker's own machine.
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
