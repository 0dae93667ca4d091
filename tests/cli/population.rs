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

/// The JSON that a command in a folder prints.
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
    assert!(
        (all["settings"][0]["mean_return"]["value"].as_f64().expect("a mean") - mean).abs() < 1e-9
    );
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

/// One program has all learning rates, and each run is that of its own settings.
#[test]
fn a_sweep_is_ranked_and_its_runs_are_of_their_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rates =
        ["--set", "agent.learning_rate=log:1e-4..1e-2:3", "--set", "agent.entropy_cost=0,0.1"];
    let sweep = [&["sweep"], &SHORT[1..], &rates, &["--seeds", "2", "--run-dir", "all"]].concat();
    let all = said(folder, &sweep);
    let groups = all["settings"].as_array().expect("settings");
    assert_eq!((groups.len(), all["runs"].as_array().map(Vec::len)), (6, Some(12)));
    let mean = |group: &Value| group["mean_return"]["value"].as_f64();
    assert!(groups.is_sorted_by(|a, b| mean(a) >= mean(b)), "{groups:?}");
    assert!(groups.iter().all(|group| group["runs"] == 2), "{groups:?}");
    let own = "all/agent.learning_rate=1e-2,agent.entropy_cost=0.1,seed=1";
    let run = all["runs"].as_array().and_then(|runs| runs.iter().find(|run| run["run_dir"] == own));
    let set =
        ["--set", "agent.learning_rate=1e-2", "--set", "agent.entropy_cost=0.1", "--seed", "1"];
    let alone = said(folder, &[&SHORT[..], &set, &["--run-dir", "alone"]].concat());
    assert_eq!(run.map(|run| &run["mean_return"]), Some(&alone["mean_return"]));
    let config = |run: &str| {
        let text = fs::read_to_string(folder.join(run).join("config.toml")).expect("it is there");
        let table: toml::Table = text.parse().expect("TOML");
        (
            table["agent"].clone(),
            table["train"].clone(),
            table["anakin"].clone(),
            table["xla"].clone(),
        )
    };
    assert_eq!(config(own), config("alone"));
}

#[test]
fn sweeps_of_what_is_no_number_of_the_program_are_mistakes() {
    for (arguments, expected) in [
        (&["agent.epochs=2,4"][..], "agent.epochs: invalid type: string"),
        (&["agent.epochs=2,4"], "it is not a number that a program takes as data"),
        (&["anakin.environments=2,4"], "only numbers of [agent] differ between the runs"),
        (&["agent.torso=\"none\",\"residual\""], "only numbers differ between the runs"),
        (&["agent.learning_rat=1e-3,1e-2"], "did you mean `learning_rate`"),
        (&["agent.learning_rate=log:0..1:3"], "two numbers greater than 0"),
        (&["agent.learning_rate=1e-3"], "a sweep needs a setting with several values"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut sweep = podracer(&["sweep", "cartpole-ppo"]);
        arguments.iter().for_each(|set| {
            sweep.args(["--set", set]);
        });
        let output = sweep.current_dir(&folder).assert().code(2).get_output().clone();
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("runs").exists(), "nothing was begun");
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
        assert!(warned.contains(&format!("seed-{seed}: ")), "{warned}");
        let failed = format!("failed: seed-{seed}: ");
        let row = table.lines().find(|line| line.starts_with(&failed)).expect("a row");
        assert!(row.contains("not finite"), "{row}");
    }
    assert!(table.contains("run directories: runs/cartpole-ppo-2seeds-1"), "{table}");
}

/// Two calls after a run had failed, the others failed as well.
#[test]
fn runs_go_on_after_one_has_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sweep = podracer(&["sweep"]);
    sweep.args(&SHORT[1..8]).args(["--steps", "1280", "--seeds", "2", "--json"]);
    sweep.args(["--set", "agent.learning_rate=1e38,1e-3", "--set", "agent.max_gradient_norm=1e30"]);
    let output = sweep.current_dir(&folder).assert().code(1).get_output().clone();
    let all = json(&output.stdout);
    let failed = all["failed"].as_array().expect("those that failed");
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(|one| one["run"].to_string().contains("learning_rate=1e38")));
    let [group] = &all["settings"].as_array().expect("settings")[..] else { panic!("{all}") };
    assert_eq!(
        (&group["settings"]["agent.learning_rate"], &group["runs"]),
        (&"1e-3".into(), &2.into())
    );
    assert!(all["runs"].as_array().expect("runs").iter().all(|run| run["env_steps"] == 1280));
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
