//! `learning.md`: the records as a table, beside the references.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use crate::program::Described;
use crate::record::{Record, Records, write_whole};
use crate::rows::{Policy, Row};
use crate::statistics::Mean;

/// A row, and the settings that its experiment has now.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The row of the table.
    pub row: Row,
    /// The experiment's settings.
    pub described: Described,
}

const BEGINNING: &str = "\
# Learning

What the built-in experiments reach, beside what others have published. `make learn` trains and writes this page, which is made of
[learning.jsonl](learning.jsonl) (one record for each trained seed) and [rows.toml](../benches/learning/rows.toml) (the references). A record
counts as long as all settings of its experiment are as they were; `make learn` trains what is missing, and goes on with what was stopped.
`make learn ARGS=\"--only cartpole-ppo --seeds 1\"` does less, `ARGS=--help` says what else there is.

- **Returns** are those of `podracer eval`: the mean over the seeds, and half of its 95 % interval by Student's t. Each seed is evaluated
  in episodes that were not trained on, with the last parameters of its training and not its best ones: *greedy* with the actions that the agent
  takes to be best, *sampled* with actions drawn from its policy, as in training.
- **The reference** (- where nobody has published one) is compared with the return in bold: the sampled one where the reference was measured during training, the greedy one
  where the reference is of a trained policy or is the greatest return that the environment can give.
- **below** marks a mean whose whole interval is below the reference (below its interval, where it has one); *below, within noise* a mean that
  is below it, and whose interval reaches it.
