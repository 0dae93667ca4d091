//! `podracer profile --memory`: the memory of a training's programs at their peaks, by line of
//! source and by buffer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use podracer_runtime::{Executable, LiveBuffer, MemoryStats, OptionValue};
use serde_json::{Value, json};

use crate::cli::console::Console;
use crate::cli::session::ready::Ready;
use crate::format::{aligned, bytes, plural};
use crate::run_directory::{MEMORY, write_profile};
use crate::sources::Sources;
use crate::training::LoopModule;

/// Number of lines and buffers shown for each program, unless the user gives another number.
const LINES: usize = 12;

/// Prints the memory of a training's programs, as one JSON object or with `lines` lines for each
/// program. Also writes the object into the run directory `into`.
pub(super) fn memory(
    ready: &Ready,
    (lines, json): (Option<usize>, bool),
    into: Option<&Path>,
    console: &mut Console<'_>,
) -> Result<u8> {
    let folder = tempfile::tempdir().context("cannot make a folder for what XLA writes")?;
    let dump = OptionValue::String(folder.path().display().to_string());
    let compiled = ready.executables(&[("xla_dump_to".to_owned(), dump)])?;
    let programs =
        compiled.iter().map(|(one, executable)| Peak::of(one, executable, folder.path()));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    let all: Vec<Value> = programs.iter().map(Peak::json).collect();
    let all = json!({ "experiment": ready.settings.experiment, "programs": all });
    into.map_or(Ok(()), |run| write_profile(run, MEMORY, &all))?;
    console.print(&match json {
        true => serde_json::to_string_pretty(&all)? + "\n",
        false => {
            let lines = lines.unwrap_or(LINES);
            programs.iter().map(|one| one.text(lines)).collect::<Vec<_>>().join("\n")
        }
    })?;
    Ok(0)
}

/// Memory of a program at its peak.
struct Peak<'a> {
    module: &'a LoopModule,
    memory: MemoryStats,
    buffers: Vec<LiveBuffer>,
}

impl<'a> Peak<'a> {
    /// Reads the files that XLA wrote into a folder when it compiled the program.
    fn of(module: &'a LoopModule, executable: &Executable, folder: &Path) -> Result<Self> {
        let compiled = executable.compiled();
        let optimized = compiled.optimized()?;
        let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        let written = files.iter().map(fs::DirEntry::path).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `module_0006.cartpole_ppo.cpu_after_optimizations-buffer-assignment.txt`
            name.split('.').nth(1) == Some(optimized.name())
                && name.ends_with("buffer-assignment.txt")
        });
        let written = written.context("XLA has not written the buffers of a program")?;
        let buffers = optimized.peak(&fs::read_to_string(written)?)?;
        Ok(Peak { module, memory: compiled.memory_stats()?, buffers })
    }

    fn at_peak(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.bytes).sum()
    }

    /// Bytes at the peak by origin, the largest first: a line, or the program's arguments that it
    /// does not change.
    fn lines(&self) -> Vec<(String, u64)> {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for buffer in &self.buffers {
            *lines.entry(made_by(buffer)).or_default() += buffer.bytes;
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        lines
    }

    fn text(&self, most: usize) -> String {
        let Peak { module, memory, buffers } = self;
        let peak = self.at_peak();
        let share = |part: u64| format!("{:.1}%", 100.0 * part as f64 / peak.max(1) as f64);
        let mut text = format!(
            "{}: {} on each of {} at its peak; arguments {}, temporary {}, code {}\n",
            module.name,
            bytes(peak),
            plural(module.replicas, "device"),
            bytes(memory.arguments.unsigned_abs()),
            bytes(memory.temporary.unsigned_abs()),
            bytes(memory.code.unsigned_abs()),
        );
        if module.threads > 1 {
            let _ =
                writeln!(text, "{} threads run it, each with memory of its own", module.threads);
        }
        if module.waiting_bytes > 0 {
            let waiting = bytes(module.waiting_bytes as u64);
            let _ = writeln!(text, "{waiting} wait for it in queues");
        }
        let mut sources = Sources::default();
        let mut rows = vec![["bytes", "share", "line", ""].map(str::to_owned).to_vec()];
        let of_line: BTreeMap<String, _> = buffers
            .iter()
            .filter_map(|buffer| Some((made_by(buffer), buffer.line.clone()?)))
            .collect();
        rows.extend(self.lines().into_iter().take(most).map(|(line, size)| {
            let source = of_line.get(&line).map(|line| sources.line(line)).unwrap_or_default();
            vec![bytes(size), share(size), line, source]
        }));
        text += &format!("\n{}\n", aligned(&rows));
        let mut rows =
            vec![["bytes", "share", "buffer", "type", "line"].map(str::to_owned).to_vec()];
        rows.extend(buffers.iter().take(most).map(|buffer| {
            let (size, line) = (buffer.bytes, made_by(buffer));
            vec![bytes(size), share(size), buffer.made_by.clone(), buffer.ty.clone(), line]
        }));
        text + &aligned(&rows)
    }

    fn json(&self) -> Value {
        let Peak { module, memory, buffers } = self;
        let buffers: Vec<Value> = buffers
            .iter()
            .map(|buffer| {
                let line = buffer.line.as_ref();
                json!({
                    "bytes": buffer.bytes, "value": buffer.value, "type": buffer.ty, "made_by": buffer.made_by,
                    "argument": buffer.argument, "file": line.map(|line| &line.file),
                    "line": line.map(|line| line.line),
                })
            })
            .collect();
        json!({
            "program": module.name, "devices": module.replicas, "threads": module.threads,
            "waiting_bytes": module.waiting_bytes, "peak_bytes": self.at_peak(),
            "argument_bytes": memory.arguments, "temporary_bytes": memory.temporary,
            "code_bytes": memory.code, "buffers": buffers,
        })
    }
}

/// The line that makes a buffer, or words if no line does.
fn made_by(buffer: &LiveBuffer) -> String {
    match (&buffer.line, buffer.argument) {
        (Some(line), _) => line.to_string(),
        (None, true) => "arguments that stay as they are".to_owned(),
        (None, false) => "XLA's own".to_owned(),
    }
}
