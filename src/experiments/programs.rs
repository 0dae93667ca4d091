//! The programs of a run with threads: their texts, and their modules.

use std::fmt::Write;

use anyhow::Result;
use podracer_compiler::simplify::{Options as Simplify, simplify};
use podracer_dsl::prelude::{ArgumentSpec, TensorType};
use podracer_envs::host::HostSpec;
use podracer_rl::learn::AnyAgent;
use podracer_runtime::{SebulbaLoop, SebulbaProgram};

use crate::export::{ArgumentKind, Portable, policy};
use crate::training::{LoopModule, Stage};

/// The programs as text, one after another.
pub(super) fn text(programs: &[&SebulbaProgram], stage: Stage, groups: &Simplify) -> String {
    let mut text = String::new();
    for program in programs {
        let of_stage = match stage {
            Stage::Trace => program.func.to_string(),
            Stage::Readable => {
                let spec = &program.lowered.spec;
                let arguments = spec.arguments.iter().map(|argument| argument.name.clone());
                let readable = program.func.readable().params(arguments);
                readable.results(spec.result_names.iter().cloned()).to_string()
            }
            Stage::Simplified => simplify(&program.func, groups).to_string(),
            Stage::StableHlo => program.lowered.module.key().to_owned(),
        };
        let _ = write!(text, "// {}\n{}\n\n", program.name, of_stage.trim_end());
    }
    text
}

/// The programs to run elsewhere, for one device each: `init` and `learn` of a loop with one
/// learner device, and the policy. A thread's lanes have the spaces in `environments`.
pub(super) fn portable(
    agent: &AnyAgent,
    traced: &SebulbaLoop,
    environments: &HostSpec,
    batch: Option<usize>,
) -> Result<Vec<Portable>> {
    let [_, _, learn] = traced.programs();
    let about = match traced.replay() {
        Some(replay) => format!(
            "one iteration: {} gradient steps at most, from windows that were drawn {} iterations before",
            replay.gradient_steps, replay.ahead
        ),
        None => format!(
            "one iteration from the shards of {} actor threads, each with {} steps of {} environments",
            traced.shape().threads,
            traced.shape().unroll,
            environments.environments
        ),
    };
    let arguments: &[_] = match traced.replay() {
        Some(_) => &[("state", ArgumentKind::State), ("windows", ArgumentKind::Input)],
        None => &[("state", ArgumentKind::State), ("shards", ArgumentKind::Input)],
    };
    let init = Portable::new(
        "init",
        "the learner's state at the start of a run, from the run's key",
        traced.init().lowered.clone(),
        &[("key", ArgumentKind::Key)],
        &["state"],
    )
    .with_parameters(traced.parameters().to_vec());
    let learn = Portable::new(
        "learn",
        about,
        learn.lowered.clone(),
        arguments,
        &["state", "metrics", "log", "requests"],
    );
    let observation = environments.observation.ty().into_spec();
    let spaces = (Some(&environments.observation), &environments.action);
    let [act, greedily] = policy("sebulba", agent, &observation, spaces, batch)?;
    Ok(vec![init, learn, act, greedily])
}

/// A program of one thread on one device.
pub(super) fn module(program: &SebulbaProgram) -> LoopModule {
    LoopModule {
        name: program.name,
        replicas: 1,
        threads: 1,
        waiting_bytes: 0,
        module: program.lowered.module.clone(),
    }
}

/// The program `learn` on these learner devices. Arguments that are not its state are the data of
/// an iteration; the data of `ahead` iterations may wait.
pub(super) fn learner(program: &SebulbaProgram, learners: usize, ahead: usize) -> LoopModule {
    let learn = module(program);
    let bytes = |types: &[TensorType]| types.iter().map(TensorType::bytes).sum::<usize>();
    let data = bytes(&learn.module.arguments).saturating_sub(bytes(&learn.module.results));
    LoopModule { replicas: learners, waiting_bytes: data * ahead, ..learn }
}
