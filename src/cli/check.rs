//! `podracer check`

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use podracer_runtime::{Collective, CompileOptions, RuntimeError};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::format::bytes;
use super::target::Target;
use super::{Build, Console};
use crate::settings::{Overrides, Settings, UsageError, load};

/// What is known of a compiled loop without the machine.
#[derive(Debug, Serialize)]
struct Report {
    experiment: String,
    target: String,
    devices: usize,
    environments: usize,
    /// Programs that one call of the loop dispatches.
    modules: usize,
    /// Instructions that exchange data with the host while the loop runs.
    host_transfers: usize,
    all_reduces: usize,
    /// What the devices exchange among themselves: once per round of the innermost loop around it.
    #[serde(serialize_with = "rows")]
    collectives: Vec<Collective>,
    while_loops: usize,
    fusions: usize,
    /// Arguments whose memory the results reuse.
    donated_inputs: usize,
    /// Bytes of results in the memory of donated arguments, per device.
    aliased_bytes: i64,
    /// The most memory in use at one time, per device.
    peak_bytes: i64,
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

pub(super) fn check(
    experiment: &str,
    overrides: &Overrides,
    target: &str,
    json: bool,
    console: &mut Console<'_>,
    build: Build<'_>,
) -> Result<u8> {
    let machine = Target::parse(target)?;
    let mut settings = load(experiment, overrides)?;
    if settings.sebulba.is_some() {
        return Err(UsageError::new(format!(
            "{experiment} has [sebulba], which is several programs: `check` compiles loops that are one"
        ))
        .into());
    }
    let topology = machine.open()?;
    let devices = topology.devices()?;
    spread(&mut settings, devices, console);
    settings.check_division(devices)?;
    let training = build(&settings)?;

    let began = Instant::now();
    let compiled_loop = training.module(devices)?;
    let options = CompileOptions {
        replicas: devices,
        device_assignment: None,
        xla: settings.xla_options(training.xla_options("tpu", devices)),
    };
    let compiled = topology
        .compile(&compiled_loop.module, &options)
        .map_err(|error| explain(error, target))
        .with_context(|| format!("cannot compile {} for {target}", settings.experiment))?;
    let compile_seconds = began.elapsed().as_secs_f64();

    let optimized = compiled.optimized()?;
    let instructions = optimized.instructions();
    let number = |opcodes: &[&str]| {
        opcodes
            .iter()
            .filter_map(|opcode| instructions.get(*opcode))
            .sum()
    };
    let collectives = optimized.collectives();
    let memory = compiled.memory_stats()?;
    let report = Report {
        experiment: settings.experiment.clone(),
        target: target.to_owned(),
        devices,
        environments: settings.anakin.environments,
        // XLA gives the optimized program of a single module only.
        modules: 1,
        host_transfers: optimized.host_transfers().len(),
        all_reduces: collectives
            .iter()
            .filter(|one| one.opcode == "all-reduce")
            .count(),
        collectives,
        while_loops: number(&["while"]),
        fusions: number(&["fusion"]),
        donated_inputs: optimized.aliased_arguments(),
        aliased_bytes: memory.aliased,
        peak_bytes: if memory.peak > 0 {
            memory.peak
        } else {
            sum(&memory)
        },
        compile_seconds,
    };
    console.print(&if json {
        serde_json::to_string(&report)? + "\n"
    } else {
        describe(&report)
    })?;
    Ok(0)
}

/// Gives every device at least one environment, and all the same number.
fn spread(settings: &mut Settings, devices: usize, console: &mut Console<'_>) {
    let asked = settings.anakin.environments;
    if let Some(environments) = asked.checked_next_multiple_of(devices.max(1))
        && environments != asked
    {
        settings.anakin.environments = environments;
        console.say(&format!(
            "anakin.environments = {asked} does not divide over {devices} devices: checking {environments}"
        ));
    }
}

/// What the program occupies at least, where the plugin does not say how much it is at most.
fn sum(memory: &podracer_runtime::MemoryStats) -> i64 {
    memory.arguments + memory.outputs - memory.aliased + memory.temporary
}

fn describe(report: &Report) -> String {
    let mut lines = vec![
        ("devices", report.devices.to_string()),
        ("environments", report.environments.to_string()),
        ("modules", report.modules.to_string()),
        ("host transfers", report.host_transfers.to_string()),
        ("while loops", report.while_loops.to_string()),
        ("fusions", report.fusions.to_string()),
        ("donated inputs", report.donated_inputs.to_string()),
        (
            "peak memory",
            format!(
                "{} per device",
                bytes(u64::try_from(report.peak_bytes).unwrap_or(0))
            ),
        ),
        ("compile time", format!("{:.2} s", report.compile_seconds)),
    ];
    lines.extend(
        report
            .collectives
            .iter()
            .map(|one| (one.opcode.as_str(), one.to_string())),
    );
    let mut text = format!("{} on {}\n", report.experiment, report.target);
    for (name, value) in lines {
        text += &format!("  {name:<15} {value}\n");
    }
    text
}

/// XLA's page about a program that is too large, as the two numbers that matter.
fn explain(error: RuntimeError, target: &str) -> anyhow::Error {
    let RuntimeError::Xla { message, .. } = &error else {
        return error.into();
    };
    match memory_numbers(message) {
        Some((needed, available)) => anyhow!(
            "out of memory: the program needs {} ({needed} bytes) on each device and {target} has {} ({available} bytes): lower \
             anakin.environments or anakin.unroll, or take more devices",
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

/// `15.75G` in bytes.
fn size(text: &str) -> Option<u64> {
    let text = text
        .trim_end_matches(['.', ',', ';'])
        .trim_end_matches("iB")
        .trim_end_matches('B');
    let split = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
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
        assert_eq!(
            memory_numbers("allocation (64.00G) exceeds available HBM (15.75G)"),
            both
        );
        assert_eq!(memory_numbers("Used up"), None);
        assert_eq!(size("512.0K"), Some(524_288));
    }
}
