//! The program as a process: streams, exit codes, the working folder, the environment.

mod browser;
mod check;
mod elsewhere;
mod evaluations;
mod events;
mod hostile;
mod learned;
mod learning;
mod matches;
mod memory;
mod nan;
mod new;
mod pictures;
mod play;
mod population;
mod processes;
mod records;
mod remote;
mod report;
mod resume;
mod servers;
mod signals;
mod sweeps;
mod tune;
mod watch;
mod work;

use std::ffi::OsStr;
use std::fs;
use std::process::Stdio;

use assert_cmd::Command;

/// XLA's flags for a fraction of the compile time. These tests check the command line; other tests
/// check XLA's default output.
const QUICK: (&str, &str) =
    ("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false");

fn podracer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podracer"));
    command.args(arguments).env_remove("PODRACER_LOG").env_remove("RUST_LOG");
    command.env(QUICK.0, QUICK.1);
    command
}

/// The program, for tests that do something to it while it runs.
fn command(arguments: &[impl AsRef<OsStr>]) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_podracer"));
    command.args(arguments).env_remove("PODRACER_LOG");
    command.env_remove("RUST_LOG").env(QUICK.0, QUICK.1).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what is printed is UTF-8")
}

#[test]
fn list_goes_to_standard_output() {
    let output = podracer(&["list"]).assert().success().get_output().clone();
    for name in ["cartpole-ppo", "catch-ppo", "catch-online", "gridworld-ppo", "pendulum-ppo"] {
        assert!(text(&output.stdout).contains(name));
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn mistakes_go_to_standard_error_with_exit_code_2() {
    for (arguments, expected) in [
        (
            &["train", "cartpol-ppo"][..],
            "error: there is no experiment `cartpol-ppo`; did you mean `cartpole-ppo`",
        ),
        (
            &["train", "cartpole-ppo", "--set", "agent.clip=a"],
            "error: --set: `agent.clip` must be a number",
        ),
        (&["race"], "unrecognized subcommand 'race'"),
    ] {
        let output = podracer(arguments).assert().code(2).get_output().clone();
        assert!(output.stdout.is_empty());
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("panicked") && !message.contains("backtrace"), "{message}");
    }
}

#[test]
fn a_log_level_that_is_none_is_a_mistake() {
    let output =
        podracer(&["list"]).env("PODRACER_LOG", "a=b=c").assert().code(2).get_output().clone();
    assert!(text(&output.stderr).contains("PODRACER_LOG is `a=b=c`"));
}

#[test]
fn a_plugin_that_is_missing_or_corrupt_says_what_to_do() {
    let empty = tempfile::tempdir().expect("a folder");
    let file = empty.path().join("xla_cpu_pjrt.so");
    for (path, expected) in
        [("", "podracer plugins install cpu"), (file.to_str().expect("UTF-8"), "xla_cpu_pjrt.so")]
    {
        let output = podracer(&["train", "cartpole-ppo"])
            .current_dir(&empty)
            .env("XDG_CACHE_HOME", empty.path())
            .env("PODRACER_PLUGIN_PATH", path)
            .assert()
            .code(1)
            .get_output()
            .clone();
        let message = text(&output.stderr);
        assert!(message.starts_with("error: ") && message.contains(expected), "{message}");
        fs::write(&file, "no library").expect("a file");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let script =
        format!("{} list | true; test ${{PIPESTATUS[0]}} = 0", env!("CARGO_BIN_EXE_podracer"));
    Command::new("bash").args(["-c", &script]).assert().success();
}

#[test]
fn standard_output_that_is_full_is_a_failure() {
    let script = format!("{} list >/dev/full", env!("CARGO_BIN_EXE_podracer"));
    let output = Command::new("bash").args(["-c", &script]).assert().code(1).get_output().clone();
    assert!(
        text(&output.stderr).contains("cannot write to standard output: No space left on device")
    );
}

/// Three devices on any machine: one acts, two learn. The seed decides the parameters.
#[test]
fn sebulba_trains_on_the_devices_that_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let train = |run: &str| -> serde_json::Value {
        let output = podracer(&[
            "train",
            "cartpole-sebulba-ppo",
            "--steps=256",
            "--actors=0",
            "--learners=1,2",
            "--set=agent.hidden=[8]",
            "--set=sebulba.environments=4",
            "--set=sebulba.unroll=8",
            "--set=sebulba.iterations_per_call=2",
            "--json",
        ])
        .args(["--run-dir", run])
        .current_dir(&folder)
        .assert()
        .success()
        .get_output()
        .clone();
        let json = text(&output.stdout);
        serde_json::from_str(json.trim()).expect("a JSON object")
    };
    let result = train("once");
    assert_eq!(
        (&result["devices"], &result["iterations"], &result["env_steps"]),
        (&3.into(), &4.into(), &256.into())
    );
    assert_eq!(train("again")["params_sha256"], result["params_sha256"]);
    let seconds = &result["seconds_of_threads"];
    for spent in [
        "actor thread 1 (cpu:0): inference",
        "actor thread 0 (cpu:0): environment",
        "the learner: iteration",
    ] {
        assert!(seconds[spent].as_f64() > Some(0.0), "{spent}: {seconds}");
    }
    let file = |name: &str| {
        let path = folder.path().join("once").join(name);
        fs::read_to_string(path).expect("the run has left it")
    };
    assert!(file("config.toml").contains("learners = [1, 2]"));
    let metrics = file("metrics.jsonl");
    let lines: Vec<serde_json::Value> =
        (metrics.lines()).map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let lags: Vec<_> = lines.iter().map(|line| line["parameter_lag"].as_f64()).collect();
    assert_eq!(lags, [Some(0.0), Some(1.0), Some(1.0), Some(1.0)]);
    assert!(lines[1]["actor_0/inference"].as_f64() > Some(0.0), "{metrics}");
    assert!(lines[1]["learner/iteration"].as_f64() > Some(0.0), "{metrics}");
}

#[test]
fn one_device_acts_and_learns_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = podracer(&[
        "train",
        "cartpole-sebulba-ppo",
        "--steps=1",
        "--devices=1",
        "--set=agent.hidden=[8]",
        "--set=sebulba.unroll=4",
        "--set=sebulba.iterations_per_call=1",
    ])
    .current_dir(&folder)
    .assert()
    .success()
    .get_output()
    .clone();
    let said = text(&output.stderr);
    assert!(said.contains("warning: device 0 both acts and learns"), "{said}");
    assert!(said.contains("actors: "), "{said}");
}

