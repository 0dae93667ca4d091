//! The parts of an experiment that are code. A file is data, except for the programs and folders
//! that it names: they are used only if the user trusts the file, or names them too.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use podracer_plugins::PACKAGE_SETS;
use toml::{Table, Value};

use crate::UsageError;

/// The environment variable with programs and folders that any file may name, separated as in `PATH`.
const VARIABLE: &str = "PODRACER_TRUST";

/// The settings that name code, each with the last file that named it.
#[derive(Default)]
pub(super) struct Trust(BTreeMap<String, String>);

impl Trust {
    /// Records the code that a layer of settings names: the layer is a file, or `None` for the
    /// program's or the user's settings.
    pub(super) fn layer(&mut self, changes: &Table, file: Option<&str>) {
        for (setting, _) in code(changes) {
            match file {
                Some(file) => self.0.insert(setting, file.to_owned()),
                None => self.0.remove(&setting),
            };
        }
    }

    /// Checks that the user knows the programs and folders that files name.
    ///
    /// # Errors
    /// [`UsageError`] with all programs and folders that the user has not named.
    pub(super) fn check(&self, table: &Table) -> Result<(), UsageError> {
        let unknown = code(table).into_iter().filter_map(|(setting, value)| {
            let file = self.0.get(&setting).filter(|_| !known(value))?;
            Some(format!("{file}: `{setting}` is `{value}`"))
        });
        match &unknown.collect::<Vec<_>>()[..] {
            [] => Ok(()),
            all => Err(UsageError::new(format!(
                "{}: its programs and folders would be used with your rights; if you trust the file, add --trust, or name them in {VARIABLE}",
                all.join("; ")
            ))),
        }
    }
}

/// The settings of a table that name programs or folders, with their values: an interpreter of
/// environment servers, and XLA's options with paths, such as the path of the compiler for GPUs.
fn code(table: &Table) -> Vec<(String, &str)> {
    let text = |section: &str, key: &str| table.get(section)?.get(key)?.as_str();
    let python = text("environment", "python");
    let python = python.map(|python| ("environment.python".to_owned(), python));
    let xla = table.get("xla").and_then(Value::as_table).into_iter().flatten();
    let xla = xla.filter_map(|(name, value)| {
        let value = value.as_str().filter(|value| value.contains('/'))?;
        Some((format!("xla.{name}"), value))
    });
    python.into_iter().chain(xla).collect()
}

/// True if the user or podracer has installed the program or folder `value`.
fn known(value: &str) -> bool {
    let path = Path::new(value);
    let named = env::var_os(VARIABLE).unwrap_or_default();
    env::split_paths(&named).any(|one| one == path)
        || PACKAGE_SETS.iter().any(|set| set.find().is_ok_and(|python| python == path))
}
