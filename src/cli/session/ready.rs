//! A training with open devices, before any of its programs run.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use podracer_runtime::{Checkpoint, Client, CompileOptions, Executable, Found, OptionValue, World};

use crate::cli::console::Console;
use crate::cli::devices::{decide, open};
use crate::cli::order::Order;
use crate::cli::program::Program;
use crate::evaluation::Play;
use crate::machine;
use crate::registry::{EnvironmentEntry, Registry};
use crate::run_directory::{Recorded, RunProgress};
use crate::settings::{Settings, UsageError};
use crate::training::{Elsewhere, Evaluator, LoopModule, Plays, Run, Start, Training};

/// A training with its devices open.
#[derive(Clone)]
pub(crate) struct Ready {
    /// Settings, complete: with XLA's options, and the devices that act and learn.
    pub(crate) settings: Settings,
    pub(crate) recorded: Recorded,
    pub(crate) client: Client,
    pub(crate) training: Rc<dyn Training>,
    pub(crate) environment: Rc<EnvironmentEntry>,
    /// Devices of the training, by index.
    pub(crate) devices: Vec<usize>,
    pub(crate) xla: Vec<(String, OptionValue)>,
}

/// Workers elsewhere for a run.
pub(crate) struct Serving {
    pub(crate) elsewhere: Elsewhere,
    /// Tells the workers that the training is complete, before the run's threads end. If it is
    /// dropped without a call, the workers reconnect.
    pub(crate) completes: Box<dyn FnOnce()>,
}

impl Serving {
    pub(crate) fn parts(self) -> (Elsewhere, Box<dyn FnOnce()>) {
        (self.elsewhere, self.completes)
    }
}

impl Ready {
    /// Opens the devices and builds the joint training of the processes that were started together.
    pub(crate) fn new(
        settings: Settings,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        Self::with(World::joined(), settings, console, program)
    }

    /// [`Ready::new`] for a training of this process alone.
    pub(crate) fn by_itself(
        settings: Settings,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        Self::with(None, settings, console, program)
    }

    fn with(
        world: Option<World>,
        mut settings: Settings,
        console: &mut Console<'_>,
        program: Program<'_>,
    ) -> Result<Self> {
        let client = open(&settings, world, one_thread(&settings, program))?;
        settings.train.processes = client.world().map(World::size);
        let platform = client.platform().to_owned();
        let mut devices = settings.train.devices.resolve(client.devices().len(), &platform)?;
        decide(&mut settings, &mut devices, program.registry, console)?;
        let training: Rc<dyn Training> = (program.build)(&settings)?.into();
        if let (Some(world), Err(why)) = (client.world(), training.spans_processes()) {
            return Err(UsageError::new(format!(
                "{}: {why}, and {} were started together; PODRACER_MPI=none in each makes them trainings of their own",
                settings.experiment,
                world.size()
            ))
            .into());
        }
        let environment = Rc::new(program.registry.environment_of(&settings)?.clone());
        let xla = settings.xla_options(training.xla_options(&platform));
        settings.xla = xla.iter().cloned().collect();
        Ok(Ready {
            recorded: recorded(&client, &devices)?,
            settings,
            client,
            training,
            environment,
            devices,
            xla,
        })
    }

    /// Compiles the training's programs for this machine, without the cache, because a cached
    /// program keeps the source lines of its compilation. `xla` are options in addition to the
    /// training's.
    pub(crate) fn executables(
        &self,
        xla: &[(String, OptionValue)],
    ) -> Result<Vec<(LoopModule, Executable)>> {
        let modules = self.training.modules(self.devices.len())?;
        let compile = |one: LoopModule| {
            let options = CompileOptions {
                replicas: one.replicas,
                device_assignment: Some(self.devices[..one.replicas].to_vec()),
                xla: [&self.xla, xla].concat(),
                ..CompileOptions::default()
            };
            let executable = (self.client.compile(&one.module, &options))
                .with_context(|| format!("cannot compile {}", self.settings.experiment))?;
            Ok((one, executable))
        };
        modules.into_iter().map(compile).collect()
    }

