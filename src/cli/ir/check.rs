//! `podracer check`: compiles the training loop for a machine that is not present, and reports on
//! it.

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use podracer_runtime::{Collective, CompileOptions, OptionValue, RuntimeError, Topology};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::target::Target;
use crate::cli::console::Console;
use crate::cli::devices::decide;
use crate::cli::program::Program;
use crate::format::{bytes, plural};
use crate::loading::Overrides;
use crate::settings::{Settings, TrainingLoop};
use crate::training::LoopModule;

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// A built-in experiment (see `podracer list`) or the path of a TOML file
    pub(crate) experiment: String,
    /// The machine, such as tpu:v5e:2x4 or tpu:v3:32x32
    #[arg(long)]
    pub(crate) target: String,
    /// Change a setting
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print the report as one JSON object, the last line of standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Report on a loop that was compiled for a machine that is not present.
#[derive(Debug, Serialize)]
struct Report {
    experiment: String,
    target: String,
    devices: usize,
    /// Actor and learner devices; `None` for `[anakin]`.
    #[serde(flatten)]
    split: Option<DeviceSplit>,
    environments: usize,
    /// Programs that the loop dispatches.
    modules: usize,
    /// The program of `[anakin]`.
    #[serde(flatten)]
    one: Option<CompiledProgram>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<CompiledProgram>,
}

#[derive(Debug, Serialize)]
struct DeviceSplit {
    actors: Vec<usize>,
    learners: Vec<usize>,
}

/// A compiled program of the loop.
#[derive(Debug, Serialize)]
struct CompiledProgram {
    program: &'static str,
    /// Number of devices of one execution.
    replicas: usize,
    /// Number of instructions that exchange data with the host while the program runs.
    host_transfers: usize,
    all_reduces: usize,
    /// Collectives between devices, counted once per iteration of the innermost loop around them.
    #[serde(serialize_with = "rows")]
    collectives: Vec<Collective>,
    while_loops: usize,
    fusions: usize,
    /// Number of arguments with memory that the results reuse.
    donated_inputs: usize,
    /// Bytes of results in the memory of donated arguments, per device.
    aliased_bytes: i64,
    /// Greatest memory in use, bytes per device; a lower bound if the plugin does not report it.
    peak_bytes: i64,
    /// Memory for all threads that run the program on a device, including the rollouts that wait on
    /// it.
    bytes_per_device: i64,
    compile_seconds: f64,
}

fn rows<S: Serializer>(collectives: &[Collective], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(collectives.iter().map(|one| {
        json!({
            "opcode": one.opcode,
            "tensors": one.tensors,
            "elements": one.elements,
            "loops": one.loops,
        })
    }))
}

pub(crate) fn check(
    args: &CheckArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let target = args.target.as_str();
    let machine = Target::parse(target)?;
    let set = args.set.clone();
    let overrides = Overrides { set, trust: args.trust, ..Overrides::default() };
    let mut settings = program.registry.load(&args.experiment, &overrides)?;
    let topology = machine.open()?;
    let devices = topology.devices()?;
    settings.training_loop.check_named(devices, target)?;
    match &mut settings.training_loop {
        TrainingLoop::Anakin(anakin) => {
            spread("anakin.environments", &mut anakin.environments, devices, console);
        }
        TrainingLoop::Meta(meta) => spread("meta.agents", &mut meta.agents, devices, console),
        TrainingLoop::Sebulba(_) | TrainingLoop::Central(_) => {}
    }
    decide(&mut settings, &mut Vec::from_iter(0..devices), program.registry, console)?;
    let training = (program.build)(&settings)?;
    let xla = settings.xla_options(training.xla_options("tpu"));
    let mut programs = Vec::new();
    for module in training.modules(devices)? {
        let program = compiled(&topology, &module, &xla)
            .map_err(|error| explain(error, target, &settings))
            .with_context(|| format!("cannot compile {} for {target}", settings.experiment))?;
        programs.push(program);
    }
    let split = settings.training_loop.host().map(|host| DeviceSplit {
        actors: host.acting().to_vec(),
        learners: host.learning().to_vec(),
    });
    let report = Report {
        experiment: settings.experiment.clone(),
        target: target.to_owned(),
        devices,
        split,
        environments: settings.training_loop.lanes(),
        modules: programs.len(),
        one: (programs.len() == 1).then(|| programs.remove(0)),
        programs,
    };
    console.print(&if args.json {
        serde_json::to_string(&report)? + "\n"
    } else {
        describe(&report)
    })?;
    Ok(0)
}

