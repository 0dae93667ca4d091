//! Whole runs in environment servers that do not do their part. The servers are Python without any package.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use podracer::envs::host::Random;
use serde_json::{Value, json};

use super::resume::{has_checkpoint, kills};
use super::signals::{gone, send, soon_over, spawned, wait_for};
use super::{command, text};

/// In place of Python: environments of `fake_server.py`, with a fault.
fn python(folder: &Path, fault: &str, at: usize) -> PathBuf {
    python_with(folder, json!({ "fault": fault, "at": at }))
}

/// With more details of the fault.
fn python_with(folder: &Path, mut configuration: Value) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("envs");
    configuration["server"] = json!(tests.join("src/host/server/server.py"));
    configuration["once"] = json!(folder.join("once"));
    for (key, value) in [("name", json!("fake")), ("length", json!(4)), ("truncates", json!(true))]
    {
        configuration[key] = value;
    }
    let script = format!(
        "#!/usr/bin/env python3\nimport json, os, sys\nconfiguration = json.loads('{configuration}')\n\
         configuration['environments'] = json.loads(sys.argv[4])['environments']\n\
         source = open('{}').read()\n\
         os.execvp('python3', ['python3', '-u', '-c', source, json.dumps(configuration)])\n",
        tests.join("tests/it/fake_server.py").display()
    );
    let python = folder.join("python");
    fs::write(&python, script).expect("a script");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a program");
    python
}

/// A run with `steps` steps in these environments.
fn train(folder: &Path, python: &Path, steps: &str, more: &[&str]) -> std::process::Command {
    let mut train = command(&["train", "halfcheetah-ppo", "--json", steps]);
    train.args([
        "--set=sebulba.environments=4",
        "--set=sebulba.unroll=16",
        "--set=sebulba.iterations_per_call=1",
        "--set=agent.hidden=[8]",
        "--set=agent.epochs=1",
        "--set=agent.minibatches=1",
    ]);
    let python = format!("--set=environment.python={}", python.display());
    train.args(more).arg(python).arg("--run-dir");
    train.arg(folder.join("run"));
    train
}

/// The number of restarts in the metrics, ignoring an incomplete line.
fn recorded(folder: &Path) -> f64 {
    let metrics = fs::read_to_string(folder.join("run/metrics.jsonl")).unwrap_or_default();
    let lines = metrics.lines().filter_map(|line| serde_json::from_str(line).ok());
    let restarts = lines.filter_map(|line: Value| line["environment_restarts"].as_f64());
    restarts.sum()
}