    /// The progress of the checkpoint that the training resumes from, and the differences since, as
    /// a sentence for the user.
    pub(crate) fn goes_on_from(
        &self,
        found: &Found,
        registry: &Registry,
    ) -> Result<(RunProgress, Option<String>)> {
        let progress = RunProgress::of(found)?;
        let rule = self.training.xla_options(&self.recorded.platform);
        let settings = (&self.settings, &rule[..]);
        let warning = progress.check(&found.path, settings, &self.recorded, registry)?;
        Ok((progress, warning))
    }

    /// Compiles the programs that play episodes with the networks of a checkpoint.
    pub(crate) fn evaluator(&self, play: &Play) -> Result<Box<dyn Evaluator>> {
        let plays = self.plays()?;
        plays.evaluator(plays.environments(self.device(), play.episodes)?, self.device(), play)
    }

    /// As [`evaluator`](Ready::evaluator), in Gymnasium's implementation of the environment.
    pub(crate) fn evaluator_in_gymnasium(
        &self,
        play: &Play,
        registry: &Registry,
    ) -> Result<Box<dyn Evaluator>> {
        const MOST: usize = 16;
        let lanes = play.episodes.clamp(1, MOST);
        let environments = registry.in_gymnasium(&self.settings.environment, lanes)?;
        self.plays()?.evaluator(environments, self.device(), play)
    }

    /// The training's agent, apart from its loop.
    pub(crate) fn plays(&self) -> Result<&dyn Plays, UsageError> {
        let refused = |why| UsageError::new(format!("{}: {why}", self.settings.experiment));
        self.training.plays().map_err(refused)
    }

    /// The device that plays episodes, by its index.
    pub(crate) fn device(&self) -> (&Client, usize) {
        (&self.client, self.devices.first().copied().unwrap_or(0))
    }

    /// Sends the next order to the other processes, if there are any.
    pub(crate) fn tell(&self, order: Order) -> Result<()> {
        order.tell(self.client.world())
    }

    /// The run in this process, with its own workers or with workers elsewhere.
    pub(crate) fn run(
        &self,
        folder: &Path,
        from: Option<&Checkpoint<'_>>,
        elsewhere: Option<Elsewhere>,
    ) -> Result<Box<dyn Run>> {
        let start = self.start(folder, from);
        let run = match (self.training.serves(), elsewhere) {
            (Some(serves), Some(elsewhere)) => serves.serve(start, elsewhere),
            _ => self.training.start(start),
        };
        run.with_context(|| format!("cannot start {}", self.settings.experiment))
    }

    /// The run's devices, with the state of a checkpoint or the initial state.
    pub(crate) fn start<'a>(
        &'a self,
        folder: &'a Path,
        from: Option<&'a Checkpoint<'a>>,
    ) -> Start<'a> {
        let Ready { settings, client, devices, xla, .. } = self;
        Start { client, devices, xla, seed: settings.train.seed, folder, from }
    }
}

/// Greatest number of environments with kernels that may be too small for several threads.
const FEW: usize = 32;

/// Mean number of multiplications of a program's products above which several threads per kernel
/// gain time (decision 100).
const WORTH_SHARING: usize = 1 << 20;

/// True if one thread of a CPU computes the program of a training faster than several, because
/// distributing a kernel costs more than it gains.
fn one_thread(settings: &Settings, program: Program<'_>) -> bool {
    let Settings { train, training_loop, .. } = settings;
    let one_device = train.platform == "cpu" && train.devices.named() == 1;
    if !one_device || training_loop.host().is_some() || training_loop.lanes() > FEW {
        return false;
    }
    // Mistakes are reported when the training is built and traced for its devices.
    let products = (program.build)(settings).and_then(|training| training.products());
    let products = products.ok().flatten();
    products.is_none_or(|(count, work)| work / count.max(1) < WORTH_SHARING)
}

fn recorded(client: &Client, devices: &[usize]) -> Result<Recorded> {
    let first = client.device(devices.first().copied().unwrap_or(0))?;
    Ok(Recorded {
        podracer: env!("CARGO_PKG_VERSION").to_owned(),
        platform: client.platform().to_owned(),
        platform_version: client.platform_version().to_owned(),
        plugin: client.plugin().fingerprint().to_owned(),
        device_kind: first.kind().to_owned(),
        devices: devices.to_vec(),
        host: machine::host(),
        processor: machine::processor(),
    })
}
