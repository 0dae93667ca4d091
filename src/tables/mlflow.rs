//! The folder of MLflow's file store: `mlflow ui --backend-store-uri FOLDER`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Exported, Written};
use crate::files::write_whole;
use crate::run_directory::RunState;

/// Most letters of a parameter's value that MLflow takes.
const LONGEST: usize = 6000;

/// Writes the runs into a folder of MLflow's, beside those that are there. A run that was written before is replaced.
///
/// # Errors
/// A folder without a run, and files that cannot be read or written.
pub(crate) fn write(runs: &[PathBuf], folder: &Path) -> Result<Vec<Written>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let folder = folder.canonicalize()?;
    runs.iter().map(|run| write_run(&Exported::read(run)?, &folder)).collect()
}

fn write_run(exported: &Exported, folder: &Path) -> Result<Written> {
    let Exported { overview, series, name, id, .. } = exported;
    let milliseconds = |seconds: f64| (exported.seconds_since_1970(seconds) * 1e3) as u64;
    let (began, ended) = (milliseconds(0.0), milliseconds(exported.seconds()));

    // An experiment's number is made of its name, which is the same for all of its runs.
    let hash = Sha256::digest(overview.experiment.as_bytes());
    let number = u64::from_be_bytes(std::array::from_fn(|i| hash[i])) >> 4;
    let experiment = folder.join(number.to_string());
    let meta = experiment.join("meta.yaml");
    if !meta.exists() {
        put(
            &meta,
            &yaml(&json!({
                "artifact_location": url(&experiment),
                "creation_time": began,
                "experiment_id": number.to_string(),
                "last_update_time": began,
                "lifecycle_stage": "active",
                "name": overview.experiment,
            })),
        )?;
    }

    let run = experiment.join(id);
    if run.exists() {
        fs::remove_dir_all(&run).with_context(|| format!("cannot replace `{}`", run.display()))?;
    }
    // MLflow's numbers of the states.
    let status = match overview.state {
        RunState::Running => 1,
        RunState::Finished => 3,
        RunState::Unfinished => 4,
        RunState::Stopped => 5,
    };
    put(
        &run.join("meta.yaml"),
        &yaml(&json!({
            "artifact_uri": url(&run.join("artifacts")),
            "end_time": if overview.state == RunState::Running { json!(null) } else { json!(ended) },
            "entry_point_name": "",
            "experiment_id": number.to_string(),
            "lifecycle_stage": "active",
            "run_id": id,
            "run_name": name,
            "run_uuid": id,
            "source_name": "",
            "source_type": 4,
            "source_version": "",
            "start_time": began,
            "status": status,
            "tags": [],
            "user_id": "",
        })),
    )?;
    fs::create_dir_all(run.join("artifacts"))?;
    put(&run.join("tags/mlflow.runName"), name)?;
    put(&run.join("params/train.seed"), &overview.seed.to_string())?;
    for (key, value) in &overview.settings {
        let value: String = value.chars().take(LONGEST).collect();
        put(&run.join("params").join(file_name(key)), &value)?;
    }
    let mut metrics: BTreeMap<&str, String> = BTreeMap::new();
    for row in series.rows() {
        let step = row.number("iteration").unwrap_or(0.0) as u64;
        let at = milliseconds(row.seconds);
        for (metric, value) in row.numbers() {
            let lines = metrics.entry(metric).or_default();
            // Into text nothing fails.
            let _ = writeln!(lines, "{at} {value} {step}");
        }
    }
    for (metric, lines) in metrics {
        put(&run.join("metrics").join(file_name(metric)), &lines)?;
    }
    Ok(Written { path: run, advice: None })
}

/// The file of a name, in which MLflow takes slashes for folders: no folder that is not below the run's.
fn file_name(name: &str) -> PathBuf {
    let allowed = |letter: char| letter.is_alphanumeric() || "_-. ".contains(letter);
    let part = |part: &str| -> String {
        let part = part.trim_matches('.');
        part.chars().map(|letter| if allowed(letter) { letter } else { '_' }).collect()
    };
    name.split('/')
        .map(part)
        .map(|part| if part.is_empty() { "_".to_owned() } else { part })
        .collect()
}

/// A flat object as YAML: a value of JSON is one of YAML.
fn yaml(object: &serde_json::Value) -> String {
    let entries = object.as_object().into_iter().flatten();
    entries.map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn url(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn put(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        let cannot = || format!("cannot make `{}`", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    write_whole(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_names_stay_below_their_folder() {
        for (name, expected) in [
            ("loss", "loss"),
            ("agent.learning_rate", "agent.learning_rate"),
            ("thread/actor 0", "thread/actor 0"),
            ("../../etc/passwd", "_/_/etc/passwd"),
            ("/a//b", "_/a/_/b"),
            ("a:b", "a_b"),
        ] {
            assert_eq!(file_name(name), Path::new(expected), "{name}");
        }
    }
}
