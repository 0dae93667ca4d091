//! Agents that learn by a rule in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use npyz::WriterBuilder;
use npyz::npz::file_name_from_array_name;
use podracer::learned::save_rule;
use podracer_rl::meta::{DiscoShape, KeptRule, LpgRule, LpgShape, UpdateRule};
use podracer_runtime::Array;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::{podracer, text};

/// Numbers that are neither alike nor great.
fn some(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(|i| (i as f64).sin() / 2.0)
}

/// Writes a rule of LPG.
fn lpg(path: &Path) {
    let shape = LpgShape { predictions: 4, embedding: 3, units: 5 };
    let leaves = LpgRule::spec_of(&shape).leaves().into_iter();
    let array = |(path, ty): (_, podracer_dsl::prelude::TensorType)| {
        let numbers: Vec<f64> = some(ty.elements()).collect();
        (format!("rule.params.{path}"), Array::floats(ty.dtype, &ty.shape, &numbers))
    };
    save_rule(&leaves.map(array).collect::<Vec<_>>(), path).expect("a rule");
}

/// Writes a rule of DiscoRL, as its authors do.
fn disco(path: &Path) {
    let shape = DiscoShape { predictions: 4, embedding: 3, channels: 2, units: 5, life_units: 3 };
    let types: BTreeMap<_, _> = KeptRule::haiku_types(&shape);
    let mut archive = ZipWriter::new(File::create(path).expect("a file"));
    for (name, ty) in types {
        let shape: Vec<u64> = ty.shape.iter().map(|&extent| extent as u64).collect();
        let file = file_name_from_array_name(&name);
        archive.start_file(file, SimpleFileOptions::default()).expect("an array");
        let array = npyz::WriteOptions::new().default_dtype().shape(&shape);
        let mut array = array.writer(&mut archive).begin_nd().expect("its header");
        array.extend(some(ty.elements()).map(|x| x as f32)).expect("its numbers");
        array.finish().expect("the array");
    }
    archive.finish().expect("the rule");
}

/// A training with few units.
fn train(experiment: &str, kind: &str, more: &[&str]) -> assert_cmd::Command {
    let kind = format!("agent.kind={kind}");
    let mut command = podracer(&["train", experiment, "--set", &kind]);
    command.args(["--set", "agent.rule=rule", "--set", "agent.hidden=[8]"]).args(more);
    command
}

const ANAKIN: [&str; 8] = [
    "--steps",
    "64",
    "--set",
    "anakin.environments=2",
    "--set",
    "anakin.unroll=4",
    "--set",
    "anakin.iterations_per_call=2",
];

const SEBULBA: [&str; 8] = [
    "--steps",
    "64",
    "--set",
    "sebulba.environments=2",
    "--set",
    "sebulba.unroll=4",
    "--set",
    "sebulba.iterations_per_call=2",
];

#[test]
fn agents_learn_by_a_rule_in_every_loop() {
    for (kind, write) in [("learned", lpg as fn(&Path)), ("disco", disco)] {
        let folder = tempfile::tempdir().expect("a folder");
        write(&folder.path().join("rule"));
        let learns = |experiment: &str, more: &[&str]| {
            train(experiment, kind, more).current_dir(folder.path()).assert().success();
        };
        learns("catch-ppo", &[&ANAKIN[..], &["--run-dir", "run"]].concat());
        // Observations are numbers, and actions are masked.
        learns("catch-ppo", &[&ANAKIN[..], &["--set", "environment.name=grid-tasks"]].concat());
        learns("catch-ppo", &[&ANAKIN[..], &["--set", "environment.name=tic-tac-toe"]].concat());
        learns("cartpole-sebulba-ppo", &SEBULBA);
        podracer(&["eval", "run", "--episodes", "2"]).current_dir(folder.path()).assert().success();
    }
}

#[test]
fn files_that_are_no_rule_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rule");
    let said = |kind: &str| {
        let refused = train("catch-ppo", kind, &ANAKIN).current_dir(folder.path()).assert().code(2);
        text(&refused.get_output().stderr)
    };
    let missing = said("learned");
    assert!(missing.contains("agent.rule: cannot read parameters from `rule`"), "{missing}");
    let missing = said("disco");
    assert!(missing.contains("agent.rule: `rule` is no rule of DiscoRL: "), "{missing}");
    disco(&path);
    let whole = std::fs::read(&path).expect("the rule");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
    let cut = said("disco");
    assert!(cut.contains("agent.rule: `rule` is no rule of DiscoRL: "), "{cut}");
    lpg(&path);
    let other = said("disco");
    assert!(other.contains("agent.rule: `rule` is no rule of DiscoRL: "), "{other}");
    disco(&path);
    let other = said("learned");
    assert!(other.contains("agent.rule: cannot read parameters from `rule`"), "{other}");
}

