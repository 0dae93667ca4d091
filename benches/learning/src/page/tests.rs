//! Tests of the page.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::program::{Changes, described};
use crate::record::Evaluation;

fn row() -> Row {
    Row {
        name: "catch-ppo".to_owned(),
        experiment: "catch-ppo".to_owned(),
        seeds: 2,
        episodes: 100,
        reference: Some(1.0),
        source: "the maximum.".to_owned(),
        ..Row::default()
    }
}

/// The row's experiment with these steps.
fn settings_of(steps: u64) -> Described {
    let json = json!({ "parts": [
        { "table": "train", "name": "train", "settings": [
            { "key": "seed", "value": 0 }, { "key": "steps", "value": steps }] },
        { "table": "agent", "name": "ppo", "settings": [] },
        { "table": "environment", "name": "catch", "settings": [] },
    ]});
    described(&json).expect("it is described")
}

fn entry(row: Row) -> Entry {
    Entry { row, described: settings_of(1_000_000), earlier: None, program: None }
}

fn record(seed: u64, mean: f64, settings: &Described) -> Record {
    let evaluation = Evaluation { episodes: 100, seed: 1_000 + seed, mean, std: 0.0 };
    Record {
        experiment: "catch-ppo".to_owned(),
        settings: settings.settings.clone(),
        seed,
        steps: settings.steps,
        seconds: 1.5,
        together: 1,
        compile_seconds: 2.0,
        learning_return: Some(0.9),
        greedy: evaluation,
        sampled: Evaluation { mean: mean - 0.1, ..evaluation },
        against: String::new(),
        processor: "a processor".to_owned(),
        devices: 1,
        program: None,
        podracer: "0.1.0".to_owned(),
        params_sha256: "00".to_owned(),
    }
}

/// Records in a file of its own.
fn records(of: &[Record]) -> (tempfile::TempDir, Records) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut records = Records::read(&folder.path().join("learning.jsonl")).expect("there is none");
    for record in of {
        records.add(record.clone()).expect("it is written");
    }
    (folder, records)
}

/// The table's line of the row.
fn line(text: &str) -> &str {
    let line = text.lines().find(|line| line.starts_with("| `catch-ppo`"));
    line.expect("the row is there")
}

