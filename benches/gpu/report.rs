//! One table of all that was measured.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::support::{si, time};

/// Writes `report.md` and `report.json` next to the lines of JSON.
pub fn run(folder: &Path) -> Result<()> {
    let lines = lines(folder)?;
    let of =
        |kind: &str| -> Vec<&Value> { lines.iter().filter_map(|line| line.get(kind)).collect() };
    let (mut devices, checks, rows) = (of("device"), of("check"), of("row"));
    devices.dedup();
    ensure!(
        !lines.is_empty(),
        "{} has no results yet: run.sh says how to get some",
        folder.display()
    );
    let mut text = String::from("# podracer on a GPU, beside JAX\n\n");
    for device in &devices {
        writeln!(text, "{device}\n")?;
    }
    let failed: Vec<&&Value> = checks.iter().filter(|check| check["ok"] != true).collect();
    writeln!(text, "Checks: {} of {} are good.\n", checks.len() - failed.len(), checks.len())?;
    for check in failed {
        writeln!(text, "- FAILED {}: {}", check["name"], check["said"])?;
    }
    text += "\nBest runs; the ratio is ours to JAX's on the same GPU in the same minutes. A step is one of every environment, with what is learnt from it.\n\n";
    text += "| program | environments | options | ours, steps/s | JAX, steps/s | ratio | compiling: ours, JAX | bytes: ours, JAX | kernels a step: ours, JAX |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for row in &rows {
        writeln!(text, "| {} |", cells(row).join(" | "))?;
    }
    fs::write(folder.join("report.md"), &text)?;
    let all = json!({"device": devices, "checks": checks, "rows": rows});
    fs::write(folder.join("report.json"), serde_json::to_string_pretty(&all)?)?;
    print(&text);
    Ok(())
}

fn cells(row: &Value) -> Vec<String> {
    let number = |name: &str| row.get(name).and_then(Value::as_f64);
    let shown = |name: &str, show: fn(f64) -> String| number(name).map_or("-".to_owned(), show);
    let both = |ours, peer, show: fn(f64) -> String| {
        format!("{}, {}", shown(ours, show), shown(peer, show))
    };
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let ratio = number("ours")
        .zip(number("peer"))
        .map_or("-".to_owned(), |(ours, peer)| format!("{:.2}", ours / peer));
    vec![
        text("program"),
        row["environments"].to_string(),
        text("settings").replace("xla.", ""),
        shown("ours", si),
        shown("peer", si),
        ratio,
        both("ours_compile", "peer_compile", time),
        both("ours_bytes", "peer_bytes", si),
        both("ours_kernels", "peer_kernels", |kernels| format!("{kernels:.1}")),
    ]
}

/// The lines of JSON in the files of the folder, in the order of their names.
fn lines(folder: &Path) -> Result<Vec<Value>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.insert(path.clone(), fs::read_to_string(path)?);
        }
    }
    // Tables for people stand between them.
    let json = |text: &String| -> Vec<Value> {
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    Ok(files.values().flat_map(json).collect())
}

#[allow(clippy::print_stdout, reason = "standard output is what a report is for")]
fn print(text: &str) {
    println!("{text}");
}
