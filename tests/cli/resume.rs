//! Runs that are stopped by any means, and resume.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use podracer::envs::host::Random;
use rustix::process::Signal;
use serde_json::Value;

use super::signals::{send, soon_over, spawned, stopped, wait_for};
use super::{QUICK, command, text};

/// Number of kills that are asked for, by `PODRACER_KILLS`; else so many as CI has time for.
pub fn kills() -> usize {
    let kills = std::env::var("PODRACER_KILLS").map(|kills| kills.parse().expect("a number"));
    kills.unwrap_or(4)
}

/// The arguments that begin a run.
pub fn train(experiment: &[&str], run: &Path) -> Vec<OsString> {
    let arguments = ["train"].iter().chain(experiment);
    let arguments = arguments.chain(&["--json", "--run-dir"]).map(OsString::from);
    arguments.chain([run.into()]).collect()
}

/// Arguments that resume the run.
pub fn resume(run: &Path) -> Vec<OsString> {
    vec!["resume".into(), run.into(), "--json".into()]
}

/// Waits for the end, and returns the output. A run that did not succeed is an error.
pub fn result(command: &mut Command) -> Value {
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = text(&output.stdout);
    serde_json::from_str(json.trim()).expect("a JSON object")
}

/// The metrics of a run without durations.
fn metrics(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).expect("the run has left it");
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("a JSON object");
        let named = |key: &String| ["seconds", "time", "queued"].contains(&&**key);
        let of_time = |key: &String| named(key) || key.contains('/');
        let line = line.as_object_mut().expect("a JSON object");
        line.retain(|key, _| !of_time(key));
        Value::Object(line.clone())
    });
    lines.collect()
}

/// Repeatedly kills a run at random moments, sometimes stops it in between, and resumes it each
/// time. It ends like the uninterrupted run, with the same metrics, each iteration once.
fn killed_and_resumed(experiment: &[&str]) {
    let (kills, began) = (kills(), Instant::now());
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("alone");
    let expected = result(&mut command(&train(experiment, &alone)));
    assert_eq!(expected["resumed_from_iteration"], Value::Null);
    // Again, now that the programs are in the cache: how long a process takes until it works.
    let again = result(&mut command(&train(experiment, &folder.path().join("again"))));
    assert_eq!(again["params_sha256"], expected["params_sha256"]);
    let seconds = |key: &str| again[key].as_f64().expect("a number") as f32;
    let longest = seconds("first_call_seconds") + seconds("run_seconds") / 2.0;

    let mut random = Random::from_state(u64::from(std::process::id()));
    let (mut killed, mut stopped, mut resumed, mut ended) = (0, 0, 0, 0);
    while killed < kills || resumed == 0 {
        let run = folder.path().join(format!("killed-{ended}"));
        loop {
            let arguments = if has_checkpoint(&run) {
                resumed += 1;
                resume(&run)
            } else {
                let _ = fs::remove_dir_all(&run);
                train(experiment, &run)
            };
            let moment = Duration::from_secs_f32(random.range(0.0, longest));
            let stop = killed > 2 * stopped;
            let signal = if stop { "TERM" } else { "KILL" };
            match killed_after(command(&arguments), moment, signal) {
                Some(status) => {
                    assert!(status.success(), "{status}");
                    break;
                }
                None if stop => stopped += 1,
                None => killed += 1,
            }
        }
        ended += 1;
        let text = fs::read_to_string(run.join("result.json")).expect("the run has left it");
        let came: Value = serde_json::from_str(&text).expect("a JSON object");
        for key in ["params_sha256", "iterations", "env_steps", "episodes", "mean_return"] {
            assert_eq!(came[key], expected[key], "{key} of {}", run.display());
        }
        assert_eq!(metrics(&run), metrics(&alone));
    }
    eprintln!(
        "{}: {killed} kills, {stopped} stops, resumed {resumed} times, {ended} runs, all of them alike; {:.0} s",
        experiment[0],
        began.elapsed().as_secs_f64()
    );
}

/// Waits for a process to end by itself, and returns its status. After this time it is sent the signal; `None` if that ends it.
fn killed_after(mut command: Command, time: Duration, signal: &str) -> Option<ExitStatus> {
    let until = Instant::now() + time;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    send(signal, child.id());
    let status = soon_over(&mut child);
    // Asked to stop before it listens it ends by the signal.
    let by_signal = [Some(Signal::KILL.as_raw()), Some(Signal::TERM.as_raw())];
    let stopped = by_signal.contains(&status.signal()) || status.code() == Some(130);
    (!stopped).then_some(status)
}

pub fn has_checkpoint(run: &Path) -> bool {
    let entries = fs::read_dir(run.join("checkpoints"));
    let whole = |entry: fs::DirEntry| entry.file_name() != "unfinished";
    entries.is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(whole)))
}

