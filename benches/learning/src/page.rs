//! `learning.md`: the records as a table, next to the references.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::mark::{count, each, mark, with_interval};
use crate::program::{Described, Program};
use crate::record::{Record, Records, write_whole};
use crate::rows::{Policy, Row};
use crate::statistics::Mean;

/// A row, and its settings.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The row of the table.
    pub row: Row,
    /// The settings that the experiment has now, with the row's changes.
    pub described: Described,
    /// The settings that the row was trained with, where the experiment has changed since.
    pub earlier: Option<Described>,
    /// Hash of the present program, for a row with records that have a hash of theirs.
    pub program: Option<String>,
}

impl Entry {
    /// The row with the settings that the program describes.
    ///
    /// # Errors
    /// A row that changes what is no setting of its experiment, and another program than `podracer`.
    pub fn new(row: Row, program: &Program) -> Result<Entry> {
        let problem = || format!("benches/learning/rows.toml, {}", row.name);
        let described = program.describe(&row.experiment)?.with(&row.set).with_context(problem)?;
        let earlier = if row.trained_with.is_empty() {
            None
        } else {
            Some(described.with(&row.trained_with).with_context(problem)?)
        };
        Ok(Entry { row, described, earlier, program: None })
    }

    /// Hashes the present program, if a record on the page has a hash to compare it with.
    ///
    /// # Errors
    /// A program that cannot be emitted.
    pub fn compare(&mut self, records: &Records, program: &Program) -> Result<()> {
        if records.shown(self).iter().any(|record| record.program.is_some()) {
            self.program = self.emitted(program)?;
        }
        Ok(())
    }

    /// The hash of the row's present program; `None` for a row that needs packages or a file.
    ///
    /// # Errors
    /// A program that cannot be emitted.
    pub fn emitted(&self, program: &Program) -> Result<Option<String>> {
        let Row { experiment, set, .. } = &self.row;
        self.row.can_be_emitted().then(|| program.emitted(experiment, set)).transpose()
    }

    /// True if the present program is known to differ from the program that made the record.
    fn has_changed_since(&self, record: &Record) -> bool {
        match (&record.program, &self.program) {
            (Some(then), Some(now)) => then != now,
            (Some(_), None) => false,
            (None, _) => !self.row.other_program.is_empty(),
        }
    }

    /// True if its seeds are trained as one population: where the loop is one program, and a seed takes no more than some minutes. Seeds
    /// that take longer are trained one by one, and recorded as they end.
    pub fn trains_together(&self) -> bool {
        self.described.one_program && self.row.duration.is_empty()
    }
}

const BEGINNING: &str = "\
# Learning

This page compares the returns of the built-in experiments with published returns. `make learn` trains and writes this page from
[learning.jsonl](learning.jsonl) (one record for each trained seed) and [rows.toml](../benches/learning/rows.toml) (the references). A record
counts as long as all settings of its experiment are as they were. `make learn` trains missing seeds, and resumes stopped trainings.
`make learn ARGS=\"--only cartpole-ppo --seeds 1\"` does less, `ARGS=--page` writes the page alone, and `ARGS=--help` lists all options.

