//! From what the user names (a built-in experiment or a file) and changes (`--set`, flags) to complete settings.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::AnakinSettings;
use super::merge::merge;
use super::problems::Problems;
use super::{Devices, Settings, TrainSettings, UsageError, suggestion};
use crate::experiments::BUILT_IN;

/// How many files may be based on one another.
const DEEPEST_BASE: usize = 8;

/// What the command line changes. Flags win over `--set`, and both over the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--seed`
    pub seed: Option<u64>,
    /// `--steps`
    pub steps: Option<u64>,
    /// `--devices`
    pub devices: Option<Devices>,
    /// `--actors`
    pub actors: Option<Vec<usize>>,
    /// `--learners`
    pub learners: Option<Vec<usize>>,
    /// `--set`, each as `table.key=value`.
    pub set: Vec<String>,
}

/// The settings of `experiment` (a built-in name, or the path of a TOML file) with `overrides`.
///
/// # Errors
/// [`UsageError`] with all that is wrong in the layer where something is; another error where a file cannot be read.
pub fn load(experiment: &str, overrides: &Overrides) -> Result<Settings> {
    let mut table = complete(experiment, 0)?;
    let mut problems = Problems::default();
    merge(&mut table, &parse_sets(&overrides.set)?, "--set", &mut problems);
    problems.into_result()?;
    let mut settings: Settings = Value::Table(table)
        .try_into()
        .map_err(|error| UsageError::new(format!("{experiment}: {error}")))?;
    if let Some(seed) = overrides.seed {
        settings.train.seed = seed;
    }
    if let Some(steps) = overrides.steps {
        settings.train.steps = steps;
    }
    if let Some(devices) = &overrides.devices {
        settings.train.devices = devices.clone();
    }
    for (flag, named) in [("actors", &overrides.actors), ("learners", &overrides.learners)] {
        let Some(named) = named else { continue };
        let Some(sebulba) = &mut settings.sebulba else {
            return Err(UsageError::new(format!(
                "--{flag} is for experiments with [sebulba], and {experiment} has [anakin]: --devices names its devices"
            ))
            .into());
        };
        match flag {
            "actors" => sebulba.actors.clone_from(named),
            _ => sebulba.learners.clone_from(named),
        }
    }
    settings.check()?;
    Ok(settings)
}

/// The complete table of an experiment.
fn complete(experiment: &str, depth: usize) -> Result<Table> {
    let built_in = BUILT_IN.iter().find(|one| one.name == experiment);
    let path = Path::new(experiment);
    let is_path = path.extension().is_some_and(|extension| extension == "toml")
        || path.components().count() > 1
        || path.is_file();
    let (text, source) = match built_in {
        Some(one) => (one.text.to_owned(), format!("experiment {experiment}")),
        None if is_path => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read the experiment `{}`", path.display()))?;
            (text, path.display().to_string())
        }
        None => return Err(unknown(experiment).into()),
    };
    let changes: Table =
        toml::from_str(&text).map_err(|error| UsageError::new(format!("{source}: {error}")))?;

    let mut table = match changes.get("base") {
        None => general()?,
        Some(Value::String(base)) if depth < DEEPEST_BASE => {
            complete(&beside(path, base), depth + 1)
                .with_context(|| format!("in the base of {source}"))?
        }
        Some(Value::String(_)) => {
            let problem =
                format!("{source}: more than {DEEPEST_BASE} files are based on one another");
            return Err(UsageError::new(problem).into());
        }
        Some(_) => {
            let problem = format!("{source}: `base` must name an experiment or a file");
            return Err(UsageError::new(problem).into());
        }
    };
    // A file is its own experiment, whatever it is based on.
    let name = path.file_stem().unwrap_or(path.as_os_str());
    let name =
        built_in.map_or_else(|| name.to_string_lossy().into_owned(), |one| one.name.to_owned());
    table.insert("experiment".to_owned(), Value::String(name));
    table.remove("description");

    let mut problems = Problems::default();
    merge(&mut table, &changes, &source, &mut problems);
    for section in ["agent", "environment"] {
        if !table.contains_key(section) && !changes.contains_key(section) {
            problems.add(format!("{source}: it has neither a `base` nor [{section}]"));
        }
    }
    if let Some(Value::String(name)) = table.get("experiment")
        && (name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.'))
    {
        problems.add(format!("{source}: `experiment` names folders and cannot be `{name}`"));
    }
    problems.into_result()?;
    Ok(table)
}

/// A base that is a file is named relative to the file that names it.
fn beside(path: &Path, base: &str) -> String {
    let file = path.with_file_name(base);
    if BUILT_IN.iter().any(|one| one.name == base) || !file.exists() {
        base.to_owned()
    } else {
        file.display().to_string()
    }
}

/// What holds where nothing is said. Agent and environment have to be.
fn general() -> Result<Table> {
    let mut table = Table::new();
    let train = TrainSettings {
        seed: 0,
        steps: 1_000_000,
        platform: "cpu".to_owned(),
        devices: Devices::Count(1),
        checkpoint_every: 1_000,
        checkpoints_kept: 2,
    };
    table.insert("train".to_owned(), Value::try_from(train)?);
    table.insert("anakin".to_owned(), Value::try_from(AnakinSettings::default())?);
    table.insert("xla".to_owned(), Value::Table(Table::new()));
    Ok(table)
}

fn unknown(experiment: &str) -> UsageError {
    let names = || BUILT_IN.iter().map(|one| one.name);
    UsageError::new(format!(
        "there is no experiment `{experiment}`{}; the built-in ones are {}, and a path to a TOML file names another",
        suggestion(experiment, names()),
        names().collect::<Vec<_>>().join(", ")
    ))
}

/// `["agent.clip=0.1"]` as the table it abbreviates. The last of several for one key holds.
pub(crate) fn parse_sets(sets: &[String]) -> Result<Table, UsageError> {
    let mut table = Table::new();
    for set in sets {
        let wrong = || {
            UsageError::new(format!(
                "--set takes `table.key=value` (such as `agent.learning_rate=1e-3`) and was given `{set}`"
            ))
        };
        let (name, value) = set.split_once('=').ok_or_else(wrong)?;
        let (section, key) = name.trim().split_once('.').ok_or_else(wrong)?;
        if section.is_empty() || key.is_empty() {
            return Err(wrong());
        }
        // What is no TOML value is a string: quotes would have to be protected from the shell.
        let value = value.trim();
        let value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(value.to_owned()));
        let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key.to_owned(), value);
        }
    }
    Ok(table)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
