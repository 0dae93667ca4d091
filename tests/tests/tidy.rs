//! The rules of the house, enforced: which crate may use which, how long files are, what must not stand in them.

use podracer_tests::{check_all, workspace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod command_line;
mod names;
mod packages;
mod prose;
mod variables;

/// The workspace's crates, each with the workspace crates that it may depend on. The facade and the
/// tests may use everything.
const ARROWS: &[(&str, &[&str])] = &[
    ("podracer-compiler", &[]),
    ("podracer-mlir", &["podracer-compiler"]),
    ("podracer-derive", &[]),
    ("podracer-dsl", &["podracer-compiler", "podracer-derive"]),
    ("podracer-rl", &["podracer-dsl", "podracer-envs"]),
    ("podracer-envs", &["podracer-dsl", "podracer-physics"]),
    ("podracer-physics", &["podracer-dsl"]),
    ("podracer-plugins", &[]),
    ("podracer-sampler", &[]),
    ("podracer-mpi", &[]),
    ("podracer-pjrt", &["podracer-compiler", "podracer-mpi", "podracer-plugins"]),
    ("podracer-remote", &["podracer-dsl", "podracer-envs"]),
    (
        "podracer-runtime",
        &[
            "podracer-compiler",
            "podracer-dsl",
            "podracer-envs",
            "podracer-pjrt",
            "podracer-plugins",
        ],
    ),
];

/// Modules of a folder, from the lowest: each may use the modules before it. Modules that are not named are not checked.
const LAYERS: &[(&str, &[&str])] = &[
    ("src", &["schema", "settings", "registry", "experiments", "loading", "run_directory", "cli"]),
    ("stdlib/src", &["number", "nn", "optim", "learn", "net", "agents"]),
    (
        "runtime/src",
        &[
            "needed",
            "outcome",
            "projection",
            "reports",
            "settings",
            "tree",
            "warnings",
            "checkpoint",
            "program",
            "anakin",
            "jit",
            "learning",
            "typed",
            "central",
            "compiled_environments",
            "error",
            "sebulba",
        ],
    ),
];

/// Crates with unsafe code, all of it in one module: they deny it and allow it there. All others forbid it.
const UNSAFE: &[(&str, &str)] = &[("runtime/pjrt", "PJRT's C API"), ("runtime/mpi", "MPI")];

/// Folders in which unsafe code is allowed.
const UNSAFE_ALLOWED_IN: &[&str] = &["runtime/pjrt/src/lib.rs", "runtime/mpi/src/lib.rs"];

/// Files that stay longer than 500 lines, and why.
const LONG: &[(&str, &str)] = &[
    ("remote/src/proto.rs", "made of the protocol"),
    ("runtime/pjrt/src/c_api/ffi.rs", "made of PJRT's header"),
    ("tests/golden/make_transforms.py", "a list of programs, each a few lines"),
];

const MOST_LINES: usize = 500;

/// First words of documentation that has to be solved: the thing comes after them, or not at all.
const RIDDLES: &[&str] = &["What ", "How ", "Whether ", "Those ", "That ", "Of ", "By "];

/// Least length of a first line of documentation that can name a thing, in characters.
const SHORTEST_OPENING: usize = 14;

/// Greatest number of first lines of documentation that name nothing.
const MOST_RIDDLES: usize = 0;

/// Files of the facade that open others by themselves, and why.
const OPENERS: &[(&str, &str)] = &[
    ("src/run_directory/reading.rs", "it looks at their kind"),
    (
        "src/cli/ir/opt.rs",
        "a program that the user names may come from a pipe, of which a bound is read",
    ),
    ("src/cli/new.rs", "the manifest of the folder that the user is in"),
    ("src/cli/inspect/memory.rs", "what XLA has just written into a folder of this process"),
    ("src/cli/pages.rs", "a test"),
    ("src/cli/signals.rs", "files of the system about this process"),
    ("src/loading/sizes.rs", "files of the system about this process"),
    ("src/machine.rs", "files of the system about the machine"),
    ("src/run_directory/folder.rs", "the folder itself, which the user names"),
    ("src/sources.rs", "the user's own sources, of which lines are shown"),
];

fn files_with(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let fits = |file: &Path| {
        extensions
            .iter()
            .any(|&wanted| file.extension().is_some_and(|extension| extension == wanted))
    };
    let files = workspace::files().expect("the repository can be read");
    files
        .into_iter()
        .filter(|file| fits(file))
        .filter_map(|file| workspace::text(&file).map(|text| (file, text)))
        .collect()
}

/// Every crate's folder and manifest, apart from examples: those are written as users write theirs.
fn manifests() -> Vec<(PathBuf, toml::Table)> {
    let ours = |file: &Path| file.ends_with("Cargo.toml") && !file.starts_with("tests/own_app");
    let manifests = files_with(&["toml"]).into_iter().filter(|(file, _)| ours(file));
    let parse = |(file, text): (PathBuf, String)| {
        let table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (file.parent().map(Path::to_path_buf).unwrap_or_default(), table)
    };
    manifests.map(parse).collect()
}

fn name(manifest: &toml::Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

/// Crates that a crate depends on, for building and for its tests.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, table)| table.as_table()).chain([manifest]);
    let kinds = ["dependencies", "build-dependencies", "dev-dependencies"];
    let lists =
        tables.flat_map(|table| kinds.into_iter().filter_map(|kind| table.get(kind)?.as_table()));
    lists.flat_map(|list| list.keys().cloned()).collect()
}

#[test]
fn imports_run_one_way() {
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut complaints = Vec::new();
    for (folder, manifest) in manifests() {
        let Some(name) = name(&manifest) else {
            continue;
        };
        for dependency in dependencies(&manifest) {
            if dependency == "melior" && name != "podracer-mlir" {
                complaints.push(format!("{name} depends on melior: only podracer-mlir may"));
            }
            // What trains needs no LLVM.
            if dependency == "podracer-mlir" && name != "podracer-tests" {
                complaints.push(format!("{name} depends on podracer-mlir: only tests may"));
            }
            let ours = arrows.contains_key(dependency.as_str()) || dependency == "podracer";
            let allowed =
                arrows.get(name).is_none_or(|allowed| allowed.contains(&dependency.as_str()));
            if ours && !allowed {
                complaints.push(format!(
                    "{name} ({}) depends on {dependency}: it may not",
                    folder.display()
                ));
            }
        }
    }
    check_all(&complaints);
}

#[test]
fn modules_are_layers() {
    let mut complaints = Vec::new();
    for (file, text) in files_with(&["rs"]) {
        let inside = |(folder, layers): &(&str, &'static [&'static str])| {
            Some((file.strip_prefix(folder).ok()?.to_owned(), *layers))
        };
        let Some((path, layers)) = LAYERS.iter().find_map(inside) else { continue };
        let module = path.components().next().map(|first| first.as_os_str().to_string_lossy());
        let module = module.as_deref().unwrap_or_default().trim_end_matches(".rs");
        let Some(layer) = layers.iter().position(|&one| one == module) else { continue };
        // Tests stand at the end of a file, or in one of their own, and may use all.
        if path.ends_with("tests.rs") || path.ends_with("sizes.rs") {
            continue;
        }
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for above in &layers[layer + 1..] {
            let uses = |line: &str| {
                !line.trim_start().starts_with("//") && line.contains(&format!("crate::{above}::"))
            };
            if text.lines().any(uses) {
                complaints
                    .push(format!("{} uses {above}, which is above {module}", file.display()));
            }
        }
    }
    check_all(&complaints);
}

