//! Loads settings: an experiment or a file, its bases, `--set` and flags. Each layer overrides the
//! layers before it.

mod check;
mod division;
mod merge;
#[cfg(test)]
mod robot;
#[cfg(test)]
mod sizes;
mod trust;

use std::path::Path;

use anyhow::{Context, Result};
use podracer_plugins::read_regular_text;
use toml::{Table, Value};

use crate::UsageError;
use crate::program_name::program_name;
use crate::registry::{EnvironmentEntry, Experiment, Registry};
use crate::settings::{Devices, Problems, Settings, suggestion};
use merge::Layer;
use trust::Trust;

/// Greatest length of an experiment's file in bytes.
const LARGEST: u64 = 16 << 20;
/// Greatest length of a chain of bases.
const DEEPEST_BASE: usize = 8;

/// Changes of the command line to an experiment. Flags override `--set`, and both override the
/// file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Value of `--seed`.
    pub seed: Option<u64>,
    /// Value of `--steps`.
    pub steps: Option<u64>,
    /// Value of `--devices`.
    pub devices: Option<Devices>,
    /// Value of `--actors`.
    pub actors: Option<Vec<usize>>,
    /// Value of `--learners`.
    pub learners: Option<Vec<usize>>,
    /// Values of `--set`, each `table.key=value`.
    pub set: Vec<String>,
    /// `--trust`: use the programs and folders that files name.
    pub trust: bool,
}

impl Overrides {
    /// The flags as a layer of settings, for an experiment with a loop in this table.
    fn flags(&self, training_loop: &str) -> Table {
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let list = |named: &Vec<usize>| named.iter().map(|&index| integer(index as u64)).collect();
        let table = |flags: [(&str, Option<Value>); 3]| {
            let given = flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Value::Table(given.collect())
        };
        let train = table([
            ("seed", self.seed.map(integer)),
            ("steps", self.steps.map(integer)),
            ("devices", self.devices.clone().map(Value::from)),
        ]);
        let named = |devices: &Option<Vec<usize>>| devices.as_ref().map(list).map(Value::Array);
        let roles = table([
            ("actors", named(&self.actors)),
            ("learners", named(&self.learners)),
            ("", None),
        ]);
        let sections = [("train", train), (training_loop, roles)].into_iter();
        let given =
            sections.filter(|(_, table)| table.as_table().is_some_and(|table| !table.is_empty()));
        given.map(|(name, table)| (name.to_owned(), table)).collect()
    }
}

/// The settings of a built-in experiment, or of a TOML file by its path, with `overrides`, as from
/// [`Registry::load`] of the program `podracer`.
///
/// # Errors
/// Errors of [`Registry::load`].
pub fn load(experiment: &str, overrides: &Overrides) -> Result<Settings> {
    Registry::built_in().load(experiment, overrides)
}

/// The tables of loops that replace `[anakin]`.
pub(super) const OTHER_LOOPS: [&str; 3] = ["sebulba", "central", "meta"];

impl Registry {
    /// Checks that every registration is valid and every experiment loads.
    ///
    /// # Errors
    /// Returns all mistakes.
    pub fn check(&self) -> Result<(), UsageError> {
        let wrong = |one: &Experiment| self.load(&one.name, &Overrides::default()).err();
        let wrong = self.experiments().iter().filter_map(wrong).map(|error| format!("{error:#}"));
        let mistakes: Vec<String> = self.mistakes().iter().cloned().chain(wrong).collect();
        match &mistakes[..] {
            [] => Ok(()),
            all => Err(UsageError::new(all.join("\n  "))),
        }
    }

