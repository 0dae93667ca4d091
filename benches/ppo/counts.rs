//! What there is to compile and to launch.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use podracer::experiments;
use podracer_runtime::{Client, CompileOptions};
use serde_json::json;

use super::ours::{Ours, Shape};
use crate::support::{Table, bytes, say, time};

/// Counts of one call of the training program.
pub struct Counted {
    /// Bytes on each device.
    pub bytes: i64,
    /// Kernels that are launched.
    pub kernels: u64,
}

/// Compiles the training loop and counts.
pub fn count(client: &Client, shape: Shape, ours: &Ours) -> Result<Counted> {
    let settings = ours.settings(shape)?;
    let training = experiments::build(&settings)?;
    let module = training.modules(shape.devices)?.remove(0).module;
    let options = CompileOptions {
        replicas: shape.devices,
        xla: settings.xla_options(training.xla_options(client.platform())),
        ..CompileOptions::default()
    };
    let executable = client.compile(&module, &options)?;
    let compiled = executable.compiled();
    Ok(Counted { bytes: bytes(compiled)?, kernels: compiled.optimized()?.kernels() })
}

/// Compiles the training loop in each shape and prints the counts of its contents.
pub fn print(client: &Client, shapes: &[Shape], ours: &Ours) -> Result<()> {
    let mut table = Table::new(&[
        "environments",
        "trace + lower",
        "XLA, without the first state's",
        "StableHLO ops",
        "XLA instructions",
        "launched by its thunks",
        "fusions",
        "while loops",
        "all-reduces",
        "dispatches per call",
    ]);
    for &shape in shapes {
        let settings = ours.settings(shape)?;
        let training = experiments::build(&settings)?;
        let start = Instant::now();
        let module = training.modules(shape.devices)?.remove(0).module;
        let lowered = start.elapsed().as_secs_f64();
        let options = CompileOptions {
            replicas: shape.devices,
            xla: settings.xla_options(training.xla_options(client.platform())),
            ..CompileOptions::default()
        };
        let start = Instant::now();
        let executable = client.compile(&module, &options)?;
        let compiled = start.elapsed().as_secs_f64();
        let optimized = executable.compiled().optimized()?;
        let (all, launched) = (optimized.instructions(), optimized.launched());
        let sum = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
        // What hands values on costs nothing when the program runs.
        let free = ["parameter", "tuple", "get-tuple-element", "constant", "bitcast"];
        let runs = launched
            .iter()
            .filter(|(opcode, _)| !free.contains(&opcode.as_str()))
            .map(|(_, count)| count)
            .sum::<usize>();
        let of = |opcode: &str| launched.get(opcode).copied().unwrap_or(0);
        let operations = module.key().matches("\"stablehlo.").count();
        let counts = [operations, sum(&all), runs, of("fusion"), of("while"), of("all-reduce")];
        say(&json!({
            "bench": "ppo counts", "environments": shape.environments, "devices": shape.devices, "lower_seconds": lowered, "xla_seconds": compiled,
            "stablehlo_ops": counts[0], "xla_instructions": counts[1], "xla_launched": counts[2], "fusions": counts[3], "whiles": counts[4],
            "all_reduces": counts[5], "launched": launched,
        }));
        let row = [shape.environments.to_string(), time(lowered), time(compiled)];
        table.row(
            row.into_iter().chain(counts.iter().map(ToString::to_string)).chain(["1".to_owned()]),
        );
    }
    table.print("The training loop as a program");
    Ok(())
}
