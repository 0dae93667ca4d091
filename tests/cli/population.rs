//! `podracer train X --seeds N`: runs with several seeds as one program.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{podracer, text};

/// A short training whose episodes end: 4 environments, 512 steps in 2 calls.
const SHORT: [&str; 10] = [
    "train",
    "cartpole-ppo",
    "--set",
    "anakin.unroll=32",
    "--set",
    "anakin.iterations_per_call=2",
    "--set",
    "agent.minibatches=2",
    "--steps",
    "512",
];

fn json(output: &[u8]) -> Value {
    serde_json::from_slice(output).expect("one line of JSON")
}

/// What a command in a folder says as JSON.
fn said(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = podracer(&[arguments, &["--json"]].concat());
    json(&command.current_dir(folder).assert().success().get_output().stdout)
}

#[test]
fn every_seed_is_a_run_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let several = [&SHORT[..], &["--seed", "5", "--seeds", "3", "--run-dir", "three"]].concat();
    let all = said(folder, &several);
    let runs = all["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), all["failed"].as_array().map(Vec::len)), (3, Some(0)));
    let returns: Vec<f64> =
        runs.iter().map(|run| run["mean_return"].as_f64().expect("episodes ended")).collect();
    let mean = returns.iter().sum::<f64>() / 3.0;
    assert!((all["mean_return"]["value"].as_f64().expect("a mean") - mean).abs() < 1e-9);
    let written = fs::read_to_string(folder.join("three/population.json")).expect("it is written");
    assert_eq!(json(written.as_bytes()), all);

    for (seed, run) in [5, 6, 7].into_iter().zip(runs) {
        let alone = folder.join(format!("alone-{seed}")).display().to_string();
        let seed_text = seed.to_string();
        let alone =
            said(folder, &[&SHORT[..], &["--seed", &seed_text, "--run-dir", &alone]].concat());
        for key in ["seed", "env_steps", "iterations", "episodes", "mean_return"] {
            assert_eq!(run[key], alone[key], "{key} of seed {seed}");
        }
        // The commands take it for what it is.
        let own = format!("three/seed-{seed}");
        assert_eq!(run["run_dir"], own);
        let lines = fs::read_to_string(folder.join(&own).join("metrics.jsonl")).expect("metrics");
        assert!(lines.contains("\"iteration\":4"), "{lines}");
        let played = said(folder, &["eval", &own, "--episodes", "2"]);
        assert_eq!(played["iterations"], 4);
        let resumed = said(folder, &["resume", &own, "--steps", "768"]);
        assert_eq!(
            (&resumed["resumed_from_iteration"], &resumed["env_steps"]),
            (&4.into(), &768.into())
        );
    }
}

#[test]
fn runs_that_fail_are_told_and_the_table_has_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = podracer(&[&SHORT[..], &["--seeds", "2"]].concat());
    let output = command
        .args(["--set", "agent.learning_rate=1e38", "--set", "agent.max_gradient_norm=1e30"])
        .current_dir(&folder)
        .assert()
        .code(1)
        .get_output()
        .clone();
    let (table, warned) = (text(&output.stdout), text(&output.stderr));
    for seed in ["0", "1"] {
        assert!(warned.contains(&format!("seed {seed}: ")), "{warned}");
        let row = table.lines().find(|line| line.starts_with(seed)).expect("a row");
        assert!(row.contains("failed") && row.contains("not finite"), "{row}");
    }
    assert!(table.contains("run directories: runs/cartpole-ppo-2seeds-1"), "{table}");
}

#[test]
fn what_is_no_population_is_a_mistake() {
    for (arguments, expected) in [
        (&["train", "cartpole-ppo", "--seeds", "0"][..], "expected at least 1 seed"),
        (
            &["train", "cartpole-sebulba-ppo", "--seeds", "2"],
            "environments on the host ([sebulba])",
        ),
        (
            &["train", "cartpole-ppo", "--seeds", "2", "--metrics", "127.0.0.1:0"],
            "--metrics is for one run",
        ),
        (
            &["train", "cartpole-ppo", "--seeds", "3", "--devices", "2"],
            "3 members do not divide over 2 devices",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let output = podracer(arguments).current_dir(&folder).assert().code(2).get_output().clone();
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("runs").exists(), "nothing was begun");
    }
}
