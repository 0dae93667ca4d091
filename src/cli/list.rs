//! `podracer list`: lists the experiments, agents and environments.

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
            "  {:<21} {:<7} {:<14} {:>4} environments, {:>4} steps   {}\n",
            one.name,
            settings.agent_kind(),
            settings.environment_name(),
            settings.shape().0,
            count(settings.train.steps as f64),
            settings.description,
        );
    }
    let agents = registry.agents().iter().map(|one| (&*one.name, &one.schema));
    let environments = registry.environments().iter().map(|one| (&*one.name, &one.schema));
    text += &format!("\nagents\n{}\nenvironments\n{}", lines(agents), lines(environments));
    console.print(&text)?;
    Ok(0)
}

/// Least length of the documentation in a line, unless there is no more of it.
const ABOUT: usize = 40;

/// A line for each: its name and the first sentences of its documentation.
fn lines<'a>(parts: impl Iterator<Item = (&'a str, &'a Schema)>) -> String {
    let line = |(name, schema): (&str, &Schema)| {
        // A sentence begins with a capital letter: "et al. 2017" is no end of one.
        let begins = |at: usize| schema.doc[at..].starts_with(|c: char| c.is_ascii_uppercase());
        let ends = schema.doc.match_indices(". ").map(|(at, _)| at);
        let end = ends.filter(|&at| at >= ABOUT && begins(at + 2)).min();
        let about = schema.doc[..end.unwrap_or(schema.doc.len())].trim_end_matches('.');
        format!("  {name:<21} {about}\n")
    };
    parts.map(line).collect()
}
