//! `podracer describe`: the settings of an agent, environment, loop or experiment.

use anyhow::Result;
use serde_json::{Value as Json, json};
use toml::Table;

use super::console::Console;
use crate::loading::Overrides;
use crate::registry::Registry;
use crate::schema::{Key, Kind, Schema};
use crate::settings::{UsageError, suggestion};

/// Greatest width of a setting and its value that moves the comments of a table to the right.
const WIDEST: usize = 34;

/// A table of settings to describe.
struct SettingsTable<'a> {
    /// The table's name in an experiment, and the agent or environment chosen in it.
    section: &'static str,
    name: &'a str,
    schema: &'a Schema,
    /// The values of an experiment, or the defaults.
    values: &'a Table,
}

pub(super) fn describe(
    name: &str,
    json: bool,
    registry: &Registry,
    console: &mut Console<'_>,
) -> Result<u8> {
    let parts = parts(name, registry);
    let described = if !parts.is_empty() {
        if json { parts.iter().map(SettingsTable::json).collect() } else { texts(&parts).into() }
    } else if registry.experiment(name).is_some() || name.ends_with(".toml") {
        experiment(name, json, registry)?
    } else {
        return Err(unknown(name, registry).into());
    };
    console.print(&match described {
        Json::String(text) => text,
        json => json.to_string() + "\n",
    })?;
    Ok(0)
}

/// The tables, agents and environments with a name. An agent and an environment may have the same
/// name.
fn parts<'a>(name: &'a str, registry: &'a Registry) -> Vec<SettingsTable<'a>> {
    let part = |section: &'static str, schema: &'a Schema| {
        let values = &schema.defaults;
        SettingsTable { section, name, schema, values }
    };
    let tables = registry.tables.iter().filter(|(table, _)| *table == name);
    let tables = tables.map(|(table, schema)| part(table, schema));
    let agents = registry.agent(name).map(|one| part("agent", &one.schema));
    let environments = registry.environment(name).map(|one| part("environment", &one.schema));
    tables.chain(agents).chain(environments).collect()
}

/// All tables of an experiment, with its values.
fn experiment(name: &str, json: bool, registry: &Registry) -> Result<Json> {
    // Its programs are not run.
    let trust = Overrides { trust: true, ..Overrides::default() };
    let settings = registry.load(name, &trust)?;
    let whole = Table::try_from(&settings)?;
    let the_loop = settings.training_loop.section();
    let sections = ["train", the_loop, "agent", "environment", "program", "metrics"];
    let part = |section: &'static str| {
        let values = whole.get(section)?.as_table()?;
        let chosen = Registry::chooser(section).and_then(|chooser| values.get(chooser)?.as_str());
        let schema = registry.schema(section, chosen)?;
        Some(SettingsTable { section, name: chosen.unwrap_or(section), schema, values })
    };
    let parts: Vec<SettingsTable<'_>> = sections.into_iter().filter_map(part).collect();
    Ok(if json {
        let parts: Json = parts.iter().map(SettingsTable::json).collect();
        let mut described = json!({ "experiment": settings.experiment, "description": settings.description, "parts": parts });
        if !settings.xla.is_empty() {
            described["xla"] = serde_json::to_value(&settings.xla)?;
        }
        described
    } else {
        format!("{}: {}\n\n{}", settings.experiment, settings.description, texts(&parts)).into()
    })
}

fn texts(parts: &[SettingsTable<'_>]) -> String {
    parts.iter().map(SettingsTable::text).collect::<Vec<_>>().join("\n")
}

impl SettingsTable<'_> {
    /// Text of the table as in an experiment: a line for each setting, with its type and
    /// documentation, and a line for each documented choice.
    fn text(&self) -> String {
        let mut text = format!("# {}\n[{}]\n", self.schema.doc, self.section);
        if let Some(chooser) = Registry::chooser(self.section) {
            text += &format!("{chooser} = \"{}\"\n", self.name);
        }
        let show = |key: &Key, table: &Table| {
            table.get(&key.name).map_or_else(|| "\"none\"".to_owned(), ToString::to_string)
        };
        let lines: Vec<String> = (self.schema.keys.iter())
            .map(|key| format!("{} = {}", key.name, show(key, self.values)))
            .collect();
        let widths = lines.iter().map(String::len).filter(|&width| width <= WIDEST);
        let width = widths.max().unwrap_or_default();
        for (line, key) in lines.iter().zip(&self.schema.keys) {
            let choices = match &key.kind {
                Kind::OneOf(names) if names.iter().any(|(_, doc)| !doc.is_empty()) => &names[..],
                _ => &[],
            };
            let kind = if choices.is_empty() { key.kind.to_string() } else { "choice".to_owned() };
            let none = if key.optional { ", or none" } else { "" };
            text += &format!("{line:width$}  # {kind}{none}");
            let default = show(key, &self.schema.defaults);
            if show(key, self.values) != default {
                text += &format!("; default {default}");
            }
            text += &format!(": {}\n", key.doc);
            for (name, doc) in choices {
                text += &format!("{:width$}  #   {name}: {doc}\n", "");
            }
        }
        text
    }

    fn json(&self) -> Json {
        json!({
            "table": self.section,
            "name": self.name,
            "doc": self.schema.doc,
            "settings": self.schema.to_json(self.values),
        })
    }
}

fn unknown(name: &str, registry: &Registry) -> UsageError {
    let experiments = registry.experiments().iter().map(|one| one.name.as_str());
    let tables = || registry.tables.iter().map(|(name, _)| *name);
    let names = tables().chain(registry.names("agent")).chain(registry.names("environment"));
    UsageError::new(format!(
        "there is no agent, environment, table of settings or experiment `{name}`{}; `podracer list` shows the agents, environments and experiments, and the tables are {}",
        suggestion(name, names.chain(experiments)),
        tables().collect::<Vec<_>>().join(", ")
    ))
}
