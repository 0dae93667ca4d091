//! Agents that learn by a rule in a file.

use podracer::learned::save_rule;
use podracer_rl::meta::{LpgRule, LpgShape};
use podracer_runtime::Array;

use super::{podracer, text};

/// A training on tic-tac-toe's size: few steps, few units.
fn train(experiment: &str, rule: &str, more: &[&str]) -> assert_cmd::Command {
    let rule = format!("agent.rule={rule}");
    let mut command =
        podracer(&["train", experiment, "--set", "agent.kind=learned", "--set", &rule]);
    command.args(["--set", "agent.hidden=[8]"]).args(more);
    command
}

#[test]
fn agents_learn_by_a_rule_in_every_loop() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rule.safetensors");
    let shape = LpgShape { predictions: 4, embedding: 3, units: 5 };
    let leaves = LpgRule::spec_of(&shape).leaves().into_iter();
    let arrays: Vec<_> = leaves
        .map(|(path, ty)| {
            let numbers: Vec<f64> = (0..ty.elements()).map(|i| (i as f64).sin() / 2.0).collect();
            (format!("rule.params.{path}"), Array::floats(ty.dtype, &ty.shape, &numbers))
        })
        .collect();
    save_rule(&arrays, &path).expect("a rule");
    let small = ["--steps", "64"];
    let anakin = ["--set", "anakin.environments=2", "--set", "anakin.unroll=4"];
    let run = folder.path().join("anakin").display().to_string();
    let anakin =
        [&small[..], &anakin, &["--set", "anakin.iterations_per_call=2", "--run-dir", &run]]
            .concat();
    train("catch-ppo", "rule.safetensors", &anakin).current_dir(folder.path()).assert().success();
    // Tables, where observations are numbers.
    let tables = [&anakin[..anakin.len() - 2], &["--set", "environment.name=grid-tasks"]].concat();
    train("catch-ppo", "rule.safetensors", &tables).current_dir(folder.path()).assert().success();
    let sebulba = [
        "--set",
        "sebulba.environments=2",
        "--set",
        "sebulba.unroll=4",
        "--set",
        "sebulba.iterations_per_call=2",
    ];
    let sebulba = [&small[..], &sebulba].concat();
    train("cartpole-sebulba-ppo", "rule.safetensors", &sebulba)
        .current_dir(folder.path())
        .assert()
        .success();

    let missing = train("catch-ppo", "other.safetensors", &anakin).assert().code(2);
    let said = text(&missing.get_output().stderr);
    assert!(said.contains("agent.rule: cannot read parameters from `other.safetensors`"), "{said}");
}
