//! Environment variables: CONTRIBUTING.md lists each that the sources name.

use std::collections::BTreeSet;
use std::path::Path;

use podracer_tests::{check_all, workspace};

/// Names of variables in a text, each between quotes, after a `$` or before an `=`.
fn variables(text: &str) -> BTreeSet<&str> {
    let name = |start: usize| {
        let rest = &text[start..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c == '_')).unwrap_or(rest.len());
        rest[..end].trim_end_matches('_')
    };
    let names = text.match_indices("PODRACER_").map(|(start, _)| name(start));
    names.filter(|&name| name != "PODRACER").collect()
}

#[test]
fn each_environment_variable_is_listed() {
    let page = workspace::text(Path::new("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
    let listed = variables(&page);
    let files = workspace::files().expect("the repository can be read");
    let source = |file: &&std::path::PathBuf| {
        file.extension().is_some_and(|end| end == "rs" || end == "py")
            || file.starts_with("scripts")
    };
    let mut complaints = Vec::new();
    for file in files.iter().filter(source) {
        let Some(text) = workspace::text(file) else { continue };
        for name in variables(&text).difference(&listed) {
            complaints.push(format!("{}: {name} is not in CONTRIBUTING.md", file.display()));
        }
    }
    check_all(&complaints);
}
