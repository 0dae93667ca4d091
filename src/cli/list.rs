//! `podracer list`: lists the experiments, agents and environments.

use anyhow::Result;

use super::console::Console;
use crate::format::{aligned, count};
use crate::loading::Overrides;
use crate::registry::Registry;
use crate::schema::Schema;

pub(super) fn list(registry: &Registry, console: &mut Console<'_>) -> Result<u8> {
    let (mut rows, mut unverified) = (Vec::new(), Vec::new());
    for one in registry.experiments() {
        let settings = registry.load(&one.name, &Overrides::default())?;
        let rows = if one.unverified { &mut unverified } else { &mut rows };
        rows.push(vec![
            one.name.clone(),
            settings.agent_kind().to_owned(),
            settings.environment_name().to_owned(),
            format!("{:>4} environments", settings.training_loop.lanes()),
            format!("{:>5} steps", count(settings.train.steps as f64)),
            settings.description.clone(),
        ]);
    }
    let agents = registry.agents().iter().map(|one| (&*one.name, &one.schema));
    let environments = registry.environments().iter().map(|one| (&*one.name, &one.schema));
    let parts = [
        ("experiments", rows),
        ("experiments without a recorded training", unverified),
        ("agents", lines(agents)),
        ("environments", lines(environments)),
    ];
    let part = |(name, rows): &(&str, Vec<Vec<String>>)| {
        let lines = aligned(rows);
        let lines = lines.lines().map(|line| format!("  {line}\n"));
        format!("{name}\n{}", lines.collect::<String>())
    };
    let parts = parts.iter().filter(|(_, rows)| !rows.is_empty()).map(part);
    console.print(&parts.collect::<Vec<_>>().join("\n"))?;
    Ok(0)
}

/// Least length of the documentation in a line, unless the documentation is shorter.
const ABOUT: usize = 40;

/// Each name with the first sentences of its documentation.
fn lines<'a>(parts: impl Iterator<Item = (&'a str, &'a Schema)>) -> Vec<Vec<String>> {
    let line = |(name, schema): (&str, &Schema)| {
        // A sentence begins with a capital letter: "et al. 2017" does not end a sentence.
        let begins = |at: usize| schema.doc[at..].starts_with(|c: char| c.is_ascii_uppercase());
        let ends = schema.doc.match_indices(". ").map(|(at, _)| at);
        let end = ends.filter(|&at| at >= ABOUT && begins(at + 2)).min();
        let about = schema.doc[..end.unwrap_or(schema.doc.len())].trim_end_matches('.');
        vec![name.to_owned(), about.to_owned()]
    };
    parts.map(line).collect()
}
