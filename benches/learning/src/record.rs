//! `learning.jsonl`: one object for each training that has ended well, checked in next to the page
//! made from it.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::page::Entry;
use crate::program::Described;
use crate::rows::Policy;

/// A trained and evaluated agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Name of the row, which is the experiment's unless the row changes settings.
    pub experiment: String,
    /// Hash of its settings.
    pub settings: String,
    /// Seed of the training.
    pub seed: u64,
    /// Environment steps of the training.
    pub steps: u64,
    /// Seconds of training, without compiling.
    pub seconds: f64,
    /// Seeds that were trained as one program, in those seconds.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub together: u64,
    /// Seconds of compiling, of the last process that trained; less where compiled programs were in the cache.
    pub compile_seconds: f64,
    /// Mean return of the last episodes of the training.
    pub learning_return: Option<f64>,
    /// Evaluation with the actions that the agent takes to be best.
    pub greedy: Evaluation,
    /// Evaluation with actions drawn from the policy.
    pub sampled: Evaluation,
    /// Opponent of both evaluations; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// The machine's processor and number of cores.
    pub processor: String,
    /// Devices of the training.
    pub devices: u64,
    /// Hash of the program that was trained, see [`Program::emitted`](crate::program::Program::emitted); `None` in records of versions that
    /// did not write it, and of rows that need packages or a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Version of podracer, and the date of its last commit.
    pub podracer: String,
    /// Hash of the trained parameters, bit-identical on the same machine.
    pub params_sha256: String,
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

/// Whole episodes of a trained agent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Number of episodes.
    pub episodes: u64,
    /// Seed of the episodes.
    pub seed: u64,
    /// Mean of the returns.
    pub mean: f64,
    /// Standard deviation of the returns.
    pub std: f64,
}

impl Record {
    /// The evaluation with this policy.
    pub fn evaluation(&self, policy: Policy) -> Evaluation {
        match policy {
            Policy::Greedy => self.greedy,
            Policy::Sampled => self.sampled,
        }
    }

    /// Returns and time, in a line.
    pub fn summary(&self) -> String {
        let together = if is_one(&self.together) {
            String::new()
        } else {
            format!(" with {} others", self.together - 1)
        };
        format!(
            "return {:.3} greedy, {:.3} sampled, {} episodes each; {} steps in {:.1} s{together}",
            self.greedy.mean, self.sampled.mean, self.greedy.episodes, self.steps, self.seconds
        )
    }
}

/// The records of a file.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    all: Vec<Record>,
}

impl Records {
    /// Reads the file; a file that is not there has none.
    ///
    /// # Errors
    /// A file that cannot be read, and a line that is no record.
    pub fn read(path: &Path) -> Result<Records> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        let record = |(index, line): (usize, &str)| {
            let place = || format!("`{}`, line {}, is no record", path.display(), index + 1);
            serde_json::from_str(line).with_context(place)
        };
        let all = text.lines().enumerate().map(record).collect::<Result<_>>()?;
        Ok(Records { path: path.to_owned(), all })
    }

    /// The record of a seed, if it was made with the settings and the evaluation that the entry has now.
    pub fn find<'a>(&'a self, entry: &'a Entry, seed: u64) -> Option<&'a Record> {
        self.of(entry).find(move |record| record.seed == seed)
    }

    /// The records that were made with the settings and the evaluation that the entry has now, in the order of the seeds.
    pub fn of<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Record> {
        self.with(entry, &entry.described)
    }

    /// The records of an entry on the page: the records with its present settings, or, if there are
    /// none, the records with the settings that the row names.
    pub fn shown<'a>(&'a self, entry: &'a Entry) -> Vec<&'a Record> {
        let present: Vec<_> = self.of(entry).collect();
        match &entry.earlier {
            Some(earlier) if present.is_empty() => self.with(entry, earlier).collect(),
            _ => present,
        }
    }

    /// The records of one evaluation and of these settings.
    fn with<'a>(
        &'a self,
        Entry { row, .. }: &'a Entry,
        described: &'a Described,
    ) -> impl Iterator<Item = &'a Record> {
        self.all.iter().filter(|record| {
            record.experiment == row.name
                && record.settings == described.settings
                && record.against == row.against
                && [record.greedy, record.sampled].map(|one| one.episodes) == [row.episodes; 2]
        })
    }

    /// Mistakes in records and rows, a sentence for each row; empty if each record counts. Mistakes are records of other settings or of another
    /// evaluation than their row has, rows with `trained_with` and no such record, and rows with `other_program` and a hash in each record.
    pub fn mismatches(&self, entries: &[Entry]) -> Vec<String> {
        let names: BTreeSet<&str> = self.all.iter().map(|one| one.experiment.as_str()).collect();
        let unknown = names.iter().filter(|name| entries.iter().all(|one| one.row.name != **name));
        let unknown = unknown.map(|name| format!("{name} has records and no row"));
        let changed = entries.iter().filter_map(|entry| {
            let name = &entry.row.name;
            let earlier = entry.earlier.as_ref().map(|earlier| self.with(entry, earlier).count());
            let all = self.all.iter().filter(|one| one.experiment == *name).count();
            let others = all - self.of(entry).count() - earlier.unwrap_or(0);
            if others > 0 {
                Some(format!(
                    "{name}: {others} of {all} records have other settings than the experiment has, or are of another evaluation; \
                     train it again, or say with `trained_with` what its settings were"
                ))
            } else if earlier == Some(0) {
                Some(format!("{name}: no record has the settings of `trained_with`"))
            } else if !entry.row.other_program.is_empty()
                && self.shown(entry).iter().all(|record| record.program.is_some())
            {
                Some(format!("{name}: each record has a hash of its program: remove `other_program`"))
            } else {
                None
            }
        });
        unknown.chain(changed).collect()
    }

    /// Adds a record in place of the experiment's earlier one with this seed, and writes the file. Records that another process
    /// has written meanwhile stay.
    ///
    /// # Errors
    /// Where the file cannot be read or written.
    pub fn add(&mut self, record: Record) -> Result<()> {
        self.all = Records::read(&self.path)?.all;
        let key = |one: &Record| (one.experiment.clone(), one.seed);
        self.all.retain(|other| key(other) != key(&record));
        self.all.push(record);
        self.all.sort_by_key(key);
        let lines: Vec<String> =
            self.all.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        write_whole(&self.path, &(lines.join("\n") + "\n"))
    }
}

/// Writes a file that is whole or as it was before, whenever this program is stopped.
///
/// # Errors
/// Where it cannot be written.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let written = podracer_plugins::write_whole(path, text.as_bytes());
    written.with_context(|| format!("cannot write `{}`", path.display()))
}
