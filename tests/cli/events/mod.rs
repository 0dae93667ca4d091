//! A training with workers elsewhere, through 200 random events: processes are killed and
//! suspended, connections are reset and filled with garbage, clients flood and send invalid
//! messages. It continues, learns, and leaks nothing.

mod clients;
mod wire;

use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use podracer::envs::host::Random;
use serde_json::Value;

use super::command;
use super::signals::{send, soon_over};
use clients::Clients;
use podracer_test_support::skip::skip_heavy;
use wire::Wire;

/// Worker processes, with two batches of 4 environments each. Workers with odd numbers reach the
/// learner through the wire.
const WORKERS: usize = 4;
const ENVIRONMENTS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    WorkerKilled,
    WorkerAsleep,
    ConnectionsReset,
    LearnerKilled,
    Flood,
    NotANumber,
    WrongShapes,
    GarbageBefore,
    GarbageAfter,
}

/// The events, and how many of each.
const EVENTS: [(Event, usize); 9] = [
    (Event::WorkerKilled, 50),
    (Event::WorkerAsleep, 20),
    (Event::ConnectionsReset, 40),
    (Event::LearnerKilled, 10),
    (Event::Flood, 20),
    (Event::NotANumber, 20),
    (Event::WrongShapes, 20),
    (Event::GarbageBefore, 10),
    (Event::GarbageAfter, 10),
];

/// Time that a worker sleeps.
const SLEEP: Duration = Duration::from_secs(10);

/// A port that is free now.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it listens").port()
}

/// A learner, its workers, and the processes and connections that disturb them.
struct Scene<'a> {
    folder: &'a Path,
    began: Instant,
    learner: Child,
    /// The port of the learner, and the port of its metrics.
    ports: [u16; 2],
    workers: Vec<Child>,
    wire: Wire,
    clients: Clients,
    log: String,
}

impl Scene<'_> {
    fn say(&mut self, what: &str) {
        let line = format!("{:7.1} s  {what}", self.began.elapsed().as_secs_f64());
        eprintln!("{line}");
        let _ = writeln!(self.log, "{line}");
    }

    fn learner(folder: &Path, arguments: &[&str], ports: [u16; 2]) -> Child {
        let [listen, metrics] = ports.map(|port| format!("127.0.0.1:{port}"));
        let err = fs::OpenOptions::new().create(true).append(true).open(folder.join("learner.txt"));
        let mut serve =
            command(&["serve", "--insecure", "--listen", &listen, "--metrics", &metrics]);
        serve.args(arguments).current_dir(folder).stdout(Stdio::null());
        serve.stderr(err.expect("a file")).spawn().expect("the program runs")
    }

    fn worker(folder: &Path, port: u16, number: usize) -> Child {
        let name = folder.join(format!("worker-{number}.txt"));
        let err = fs::OpenOptions::new().create(true).append(true).open(name).expect("a file");
        let (address, environments) = (format!("127.0.0.1:{port}"), ENVIRONMENTS.to_string());
        let mut work = command(&["work", "--insecure", "--connect", &address, "--environments"]);
        work.arg(environments).stdout(Stdio::null()).stderr(err).spawn().expect("the program runs")
    }

    fn start_worker(&self, number: usize) -> Child {
        let port = if number % 2 == 1 { self.wire.port } else { self.ports[0] };
        Scene::worker(self.folder, port, number)
    }

    /// A number that the learner tells Prometheus; `None` while it does not answer.
    fn metric(&self, name: &str) -> Option<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[1])).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        std::io::Write::write_all(
            &mut stream,
            b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        let line = page.lines().find(|line| line.split([' ', '{']).next() == Some(name))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits for a state of the learner, which must continue meanwhile.
    fn wait(&mut self, what: &str, mut there: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(180);
        while !there(self) {
            let ended = self.learner.try_wait().expect("a child");
            let said = || fs::read_to_string(self.folder.join("learner.txt")).unwrap_or_default();
            assert!(ended.is_none(), "the learner has ended: {}", said());
            assert!(Instant::now() < until, "not in time: {what}\n{}", said());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the learner learns.
    fn learns(&mut self) {
        let before = self.metric("podracer_iterations");
        self.wait("iterations", |scene| {
            scene
                .metric("podracer_iterations")
                .is_some_and(|now| before.is_none_or(|one| now > one))
        });
    }

    /// Descriptors, threads, workers, lanes of the learner, with all workers there.
    fn holds(&mut self) -> [usize; 4] {
        let count = |scene: &Self, what: &str| {
            let entries = fs::read_dir(format!("/proc/{}/{what}", scene.learner.id()));
            entries.map_or(0, Iterator::count)
        };
        let all = |scene: &Self| {
            let told = |name| scene.metric(name).unwrap_or(0.0) as usize;
            let (workers, lanes) = (told("podracer_workers"), told("podracer_lanes_taken"));
            [count(scene, "fd"), count(scene, "task"), workers, lanes]
        };
        let there = |held: [usize; 4]| held[2..] == [2 * WORKERS, WORKERS * ENVIRONMENTS];
        self.wait("all workers", |scene| there(all(scene)));
        // Connections of clients that have ended are closed after some seconds.
        let (mut least, until) = (all(self), Instant::now() + Duration::from_secs(25));
        while Instant::now() < until {
            thread::sleep(Duration::from_millis(500));
            let now = all(self);
            if there(now) && now[0] <= least[0] && now[1] <= least[1] {
                least = now;
            }
        }
        least
    }

    /// Names of the learner's threads, sorted.
    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.learner.id()));
        let comm = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
        let names = tasks.into_iter().flatten().flatten().filter_map(comm);
        let mut names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        names.sort();
        names
    }

    fn kill_learner(&mut self) {
        self.learner.kill().expect("it can be killed");
        self.learner.wait().expect("a child");
        self.learner = Scene::learner(self.folder, &["run"], self.ports);
        self.learns();
    }

    /// Lets something happen, and says what came of it.
    fn let_happen(&mut self, event: Event, random: &mut Random) -> String {
        let worker = random.below(WORKERS);
        match event {
            Event::WorkerKilled => {
                self.workers[worker].kill().expect("it can be killed");
                let status = self.workers[worker].wait().expect("a child");
                self.workers[worker] = self.start_worker(worker);
                format!("worker {worker}, {status}")
            }
            Event::WorkerAsleep => {
                let process = self.workers[worker].id();
                send("STOP", process);
                thread::spawn(move || {
                    thread::sleep(SLEEP);
                    send("CONT", process);
                });
                format!("worker {worker}")
            }
            Event::ConnectionsReset => format!("{} connections", self.wire.reset()),
            Event::GarbageAfter => format!("{} connections", self.wire.inject(random)),
            Event::LearnerKilled => {
                self.kill_learner();
                "it is back".to_owned()
            }
            Event::Flood => self.clients.flood(self.ports[0], random),
            Event::NotANumber => self.clients.not_a_number(self.ports[0]),
            Event::WrongShapes => self.clients.wrong_shapes(self.ports[0], random),
            Event::GarbageBefore => clients::garbage(self.ports[0], random),
        }
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        for child in self.workers.iter_mut().chain([&mut self.learner]) {
            let _ = (child.kill(), child.wait());
        }
    }
}

