//! Merges a layer of settings (a file, its base, `--set`, the flags) into the layers below it, and
//! finds all its mistakes.
//!
//! Crates of layers such as `figment` do not fit: they stop at the first value with a wrong type
//! and do not know ranges. A table with keys that depend on one of its values (`[agent] kind`)
//! would have to be built around them. The rest is this file.

use std::path::Path;

use podracer_envs::mujoco::RobotModel;
use toml::{Table, Value};

use super::OTHER_LOOPS;
use crate::registry::Registry;
use crate::schema::{Key, Mistake, Schema};
use crate::settings::{Problems, suggestion};

/// The tables of an experiment in addition to [`Registry::tables`].
const FURTHER: [&str; 3] = ["agent", "environment", "xla"];
/// The other keys at the top of a file. A run adds `recorded` to its copy of the settings, for readers.
const TOP: [&str; 4] = ["base", "experiment", "description", "recorded"];
/// Keys that have been renamed.
const RENAMED: [(&str, &str); 4] = [
    ("anakin.updates_per_call", "iterations_per_call"),
    ("sebulba.updates_per_call", "iterations_per_call"),
    ("central.inference", "actors"),
    ("agent.replay", "learn_from"),
];

/// The value that unsets an optional setting.
const NONE: &str = "none";

/// A layer that is merged into others.
pub(super) struct Layer<'a> {
    pub(super) registry: &'a Registry,
    /// The layer's name in messages: a file, an experiment, `--set`.
    pub(super) source: &'a str,
    /// The folder of relative paths in the layer.
    pub(super) folder: &'a Path,
    pub(super) problems: &'a mut Problems,
}

impl Layer<'_> {
    /// Applies `changes` to the complete table `base`.
    pub(super) fn merge(&mut self, base: &mut Table, changes: &Table) {
        let tables = self.registry.tables.iter().map(|(name, _)| *name);
        let sections: Vec<&str> = tables.chain(FURTHER).collect();
        let loops = ["anakin"].into_iter().chain(OTHER_LOOPS);
        let loops: Vec<&str> = loops.filter(|section| changes.contains_key(*section)).collect();
        if let [first, second, ..] = loops[..] {
            return self.add(format!(
                "[{first}] and [{second}] exclude each other: an experiment has one loop"
            ));
        }
        for (key, value) in changes {
            match (key.as_str(), value) {
                ("base" | "recorded", _) => {}
                ("experiment" | "description", Value::String(_)) => {
                    base.insert(key.clone(), value.clone());
                }
                ("experiment" | "description", _) => {
                    self.add(format!("`{key}` must be a string and is {}", describe(value)));
                }
                ("xla", Value::Table(changes)) => self.merge_xla(base, changes),
                (section, Value::Table(changes)) if sections.contains(&section) => {
                    self.merge_section(base, section, changes);
                }
                (section, _) if sections.contains(&section) => {
                    self.add(format!("`{key}` must be a table and is {}", describe(value)));
                }
                ("seed", Value::Table(_)) => self.add(
                    "[seed] is called [central] now, and seed.inference is central.actors"
                        .to_owned(),
                ),
                _ => self.add(format!(
                    "`{key}` is not a setting{}; the tables are {}",
                    suggestion(key, sections.iter().copied().chain(TOP)),
                    sections.iter().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ")
                )),
            }
        }
    }

    fn add(&mut self, problem: String) {
        self.problems.add(format!("{}: {problem}", self.source));
    }

    fn merge_section(&mut self, base: &mut Table, section: &str, changes: &Table) {
        let chooser = Registry::chooser(section);
        if chooser.is_some_and(|chooser| !self.choose(base, section, chooser, changes)) {
            return;
        }
        // One loop replaces the other.
        if OTHER_LOOPS.contains(&section) && base.remove("anakin").is_some() {
            let defaults = self
                .registry
                .schema(section, None)
                .map(|schema| schema.defaults.clone())
                .unwrap_or_default();
            base.insert(section.to_owned(), Value::Table(defaults));
        }
        let Some(Value::Table(base)) = base.get_mut(section) else {
            let there = OTHER_LOOPS.into_iter().find(|name| base.contains_key(*name));
            let there = there.unwrap_or("anakin");
            self.add(format!("[{section}] and [{there}] exclude each other"));
            return;
        };
        let chosen = chooser.and_then(|chooser| base.get(chooser)).and_then(Value::as_str);
        let Some(schema) = self.registry.schema(section, chosen) else {
            return;
        };
        // A preset changes the defaults of other settings.
        if section == "environment"
            && let Some(preset) = changes.get("preset")
            && base.get("preset") != Some(preset)
            && let Some(defaults) =
                chosen.and_then(|name| (self.registry.environment(name)?.preset)(preset.clone()))
        {
            base.extend(defaults);
        }
        for (key, value) in changes.iter().filter(|(key, _)| chooser != Some(key)) {
            match schema.key(key) {
                Some(known) if known.optional && value.as_str() == Some(NONE) => {
                    base.remove(key);
                }
                Some(known) => match self.accepted(section, known, value) {
                    Ok(value) => {
                        base.insert(key.clone(), value);
                    }
                    Err(mistake) => self.add(mistake),
                },
                None => self.add(unknown(section, key, chooser, schema)),
            }
        }
    }

    /// The value of a setting as the loaded settings have it, or a message.
    fn accepted(&self, section: &str, key: &Key, value: &Value) -> Result<Value, String> {
        let checked = key.kind.check(value);
        let value = checked.map_err(|mistake| explain(section, key, value, mistake))?;
        match value.as_str() {
            Some(path) if key.mjcf && !path.is_empty() && !RobotModel::is_text(path) => {
                let model = RobotModel::from_file(self.folder.join(path))
                    .map_err(|error| format!("{section}.{}: {error}", key.name))?;
                Ok(Value::String(model.text().to_owned()))
            }
            _ => Ok(value),
        }
    }

    /// Gives the table the defaults of the chosen agent or environment, unless it has them. Returns
    /// false if the choice is a mistake.
    fn choose(&mut self, base: &mut Table, section: &str, chooser: &str, changes: &Table) -> bool {
        let had = base.get(section).and_then(|table| table.get(chooser));
        let chosen = match (changes.get(chooser), had) {
            (None, Some(_)) => return true,
            (Some(chosen), Some(had)) if chosen == had => return true,
            (chosen, _) => chosen,
        };
        let names = self.registry.names(section);
        let one_of = format!("one of: {}", names.join(", "));
        let Some(chosen) = chosen else {
            self.add(format!("[{section}] must have a `{chooser}`, {one_of}"));
            return false;
        };
        let name = chosen.as_str().unwrap_or_default();
        let Some(schema) = self.registry.schema(section, Some(name)) else {
            let near = suggestion(name, names);
            let chosen = describe(chosen);
            self.add(format!("`{section}.{chooser}` is {chosen} and must be {one_of}{near}"));
            return false;
        };
        let mut table = Table::from_iter([(chooser.to_owned(), chosen.clone())]);
        table.extend(schema.defaults.clone());
        base.insert(section.to_owned(), Value::Table(table));
        true
    }

    /// Changes XLA's options, which have no schema here, because only XLA knows them.
    fn merge_xla(&mut self, base: &mut Table, changes: &Table) {
        let Some(Value::Table(base)) = base.get_mut("xla") else { return };
        for (key, value) in changes {
            let must = match value {
                _ if !key.starts_with("xla_") => {
                    "be an option of XLA, with a name that begins with `xla_`,"
                }
                Value::Array(_) | Value::Table(_) | Value::Datetime(_) => {
                    "be a number, a string, true or false"
                }
                _ => {
                    base.insert(key.clone(), value.clone());
                    continue;
                }
            };
            self.add(format!("`xla.{key}` must {must} and is {}", describe(value)));
        }
    }
}

