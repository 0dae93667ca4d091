//! The program has podracer's command line, with its own environment and experiment.

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
    assert!(
        described.contains("push = 0.05  # number\n    # Speed that a push adds."),
        "{described}"
    );

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
        run(&[&["emit", "docking-ppo", "--stage=trace"], &small[..]].concat()).contains("func")
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
