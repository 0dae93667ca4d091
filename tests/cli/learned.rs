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
