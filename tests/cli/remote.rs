//! Environments that the learner does not know: workers bring them along.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

use super::signals::soon_over;
use super::{command, podracer, text};

/// The settings of a learner that knows the spaces alone.
const SPACES: [&str; 4] = [
    "environment.name=\"remote\"",
    "environment.observation=\"box([10, 5], 0, 1)\"",
    "environment.action=\"discrete(3)\"",
    "environment.truncates=false",
];

/// A learner in a folder, for 2,048 steps of 16 lanes.
fn learner(folder: &Path) -> Child {
    let arguments =
        ["serve", "cartpole-central-ppo", "--listen", "unix:a.sock", "--run-dir", "run"];
    let mut serve = command(&arguments);
    serve.args(["--steps", "2048", "--json"]);
    SPACES.iter().for_each(|set| {
        serve.args(["--set", set]);
    });
    let serve = serve.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null());
    serve.spawn().expect("the program runs")
}

#[test]
fn a_worker_brings_an_environment_that_the_learner_does_not_know() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serve = learner(folder.path());
    let work = |more: &[&str]| {
        let arguments = ["work", "--connect", "unix:a.sock", "--environments", "16"];
        let mut work = podracer(&[&arguments[..], more].concat());
        work.current_dir(&folder);
        work
    };
    // podracer's worker does not know it either, and another environment's spaces differ from the
    // run's.
    let output = work(&[]).assert().code(2).get_output().clone();
    let said = text(&output.stderr);
    assert!(
        said.contains("environment.name = remote steps at workers that bring it along"),
        "{said}"
    );
    let output = work(&["--environment", "cartpole"]).assert().failure().get_output().clone();
    let said = text(&output.stderr);
    assert!(said.contains("the observation space of the run is f32[10,5]"), "{said}");
    let output = work(&["--environment", "catsh"]).assert().code(2).get_output().clone();
    let said = text(&output.stderr);
    assert!(said.contains("there is no environment `catsh`; did you mean `catch`?"), "{said}");
    work(&["--environment", "catch", "--batches", "1"]).assert().success();
    let output = soon_over(&mut serve);
    assert!(output.success());
    let json = serve.stdout.take().expect("it is piped");
    let result: serde_json::Value = serde_json::from_reader(json).expect("one line of JSON");
    assert!(result["episodes"].as_u64() > Some(200), "{result}");
}

#[test]
fn missing_and_malformed_spaces_are_mistakes() {
    let said = |sets: &[&str]| {
        let mut serve = podracer(&["serve", "cartpole-central-ppo", "--listen", "unix:a.sock"]);
        sets.iter().for_each(|set| {
            serve.args(["--set", set]);
        });
        let folder = tempfile::tempdir().expect("a folder");
        text(&serve.current_dir(&folder).assert().code(2).get_output().stderr)
    };
    let none = said(&SPACES[..1]);
    assert!(none.contains("environment.observation must say the space"), "{none}");
    let wrong = said(&[SPACES[0], SPACES[1], "environment.action=\"discrete(0)\""]);
    assert!(
        wrong.contains("environment.action = \"discrete(0)\": a discrete space needs"),
        "{wrong}"
    );
    let mut train = podracer(&["train", "cartpole-central-ppo"]);
    SPACES.iter().for_each(|set| {
        train.args(["--set", set]);
    });
    let folder = tempfile::tempdir().expect("a folder");
    let train = text(&train.current_dir(&folder).assert().failure().get_output().stderr);
    assert!(train.contains("train with `podracer serve`"), "{train}");
}

/// Workers did not say which actions are legal, and agents took any.
#[test]
fn a_worker_says_which_actions_are_legal() {
    let folder = tempfile::tempdir().expect("a folder");
    let game = [
        "--set",
        "environment.name=\"tic-tac-toe-against\"",
        "--set",
        "environment.opponent=\"random\"",
    ];
    let size = ["--steps", "4096", "--json"];
    let told = |output: &[u8]| -> serde_json::Value {
        serde_json::from_slice(output).expect("one line of JSON")
    };
    let one = ["--set", "central.workers=1"];
    let train = [&["train", "cartpole-central-ppo"][..], &one, &game, &size].concat();
    let expected =
        told(&podracer(&train).current_dir(&folder).assert().success().get_output().stdout);

    let serve = ["serve", "cartpole-central-ppo", "--listen", "unix:a.sock", "--run-dir", "run"];
    let remote = [
        "environment.name=\"remote\"",
        "environment.observation=\"box([3, 3, 2], 0, 1)\"",
        "environment.action=\"discrete(9)\"",
        "environment.masks=true",
    ];
    let mut serve = command(&serve);
    serve.args(size).args(remote.iter().flat_map(|set| ["--set", set]));
    let mut serve = serve
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let work = ["work", "--connect", "unix:a.sock", "--environments", "16", "--batches", "1"];
    let work = [&work[..], &["--environment", "tic-tac-toe-against"], &game[2..]].concat();
    podracer(&work).current_dir(&folder).assert().success();
    assert!(soon_over(&mut serve).success());
    let mut output = Vec::new();
    serve.stdout.take().expect("it is piped").read_to_end(&mut output).expect("it is read");
    assert_eq!(told(&output)["params_sha256"], expected["params_sha256"]);
}

