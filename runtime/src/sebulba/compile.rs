//! The programs of a run, compiled for its devices.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use super::actor::ActorPrograms;
use super::options::SebulbaOptions;
use super::programs::{SebulbaLoop, SebulbaProgram};
use crate::program::quick;
use crate::{Client, CompileOptions, Executable, ProgramOptions, RuntimeError};

/// The compiled programs of a run.
pub(super) struct Programs {
    /// Makes the learner's state; only for a run that begins with a seed.
    pub(super) init: Option<Executable>,
    pub(super) learn: Arc<Executable>,
    /// The programs of each actor device.
    pub(super) actors: Vec<Arc<ActorPrograms>>,
}

/// Compiles the programs: the learner's and those of one actor device after another, side by side, as XLA compiles each on
/// one thread for the most part.
pub(super) fn compile(
    programs: &SebulbaLoop,
    client: &Client,
    options: &SebulbaOptions,
    init: bool,
) -> Result<Programs, RuntimeError> {
    let compiler = Compiler { client, options };
    thread::scope(|scope| {
        let compile = |program, devices, once| {
            let thread = thread::Builder::new().name("a compiler".to_owned());
            let spawned =
                thread.spawn_scoped(scope, move || compiler.compile(program, devices, once));
            spawned.map_err(|error| {
                RuntimeError::Options(format!("a thread to compile on cannot be started: {error}"))
            })
        };
        let init =
            init.then(|| compile(&programs.init, &options.learners[..], true)).transpose()?;
        let learn = compile(&programs.learn, &options.learners, false)?;
        let actors = options.actors.chunks(1).map(|device| {
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

fn joined(
    thread: ScopedJoinHandle<'_, Result<Executable, RuntimeError>>,
) -> Result<Executable, RuntimeError> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[derive(Clone, Copy)]
struct Compiler<'a> {
    client: &'a Client,
    options: &'a SebulbaOptions,
}

impl Compiler<'_> {
    fn compile(
        &self,
        program: &SebulbaProgram,
        devices: &[usize],
        once: bool,
    ) -> Result<Executable, RuntimeError> {
        let options = ProgramOptions {
            compile: CompileOptions {
                replicas: devices.len(),
                device_assignment: Some(devices.to_vec()),
                xla: self.options.xla.clone(),
            },
            cache: self.options.cache.clone(),
            ..ProgramOptions::default()
        };
        let options = if once { quick(&options, self.client.platform()) } else { options };
        let module = &program.lowered.module;
        let (executable, _) = options.cache.compile(self.client, module, &options.compile)?;
        Ok(executable)
    }
}
