//! Evaluations during a training, with real agents and environments.

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

/// A call is four iterations, and the one evaluation is after the second call.
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
