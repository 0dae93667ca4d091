//! `podracer list`

use anyhow::Result;

use super::Console;
use crate::format::count;
use crate::registry::Registry;
use crate::settings::{Overrides, Schema};

pub(super) fn list(registry: &Registry, console: &mut Console<'_>) -> Result<u8> {
    let mut text = "experiments\n".to_owned();
    for one in registry.experiments() {
        let settings = registry.load(&one.name, &Overrides::default())?;
        text += &format!(
            "  {:<21} {:<7} {:<10} {:>4} environments, {:>4} steps   {}\n",
            one.name,
            settings.agent_kind(),
            settings.environment_name(),
            settings.shape().0,
            count(settings.train.steps as f64),
            settings.description,
        );
    }
    let agents = registry.agents().iter().map(|one| (one.name(), one.schema()));
    let environments = registry.environments().iter().map(|one| (one.name(), one.schema()));
    text += &format!("\nagents\n{}\nenvironments\n{}", lines(agents), lines(environments));
    console.print(&text)?;
    Ok(0)
}

/// A line for each: its name and the first sentence of its documentation.
fn lines<'a>(parts: impl Iterator<Item = (&'a str, &'a Schema)>) -> String {
    let line = |(name, schema): (&str, &Schema)| {
        let sentence = schema.doc.split(". ").next().unwrap_or_default().trim_end_matches('.');
        format!("  {name:<21} {sentence}\n")
    };
    parts.map(line).collect()
}
