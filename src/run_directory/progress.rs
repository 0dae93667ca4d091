//! The part of a checkpoint in addition to the state: settings, counters, lengths of files. Also
//! the check that a run can resume from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use podracer_runtime::{Found, OptionValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Recorded;
use crate::program_name::program_name;
use crate::registry::Registry;
use crate::settings::{Settings, UsageError};

/// The part of a checkpoint in addition to the state.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunProgress {
    /// The settings, as a table of tables.
    pub settings: Value,
    /// Versions and devices of the process that wrote it.
    pub recorded: Recorded,
    /// Sums over all calls.
    pub counters: Counters,
    /// Lengths of the growing files after the calls so far.
    pub files: Files,
}

/// Sums over all calls of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Counters {
    /// Number of calls of the compiled program.
    pub calls: u64,
    /// Number of iterations done.
    #[serde(alias = "updates")]
    pub iterations: u64,
    /// Number of environment steps.
    pub env_steps: u64,
    /// Seconds in calls, over all processes that trained the run.
    #[serde(default)]
    pub seconds: f64,
    /// Number of episodes that ended.
    pub episodes: u64,
    /// Mean return of the last episodes; `None` before the first.
    pub mean_return: Option<f64>,
    /// Number of episodes in `mean_return`.
    pub mean_return_episodes: u64,
    /// The last evaluation; `None` before the first.
    #[serde(default)]
    pub evaluated: Option<Evaluated>,
    /// The evaluation with the highest mean return; its parameters are in `best/`.
    #[serde(default)]
    pub best: Option<Evaluated>,
}

impl Counters {
    /// The last evaluation and the best evaluation, as names and values of the result; empty before
    /// the first.
    #[must_use]
    pub fn evaluations(&self) -> Vec<(String, f64)> {
        let named = [("eval", self.evaluated), ("best_eval", self.best)];
        let values = named.into_iter().filter_map(|(name, one)| {
            let Evaluated { iterations, mean_return } = one?;
            Some([
                (format!("{name}_return"), mean_return),
                (format!("{name}_after_iterations"), iterations as f64),
            ])
        });
        values.flatten().collect()
    }
}

/// An evaluation during the training.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Evaluated {
    /// Number of iterations before it.
    pub iterations: u64,
    /// Mean return of its episodes.
    pub mean_return: f64,
}

/// The lengths of the files that grow, in bytes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Files {
    /// Length of `metrics.jsonl`.
    pub metrics: u64,
    /// The name of TensorBoard's file.
    pub events_name: String,
    /// Length of TensorBoard's file.
    pub events: u64,
}

impl RunProgress {
    /// Reads the progress from a checkpoint.
    ///
    /// # Errors
    /// An error if the checkpoint was not written by a run directory.
    pub fn of(found: &Found) -> Result<Self> {
        serde_json::from_value(found.checkpoint.about.clone()).with_context(|| {
            format!("the checkpoint `{}` is none of a run directory", found.path.display())
        })
    }

    /// Checks that a run with these settings and devices can resume from the checkpoint at `path`.
    /// The settings come with the XLA options that podracer's rule chooses for them. Returns the
    /// differences in devices, versions and these options, as a sentence for the user; `None` if
    /// there are none.
    ///
    /// # Errors [`UsageError`] with the settings that differ, and a remedy.
    pub fn check(
        &self,
        path: &Path,
        (settings, rule): (&Settings, &[(String, OptionValue)]),
        recorded: &Recorded,
        registry: &Registry,
    ) -> Result<Option<String>> {
        let path = path.display();
        // Converted like the checkpoint's settings: numbers from JSON may be rounded.
        let settings: Value = serde_json::from_str(&serde_json::to_string(settings)?)?;
        let (before, now) = (flat(&self.settings), flat(&settings));
        // Options that podracer's rule did not have when the checkpoint was written.
        let rule: BTreeMap<_, _> = rule.iter().cloned().collect();
        let rule = serde_json::to_value(rule)?;
        let of_the_rule = |key: &str| {
            let value = key.strip_prefix("xla.").and_then(|name| rule.get(name));
            value.is_some() && !before.contains_key(key) && now.get(key).copied() == value
        };
        let show = |value: Option<&&Value>| value.map_or("absent".to_owned(), ToString::to_string);
        let different: Vec<String> = (before.keys().chain(now.keys()))
            .filter(|key| !registry.may_change_on_resume(key) && before.get(*key) != now.get(*key))
            .filter(|key| !of_the_rule(key))
            .map(|key| {
                let (before, now) = (show(before.get(key)), show(now.get(key)));
                format!("{key} was {before} and is {now}")
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        if !different.is_empty() {
            return Err(UsageError::new(format!(
                "the checkpoint `{path}` has other settings than config.toml: {}; set them back, or begin a run with the new settings with `{program} train`",
                different.join(", "),
                program = program_name()
            ))
            .into());
        }
        let processes = |settings: &BTreeMap<String, &Value>| {
            let processes = settings.get("train.processes").and_then(|number| number.as_u64());
            processes.map_or(1, |processes| processes as usize)
        };
        let count = |settings: &BTreeMap<String, &Value>, key: &str| {
            Some(settings.get(key)?.as_array()?.len() * processes(settings))
        };
        let actors = [&before, &now].map(|settings| count(settings, "sebulba.actors"));
        if actors[0] != actors[1] {
            let [before, now] = actors.map(Option::unwrap_or_default);
            return Err(UsageError::new(format!(
                "the checkpoint `{path}` has the environments of the threads of {before} actor device(s), and the run is to resume with {now}: name as many with --actors, or begin a run with `{} train`",
                program_name()
            ))
            .into());
        }
        let learners = [&before, &now].map(|settings| {
            count(settings, "sebulba.learners").or_else(|| count(settings, "central.learners"))
        });
        let devices = match learners {
            [Some(before), Some(now)] => [before, now],
            _ => [(&before, &self.recorded), (&now, recorded)]
                .map(|(settings, record)| record.devices.len() * processes(settings)),
        };
        let mut warnings = Vec::new();
        if let [before, now] = devices
            && before != now
        {
            warnings.push(format!(
                "the run learnt on {before} device(s) and resumes with {now}: the resumed run differs from an uninterrupted run"
            ));
        }
        let added = now.iter().filter(|(key, _)| of_the_rule(key));
        let added: Vec<String> = added.map(|(key, value)| format!("{key} = {value}")).collect();
        let name = |one: &Recorded| {
            let Recorded { podracer, platform, platform_version, plugin, device_kind, .. } = one;
            format!("podracer {podracer}, {platform} {platform_version} ({plugin}), {device_kind}")
        };
        let (before, now) = (name(&self.recorded), name(recorded));
        if !added.is_empty() {
            warnings.push(format!(
                "the run resumes with other options of podracer: {}: results may differ in the last bits",
                added.join(", ")
            ));
        }
        if before != now {
            warnings.push(format!(
                "the run was on {before} and resumes with {now}: results may differ in the last bits"
            ));
        }
        Ok((!warnings.is_empty()).then(|| warnings.join("; ")))
    }
}

/// The values in a table of tables, by dotted keys.
fn flat(table: &Value) -> BTreeMap<String, &Value> {
    let mut entries = BTreeMap::new();
    for (section, value) in table.as_object().into_iter().flatten() {
        match value {
            Value::Object(keys) => {
                entries.extend(keys.iter().map(|(key, value)| (format!("{section}.{key}"), value)));
            }
            value => {
                entries.insert(section.clone(), value);
            }
        }
    }
    entries
}