/// Learners here, learners of workers here, and of workers elsewhere that bring the environment along.
#[test]
fn the_share_of_a_task_that_is_done_is_a_metric_wherever_it_is_stepped() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["environment.size=3", "environment.wires=1", "environment.time_limit=6"];
    let sets =
        |sets: &[&str]| -> Vec<String> { sets.iter().map(|set| format!("--set={set}")).collect() };
    let agent = sets(&["agent.kind=ppo", "agent.hidden=[8]", "agent.torso=none"]);
    let game = [sets(&["environment.name=connector"]), sets(&small)].concat();
    let size = ["--steps=4096".to_owned()];
    let successes = |run: &str| -> Vec<f64> {
        let metrics = std::fs::read_to_string(folder.path().join(run).join("metrics.jsonl"));
        let metrics = metrics.expect("there are metrics");
        let lines = metrics.lines().map(serde_json::from_str::<serde_json::Value>);
        let success = |line: serde_json::Value| line["episode_success"].as_f64();
        lines.filter_map(|line| success(line.expect("JSON"))).collect()
    };
    for (experiment, run) in [("cartpole-sebulba-ppo", "here"), ("cartpole-central-ppo", "central")]
    {
        let run_dir = format!("--run-dir={run}");
        let more = [&game[..], &agent, &size].concat();
        podracer(&["train", experiment, &run_dir, "--set=train.eval_every=4"])
            .args(more)
            .current_dir(&folder)
            .assert()
            .success();
        let told = successes(run);
        assert!(told.iter().all(|share| (0.0..=1.0).contains(share)), "{told:?}");
        assert!(told.iter().any(|share| *share > 0.0), "{told:?}");
        let played = podracer(&["eval", run, "--json"]).current_dir(&folder).assert();
        let result: serde_json::Value =
            serde_json::from_slice(&played.success().get_output().stdout).expect("JSON");
        assert!(result["episode_success"]["mean"].is_number(), "{result}");
    }

    let remote = [
        "environment.name=remote",
        "environment.observation=\"box([3, 3, 4], 0, 1)\"",
        "environment.action=\"multi_discrete([5])\"",
        "environment.truncates=true",
        "environment.masks=true",
        "environment.succeeds=true",
    ];
    let serve = ["serve", "cartpole-central-ppo", "--listen=unix:a.sock", "--run-dir=served"];
    let serve = command(&serve)
        .args([&sets(&remote)[..], &agent, &size].concat())
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn();
    let mut serve = serve.expect("the program runs");
    podracer(&["work", "--connect=unix:a.sock", "--environments=16", "--environment=connector"])
        .args(sets(&small))
        .current_dir(&folder)
        .assert()
        .success();
    assert!(soon_over(&mut serve).success());
    assert!(successes("served").iter().any(|share| *share > 0.0), "{:?}", successes("served"));
}

/// The run directory was made first, and the corrected command found it there.
#[test]
fn a_learner_that_is_refused_leaves_no_run_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    podracer(&["certificates", "new", keys.to_str().expect("UTF-8")]).assert().success();
    for (arguments, expected) in [
        (&["--listen", "127.0.0.1:0"][..], "give --certificates FOLDER"),
        (&["--listen", "unix:a.sock", "--certificates", "keys"], "it takes no certificates"),
        (&["--listen", "127.0.0.1:0", "--certificates", "none"], "none"),
        (&["--listen", "no-such-host.invalid:1", "--insecure"], "cannot listen at"),
    ] {
        let mut serve = podracer(&["serve", "cartpole-central-ppo", "--run-dir", "run"]);
        let serve = serve.args(arguments).current_dir(&folder);
        let said = text(&serve.assert().code(2).get_output().stderr);
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("run").exists(), "{said}");
    }
}
