//! The modules of the command line are layers: imports run one way, so that none of them form a circle.

use podracer_tests::check_all;

use super::files_with;

/// The modules of the command line, from the lowest: each may use those before it. A folder's own name is its `mod.rs`.
const CLI_LAYERS: &[&str] = &[
    "program",
    "console",
    "signals",
    "order",
    "together",
    "store",
    "devices",
    "numbers",
    "arguments",
    "processes",
    "named_runs",
    "session/outcome",
    "session/summary",
    "session/calls",
    "session/progress",
    "session/totals",
    "session/exporter",
    "session/no_exporter",
    "session/ready",
    "session/follow",
    "session/recorder",
    "session/evaluations",
    "session",
    "several",
    "several/axes",
    "several/shared_runs",
    "several/outcomes",
    "several/one_by_one",
    "several/one_program",
    "several/population",
    "several/sweep",
    "ir/target",
    "ir/check",
    "ir/emit",
    "ir/export",
    "ir/opt",
    "ir",
    "runs",
    "inspect/curves",
    "inspect/explain",
    "inspect/memory",
    "inspect/plot",
    "inspect/profile",
    "inspect/report",
    "inspect/versus",
    "inspect/play",
    "inspect/watch",
    "inspect",
    "resume",
    "train",
    "serve",
    "work",
    "launch",
    "tune",
    "eval",
    "cost",
    "describe",
    "envs",
    "list",
    "new",
    "plugins",
    "command",
];

/// Files of the command line that may use all of it: what runs commands, and tests.
const CLI_OPEN: &[&str] = &["mod", "environment_reports", "fake", "pages", "tests"];

/// The paths in a text that begin with `prefix`, each without it: `use super::{a, b::C}` has `a` and `b::C` after `super::`.
fn paths_after<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let path = &text[at + prefix.len()..];
        if text[..at].ends_with("super::") || path.starts_with("super::") {
            continue;
        }
        let Some(group) = path.strip_prefix('{') else {
            found.push(path);
            continue;
        };
        let (mut depth, mut start) = (0_i32, 0);
        for (end, c) in group.char_indices() {
            match c {
                ',' | '}' if depth == 0 => {
                    found.push(group[start..end].trim());
                    start = end + 1;
                    if c == '}' {
                        break;
                    }
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    found
}

/// The layer that a path of words leads into: the longest one that it begins with.
fn layer_of(words: &str) -> Option<&'static str> {
    let begins = |layer: &&&str| {
        words.strip_prefix(**layer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    CLI_LAYERS.iter().filter(begins).max_by_key(|layer| layer.len()).copied()
}

/// The modules of the command line that a text uses. `super` is the folder `above`; `own` is the
/// folder of this `mod.rs`, if the text is one.
fn used(text: &str, above: &str, own: Option<&str>) -> Vec<String> {
    let below = |words: &str, folder: &str| {
        let ends = |c: char| !c.is_alphanumeric() && c != '_' && c != ':';
        let words = words.split(ends).next().unwrap_or_default().replace("::", "/");
        let words = format!("{folder}/{words}");
        let words = words.trim_start_matches('/');
        layer_of(words).map_or_else(|| format!("`{words}` of cli itself"), str::to_owned)
    };
    let from_root = paths_after(text, "crate::cli::").into_iter().map(|words| below(words, ""));
    let from_above = paths_after(text, "super::").into_iter().map(|words| below(words, above));
    let of_own = CLI_LAYERS.iter().filter(|layer| {
        let module = own.and_then(|own| layer.strip_prefix(own)?.strip_prefix('/'));
        module.is_some_and(|module| text.contains(&format!(" {module}::")))
    });
    from_root.chain(from_above).chain(of_own.map(|&layer| layer.to_owned())).collect()
}

#[test]
fn modules_of_the_command_line_are_layers() {
    let mut complaints = Vec::new();
    for (file, text) in files_with(&["rs"]) {
        let Ok(path) = file.strip_prefix("src/cli") else { continue };
        let path = path.with_extension("").display().to_string();
        if CLI_OPEN.contains(&&*path) {
            continue;
        }
        let own = path.strip_suffix("/mod");
        let name = own.unwrap_or(&path);
        let above = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let place = layer_of(name).and_then(|name| CLI_LAYERS.iter().position(|&one| one == name));
        let Some(place) = place else {
            complaints.push(format!("{} is in no layer of `CLI_LAYERS`", file.display()));
            continue;
        };
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for used in used(text, above, own) {
            if !CLI_LAYERS[..=place].contains(&&*used) {
                let name = CLI_LAYERS[place];
                complaints
                    .push(format!("{} uses {used}, which is not below {name}", file.display()));
            }
        }
    }
    check_all(&complaints);
}
