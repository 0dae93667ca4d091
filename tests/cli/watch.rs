//! `podracer watch`: the page of runs, as a browser and other programs see it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use flate2::read::GzDecoder;
use serde_json::Value;

use super::browser::Browser;
use super::signals::wait_for;
use super::{command, podracer, text};
use podracer_test_support::skip::skip;

/// A server of a page, which ends with it.
pub struct Page {
    pub server: Child,
    /// Such as `127.0.0.1:41234`.
    pub address: String,
    /// The end of the address, which may have a token.
    query: String,
}

impl Page {
    pub fn of(folder: &Path, more: &[&str]) -> Page {
        Page::of_command(folder, &[&["watch"], more].concat())
    }

    /// The page that a command serves.
    pub fn of_command(folder: &Path, arguments: &[&str]) -> Page {
        let mut server = command(arguments);
        let mut server =
            server.current_dir(folder).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(server.stderr.take().expect("it is piped")).lines();
        let url = said.find_map(|line| Some(line.ok()?.strip_prefix("http://")?.to_owned()));
        let url = url.expect("it says where");
        // Later output is read as well, so that the process does not wait for a full pipe.
        std::thread::spawn(move || said.for_each(drop));
        let (address, query) = url.split_once('/').expect("a path");
        // A page for other machines is at this machine's name.
        let port = address.rsplit(':').next().expect("a port");
        Page { server, address: format!("127.0.0.1:{port}"), query: query.to_owned() }
    }

    /// The code and the bytes that an address gives to a host of this name.
    fn get_as(&self, host: &str, method: &str, path: &str) -> (u16, Vec<u8>) {
        self.answer(&format!("{method} {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"))
    }

