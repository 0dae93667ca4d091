//! `podracer emit`: prints the training loop on its way from the source to the device.

use anyhow::{Context, Result};
use podracer_runtime::CompileOptions;

use super::arguments::EmitArguments;
use super::{Console, Program, decide, open};
use crate::settings::Devices;
use crate::training::Stage;

pub(super) fn emit(
    args: &EmitArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let mut settings =
        program.registry.load(&args.experiment.experiment, &args.experiment.overrides())?;
    let stage = args.stage;
    // Only what XLA compiles for this machine, and "all its devices", ask for the machine.
    let wanted = &settings.train.devices;
    let client =
        (stage == Stage::Hlo || *wanted == Devices::All).then(|| open(&settings)).transpose()?;
    let mut devices = match (&client, wanted) {
        (Some(client), _) => wanted.resolve(client.devices().len(), client.platform())?,
        (None, Devices::Count(count)) => (0..*count).collect(),
        (None, Devices::List(list)) => list.clone(),
        (None, Devices::All) => vec![0],
    };
    decide(&mut settings, &mut devices, program.registry, console)?;
    let training = (program.build)(&settings)?;
    let mut text = match (stage, client) {
        (Stage::Hlo, Some(client)) => {
            let rule = training.xla_options(client.platform(), devices.len());
            let xla = settings.xla_options(rule);
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
            text
        }
        (stage, _) => training.emit(stage, devices.len())?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    console.print(&text)?;
    Ok(0)
}