#[test]
fn crates_inherit_the_lints() {
    let inherits = |manifest: &toml::Table| {
        manifest.get("lints").and_then(|lints| lints.get("workspace")) == Some(&true.into())
    };
    let wrong = manifests()
        .into_iter()
        .filter(|(_, manifest)| name(manifest).is_some() && !inherits(manifest));
    check_all(
        &wrong
            .map(|(folder, _)| {
                format!("{}/Cargo.toml has no `lints.workspace = true`", folder.display())
            })
            .collect::<Vec<_>>(),
    );
}

#[test]
fn unsafe_code_is_forbidden_or_in_one_place() {
    let mut complaints = Vec::new();
    for (folder, manifest) in manifests() {
        let root = ["src/lib.rs", "src/main.rs"]
            .map(|file| folder.join(file))
            .into_iter()
            .find_map(|file| workspace::text(&file));
        // A crate with only its first line present has nothing to forbid.
        let (Some(root), Some(_)) = (root.filter(|text| text.lines().count() > 1), name(&manifest))
        else {
            continue;
        };
        let denies = UNSAFE.iter().any(|(crate_folder, _)| folder == Path::new(crate_folder));
        let lint = if denies { "deny(unsafe_code" } else { "forbid(unsafe_code" };
        if !root.contains(lint) && !root.contains("forbid(unsafe_code") {
            complaints.push(format!("{}: the crate's root has no `#![{lint})]`", folder.display()));
        }
    }
    for (file, text) in files_with(&["rs"]) {
        let allows = text
            .lines()
            .any(|line| line.trim_start().starts_with('#') && line.contains("allow(unsafe_code"));
        if allows && !UNSAFE_ALLOWED_IN.iter().any(|allowed| file == Path::new(allowed)) {
            complaints.push(format!(
                "{} allows unsafe code: its place is one module of {UNSAFE:?}",
                file.display()
            ));
        }
    }
    check_all(&complaints);
}

