//! The programs of a run, compiled for its devices.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use podracer_dsl::prelude::{Log, Spec};

use super::programs::{SebulbaLoop, SebulbaProgram};
use crate::pjrt::Device;
use crate::program::quick;
use crate::settings::HostLoopSettings;
use crate::{
    Client, CompileOptions, Executable, ExecutableCache, OptionValue, ProgramOptions, RuntimeError,
};

/// The compiled programs of a run.
pub(crate) struct Programs {
    /// Makes the learner's state; only for a run that begins with a seed.
    pub(crate) init: Option<Executable>,
    pub(crate) learn: Arc<Executable>,
    /// The programs of each actor device.
    pub(crate) actors: Vec<Arc<ActorPrograms>>,
}

/// The programs of an actor device.
pub(crate) struct ActorPrograms {
    pub(crate) start: Executable,
    pub(crate) act: Executable,
    pub(crate) finish: Executable,
    /// Number of leaves of the published parameters.
    pub(crate) nets: usize,
    /// Indices of the leaves of an actor's state that the next trajectory depends on.
    pub(crate) carried: Vec<usize>,
    /// Types of the reports from `act`: its results after action and state.
    pub(crate) log: Spec<Log>,
}

/// A thread that compiles a program.
type Compiling<'scope> = ScopedJoinHandle<'scope, Result<Executable, RuntimeError>>;

/// Compiles the learner's programs and every actor device's programs, one device after another. The
/// programs of a group are compiled concurrently, because XLA compiles each mostly on one thread.
pub(crate) fn compile(
    programs: &SebulbaLoop,
    compiler: Compiler<'_>,
    (actors, learners): (&[usize], &[usize]),
    init: bool,
) -> Result<Programs, RuntimeError> {
    let together = CompileOptions {
        replicas: learners.len(),
        processes: programs.shape.processes,
        xla: compiler.xla.to_vec(),
        ..CompileOptions::default()
    };
    let modules = [&programs.init, &programs.learn].map(|program| &program.lowered.module);
    together.agree(compiler.client, &modules)?;
    thread::scope(|scope| {
        let compile = |program, devices, once| compiler.begin(scope, program, devices, once);
        let init = init.then(|| compile(&programs.init, learners, true)).transpose()?;
        let learn = compile(&programs.learn, learners, false)?;
        let actors = actors.chunks(1).map(|device| {
            let start = compile(&programs.start, device, true)?;
            let act = compile(&programs.act, device, false)?;
            let finish = compile(&programs.finish, device, false)?;
            Ok(Arc::new(ActorPrograms {
                start: joined(start)?,
                act: joined(act)?,
                finish: joined(finish)?,
                log: programs.act_log.clone(),
                nets: programs.nets.len(),
                carried: programs.carried.iter().map(|(leaf, _)| *leaf).collect(),
            }))
        });
        let actors = actors.collect::<Result<Vec<_>, RuntimeError>>()?;
        Ok(Programs {
            init: init.map(joined).transpose()?,
            learn: Arc::new(joined(learn)?),
            actors,
        })
    })
}

/// The program that a thread compiles.
pub(crate) fn joined(thread: Compiling<'_>) -> Result<Executable, RuntimeError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Client, options and cache for compiling the programs of a run.
#[derive(Clone, Copy)]
pub struct Compiler<'a> {
    /// The client with the acting and learning devices.
    pub client: &'a Client,
    /// Options for XLA, by name.
    pub xla: &'a [(String, OptionValue)],
    /// The cache of compiled programs.
    pub cache: &'a ExecutableCache,
}

impl<'a> Compiler<'a> {
    /// The devices that act, and the devices that learn.
    pub(crate) fn devices(
        &self,
        settings: &HostLoopSettings,
    ) -> Result<(Vec<Device>, Vec<Device>), RuntimeError> {
        let devices = |indices: &[usize]| -> Result<Vec<_>, _> {
            indices.iter().map(|&index| self.client.device(index)).collect()
        };
        Ok((devices(settings.acting())?, devices(settings.learning())?))
    }

    /// Compiles a program on its own thread. `once` is true for a program that runs once, and
    /// should be compiled quickly.
    pub(crate) fn begin<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        program: &'a SebulbaProgram,
        devices: &'a [usize],
        once: bool,
    ) -> Result<Compiling<'scope>, RuntimeError> {
        let thread = thread::Builder::new().name("a compiler".to_owned());
        let spawned = thread.spawn_scoped(scope, move || self.compile(program, devices, once));
        spawned.map_err(|error| {
            RuntimeError::Options(format!("a thread to compile on cannot be started: {error}"))
        })
    }

    fn compile(
        &self,
        program: &SebulbaProgram,
        devices: &[usize],
        once: bool,
    ) -> Result<Executable, RuntimeError> {
        let options = ProgramOptions {
            compile: CompileOptions {
                replicas: devices.len(),
                processes: program.lowered.spec.processes,
                device_assignment: Some(devices.to_vec()),
                xla: self.xla.to_vec(),
            },
            cache: self.cache.clone(),
            ..ProgramOptions::default()
        };
        let options = match once {
            true => quick(&options, &program.lowered, self.client.platform()),
            false => options,
        };
        let module = &program.lowered.module;
        let (executable, _) = options.cache.compile(self.client, module, &options.compile)?;
        Ok(executable)
    }
}
