//! Malicious peers: garbage, floods, silence. In each case a good worker continues to step.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use podracer_remote::proto::from_worker::Message as WorkerMessage;
use tonic::Code;

use crate::raw;
use crate::support::{
    Client, Learner, Place, Working, cartpole_run, connect, hello, never, step, zeros,
};

/// The opening of an HTTP/2 client: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Numbers that look random.
fn garbage(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

fn dial(place: &Place) -> UnixStream {
    let socket = UnixStream::connect(place.path()).expect("it listens");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a time above zero");
    socket.set_write_timeout(Some(Duration::from_secs(10))).expect("a time above zero");
    socket
}

/// Waits until the other side has closed the socket, or reset it.
#[track_caller]
fn wait_for_close(socket: &mut UnixStream) {
    let until = Instant::now() + Duration::from_secs(10);
    let mut buffer = [0; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => assert!(Instant::now() < until, "it is still open"),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(error) => panic!("it is still open: {error}"),
        }
    }
}

#[track_caller]
fn wait_for_connections(learner: &Learner, expected: usize) {
    let until = Instant::now() + Duration::from_secs(10);
    while learner.server().totals().status().connections != expected {
        assert!(Instant::now() < until, "{:?}", learner.server().totals().status());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn garbage_before_the_handshake_closes_the_connection() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let good = Working::start(vec![place.address()], 2, 1);
    good.wait_for_steps(5);
    for seed in 0..50 {
        let mut socket = dial(&place);
        let _ = socket.write_all(&garbage(seed, 2000));
        wait_for_close(&mut socket);
    }
    for seed in 0..50 {
        let mut socket = dial(&place);
        let _ = socket.write_all(&[PREFACE, &garbage(seed, 2000)].concat());
        let _ = socket.shutdown(std::net::Shutdown::Write);
        wait_for_close(&mut socket);
    }
    wait_for_connections(&learner, 1);
    good.wait_for_steps(good.status.steps() + 5);
    good.stop().expect("it was not disturbed");
}

/// Messages that are none, in frames that are right.
#[test]
fn garbage_in_frames_ends_the_stream() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let (runtime, channel) = connect(&place);
    for seed in 0..50 {
        let (say, mut told) = runtime.block_on(raw::open(channel.clone())).expect("it opens");
        let status = runtime.block_on(async {
            let _ = say.send(raw::encode(WorkerMessage::Hello(hello(2)))).await;
            let welcome = told.message().await.expect("it is taken in");
            assert!(welcome.is_some());
            let _ = say.send(garbage(seed, 300).into()).await;
            told.message().await.expect_err("it is garbage")
        });
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    }
    learner.wait("all have left", |seen| seen.left.len() == 50);
    assert_eq!(learner.server().totals().status().lanes, 0);
}

/// A peer that sends steps without waiting for answers is cut off at the second, and so is a peer
/// that sends bytes without end.
#[test]
fn a_flood_is_cut_off() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), never, false);
    let mut client = Client::open(&place);
    client.greet(8);
    for sequence in 0..200 {
        client.say(WorkerMessage::Step(step(8, sequence)));
    }
    let status = client.end();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert!(status.message().contains("came before the answer"), "{status:?}");
    learner.wait("it has left", |seen| seen.left.len() == 1);

    // Pings are answered by HTTP/2 itself: nothing above it sees them.
    let before = learner.server().totals().status().received;
    let mut socket = dial(&place);
    let ping = b"\0\0\x08\x06\0\0\0\0\0ABCDEFGH";
    let pings = ping.repeat(1000);
    let _ = socket.write_all(PREFACE);
    let mut reader = socket.try_clone().expect("a socket can be shared");
    let answers = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let cut = (0..10_000).any(|_| socket.write_all(&pings).is_err());
    assert!(cut, "170 MB of pings were taken");
    let _ = answers.join();
    let taken = learner.server().totals().status().received - before;
    assert!(taken < 1 << 20, "{taken} bytes of pings were read");
}

