//! The tables.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sides::Side;
use crate::support::{Figures, Table, number, si, speeds, time};

/// The figures of every side on one task.
pub struct Measured {
    /// Name of the task.
    pub name: String,
    /// Environments in all.
    pub environments: usize,
    /// In the order of [`Side::all`].
    pub sides: Vec<SideFigures>,
}

/// The figures of a side.
#[derive(Default)]
pub struct SideFigures {
    /// Name in the tables.
    pub label: String,
    /// True for ours.
    pub ours: bool,
    /// As of [`Side::target`].
    target: f64,
    /// Environment steps per second of wall time.
    pub speed: Figures,
    /// Environment steps per CPU-second.
    per_cpu_second: Figures,
    /// CPU-seconds of a run.
    cpu_seconds: Figures,
    /// Seconds and CPU-seconds from the trace to the executable, in the first round. Empty for a side that does not compile.
    compile: [Figures; 2],
    /// Peak memory of the process in bytes.
    peak: Figures,
}

impl Measured {
    /// Without figures.
    pub fn new(name: &str, environments: usize, sides: &[Side<'_>]) -> Self {
        let empty = |side: &Side<'_>| SideFigures {
            label: side.label.clone(),
            ours: side.ours,
            target: side.target,
            ..SideFigures::default()
        };
        Measured { name: name.to_owned(), environments, sides: sides.iter().map(empty).collect() }
    }

    /// Ours with one device.
    pub fn ours(&self) -> Option<&SideFigures> {
        self.sides.first()
    }

    fn shown(&self) -> [String; 2] {
        [self.name.clone(), self.environments.to_string()]
    }
}

impl SideFigures {
    /// Adds the runs of a round.
    pub fn add(&mut self, line: &Value) -> Result<()> {
        let cpu = line.get("run_cpu_seconds").and_then(Value::as_array);
        let cpu = cpu.with_context(|| format!("no list `run_cpu_seconds` in {line}"))?;
        let cpu: Vec<f64> = cpu.iter().filter_map(Value::as_f64).collect();
        let steps = number(line, "env_steps")?;
        self.speed.extend(speeds(line)?);
        self.per_cpu_second.extend(cpu.iter().map(|seconds| steps / seconds));
        self.cpu_seconds.extend(cpu);
        self.peak.extend([number(line, "peak_bytes")?]);
        let [wall, cpu] = &mut self.compile;
        if line.get("compile_seconds").is_some() && wall.all().is_empty() {
            // A peer's stages are apart; ours are together.
            let stages = ["trace_seconds", "lower_seconds", "compile_seconds"];
            wall.extend([stages.iter().filter_map(|stage| number(line, stage).ok()).sum()]);
            cpu.extend([number(line, "compile_cpu_seconds")?]);
        }
        Ok(())
    }
}

/// Prints the tables of every task.
pub fn print(all: &[Measured]) {
    print_ratios(all);
    print_sides(all);
    print_devices(all);
}

fn print_ratios(all: &[Measured]) {
    let mut table = Table::new(&[
        "task",
        "environments",
        "peer",
        "ours best / median",
        "peer best / median",
        "ratio of bests",
        "of medians",
    ]);
    for measured in all {
        let Some(ours) = measured.ours() else { continue };
        for peer in measured.sides.iter().filter(|side| !side.ours) {
            let shown = measured.shown().into_iter().chain([peer.label.clone()]);
            table.row(shown.chain(ours.per_cpu_second.beside(
                &peer.per_cpu_second,
                peer.target,
                si,
            )));
        }
    }
    table.print("Random-policy stepping of MuJoCo's tasks, environment steps per CPU-second");
}

fn print_sides(all: &[Measured]) {
    let mut table = Table::new(&[
        "task",
        "environments",
        "side",
        "steps/s, best / median",
        "steps per CPU-second, best / median",
        "CPU-seconds of a run, median",
        "compile wall / CPU",
        "peak memory",
    ]);
    let both = |figures: &Figures| format!("{} / {}", si(figures.greatest()), si(figures.median()));
    for measured in all {
        for side in &measured.sides {
            let [wall, cpu] = &side.compile;
            let compile = match wall.all() {
                [] => String::new(),
                _ => format!("{} / {}", time(wall.least()), time(cpu.least())),
            };
            let cells = [
                side.label.clone(),
                both(&side.speed),
                both(&side.per_cpu_second),
                format!("{:.2}", side.cpu_seconds.median()),
                compile,
                format!("{:.0} MB", side.peak.greatest() / 1e6),
            ];
            table.row(measured.shown().into_iter().chain(cells));
        }
    }
    table.print("All sides");
}

fn print_devices(all: &[Measured]) {
    let mut table = Table::new(&[
        "task",
        "environments",
        "one device, steps/s, best / median",
        "more devices",
        "best / median",
        "ratio of bests",
        "of medians",
    ]);
    let mut compared = false;
    for measured in all {
        let Some(one) = measured.ours() else { continue };
        for more in measured.sides.iter().skip(1).filter(|side| side.ours) {
            let both = more.speed.beside(&one.speed, more.target, si);
            let [more_cell, one_cell, ratio, medians] = both;
            let cells = [one_cell, more.label.clone(), more_cell, ratio, medians];
            table.row(measured.shown().into_iter().chain(cells));
            compared = true;
        }
    }
    if compared {
        table.print("More devices, environment steps per second");
    }
}