    /// The settings of an experiment of the program, or of a TOML file by its path, with `overrides`.
    ///
    /// # Errors
    /// [`UsageError`] with all mistakes of a layer, and for programs that a file names but the user
    /// does not; another error if a file cannot be read.
    pub fn load(&self, experiment: &str, overrides: &Overrides) -> Result<Settings> {
        let mut trust = Trust::default();
        let mut table = self.complete(experiment, 0, &mut trust)?;
        let sets = parse_sets(&overrides.set)?;
        self.put(&mut table, &sets, "--set")?;
        trust.layer(&sets, None);
        if !overrides.trust {
            trust.check(&table)?;
        }
        let on_host = OTHER_LOOPS.into_iter().find(|name| table.contains_key(*name));
        let role = [("actors", &overrides.actors), ("learners", &overrides.learners)];
        let role = role.into_iter().find(|(_, named)| named.is_some());
        if let (None, Some((flag, _))) = (on_host, role) {
            return Err(UsageError::new(format!(
                "--{flag} is for experiments with [sebulba] or [central], and {experiment} has [anakin]: --devices names its devices"
            ))
            .into());
        }
        self.put(&mut table, &overrides.flags(on_host.unwrap_or("anakin")), "the command line")?;
        let settings: Settings = Value::Table(table)
            .try_into()
            .map_err(|error| UsageError::new(format!("{experiment}: {error}")))?;
        settings.check(self)?;
        Ok(settings)
    }

    /// An environment as a learner elsewhere describes it: its name, and its settings as JSON.
    /// `sets` has the user's own changes to them, as for `--set`.
    ///
    /// # Errors [`UsageError`] for an unknown environment, for settings that it does not accept, and for programs that the learner names but the user does not.
    #[cfg_attr(not(feature = "central"), allow(dead_code, reason = "for workers elsewhere"))]
    pub(crate) fn of_learner(
        &self,
        name: &str,
        settings: &str,
        sets: &[String],
        trusted: bool,
    ) -> Result<(&EnvironmentEntry, Table), UsageError> {
        const LEARNER: &str = "the learner";
        let entry = self.environment(name).ok_or_else(|| {
            let known = self.names("environment");
            UsageError::new(format!(
                "the learner's environment is `{name}`, which this program does not have{}: use the learner's own program here, too",
                suggestion(name, known.iter().copied())
            ))
        })?;
        let mut settings: Table = serde_json::from_str(settings).map_err(|error| {
            UsageError::new(format!("the learner's settings of `{name}` are no table: {error}"))
        })?;
        settings.insert("name".to_owned(), Value::String(name.to_owned()));
        let changes = Table::from_iter([("environment".to_owned(), Value::Table(settings))]);
        let sets = parse_sets(sets)?;
        if let Some(other) = sets.keys().find(|section| *section != "environment") {
            return Err(UsageError::new(format!(
                "--set of a worker changes [environment] alone, and not [{other}]: all else is the learner's"
            )));
        }
        let mut trust = Trust::default();
        trust.layer(&changes, Some(LEARNER));
        trust.layer(&sets, None);
        let mut table = self.environment_layers((&changes, LEARNER), &sets)?;
        if !trusted {
            trust.check(&table)?;
        }
        let environment = taken(&mut table);
        (entry.check)(&environment).map_err(UsageError::new)?;
        Ok((entry, environment))
    }

    /// The complete settings of an environment by its name, with the user's changes, as for
    /// `--set`.
    ///
    /// # Errors [`UsageError`] for settings that it does not accept, and for changes to other tables.
    pub(crate) fn environment_table(
        &self,
        name: &str,
        sets: &[String],
    ) -> Result<Table, UsageError> {
        let sets = parse_sets(sets)?;
        if let Some(other) = sets.keys().find(|section| *section != "environment") {
            return Err(UsageError::new(format!(
                "--set {other}: `{name}` is an environment, with settings in `environment`"
            )));
        }
        let chosen = Table::from_iter([("name".to_owned(), Value::String(name.to_owned()))]);
        let chosen = Table::from_iter([("environment".to_owned(), Value::Table(chosen))]);
        Ok(taken(&mut self.environment_layers((&chosen, "the command line"), &sets)?))
    }

    /// An environment by its name, with [its settings](Registry::environment_table).
    ///
    /// # Errors
    /// [`UsageError`] for an unknown name, and for settings that the environment does not accept.
    #[cfg(feature = "central")]
    pub(crate) fn named(
        &self,
        name: &str,
        sets: &[String],
    ) -> Result<(&EnvironmentEntry, Table), UsageError> {
        let entry = self.environment(name).ok_or_else(|| {
            let known = self.names("environment");
            let near = suggestion(name, known.iter().copied());
            UsageError::new(format!("there is no environment `{name}`{near}"))
        })?;
        let table = self.environment_table(name, sets)?;
        (entry.check)(&table).map_err(UsageError::new)?;
        Ok((entry, table))
    }

