//! The packages of the published crates: requirements of a registry on a manifest, and the files that a package contains.

use podracer_test_support::pages::links;
use podracer_tests::{check_all, workspace};
use std::path::{Path, PathBuf};

use super::manifests;
use crate::pages::resolved;

/// Greatest number of keywords of a package.
const MOST_KEYWORDS: usize = 5;

/// Greatest length of a keyword, in characters.
const LONGEST_KEYWORD: usize = 20;

/// Greatest number of categories of a package.
const MOST_CATEGORIES: usize = 5;

/// Files that each package contains.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Macros that read a file when the crate is compiled.
const INCLUDES: [&str; 4] = ["include_str!(", "include_bytes!(", "include_dir!(", "include!("];

/// A published crate.
struct Package {
    /// Folder of the crate, relative to the root.
    folder: PathBuf,
    /// Table `package` of the manifest.
    table: toml::Table,
    /// Table `workspace.package` of the root's manifest.
    inherited: toml::Table,
    /// Folders of the other crates.
    others: Vec<PathBuf>,
}

impl Package {
    /// Value of a key, which the crate may inherit from the workspace.
    fn value(&self, key: &str) -> Option<&toml::Value> {
        let value = self.table.get(key)?;
        match value.get("workspace") {
            Some(_) => self.inherited.get(key),
            None => Some(value),
        }
    }

    fn text(&self, key: &str) -> &str {
        self.value(key).and_then(toml::Value::as_str).unwrap_or_default()
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        let values = self.value(key).and_then(toml::Value::as_array).into_iter().flatten();
        values.filter_map(toml::Value::as_str).collect()
    }

    /// True if the package contains a file, or the files of a folder. The path is relative to the root.
    fn contains(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.folder) else { return false };
        let another = self.others.iter().any(|other| {
            other != &self.folder && other.starts_with(&self.folder) && path.starts_with(other)
        });
        let always = ["Cargo.toml", "Cargo.lock"].iter().any(|file| inside == Path::new(file))
            || inside == Path::new(self.text("readme"));
        let (included, excluded) = (self.texts("include"), self.texts("exclude"));
        let listed = |patterns: &[&str]| patterns.iter().any(|pattern| fits(pattern, inside));
        let wanted = if included.is_empty() { !listed(&excluded) } else { listed(&included) };
        !another && (always || wanted) && workspace::root().join(path).exists()
    }

    /// Complaints about the manifest.
    fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        for key in ["description", "license", "readme"] {
            if self.text(key).is_empty() {
                mistakes.push(format!("there is no `{key}`"));
            }
        }
        let keywords = self.texts("keywords");
        if keywords.is_empty() || keywords.len() > MOST_KEYWORDS {
            let number = keywords.len();
            mistakes.push(format!("{number} keywords: a registry takes 1 to {MOST_KEYWORDS}"));
        }
        for keyword in keywords.iter().filter(|keyword| !is_keyword(keyword)) {
            mistakes.push(format!(
                "the keyword `{keyword}`: at most {LONGEST_KEYWORD} ASCII letters, digits, `-`, `_` and `+`"
            ));
        }
        let categories = self.texts("categories").len();
        if categories == 0 || categories > MOST_CATEGORIES {
            mistakes
                .push(format!("{categories} categories: a registry takes 1 to {MOST_CATEGORIES}"));
        }
        for file in LICENCES.into_iter().chain([self.text("readme")]) {
            if !file.is_empty() && !self.contains(&self.folder.join(file)) {
                mistakes.push(format!("the package has no `{file}`"));
            }
        }
        mistakes
    }
}

/// The crates that are published: all crates without `publish = false`.
fn packages() -> Vec<Package> {
    let manifests = manifests();
    let others: Vec<PathBuf> = manifests
        .iter()
        .map(|(folder, _)| folder.clone())
        .chain([PathBuf::from("tests/own_app")])
        .collect();
    let root = manifests.iter().find(|(folder, _)| folder == Path::new(""));
    let inherited = root.and_then(|(_, root)| root.get("workspace")?.get("package")?.as_table());
    let inherited = inherited.expect("the root's manifest has `workspace.package`");
    let package = |(folder, manifest): &(PathBuf, toml::Table)| {
        let table = manifest.get("package")?.as_table()?.clone();
        let published = table.get("publish") != Some(&false.into());
        published.then(|| Package {
            folder: folder.clone(),
            table,
            inherited: inherited.clone(),
            others: others.clone(),
        })
    };
    manifests.iter().filter_map(package).collect()
}

