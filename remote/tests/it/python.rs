//! The worker of `examples/worker.py`, which uses only the `.proto` and nothing from podracer.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Learner, Place, cartpole_run, lean};
use podracer_test_support::skip::skip;

/// It is started before the learner, and stays when the learner stops and comes back.
#[test]
fn a_worker_in_python_works_and_comes_back() {
    let python = std::env::var("PODRACER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = Command::new(&python).args(["-P", "-c", "import grpc_tools, numpy"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip(
            "no grpcio-tools: `make test` installs it, and PODRACER_PYTHON names a Python that has it",
        );
    }
    let place = Place::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/worker.py");
    let worker = Command::new(&python)
        .args([script, &place.address().to_string(), "--environments=8", "--steps=300"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was there a moment ago");
    thread::sleep(Duration::from_millis(500));
    let patience = Duration::from_secs(60);
    let first = Learner::start(&place.options(), cartpole_run(), lean, true);
    first.wait_for(patience, "it steps", |seen| seen.environment_steps > 8 * 50);
    drop(first);
    let second = Learner::start(&place.options(), cartpole_run(), lean, true);
    second.wait_for(patience, "it is back, and done", |seen| seen.left.len() == 1);
    let output = worker.wait_with_output().expect("it ends");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert_eq!(out.matches("run run-1: lanes 0 to 7").count(), 2, "{out}\n{err}");
    assert!(out.contains("complete after 300 steps"), "{out}\n{err}");
    assert!(err.contains("UNAVAILABLE: the learner stops"), "{err}");
    second.look(|seen| {
        assert_eq!(seen.left, ["it said goodbye"]);
        let ended = seen.steps[&0].iter().any(|step| step.terminated.contains(&1));
        assert!(ended, "episodes end, with their last observations");
    });
}
