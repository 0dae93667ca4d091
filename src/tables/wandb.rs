//! The folder of an offline run of Weights & Biases: `wandb sync` uploads it.
//!
//! Its file is a log in LevelDB's format: blocks of 32 KiB with records in parts, each with a
//! checksum. A record is a protocol buffer of Weights & Biases; the messages that a run needs are
//! in this file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use prost::Message;
use serde_json::Value;
use time::OffsetDateTime;

use super::{Exported, Written};
use crate::files::write_whole;
use crate::machine;

/// The first bytes of a file: a name, a magic number and the version 0.
const BEGINNING: &[u8] = b":W&B\xe1\xbe\x00";
/// Number of bytes of a block, and of a part's head: checksum, length, kind.
const BLOCK: usize = 1 << 15;
const HEAD: usize = 7;
/// The oldest version of wandb that can read the file.
const OLDEST: &str = "0.12.0";
/// Number of letters of a run's id.
const ID: usize = 8;

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(int64, tag = "1")]
    num: i64,
    #[prost(message, optional, tag = "2")]
    history: Option<History>,
    #[prost(message, optional, tag = "3")]
    summary: Option<Items>,
    #[prost(message, optional, tag = "17")]
    run: Option<RunRecord>,
    #[prost(message, optional, tag = "18")]
    exit: Option<Exit>,
    #[prost(message, optional, tag = "21")]
    header: Option<Header>,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(message, optional, tag = "1")]
    version_info: Option<VersionInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct VersionInfo {
    #[prost(string, tag = "1")]
    producer: String,
    #[prost(string, tag = "2")]
    min_consumer: String,
}

#[derive(Clone, PartialEq, Message)]
struct RunRecord {
    #[prost(string, tag = "1")]
    run_id: String,
    #[prost(string, tag = "3")]
    project: String,
    #[prost(message, optional, tag = "4")]
    config: Option<Items>,
    #[prost(string, tag = "6")]
    run_group: String,
    #[prost(string, tag = "8")]
    display_name: String,
    #[prost(string, tag = "13")]
    host: String,
    #[prost(message, optional, tag = "17")]
    start_time: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Changes of a configuration or of a summary.
#[derive(Clone, PartialEq, Message)]
struct Items {
    #[prost(message, repeated, tag = "1")]
    update: Vec<Item>,
}

/// A value as JSON, for a key that is nested or not.
#[derive(Clone, PartialEq, Message)]
struct Item {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, repeated, tag = "2")]
    nested_key: Vec<String>,
    #[prost(string, tag = "16")]
    value_json: String,
}

#[derive(Clone, PartialEq, Message)]
struct History {
    #[prost(message, repeated, tag = "1")]
    item: Vec<Item>,
    #[prost(message, optional, tag = "2")]
    step: Option<Step>,
}

#[derive(Clone, PartialEq, Message)]
struct Step {
    #[prost(int64, tag = "1")]
    num: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Exit {
    #[prost(int32, tag = "1")]
    exit_code: i32,
    #[prost(int32, tag = "2")]
    runtime: i32,
}

/// Writes a folder for each run into a folder. A run that was written before is replaced.
///
/// # Errors
/// A folder without a run, and files that cannot be read or written.
pub(crate) fn write(runs: &[PathBuf], folder: &Path) -> Result<Vec<Written>> {
    runs.iter().map(|run| write_run(&Exported::read(run)?, folder)).collect()
}

fn write_run(exported: &Exported, folder: &Path) -> Result<Written> {
    let id = &exported.id[..ID];
    let began = OffsetDateTime::from(exported.began);
    let (date, (hour, minute, second)) = (began.date(), began.to_hms());
    let day = format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day());
    let run = folder.join(format!("offline-run-{day}_{hour:02}{minute:02}{second:02}-{id}"));
    if run.exists() {
        fs::remove_dir_all(&run).with_context(|| format!("cannot replace `{}`", run.display()))?;
    }
    fs::create_dir_all(run.join("files"))
        .with_context(|| format!("cannot make `{}`", run.display()))?;
    write_whole(&run.join(format!("run-{id}.wandb")), &log(&records(exported)))?;
    Ok(Written { advice: Some(format!("wandb sync {}", run.display())), path: run })
}

fn item(key: &str, value_json: String) -> Item {
    Item { key: key.to_owned(), nested_key: Vec::new(), value_json }
}

