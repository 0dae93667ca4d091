//! `podracer new`: writes a crate with an environment, an experiment, tests and podracer's command line.
//!
//! The template is `examples/own_app`, which is built and tested as a part of this workspace
//! (`tests/own_app`). The new crate depends on podracer by the path of the sources, because
//! podracer is in no registry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::console::Console;
use crate::files::cannot_write;
use crate::settings::UsageError;

#[derive(Args, Debug)]
pub(super) struct NewArguments {
    /// Name of the crate
    name: String,
    /// The folder to write [default: ./<NAME>]
    #[arg(long, value_name = "FOLDER")]
    path: Option<PathBuf>,
    /// podracer's sources, which the crate depends on by path [default: those that this program was built from]
    #[arg(long, value_name = "FOLDER")]
    podracer: Option<PathBuf>,
}

/// Name of the template's crate, which is replaced by the new crate's name.
const TEMPLATE: &str = "own_app";

/// The template's path to podracer's sources.
const SOURCES: &str = "path = \"../..\"";

/// The files of a new crate.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../examples/own_app/manifest.toml")),
    // The versions that podracer is tested with; Cargo removes what the crate does not need.
    ("Cargo.lock", include_str!("../../Cargo.lock")),
    (".gitignore", "/target\n/runs\n"),
    ("docking-ppo.toml", include_str!("../../examples/own_app/docking-ppo.toml")),
    ("src/main.rs", include_str!("../../examples/own_app/src/main.rs")),
    ("tests/training.rs", include_str!("../../examples/own_app/tests/training.rs")),
];

pub(super) fn new(args: &NewArguments, console: &mut Console<'_>) -> Result<u8> {
    let name = &args.name;
    check_name(name)?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(name));
    let sources = sources(args.podracer.as_deref())?;
    check_empty(&folder)?;
    for (file, text) in FILES {
        let path = folder.join(file);
        let text = match file {
            "Cargo.lock" => text.to_owned(),
            _ => filled(text, name, &sources),
        };
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| cannot_write(&path))?;
    }
    console.print(&format!(
        "{folder}: the crate {name}, with the environment `docking` (src/main.rs) and the experiment `docking-ppo`\n\
         cd {folder}\n\
         cargo run -- train docking-ppo\n\
         cargo test\n",
        folder = folder.display()
    ))?;
    Ok(0)
}

/// A file of the template for a crate with this name.
fn filled(text: &str, name: &str, sources: &Path) -> String {
    // Debug's form of a string is also valid TOML.
    let path = format!("path = {:?}", sources.to_string_lossy());
    text.replace(SOURCES, &path).replace(TEMPLATE, name)
}

fn check_name(name: &str) -> Result<(), UsageError> {
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !fits {
        return Err(UsageError::new(format!(
            "`{name}` is no name of a crate: take letters, digits, `-` and `_`, and a letter first"
        )));
    }
    if name.starts_with("podracer") || ["test", "core", "std", "alloc"].contains(&name) {
        return Err(UsageError::new(format!("the name `{name}` is taken: take another")));
    }
    Ok(())
}

/// The folder of podracer's sources, checked.
fn sources(named: Option<&Path>) -> Result<PathBuf> {
    let folder = named.unwrap_or(Path::new(env!("CARGO_MANIFEST_DIR")));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    if !manifest.lines().any(|line| line == "name = \"podracer\"") {
        return Err(UsageError::new(format!(
            "podracer's sources are not in `{}`: name their folder with --podracer",
            folder.display()
        ))
        .into());
    }
    fs::canonicalize(folder).with_context(|| format!("cannot read `{}`", folder.display()))
}

fn check_empty(folder: &Path) -> Result<(), UsageError> {
    let problem = match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => "is not empty",
        Err(_) if folder.exists() => "is no folder that can be read",
        _ => return Ok(()),
    };
    Err(UsageError::new(format!(
        "`{}` {problem}: name another folder with --path",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::FILES;
    use crate::cli::fake::podracer;

    #[test]
    fn a_new_crate_is_the_template_under_its_own_name() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("ship");
        let printed = podracer(&["new", "my-ship", "--path", folder.to_str().unwrap()]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("my-ship"));
        let sources = fs::canonicalize(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert_eq!(manifest["dependencies"]["podracer"]["path"].as_str(), sources.to_str());
        assert!(text("tests/training.rs").contains("CARGO_BIN_EXE_my-ship"));
        for (file, _) in FILES.iter().filter(|(file, _)| *file != "Cargo.lock") {
            assert!(!text(file).contains("own_app"), "{file}");
        }
        let again = podracer(&["new", "my-ship", "--path", folder.to_str().unwrap()]);
        assert_eq!(again.code, 2);
        assert!(again.err.contains("is not empty: name another folder"), "{}", again.err);
    }

    /// The tested crate has the dependencies of a new crate, and each file of the template is part
    /// of a new crate.
    #[test]
    fn nothing_of_the_template_is_left_out() {
        let manifest = |text: &str| text.parse::<toml::Table>().unwrap();
        let new = manifest(include_str!("../../examples/own_app/manifest.toml"));
        // A package's sources cannot include a file of another package.
        let tested = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/own_app/Cargo.toml");
        let tested = manifest(&fs::read_to_string(tested).unwrap());
        for key in ["dependencies", "dev-dependencies"] {
            assert_eq!(new[key], tested[key]);
        }

        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/own_app");
        let mut there = BTreeSet::new();
        for folder in ["", "src/", "tests/"] {
            for entry in fs::read_dir(format!("{root}/{folder}")).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() {
                    there.insert(format!("{folder}{}", entry.file_name().display()));
                }
            }
        }
        assert!(there.remove("manifest.toml"));
        let written: BTreeSet<String> = FILES.map(|(file, _)| file.to_owned()).into();
        assert!(there.is_subset(&written), "{there:?}");
    }

    #[test]
    fn a_bad_name_or_folder_is_a_mistake() {
        for (arguments, expected) in [
            (&["new", "1st"][..], "`1st` is no name of a crate"),
            (&["new", "podracer"], "the name `podracer` is taken"),
            (&["new", "ship", "--podracer", "nowhere"], "podracer's sources are not in `nowhere`"),
        ] {
            let printed = podracer(arguments);
            assert_eq!(printed.code, 2);
            assert!(printed.err.contains(expected), "{}", printed.err);
        }
    }
}