- **Seconds** are of training, without compiling: the mean over the seeds, whatever else the machine did meanwhile. They say how long one
  waits, and are no measure of speed ([benches/README.md](../benches/README.md) has those).
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
    let of = |entry: &Entry| -> Vec<Record> { records.of(entry).cloned().collect() };
    let mut machines: Vec<String> = Vec::new();
    for record in entries.iter().flat_map(of) {
        if !machines.contains(&record.processor) {
            machines.push(record.processor);
        }
    }
    let mut text = BEGINNING.to_owned();
    text += "\n| experiment | agent | environment | steps | seeds | greedy | sampled | reference | mark | seconds |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|\n";
    for entry in entries {
        let cells = cells(entry, &of(entry), &machines);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    for (index, machine) in machines.iter().enumerate() {
        let letter =
            if machines.len() > 1 { format!("{}: ", letter(index)) } else { String::new() };
        let _ = write!(text, "\n{letter}{machine}.\n");
    }
    text += "\n## The references\n\n";
    for Entry { row, .. } in entries {
        let Row { experiment, source, note, episodes, seeds, packages, against, duration, .. } =
            row;
        let mut line = format!("- `{experiment}`: {source}");
        if let Some(reference) = reference(row) {
            line = format!("- `{experiment}`: {reference}, {source}");
        }
        let mut more = vec![note.clone()];
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

fn cells(entry: &Entry, records: &[Record], machines: &[String]) -> Vec<String> {
    let Entry { row, described } = entry;
    let returns = |policy: Policy| {
        let returns: Vec<f64> = records.iter().map(|one| one.evaluation(policy).mean).collect();
        Mean::of(&returns)
    };
    let shown = |policy: Policy| {
        let text = returns(policy).map_or("-".to_owned(), with_interval);
        if policy == row.policy && text != "-" { format!("**{text}**") } else { text }
    };
    let seeds = match records.len() as u64 {
        n if n < row.seeds => format!("{n} of {}", row.seeds),
        n => n.to_string(),
    };
    let steps = records.first().map_or(described.steps, |record| record.steps);
    let seconds = Mean::of(&records.iter().map(|one| one.seconds).collect::<Vec<_>>());
    let seconds = seconds.map_or("-".to_owned(), |seconds| format!("{:.1}", seconds.mean));
    let on = |machine: &&String| {
        machines.len() > 1 && records.iter().any(|one| one.processor == **machine)
    };
    let letters: String = machines
        .iter()
        .enumerate()
        .filter(|(_, machine)| on(machine))
        .map(|(i, _)| letter(i))
        .collect();
    vec![
        format!("`{}`", row.experiment),
        described.agent.clone(),
        described.environment.clone(),
        count(steps),
        seeds,
        shown(Policy::Greedy),
        shown(Policy::Sampled),
        reference(row)
            .map_or("-".to_owned(), |reference| format!("{reference} ({})", row.policy.name())),
        mark(row, returns(row.policy)).to_owned(),
        format!("{seconds} {letters}").trim_end().to_owned(),
    ]
}

/// The verdict about our returns: empty where they reach the reference, and where there is none to reach.
fn mark(row: &Row, ours: Option<Mean>) -> &'static str {
    let Some(ours) = ours else { return "not trained" };
    let Some(lower_end) = row.lower_end() else { return "" };
    // Returns are sums of f32: what is equal but for their rounding is reached.
    let wanted = lower_end - 1e-6 * lower_end.abs();
    match ours {
        Mean { mean, .. } if mean >= wanted => "",
        Mean { mean, half_width: Some(half) } if mean + half >= wanted => "below, within noise",
        _ => "**below**",
    }
}

/// The reference with its interval; `None` where there is no reference.
fn reference(row: &Row) -> Option<String> {
    let reference = row.reference?;
    Some(match row.plus_minus {
        Some(plus_minus) => format!("{reference} ± {plus_minus}"),
        None => reference.to_string(),
    })
}

/// A mean with its interval, such as `498.2 ± 1.3`: as many decimals as a spread of this size deserves.
fn with_interval(Mean { mean, half_width }: Mean) -> String {
    let decimals = if mean.abs() >= 1000.0 {
        0
    } else if mean.abs() >= 10.0 {
        1
    } else {
        3
    };
    match half_width {
        Some(half) => format!("{mean:.decimals$} ± {half:.decimals$}"),
        None => format!("{mean:.decimals$}"),
    }
}

/// A count with its unit, such as `2.5M`.
fn count(number: u64) -> String {
    let number = number as f64;
    let (scaled, unit) = if number >= 1e6 { (number / 1e6, "M") } else { (number / 1e3, "k") };
    let text = format!("{scaled:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
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
mod tests {
    use super::*;
    use crate::record::Evaluation;

    fn row(reference: f64, plus_minus: Option<f64>) -> Row {
        Row {
            experiment: "catch-ppo".to_owned(),
            seeds: 2,
            episodes: 100,
            reference: Some(reference),
            plus_minus,
            policy: Policy::Greedy,
            source: "the maximum.".to_owned(),
            note: String::new(),
            packages: String::new(),
            against: String::new(),
            duration: String::new(),
        }
    }

    fn entry(row: Row) -> Entry {
        let described = Described {
            agent: "ppo".to_owned(),
            environment: "catch".to_owned(),
            steps: 1_000_000,
            settings: "now".to_owned(),
        };
        Entry { row, described }
    }

    fn record(seed: u64, mean: f64, settings: &str) -> Record {
        let evaluation = Evaluation { episodes: 100, seed: 1_000 + seed, mean, std: 0.0 };
        Record {
            experiment: "catch-ppo".to_owned(),
            settings: settings.to_owned(),
            seed,
            steps: 1_003_520,
            seconds: 1.5,
            compile_seconds: 2.0,
            learning_return: Some(0.9),
            greedy: evaluation,
            sampled: Evaluation { mean: mean - 0.1, ..evaluation },
            against: String::new(),
            processor: "a processor".to_owned(),
            devices: 1,
            podracer: "0.1.0".to_owned(),
            params_sha256: "00".to_owned(),
        }
    }

    #[test]
    fn a_return_below_the_reference_is_marked() {
        let marked = |reference, plus_minus, returns: &[f64]| {
            mark(&row(reference, plus_minus), Mean::of(returns))
        };
        assert_eq!(marked(1.0, None, &[1.0, 1.0]), "");
        assert_eq!(marked(1.0, None, &[1.0, 0.9]), "below, within noise");
        assert_eq!(marked(1.0, None, &[0.9, 0.9]), "**below**");
        assert_eq!(marked(1.0, None, &[0.999]), "**below**");
        assert_eq!(marked(490.0, Some(6.0), &[484.5, 484.5]), "");
        assert_eq!(marked(490.0, Some(6.0), &[483.5, 483.5]), "**below**");
        assert_eq!(marked(-130.0, None, &[-131.0, -131.0]), "**below**");
        assert_eq!(marked(-130.0, None, &[-129.0, -129.0]), "");
        assert_eq!(marked(1.0, None, &[]), "not trained");
        let without = Row { reference: None, ..row(1.0, None) };
        assert_eq!(mark(&without, Mean::of(&[0.5, 0.5])), "");
        assert_eq!(mark(&without, None), "not trained");
        assert_eq!(reference(&without), None);
    }

    #[test]
    fn the_page_has_the_records_of_the_settings_that_are_in_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records =
            Records::read(&folder.path().join("learning.jsonl")).expect("there is none");
        let entries = [entry(row(1.0, None))];
        let line = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("| `catch-ppo`"));
            line.expect("the row is there").to_owned()
        };
        let expected =
            "| `catch-ppo` | ppo | catch | 1M | 0 of 2 | - | - | 1 (greedy) | not trained | - |";
        assert_eq!(line(&text(&entries, &records)), expected);
        records.add(record(0, 0.5, "before")).expect("it is written");
        assert_eq!(line(&text(&entries, &records)), expected);
        for seed in [1, 0] {
            records.add(record(seed, 1.0, "now")).expect("it is written");
        }
        let expected = "| `catch-ppo` | ppo | catch | 1M | 2 | **1.000 ± 0.000** | 0.900 ± 0.000 | 1 (greedy) |  | 1.5 |";
        let page = text(&entries, &records);
        assert_eq!(line(&page), expected);
        assert!(page.contains("\na processor.\n"), "{page}");
        assert!(page.contains("- `catch-ppo`: 1, the maximum. 2 seeds, 100 episodes.\n"), "{page}");
        // What is written reads back, in the order of the seeds.
        let read = Records::read(&folder.path().join("learning.jsonl")).expect("it reads");
        assert_eq!(read.of(&entries[0]).map(|one| one.seed).collect::<Vec<_>>(), [0, 1]);
        assert!(read.find(&entries[0], 2).is_none());
        let mut other = entries[0].clone();
        other.row.episodes = 50;
        assert_eq!(read.of(&other).count(), 0);
        let mut other = entries[0].clone();
        other.row.against = "perfect".to_owned();
        assert_eq!(read.of(&other).count(), 0, "what was not played against the opponent");
        assert!(text(&[other], &read).contains("Games against `perfect`, half of them"));
    }

    #[test]
    fn the_checked_in_records_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/learning.jsonl");
        Records::read(&path).expect("each line is a record");
    }
}