/// A small run with one actor device and two learner devices, 64 steps an iteration.
const SEBULBA: [&str; 7] = [
    "cartpole-sebulba-ppo",
    "--actors=0",
    "--learners=1,2",
    "--set=agent.hidden=[8]",
    "--set=sebulba.environments=4",
    "--set=sebulba.unroll=8",
    "--set=sebulba.iterations_per_call=1",
];

#[test]
fn anakin_goes_on_to_the_bit() {
    killed_and_resumed(&[
        "catch-ppo",
        "--steps=100000",
        "--devices=2",
        "--set=agent.hidden=[8]",
        "--set=anakin.iterations_per_call=1",
        "--set=train.checkpoint_every=5",
    ]);
}

/// A prioritized replay, divided over the devices.
#[test]
fn anakin_with_a_replay_goes_on_to_the_bit() {
    killed_and_resumed(&[
        "cartpole-dqn",
        "--steps=24000",
        "--devices=2",
        "--set=agent.hidden=[8]",
        "--set=agent.capacity=2000",
        "--set=agent.minimum=400",
        "--set=agent.batch=16",
        "--set=agent.replay_ratio=1.0",
        "--set=agent.prioritized=true",
        "--set=anakin.iterations_per_call=1",
        "--set=train.checkpoint_every=5",
    ]);
}

#[test]
fn sebulba_goes_on_to_the_bit() {
    killed_and_resumed(
        &[&SEBULBA[..], &["--steps=6400", "--set=train.checkpoint_every=1"]].concat(),
    );
}

/// On policy, on one device, with an LSTM and environments of the DSL.
#[test]
fn sebulba_without_lag_goes_on_to_the_bit() {
    killed_and_resumed(&[
        "memory-impala",
        "--steps=3200",
        "--set=agent.lstm=8",
        "--set=sebulba.environments=4",
        "--set=sebulba.unroll=8",
        "--set=sebulba.lag=0",
        "--set=sebulba.iterations_per_call=1",
        "--set=train.checkpoint_every=1",
    ]);
}

/// A prioritized replay of sequences, with the memories that they begin with.
const REPLAY: [&str; 15] = [
    "memory-r2d2",
    "--steps=3200",
    "--actors=0",
    "--learners=1,2",
    "--set=agent.sequence_length=24",
    "--set=agent.period=8",
    "--set=agent.capacity=1600",
    "--set=agent.minimum=320",
    "--set=agent.batch=4",
    "--set=agent.lstm=8",
    "--set=agent.hidden=[8]",
    "--set=sebulba.environments=4",
    "--set=sebulba.unroll=8",
    "--set=sebulba.iterations_per_call=1",
    "--set=train.checkpoint_every=1",
];

#[test]
fn sebulba_with_a_replay_goes_on_to_the_bit() {
    killed_and_resumed(&REPLAY);
}

#[test]
fn sebulba_with_a_replay_on_the_host_goes_on_to_the_bit() {
    killed_and_resumed(&[&REPLAY[..], &["--set=sebulba.replay=host"]].concat());
}

/// A disk without room is an error before anything is compiled, and a device's replay is not a host's.
#[test]
fn a_replay_on_the_host_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let said = |arguments: &[OsString]| {
        let output = command(arguments).output().expect("the program runs");
        assert!(!output.status.success());
        text(&output.stderr).to_owned()
    };
    let host = [&REPLAY[..], &["--set=sebulba.replay=host"]].concat();
    let large = [&host[..], &["--set=agent.capacity=1000000000", "--set=agent.lstm=512"]].concat();
    let large = said(&train(&large, &run));
    assert!(large.contains("the replay takes ") && large.contains(" are free there"), "{large}");
    let run = folder.path().join("other");
    let begun = [&host[..], &["--set=sebulba.replay_folder=/proc/nothing"]].concat();
    let begun = said(&train(&begun, &run));
    assert!(begun.contains("`/proc/nothing`"), "{begun}");
}

/// A learner that is slower than its actors: they wait for room in its queue, and the run still
/// stops and resumes.
#[test]
fn a_run_with_full_queues_resumes_bit_identically() {
    let folder = tempfile::tempdir().expect("a folder");
    let (alone, run) = (folder.path().join("alone"), folder.path().join("run"));
    let slow =
        ["--steps=1280", "--set=sebulba.lag=4", "--set=sebulba.queue=1", "--set=agent.epochs=1000"];
    let slow = [&SEBULBA[..], &slow].concat();
    let expected = result(&mut command(&train(&slow, &alone)));
    let child = spawned(&mut command(&train(&slow, &run)));
    let waits = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["actor_0/waiting_for_room"].as_f64() > Some(0.5)
    };
    wait_for("a full queue", || {
        fs::read_to_string(run.join("metrics.jsonl")).is_ok_and(|text| text.lines().any(waits))
    });
    let (_, said) = stopped(child, "INT");
    assert!(said.contains("` continues"), "{said}");
    let resumed = result(&mut command(&resume(&run)));
    assert!(resumed["resumed_from_iteration"].as_u64() < Some(20));
    assert_eq!(resumed["params_sha256"], expected["params_sha256"]);
    assert_eq!(metrics(&run), metrics(&alone));
}

