//! `metrics.jsonl`: one object per update, the last of each call with what is known per call.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::files::cannot_write;
use crate::training::CallMetrics;

pub(super) struct Metrics {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Metrics {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| cannot_write(path))?;
        Ok(Self {
            file: BufWriter::new(file),
            path: path.to_owned(),
        })
    }

    pub(super) fn write(
        &mut self,
        call: &CallMetrics,
        before: (u64, u64),
        seconds: f64,
    ) -> Result<()> {
        for line in lines(call, before, seconds) {
            serde_json::to_writer(&mut self.file, &line)
                .map_err(std::io::Error::from)
                .and_then(|()| self.file.write_all(b"\n"))
                .with_context(|| cannot_write(&self.path))?;
        }
        self.file.flush().with_context(|| cannot_write(&self.path))
    }
}

/// The lines of a call. A number that JSON does not have (NaN, infinity) becomes `null`.
fn lines(call: &CallMetrics, (updates, steps): (u64, u64), seconds: f64) -> Vec<Value> {
    let mut lines = Vec::new();
    for update in 0..call.updates {
        let mut line = Map::new();
        let done = update + 1;
        line.insert("update".to_owned(), (updates + done).into());
        line.insert(
            "env_steps".to_owned(),
            (steps + steps_after(call, done)).into(),
        );
        for (name, values) in &call.per_update {
            let value = usize::try_from(update).ok().and_then(|at| values.get(at));
            line.insert(
                name.clone(),
                value.map_or(Value::Null, |&value| number(value)),
            );
        }
        if done == call.updates {
            line.insert("episodes".to_owned(), call.episodes.into());
            line.insert("mean_return".to_owned(), call.mean_return().into());
            line.insert("seconds".to_owned(), seconds.into());
            for (name, value) in &call.per_call {
                line.insert(name.clone(), (*value).into());
            }
        }
        lines.push(Value::Object(line));
    }
    lines
}

/// The environment steps of the first `done` updates of a call.
pub(super) fn steps_after(call: &CallMetrics, done: u64) -> u64 {
    call.env_steps * done / call.updates.max(1)
}

/// The shortest decimal that reads back as this f32.
fn number(value: f32) -> Value {
    if value.is_finite() {
        serde_json::from_str(&value.to_string()).unwrap_or(Value::Null)
    } else {
        Value::Null
    }
}
