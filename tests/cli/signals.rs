//! Ctrl-C and SIGTERM at any moment: the process soon ends, prints the remains of the run, and
//! leaves no other process behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::{command, text};

/// Longer than what ends soon may take on a machine that does much else.
const SOON: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

pub fn send(signal: &str, process: u32) {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, &process.to_string()]);
    // It may have ended by itself a moment ago.
    let _ = kill.stderr(Stdio::null()).status().expect("kill runs");
}

/// The status of a process that must end soon.
pub fn soon_over(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > until {
            child.kill().expect("it can be killed");
            panic!("it does not end within {SOON:?}");
        }
        std::thread::sleep(LOOK);
    }
}

pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + 2 * SOON;
    while !there() {
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(LOOK);
    }
}

pub fn spawned(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("the program runs")
}

/// Sends the signal, and returns standard output and standard error.
pub fn stopped(mut child: Child, signal: &str) -> (String, String) {
    send(signal, child.id());
    let status = soon_over(&mut child);
    let output = child.wait_with_output().expect("a child");
    let said = text(&output.stderr);
    assert_eq!(status.code(), Some(130), "{said}");
    (text(&output.stdout).to_owned(), said.to_owned())
}

/// Waits until a process is gone.
pub fn gone(process: u32) {
    let status = format!("/proc/{process}/status");
    wait_for("its end", || {
        // No parent may be left to wait for it.
        fs::read_to_string(&status).map_or(true, |status| status.contains("State:\tZ"))
    });
}

/// A program that writes its number to the file `pid` of the folder and sleeps.
fn sleeper(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (program, pid) = (folder.join(name), folder.join("pid"));
    let script =
        format!("#!/bin/sh\necho $$ > {0}.new; mv {0}.new {0}; exec sleep 600\n", pid.display());
    fs::write(&program, script).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    (program, pid)
}

/// The number that it has written.
fn written(pid: &Path) -> u32 {
    let pid = fs::read_to_string(pid).expect("it has begun");
    pid.trim().parse().expect("a number")
}

#[test]
fn while_it_installs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, pid) = sleeper(folder.path(), "python3");
    let path = std::env::var("PATH").expect("a path");
    let child = spawned(
        command(&["envs", "install", "gymnasium"])
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .env("XDG_CACHE_HOME", folder.path().join("cache")),
    );
    wait_for("pip", || pid.exists());
    let (_, said) = stopped(child, "TERM");
    assert!(said.trim().ends_with("\nstopped"), "{said}");
    gone(written(&pid));
}

/// A server that does not report its environments.
#[test]
fn while_it_starts_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let (python, pid) = sleeper(folder.path(), "python");
    let set = format!("--set=environment.python={}", python.display());
    let run = folder.path().join("run");
    let child = spawned(command(&["train", "halfcheetah-ppo", &set, "--run-dir"]).arg(&run));
    wait_for("the server", || pid.exists());
    let (_, said) = stopped(child, "INT");
    assert!(said.contains("stopped"), "{said}");
    gone(written(&pid));
}

/// Interrupts a run while it compiles a network that no cache has.
#[test]
fn while_it_compiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let units = format!("--set=agent.hidden=[{}]", 100 + std::process::id() % 1000);
    let child = spawned(command(&["train", "breakout-impala", &units, "--run-dir"]).arg(&run));
    // The first message comes right before the compilation.
    wait_for("a message", || run.join("messages.jsonl").exists());
    let (_, said) = stopped(child, "INT");
    assert!(said.contains("stopped; there is no checkpoint to resume from yet"), "{said}");
}

