//! Numbers that are no longer finite: a run that makes them ends with an error, and nobody takes them for results.

use std::path::Path;

use super::resume::{has_checkpoint, resume, train};
use super::{command, text};

/// What a command said, and its exit code.
fn said(arguments: &[impl AsRef<std::ffi::OsStr>]) -> (String, Option<i32>) {
    let output = command(arguments).output().expect("the program runs");
    (text(&output.stderr), output.status.code())
}

/// Catch with a learning rate that no network bears, and checkpoints after every call.
fn diverge(run: &Path, more: &[&str]) -> (String, Option<i32>) {
    let experiment = [
        "catch-ppo",
        "--steps=16384",
        "--set=agent.hidden=[8]",
        "--set=agent.learning_rate=1e30",
        "--set=train.checkpoint_every=1",
    ];
    said(&train(&[&experiment[..], more].concat(), run))
}

#[test]
fn a_run_of_nan_ends_with_an_error_and_keeps_no_checkpoint_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let (said, code) = diverge(&run, &[]);
    assert_eq!(code, Some(1), "{said}");
    for part in [
        " is not finite in iteration ",
        " parameters are not finite, and the run ends (",
        "train.on_nan=",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!has_checkpoint(&run) && !run.join("result.json").exists());
}

#[test]
fn parameters_that_are_not_finite_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let (trained, code) = diverge(&run, &["--set=train.on_nan=\"warn\""]);
    assert_eq!(code, Some(0), "{trained}");
    assert_eq!(trained.matches(" parameters are not finite").count(), 1, "{trained}");
    let folder = folder.path().join("export").display().to_string();
    let run = run.display().to_string();
    for command in [
        vec!["eval", &run, "--episodes=1"],
        vec!["export", "catch-ppo", "--set=agent.hidden=[8]", "--run", &run, "--output", &folder],
    ] {
        let (refused, code) = said(&command);
        assert_eq!(code, Some(2), "{refused}");
        assert!(
            refused.contains(" parameters are not finite; --allow-nan takes them"),
            "{refused}"
        );
        let (allowed, code) = said(&[command, vec!["--allow-nan"]].concat());
        assert_eq!(code, Some(0), "{allowed}");
    }
    let config = Path::new(&run).join("config.toml");
    let settings = std::fs::read_to_string(&config).expect("the settings");
    std::fs::write(&config, settings.replace("on_nan = \"warn\"", "on_nan = \"stop\""))
        .expect("a file");
    let (refused, code) = said(&resume(run.as_ref()));
    assert_eq!(code, Some(1), "{refused}");
    assert!(refused.contains("in the checkpoint: "), "{refused}");
}