fn seed() -> u64 {
    let seed = std::env::var("PODRACER_SEED").ok();
    seed.map_or(1, |seed| seed.parse().expect("a number"))
}

/// `PODRACER_SEED` draws other events. The log is printed, and left where `PODRACER_EVENT_LOG` says.
#[test]
fn a_served_run_goes_on_through_random_events() {
    if skip_heavy("ten minutes of killing and resuming") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let ports = [port(), port()];
    let begins = [
        "cartpole-central-ppo",
        "--run-dir=run",
        "--steps=1000000000",
        "--set=central.environments=40",
        "--set=central.timeout_ms=20",
        "--set=train.checkpoint_every=8",
    ];
    let mut scene = Scene {
        folder,
        began: Instant::now(),
        learner: Scene::learner(folder, &begins, ports),
        ports,
        workers: Vec::new(),
        wire: Wire::to(ports[0]),
        clients: Clients::new(),
        log: String::new(),
    };
    scene.workers = (0..WORKERS).map(|number| scene.start_worker(number)).collect();
    scene.learns();
    let at_start = scene.holds();
    scene.say(&format!("[descriptors, threads, workers, lanes] at the start: {at_start:?}"));

    let mut random = Random::of_environment(seed(), 0);
    let mut events: Vec<Event> =
        EVENTS.iter().flat_map(|&(event, times)| vec![event; times]).collect();
    for i in (1..events.len()).rev() {
        events.swap(i, random.below(i + 1));
    }
    for (number, &event) in events.iter().enumerate() {
        let came = scene.let_happen(event, &mut random);
        scene.say(&format!("event {}: {event:?}: {came}", number + 1));
        thread::sleep(Duration::from_millis(random.below(1500) as u64));
        for (number, worker) in scene.workers.iter_mut().enumerate() {
            let ended = worker.try_wait().expect("a child");
            assert!(ended.is_none(), "worker {number} has ended by itself: {ended:?}");
        }
    }
    thread::sleep(SLEEP);
    scene.learns();
    let held = scene.holds();
    scene.say(&format!("[descriptors, threads, workers, lanes] after the events: {held:?}"));
    let threads = scene.threads();
    scene.clients.connect(scene.ports[0], 1000, &mut random);
    let after = scene.holds();
    scene.say(&format!("[descriptors, threads, workers, lanes] after 1000 connects: {after:?}"));
    // XLA makes threads of its own when it first needs them: once in a run, and no more than there were at the start.
    let most = [held[0], held[1].max(at_start[1]), held[2], held[3]];
    assert!(
        after.iter().zip(most).all(|(after, most)| *after <= most),
        "{held:?} {after:?}; threads {threads:?} and {:?}",
        scene.threads()
    );

    send("INT", scene.learner.id());
    assert_eq!(soon_over(&mut scene.learner).code(), Some(130));
    let result = fs::read_to_string(folder.join("run/result.json")).expect("a result");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    for what in ["env_steps", "iterations", "episodes", "mean_return"] {
        scene.say(&format!("{what}: {}", result[what]));
    }
    let said = fs::read_to_string(folder.join("learner.txt")).expect("it said something");
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    let told =
        ["has left", "sent away", "no TLS", "further complaints"].map(|what| (what, count(what)));
    scene.say(&format!("lines of the learner: {told:?}"));
    if let Some(path) = std::env::var_os("PODRACER_EVENT_LOG") {
        fs::write(&path, &scene.log).expect("the log can be written");
        fs::write(Path::new(&path).with_extension("learner.txt"), &said).expect("so can this");
    }
    assert_eq!(count("panicked"), 0, "{said}");
    assert!(result["mean_return"].as_f64().is_some_and(|mean| mean > 400.0), "{result}");
    for worker in &mut scene.workers {
        send("INT", worker.id());
        assert_eq!(soon_over(worker).code(), Some(130));
    }
}
