//! `podracer work` and `podracer certificates`: their files, their messages, and their ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use podracer::envs::Space;
use podracer::envs::host::HostSpec;
use podracer_remote::server::{Server, ServerOptions};
use podracer_remote::{Address, RunDescription, Security};

use super::signals::{send, soon_over, spawned};
use super::{command, podracer, text};

/// A learner without a model, with a run in this environment.
fn learner(
    listen: Address,
    security: Option<Security>,
    environment: &str,
    settings: &str,
) -> Server {
    let run = RunDescription {
        id: "a run".to_owned(),
        environment: environment.to_owned(),
        settings: settings.to_owned(),
        spec: HostSpec {
            truncates: true,
            ..HostSpec::new(4, Space::unbounded([4]), Space::discrete(2))
        },
        unroll: 8,
    };
    let options = ServerOptions::new(listen, security);
    Server::start(&options, run, 1).expect("the server starts").0
}

/// Message of a worker that ends as a mistake of the user.
#[track_caller]
fn mistaken(arguments: &[&str]) -> String {
    let arguments = [&["work", "--environments", "2"], arguments].concat();
    let output = podracer(&arguments).assert().code(2).get_output().clone();
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn certificates_are_made_once_and_are_their_owners_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = || {
        let mut command = podracer(&["certificates", "new", "keys", "--host", "learner.example"]);
        command.current_dir(&folder);
        command
    };
    let output = new().assert().success().get_output().clone();
    let files = ["ca.pem", "ca.key", "learner.pem", "learner.key", "worker.pem", "worker.key"];
    let keys = folder.path().join("keys");
    let contents = || files.map(|name| fs::read(keys.join(name)).expect("it was made"));
    let printed: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(printed, files.map(|name| format!("keys/{name}")));
    for name in files {
        let mode = fs::metadata(keys.join(name)).expect("it was made").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(text(&output.stderr).contains("a worker's machine needs ca.pem"));
    let before = contents();
    let again = new().assert().code(2).get_output().clone();
    assert!(text(&again.stderr).contains("keys/ca.pem is there already"));
    assert_eq!(contents(), before);
}

#[test]
fn a_worker_without_a_learner_says_so_and_tries_again_after_longer_pauses() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = format!("unix:{}", folder.path().join("none.sock").display());
    let mut child = spawned(&mut command(&["work", "--connect", &address, "--environments", "1"]));
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut pauses = Vec::new();
    while pauses.len() < 5 {
        let line = lines.next().expect("it goes on trying").expect("it is UTF-8");
        let Some((said, after)) = line.split_once("next attempt in ") else { continue };
        assert!(said.contains(&address) && said.contains("No such file"), "{line}");
        let seconds = after.trim_end_matches(" s").parse::<f64>();
        pauses.push(seconds.expect("a number of seconds"));
    }
    assert!(pauses[0] <= 0.1 && (0.8..=1.6).contains(&pauses[4]), "{pauses:?}");
    send("INT", child.id());
    assert_eq!(soon_over(&mut child).code(), Some(130));
    let last = lines.map_while(Result::ok).last().unwrap_or_default();
    assert_eq!(last, "stopped after 0 steps");
}

#[test]
fn a_worker_with_wrong_arguments_ends_as_a_mistake() {
    let said = mistaken(&["--connect", "nowhere"]);
    assert!(said.contains("`nowhere` is no address: expected unix:PATH or HOST:PORT"), "{said}");
    let said = mistaken(&["--connect", "127.0.0.1:7000"]);
    assert!(said.contains("give --certificates FOLDER") && said.contains("--insecure"), "{said}");
    let said = mistaken(&["--connect", "unix:a.sock", "--batches", "3"]);
    assert!(said.contains("2 environments do not make 3 batches"), "{said}");
}

/// A learner names an interpreter, and the worker's user has not.
#[test]
fn a_worker_runs_no_program_of_the_learners_without_trust() {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = Address::Unix(folder.path().join("a.sock"));
    let settings = r#"{"id": "CartPole-v1", "python": "/opt/anything"}"#;
    let server = learner(listen, None, "gymnasium", settings);
    let said = mistaken(&["--connect", &server.address().to_string()]);
    assert!(said.contains("environment.python") && said.contains("--trust"), "{said}");
    assert!(said.contains("cannot make the environments of the learner at unix:"), "{said}");
}

/// One side has TLS and the other has not.
#[test]
fn a_worker_that_differs_from_its_learner_in_tls_ends_as_a_mistake() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    let keys = keys.to_str().expect("UTF-8");
    podracer(&["certificates", "new", keys]).assert().success();
    let anywhere = || "127.0.0.1:0".parse::<Address>().expect("an address");
    let certified = Some(Security::Certificates(Path::new(keys).to_owned()));
    let server = learner(anywhere(), certified, "cartpole", "{}");
    let said = mistaken(&["--connect", &server.address().to_string(), "--insecure"]);
    assert!(said.contains("answers with TLS, and this worker has none"), "{said}");
    let server = learner(anywhere(), Some(Security::Insecure), "cartpole", "{}");
    let address = server.address().to_string();
    let said = mistaken(&["--connect", &address, "--certificates", keys]);
    assert!(said.contains("does not speak TLS"), "{said}");
}

/// A training that waits for workers is stopped: it writes a checkpoint with its replay on the
/// host, and resumes from it.
#[test]
fn a_learner_that_is_stopped_without_workers_leaves_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = |arguments: &[&str]| {
        let arguments = [&["serve", "--listen", "unix:a.sock"], arguments].concat();
        let mut serve = command(&arguments);
        let serve = serve.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = serve.spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut said = String::new();
        while !said.contains("compiled in") {
            said += &lines.next().expect("it gets to its first call").expect("it is UTF-8");
        }
        send("INT", child.id());
        let status = soon_over(&mut child);
        lines.map_while(Result::ok).for_each(|line| said = format!("{said}\n{line}"));
        assert_eq!(status.code(), Some(130), "{said}");
        assert!(said.contains("`podracer resume run` continues"), "{said}");
        let checkpoints = fs::read_dir(folder.path().join("run/checkpoints")).expect("a folder");
        assert!(checkpoints.count() > 0, "{said}");
    };
    let on_host = "central.replay=\"host\"";
    stopped(&["catch-central-r2d2", "--run-dir", "run", "--set", on_host]);
    stopped(&["run"]);
}
