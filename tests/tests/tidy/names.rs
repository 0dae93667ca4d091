//! Names: how many types of one name there are, and how many variables are bound in two steps. Both numbers may only fall.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files_with;

/// Greatest number of names that three files or more give to types of their own.
const MOST_SHARED_NAMES: usize = 19;

/// Greatest number of variables that the next statement binds again, by their own value.
const MOST_REBINDINGS: usize = 112;

/// The sources of the product, without their tests.
fn sources() -> impl Iterator<Item = (String, String)> {
    let product = |file: &Path| {
        let outside = ["tests", "benches", "fuzz", "examples"];
        let inside =
            |part: &std::path::Component<'_>| outside.iter().any(|&one| part.as_os_str() == one);
        !file.components().any(|part| inside(&part)) && !file.ends_with("tests.rs")
    };
    let files = files_with(&["rs"]).into_iter().filter(move |(file, _)| product(file));
    files.map(|(file, text)| {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        (file.display().to_string(), code.to_owned())
    })
}

/// The word that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    // Associated types are indented.
    if line.starts_with(' ') {
        return None;
    }
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest
            .strip_prefix('(')
            .map_or(rest, |rest| rest.split_once(')').map_or(rest, |(_, rest)| rest)),
        None => line,
    };
    let (kind, name) = line.trim_start_matches(' ').split_once(' ')?;
    ["struct", "enum", "trait", "type", "union"].contains(&kind).then(|| word(name))
}

/// The indentation of a line and the variable that it binds with `let`.
fn bound(line: &str) -> Option<(usize, &str, &str)> {
    let code = line.trim_start_matches(' ');
    let rest = code.strip_prefix("let ")?;
    let rest = rest.strip_prefix("mut ").unwrap_or(rest);
    let name = word(rest);
    let value = rest[name.len()..].strip_prefix(" = ")?;
    Some((line.len() - code.len(), name, value))
}

/// Number of variables that a statement binds by their own value, right after the statement that binds them first.
fn rebindings(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let again = |&at: &usize| {
        let Some((indent, name, value)) = bound(lines[at]) else { return false };
        if name.is_empty() || word(value) != name || !lines[at - 1].ends_with(';') {
            return false;
        }
        let indented = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let before = lines[..at].iter().rev();
        let first = before
            .take_while(|line| indented(line) >= indent && !line.is_empty())
            .find(|line| indented(line) == indent && line.trim_start().starts_with("let "));
        let ended = |first: &str| {
            lines[..at]
                .iter()
                .rev()
                .take_while(|&&line| line != first)
                .all(|line| !line.ends_with(';') || *line == lines[at - 1])
        };
        first.is_some_and(|first| {
            bound(first).is_some_and(|(_, other, _)| other == name) && ended(first)
        })
    };
    (1..lines.len()).filter(again).count()
}

#[test]
fn few_names_stand_for_types_of_three_files() {
    let mut files: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources() {
        for name in text.lines().filter_map(defined) {
            files.entry(name.to_owned()).or_default().insert(file.clone());
        }
    }
    let shared: Vec<_> = files.iter().filter(|(_, files)| files.len() >= 3).collect();
    let names: Vec<_> =
        shared.iter().map(|(name, files)| format!("{name} ({})", files.len())).collect();
    assert_eq!(
        shared.len(),
        MOST_SHARED_NAMES,
        "names of types in three files or more: rename a new one, or lower MOST_SHARED_NAMES: {}",
        names.join(", ")
    );
}

#[test]
fn few_variables_are_bound_in_two_steps() {
    let counts = sources().map(|(file, text)| (rebindings(&text), file));
    let counts: Vec<_> = counts.filter(|(count, _)| *count > 0).collect();
    let sum: usize = counts.iter().map(|(count, _)| count).sum();
    assert_eq!(
        sum, MOST_REBINDINGS,
        "`let x = ..; let x = f(x);`: write one statement, or lower MOST_REBINDINGS: {counts:?}"
    );
    let twice = "fn f() {\n    let x = 1;\n    let x = x + 1;\n}\n";
    assert_eq!((rebindings(twice), rebindings(&twice.replace("let x = x", "let y = x"))), (1, 0));
}
