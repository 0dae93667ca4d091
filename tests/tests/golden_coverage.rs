//! Every record of `tests/golden` is read by a test, or waits for its code on a list.

use podracer_tests::{check_all, golden, workspace};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The golden files, with the field that names a record's function and the folders and files of the tests that read them.
const FILES: &[(&str, &str, &[&str])] = &[
    (
        "random.json",
        "op",
        &["dsl/tests/it/golden.rs", "dsl/src/key/threefry.rs", "tests/tests/draws.rs"],
    ),
    ("rl.json", "op", &["stdlib/tests/it"]),
    ("sac_td3.json", "op", &["stdlib/tests/it/sac_td3.rs"]),
    ("r2d2.json", "op", &["stdlib/tests/it/r2d2.rs"]),
    ("rainbow.json", "op", &["stdlib/tests/it/rainbow.rs"]),
    ("envs.json", "env", &["envs/tests/it/gymnax.rs", "tests/tests/trajectories/bsuite.rs"]),
    ("minatar.json", "env", &["tests/tests/trajectories/minatar.rs"]),
    ("boards.json", "env", &["envs/tests/it/boards.rs"]),
    ("connector.json", "env", &["tests/tests/trajectories/connector.rs"]),
    ("craftax.json", "env", &["tests/tests/trajectories/craftax.rs"]),
    ("minigrid.json", "env", &["tests/tests/trajectories/minigrid.rs"]),
    ("puzzles.json", "env", &["tests/tests/trajectories/puzzles.rs"]),
    ("mujoco.json", "env", &["envs/tests/it"]),
    ("mujoco_models.json", "model", &["physics/tests/suite/robots.rs"]),
    ("muzero.json", "op", &["stdlib/tests/it/muzero.rs"]),
    ("disco.json", "op", &["stdlib/tests/it/disco.rs"]),
    ("lpg.json", "op", &["stdlib/tests/it/lpg.rs"]),
    ("alphazero.json", "op", &["tests/tests/search/alphazero.rs"]),
    ("mctx.json", "op", &["tests/tests/search/golden.rs"]),
    ("transforms.json", "op", &["dsl/tests/it/transforms"]),
    ("programs.json", "op", &["dsl/tests/it/transforms"]),
    ("division.json", "op", &["dsl/tests/it/division.rs"]),
    ("functions.json", "op", &["dsl/tests/it/functions.rs"]),
    ("modules.json", "module", &["tests/tests/portable/jax.rs"]),
];

/// Files of single operations: their test reads all records, and has its own list of omissions.
const OF_OPERATIONS: [&str; 3] = ["ops_axes.json", "ops_elementwise.json", "ops_shape.json"];

/// Records that no test reads yet, by file and function, with the missing feature.
const WAITING: &[(&str, &[&str], &str)] = &[];

/// The text of a file, or of all Rust files of a folder.
fn source(path: &Path) -> String {
    if path.is_file() {
        return fs::read_to_string(path).expect("a file of the repository");
    }
    let mut paths: Vec<_> = fs::read_dir(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.iter().map(|path| source(path)).collect()
}

/// True if a source asks for the records of a function: it has the name in quotes, or its two halves where a test makes the
/// name of them.
fn reads(source: &str, name: &str) -> bool {
    let halves = name.split_once('.').is_some_and(|(first, second)| {
        source.contains(&format!("\"{first}\"")) && source.contains(&format!("{{name}}.{second}\""))
    });
    halves || source.contains(&format!("\"{name}\""))
}

#[test]
fn golden_records_are_read_or_wait_on_the_list() {
    let folder = workspace::root().join("tests/golden");
    let entries = fs::read_dir(&folder).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let found: BTreeSet<String> = names.flatten().filter(|name| name.ends_with(".json")).collect();
    let known = FILES.iter().map(|(file, ..)| *file).chain(OF_OPERATIONS);
    assert_eq!(found, known.map(str::to_owned).collect(), "the files of tests/golden");

    let mut complaints = Vec::new();
    for (file, field, readers) in FILES {
        let sources: String =
            readers.iter().map(|path| source(&workspace::root().join(path))).collect();
        let records = golden::records(file).expect("it parses").expect("it is checked in");
        let mut waiting: BTreeMap<&str, &str> = WAITING
            .iter()
            .filter(|(of, ..)| of == file)
            .flat_map(|(_, names, reason)| names.iter().map(|name| (*name, *reason)))
            .collect();
        let names: BTreeSet<&str> =
            records.iter().map(|record| record[*field].as_str().unwrap_or_default()).collect();
        for name in names {
            match (reads(&sources, name), waiting.remove(name)) {
                (false, None) => complaints.push(format!("{file}: no test reads `{name}`")),
                (true, Some(_)) => {
                    complaints.push(format!("{file}: `{name}` is read, and on the list"))
                }
                _ => {}
            }
        }
        let gone =
            waiting.keys().map(|name| format!("{file}: `{name}` is on the list and has no record"));
        complaints.extend(gone);
    }
    check_all(&complaints);
}