/// The records of a run, in order.
fn records(exported: &Exported) -> Vec<Record> {
    let Exported { overview, series, name, id, .. } = exported;
    let producer = format!("podracer {}", env!("CARGO_PKG_VERSION"));
    let version = VersionInfo { producer, min_consumer: OLDEST.to_owned() };
    let header = Header { version_info: Some(version) };
    let mut records = vec![Record { header: Some(header), ..Record::default() }];

    let setting = |(key, value): (&String, &String)| item(key, json(value));
    let seed = item("train.seed", overview.seed.to_string());
    let update = overview.settings.iter().map(setting).chain([seed]).collect();
    let began = exported.seconds_since_1970(0.0);
    let run = RunRecord {
        run_id: id[..ID].to_owned(),
        project: overview.experiment.clone(),
        config: Some(Items { update }),
        run_group: String::new(),
        display_name: name.clone(),
        host: machine::host(),
        start_time: Some(Timestamp { seconds: began as i64, nanos: (began.fract() * 1e9) as i32 }),
    };
    records.push(Record { run: Some(run), ..Record::default() });

    let mut last = Vec::new();
    for row in series.rows() {
        let num = row.number("iteration").unwrap_or(0.0) as i64;
        let times = [
            ("_step", num.to_string()),
            ("_timestamp", exported.seconds_since_1970(row.seconds).to_string()),
            ("_runtime", row.seconds.to_string()),
        ];
        let numbers = row.numbers().map(|(name, value)| (name, value.to_string()));
        let items = numbers
            .chain(times)
            .map(|(name, value)| Item { nested_key: vec![name.to_owned()], ..item("", value) });
        let items: Vec<Item> = items.collect();
        last.clone_from(&items);
        let history = History { item: items, step: Some(Step { num }) };
        records.push(Record { history: Some(history), ..Record::default() });
    }
    records.push(Record { summary: Some(Items { update: last }), ..Record::default() });
    let exit =
        Exit { exit_code: i32::from(!exported.is_whole()), runtime: exported.seconds() as i32 };
    records.push(Record { exit: Some(exit), ..Record::default() });
    for (number, record) in records.iter_mut().enumerate() {
        record.num = number as i64 + 1;
    }
    records
}

/// A setting as JSON: it is written as in TOML, except for texts, which have no quotes.
fn json(setting: &str) -> String {
    match serde_json::from_str::<Value>(setting) {
        Ok(value) => value.to_string(),
        Err(_) => Value::from(setting).to_string(),
    }
}

/// The file with these records. A record that crosses the end of a block is split into parts.
fn log(records: &[Record]) -> Vec<u8> {
    let mut file = BEGINNING.to_vec();
    for record in records {
        let record = record.encode_to_vec();
        let mut rest = &record[..];
        let mut first = true;
        loop {
            let mut room = BLOCK - file.len() % BLOCK;
            if room < HEAD {
                file.resize(file.len() + room, 0);
                room = BLOCK;
            }
            let (part, after) = rest.split_at(rest.len().min(room - HEAD));
            let kind: u8 = match (first, after.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&[kind]);
            hasher.update(part);
            file.extend(hasher.finalize().to_le_bytes());
            file.extend((part.len() as u16).to_le_bytes());
            file.push(kind);
            file.extend(part);
            (rest, first) = (after, false);
            if rest.is_empty() {
                break;
            }
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_json() {
        let made = ["0.1", "[64, 64]", "true", "mean", "1e-4", "inf"].map(json);
        assert_eq!(made, ["0.1", "[64,64]", "true", "\"mean\"", "0.0001", "\"inf\""]);
    }

    /// Records of every length around the length of a block, read back by the rules of LevelDB's
    /// logs.
    #[test]
    fn records_are_parts_of_blocks() {
        let lengths = [0, 1, 100, BLOCK - 60, BLOCK, 3 * BLOCK, 7, BLOCK - 7, BLOCK - 14, 5];
        let record = |length: &usize| Record {
            summary: Some(Items { update: vec![item("key", "1".repeat(*length))] }),
            ..Record::default()
        };
        let records: Vec<Record> = lengths.iter().map(record).collect();
        let file = log(&records);
        let (mut read, mut parts, mut at) = (Vec::new(), Vec::new(), BEGINNING.len());
        while at < file.len() {
            let room = BLOCK - at % BLOCK;
            if room < HEAD {
                assert!(file[at..at + room].iter().all(|byte| *byte == 0));
                at += room;
                continue;
            }
            let head: [u8; HEAD] = file[at..at + HEAD].try_into().unwrap();
            let length = usize::from(u16::from_le_bytes([head[4], head[5]]));
            assert!(HEAD + length <= room, "no part reaches over a block");
            let sum = crc32fast::hash(&file[at + HEAD - 1..at + HEAD + length]);
            assert_eq!(sum.to_le_bytes(), head[..4]);
            assert_eq!(parts.is_empty(), head[6] < 3, "a first part begins a record");
            parts.extend(&file[at + HEAD..at + HEAD + length]);
            if [1, 4].contains(&head[6]) {
                read.push(Record::decode(&parts[..]).unwrap());
                parts.clear();
            }
            at += HEAD + length;
        }
        assert_eq!(read, records);
    }
}
