//! The programs in `tests/fixtures`: canonical text that reads, verifies, prints unchanged and
//! computes the results in its header.
//!
//! A line `// run: a, b -> c` gives arguments and results. `PODRACER_BLESS=1` rewrites the programs below the comments.

use crate::conformance::close;
use crate::conformance::text::check_text;
use podracer_compiler::transform::passes;
use podracer_compiler::{Array, Func, ir, text};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures")
}

/// Every fixture's name and text.
pub fn all() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder is there")
        .map(|entry| entry.expect("it is readable").path())
        .collect();
    files.sort();
    files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "pir"))
        .map(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(file).expect("it is text"))
        })
        .collect()
}

fn read(name: &str) -> Func {
    let (_, text) = (all().into_iter()).find(|(file, _)| file == name).expect("it is there");
    text::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"))
}

/// Arrays in a list such as `f32[](1.0), i32[2](1, 2)`, read as the constants that they are.
fn arrays(list: &str) -> Vec<Array> {
    let ends = list.match_indices(')').map(|(at, _)| at + 1);
    let mut from = 0;
    let mut arrays = Vec::new();
    for end in ends {
        let array = list[from..end].trim_start_matches([',', ' ']);
        let ty = &array[..array.find('(').expect("an array has elements")];
        let func = format!("func() -> ({ty}) {{ %0: {ty} = constant[value={array}] return %0 }}");
        let func = text::parse(&func).unwrap_or_else(|error| panic!("{array}: {error}"));
        arrays.extend(func.eval(&[]));
        from = end;
    }
    arrays
}

#[test]
fn fixtures_are_canonical_and_compute_what_they_say() {
    assert!(all().len() >= 7);
    for (name, text) in all() {
        let func = text::parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
        ir::verify(&func).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_text(&func).unwrap_or_else(|error| panic!("{name}: {error}"));
        let head: String = (text.lines())
            .take_while(|line| line.starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        let canonical = format!("{head}{func}\n");
        if std::env::var_os("PODRACER_BLESS").is_some() {
            std::fs::write(folder().join(&name), &canonical).expect("it can be written");
        } else {
            assert_eq!(text, canonical, "{name}");
        }
        let runs: Vec<&str> =
            head.lines().filter_map(|line| line.strip_prefix("// run: ")).collect();
        assert!(!runs.is_empty(), "{name} has no line `// run:`");
        for run in runs {
            let (arguments, expected) = run.split_once(" -> ").expect("arguments -> results");
            let (results, expected) = (func.eval(&arrays(arguments)), arrays(expected));
            assert_eq!(results.len(), expected.len(), "{name}: {run}");
            for (got, expected) in results.iter().zip(&expected) {
                close(&format!("{name}: {run}"), got, expected, 1e-6)
                    .unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }
}

#[test]
fn the_gradient_of_the_loss_is_what_the_pass_makes_of_it() {
    let passes = ["grad=0", "cse", "dce"];
    let gradient = passes.iter().fold(read("loss.pir"), |func, pass| {
        passes::run(&func, pass).unwrap_or_else(|error| panic!("{error}"))
    });
    let difference = text::diff(&gradient, &read("loss_gradient.pir"));
    assert!(difference.is_none(), "{}\n{gradient}", difference.expect("there is one"));
}

/// Traced, batched, differentiated and simplified programs, as the snapshots of other crates have them.
#[test]
fn snapshots_of_programs_read_back() {
    let folder = folder().join("../tests/snapshots");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let file = entry.expect("it is readable").path();
        if !file.to_string_lossy().ends_with("_ir.snap") {
            continue;
        }
        let snapshot = std::fs::read_to_string(&file).expect("it is text");
        let program = snapshot.splitn(3, "---\n").last().unwrap_or_default();
        let func = text::parse(program).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        check_text(&func).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        assert_eq!(func.to_string(), program.trim_end());
        count += 1;
    }
    assert!(count > 5);
}
