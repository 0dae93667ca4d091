//! The program has podracer's command line, with its own environment and experiment.

use std::fs;
use std::path::Path;
use std::process::Command;

fn own_app(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own_app"));
    let output = command.args(arguments).current_dir(folder).output().expect("the program runs");
    let [out, err] = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).expect("what is printed is UTF-8"));
    (output.status.code(), out, err)
}

#[test]
fn an_environment_of_ones_own_is_trained_resumed_and_played() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let (code, out, err) = own_app(folder.path(), arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        out
    };
    let listed = run(&["list"]);
    assert!(listed.contains("docking-ppo") && listed.contains("impala"), "{listed}");
    let described = run(&["describe", "docking"]);
    assert!(described.contains("# number: Speed that a push adds."), "{described}");

    let small = ["--set=agent.hidden=[4]", "--set=environment.push=0.1"];
    let shape = [
        "--set=anakin.environments=4",
        "--set=anakin.unroll=8",
        "--set=anakin.iterations_per_call=2",
    ];
    let train =
        [&["train", "docking-ppo", "--steps=64", "--run-dir=run", "--json"], &small[..], &shape]
            .concat();
    let result: serde_json::Value = serde_json::from_str(&run(&train)).expect("a JSON object");
    assert_eq!((&result["experiment"], &result["env_steps"]), (&"docking-ppo".into(), &64.into()));
    let resumed: serde_json::Value =
        serde_json::from_str(&run(&["resume", "run", "--steps=128", "--json"]))
            .expect("a JSON object");
    assert_eq!(
        (&resumed["resumed_from_iteration"], &resumed["iterations"]),
        (&2.into(), &4.into())
    );
    assert!(run(&["eval", "run", "--episodes=3"]).contains("docking-ppo after 4 iterations"));
    assert!(
        run(&[&["ir", "emit", "docking-ppo", "--stage=trace"], &small[..]].concat())
            .contains("func")
    );
    run(&[&["export", "docking-ppo", "-o", "exported"], &small[..]].concat());
    let tuned = run(&[
        &["tune", "docking-ppo", "--try=anakin.unroll=8,16", "--seconds=0.1", "--json"],
        &small[..],
    ]
    .concat());
    let tuned: serde_json::Value = serde_json::from_str(&tuned).expect("a JSON object");
    assert!(tuned["best"]["env_steps_per_second"].as_f64() > Some(0.0), "{tuned}");
}

/// Trees as observations and actions with several parts, in each loop and in each command on a run.
#[test]
fn trees_and_parts_go_through_every_loop() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tree_app"));
        let output =
            command.args(arguments).current_dir(folder.path()).output().expect("the program runs");
        let [out, err] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8(bytes).expect("what is printed is UTF-8"));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
        out
    };
    for experiment in ["in-anakin", "in-sebulba", "in-central"] {
        let result = run(&["train", experiment, "--steps=512", "--run-dir", experiment, "--json"]);
        let result: serde_json::Value = serde_json::from_str(&result).expect("a JSON object");
        assert_eq!(result["mean_return"].as_f64(), Some(16.0), "{result}");
        let metrics = folder.path().join(experiment).join("metrics.jsonl");
        let metrics = fs::read_to_string(metrics).expect("metrics");
        let last: serde_json::Value =
            serde_json::from_str(metrics.lines().last().expect("a line")).expect("a JSON object");
        assert_eq!(last["copied"].as_f64(), Some(1.0), "{last}");
        let evaluated = run(&["eval", experiment, "--episodes=3", "--json"]);
        assert!(evaluated.contains("16"), "{evaluated}");
        let film = format!("{experiment}.gif");
        let played = run(&["play", experiment, "--values", "-o", &film]);
        assert!(played.contains("16"), "{played}");
        let exported = format!("{experiment}-exported");
        run(&["export", experiment, "--run", experiment, "-o", &exported]);
        let manifest = folder.path().join(exported).join("manifest.json");
        let manifest = fs::read_to_string(manifest).expect("a manifest");
        let elements = "observation: lever 0..3, wheel 3..4; action: lever 0..1, wheel 1..2";
        assert!(manifest.contains(elements), "{manifest}");
    }
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (set, expected) in [
        (
            "environment.puhs=1",
            "`environment.puhs` is not a setting; did you mean `push`?; [environment] takes name, push",
        ),
        ("environment.time_limit=0", "environment.time_limit must be at least 1 and is 0"),
        (
            "agent.kind=reinforce",
            "`agent.kind` is the string \"reinforce\" and must be one of: ppo",
        ),
    ] {
        let (code, _, err) = own_app(folder.path(), &["train", "docking-ppo", "--set", set]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(expected), "{err}");
    }
}

#[test]
fn a_profile_finds_the_slow_line() {
    let source = include_str!("slow_app.rs");
    let slow =
        source.lines().position(|line| line.contains("// The slow line.")).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slow_app"));
    command.args([
        "profile",
        "drift-ppo",
        "--seconds=3",
        "--json",
        "--folded=folded",
        "--trace=trace",
    ]);
    let output = command.current_dir(folder.path()).output().expect("the program runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let profile: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    let first = &profile["lines"][0];
    assert!(first["file"].as_str().is_some_and(|file| file.ends_with("slow_app.rs")), "{first}");
    assert_eq!(first["line"].as_u64(), Some(slow as u64 + 1), "{first}");
    assert!(
        first["share"].as_f64() > Some(0.3) && first["operations"].as_f64() > Some(0.0),
        "{first}"
    );
    let lines = profile["lines"].as_array().expect("a list");
    let given: f64 = lines.iter().filter_map(|line| line["share"].as_f64()).sum();
    assert!((0.9..1.001).contains(&given), "{given}: {profile}");
    assert!(profile["iterations"].as_u64() > Some(0), "{profile}");

    // The slow line takes most of the flame graph, and of the trace.
    let read = |name| fs::read_to_string(folder.path().join(name)).expect("a file");
    let place = format!("slow_app.rs:{}", slow + 1);
    let (folded, trace) = (read("folded"), read("trace"));
    let microseconds =
        |line: &str| line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok());
    let sum = |part: &str| {
        let lines = folded.lines().filter(|line| line.contains(part));
        lines.map(|line| microseconds(line).expect("a number")).sum::<f64>()
    };
    assert!(sum(&place) > 0.3 * sum(""), "{folded}");
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("a JSON object");
    let events = trace["traceEvents"].as_array().expect("a list");
    let sum = |part: &str| {
        let of_line = |event: &&serde_json::Value| {
            event["args"]["line"].as_str().unwrap_or_default().ends_with(part)
        };
        let times = events.iter().filter(of_line).filter_map(|event| event["dur"].as_f64());
        times.sum::<f64>()
    };
    assert!(sum(&place) > 0.3 * sum(""), "{} of {}", sum(&place), sum(""));
    assert!(events.iter().any(|event| event["name"] == "thread_name"));
}
