//! `make learn`: trains every built-in experiment over seeds, and writes `docs/learning.md`, which
//! compares each mean return with a published return.
//!
//! # Invariants
//! - A training that has ended well is one record of `docs/learning.jsonl`, and is not repeated while the experiment's settings
//!   stay as they were. One that was stopped goes on from its run directory.
//! - The page shows no record of other settings than its experiment's without saying what the settings were.
//! - The page marks a row if the program of its training is known to have changed since.
//! - The returns are those that `podracer eval` prints, of episodes that were not trained on.
//! - A row that cannot be trained, such as one whose Python packages or file are not there, is said to be skipped.
#![forbid(unsafe_code)]

mod drive;
mod mark;
mod page;
mod program;
mod record;
mod rows;
mod statistics;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;

use drive::{Driver, Ended};
use page::Entry;
use program::Program;
use record::Records;
use rows::Row;

/// Trains the built-in experiments over seeds, and compares their returns with published returns.
#[derive(Parser)]
struct Options {
    /// Only these rows, which have the names of their experiments unless they change settings
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    only: Vec<String>,
    /// Seeds of each experiment, from 0, in place of the table's numbers
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=rows::MOST_SEEDS))]
    seeds: Option<u64>,
    /// Train nothing: write the page from the records that are there
    #[arg(long)]
    page: bool,
    /// The folder of the run directories, from where an interrupted training resumes
    #[arg(long, default_value = "target/learning", value_name = "FOLDER")]
    runs: PathBuf,
    /// The folder of learning.jsonl (the records) and learning.md (the page)
    #[arg(long, default_value = "docs", value_name = "FOLDER")]
    docs: PathBuf,
    /// The program `podracer` [default: next to this program]
    #[arg(long, value_name = "FILE")]
    podracer: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode> {
    let all = Row::all()?;
    if let Some(unknown) = options.only.iter().find(|name| all.iter().all(|row| row.name != **name))
    {
        let known: Vec<_> = all.iter().map(|row| row.name.as_str()).collect();
        bail!("--only {unknown}: there is no such row; there are {}", known.join(", "));
    }
    let program = Program::new(match &options.podracer {
        Some(path) => path.clone(),
        None => beside_this_program()?,
    });
    let mut records = Records::read(&options.docs.join("learning.jsonl"))?;
    let mut entries: Vec<Entry> =
        all.into_iter().map(|row| Entry::new(row, &program)).collect::<Result<_>>()?;
    for entry in &mut entries {
        entry.compare(&records, &program)?;
    }
    for mismatch in records.mismatches(&entries) {
        eprintln!("{mismatch}");
    }
    let page = options.docs.join("learning.md");
    page::write(&page, &entries, &records)?;
    if options.page {
        return Ok(ExitCode::SUCCESS);
    }
    let driver = Driver::new(program, &options.runs)?;
    let wanted = |entry: &&Entry| options.only.is_empty() || options.only.contains(&entry.row.name);
    let mut work: Vec<(&Entry, Range<u64>)> = Vec::new();
    for entry in entries.iter().filter(wanted) {
        let name = &entry.row.name;
        if let Some(problem) = driver.missing(&entry.row)? {
            eprintln!("{name} is SKIPPED: {problem}");
            continue;
        }
        let seeds = options.seeds.unwrap_or(entry.row.seeds);
        let missing: Vec<u64> =
            (0..seeds).filter(|&seed| records.find(entry, seed).is_none()).collect();
        let (missing_seeds, there) = (missing.len(), seeds as usize - missing.len());
        eprintln!("{name}: {there} of {seeds} seeds are recorded, {missing_seeds} to train");
        let together = |a: &u64, b: &u64| entry.trains_together() && a + 1 == *b;
        let parts =
            missing.chunk_by(together).map(|part| (entry, part[0]..part[part.len() - 1] + 1));
        work.extend(parts);
    }
    let mut failed = Vec::new();
    for (index, (entry, seeds)) in work.iter().enumerate() {
        let name = &entry.row.name;
        let note = if entry.row.duration.is_empty() {
            String::new()
        } else {
            format!(" (a seed takes {})", entry.row.duration)
        };
        let which = match seeds.end - seeds.start {
            1 => format!("seed {}", seeds.start),
            _ => format!("seeds {} to {}", seeds.start, seeds.end - 1),
        };
        eprintln!("\n[{} of {}] {name}, {which}{note}", index + 1, work.len());
        for (seed, ended) in driver.train(entry, seeds.clone())? {
            match ended {
                Ended::Recorded(record) => {
                    eprintln!("{name}, seed {seed}: {}", record.summary());
                    records.add(*record)?;
                    page::write(&page, &entries, &records)?;
                }
                Ended::Interrupted => {
                    eprintln!("stopped; the next call goes on with {name}, {which}");
                    return Ok(ExitCode::from(130));
                }
                Ended::Failed(problem) => {
                    eprintln!("{name}, seed {seed} FAILED: {problem}");
                    failed.push(format!("{name}, seed {seed}"));
                }
            }
        }
    }
    eprintln!("\nthe table is in {}", page.display());
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!("these have no record: {}", failed.join("; "))
}

/// The path of `podracer`, which cargo builds into the folder of this program.
fn beside_this_program() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find this program's own path")?;
    let podracer = this.parent().unwrap_or(Path::new(".")).join("podracer");
    if !podracer.is_file() {
        bail!(
            "there is no `{}`: build it with `cargo build --release`, or name one with --podracer",
            podracer.display()
        );
    }
    Ok(podracer)
}
