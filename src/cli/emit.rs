//! `podracer emit`: prints the training loop on its way from the source to the device.

use anyhow::{Context, Result};
use podracer_runtime::{Client, CompileOptions};

use super::arguments::{EmitArguments, EmitStage};
use super::{Console, Program, decide, open};
use crate::settings::{Devices, Settings};
use crate::training::{Stage, Training};

pub(super) fn emit(
    args: &EmitArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let mut settings =
        program.registry.load(&args.experiment.experiment, &args.experiment.overrides())?;
    let stage = match args.stage {
        EmitStage::Trace => Some(Stage::Trace),
        EmitStage::Simplified => Some(Stage::Simplified),
        EmitStage::StableHlo => Some(Stage::StableHlo),
        EmitStage::Hlo => None,
    };
    // Only what XLA compiles for this machine, and "all its devices", ask for the machine.
    let wanted = &settings.train.devices;
    let client =
        (stage.is_none() || *wanted == Devices::All).then(|| open(&settings)).transpose()?;
    let mut devices = match (&client, wanted) {
        (Some(client), _) => wanted.resolve(client.devices().len(), client.platform())?,
        (None, Devices::Count(count)) => (0..*count).collect(),
        (None, Devices::List(list)) => list.clone(),
        (None, Devices::All) => vec![0],
    };
    decide(&mut settings, &mut devices, program.registry, console)?;
    let training = (program.build)(&settings)?;
    let mut text = match stage {
        Some(stage) => training.emit(stage, devices.len())?,
        None => {
            let client = client.expect("it was opened for XLA's stage");
            optimized(training.as_ref(), &settings, &client, &devices)?
        }
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    console.print(&text)?;
    Ok(0)
}

/// XLA's optimized programs of a training for this machine.
fn optimized(
    training: &dyn Training,
    settings: &Settings,
    client: &Client,
    devices: &[usize],
) -> Result<String> {
    let xla = settings.xla_options(training.xla_options(client.platform(), devices.len()));
    let modules = training.modules(devices.len())?;
    let several = modules.len() > 1;
    let mut text = String::new();
    for one in modules {
        let options = CompileOptions {
            replicas: one.replicas,
            device_assignment: Some(devices[..one.replicas].to_vec()),
            xla: xla.clone(),
        };
        let executable = client
            .compile(&one.module, &options)
            .with_context(|| format!("cannot compile {}", settings.experiment))?;
        if several {
            text += &format!("// {}\n", one.name);
        }
        text += &executable.compiled().optimized()?.to_string();
        text.push('\n');
    }
    Ok(text)
}
