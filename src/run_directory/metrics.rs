//! `metrics.jsonl`: one object for each [`Line`], even if no call ended in it.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::METRICS;
use super::reading::{cannot_read, next_line, open};
use super::thinning::Line;
use crate::axis::Point;
use crate::files::cannot_write;
use crate::load::MachineLoad;
use crate::settings::UsageError;

pub(super) struct Metrics {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Metrics {
    pub(super) fn create(path: &Path) -> Result<Self> {
        Self::open(path, 0)
    }

    /// Opens the file and truncates it to `length` bytes. The file is locked: one process at a time trains a run.
    pub(super) fn open(path: &Path, bytes: u64) -> Result<Self> {
        let options = File::options().write(true).create(true).truncate(false).open(path);
        let file = options.with_context(|| cannot_write(path))?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(UsageError::new(format!(
                "another process writes `{}`: the run is under way",
                path.display()
            ))
            .into());
        }
        let mut file = Self { file: BufWriter::new(file), path: path.to_owned() };
        cut(&mut file.file, bytes).with_context(|| cannot_write(path))?;
        Ok(file)
    }

    /// Synchronises the file to disk, and returns its length.
    pub(super) fn synchronised(&mut self) -> Result<u64> {
        synchronised(&mut self.file).with_context(|| cannot_write(&self.path))
    }

    pub(super) fn write(&mut self, lines: &[Line]) -> Result<()> {
        for line in lines {
            serde_json::to_writer(&mut self.file, line)
                .map_err(std::io::Error::from)
                .and_then(|()| self.file.write_all(b"\n"))
                .with_context(|| cannot_write(&self.path))?;
        }
        self.file.flush().with_context(|| cannot_write(&self.path))
    }

    /// Writes the line of an evaluation.
    pub(super) fn evaluation(
        &mut self,
        (iterations, steps): (u64, u64),
        values: &[(&str, f64)],
    ) -> Result<()> {
        let mut line = Map::new();
        line.insert("iteration".to_owned(), iterations.into());
        line.insert("env_steps".to_owned(), steps.into());
        line.extend(values.iter().map(|&(name, value)| (name.to_owned(), value.into())));
        writeln!(self.file, "{}", Value::Object(line))
            .and_then(|()| self.file.flush())
            .with_context(|| cannot_write(&self.path))
    }
}

/// Environment steps and mean return after each call.
pub(super) fn points(run: &Path) -> Result<Vec<Point>> {
    let point = |line: &[u8]| {
        let line: Value = serde_json::from_slice(line).ok()?;
        Some((line["env_steps"].as_u64()?, line["mean_return"].as_f64()?))
    };
    let read = || {
        let mut file = BufReader::new(open(run, METRICS, u64::MAX)?);
        let (mut line, mut points) = (Vec::new(), Vec::new());
        while next_line(&mut file, &mut line)? > 0 {
            points.extend(point(&line));
        }
        Ok::<_, io::Error>(points)
    };
    read().with_context(|| cannot_read(run, METRICS))
}

/// Truncates a file to `bytes` bytes, and continues at its end. A file that is not regular has no
/// length.
pub(super) fn cut(file: &mut BufWriter<File>, bytes: u64) -> io::Result<()> {
    let metadata = file.get_ref().metadata()?;
    if metadata.is_file() {
        let bytes = bytes.min(metadata.len());
        file.get_ref().set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
    }
    Ok(())
}

/// Synchronises a file to disk, and returns its length.
pub(super) fn synchronised(file: &mut BufWriter<File>) -> io::Result<u64> {
    file.flush()?;
    match file.get_ref().sync_all() {
        // A file that is not regular cannot be synchronised, and need not be.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(0),
        other => other.and_then(|()| file.stream_position()),
    }
}

/// A line as an object. A number that JSON does not have (NaN, infinity) becomes `null`.
impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("iteration", &self.iteration)?;
        members.serialize_entry("env_steps", &self.env_steps)?;
        if self.iterations > 1 {
            members.serialize_entry("iterations", &self.iterations)?;
        }
        for (name, series) in &self.series {
            members.serialize_entry(name, &series.mean())?;
        }
        if let Some(calls) = &self.calls {
            members.serialize_entry("episodes", &calls.episodes)?;
            members.serialize_entry("mean_return", &calls.mean_return)?;
            members.serialize_entry("seconds", &calls.seconds)?;
            for (name, value) in &calls.values {
                members.serialize_entry(name, value)?;
            }
            for (name, count) in &calls.counts {
                members.serialize_entry(name, count)?;
            }
            if let Some(load) = &calls.load {
                members.serialize_entry("time", &load.time)?;
            }
            for (name, value) in calls.load.iter().flat_map(MachineLoad::metrics) {
                members.serialize_entry(name, &value)?;
            }
        }
        members.end()
    }
}
