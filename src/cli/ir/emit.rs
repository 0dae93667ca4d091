//! `podracer ir emit`: prints the training loop on its way from the source to the device.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::cli::arguments::ExperimentArguments;
use crate::cli::console::Console;
use crate::cli::devices::{decide, open};
use crate::cli::program::Program;
use crate::cli::session::ready::Ready;
use crate::settings::{Devices, Settings};
use crate::training::Stage;

#[derive(Args, Debug)]
pub(crate) struct EmitArguments {
    #[command(flatten)]
    experiment: ExperimentArguments,
    /// The stage of the program
    #[arg(long, value_enum)]
    stage: EmitStage,
}

/// A stage of a program between the user's source and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EmitStage {
    /// The IR, as traced.
    Trace,
    /// The IR as traced, in readable form: calls of library functions are not expanded.
    Readable,
    /// The IR after all passes.
    Simplified,
    /// The StableHLO module that XLA receives.
    #[value(name = "stablehlo")]
    StableHlo,
    /// XLA's optimized program for this machine.
    Hlo,
}

pub(super) fn emit(
    args: &EmitArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let settings =
        program.registry.load(&args.experiment.experiment, &args.experiment.overrides())?;
    let mut text = match args.stage {
        EmitStage::Trace => traced(settings, Stage::Trace, console, program)?,
        EmitStage::Readable => traced(settings, Stage::Readable, console, program)?,
        EmitStage::Simplified => traced(settings, Stage::Simplified, console, program)?,
        EmitStage::StableHlo => traced(settings, Stage::StableHlo, console, program)?,
        EmitStage::Hlo => optimized(&Ready::new(settings, console, program)?)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    console.print(&text)?;
    Ok(0)
}

/// The training loop before XLA. The machine is only opened for the setting "all its devices".
fn traced(
    mut settings: Settings,
    stage: Stage,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<String> {
    let mut devices = match &settings.train.devices {
        Devices::Count(count) => (0..*count).collect(),
        Devices::List(list) => list.clone(),
        Devices::All => {
            let client = open(&settings, None, false)?;
            settings.train.devices.resolve(client.devices().len(), client.platform())?
        }
    };
    decide(&mut settings, &mut devices, program.registry, console)?;
    (program.build)(&settings)?.emit(stage, devices.len())
}

/// XLA's optimized programs of a training for this machine.
fn optimized(ready: &Ready) -> Result<String> {
    let all = ready.executables(&[])?;
    let several = all.len() > 1;
    let mut text = String::new();
    for (one, executable) in all {
        if several {
            text += &format!("// {}\n", one.name);
        }
        text += &executable.compiled().optimized()?.to_string();
        text.push('\n');
    }
    Ok(text)
}