/// Compiles a program for the machine, and reads the optimized program.
fn compiled(
    topology: &Topology,
    module: &LoopModule,
    xla: &[(String, OptionValue)],
) -> Result<CompiledProgram, RuntimeError> {
    let began = Instant::now();
    let options = CompileOptions {
        replicas: module.replicas,
        xla: xla.to_vec(),
        ..CompileOptions::default()
    };
    let compiled = topology.compile(&module.module, &options)?;
    let compile_seconds = began.elapsed().as_secs_f64();
    // XLA returns the optimized program only for a single module.
    let optimized = compiled.optimized()?;
    let instructions = optimized.instructions();
    let number = |opcode: &str| instructions.get(opcode).copied().unwrap_or(0);
    let collectives = optimized.collectives();
    let memory = compiled.memory_stats()?;
    let peak_bytes =
        if memory.peak > 0 { memory.peak } else { memory.arguments + memory.beside_arguments() };
    Ok(CompiledProgram {
        program: module.name,
        replicas: module.replicas,
        host_transfers: optimized.host_transfers().len(),
        all_reduces: (collectives.iter()).filter(|one| one.opcode == "all-reduce").count(),
        collectives,
        while_loops: number("while"),
        fusions: number("fusion"),
        donated_inputs: optimized.aliased_arguments(),
        aliased_bytes: memory.aliased,
        peak_bytes,
        bytes_per_device: peak_bytes * module.threads as i64 + module.waiting_bytes as i64,
        compile_seconds,
    })
}

/// Gives every device the same number of environments, at least one.
fn spread(key: &str, number: &mut usize, devices: usize, console: &mut Console<'_>) {
    let asked = *number;
    if let Some(spread) = asked.checked_next_multiple_of(devices.max(1))
        && spread != asked
    {
        *number = spread;
        console.say(&format!(
            "{key} = {asked} does not divide over {devices} devices: checking {spread}"
        ));
    }
}

fn describe(report: &Report) -> String {
    let mut text = format!("{} on {}\n", report.experiment, report.target);
    let mut add = |name: &str, value: String| text += &format!("  {name:<15} {value}\n");
    add("devices", report.devices.to_string());
    if let Some(DeviceSplit { actors, learners }) = &report.split {
        add("actors", list(actors));
        add("learners", list(learners));
    }
    add("environments", report.environments.to_string());
    add("modules", report.modules.to_string());
    let several = report.one.is_none();
    let per_device =
        |number: i64| format!("{} per device", bytes(u64::try_from(number).unwrap_or(0)));
    for program in report.one.iter().chain(&report.programs) {
        if several {
            let devices = plural(program.replicas, "device");
            add(program.program, format!("on {devices} at once"));
        }
        add("host transfers", program.host_transfers.to_string());
        add("while loops", program.while_loops.to_string());
        add("fusions", program.fusions.to_string());
        add("donated inputs", program.donated_inputs.to_string());
        add("peak memory", per_device(program.peak_bytes));
        if several {
            add("of all threads", per_device(program.bytes_per_device));
        }
        add("compile time", format!("{:.2} s", program.compile_seconds));
        for one in &program.collectives {
            add(&one.opcode, one.to_string());
        }
    }
    text
}

fn list(devices: &[usize]) -> String {
    let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
    devices.join(", ")
}

/// Adds advice to XLA's errors: for learners without all-reduce, and for a program that needs too
/// much memory.
fn explain(error: RuntimeError, target: &str, settings: &Settings) -> anyhow::Error {
    let section = settings.training_loop.section();
    let message = match &error {
        RuntimeError::Xla { message, .. } => message,
        RuntimeError::Reduction(_) if settings.training_loop.host().is_some() => {
            return anyhow!(
                "{error}; --set {section}.actors=[...] --set {section}.learners=[...] says which devices do what"
            );
        }
        _ => return error.into(),
    };
    match memory_numbers(message) {
        Some((needed, available)) => anyhow!(
            "out of memory: the program needs {} ({needed} bytes) on each device and {target} has {} ({available} bytes): lower \
             {section}.environments or {section}.unroll, or take more devices",
            bytes(needed),
            bytes(available)
        ),
        None => error.into(),
    }
}

/// Bytes needed and available, from `Used 64.00G of 15.75G hbm` or `(64.00G) exceeds available HBM (15.75G)`.
fn memory_numbers(message: &str) -> Option<(u64, u64)> {
    let used = message.split("Used ").skip(1).find_map(|rest| {
        let mut words = rest.split_whitespace();
        let needed = words.next()?;
        (words.next()? == "of").then_some((needed, words.next()?))
    });
    let (needed, available) = used.or_else(|| {
        let (before, after) = message.split_once("exceeds available")?;
        let needed = before.rsplit_once('(')?.1.split(')').next()?;
        let available = after.split_once('(')?.1.split(')').next()?;
        Some((needed, available))
    })?;
    Some((size(needed)?, size(available)?))
}

/// The number of bytes in a text such as `15.75G`.
fn size(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['.', ',', ';']).trim_end_matches("iB").trim_end_matches('B');
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let power = match &text[split..] {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    let number: f64 = text[..split].parse().ok()?;
    Some((number * 1024f64.powi(power)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_numbers_of_a_program_that_is_too_large() {
        let gib = |gib: f64| (gib * 1024.0 * 1024.0 * 1024.0) as u64;
        let both = Some((gib(64.0), gib(15.75)));
        assert_eq!(
            memory_numbers("Ran out. Used 64.00G of 15.75G hbm. Exceeded hbm capacity by 48G."),
            both
        );
        assert_eq!(memory_numbers("allocation (64.00G) exceeds available HBM (15.75G)"), both);
        assert_eq!(memory_numbers("Used up"), None);
        assert_eq!(size("512.0K"), Some(524_288));
    }
}
