//! Reports of the runs of a sweep: settings, results and parameters.

use std::fs;
use std::path::Path;

use super::{podracer, text};

/// The settings of a training of 4 iterations.
const SMALL: [&str; 4] = [
    "--set=anakin.unroll=32",
    "--set=anakin.iterations_per_call=2",
    "--set=agent.minibatches=2",
    "--steps=512",
];

/// The standard output of a command.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = podracer(arguments).current_dir(folder).assert().success();
    text(&output.get_output().stdout)
}

/// The error was `agent.sigma0: invalid type: string "column 0", expected f64`.
#[test]
fn a_swept_f64_is_answered_with_column_0() {
    let folder = tempfile::tempdir().expect("a folder");
    for (experiment, setting) in
        [("cartpole-dqn", "agent.sigma0=0.1,0.2"), ("cartpole-ppo", "agent.epochs=1,2")]
    {
        let sweep = ["sweep", experiment, "--set", setting, "--exploit-every=2", "--run-dir=s"];
        let refused = podracer(&sweep).current_dir(&folder).assert().code(2);
        let said = text(&refused.get_output().stderr);
        let key = setting.split('=').next().expect("a key");
        let expected = format!("{key}: it is not a number that a program takes as data");
        assert!(said.contains(&expected) && said.contains("has the type `Number`"), "{said}");
        assert!(!said.contains("column"), "{said}");
    }
}

/// The answer was a list of 56 names of experiments.
#[test]
fn an_export_of_a_run_is_answered_with_a_list_of_experiments() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let train = ["train", "cartpole-ppo", "--run-dir=run", "--set=agent.hidden=[8]"];
    printed(folder, &[&train[..], &SMALL].concat());
    printed(folder, &["export", "run", "-o", "of-run"]);
    let named = ["export", "cartpole-ppo", "--set=agent.hidden=[8]", "--run", "run", "-o", "named"];
    printed(folder, &named);
    let parameters = |export: &str| {
        fs::read(folder.join(export).join("parameters.safetensors")).expect("a file")
    };
    assert!(parameters("of-run") == parameters("named"), "other parameters");
    let best = ["export", "cartpole-ppo", "-o", "best", "--best"];
    let refused = podracer(&best).current_dir(folder).assert().code(2);
    assert!(text(&refused.get_output().stderr).contains("--run RUN"));
}