#[test]
fn the_page_has_the_records_of_the_settings_that_are_in_force() {
    let (before, now) = (settings_of(500_000), settings_of(1_000_000));
    let (folder, mut records) = records(&[]);
    let entries = [entry(row())];
    let expected =
        "| `catch-ppo` | ppo | catch | 1M | 0 of 2 | - | - | 1 (greedy) | not trained | - |";
    assert_eq!(line(&text(&entries, &records)), expected);
    records.add(record(0, 0.5, &before)).expect("it is written");
    assert_eq!(line(&text(&entries, &records)), expected);
    for seed in [1, 0] {
        records.add(record(seed, 1.0, &now)).expect("it is written");
    }
    let expected = "| `catch-ppo` | ppo | catch | 1M | 2 | **1.000 ± 0.000** | 0.900 ± 0.000 | 1 (greedy) |  | 1.5 |";
    let page = text(&entries, &records);
    assert_eq!(line(&page), expected);
    assert!(page.contains("\na processor.\n"), "{page}");
    assert!(page.contains("- `catch-ppo`: 1, the maximum. 2 seeds, 100 episodes.\n"), "{page}");
    // Records read back as written, in the order of the seeds.
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
fn the_page_has_the_return_of_each_seed() {
    let now = settings_of(1_000_000);
    let (_folder, records) =
        records(&[record(0, 16.0, &now), record(1, -6.0, &now), record(2, -20.05, &now)]);
    let page = text(&[entry(row())], &records);
    assert!(page.contains("\n- `catch-ppo` (greedy): 16.0, -6.0, -20.1\n"), "{page}");
    assert!(line(&page).contains("| below, within noise, 2 of 3 seeds below |"), "{page}");
    let sampled = Row { policy: Policy::Sampled, ..row() };
    let page = text(&[entry(sampled)], &records);
    assert!(page.contains("\n- `catch-ppo` (sampled): 15.9, -6.1, -20.2\n"), "{page}");
}

#[test]
fn a_row_says_what_was_tried_and_the_steps_of_its_reference() {
    let now = settings_of(1_000_000);
    let (_folder, records) = records(&[record(0, 0.5, &now)]);
    let row = Row {
        note: "The network is small.".to_owned(),
        tried: "A greater one had less.".to_owned(),
        reference_steps: Some(5_000_000),
        ..row()
    };
    let page = text(&[entry(row)], &records);
    let expected = "| 1 (greedy, after 5M steps) | **below**, fewer steps |";
    assert!(line(&page).contains(expected), "{page}");
    let expected =
        "1, the maximum. The network is small. **Tried**: A greater one had less. 2 seeds";
    assert!(page.contains(expected), "{page}");
}

#[test]
fn records_of_other_settings_are_shown_with_what_they_were_or_not_at_all() {
    let (before, now) = (settings_of(500_000), settings_of(1_000_000));
    let (_folder, mut records) = records(&[record(0, 1.0, &before), record(1, 1.0, &before)]);
    let silent = entry(row());
    let says = "catch-ppo: 2 of 2 records have other settings than the experiment has";
    assert!(records.mismatches(&[silent])[0].starts_with(says));
    let trained_with: Changes = BTreeMap::from([("train.steps".to_owned(), json!(500_000))]);
    let listed = Entry { earlier: Some(before), ..entry(Row { trained_with, ..row() }) };
    assert_eq!(records.mismatches(std::slice::from_ref(&listed)), [""; 0]);
    let page = text(std::slice::from_ref(&listed), &records);
    let expected = "| `catch-ppo` | ppo | catch | 500k | 2 | **1.000 ± 0.000** | 0.900 ± 0.000 | 1 (greedy) | \
                    trained with other settings: `train.steps` 500000 (now 1000000) | 1.5 |";
    assert_eq!(line(&page), expected);
    assert!(records.find(&listed, 0).is_none(), "`make learn` trains it again");
    // A repeated training replaces the earlier record.
    records.add(record(0, 1.0, &now)).expect("it is written");
    assert!(line(&text(std::slice::from_ref(&listed), &records)).contains("| 1M | 1 of 2 |"));
    records.add(record(1, 1.0, &now)).expect("it is written");
    let expected = ["catch-ppo: no record has the settings of `trained_with`"];
    assert_eq!(records.mismatches(&[listed]), expected);
    assert_eq!(records.mismatches(&[]), ["catch-ppo has records and no row"]);
}

#[test]
fn a_row_whose_program_has_changed_is_marked_as_any_other() {
    let now = settings_of(1_000_000);
    let named =
        |program: &str| Record { program: Some(program.to_owned()), ..record(0, 1.0, &now) };
    let mark = "| trained by another program |";
    let without =
        "Records without a hash of their program, which may have changed since: all rows.";
    for (written, row, present, expected) in [
        (named("aa"), row(), Some("aa"), false),
        (named("aa"), row(), Some("bb"), true),
        (named("aa"), row(), None, false),
        (record(0, 1.0, &now), row(), Some("bb"), false),
        (
            record(0, 1.0, &now),
            Row { other_program: "Sums have another order.".to_owned(), ..row() },
            None,
            true,
        ),
    ] {
        let unnamed = written.program.is_none();
        let (_folder, records) = records(&[written]);
        let entry = Entry { program: present.map(str::to_owned), ..entry(row) };
        assert_eq!(records.mismatches(std::slice::from_ref(&entry)), [""; 0]);
        let page = text(std::slice::from_ref(&entry), &records);
        assert_eq!(line(&page).contains(mark), expected, "{page}");
        assert_eq!(page.contains(without), unnamed, "{page}");
        let reason = "**Another program**: Sums have another order.";
        assert_eq!(page.contains(reason), expected && unnamed, "{page}");
    }
    let (_folder, records) = records(&[named("aa")]);
    let listed = entry(Row { other_program: "Sums.".to_owned(), ..row() });
    let expected = ["catch-ppo: each record has a hash of its program: remove `other_program`"];
    assert_eq!(records.mismatches(&[listed]), expected);
}

/// The checked-in records and the checked-in page.
fn checked_in() -> (Records, String) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let records = Records::read(&docs.join("learning.jsonl")).expect("each line is a record");
    (records, std::fs::read_to_string(docs.join("learning.md")).expect("there is a page"))
}

/// The program that cargo has built next to this test's folder.
fn program() -> Program {
    let this = std::env::current_exe().expect("this test has a path");
    let built = this.ancestors().nth(2).expect("cargo's folder").join("podracer");
    assert!(
        built.is_file(),
        "there is no `{}`: build it with `cargo build`, or run the tests with --workspace",
        built.display()
    );
    Program::new(built)
}

#[test]
fn the_checked_in_page_is_of_the_present_settings_or_says_of_which() {
    let (records, page) = checked_in();
    let program = program();
    let rows = Row::all().expect("the table reads");
    let entries: Result<Vec<Entry>> =
        rows.into_iter().map(|row| Entry::new(row, &program)).collect();
    let mut entries = entries.expect("rows and experiments fit");
    for entry in &mut entries {
        entry.compare(&records, &program).expect("its program is emitted");
    }
    assert_eq!(records.mismatches(&entries), [""; 0], "docs/learning.jsonl on the left");
    for (written, expected) in page.lines().zip(text(&entries, &records).lines()) {
        assert_eq!(written, expected, "docs/learning.md is another page: `make learn ARGS=--page`");
    }
    assert_eq!(page.len(), text(&entries, &records).len(), "docs/learning.md ends elsewhere");
}

#[test]
fn each_row_below_its_reference_says_what_was_tried() {
    let (_, page) = checked_in();
    for row in Row::all().expect("the table reads") {
        let start = format!("| `{}` |", row.name);
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("docs/learning.md has no row {}", row.name));
        let mark = line.split(" | ").nth(8).expect("a row has ten columns");
        assert!(
            !mark.contains("below") || !row.tried.is_empty(),
            "{} is marked `{mark}`: rows.toml says in `tried` what was tried",
            row.name
        );
    }
}