- **Returns** come from `podracer eval`: the mean over the seeds, and half of its 95 % interval by Student's t. Each seed is evaluated with
  the last parameters of its training (not the best), in episodes that were not trained on. *Greedy* returns take the agent's best action;
  *sampled* returns draw actions from its policy, as in training. [Each seed's return](#each-seed) stands below the table.
- **The reference** is compared with the return in bold; `-` means that no reference was published. The sampled return is compared with a
  reference that was measured during training. The greedy return is compared with a trained policy's return, or with the greatest return
  that the environment can give. *After 1M steps* marks a reference that was trained for another number of steps than the experiment.
- **below** marks a mean with its whole interval below the reference (or below the reference's interval, if it has one). *Below, within noise*
  marks a mean below the reference with an interval that reaches it. *2 of 3 seeds below* counts the seeds with a return below the reference.
  *Fewer steps* and *more steps* are in comparison with the reference. *Trained with other settings* lists the settings that the experiment
  has changed since its training, with their former values. *Trained by another program* means that the experiment's program, the StableHLO of
  its training, has changed since: with the same settings and seed, a training may end with other parameters.
- **Seconds** are the time of training without compiling: the mean over the seeds, on a machine that may have done other work meanwhile.
  *For 5* means that 5 seeds were trained together in that time, as [one population](populations.md). They show how long a training takes, and do not
  measure speed ([benches/README.md](../benches/README.md) has figures of speed).
";

/// Writes the page.
///
/// # Errors
/// Where it cannot be written.
pub fn write(path: &Path, entries: &[Entry], records: &Records) -> Result<()> {
    write_whole(path, &text(entries, records))
}

/// The page's text.
fn text(entries: &[Entry], records: &Records) -> String {
    let mut machines: Vec<&str> = Vec::new();
    for record in entries.iter().flat_map(|entry| records.shown(entry)) {
        if !machines.contains(&record.processor.as_str()) {
            machines.push(&record.processor);
        }
    }
    let mut text = BEGINNING.to_owned();
    text += "\n| experiment | agent | environment | steps | seeds | greedy | sampled | reference | mark | seconds |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|\n";
    for entry in entries {
        let cells = cells(entry, &records.shown(entry), &machines);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    for (index, machine) in machines.iter().enumerate() {
        let letter =
            if machines.len() > 1 { format!("{}: ", letter(index)) } else { String::new() };
        let _ = write!(text, "\n{letter}{machine}.\n");
    }
    if let Some(unnamed) = unnamed(entries, records) {
        text += &format!("\n{}", wrapped(&unnamed));
    }
    text += "\n## Each seed\n\nThe return in bold of seed 0, seed 1 and so on.\n\n";
    for entry in entries {
        let Row { name, policy, .. } = &entry.row;
        let returns = returns(&records.shown(entry), *policy);
        if !returns.is_empty() {
            text += &wrapped(&format!("- `{name}` ({}): {}", policy.name(), each(&returns)));
        }
    }
    text += "\n## The references\n\n";
    for Entry { row, .. } in entries {
        let Row { name, experiment, set, source, note, tried, other_program, .. } = row;
        let Row { episodes, seeds, packages, file, against, duration, .. } = row;
        let mut line = format!("- `{name}`: {source}");
        if let Some(reference) = reference(row) {
            line = format!("- `{name}`: {reference}, {source}");
        }
        let mut more = vec![note.clone()];
        if !tried.is_empty() {
            more.push(format!("**Tried**: {tried}"));
        }
        if !other_program.is_empty() {
            more.push(format!("**Another program**: {other_program}"));
        }
        if !set.is_empty() {
            let set = set.iter().map(|(key, value)| format!("`{key}` {value}"));
            let set = set.collect::<Vec<_>>().join(" and ");
            more.push(format!("It is `{experiment}` with {set}."));
        }
        if !against.is_empty() {
            more.push(format!(
                "Games against `{against}`, half of them moving first: a return is 1 for a win, 0 for a draw, -1 for a loss."
            ));
        }
        if *episodes != 100 || *seeds != 5 {
            let plural = if *seeds == 1 { "" } else { "s" };
            more.push(format!("{seeds} seed{plural}, {episodes} episodes."));
        }
        if !packages.is_empty() {
            more.push(format!("Needs `podracer envs install {packages}`."));
        }
        if !file.is_empty() {
            more.push(format!("Needs the file `{file}`."));
        }
        if !duration.is_empty() {
            more.push(format!("A seed takes {duration}."));
        }
        for sentence in more.iter().filter(|sentence| !sentence.is_empty()) {
            line = format!("{line} {sentence}");
        }
        text += &wrapped(&line);
    }
    text
}

/// The rows with a record that has no hash of its program; `None` if all records have one.
fn unnamed(entries: &[Entry], records: &Records) -> Option<String> {
    let trained = entries.iter().filter(|entry| !records.shown(entry).is_empty());
    let has_none = |entry: &Entry| records.shown(entry).iter().any(|one| one.program.is_none());
    let (unnamed, named): (Vec<_>, Vec<_>) = trained.partition(|entry| has_none(entry));
    let list = |entries: &[&Entry]| {
        let names = entries.iter().map(|entry| format!("`{}`", entry.row.name));
        names.collect::<Vec<_>>().join(", ")
    };
    let rows = match (unnamed.len(), named.len()) {
        (0, _) => return None,
        (_, 0) => "all rows".to_owned(),
        (without, with) if with < without => format!("all rows but {}", list(&named)),
        _ => list(&unnamed),
    };
    Some(format!(
        "- Records without a hash of their program, which may have changed since: {rows}."
    ))
}

/// The mean return of each record.
fn returns(records: &[&Record], policy: Policy) -> Vec<f64> {
    records.iter().map(|one| one.evaluation(policy).mean).collect()
}

fn cells(entry: &Entry, records: &[&Record], machines: &[&str]) -> Vec<String> {
    let Entry { row, described, .. } = entry;
    let shown = |policy: Policy| {
        let text = Mean::of(&returns(records, policy)).map_or("-".to_owned(), with_interval);
        if policy == row.policy && text != "-" { format!("**{text}**") } else { text }
    };
    let seeds = match records.len() as u64 {
        n if n < row.seeds => format!("{n} of {}", row.seeds),
        n => n.to_string(),
    };
    let steps = records.first().map_or(described.steps, |record| record.steps);
    let seconds = Mean::of(&records.iter().map(|one| one.seconds).collect::<Vec<_>>());
    let together = match records.first().map_or(1, |record| record.together) {
        1 => String::new(),
        several => format!(" for {several}"),
    };
    let seconds =
        seconds.map_or("-".to_owned(), |seconds| format!("{:.1}{together}", seconds.mean));
    let on =
        |machine: &str| machines.len() > 1 && records.iter().any(|one| one.processor == machine);
    let mut mark = mark(row, &returns(records, row.policy), steps);
    if records.iter().any(|one| one.settings != described.settings) {
        let comma = if mark.is_empty() { "" } else { ", " };
        let then = row.trained_with.iter().map(|(key, value)| match described.value(key) {
            Some(now) => format!("`{key}` {value} (now {now})"),
            None => format!("`{key}` {value}"),
        });
        let then = then.collect::<Vec<_>>().join(" and ");
        mark = format!("{mark}{comma}trained with other settings: {then}");
    }
    if records.iter().any(|record| entry.has_changed_since(record)) {
        let comma = if mark.is_empty() { "" } else { ", " };
        mark = format!("{mark}{comma}trained by another program");
    }
    let reference = reference(row).map_or("-".to_owned(), |reference| {
        let policy = row.policy.name();
        match row.reference_steps {
            Some(steps) => format!("{reference} ({policy}, after {} steps)", count(steps)),
            None => format!("{reference} ({policy})"),
        }
    });
    let letters: String = machines
        .iter()
        .enumerate()
        .filter(|&(_, machine)| on(machine))
        .map(|(i, _)| letter(i))
        .collect();
    vec![
        format!("`{}`", row.name),
        described.agent.clone(),
        described.environment.clone(),
        count(steps),
        seeds,
        shown(Policy::Greedy),
        shown(Policy::Sampled),
        reference,
        mark,
        format!("{seconds} {letters}").trim_end().to_owned(),
    ]
}

/// The reference with its interval; `None` where there is no reference.
fn reference(row: &Row) -> Option<String> {
    let reference = row.reference?;
    Some(match row.plus_minus {
        Some(plus_minus) => format!("{reference} ± {plus_minus}"),
        None => reference.to_string(),
    })
}

fn letter(index: usize) -> char {
    char::from(b'A' + (index % 26) as u8)
}

/// A list's item in lines of at most 140 characters.
fn wrapped(item: &str) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for word in item.split(' ') {
        if line.chars().count() + word.chars().count() > 138 {
            text += &format!("{}\n", line.trim_end());
            line = "  ".to_owned();
        }
        line += &format!("{word} ");
    }
    text + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests;