    /// A connection on which this much of a request was written.
    pub fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it is read");
        stream
    }

    /// The code and the bytes that a request gives.
    pub fn answer(&self, request: &str) -> (u16, Vec<u8>) {
        let mut answer = Vec::new();
        self.connect(request).read_to_end(&mut answer).expect("an answer");
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = text(&answer[..end]);
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
        (code, answer[end + 4..].to_vec())
    }

    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        self.get_as(&self.address, "GET", path)
    }

    pub fn json(&self, path: &str) -> Value {
        let (code, bytes) = self.get(path);
        assert_eq!(code, 200, "{path}: {}", text(&bytes));
        serde_json::from_slice(&bytes).expect("JSON")
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Trains into a folder of this name.
pub fn train(folder: &Path, run: &str, more: &[&str]) {
    let small = ["train", "cartpole-ppo", "--set=anakin.unroll=32", "--set=agent.minibatches=2"];
    let short = ["--set=anakin.iterations_per_call=2", "--steps=512", "--run-dir", run];
    let arguments = [&small[..], &short, more].concat();
    podracer(&arguments).current_dir(folder).assert().success();
}

#[test]
fn a_page_has_the_runs_of_its_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "runs/a", &[]);
    train(folder, "runs/b", &["--seed=1"]);
    train(folder, "runs/b2", &["--seed=2"]);
    train(folder, "runs/sweep/c", &["--set=agent.clip=0.1"]);
    fs::create_dir_all(folder.join("runs/damaged")).expect("a folder");
    fs::write(folder.join("runs/damaged/config.toml"), "what [").expect("a file");
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    assert_eq!(page.query, "", "no token on this machine");
    let (code, html) = page.get("/");
    assert!(code == 200 && text(&html).contains("<script src=\"page.js\""));
    let named = text(&html);
    let files = named.split('"').filter(|name| name.ends_with(".js") || name.ends_with(".css"));
    for file in files {
        assert_eq!(page.get(&format!("/{file}")).0, 200, "{file}");
    }

    let state = page.json("/api/state");
    let runs = state["runs"].as_array().expect("runs");
    let of = |key: &str| runs.iter().map(|run| run[key].to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(of("path"), r#""runs/a" "runs/b" "runs/b2" "runs/sweep/c""#);
    assert_eq!((of("seed"), of("group")), ("0 1 2 0".to_owned(), "1 1 1 0".to_owned()));
    assert_eq!(
        (of("state"), of("env_steps")),
        ([r#""finished""#; 4].join(" "), ["512"; 4].join(" "))
    );
    assert_eq!(runs[3]["settings"]["agent.clip"], "0.1");
    assert_eq!(state["read"][0], state["read"][1]);
    let problem = state["problems"]["runs/damaged"].to_string();
    assert!(problem.contains("runs/damaged/config.toml"), "{state}");

    let curves = page.json("/api/curves?metric=loss&along=steps&summary=mean");
    let lines = curves.as_array().expect("curves");
    assert_eq!(lines.len(), 2);
    let lines = [&lines[1], &lines[0]];
    assert_eq!(lines[0]["band"].as_array().map(Vec::len), Some(4), "of three seeds");
    let recorded = fs::read_to_string(folder.join("runs/sweep/c/metrics.jsonl")).expect("metrics");
    let points = recorded.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["env_steps"].as_f64().expect("steps"), line["loss"].as_f64().expect("a loss"))
    });
    let shown = lines[1]["points"].as_array().expect("points");
    for ((steps, loss), point) in points.zip(shown) {
        assert_eq!(point[0], steps);
        assert!((point[1].as_f64().expect("a value") - loss).abs() < 1e-5 * loss.abs(), "{point}");
    }

    // Several metrics in one answer, with a single run, and without the other seeds of its group.
    let asked = "metric=loss&metric=entropy&along=steps&summary=mean";
    let charts =
        page.json(&format!("/api/charts?{asked}&run=runs%2Fa&without=runs%2Fb&without=runs%2Fb2"));
    let loss = &charts["loss"];
    assert_eq!(loss["groups"][1]["points"], loss["runs"]["runs/a"]);
    assert_eq!(loss["groups"][0]["points"], lines[1]["points"]);
    assert_eq!(charts["entropy"]["groups"].as_array().map(Vec::len), Some(2));
    let group = state["groups"][1].as_str().expect("a name");
    let opened = page.json(&format!("/api/charts?{asked}&open={}", group.replace(' ', "+")));
    assert_eq!(opened["loss"]["runs"].as_object().map(serde_json::Map::len), Some(3), "{opened}");
    let bands = page.json(&format!("/api/bands?{asked}&group={}", group.replace(' ', "+")));
    let band = &bands["loss"][group];
    assert_eq!(band.as_array().map(Vec::len), Some(4), "{bands}");
    assert_eq!(band[3][0], lines[0]["points"][3][0]);
    assert_eq!([&band[3][1], &band[3][2]], [&lines[0]["band"][3][0], &lines[0]["band"][3][1]]);
    // By one setting; the other settings may differ.
    let by = page.json("/api/state?by=agent.clip");
    assert_eq!(
        by["groups"],
        serde_json::json!(["cartpole-ppo, agent.clip = 0.1", "cartpole-ppo, agent.clip = 0.2"])
    );
    assert_eq!(by["settings"], serde_json::json!(["agent.clip"]));
    let by = page.json(&format!("/api/charts?{asked}&by=agent.clip&run=runs%2Fa&run=runs%2Fb"));
    assert_eq!(by["loss"]["groups"][1]["name"], "cartpole-ppo, agent.clip = 0.2");
    assert_eq!(by["loss"]["runs"].as_object().map(serde_json::Map::len), Some(2), "{by}");
    let speed = page.json("/api/charts?metric=steps_per_second&along=seconds&summary=mean");
    assert!(speed["steps_per_second"]["groups"][0]["points"][0][1].as_f64() > Some(0.0), "{speed}");

    let details = page.json("/api/run?run=runs%2Fa");
    assert!(details["config"].as_str().is_some_and(|text| text.contains("[agent]")), "{details}");
    assert_eq!([&details["profile"], &details["memory"]], [&Value::Null; 2], "not recorded");
    let (code, zipped) = page.get_as(&page.address, "POST", "/api/play?run=runs%2Fa&seed=3");
    assert_eq!(code, 200, "{}", String::from_utf8_lossy(&zipped));
    let mut film = Vec::new();
    GzDecoder::new(&zipped[..]).read_to_end(&mut film).expect("gzip");
    assert!(film.starts_with(b"YUV4MPEG2 W"));
    assert!(zipped.len() * 10 < film.len(), "{} of {} bytes", zipped.len(), film.len());
    // Runs that begin while the page is open, and runs that are gone.
    train(folder, "runs/d", &[]);
    fs::remove_dir_all(folder.join("runs/b")).expect("it was there");
    std::thread::sleep(std::time::Duration::from_millis(600));
    let state = page.json("/api/state");
    let paths: Vec<&str> = state["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["path"].as_str())
        .collect();
    assert_eq!(paths, ["runs/a", "runs/b2", "runs/d", "runs/sweep/c"]);
}

/// The page of a training is there while it compiles, and grows with it.
#[test]
fn a_training_shows_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = [
        "--set=anakin.unroll=32",
        "--set=agent.minibatches=2",
        "--set=anakin.iterations_per_call=2",
    ];
    let train = ["train", "cartpole-ppo", "--steps=100M", "--run-dir=run", "--watch=127.0.0.1:0"];
    let page = Page::of_command(folder.path(), &[&train[..], &small].concat());
    let (mut states, mut steps) = (Vec::new(), Vec::new());
    wait_for("three numbers of steps", || {
        let run = page.json("/api/state")["runs"][0].clone();
        states.push(run["state"].as_str().unwrap_or_default().to_owned());
        steps.extend(run["env_steps"].as_u64().filter(|steps| *steps > 0));
        steps.dedup();
        steps.len() >= 3
    });
    // A program that is in the cache compiles in no time.
    states.dedup();
    assert!(["compiling running", "running"].contains(&states.join(" ").as_str()), "{states:?}");
    assert!(steps.is_sorted(), "{steps:?}");
    let now = page.json("/api/now?run=run");
    assert_eq!(now["messages"][0]["kind"], "run", "{now}");
    let curves = page.json("/api/curves?metric=loss&along=seconds&summary=mean");
    assert!(curves[0]["points"].as_array().is_some_and(|points| points.len() > 1), "{curves}");
}

