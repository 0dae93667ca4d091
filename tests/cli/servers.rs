//! Whole runs in environment servers that do not do their part. The servers are Python without any package.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use podracer::envs::host::Random;
use serde_json::{Value, json};

use super::signals::{send, soon_over, wait_for};
use super::{command, text};

/// In place of Python: environments of `fake_server.py`, with a fault.
fn python(folder: &Path, fault: &str, at: usize) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("envs");
    let configuration = json!({
        "name": "fake", "server": tests.join("src/host/server/server.py"), "length": 4, "truncates": true,
        "fault": fault, "at": at, "once": folder.join("once"),
    });
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

/// A run of so many steps in these environments.
fn train(folder: &Path, python: &Path, steps: &str, more: &[&str]) -> std::process::Command {
    let mut train = command(&["train", "halfcheetah-ppo", "--json", steps]);
    train.args([
        "--set=sebulba.environments=4",
        "--set=sebulba.unroll=16",
        "--set=sebulba.updates_per_call=1",
        "--set=agent.hidden=[8]",
        "--set=agent.epochs=1",
        "--set=agent.minibatches=1",
    ]);
    let python = format!("--set=environment.python={}", python.display());
    train.args(more).arg(python).arg("--run-dir");
    train.arg(folder.join("run"));
    train.stdout(Stdio::piped()).stderr(Stdio::piped());
    train
}

/// The restarts that the metrics speak of.
fn recorded(folder: &Path) -> f64 {
    let metrics = fs::read_to_string(folder.join("run/metrics.jsonl")).expect("metrics");
    let line = |line| serde_json::from_str::<Value>(line).expect("a JSON object");
    let restarts = metrics
        .lines()
        .filter_map(|text| line(text)["environment_restarts"].as_f64());
    restarts.sum()
}

#[test]
fn a_restart_is_a_warning_a_metric_and_in_the_result() {
    for fault in ["die", "another step"] {
        let folder = tempfile::tempdir().expect("a folder");
        let python = python(folder.path(), fault, 20);
        let output = train(folder.path(), &python, "--steps=2048", &[])
            .output()
            .expect("the program runs");
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

/// A server that sleeps for longer than a step may take, over and over: the run ends, with what is left of it.
#[test]
fn a_server_that_does_not_answer_any_more_ends_the_run_with_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let python = python(folder.path(), "sleep", 40);
    let more = [
        "--set=environment.step_seconds=1",
        "--set=environment.restarts=0",
        "--set=train.checkpoint_every=1",
    ];
    let output = train(folder.path(), &python, "--steps=1000000", &more)
        .output()
        .expect("the program runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [
        "was stopped by its environments: environment server 0",
        "it did not answer for 1 s",
        "` goes on after ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
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

/// Servers of a run under way are killed at random moments, `PODRACER_KILLS` times. The run goes on, and counts them.
#[test]
fn a_run_goes_on_whose_servers_are_killed() {
    let kills = std::env::var("PODRACER_KILLS").map(|kills| kills.parse().expect("a number"));
    let kills: usize = kills.unwrap_or(4);
    let folder = tempfile::tempdir().expect("a folder");
    let python = python(folder.path(), "", 0);
    let restarts = format!("--set=environment.restarts={kills}");
    let mut run = train(folder.path(), &python, "--steps=1000000000", &[&restarts])
        .spawn()
        .expect("the program runs");
    let metrics = folder.path().join("run/metrics.jsonl");
    let mut random = Random::from_state(u64::from(run.id()));
    let mut written = 0;
    for _ in 0..kills {
        // It has gone on since the last one.
        wait_for("an update", || {
            let length = fs::metadata(&metrics).map_or(0, |file| file.len());
            std::mem::replace(&mut written, length) < length
        });
        std::thread::sleep(Duration::from_secs_f32(random.range(0.0, 0.2)));
        let servers = servers(&run);
        let victim = servers.get(random.range(0.0, servers.len() as f32) as usize);
        send("KILL", *victim.expect("it has servers"));
        wait_for("a restart", || {
            self::servers(&run).len() >= 2 && self::servers(&run) != servers
        });
    }
    // A restart is counted when the trajectory is acted that it fell into.
    wait_for("the last restart among the metrics", || {
        let lines = fs::read_to_string(&metrics).unwrap_or_default();
        let lines = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let counted = lines.filter_map(|line: Value| line["environment_restarts"].as_f64());
        counted.sum::<f64>() >= kills as f64
    });
    let left = servers(&run);
    send("INT", run.id());
    soon_over(&mut run);
    let output = run.wait_with_output().expect("a child");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a JSON object");
    assert_eq!(result["environment_restarts"], kills);
    for server in left {
        let status = format!("/proc/{server}/status");
        wait_for("its end", || {
            fs::read_to_string(&status).map_or(true, |status| status.contains("State:\tZ"))
        });
    }
}