#[test]
fn files_are_short() {
    let mut complaints = Vec::new();
    for (file, text) in files_with(&["rs", "py"]) {
        let lines = text.lines().count();
        let listed = LONG.iter().any(|(long, _)| file == Path::new(long));
        if lines > MOST_LINES && !listed {
            complaints.push(format!(
                "{} has {lines} lines: look for the second idea in it, or list it with a reason",
                file.display()
            ));
        }
        if lines <= MOST_LINES && listed {
            complaints.push(format!(
                "{} has {lines} lines: it need not be listed as long",
                file.display()
            ));
        }
    }
    check_all(&complaints);
}

/// A file of a run directory may be a pipe, a device, a link to a secret or gigabytes of one line: `run_directory::reading` opens it.
#[test]
fn files_are_opened_by_the_functions_that_look_at_their_kind() {
    let mut complaints = Vec::new();
    for (file, text) in files_with(&["rs"]) {
        let tests = file.ends_with("tests.rs") || !file.starts_with("src");
        if tests || OPENERS.iter().any(|(opener, _)| file == Path::new(opener)) {
            continue;
        }
        let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in (1..).zip(program.lines()) {
            if ["File::open(", "fs::read(", "fs::read_to_string("]
                .iter()
                .any(|read| line.contains(read))
            {
                complaints.push(format!(
                    "{}:{number}: open a run's file by `run_directory::reading`, and another one by `read_regular`",
                    file.display()
                ));
            }
        }
    }
    check_all(&complaints);
}

/// Ignored tests would be left out without a reason in the summary of `make test`.
#[test]
fn tests_that_cannot_run_skip_themselves() {
    // Taken apart, so that this file does not hold it itself.
    let ignored = ["#[ig", "nore"].concat();
    let has = |(_, text): &(PathBuf, String)| text.contains(&ignored);
    let say = |(file, _): (PathBuf, String)| {
        format!(
            "{}: `{ignored}`: call podracer_test_support::skip in the test instead",
            file.display()
        )
    };
    check_all(&files_with(&["rs"]).into_iter().filter(has).map(say).collect::<Vec<_>>());
}