/// A training of a rule, with few of everything.
fn meta(folder: &Path, more: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = podracer(&["train", "lpg-gridworlds"]);
    for set in [
        "meta.agents=4",
        "meta.environments=2",
        "meta.unroll=3",
        "meta.inner_updates=2",
        "meta.iterations_per_call=2",
        "meta.units=4",
        "meta.predictions=3",
        "meta.lifetime=[2, 4]",
        "meta.learning_rate_factors=[0.5, 1.0]",
    ] {
        command.args(["--set", set]);
    }
    command.args(more).current_dir(folder).assert()
}

/// Steps of two calls of two updates, each of three rollouts of 4 agents with 2 lanes by 3 steps.
const TWO_CALLS: [&str; 2] = ["--steps", "288"];

#[test]
fn a_rule_is_trained_goes_on_and_is_learned_by() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path();
    let result = |assert: &assert_cmd::assert::Assert| -> serde_json::Value {
        serde_json::from_slice(&assert.get_output().stdout).expect("a result")
    };
    let whole = ["--run-dir", "whole", "--json"];
    let whole = result(&meta(inside, &[&TWO_CALLS[..], &whole].concat()).success());
    assert_eq!((&whole["env_steps"], &whole["iterations"]), (&288.into(), &4.into()));
    let half = ["--steps", "144", "--run-dir", "half"];
    meta(inside, &half).success();
    let resumed = podracer(&["resume", "half", "--steps", "288", "--json"]);
    let resumed = { resumed }.current_dir(inside).assert().success();
    assert_eq!(result(&resumed)["params_sha256"], whole["params_sha256"]);
    // Other tasks, and none.
    for environment in ["delayed-chains", "catch"] {
        let set = format!("environment.name={environment}");
        let rate = ["agent.learning_rate=0.01", "agent.prediction_learning_rate=none"];
        for optimizer in ["agent.optimizer=sgd", "agent.optimizer=adam"] {
            let sets = ["--set", &set, "--set", rate[0], "--set", rate[1], "--set", optimizer];
            meta(inside, &[&TWO_CALLS[..], &sets].concat()).success();
        }
    }
    let shared = [&TWO_CALLS[..], &["--run-dir", "shared", "--devices", "2"]].concat();
    meta(inside, &shared).success();

    std::fs::copy(inside.join("whole/parameters.safetensors"), inside.join("rule"))
        .expect("the parameters are the rule");
    train("catch-ppo", "learned", &ANAKIN).current_dir(inside).assert().success();
    let refused = podracer(&["eval", "whole"]).current_dir(inside).assert().code(2);
    let said = text(&refused.get_output().stderr);
    assert!(
        said.contains("lpg-gridworlds: the training makes an update rule and no agent"),
        "{said}"
    );
}

#[test]
fn what_trains_no_rule_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (more, expected) in [
        (&["--set", "agent.kind=ppo"][..], "agent.kind is ppo and must be learned"),
        (
            &["--set", "agent.rule=other"],
            "agent.rule is `other`: [meta] trains a rule, and takes none",
        ),
        (
            &["--set", "meta.agents=3", "--devices", "2"],
            "meta.agents = 3 does not divide over 2 devices",
        ),
        (&["--set", "meta.lifetime=[4, 2]"], "meta.lifetime is [4, 2]: the least must come first"),
        (&["--set", "meta.learning_rate_factors=[]"], "must name 1 to 1000 factors"),
        (&["--set", "environment.name=pendulum"], "a rule of LPG is for discrete actions"),
        (&["--set", "train.eval_every=1"], "the training makes an update rule and no agent"),
        (&["--actors", "0", "--learners", "1"], "`meta.actors` is not a setting"),
    ] {
        let refused = meta(folder.path(), more).code(2);
        let said = text(&refused.get_output().stderr);
        assert!(said.contains(expected), "{more:?}: {said}");
    }
}
