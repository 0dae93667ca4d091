//! Environments in processes of their own: what crosses, and all that can go wrong. The servers are Python without any
//! package; `server.py` has their side of the protocol.

mod closing;
mod skipped;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use podracer_envs::Space;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, HostError, StepMemory};
use serde_json::{Value, json};
use tempfile::TempDir;

const LENGTH: usize = 4;

/// Servers of the environments of `fake_server.py`, with changes to their configuration.
fn fake(changes: &Value) -> ServerOptions {
    let mut configuration = json!({
        "name": "fake",
        "server": concat!(env!("CARGO_MANIFEST_DIR"), "/src/host/server/server.py"),
        "length": LENGTH, "truncates": true, "fault": "", "at": 0, "once": null,
    });
    for (key, value) in changes.as_object().expect("an object") {
        configuration[key] = value.clone();
    }
    ServerOptions::new("python3", &configuration)
        .unwrap()
        .source(include_str!("fake_server.py"))
        .start_timeout(Duration::from_secs(20))
        .step_timeout(Duration::from_secs(20))
}

/// A batch of two servers that has begun its episodes.
fn begun(options: &ServerOptions) -> (Servers, StepMemory) {
    let mut batch = Servers::start(options, 5).unwrap();
    let mut memory = StepMemory::new(batch.spec());
    batch.reset(11, 40, &mut memory.step()).unwrap();
    (batch, memory)
}

/// The observation of each environment.
fn shown(bytes: &[u8]) -> Vec<[f32; 2]> {
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let rows = bytes.chunks_exact(8);
    rows.map(|row| [float(&row[..4]), float(&row[4..])]).collect()
}

fn actions(time: usize) -> Vec<u8> {
    (0..5).flat_map(|i| (((time + i) % 3) as i32).to_le_bytes()).collect()
}

/// The position of an environment in its server; the first server has the environments 0 and 1.
fn place(environment: usize) -> usize {
    if environment < 2 { environment } else { environment - 2 }
}

/// Takes a step, and checks all of it against what `fake_server.py` promises.
fn step(batch: &mut Servers, memory: &mut StepMemory, time: usize) {
    let before = shown(memory.observation());
    batch.step(&actions(time), &mut memory.step()).unwrap();
    let (now, last) = (shown(memory.observation()), shown(memory.next_observation()));
    for i in 0..5 {
        assert_eq!(memory.reward()[i], ((time + i) % 3) as f32 + 0.5);
        let over = before[i][1] as usize + 1 == LENGTH;
        let ended = (over && place(i) == 0, over && place(i) == 1);
        assert_eq!(memory.done(i), ended);
        assert_eq!(last[i][1], before[i][1] + 1.0);
        if ended.0 || ended.1 {
            // The next episode's first observation, and the last one of this.
            assert_eq!(now[i], [before[i][0] + 1.0 / 64.0, 0.0]);
        } else {
            assert_eq!(now[i], last[i]);
        }
    }
}

#[test]
fn steps_cross_with_ends_and_final_observations() {
    let (mut batch, mut memory) = begun(&fake(&json!({})).servers(2));
    assert_eq!(batch.spec().environments, 5);
    assert_eq!(batch.spec().observation, Space::bounded([2], 0.0, f64::INFINITY));
    assert_eq!(batch.spec().action, Space::discrete(3));
    assert_eq!(batch.about().collect::<Vec<_>>(), ["a fake"; 2]);
    assert_eq!(memory.observation(), memory.next_observation());
    for time in 0..10 {
        step(&mut batch, &mut memory, time);
    }
    assert!(batch.snapshot().unwrap().is_none());
    // From the beginning again.
    batch.reset(11, 40, &mut memory.step()).unwrap();
    assert!(shown(memory.observation()).iter().all(|&[_, time]| time == 0.0));
    step(&mut batch, &mut memory, 0);
    assert_eq!(batch.restarts(), 0);
}

#[test]
fn pictures_cross_when_they_are_asked_for() {
    for drawn in [1, 2] {
        let (mut batch, mut memory) = begun(&fake(&json!({"picture": [2, 5], "drawn": drawn})));
        assert_eq!(batch.picture_size(), Ok([2, 5]));
        for time in 0..3 {
            let expected: Vec<Vec<u8>> = (0..drawn).map(|i| vec![time + i; 30]).collect();
            assert_eq!(batch.draw().unwrap(), expected);
            step(&mut batch, &mut memory, usize::from(time));
        }
        batch.send(&actions(0)).unwrap();
        assert!(matches!(batch.draw(), Err(HostError::Order(_))));
    }
}

