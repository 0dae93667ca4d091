//! Loops that are one program: their text, their module, and their compile options.

use anyhow::Result;
use podracer_compiler::simplify::{Options as Simplify, simplify};
use podracer_dsl::Tree;
use podracer_runtime::{AnakinLoop, CompileOptions, ExecutableCache, ProgramOptions};

use crate::training::{LoopModule, Stage, Start};

/// The program as text.
pub(super) fn text<R: Tree, S: Tree, M: Tree, E: Tree>(
    traced: &AnakinLoop<R, S, M, E>,
    stage: Stage,
    groups: &Simplify,
) -> Result<String> {
    Ok(match stage {
        Stage::Trace => traced.traced().func().to_string(),
        Stage::Readable => traced.traced().readable().to_string(),
        Stage::Simplified => simplify(traced.traced().func(), groups).to_string(),
        Stage::StableHlo => traced.lower_with(groups)?.module.key().to_owned(),
    })
}

/// The program as a module to compile, for `devices` devices.
pub(super) fn module<R: Tree, S: Tree, M: Tree, E: Tree>(
    traced: &AnakinLoop<R, S, M, E>,
    replicas: usize,
    groups: &Simplify,
) -> Result<LoopModule> {
    let module = traced.lower_with(groups)?.module;
    Ok(LoopModule { name: "loop", replicas, threads: 1, waiting_bytes: 0, module })
}

/// The compile options of a program on the devices of a start.
pub(super) fn options(start: &Start<'_>, groups: &Simplify) -> ProgramOptions {
    let compile = CompileOptions {
        replicas: start.devices.len(),
        processes: start.client.processes(),
        device_assignment: Some(start.devices.to_vec()),
        xla: start.xla.to_vec(),
    };
    ProgramOptions { compile, cache: ExecutableCache::user(), simplify: groups.clone() }
}
