//! Putting a table of changes over a complete one, key by key: what is there decides what may be written, and of which type.

use toml::{Table, Value};

use super::problems::{Problems, suggestion};
use super::servers::Preset;
use super::{AgentSettings, EnvironmentSettings, SebulbaSettings, devices};

/// The tables that an experiment consists of.
const SECTIONS: [&str; 6] = ["train", "anakin", "sebulba", "agent", "environment", "xla"];
/// What else may stand at the top of a file. `recorded` is what a run adds to its copy of the settings, for readers.
const TOP: [&str; 4] = ["base", "experiment", "description", "recorded"];

/// Changes `base` to what `changes` says; `source` is named in messages.
pub(super) fn merge(base: &mut Table, changes: &Table, source: &str, problems: &mut Problems) {
    for (key, value) in changes {
        match (key.as_str(), value) {
            ("base" | "recorded", _) => {}
            ("experiment" | "description", Value::String(_)) => {
                base.insert(key.clone(), value.clone());
            }
            ("experiment" | "description", _) => problems
                .add(format!("{source}: `{key}` must be a string and is {}", describe(value))),
            (section, Value::Table(changes)) if SECTIONS.contains(&section) => {
                merge_section(base, section, changes, source, problems);
            }
            (section, _) if SECTIONS.contains(&section) => problems
                .add(format!("{source}: `{key}` must be a table and is {}", describe(value))),
            _ => problems.add(format!(
                "{source}: `{key}` is not a setting{}; the tables are {}",
                suggestion(key, SECTIONS.into_iter().chain(TOP)),
                SECTIONS.map(|name| format!("[{name}]")).join(", ")
            )),
        }
    }
}

fn merge_section(
    base: &mut Table,
    section: &str,
    changes: &Table,
    source: &str,
    problems: &mut Problems,
) {
    if let Some(chooser) = chooser(section)
        && !choose(base, section, chooser, changes, source, problems)
    {
        return;
    }
    // One shape of the loop takes the place of the other.
    if section == "sebulba"
        && base.remove("anakin").is_some()
        && let Ok(defaults) = Value::try_from(SebulbaSettings::default())
    {
        base.insert(section.to_owned(), defaults);
    }
    let Some(Value::Table(base)) = base.get_mut(section) else {
        problems.add(format!("{source}: [{section}] and [sebulba] exclude each other"));
        return;
    };
    // A preset decides what nothing else is said of.
    if let ("environment", Some(preset)) = (section, changes.get("preset"))
        && base.get("preset").is_some_and(|had| had != preset)
        && let Ok(preset) = preset.clone().try_into::<Preset>()
        && let Ok(Value::Table(processing)) = Value::try_from(preset.processing())
    {
        base.extend(processing);
    }
    for (key, value) in changes {
        let name = format!("{section}.{key}");
        let converted = match base.get(key) {
            _ if section == "xla" => xla_value(key, value),
            _ if name == "train.devices" => devices::Devices::from_value(value)
                .map(|devices| devices.to_value())
                .ok_or_else(|| format!("must be {}", devices::EXPECTED)),
            Some(like) => {
                if let (Some(values), Value::String(text)) = (values_of(&name), value)
                    && !values.contains(&text.as_str())
                {
                    problems.one_of(&name, text, values);
                    continue;
                }
                convert(value, like)
            }
            None => {
                let names: Vec<&str> = base.keys().map(String::as_str).collect();
                problems.add(format!(
                    "{source}: `{name}` is not a setting{}; [{section}] takes {}",
                    suggestion(key, names.iter().copied()),
                    names.join(", ")
                ));
                continue;
            }
        };
        match converted {
            Ok(value) => {
                base.insert(key.clone(), value);
            }
            Err(expected) => {
                problems.add(format!("{source}: `{name}` {expected} and is {}", describe(value)))
            }
        }
    }
}

/// The values of an enumerated setting.
fn values_of(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "environment.autoreset" => Some(&["same-step", "next-step", "disabled"]),
        "environment.packages" => Some(&["gymnasium", "mujoco"]),
        "environment.preset" => Some(&["ppo", "seed"]),
        "environment.vectorization" => Some(&["sync", "async", "native"]),
        _ => None,
    }
}

