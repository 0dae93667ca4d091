//! `podracer new`: the crate that it writes, built by Cargo outside of this workspace.

use std::path::Path;
use std::process::Command;

use super::{podracer, text};
use podracer_test_support::skip::skip_heavy;

/// A new crate in an empty folder, with Cargo run in it: its output on success.
fn new_crate(folder: &Path) -> impl Fn(&[&str]) -> String {
    podracer(&["new", "ship"]).current_dir(folder).assert().success();
    let folder = folder.join("ship");
    move |arguments| {
        let mut cargo = Command::new(env!("CARGO"));
        // Variables of the Cargo that runs this test do not apply to the new crate.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            let of_this = [
                "CARGO_PKG_",
                "CARGO_MANIFEST_",
                "CARGO_TARGET_DIR",
                "MLIR_SYS_",
                "TABLEGEN_",
                "LIBCLANG_PATH",
            ];
            if of_this.iter().any(|begin| name.starts_with(begin)) {
                cargo.env_remove(&*name);
            }
        }
        let output = cargo.args(arguments).current_dir(&folder).output().expect("Cargo runs");
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}

#[test]
fn cargo_finds_all_that_a_new_crate_depends_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let cargo = new_crate(folder.path());
    // Of this machine's platform alone: a machine that has built nothing else lacks the packages of others.
    let packages = cargo(&["tree", "--offline", "--prefix=none"]);
    let has = |name: &str| {
        let begin = format!("{name} v");
        packages.lines().any(|line| line.starts_with(&begin))
    };
    for name in ["ship", "podracer", "podracer-runtime"] {
        assert!(has(name), "{name}: {packages}");
    }
    for name in ["melior", "mlir-sys", "bindgen", "clang-sys"] {
        assert!(!has(name), "what trains is built without LLVM and libclang: {packages}");
    }
}

/// Compiles podracer and all that it needs as a user does: minutes, and two gigabytes.
#[test]
fn a_new_crate_trains_and_passes_its_tests() {
    if skip_heavy("minutes of compiling") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let cargo = new_crate(folder.path());
    let printed = cargo(&[
        "run",
        "--quiet",
        "--offline",
        "--",
        "train",
        "docking-ppo",
        "--steps=40000",
        "--json",
    ]);
    let result: serde_json::Value = serde_json::from_str(&printed).expect("a JSON object");
    assert_eq!(result["experiment"], "docking-ppo");
    let printed = cargo(&["test", "--offline"]);
    assert_eq!(printed.matches("1 passed").count(), 2, "{printed}");
}
