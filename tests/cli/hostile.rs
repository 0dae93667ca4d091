//! `podracer watch` and the readers of runs among clients and files that mean harm.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::signals::{gone, send, wait_for};
use super::watch::{Page, train};
use super::{podracer, text};

/// A training that lasts until the test ends it.
const ENDLESS: [&str; 8] = [
    "train",
    "cartpole-ppo",
    "--steps=1G",
    "--run-dir=run",
    "--watch=127.0.0.1:0",
    "--set=anakin.unroll=32",
    "--set=agent.minibatches=2",
    "--set=anakin.iterations_per_call=2",
];

/// The child processes of a process.
fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children"));
    let children = threads.filter_map(|thread| children(thread).ok()).collect::<Vec<_>>().join(" ");
    children.split_whitespace().map(|child| child.parse().expect("a number")).collect()
}

#[test]
fn a_request_with_a_body_of_petabytes_does_not_end_a_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = Page::of_command(folder.path(), &ENDLESS);
    for length in ["1000000000000000", "9223372036854775807"] {
        let head = format!("GET / HTTP/1.1\r\nHost: evil\r\nContent-Length: {length}\r\n\r\n");
        let (code, _) = page.answer(&head);
        assert!([400, 403].contains(&code), "{length}: {code}");
    }
    // A head that does not end: the connection does.
    let mut endless = page.connect("GET /");
    while endless.write_all(&[b'x'; 1 << 12]).is_ok() {}
    let steps = |page: &Page| page.json("/api/state")["runs"][0]["env_steps"].as_u64().unwrap_or(0);
    let before = steps(&page);
    wait_for("more steps", || steps(&page) > before);
}

#[test]
fn the_end_of_a_page_is_not_that_of_its_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = Page::of_command(folder.path(), &ENDLESS);
    let [server] = children(page.server.id())[..] else { panic!("one child, the page") };
    // As the system ends a process that has no memory left.
    send("KILL", server);
    gone(server);
    let metrics = folder.path().join("run/metrics.jsonl");
    let length = || fs::metadata(&metrics).map_or(0, |file| file.len());
    let before = length();
    wait_for("more metrics", || length() > before);
    let page = Page::of(folder.path(), &["run", "--at", "127.0.0.1:0"]);
    assert_eq!(page.json("/api/state")["runs"][0]["state"], "running");
    drop(page);
}

#[test]
fn a_page_ends_with_its_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = Page::of_command(folder.path(), &ENDLESS);
    let [server] = children(page.server.id())[..] else { panic!("one child, the page") };
    drop(page);
    gone(server);
}

#[test]
fn clients_that_are_slow_or_silent_make_nobody_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("runs/a");
    fs::create_dir_all(run.join("episodes")).expect("a folder");
    fs::write(run.join("config.toml"), "experiment = 'a'").expect("a file");
    let film = File::create(run.join("episodes/000000100.gif")).expect("a file");
    film.set_len(60 << 20).expect("a sparse file");
    let page = Page::of(folder.path(), &["--at", "127.0.0.1:0"]);
    assert_eq!(page.json("/api/state")["runs"][0]["experiment"], "a");
    let head = format!("Host: {}\r\n", page.address);
    let unread = "GET /api/film?run=runs%2Fa&name=000000100.gif HTTP/1.1\r\n";
    let requests = [
        String::new(),
        "GET / HT".to_owned(),
        format!("GET / HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\nhalf"),
        format!("{unread}{head}\r\n"),
    ];
    let _slow: Vec<_> = requests.iter().cycle().take(12).map(|half| page.connect(half)).collect();
    let asked = Instant::now();
    assert_eq!(page.get("/api/state").0, 200);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    // A client with many connections keeps out itself alone, until they have been silent for too long.
    let _more: Vec<_> = (0..12).map(|_| page.connect("")).collect();
    wait_for("room for another client", || {
        let mut answer = Vec::new();
        let request = format!("GET / HTTP/1.1\r\n{head}\r\n");
        let read = TcpStream::connect(&page.address).and_then(|mut stream| {
            stream.write_all(request.as_bytes())?;
            stream.read_to_end(&mut answer)
        });
        read.is_ok() && answer.starts_with(b"HTTP/1.1 200")
    });
}