/// The key whose value decides which other keys a table has, with the tables it can choose between.
struct Chooser {
    key: &'static str,
    names: &'static [&'static str],
    defaults: fn(&str) -> Option<Value>,
}

fn chooser(section: &str) -> Option<Chooser> {
    match section {
        "agent" => Some(Chooser {
            key: "kind",
            names: &AgentSettings::KINDS,
            defaults: |kind| Value::try_from(AgentSettings::of_kind(kind)?).ok(),
        }),
        "environment" => Some(Chooser {
            key: "name",
            names: &EnvironmentSettings::NAMES,
            defaults: |name| Value::try_from(EnvironmentSettings::of_name(name)?).ok(),
        }),
        _ => None,
    }
}

/// Gives the table the defaults of the agent or environment chosen, where that is not the one it had. False: nothing is chosen.
fn choose(
    base: &mut Table,
    section: &str,
    chooser: Chooser,
    changes: &Table,
    source: &str,
    problems: &mut Problems,
) -> bool {
    let had = base.get(section).and_then(|table| table.get(chooser.key));
    let chosen = match (changes.get(chooser.key), had) {
        (None, Some(_)) => return true,
        (Some(chosen), Some(had)) if chosen == had => return true,
        (chosen, _) => chosen,
    };
    let one_of = format!("one of: {}", chooser.names.join(", "));
    let name = format!("{section}.{}", chooser.key);
    let Some(chosen) = chosen else {
        problems.add(format!("{source}: [{section}] must have a `{}`, {one_of}", chooser.key));
        return false;
    };
    match chosen.as_str().and_then(chooser.defaults) {
        Some(defaults) => {
            base.insert(section.to_owned(), defaults);
            true
        }
        None => {
            let near =
                suggestion(chosen.as_str().unwrap_or_default(), chooser.names.iter().copied());
            problems.add(format!(
                "{source}: `{name}` is {} and must be {one_of}{near}",
                describe(chosen)
            ));
            false
        }
    }
}

/// `value` as the type of `like`, or what it must be.
fn convert(value: &Value, like: &Value) -> Result<Value, String> {
    let must = |what: &str| Err(format!("must be {what}"));
    match (like, value) {
        (Value::Integer(_), Value::Integer(number)) if *number >= 0 => Ok(value.clone()),
        (Value::Integer(_), _) => must("an integer of at least 0"),
        (Value::Float(_), Value::Float(_)) => Ok(value.clone()),
        #[allow(clippy::cast_precision_loss, reason = "a setting of 2^53 is none")]
        (Value::Float(_), Value::Integer(number)) => Ok(Value::Float(*number as f64)),
        (Value::Float(_), _) => must("a number"),
        (Value::Boolean(_), Value::Boolean(_)) | (Value::String(_), Value::String(_)) => {
            Ok(value.clone())
        }
        (Value::Boolean(_), _) => must("true or false"),
        (Value::String(_), _) => must("a string"),
        (Value::Array(likes), Value::Array(values)) => {
            let like = likes.first().unwrap_or(&Value::Integer(0));
            let converted: Result<Vec<Value>, String> =
                values.iter().map(|value| convert(value, like)).collect();
            converted
                .map(Value::Array)
                .map_err(|expected| format!("must be a list, and each of its elements {expected},"))
        }
        (Value::Array(_), _) => must("a list"),
        (Value::Table(_), Value::Table(_)) => Ok(value.clone()),
        (Value::Table(_), _) => must("a table"),
        (Value::Datetime(_), _) => must("left out"),
    }
}

fn xla_value(key: &str, value: &Value) -> Result<Value, String> {
    if !key.starts_with("xla_") {
        return Err("must be an option of XLA, whose names begin with `xla_`,".to_owned());
    }
    match value {
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::String(_) => {
            Ok(value.clone())
        }
        _ => Err("must be a number, a string, true or false".to_owned()),
    }
}

/// A value as messages name it.
fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the string \"{text}\""),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => format!("`{value}`"),
        Value::Array(_) => format!("the list `{value}`"),
        Value::Table(_) => "a table".to_owned(),
        Value::Datetime(_) => "a date".to_owned(),
    }
}
