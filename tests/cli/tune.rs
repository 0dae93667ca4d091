//! `podracer tune`: trials run, and the fastest is written.

use std::fs;

use serde_json::Value;

use crate::{podracer, text};

#[test]
fn the_fastest_of_the_settings_that_run_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tuned.toml");
    let output = podracer(&["tune", "cartpole-ppo", "--json", "--seconds", "0.2"])
        .args(["--set", "agent.epochs=1"])
        // Five steps do not divide into four minibatches.
        .args(["--try", "anakin.environments=1,8", "--try", "anakin.unroll=5,16"])
        .arg("--output")
        .arg(&file)
        .assert()
        .success()
        .get_output()
        .clone();
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let trials = report["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 4);
    let speed = |trial: &Value| trial["env_steps_per_second"].as_f64();
    let failed: Vec<&Value> = trials.iter().filter(|trial| speed(trial).is_none()).collect();
    assert_eq!(failed.len(), 1, "{report:#}");
    assert_eq!(failed[0], &trials[3]);
    let error = failed[0]["error"].as_str().expect("a reason");
    assert!(error.contains("does not divide into agent.minibatches = 4"), "{error}");
    assert_eq!(report["best"], trials[0]);
    assert!(trials[..3].is_sorted_by(|a, b| speed(a) >= speed(b)));

    let tuned: toml::Table = fs::read_to_string(file).expect("written").parse().expect("TOML");
    assert_eq!(tuned["base"].as_str(), Some("cartpole-ppo"));
    assert_eq!(tuned["agent"]["epochs"].as_integer(), Some(1));
    let environments = tuned["anakin"]["environments"].to_string();
    let best = report["best"]["settings"][0].as_str().expect("settings");
    assert_eq!(best, format!("anakin.environments={environments}"));
    assert!(text(&output.stderr).contains("4/4 anakin.environments=8 anakin.unroll=16: "));
}

#[test]
fn settings_that_cannot_be_tried_are_reported_before_anything_runs() {
    for (tried, expected) in [
        ("agent.clip", "--try agent.clip: expected KEY=VALUE,VALUE"),
        ("agent.clip=0.1,,0.2", "--try agent.clip=0.1,,0.2: expected"),
        ("agent.clap=1,2", "`agent.clap` is not a setting; did you mean"),
    ] {
        let output = podracer(&["tune", "cartpole-ppo", "--try", tried])
            .assert()
            .code(2)
            .get_output()
            .clone();
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
    }
}