/// Message for a key that the table does not have.
fn unknown(section: &str, key: &str, chooser: Option<&str>, schema: &Schema) -> String {
    let name = format!("{section}.{key}");
    if let Some((_, new)) = RENAMED.iter().find(|(old, _)| *old == name) {
        return format!("`{name}` is called `{section}.{new}` now");
    }
    let known = schema.keys.iter().map(|key| key.name.as_str());
    let mut names: Vec<&str> = known.chain(chooser).collect();
    names.sort_unstable();
    if section == "anakin" && key == "replay" {
        return format!(
            "`{name}` is not a setting: Anakin's replay is on the device that learns; one on the host needs the other loop, \
             `sebulba.replay = \"host\"`"
        );
    }
    let near = suggestion(key, names.iter().copied());
    format!("`{name}` is not a setting{near}; [{section}] takes {}", names.join(", "))
}

/// Message for a value that its key does not accept.
fn explain(section: &str, key: &Key, value: &Value, mistake: Mistake) -> String {
    let name = format!("{section}.{}", key.name);
    match (mistake, &key.must) {
        (Mistake::Type(must), _) => format!("`{name}` {must} and is {}", describe(value)),
        (Mistake::Range(_), Some(must)) => format!("{name} must {must}"),
        (Mistake::Range(must), None) => {
            let none = if key.optional { ": \"none\" is without it" } else { "" };
            format!("{name} {must} and is {}{none}", plain(value))
        }
        (Mistake::Name(names), _) => {
            let near = suggestion(&plain(value), names.iter().map(String::as_str));
            format!("{name} is `{}` and must be one of: {}{near}", plain(value), names.join(", "))
        }
    }
}

/// Text of a value without its type: `1e-3` is 0.001, and a string has no quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Float(number) => float(*number),
        Value::String(text) => text.clone(),
        value => toml_text(value),
    }
}

/// Text of a value as in TOML, except for large numbers.
fn toml_text(value: &Value) -> String {
    match value {
        Value::Float(number) if number.abs() >= LARGE => float(*number),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Numbers from here on have more digits than a float can represent.
const LARGE: f64 = 1e16;

/// Text of a number, with an exponent if it is large: 1e308.
fn float(number: f64) -> String {
    match number.abs() {
        LARGE.. if number.is_finite() => format!("{number:e}"),
        _ => number.to_string(),
    }
}

/// Text of a value with its type, for messages.
fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{text}\""),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {
            format!("`{}`", toml_text(value))
        }
        Value::Array(_) => format!("the list `{}`", toml_text(value)),
        Value::Table(_) => "a table".to_owned(),
        Value::Datetime(_) => "a date".to_owned(),
    }
}