    /// A table with a complete `[environment]`: the choice of `source`, changed by `--set`.
    fn environment_layers(
        &self,
        (chosen, source): (&Table, &str),
        sets: &Table,
    ) -> Result<Table, UsageError> {
        let mut table = Table::new();
        self.put(&mut table, chosen, source)?;
        self.put(&mut table, sets, "--set")?;
        Ok(table)
    }

    /// Merges a layer into a complete table.
    fn put(&self, table: &mut Table, changes: &Table, source: &str) -> Result<(), UsageError> {
        let mut problems = Problems::default();
        let folder = Path::new("");
        Layer { registry: self, source, folder, problems: &mut problems }.merge(table, changes);
        problems.into_result()
    }

    /// The complete table of an experiment.
    fn complete(&self, experiment: &str, depth: usize, trust: &mut Trust) -> Result<Table> {
        let known = self.experiment(experiment);
        let path = Path::new(experiment);
        let (text, source) = match known {
            Some(one) => (one.text.clone(), format!("experiment {experiment}")),
            None if !self.is_unknown(experiment) => {
                let text = read_regular_text(path, LARGEST)
                    .with_context(|| format!("cannot read the experiment `{}`", path.display()))?;
                (text, path.display().to_string())
            }
            None => return Err(self.unknown(experiment).into()),
        };
        let changes: Table =
            toml::from_str(&text).map_err(|error| UsageError::new(format!("{source}: {error}")))?;

        let mut table = match changes.get("base") {
            None => self.defaults(),
            Some(Value::String(base)) if depth < DEEPEST_BASE => {
                let base = self.beside(path, base);
                let base = self.complete(&base, depth + 1, trust);
                base.with_context(|| format!("in the base of {source}"))?
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
        // A file is its own experiment, with any base.
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let name = known.map_or(stem, |one| one.name.clone());
        table.insert("experiment".to_owned(), Value::String(name));
        table.remove("description");

        let mut problems = Problems::default();
        let folder = path.parent().filter(|_| known.is_none()).unwrap_or(Path::new(""));
        Layer { registry: self, source: &source, folder, problems: &mut problems }
            .merge(&mut table, &changes);
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
        trust.layer(&changes, known.is_none().then_some(&source));
        Ok(table)
    }

    /// The default settings of an experiment. Agent and environment have no defaults.
    fn defaults(&self) -> Table {
        let tables = self.tables.iter().filter(|(name, _)| !OTHER_LOOPS.contains(name));
        let tables = tables.map(|(name, schema)| (*name, schema.defaults.clone()));
        let all = tables.chain([("xla", Table::new())]);
        all.map(|(name, table)| (name.to_owned(), Value::Table(table))).collect()
    }

    /// Name of a base. A base that is a file is named relative to the file that refers to it.
    fn beside(&self, path: &Path, base: &str) -> String {
        let file = path.with_file_name(base);
        if self.experiment(base).is_some() || !file.exists() {
            base.to_owned()
        } else {
            file.display().to_string()
        }
    }

    /// True if the name is neither an experiment nor the path of a file.
    pub(crate) fn is_unknown(&self, experiment: &str) -> bool {
        let path = Path::new(experiment);
        let is_path = path.extension().is_some_and(|extension| extension == "toml")
            || path.components().count() > 1
            || path.is_file();
        self.experiment(experiment).is_none() && !is_path
    }

    fn unknown(&self, experiment: &str) -> UsageError {
        let names = self.experiments().iter().map(|one| one.name.as_str());
        UsageError::new(format!(
            "there is no experiment `{experiment}`{}\n`{} list` shows all experiments; an argument that ends in .toml is an experiment's file",
            suggestion(experiment, names),
            program_name()
        ))
    }
}

/// Removes `[environment]` from a table and returns it.
fn taken(table: &mut Table) -> Table {
    match table.remove("environment") {
        Some(Value::Table(environment)) => environment,
        _ => unreachable!("the environment was chosen"),
    }
}

/// Parses the values of `--set`: `["agent.clip=0.1"]` becomes the table that it abbreviates. The
/// last value of a key counts.
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
        // A text that is no TOML value is a string, because quotes would have to be protected from
        // the shell.
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
