//! Tests of trainings made from settings.

use crate::experiments::build;
use crate::loading::{Overrides, load};
use crate::registry::Registry;
use crate::settings::UsageError;
use crate::training::{Stage, Training};

fn built_with(experiment: &str, sets: &[String]) -> anyhow::Result<Box<dyn Training>> {
    let overrides = Overrides { set: sets.to_vec(), ..Overrides::default() };
    build(&load(experiment, &overrides)?)
}

#[test]
fn environments_on_the_host_need_sebulba() {
    for name in ["pixel-breakout", "pixel-catch"] {
        let built = |sets: &[String]| built_with("catch-ppo", sets);
        let environment = format!("environment.name={name}");
        let error = built(std::slice::from_ref(&environment)).err().unwrap();
        assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
        assert!(error.to_string().contains("give the experiment a [sebulba]"), "{error}");
        built(&[environment, "sebulba.environments=2".to_owned()]).unwrap();
    }
}

#[test]
fn images_need_a_torso_that_sees_them() {
    let error = built_with("catch-ppo", &["agent.torso=conv".to_owned()]);
    let error = error.err().unwrap();
    assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
    assert!(
        error.to_string().contains(
            "agent.torso = conv: convolutions see images [height, width, channels], and observations are [10, 5]"
        ),
        "{error}"
    );
}

/// Every agent also with pixels, through its torso, and every built-in experiment unchanged.
#[test]
fn experiments_trace() {
    let pixels = ["agent.torso=conv", "environment.name=pixel-catch", "sebulba.environments=2"];
    let pixels: Vec<String> = pixels.map(str::to_owned).to_vec();
    let mut of_online = pixels.clone();
    of_online.push("sebulba.lag=0".to_owned());
    // Experiments with packages that are not installed here report it.
    let registry = Registry::built_in();
    let built = registry.experiments().iter().map(|one| built_with(&one.name, &[]));
    let built = built.filter(|built| {
        let missing = built.as_ref().err().map(ToString::to_string).unwrap_or_default();
        !missing.contains("run `podracer envs install")
    });
    let others = [built_with("catch-ppo", &pixels), built_with("catch-online", &of_online)];
    for training in built.chain(others) {
        let text = training.unwrap().emit(Stage::Trace, 1).unwrap();
        assert!(text.contains("func"), "{text}");
    }
}

#[test]
fn packages_that_are_missing_are_named_with_the_command_that_installs_them() {
    let message = |experiment, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        format!("{:#}", built_with(experiment, &sets).err().unwrap())
    };
    let error = message("halfcheetah-ppo", &["environment.python=no-such-python"]);
    let expected = "environment server 0 (`no-such-python`): cannot start the server";
    assert!(error.contains(expected), "{error}");
    if podracer_plugins::package_set("envpool").unwrap().find().is_err() {
        let error = message("cartpole-sebulba-ppo", &["environment.name=envpool"]);
        let expected = "run `podracer envs install envpool`";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_simplified_program_has_the_groups_that_the_experiment_switches_on() {
    for name in ["catch-ppo", "cartpole-sebulba-ppo"] {
        let emitted = |groups: &str, stage| {
            let set = vec![format!("program.simplify={groups}")];
            let overrides = Overrides { set, ..Overrides::default() };
            let training = build(&load(name, &overrides).unwrap()).unwrap();
            training.emit(stage, 1).unwrap()
        };
        let groups = "['algebra', 'select', 'shape', 'fold', 'sink', 'loops']";
        for stage in [Stage::Simplified, Stage::StableHlo] {
            let (plain, simple) = (emitted("[]", stage), emitted(groups, stage));
            let lines = |text: &str| text.lines().count();
            assert!(lines(&simple) < lines(&plain), "{name}: {} lines", lines(&simple));
        }
        assert_eq!(emitted("[]", Stage::Trace), emitted(groups, Stage::Trace));
    }
}

#[test]
fn a_replay_on_the_host_is_for_agents_that_learn_from_one() {
    let host = || vec!["sebulba.replay=host".to_owned(), "sebulba.environments=2".to_owned()];
    let error = built_with("catch-ppo", &host()).err().unwrap();
    assert!(error.downcast_ref::<UsageError>().is_some(), "{error:#}");
    assert!(error.to_string().contains("the agent `ppo` learns from no replay"), "{error}");
    let training = built_with("memory-r2d2", &host()).unwrap();
    let programs = training.programs(None).unwrap();
    let learn =
        programs.iter().map(|program| program.manifest()).find(|one| one.file == "learn.mlir");
    let learn = learn.unwrap();
    assert!(
        learn.about.contains("from windows that were drawn 2 iterations before"),
        "{}",
        learn.about
    );
    let windows: Vec<_> =
        learn.arguments.iter().filter(|one| one.name.starts_with("windows")).collect();
    assert!(!windows.is_empty() && windows.iter().all(|one| one.shape[0] == windows[0].shape[0]));
    let requests: Vec<&str> = (learn.results.iter().map(|one| one.name.as_str()))
        .filter(|name| name.starts_with("requests"))
        .collect();
    assert_eq!(requests, ["requests.count", "requests.indices"]);
}