#[test]
fn episodes_are_played_for_the_page_alone_and_two_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "runs/a", &[]);
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    page.json("/api/state");
    let path = "/api/play?run=runs%2Fa&seed=3";
    assert_eq!(page.get(path).0, 403, "a link or a picture of any site is a GET");
    let request = |origin: &str| {
        let Page { address, .. } = &page;
        format!("POST {path} HTTP/1.0\r\nHost: {address}\r\nOrigin: {origin}\r\n\r\n")
    };
    assert_eq!(page.answer(&request("http://evil.example")).0, 403);
    assert_eq!(page.answer(&request("null")).0, 403);
    let own = request(&format!("http://{}", page.address));
    let two = [page.connect(&own), page.connect(&own)];
    wait_for("two players", || children(page.server.id()).len() == 2);
    let players = children(page.server.id());
    let (code, said) = page.answer(&own);
    assert_eq!(code, 400);
    assert!(text(&said).contains("2 episodes are being played"), "{}", text(&said));
    // The clients leave.
    drop(two);
    players.into_iter().for_each(gone);
    assert_eq!(page.answer(&own).0, 200);
}

#[test]
fn a_run_with_a_pipe_or_a_link_in_it_stops_no_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "runs/good", &[]);
    let make = |name: &str| {
        train(folder, &format!("runs/{name}"), &[]);
        folder.join("runs").join(name)
    };
    let swap = |file: &Path| fs::remove_file(file).expect("it was there");
    let pipe = make("pipe").join("result.json");
    swap(&pipe);
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let zero = make("zero").join("metrics.jsonl");
    swap(&zero);
    symlink("/dev/zero", &zero).expect("a link");
    let large = make("large").join("config.toml");
    File::options()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len(2 << 30))
        .expect("a file");
    let line = make("line").join("metrics.jsonl");
    File::options()
        .write(true)
        .open(&line)
        .and_then(|file| file.set_len(500 << 20))
        .expect("a file");
    let film = make("film").join("episodes");
    fs::create_dir(&film).expect("a folder");
    fs::write(folder.join("secret"), "a secret").expect("a file");
    symlink(folder.join("secret"), film.join("000000100.gif")).expect("a link");

    for (run, said) in [
        ("pipe", "result.json`: it is a pipe and must be a regular file"),
        ("zero", "metrics.jsonl`: it is a link and must be a regular file"),
        ("large", "config.toml`: it has 2147483648 bytes"),
        ("film", "000000100.gif`: it is a link and must be a regular file"),
    ] {
        let run = format!("runs/{run}");
        let report = podracer(&["report", &run]).current_dir(folder).assert().failure();
        let problem = text(&report.get_output().stderr);
        assert!(problem.contains(said), "{run}: {problem}");
    }
    for command in [
        &["report", "runs/line", "-o", "line.html"][..],
        &["plot", "runs/line", "-o", "line.svg"],
        &["runs", "list", "runs"],
        &["runs", "export", "runs/line", "-o", "line.csv"],
    ] {
        // A gigabyte is more than each needs, and less than each would take.
        let limited =
            ["-c", "ulimit -v 1500000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_podracer")];
        let mut shell = assert_cmd::Command::new("sh");
        shell.args(limited).args(command).current_dir(folder);
        let output = shell.timeout(Duration::from_secs(60)).output().expect("it ends");
        assert_ne!(output.status.code(), None, "{command:?}: {}", text(&output.stderr));
        assert_ne!(output.status.code(), Some(134), "{command:?}: {}", text(&output.stderr));
    }
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    let problems = page.json("/api/state")["problems"].clone();
    for run in ["pipe", "zero", "large"] {
        assert!(problems[format!("runs/{run}")].is_string(), "{run}: {problems}");
    }
    let (code, said) = page.get("/api/film?run=runs%2Ffilm&name=000000100.gif");
    assert_eq!(code, 400);
    assert!(!text(&said).contains("secret"), "{}", text(&said));
}
