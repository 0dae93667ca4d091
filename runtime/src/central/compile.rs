//! The programs of an inference device, compiled for it.

use std::thread;

use podracer_dsl::prelude::{Log, Spec};

use super::programs::CentralLoop;
use crate::learning::compile::{Compiler, joined};
use crate::{Executable, RuntimeError};

/// The programs of an inference device.
pub(super) struct DevicePrograms {
    pub(super) start: Executable,
    pub(super) restart: Executable,
    pub(super) unrolls: Executable,
    pub(super) shards: Executable,
    /// For each size of a batch, the largest first.
    pub(super) sized: Vec<SizedPrograms>,
    /// Number of leaves of the published parameters.
    pub(super) nets: usize,
}

/// The programs for batches of one size.
pub(super) struct SizedPrograms {
    pub(super) size: usize,
    pub(super) act: Executable,
    pub(super) log: Spec<Log>,
    pub(super) take_out: Executable,
}

impl DevicePrograms {
    /// Compiles the programs for a device, concurrently.
    pub(super) fn compile(
        programs: &CentralLoop,
        compiler: Compiler<'_>,
        device: usize,
    ) -> Result<Self, RuntimeError> {
        let device = [device];
        thread::scope(|scope| {
            let compile = |program, once| compiler.begin(scope, program, &device, once);
            let start = compile(&programs.learning.start, true)?;
            let restart = compile(&programs.restart, true)?;
            let unrolls = compile(&programs.unrolls, true)?;
            let shards = compile(&programs.shards, false)?;
            let sized = programs.sized.iter().map(|sized| {
                Ok((sized, compile(&sized.act, false)?, compile(&sized.take_out, false)?))
            });
            let sized = sized.collect::<Result<Vec<_>, RuntimeError>>()?;
            let sized = sized.into_iter().map(|(sized, act, take_out)| {
                Ok(SizedPrograms {
                    size: sized.size,
                    act: joined(act)?,
                    log: sized.log.clone(),
                    take_out: joined(take_out)?,
                })
            });
            Ok(DevicePrograms {
                sized: sized.collect::<Result<_, RuntimeError>>()?,
                start: joined(start)?,
                restart: joined(restart)?,
                unrolls: joined(unrolls)?,
                shards: joined(shards)?,
                nets: programs.learning.nets.len(),
            })
        })
    }

    /// The programs of the smallest size with room for `lanes` lanes, or of the largest size.
    pub(super) fn fitting(&self, lanes: usize) -> &SizedPrograms {
        let fits = self.sized.iter().rev().find(|sized| sized.size >= lanes);
        fits.unwrap_or(&self.sized[0])
    }
}