#[test]
fn others_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::create_dir(folder.join("runs")).expect("a folder");
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    let port = page.address.rsplit(':').next().expect("a port").to_owned();
    // A page of another site that asks for this address by a name of its own.
    assert_eq!(page.get_as(&format!("evil.example:{port}"), "GET", "/api/state").0, 403);
    assert_eq!(page.get_as(&format!("localhost:{port}"), "GET", "/api/state").0, 200);
    assert_eq!(page.get_as(&page.address, "POST", "/api/state").0, 403);
    assert_eq!(page.get("/nothing").0, 404);
    let (code, said) = page.get("/api/run?run=..%2F..%2Fetc");
    assert_eq!((code, text(&said)), (400, "there is no such run".to_owned()));

    let taken = podracer(&["watch", "--at", &page.address]).current_dir(folder).assert().code(2);
    let said = text(&taken.get_output().stderr);
    assert!(said.contains(&format!("cannot listen at {}", page.address)), "{said}");
    let wrong = podracer(&["watch", "nowhere"]).current_dir(folder).assert().code(2);
    let said = text(&wrong.get_output().stderr);
    assert!(said.contains("there is no folder `nowhere`"), "{said}");

    let open = Page::of(folder, &["--at", "0.0.0.0:0"]);
    let token = open.query.strip_prefix("?token=").expect("a token").to_owned();
    assert_eq!(token.len(), 32);
    assert_eq!(open.get("/api/state").0, 403);
    assert_eq!(open.get("/api/state?token=guess").0, 403);
    assert_eq!(open.get(&format!("/api/state?token={token}")).0, 200);
}