#[test]
fn while_it_acts_learns_and_evaluates() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let train = [
        "train",
        "cartpole-sebulba-ppo",
        "--steps=1000000000",
        "--set=agent.hidden=[8]",
        "--set=sebulba.iterations_per_call=1",
        "--json",
        "--run-dir",
    ];
    let child = spawned(command(&train).arg(&run));
    let metrics = run.join("metrics.jsonl");
    wait_for("an iteration", || fs::metadata(&metrics).is_ok_and(|file| file.len() > 0));
    let (printed, said) = stopped(child, "INT");
    assert!(said.contains("stopping after this call"), "{said}");
    assert!(said.contains("` continues"), "{said}");
    let result: Value = serde_json::from_str(&printed).expect("a JSON object");
    assert_eq!(result["interrupted"], true);

    let mut eval = command(&["eval", "--episodes=1000000000", "--json"]);
    let child = spawned(eval.arg(&run));
    // It has nothing to show before its end; by then it plays, or is about to.
    std::thread::sleep(Duration::from_secs(2));
    stopped(child, "TERM");
}

/// A run that `nohup` has started continues when its terminal closes, and stops at the other
/// signals.
#[test]
fn nohup_shields_from_a_hangup() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let mut train = command(&["train", "catch-ppo", "--steps=1000000000", "--run-dir"]);
    train.arg(&run);
    let mut shielded = Command::new("nohup");
    shielded.arg(train.get_program()).args(train.get_args());
    for (name, value) in train.get_envs() {
        match value {
            Some(value) => shielded.env(name, value),
            None => shielded.env_remove(name),
        };
    }
    let child = spawned(shielded.stdin(Stdio::null()));
    let metrics = run.join("metrics.jsonl");
    let size = || fs::metadata(&metrics).map_or(0, |file| file.len());
    wait_for("an iteration", || size() > 0);
    send("HUP", child.id());
    let before = size();
    wait_for("another iteration", || size() > 2 * before);
    let (_, said) = stopped(child, "TERM");
    assert!(said.contains("` continues"), "{said}");
}

/// True once a process has a handler for SIGTERM: before that, a trial has asked the kernel to end it with its parent.
fn handles_sigterm(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (Signal::TERM.as_raw() - 1) & 1 == 1)
}

/// The file of processes that `tune` has started: one trial at a time.
fn trial(tune: &Child) -> Option<u32> {
    let id = tune.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn while_it_tunes() {
    for signal in ["TERM", "KILL"] {
        let mut tune = spawned(&mut command(&[
            "tune",
            "cartpole-ppo",
            "--try=anakin.environments=4",
            "--seconds=600",
        ]));
        let mut found = None;
        wait_for("a trial", || {
            found = trial(&tune);
            found.is_some()
        });
        wait_for("the trial's handlers", || found.is_some_and(handles_sigterm));
        if signal == "TERM" {
            let (_, said) = stopped(tune, signal);
            assert!(said.contains("stopped; nothing is written"), "{said}");
        } else {
            tune.kill().expect("it can be killed");
            tune.wait().expect("a child");
        }
        gone(found.expect("a trial"));
    }
}

/// The signals that a thread does not take, as the bits of a mask, with the thread's name.
fn masks(process: u32) -> Vec<(String, u64)> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let mask = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let of = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim());
        Some((of("Name:")?.to_owned(), u64::from_str_radix(of("SigBlk:")?, 16).ok()?))
    };
    threads.flatten().filter_map(mask).collect()
}

/// A kernel of XLA's matrix products keeps something else in the register of the stack, where the system would write a signal's frame.
#[test]
fn signals_reach_the_thread_that_listens_and_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let train = [
        &["train", "catch-ppo", "--steps=100M", "--set=train.checkpoint_every=1", "--run-dir"][..],
        &[run.to_str().expect("UTF-8")],
    ]
    .concat();
    let child = spawned(&mut command(&train));
    wait_for("a checkpoint", || run.join("checkpoints").is_dir());
    const STOP: u64 = 1 << (2 - 1) | 1 << (15 - 1);
    let masks = masks(child.id());
    assert!(masks.len() > 3, "{masks:?}");
    for (name, mask) in &masks {
        let expected = if name == "signals" { 0 } else { STOP };
        assert_eq!(mask & STOP, expected, "{name}: {masks:?}");
    }
    stopped(child, "INT");
}