#[test]
fn modules_say_what_they_are() {
    // Programs that must not compile are quoted in full by their expected errors.
    let fixture = |file: &Path| file.components().any(|part| part.as_os_str() == "compile_fail");
    let silent = files_with(&["rs"])
        .into_iter()
        .filter(|(file, _)| !fixture(file))
        .filter(|(_, text)| !text.starts_with("//!"));
    check_all(
        &silent
            .map(|(file, _)| format!("{} does not open with a `//!` line", file.display()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn documentation_opens_with_the_name_of_the_thing() {
    let mut complaints = Vec::new();
    for (file, text) in files_with(&["rs"]) {
        for (number, opening) in openings(&text).filter(|(_, opening)| is_riddle(opening)) {
            complaints.push(format!("{}:{number}: `{opening}` names nothing", file.display()));
        }
    }
    if complaints.len() > MOST_RIDDLES {
        check_all(&complaints);
    }
}

#[test]
fn openings_are_the_first_lines_of_documentation() {
    let text = "/// What a run does.\n/// How it ends.\nfn run() {}\n\n    ///\n    /// Of all.\n    /// Zeros.\n\
                \n    /// Zeros.\n    a: f32,\n    // What it is.\n    /// Number of devices.\n";
    let found: Vec<_> = openings(text).collect();
    assert_eq!(found, [(1, "What a run does."), (9, "Zeros."), (12, "Number of devices.")]);
    assert_eq!(
        found.iter().map(|(_, opening)| is_riddle(opening)).collect::<Vec<_>>(),
        [true, true, false]
    );
}

#[test]
fn no_file_names_a_machine() {
    // Taken apart, so that this file does not hold them itself.
    let places = ["/wo|rk/", "/ro|ot/", "/t|mp/", "/ho|me/"].map(|place| place.replace('|', ""));
    let mut complaints = Vec::new();
    let files = workspace::files().expect("the repository can be read");
    for (file, text) in
        files.into_iter().filter_map(|file| workspace::text(&file).map(|text| (file, text)))
    {
        for (number, line) in text.lines().enumerate() {
            let complain = |what: &str| format!("{}:{}: {what}", file.display(), number + 1);
            if let Some(place) = places.iter().find(|place| stands_alone(line, place)) {
                complaints.push(complain(&format!("a path of some machine, `{place}`")));
            }
            complaints.extend(
                hosts(line)
                    .filter(|host| is_private(host))
                    .map(|host| complain(&format!("a private host, `{host}`"))),
            );
            if file.ends_with("Cargo.lock")
                && line.starts_with("source")
                && !line.contains("github.com/rust-lang/crates.io-index")
            {
                complaints.push(complain("a crate that is not from crates.io"));
            }
        }
    }
    check_all(&complaints);
}

#[test]
fn the_readme_shows_the_example() {
    let text = |file: &str| workspace::text(Path::new(file)).expect("the file is there");
    let (readme, example) = (text("README.md"), text("examples/own_app/src/main.rs"));
    let start = example.find("    fn step(").expect("it has a step");
    let end = example.find("    fn observe(").expect("observe follows step");
    let block = format!("```rs\n{}```\n", &example[start..end]);
    assert!(
        readme.contains(&block),
        "README.md does not show `step` of examples/own_app/src/main.rs"
    );
    let manifest: toml::Table = text("Cargo.toml").parse().expect("the manifest");
    let version = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
    let badge = text("docs/images/badges/rust.svg");
    for (file, text) in [("README.md", &readme), ("docs/images/badges/rust.svg", &badge)] {
        assert!(text.contains(version), "{file} names another version of Rust than {version}");
    }
    for command in ["make train", "make test"] {
        assert!(readme.contains(command), "README.md does not name `{command}`");
    }
}

/// First lines of the blocks of documentation of a file's items, with their numbers from 1. A first line without text is none.
fn openings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let documentation = line.trim_start_matches(' ').strip_prefix("///");
        let continues = std::mem::replace(&mut inside, documentation.is_some());
        let opening = documentation?;
        let opening = opening.strip_prefix(' ').unwrap_or(opening);
        (!continues && !opening.is_empty()).then_some((number, opening))
    })
}

/// True if a first line of documentation names nothing.
fn is_riddle(opening: &str) -> bool {
    RIDDLES.iter().any(|riddle| opening.starts_with(riddle))
        || opening.chars().count() < SHORTEST_OPENING
}

/// True if the path stands there as an absolute one, and not as the middle of another.
fn stands_alone(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}>~*".contains(c))
    })
}

/// The hosts of the addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let end = |rest: &str| {
        rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-.:@_".contains(c))
            .unwrap_or(rest.len())
    };
    line.match_indices("://").map(move |(at, separator)| {
        let rest = &line[at + separator.len()..];
        &rest[..end(rest)]
    })
}

/// A mirror, a proxy, a package store of some company, an address with credentials, a number in place of a name.
fn is_private(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let words =
        ["mirror", "proxy", "artifact", "nexus", "internal", ".local", ".corp", ".lan", "@"];
    let name = host.split(':').next().unwrap_or_default();
    let numeric = !name.is_empty()
        && name.split('.').count() == 4
        && name.chars().all(|c| c.is_ascii_digit() || c == '.');
    words.iter().any(|word| host.contains(word))
        || (numeric && !name.starts_with("127.") && name != "0.0.0.0")
}
