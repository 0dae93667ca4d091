//! The programs of a run with threads: their texts, and what is compiled.

use std::fmt::Write;

use podracer_compiler::simplify::{Options as Simplify, simplify};
use podracer_dsl::prelude::TensorType;
use podracer_runtime::SebulbaProgram;

use crate::training::{LoopModule, Stage};

/// The programs as text, one after another.
pub(super) fn text(programs: &[&SebulbaProgram], stage: Stage, groups: &Simplify) -> String {
    let mut text = String::new();
    for program in programs {
        let of_stage = match stage {
            Stage::Trace => program.func.to_string(),
            Stage::Simplified => simplify(&program.func, groups).to_string(),
            Stage::StableHlo | Stage::Hlo => program.lowered.module.key().to_owned(),
        };
        let _ = write!(text, "// {}\n{}\n\n", program.name, of_stage.trim_end());
    }
    text
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

/// The program `learn` on these learner devices. What is not its state is the data of an iteration, of which so many may wait.
pub(super) fn learner(program: &SebulbaProgram, learners: usize, ahead: usize) -> LoopModule {
    let learn = module(program);
    let bytes = |types: &[TensorType]| types.iter().map(TensorType::bytes).sum::<usize>();
    let data = bytes(&learn.module.arguments).saturating_sub(bytes(&learn.module.results));
    LoopModule { replicas: learners, waiting_bytes: data * ahead, ..learn }
}
