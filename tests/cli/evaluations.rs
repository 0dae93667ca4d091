//! Evaluations during a training, with real agents and environments.

use std::fs;
use std::path::Path;

use super::{podracer, text};

fn run(folder: &Path, arguments: &[&str]) -> String {
    let assert = podracer(arguments).current_dir(folder).assert().success();
    text(&assert.get_output().stdout)
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(folder, arguments)).expect("a JSON object")
}

/// In both loops, and in Sebulba's the batch that is evaluated is one of its own.
#[test]
fn evaluations_do_not_change_the_training() {
    let anakin = ["catch-ppo", "--steps=2048", "--set=anakin.environments=8"];
    let anakin = [&anakin[..], &["--set=anakin.unroll=16", "--set=anakin.iterations_per_call=4"]];
    let sebulba = ["cartpole-sebulba-ppo", "--steps=1024", "--actors=0", "--learners=1"];
    let sebulba = [
        &sebulba[..],
        &["--set=sebulba.environments=8", "--set=sebulba.unroll=16", "--set=sebulba.threads=1"],
    ];
    for experiment in [anakin.concat(), sebulba.concat()] {
        let folder = tempfile::tempdir().expect("a folder");
        let train = |more: &[&str]| {
            let common = ["train", "--json", "--set=agent.hidden=[8]", "--set=agent.minibatches=1"];
            json(folder.path(), &[&common[..], &experiment, more].concat())
        };
        let without = train(&["--run-dir=without"]);
        let more = ["--set=train.eval_every=4", "--set=train.eval_episodes=5", "--run-dir=with"];
        let with = train(&more);
        assert_eq!(with["params_sha256"], without["params_sha256"]);
        let best = &with["evaluation"]["best_eval_return"];
        assert!(best.is_f64(), "{with}");
        // The same parameters, episodes and seed.
        let played = json(folder.path(), &["eval", "with", "--best", "--episodes=5", "--json"]);
        assert_eq!(&played["episode_return"]["mean"], best, "{played}");
        assert_eq!(
            played["iterations"].as_f64(),
            with["evaluation"]["best_eval_after_iterations"].as_f64()
        );
    }
}

/// A call has four iterations; the only evaluation is after the second call.
#[test]
fn the_best_parameters_are_exported() {
    let small = ["catch-ppo", "--set=agent.hidden=[8]"];
    for (steps, best_is_last) in [("--steps=1024", true), ("--steps=1536", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let shape = ["--set=anakin.environments=8", "--set=anakin.unroll=16"];
        let every = ["--set=anakin.iterations_per_call=4", "--set=train.eval_every=8"];
        run(
            folder.path(),
            &[&["train", steps, "--run-dir=run"], &small[..], &shape, &every].concat(),
        );
        let export = |output: &str, more: &[&str]| {
            let export = ["export", "--run=run", "-o", output];
            run(folder.path(), &[&export[..], &small, more].concat());
            let path = folder.path().join(output).join("parameters.safetensors");
            std::fs::read(path).expect("it is there")
        };
        assert_eq!(export("best", &["--best"]) == export("last", &[]), best_is_last);
    }
}

/// Nothing of the training changes by it.
#[test]
fn episodes_are_recorded_as_films() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["anakin.unroll=32", "anakin.iterations_per_call=2", "agent.minibatches=2"];
    let small = small.map(|set| format!("--set={set}"));
    let trained = |name: &str, more: &[&str]| {
        let mut train =
            podracer(&["train", "cartpole-ppo", "--steps=512", "--json", "--run-dir", name]);
        let output = train.args(&small).args(more).current_dir(&folder).assert().success();
        let result: serde_json::Value =
            serde_json::from_slice(&output.get_output().stdout).expect("JSON");
        result["params_sha256"].clone()
    };
    let recorded = trained("recorded", &["--set=train.record_every=2"]);
    assert_eq!(trained("plain", &[]), recorded);
    let run = folder.path().join("recorded");
    for name in ["000000002.gif", "000000004.gif"] {
        let film = fs::read(run.join("episodes").join(name)).expect("a film");
        let mut decoder = gif::DecodeOptions::new().read_info(&film[..]).expect("a GIF");
        let mut pictures = 0;
        while decoder.read_next_frame().expect("a picture").is_some() {
            pictures += 1;
        }
        assert!(pictures > 5, "{name} has {pictures}");
    }
    assert_eq!(fs::read_dir(run.join("episodes")).expect("a folder").count(), 2);
    let mut played = podracer(&["play", "recorded", "-o", "last.gif", "--size", "100"]);
    let said = played.current_dir(&folder).assert().success().get_output().clone();
    assert!(text(&said.stderr).contains(" in last.gif"), "{}", text(&said.stderr));
    let width = |film: &str| {
        let film = fs::read(folder.path().join(film)).expect("a film");
        gif::DecodeOptions::new().read_info(&film[..]).expect("a GIF").width()
    };
    assert!(width("last.gif") <= 100);
    // The agent's values are next to the pictures.
    let mut played =
        podracer(&["play", "recorded", "-o", "values.gif", "--size", "100", "--values"]);
    played.current_dir(&folder).assert().success();
    assert_eq!(width("values.gif"), width("last.gif") + 280);

    podracer(&["runs", "remove", "recorded", "--yes"]).current_dir(&folder).assert().success();
    assert!(!run.exists(), "films are a run's");
}