/// Connections that say nothing, or one byte at a time.
#[test]
fn a_slow_handshake_is_cut_off() {
    let place = Place::new();
    let options = place.options_with(|limits| limits.handshake = Duration::from_millis(300));
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let good = Working::start(vec![place.address()], 2, 1);
    good.wait_for_steps(5);
    let mut silent = dial(&place);
    let mut slow = dial(&place);
    let begun = Instant::now();
    let closed = PREFACE.iter().cycle().any(|byte| {
        thread::sleep(Duration::from_millis(20));
        slow.write_all(&[*byte]).is_err()
    });
    assert!(closed);
    wait_for_close(&mut silent);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());

    // A stream that is opened and says no hello.
    let mut mute = Client::open(&place);
    let status = mute.end();
    assert!(
        matches!(status.code(), Code::DeadlineExceeded | Code::Unknown | Code::Unavailable),
        "{status:?}"
    );
    wait_for_connections(&learner, 1);
    good.wait_for_steps(good.status.steps() + 5);
    good.stop().expect("it was not disturbed");
}

#[test]
fn connections_beyond_the_limit_are_turned_away() {
    let place = Place::new();
    let options = place.options_with(|limits| limits.connections = 3);
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let good = Working::start(vec![place.address()], 2, 1);
    good.wait_for_steps(5);
    let [mut first, mut second] = [Client::open(&place), Client::open(&place)];
    first.greet(2);
    second.greet(2);
    wait_for_connections(&learner, 3);
    let mut third = dial(&place);
    wait_for_close(&mut third);
    drop((first, second));
    wait_for_connections(&learner, 1);
    Client::open(&place).greet(2);
    good.wait_for_steps(good.status.steps() + 5);
}

/// Without TLS a connection has a place at once, and kept it for ten seconds before its `Hello`.
#[test]
fn idle_connections_keep_no_worker_out() {
    let place = Place::new();
    let options = place.options_with(|limits| limits.connections = 40);
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let first = Working::start(vec![place.address()], 2, 1);
    first.wait_for_steps(5);
    let idle: Vec<UnixStream> = (0..60)
        .map(|number| {
            let mut socket = dial(&place);
            if number % 2 == 0 {
                let _ = socket.write_all(PREFACE);
            }
            socket
        })
        .collect();
    let began = Instant::now();
    let worker = |_| {
        let mut worker = Client::open(&place);
        worker.greet(2);
        worker
    };
    let workers: Vec<Client> = (0..20).map(worker).collect();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    first.wait_for_steps(first.status.steps() + 5);
    assert_eq!(learner.server().totals().status().workers, 21);
    drop((workers, idle));
}

#[test]
fn a_thousand_connects_leave_nothing_behind() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let count = || {
        let entries = |path: &str| std::fs::read_dir(path).expect("this is Linux").count();
        (entries("/proc/self/fd"), entries("/proc/self/task"))
    };
    let visit = |number: usize| match number % 4 {
        0 => drop(dial(&place)),
        1 => {
            let _ = dial(&place).write_all(&garbage(number as u64, 100));
        }
        2 => Client::open(&place).say(WorkerMessage::Hello(hello(3))),
        _ => {
            let mut client = Client::open(&place);
            client.greet(3);
            client.step(3, 0);
        }
    };
    let settle = || {
        wait_for_connections(&learner, 0);
        learner.wait("no lane is taken", |seen| seen.lanes.is_empty());
        count()
    };
    (0..20).for_each(visit);
    let before = settle();
    (0..1000).for_each(visit);
    let after = settle();
    assert_eq!(before, after, "(descriptors, threads)");
    let status = learner.server().totals().status();
    assert_eq!((status.connections, status.workers, status.lanes), (0, 0, 0));
    learner.look(|seen| assert!(seen.joined >= 250 && seen.joined == seen.left.len()));
}