#[test]
fn an_export_takes_the_parameters_of_a_folder_that_has_some() {
    let folder = tempfile::tempdir().expect("a folder");
    let export = |experiment: &str, output: &str, more: &[&str]| {
        let mut command = podracer(&["export", experiment, "-o", output]);
        command.args(more).current_dir(&folder).assert()
    };
    let small = ["--set", "agent.hidden=[4]"];
    let first = export("catch-online", "first", &small).success();
    let (out, err) = (text(&first.get_output().stdout), text(&first.get_output().stderr));
    assert!(out.contains("first/act.mlir: an action drawn from the policy"), "{out}");
    assert!(err.contains("an untrained agent, seed 0; --run RUN"), "{err}");
    let again = ["--set", "agent.hidden=[4]", "--run", "first"];
    export("catch-online", "second", &again).success();
    let parameters = |name: &str| fs::read(folder.path().join(name).join("parameters.safetensors"));
    assert_eq!(
        parameters("second").expect("it is there"),
        parameters("first").expect("it is there")
    );
    for (output, more, expected) in [
        ("first", &again[..], "`first` holds an export already"),
        ("third", &["--run", "first"], "`podracer export RUN/config.toml --run RUN` exports"),
        (
            "third",
            &["--run", "nowhere"],
            "cannot read parameters from `nowhere/parameters.safetensors`",
        ),
    ] {
        let output = export("catch-online", output, more).code(2).get_output().clone();
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
    }
}

/// An export has the parameters that the run has trained, or says which it has.
#[test]
fn parameters_that_are_not_those_of_the_result_are_not_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    for experiment in ["catch-ppo", "cartpole-sebulba-ppo"] {
        let run = folder.path().join(experiment);
        let run = run.to_str().expect("UTF-8");
        let small = "--set=agent.hidden=[8]";
        let train = ["train", experiment, "--steps=4096", small, "--run-dir", run];
        podracer(&train).assert().success();
        let exported = |name: &str| {
            let folder = folder.path().join(format!("{experiment}-{name}"));
            let config = format!("{run}/config.toml");
            let folder = folder.to_str().expect("UTF-8");
            let export = podracer(&["export", &config, "--run", run, "-o", folder]).output();
            let output = export.expect("the program runs");
            let parameters = fs::read(format!("{folder}/parameters.safetensors")).ok();
            (output.status.code(), text(&output.stderr), parameters)
        };
        let (code, said, whole) = exported("whole");
        assert!(code == Some(0) && !said.contains("warning"), "{said}");
        let path = format!("{run}/parameters.safetensors");
        let mut flipped = fs::read(&path).expect("the run has left it");
        *flipped.last_mut().expect("it is not empty") ^= 0x10;
        fs::write(&path, flipped).expect("it is written");
        let (code, said, parameters) = exported("damaged");
        assert_eq!(code, Some(0), "{said}");
        for part in ["warning: the parameters in `", "result.json` says", "are taken"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(parameters == whole, "the last checkpoint has them too");
        fs::remove_file(&path).expect("it is there");
        assert!(exported("missing").2 == whole);
        fs::remove_dir_all(format!("{run}/checkpoints")).expect("they are there");
        let (code, said, _) = exported("nothing");
        assert_eq!(code, Some(2), "{said}");
        for part in ["parameters.safetensors`: No such file", "there is no checkpoint in `"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = podracer(&["completions", shell]).assert().success().get_output().clone();
        let printed = text(&output.stdout);
        assert!(printed.contains("resume") && printed.contains("learners"), "{printed}");
    }
    let script = format!(
        "source <({} completions bash); complete -p podracer",
        env!("CARGO_BIN_EXE_podracer")
    );
    Command::new("bash").args(["-c", &script]).assert().success();
}