/// The page in a headless browser: a running training, another metric and run, an episode, the
/// training's end, and a server that is started again.
#[test]
fn a_browser_follows_a_training_and_plays_an_episode() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "runs/a", &["--set=train.record_every=2"]);
    let mut live = command(&[
        "train",
        "cartpole-sebulba-ppo",
        "--steps=100M",
        "--set=agent.hidden=[8]",
        "--set=train.checkpoint_every=1",
        "--run-dir=runs/live",
    ]);
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    let url = format!("http://{}/#metric=loss&along=seconds", page.address);
    let Some(mut browser) = Browser::open(&url, &folder.join("profile")) else {
        return skip("no browser: Debian's package `chromium`");
    };
    browser.wait("#status", "1 runs, 0 running");
    let live = super::signals::spawned(live.current_dir(folder));
    browser.wait("#status", "2 runs, 1 running");

    // The curve of the training grows.
    let points =
        "curves.loss?.groups.find(({ name }) => name.includes('sebulba'))?.points.at(-1)?.[0] ?? 0";
    let mut seen = Vec::new();
    wait_for("a curve that grows", || {
        seen.extend(browser.value(points).as_f64());
        seen.dedup();
        seen.len() >= 4
    });
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(browser.value("document.querySelectorAll('#charts path').length").as_u64() >= Some(2));

    // The page smooths as `plot --smooth` does.
    let known = include_str!("../../src/cli/inspect/curves/smoothed.json");
    let known: Value = serde_json::from_str(known).expect("JSON");
    for of_weight in known["smoothed"].as_array().expect("a list") {
        let call = format!("smoothed({}, {})", known["points"], of_weight["weight"]);
        let smoothed = browser.value(&call);
        let values = of_weight["values"].as_array().expect("a list");
        assert_eq!(smoothed.as_array().map(Vec::len), Some(values.len()));
        for (place, expected) in values.iter().enumerate() {
            assert_eq!(smoothed[place][0], known["points"][place][0]);
            let off = smoothed[place][1].as_f64().zip(expected.as_f64()).map(|(a, b)| a - b);
            assert!(off.is_some_and(|off| off.abs() < 1e-9), "{call}: {smoothed}");
        }
    }

    // Over the time of day, the curve begins near the present.
    browser.value("at('along').value = 'clock'; at('along').dispatchEvent(new Event('change'))");
    let first = "curves.loss?.groups.find(({ name }) => name.includes('sebulba'))?.points[0]?.[0]";
    let begins = format!("Math.abs(({first} ?? 0) - Date.now() / 1000) < 600");
    wait_for("a curve over the time of day", || browser.value(&begins) == true);
    let labels = "[...document.querySelectorAll('#charts text')].some(({ textContent }) => \
                  /^\\d\\d:\\d\\d:\\d\\d$/.test(textContent))";
    wait_for("labels of the time of day", || browser.value(labels) == true);
    browser.value("at('along').value = 'seconds'; at('along').dispatchEvent(new Event('change'))");

    // A page without input for a minute asks less often, until the next input.
    browser.value("touched = performance.now() - 61000");
    wait_for("a page that asks less often", || browser.value("wait") == 5000);
    browser.value("dispatchEvent(new Event('keydown'))");
    wait_for("a page that asks often", || browser.value("wait") == 2000);

    // Another metric, chosen as a user does.
    browser
        .value("at('metric').value = 'entropy'; at('metric').dispatchEvent(new Event('change'))");
    wait_for("the address of another metric", || {
        browser.value("location.hash").as_str().is_some_and(|hash| hash.contains("metric=entropy"))
    });

    // The threads and messages of the training; speed and memory are in the table.
    browser.click("tr[data-path='runs/live']");
    browser.wait("#name", "runs/live");
    browser.wait("#threads .legend", "waiting for trajectory");
    browser.wait("#messages", "begins on ");
    // The load of the machine, from the first second on.
    browser.wait("#machine", "process cpu, share of all processors");
    browser.wait("#machine", "process memory, bytes");
    let threads = browser.value("document.querySelectorAll('#threads div svg path').length");
    assert!(threads.as_u64() > Some(6), "{threads}");
    let going = browser.value("state.runs.find(({ path }) => path === 'runs/live')");
    assert!(
        going["memory"].as_u64() > Some(1 << 20) && going["speed"].as_f64() > Some(0.0),
        "{going}"
    );

    // An episode of the other run: play, pause, step.
    browser.click("tr[data-path='runs/a']");
    browser.wait("#name", "runs/a");
    wait_for("a run without threads", || browser.value("at('threads').hidden") == true);
    assert_eq!(browser.value("at('profile').hidden"), true, "it has no profile yet");
    let profile = ["profile", "runs/a/config.toml", "--memory", "--into=runs/a"];
    podracer(&profile).current_dir(folder).assert().success();
    browser.click("tr[data-path='runs/a']");
    browser.wait("#profile", "Memory of loop");
    let rows = browser.value("document.querySelectorAll('#profile tbody tr').length");
    assert!(rows.as_u64() >= Some(2), "{rows}");
    browser.value("at('seed').value = 3");
    browser.click("#play");
    browser.wait("#frame", "picture ");
    browser.click("#pause");
    let before = browser.value("film.now").as_u64().expect("a number");
    wait_for("the whole episode", || browser.value("film.whole") == true);
    let frames = browser.value("film.pictures.length").as_u64().expect("a number");
    browser.click("#step");
    assert_eq!(browser.value("film.now").as_u64(), Some((before + 1) % frames));

    // The same episode with the agent's values next to the pictures, which take their room.
    let width = browser.value("film.width").as_u64().expect("a number");
    browser.click("#values");
    browser.click("#play");
    wait_for("pictures with values", || {
        browser.value("film.width").as_u64().expect("a number") > width + 200
    });
    wait_for("the whole episode", || browser.value("film.whole") == true);
    assert_eq!(browser.value("film.pictures.length").as_u64(), Some(frames));

    // The episodes that were recorded in the training: the last first, then the others.
    browser.wait("#when", "4 iterations");
    let drawn = "document.querySelector('#films img')?.naturalWidth > 100";
    wait_for("a film", || browser.value(drawn) == true);
    browser.value("at('film').value = 0; at('film').dispatchEvent(new Event('input'))");
    browser.wait("#when", "2 iterations");
    wait_for("another film", || browser.value(drawn) == true);

    // The training ends, and the page tells it.
    super::signals::stopped(live, "INT");
    browser.wait("#status", "2 runs, 0 running");
    browser.wait("tr[data-path='runs/live']", "stopped");
    browser.click("tr[data-path='runs/live']");
    browser.wait("#messages", "is stopped after ");

    // So does a server that is gone, and comes again.
    let address = page.address.clone();
    drop(page);
    browser.wait("#status", "the server does not answer");
    let _page = Page::of(folder, &["--at", &address]);
    browser.wait("#status", "2 runs, 0 running");
    assert_eq!(browser.text("#problems"), "");
}