/// True if a registry takes the keyword.
fn is_keyword(keyword: &str) -> bool {
    keyword.len() <= LONGEST_KEYWORD
        && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
        && keyword.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c))
}

/// True if a pattern of `include` or `exclude` fits a path or a folder above it. Patterns have at most one `*`.
fn fits(pattern: &str, path: &Path) -> bool {
    let wanted = pattern.trim_matches('/');
    let starred = |name: &str| match wanted.split_once('*') {
        None => name == wanted,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    };
    path.ancestors().any(|path| match pattern.trim_end_matches('/').contains('/') {
        true => path.to_str().is_some_and(starred),
        false => path.file_name().and_then(|name| name.to_str()).is_some_and(starred),
    })
}

/// The paths of files and folders that a source includes, relative to the root of the repository.
fn included(file: &Path, text: &str, package: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in INCLUDES {
        for (at, _) in text.match_indices(name) {
            let rest = text[at + name.len()..].trim_start();
            // An argument that is no literal is made by a macro.
            let literal = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let Some((path, _)) = literal else { continue };
            let path = match path.strip_prefix("$CARGO_MANIFEST_DIR/") {
                Some(below) => resolved(&package.join("Cargo.toml"), below),
                None => resolved(file, path),
            };
            paths.extend(path);
        }
    }
    paths
}

#[test]
fn a_registry_takes_every_package() {
    let packages = packages();
    assert!(packages.len() > 1, "no crate is published");
    let complain = |package: &Package| {
        let manifest = package.folder.join("Cargo.toml");
        let complain = |mistake: String| format!("{}: {mistake}", manifest.display());
        package.mistakes().into_iter().map(complain).collect::<Vec<_>>()
    };
    check_all(&packages.iter().flat_map(complain).collect::<Vec<_>>());
}

#[test]
fn a_package_contains_the_files_that_its_sources_include() {
    let files = workspace::files().expect("the repository can be read");
    let mut complaints = Vec::new();
    for package in packages() {
        for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "rs")) {
            let text = if package.contains(file) { workspace::text(file) } else { None };
            for path in included(file, &text.unwrap_or_default(), &package.folder) {
                if !package.contains(&path) {
                    complaints.push(format!(
                        "{} includes {}, which the package does not contain",
                        file.display(),
                        path.display()
                    ));
                }
            }
        }
    }
    check_all(&complaints);
}

#[test]
fn the_readme_names_the_pages_of_the_package() {
    let packages = packages();
    let root = packages.iter().find(|package| package.folder == Path::new(""));
    let root = root.expect("the root is a published crate");
    let readme = workspace::text(Path::new("README.md")).expect("README.md is there");
    let start = readme.find("The package `podracer` contains").expect("README.md names the files");
    let paragraph = readme[start..].split("\n\n").next().unwrap_or_default();
    let named: Vec<PathBuf> =
        links(paragraph).into_iter().map(|(_, link)| PathBuf::from(link)).collect();
    let files = workspace::files().expect("the repository can be read");
    let page = |file: &&PathBuf| {
        file.starts_with("docs") && file.extension().is_some_and(|end| end == "md")
    };
    let mut complaints = Vec::new();
    for file in files.iter().filter(page) {
        let (named, packaged) = (named.contains(file), root.contains(file));
        if named != packaged {
            complaints.push(format!("{}: named {named}, packaged {packaged}", file.display()));
        }
    }
    check_all(&complaints);
}

#[test]
fn patterns_of_packages_are_gitignores() {
    let fits = |pattern: &str, path: &str| fits(pattern, Path::new(path));
    assert!(fits("/src", "src/cli/new.rs") && fits("src/", "src/lib.rs"));
    assert!(fits("/LICENSE-*", "LICENSE-MIT") && !fits("/LICENSE-*", "docs/LICENSE-MIT"));
    assert!(fits("tests", "src/tests/mod.rs") && !fits("/tests", "src/tests/mod.rs"));
    assert!(!fits("/docs/a.md", "docs/b.md"));
    assert!(is_keyword("machine-learning") && !is_keyword("reinforcement-learning"));
    assert!(!is_keyword("c#") && !is_keyword("-x") && !is_keyword(""));
}

#[test]
fn files_that_a_source_includes_are_found() {
    // Taken apart, so that this file does not include them itself.
    let text =
        "include_str|!(\"../a.md\") include_dir|!(\n \"$CARGO_MANIFEST_DIR/b\") include_str|!($c)";
    let found = included(Path::new("dsl/src/lib.rs"), &text.replace('|', ""), Path::new("dsl"));
    assert_eq!(found, [Path::new("dsl/a.md"), Path::new("dsl/b")]);
}