#[test]
fn a_restart_is_a_warning_a_metric_and_in_the_result() {
    for fault in ["die", "another step"] {
        let folder = tempfile::tempdir().expect("a folder");
        let python = python(folder.path(), fault, 20);
        let output =
            train(folder.path(), &python, "--steps=2048", &[]).output().expect("the program runs");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        let result: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
        assert_eq!(result["environment_restarts"], 1);
        assert_eq!(recorded(folder.path()), 1.0);
        for part in [
            "is restarted (1 of 10 times), with fresh episodes in its 4 environments",
            "; environments started again: 1",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

/// Within the time that a step may take it is waited for; `PODRACER_SLEEP` says for how many seconds it sleeps.
#[test]
fn a_server_that_sleeps_is_waited_for_or_restarted() {
    let seconds = std::env::var("PODRACER_SLEEP").map(|sleep| sleep.parse().expect("a number"));
    let seconds = seconds.unwrap_or(2);
    for (step_seconds, restarts) in [(30 + seconds, 0), (seconds / 2, 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = json!({ "fault": "sleep", "at": 40, "seconds": seconds });
        let python = python_with(folder.path(), fault);
        let more = [
            &format!("--set=environment.step_seconds={step_seconds}"),
            "--set=sebulba.patience=300",
        ];
        let began = Instant::now();
        let output = train(folder.path(), &python, "--steps=2048", &more)
            .output()
            .expect("the program runs");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(began.elapsed() > Duration::from_secs(step_seconds.min(seconds)));
        let result: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
        assert_eq!(result["environment_restarts"], restarts, "{said}");
        let silent = format!("it did not answer for {step_seconds} s");
        assert_eq!(said.contains(&silent), restarts > 0, "{said}");
    }
}

/// Reasons that end a run when its server does not come back: it may not be restarted, the
/// watchdog is less patient than the server's client, or the user asks twice to stop. The servers
/// are gone then, and the last checkpoint is good.
#[test]
fn a_server_that_does_not_answer_any_more_ends_the_run_with_a_checkpoint() {
    for (step_seconds, patience, signals, expected) in [
        (
            1,
            60,
            0,
            &["was stopped by its environments: environment server 0", "it did not answer for 1 s"]
                [..],
        ),
        (
            3600,
            2,
            0,
            &[
                "nothing happened for 2 s, the run's `patience`: ",
                "steps its environments (for ",
                "the learner waits for a trajectory of actor thread ",
            ],
        ),
        (3600, 3600, 2, &["stopping after this call", "\nstopped; "]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let python = python(folder.path(), "sleep", 60);
        let more = [
            &format!("--set=environment.step_seconds={step_seconds}"),
            &format!("--set=sebulba.patience={patience}"),
            "--set=environment.restarts=0",
            "--set=train.checkpoint_every=1",
        ];
        let mut run = spawned(&mut train(folder.path(), &python, "--steps=1000000", &more));
        wait_for("the fault", || folder.path().join("once").exists());
        let left = servers(&run);
        for _ in 0..signals {
            // The first signal is handled after the present call, which never ends.
            std::thread::sleep(Duration::from_millis(300));
            send("INT", run.id());
        }
        let status = soon_over(&mut run);
        let output = run.wait_with_output().expect("a child");
        let said = text(&output.stderr);
        let code = if signals > 0 { 130 } else { 1 };
        assert_eq!(status.code(), Some(code), "{said}");
        for part in expected.iter().chain(&["` resumes after "]) {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(left.len() >= 2, "{left:?}");
        left.into_iter().for_each(gone);
        goes_on(folder.path());
    }
}

/// A restarted server has spaces other than its client's run.
#[test]
fn a_server_that_comes_back_with_other_shapes_ends_the_run_with_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = python(folder.path(), "other shape", 0);
    let every = ["--set=train.checkpoint_every=1"];
    let steps = "--steps=1000000000";
    let mut run = spawned(&mut train(folder.path(), &python, steps, &every));
    wait_for("a checkpoint", || has_checkpoint(&folder.path().join("run")));
    let once = folder.path().join("once");
    fs::write(&once, "").expect("written");
    send("KILL", servers(&run)[0]);
    let status = soon_over(&mut run);
    let output = run.wait_with_output().expect("a child");
    let said = text(&output.stderr);
    assert_eq!(status.code(), Some(1), "{said}");
    for part in ["it answers nonsense: it serves other spaces than before", "` resumes after "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    fs::remove_file(once).expect("it is there");
    goes_on(folder.path());
}

/// The last checkpoint is good: the run resumes from it.
fn goes_on(folder: &Path) {
    let run = folder.join("run");
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).expect("metrics");
    let last: Value =
        serde_json::from_str(metrics.lines().last().expect("an iteration")).expect("a JSON object");
    let steps = last["env_steps"].as_u64().expect("a number") + 1024;
    let mut resume = command(&["resume", "--json", "--steps", &steps.to_string()]);
    // The run's config.toml names the interpreter.
    let output = resume
        .arg(run)
        .env("PODRACER_TRUST", folder.join("python"))
        .output()
        .expect("the program runs");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert!(result["resumed_from_iteration"].as_u64() > Some(0), "{said}");
    assert_eq!(result["interrupted"], false);
}

/// Bytes of metrics that the run has written.
fn written(folder: &Path) -> u64 {
    fs::metadata(folder.join("run/metrics.jsonl")).map_or(0, |file| file.len())
}

fn servers(run: &Child) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{}/task", run.id()));
    let children = tasks
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let numbers = children.collect::<Vec<_>>().join(" ");
    let numbers = numbers.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Servers of a running training are killed at random moments, `PODRACER_KILLS` times. The run
/// continues, and counts them. When it is stopped or killed itself, nothing is left: no process,
/// and no memory, which has no name.
#[test]
fn a_run_goes_on_whose_servers_are_killed() {
    let (kills, began) = (kills(), Instant::now());
    for signal in ["INT", "KILL"] {
        let folder = tempfile::tempdir().expect("a folder");
        let python = python(folder.path(), "", 0);
        let restarts = format!("--set=environment.restarts={kills}");
        let mut run =
            spawned(&mut train(folder.path(), &python, "--steps=1000000000", &[&restarts]));
        let mut random = Random::from_state(u64::from(run.id()));
        let mut before = 0;
        let mut goes_on = || {
            wait_for("an iteration", || {
                let length = written(folder.path());
                std::mem::replace(&mut before, length) < length
            });
        };
        goes_on();
        for _ in 0..kills {
            // Else one may be killed that starts in the place of the last.
            if random.range(0.0, 1.0) < 0.5 {
                goes_on();
            }
            std::thread::sleep(Duration::from_secs_f32(random.range(0.0, 0.2)));
            let servers = servers(&run);
            let victim = servers.get(random.range(0.0, servers.len() as f32) as usize);
            send("KILL", *victim.expect("it has servers"));
            wait_for("a restart", || {
                self::servers(&run).len() >= 2 && self::servers(&run) != servers
            });
        }
        // A restart is counted when the trajectory is acted that it fell into.
        wait_for("the last restart among the metrics", || recorded(folder.path()) >= kills as f64);
        let left = servers(&run);
        for server in &left {
            let maps = || fs::read_to_string(format!("/proc/{server}/maps")).unwrap_or_default();
            let shared = "/memfd:podracer-environments (deleted)";
            wait_for("shared memory", || maps().contains(shared));
            assert!(!maps().contains("/dev/shm"), "{}", maps());
        }
        send(signal, run.id());
        soon_over(&mut run);
        let output = run.wait_with_output().expect("a child");
        if signal == "INT" {
            let result: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
            assert_eq!(result["environment_restarts"], kills);
        }
        left.into_iter().for_each(gone);
    }
    eprintln!("{} kills, {:.0} s", 2 * kills, began.elapsed().as_secs_f64());
}

/// Plays at random in environments of `fake_server.py` with pictures of this size, or with a reason
/// why there are none.
fn play(folder: &Path, picture: &Value, gif: &Path) -> std::process::Command {
    let configuration = json!({ "fault": "", "at": 0, "picture": picture, "drawn": 2 });
    let python = python_with(folder, configuration);
    let mut play = command(&["play", "gymnasium", "--random"]);
    play.arg(format!("--set=environment.python={}", python.display())).arg("--gif").arg(gif);
    play
}

/// The table of an environment that is played without an experiment lacks the settings that are not given.
#[test]
fn environments_in_servers_are_played_by_their_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fake.gif");
    let output = play(folder.path(), &json!([2, 5]), &file).output().expect("it ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(", 4 steps, terminated"), "{}", text(&output.stdout));
    let options = gif::DecodeOptions::new();
    let file = fs::File::open(file).expect("it was written");
    let mut decoder = options.read_info(file).expect("a GIF");
    assert_eq!((decoder.width(), decoder.height()), (320, 128 + 26), "with a caption");
    let mut pictures = 0;
    while decoder.read_next_frame().expect("a frame").is_some() {
        pictures += 1;
    }
    assert_eq!(pictures, 5, "a first picture, and one after each step");
}

#[test]
fn a_server_without_pictures_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fake.gif");
    let output = play(folder.path(), &json!("its light is out"), &file).output();
    let output = output.expect("it ends");
    let expected = "there is no picture of the environment: its light is out, and its observation, f32[2], is neither an image \
                    nor a board\n";
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).ends_with(expected), "{}", text(&output.stderr));
    assert!(!file.exists());
}