/// A small run with `steps` steps.
fn small(folder: &Path, steps: &str) -> Vec<OsString> {
    train(&["catch-ppo", steps, "--set=train.checkpoint_every=16"], folder)
}

/// Ctrl-C does the same as SIGTERM.
#[test]
fn a_signal_stops_a_run_with_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let child = spawned(&mut command(&small(&run, "--steps=1000000000")));
    // Before its first call it has nothing to save.
    wait_for("a checkpoint", || has_checkpoint(&run));
    let (printed, said) = stopped(child, "TERM");
    assert!(said.contains("` continues"), "{said}");
    let stopped: Value = serde_json::from_str(&printed).expect("a JSON object");
    assert_eq!(stopped["interrupted"], true);
    let mut resume = command(&resume(&run));
    let steps = stopped["env_steps"].as_u64().expect("a number") + 16 * 2048;
    let resumed = result(resume.arg("--steps").arg(steps.to_string()));
    assert_eq!(resumed["resumed_from_iteration"], stopped["iterations"]);
    assert_eq!(metrics(&run).len() as u64, resumed["iterations"].as_u64().expect("a number"));
}

/// Files may not grow beyond 32 KiB, which checkpoints do and nothing else. The system's signal would end the process.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_leaves_the_last_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    result(&mut command(&small(&run, "--steps=32768")));
    let script = "ulimit -f 32; exec \"$0\" resume \"$1\" --steps 98304 --json";
    let mut limited = Command::new("bash");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_podracer")]);
    let output = limited.arg(&run).env(QUICK.0, QUICK.1).output().expect("bash runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let way_back = format!("`podracer resume {}` resumes after 16 iterations", run.display());
    for part in [
        "error: no checkpoint after 32 iterations",
        &way_back,
        "checkpoints/unfinished/arrays.safetensors`: File too large",
        "a file of this process may have at most 32768 bytes: raise that limit (`ulimit -f`)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let whole = result(&mut command(&resume(&run)));
    assert_eq!((&whole["resumed_from_iteration"], &whole["iterations"]), (&16.into(), &48.into()));
    assert_eq!(metrics(&run).len(), 48);
}

/// A file of the replay cannot grow any more: the run ends, and later resumes from its last
/// checkpoint.
#[test]
fn a_replay_on_the_host_that_cannot_be_written_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = [
        "--set=sebulba.replay=host",
        "--set=agent.capacity=400000",
        "--steps=12800",
        "--set=train.checkpoint_every=50",
    ];
    // Except for its number of steps.
    let settings = [&REPLAY[..1], &REPLAY[2..], &settings[..]].concat();
    let expected = result(&mut command(&train(&settings, &folder.path().join("alone"))));
    let run = folder.path().join("run");
    let mut limited = Command::new("bash");
    limited.args(["-c", "ulimit -f 256; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_podracer")]);
    limited.args(train(&settings, &run)).env(QUICK.0, QUICK.1);
    let output = limited.output().expect("bash runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in
        ["the replay was stopped: cannot write the replay into the folder `", "File too large"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let whole = result(&mut command(&resume(&run)));
    assert!(whole["resumed_from_iteration"].as_u64() >= Some(50), "{whole}");
    assert_eq!(whole["params_sha256"], expected["params_sha256"]);
}

/// One process at a time works at a run.
#[test]
fn a_run_that_is_under_way_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let mut child = command(&small(&run, "--steps=1000000000"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    wait_for("a checkpoint", || has_checkpoint(&run));
    let output = command(&resume(&run)).output().expect("the program runs");
    child.kill().expect("it can be killed");
    child.wait().expect("a child");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("metrics.jsonl`: the run is under way"), "{said}");
}

#[test]
fn other_learners_go_on_and_other_actors_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("run");
    let size = [&SEBULBA[..], &["--steps=1024"]].concat();
    let done = result(&mut command(&train(&size, &run)));
    let again = |more: &[&str]| {
        let output = command(&resume(&run)).arg("--steps=2048").args(more).output();
        output.expect("the program runs")
    };
    let output = again(&["--actors=0,1", "--learners=2"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("threads of 1 actor device(s), and the run is to resume with 2"),
        "{said}"
    );
    let output = again(&["--learners=1"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("warning: the run learnt on 2 device(s) and resumes with 1"), "{said}");
    let resumed: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert_eq!(resumed["resumed_from_iteration"], done["iterations"]);
    assert_eq!(
        resumed["iterations"].as_u64(),
        done["iterations"].as_u64().map(|iterations| 2 * iterations)
    );
}
