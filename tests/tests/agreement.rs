//! Modules that the compiler writes as text, and those that MLIR prints of its own objects: of the samples of all ops, of
//! random programs, and of the programs of all experiments.

use podracer::experiments::build;
use podracer::loading::{Overrides, load};
use podracer::registry::Registry;
use podracer::training::Stage;
use podracer_compiler::stablehlo::ModuleSpec;
use podracer_compiler::{Func, Loc, text};
use podracer_mlir::agreement::disagreement;
use podracer_mlir::normalized;
use podracer_test_support::skip::skip_heavy;
use podracer_tests::cases::{batched, one_op, samples, types};
use podracer_tests::check_all;

use crate::programs::program;

/// Number of random programs.
const PROGRAMS: usize = 100;

/// The difference for a function with source locations in its equations, some of them the same.
fn complaint(name: &str, func: &Func) -> Option<String> {
    let mut func = func.clone();
    for (i, eqn) in func.eqns.iter_mut().enumerate() {
        let line = 1 + i as u32 / 3 % 7;
        eqn.loc = if line == 1 { Loc::NONE } else { Loc::read("some/file.rs", line, 5) };
    }
    let func = &func;
    let difference = disagreement(func, &ModuleSpec::new("m", func))?;
    Some(format!("{name}: {difference}"))
}

#[test]
fn samples_of_all_ops() {
    let mut complaints = Vec::new();
    for (name, sample) in samples() {
        let func = one_op(&sample.op, &types(&sample.inputs));
        complaints.extend(complaint(&name, &func));
        for expected in batched(&name, &sample) {
            complaints.extend(complaint(&expected.case.name, &expected.case.func));
        }
    }
    check_all(&complaints);
}

#[test]
fn random_programs() {
    let programs = (0..).filter_map(program).take(PROGRAMS).enumerate();
    let complaints = programs
        .filter_map(|(index, (func, _))| complaint(&format!("random program {index}"), &func));
    check_all(&complaints.collect::<Vec<_>>());
}

/// The functions of an experiment's programs as both writers have them, and what MLIR prints of the text that XLA is given,
/// which is that text.
fn of_experiment(name: &str) -> Vec<String> {
    let settings = load(name, &Overrides::default()).expect("it comes with the program");
    let training = match build(&settings) {
        Ok(training) => training,
        // Its environment is in packages that are not installed here; the others are compared.
        Err(error) if error.to_string().contains("Python packages") => {
            eprintln!("{name} is left out: {error}");
            return Vec::new();
        }
        Err(error) => panic!("{name}: {error:#}"),
    };
    let emit = |stage| training.emit(stage, 1).expect("it is emitted");
    let mut complaints = Vec::new();
    // The programs of Sebulba stand one after another, each below a line of comment.
    for (index, program) in parts(&emit(Stage::Simplified), "func ").into_iter().enumerate() {
        let func = text::parse(&program).unwrap_or_else(|error| panic!("{name}: {error}"));
        complaints.extend(complaint(&format!("{name}, program {index}"), &func));
    }
    for (index, module) in parts(&emit(Stage::StableHlo), "module ").into_iter().enumerate() {
        let complaint = match normalized(&module) {
            Ok(read) if read.text.trim_end() == module.trim_end() => continue,
            Ok(_) => "MLIR prints it otherwise".to_owned(),
            Err(error) => error.to_string(),
        };
        complaints.push(format!("{name}, module {index}: {complaint}"));
    }
    complaints
}

/// The parts of a text that begin with a line of this beginning, without comments.
fn parts(text: &str, begin: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        if line.starts_with(begin) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            *part += line;
            part.push('\n');
        }
    }
    assert!(!parts.is_empty(), "{text}");
    parts
}

/// One experiment of each kind of program.
#[test]
fn programs_of_some_experiments() {
    let names = [
        "cartpole-ppo",
        "catch-lstm-impala",
        "catch-online",
        "catch-central-r2d2",
        "cartpole-rainbow",
        "pendulum-sac",
        "catch-muzero",
    ];
    check_all(&names.into_iter().flat_map(of_experiment).collect::<Vec<_>>());
}

#[test]
fn programs_of_all_experiments() {
    if skip_heavy("half a minute of tracing") {
        return;
    }
    let registry = Registry::built_in();
    let names = registry.experiments().iter().map(|one| one.name.as_str());
    check_all(&names.flat_map(of_experiment).collect::<Vec<_>>());
}