#[test]
fn pictures_that_a_server_does_not_have_are_an_error() {
    for (changes, expected) in [
        (json!({}), "no pictures, as its server draws none"),
        (json!({"picture": "the light is out"}), "no pictures, as the light is out"),
        (json!({"picture": [2, 5], "drawn": 0}), "one picture or two, got `drawn 0`"),
    ] {
        let (mut batch, _) = begun(&fake(&changes).restarts(0));
        let error = batch.draw().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn it_does_not_matter_how_many_servers_a_batch_has() {
    let first = |servers, environments, first| {
        let mut batch = Servers::start(&fake(&json!({})).servers(servers), environments).unwrap();
        let mut memory = StepMemory::new(batch.spec());
        batch.reset(3, first, &mut memory.step()).unwrap();
        shown(memory.observation())
    };
    let whole = first(1, 6, 0);
    assert_eq!(first(3, 6, 0), whole);
    assert_eq!(first(1, 2, 4), whole[4..]);
}

#[test]
fn mistakes_of_the_caller_are_errors() {
    let mut batch = Servers::start(&fake(&json!({"truncates": false})), 2).unwrap();
    let mut memory = StepMemory::new(batch.spec());
    assert!(memory.next_observation().is_empty());
    let message = |error: Result<(), HostError>| error.unwrap_err().to_string();
    let early = message(batch.send(&[0; 8]));
    assert_eq!(early, "`reset` comes before the first `send`");
    batch.reset(0, 0, &mut memory.step()).unwrap();
    let early = message(batch.receive(&mut memory.step()));
    assert_eq!(early, "`receive` comes after `send`");
    let wrong: Vec<u8> = [0i32, 3].iter().flat_map(|action| action.to_le_bytes()).collect();
    assert_eq!(
        message(batch.send(&wrong)),
        "environment 1: the action is 3 and must be one of 0..3"
    );
    batch.send(&[0; 8]).unwrap();
    assert!(message(batch.send(&[0; 8])).contains("a step is under way"));
    batch.receive(&mut memory.step()).unwrap();
    let error = Servers::start(&fake(&json!({})).servers(3), 2).err().unwrap();
    assert!(error.to_string().contains("2 environments cannot be spread over 3 servers"));
}

/// The step with a fault: the environments of the faulty server are cut off, the other server's
/// continue.
fn step_with_fault(batch: &mut Servers, memory: &mut StepMemory, time: usize) {
    let before = shown(memory.observation());
    batch.step(&actions(time), &mut memory.step()).unwrap();
    let (now, last) = (shown(memory.observation()), shown(memory.next_observation()));
    // Both servers have the fault in their third step, and tell by a file that one of them had it.
    let cut_off: Vec<bool> = (0..5).map(|i| memory.done(i) == (false, true)).collect();
    assert!(
        cut_off == [true, true, false, false, false] || cut_off == [false, false, true, true, true]
    );
    for i in 0..5 {
        assert!(!memory.done(i).0);
        if cut_off[i] {
            assert_eq!((memory.reward()[i], last[i], now[i][1]), (0.0, before[i], 0.0));
            assert_ne!(now[i][0], before[i][0], "the seed is another");
        } else {
            assert_eq!(memory.reward()[i], ((time + i) % 3) as f32 + 0.5);
            assert_eq!(now[i], [before[i][0], before[i][1] + 1.0]);
        }
    }
}

#[test]
fn a_server_with_a_fault_is_restarted_and_the_others_go_on() {
    for fault in
        ["die", "leave", "raise", "sleep", "spin", "garbage", "another step", "no end of line"]
    {
        let folder = TempDir::new().unwrap();
        let once = folder.path().join("once");
        let options = fake(&json!({"fault": fault, "at": 3, "once": once})).servers(2);
        let patience = if ["sleep", "spin"].contains(&fault) { 1 } else { 20 };
        let (mut batch, mut memory) = begun(&options.step_timeout(Duration::from_secs(patience)));
        step(&mut batch, &mut memory, 0);
        step(&mut batch, &mut memory, 1);
        step_with_fault(&mut batch, &mut memory, 2);
        assert_eq!(batch.restarts(), 1, "{fault}");
        for time in 3..9 {
            step(&mut batch, &mut memory, time);
        }
    }
}

#[test]
fn without_truncation_a_fault_terminates() {
    let folder = TempDir::new().unwrap();
    let once = folder.path().join("once");
    let options = fake(&json!({"fault": "die", "at": 1, "once": once, "truncates": false}));
    let (mut batch, mut memory) = begun(&options);
    batch.step(&actions(0), &mut memory.step()).unwrap();
    assert!((0..5).all(|i| memory.done(i) == (true, false)));
    assert_eq!(memory.reward(), [0.0; 5]);
}

#[test]
fn a_fault_that_stays_is_an_error_with_what_was_printed() {
    for (fault, expected) in [
        (
            "die",
            "it died after 2 restarts (signal: 9 (SIGKILL)); the end of its output:\na fake has started",
        ),
        (
            "leave",
            "it died after 2 restarts (exit status: 3); the end of its output:\na fake has started\nthe ball is lost",
        ),
        ("raise", "RuntimeError: the pole is broken"),
        ("garbage", "expected text, got `\u{fffd}\u{fffd} nonsense`"),
        ("another step", "it answers nonsense: expected `done 2`, got `done 99`"),
        ("flags", "terminated = 7 and truncated = 0, of which at most one can be 1"),
    ] {
        let options = fake(&json!({"fault": fault, "at": 2})).restarts(2);
        let (mut batch, mut memory) = begun(&options);
        let error = (0..9).find_map(|time| batch.step(&actions(time), &mut memory.step()).err());
        let message = error.expect("the third fault is one").to_string();
        assert!(message.starts_with("environment server 0 (`python3`): "), "{message}");
        assert!(message.contains(expected), "{fault}: {message}");
        // The rest reports it, and nothing hangs.
        let error = batch.step(&actions(0), &mut memory.step()).unwrap_err();
        assert!(error.to_string().contains("it died"), "{error}");
    }
}

#[test]
fn a_server_that_does_not_start_is_an_error() {
    let message = |options: &ServerOptions| Servers::start(options, 2).err().unwrap().to_string();
    for (fault, expected) in [
        (
            "leave at the start",
            "it died (exit status: 3); the end of its output:\nthe ball is lost",
        ),
        ("sleep at the start", "it did not answer for 1 s; it printed nothing"),
        (
            "garbage at the start",
            "its first line is wrong (expected value at line 1 column 1): `hello there`",
        ),
        ("an old protocol", "it speaks protocol 0 where 1 is spoken here"),
    ] {
        let timeout = Duration::from_secs(if fault.starts_with("sleep") { 1 } else { 20 });
        let message = message(&fake(&json!({"fault": fault})).start_timeout(timeout));
        assert!(message.contains(expected), "{fault}: {message}");
    }
    let nowhere = ServerOptions::new("no-such-python", &json!({})).unwrap();
    let error = message(&nowhere);
    assert!(error.contains("environment server 0 (`no-such-python`): cannot start"), "{error}");
    let error = ServerOptions::new("python3", &3).unwrap_err().to_string();
    assert_eq!(error, "the configuration of a server must be an object and is 3");
}

#[test]
fn a_server_that_comes_back_with_other_spaces_is_an_error() {
    let folder = TempDir::new().unwrap();
    let once = folder.path().join("once");
    let options = fake(&json!({"fault": "other shape", "once": once})).restarts(1);
    let (mut batch, mut memory) = begun(&options);
    step(&mut batch, &mut memory, 0);
    fs::write(once, "").unwrap();
    kill(batch.processes().next().unwrap());
    let error = batch.step(&actions(1), &mut memory.step()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("it serves other spaces than before"), "{message}");
}

#[test]
fn what_environments_print_is_in_nobodys_way() {
    let (mut batch, mut memory) = begun(&fake(&json!({"fault": "chatter", "at": 2})).servers(2));
    for time in 0..6 {
        step(&mut batch, &mut memory, time);
    }
    assert_eq!(batch.restarts(), 0);
}

fn kill(process: u32) {
    let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(killed.unwrap().success());
}

fn is_running(process: u32) -> bool {
    // A process that has ended has the state Z until its parent waits for it.
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

fn expect_end(process: u32) {
    let began = Instant::now();
    while is_running(process) {
        assert!(began.elapsed() < Duration::from_secs(20), "process {process} goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// SIGKILL at any moment: while a server waits, steps, answers or starts.
#[test]
fn servers_that_are_killed_again_and_again_do_not_end_the_run() {
    let kills = std::env::var("PODRACER_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills: usize = kills.unwrap_or(10);
    let (mut batch, mut memory) = begun(&fake(&json!({})).servers(2).restarts(2 * kills));
    let (mut time, mut cut_off) = (0, 0);
    for number in 0..kills {
        let victim = batch.processes().nth(number % 2).unwrap();
        let delay = Duration::from_micros((number * 7919 % 3000) as u64);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            kill(victim);
        });
        let before = batch.restarts();
        while batch.restarts() == before {
            batch.step(&actions(time), &mut memory.step()).unwrap();
            time += 1;
        }
        cut_off += (0..5).filter(|&i| memory.done(i).1 && memory.reward()[i] == 0.0).count();
        killer.join().unwrap();
    }
    assert_eq!(batch.restarts(), kills);
    assert!((2 * kills..=3 * kills).contains(&cut_off), "{cut_off}");
}

#[test]
fn a_batch_that_is_dropped_leaves_no_process() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("worker");
    let options = fake(&json!({"fault": "worker", "at": 1, "once": file}));
    let worker = || fs::read_to_string(&file).unwrap().parse().unwrap();
    let (mut batch, mut memory) = begun(&options);
    step(&mut batch, &mut memory, 0);
    let (server, of_dropped) = (batch.processes().next().unwrap(), worker());
    assert!(is_running(server) && is_running(of_dropped));
    drop(batch);
    assert!(!Path::new(&format!("/proc/{server}")).exists(), "it was waited for");
    expect_end(of_dropped);

    // A server that is killed leaves none either.
    fs::remove_file(&file).unwrap();
    let (mut batch, mut memory) = begun(&options);
    step(&mut batch, &mut memory, 0);
    kill(batch.processes().next().unwrap());
    expect_end(worker());
}

/// Not a test: the client that the next test kills.
#[test]
fn client_to_be_killed() {
    let Ok(fault) = std::env::var("PODRACER_CLIENT_TO_BE_KILLED") else {
        podracer_test_support::skip::skip("no test of itself: a process that another test starts");
        return;
    };
    let (mut batch, mut memory) = begun(&fake(&json!({"fault": fault, "at": 2})).servers(2));
    step(&mut batch, &mut memory, 0);
    let processes: Vec<String> = batch.processes().map(|process| process.to_string()).collect();
    eprintln!("servers {}", processes.join(" "));
    batch.send(&actions(1)).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_client_that_is_killed_leaves_no_process() {
    // Servers that wait for the next request, sleep in a step, and spin without ever letting go of the interpreter.
    for fault in ["", "sleep", "spin"] {
        let mut client = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "servers::client_to_be_killed", "--nocapture"])
            .env("PODRACER_CLIENT_TO_BE_KILLED", fault)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(client.stderr.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.starts_with("servers "));
        let line = line.expect("the client says which its servers are");
        let servers: Vec<u32> = line.split(' ').skip(1).map(|id| id.parse().unwrap()).collect();
        assert_eq!(servers.len(), 2);
        assert!(servers.iter().all(|&server| is_running(server)));
        std::thread::sleep(Duration::from_millis(100));
        client.kill().unwrap();
        client.wait().unwrap();
        servers.into_iter().for_each(expect_end);
    }
}

/// Not a test: the client that the next test starts in a separate folder.
#[test]
fn client_in_another_folder() {
    if std::env::var_os("PODRACER_CLIENT_IN_ANOTHER_FOLDER").is_some() {
        let (mut batch, mut memory) = begun(&fake(&json!({})).servers(2));
        step(&mut batch, &mut memory, 0);
    }
}

#[test]
fn a_module_in_the_current_folder_is_not_executed() {
    let folder = TempDir::new().unwrap();
    for module in ["json", "socket", "gymnasium"] {
        let text = format!("open('{module} was executed', 'w')\nraise SystemExit('{module}')\n");
        fs::write(folder.path().join(module).with_extension("py"), text).unwrap();
    }
    let client = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "servers::client_in_another_folder", "--nocapture"])
        .env("PODRACER_CLIENT_IN_ANOTHER_FOLDER", "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.filter(|name| name.to_string_lossy().contains("executed")).collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
}

#[test]
fn modules_are_imported_from_the_folder_that_is_named() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("of_a_user.py"), "").unwrap();
    let source = format!("import of_a_user\n{}", include_str!("fake_server.py"));
    let options = fake(&json!({})).source(source);
    let error = Servers::start(&options, 2).err().unwrap().to_string();
    assert!(error.contains("No module named 'of_a_user'"), "{error}");
    let (mut batch, mut memory) = begun(&options.modules(folder.path()));
    step(&mut batch, &mut memory, 0);
}

#[test]
fn batches_that_come_and_go_leave_no_descriptor() {
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let cycle = || drop(begun(&fake(&json!({})).servers(2)));
    cycle();
    // Other tests of this process open some too.
    let least = |count: usize| (0..count).map(|_| (cycle(), open()).1).min().unwrap();
    let before = least(5);
    let batches = std::env::var("PODRACER_BATCHES").ok().and_then(|batches| batches.parse().ok());
    let after = least(batches.unwrap_or(10));
    assert!(after <= before + 8, "{before} descriptors before, {after} after");
}
