//! Workers and networks that stop: without a message, half-way, or for a while.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use podracer_remote::server::ServerOptions;
use podracer_remote::{Address, Security};
use tonic::Code;

use crate::support::{Client, Learner, Place, Working, cartpole_run, zeros};

/// A connection to a port that can be cut: abruptly, or so that nothing crosses and neither side is
/// notified.
struct Wire {
    address: Address,
    frozen: Arc<AtomicBool>,
    cut: Arc<AtomicBool>,
}

impl Wire {
    fn to(address: &Address) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let own = listener.local_addr().expect("it listens").to_string();
        let (frozen, cut) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let Address::Tcp(target) = address.clone() else { panic!("a port was asked for") };
        let flags = (frozen.clone(), cut.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&target) else { continue };
                let pair = |from: &TcpStream, to: &TcpStream| {
                    (from.try_clone().expect("it is open"), to.try_clone().expect("it is open"))
                };
                for (from, to) in [pair(&near, &far), pair(&far, &near)] {
                    let (frozen, cut) = flags.clone();
                    thread::spawn(move || carry(from, to, &frozen, &cut));
                }
            }
        });
        Wire { address: Address::Tcp(own), frozen, cut }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool, cut: &AtomicBool) {
    let mut buffer = [0; 1 << 16];
    from.set_read_timeout(Some(Duration::from_millis(5))).expect("a time above zero");
    loop {
        if cut.load(Ordering::Relaxed) {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
        if frozen.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) if to.write_all(&buffer[..read]).is_err() => break,
            Err(error) if !matches!(error.kind(), std::io::ErrorKind::WouldBlock) => break,
            _ => {}
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn port() -> ServerOptions {
    let anywhere = "127.0.0.1:0".parse().expect("an address");
    let mut options = ServerOptions::new(anywhere, Some(Security::Insecure));
    options.limits.keep_alive = Duration::from_millis(200);
    options.limits.keep_alive_timeout = Duration::from_millis(400);
    options
}

#[test]
fn connections_that_are_cut_come_back() {
    let learner = Learner::start(&port(), cartpole_run(), zeros, false);
    let wire = Wire::to(learner.server().address());
    let working = Working::secure(vec![wire.address.clone()], 4, 2, Some(Security::Insecure));
    let both_are_there = || {
        learner.wait("both are there", |seen| seen.lanes.len() == 2);
        // The lanes of those who left are given to those who come.
        learner.look(|seen| assert!(seen.lanes.values().all(|(first, n)| first + n <= 4)));
    };
    for cut in 1..=10 {
        both_are_there();
        working.wait_for_steps(working.status.steps() + 10);
        wire.cut.store(true, Ordering::Relaxed);
        learner.wait("both have left", |seen| seen.left.len() >= 2 * cut && seen.lanes.is_empty());
        wire.cut.store(false, Ordering::Relaxed);
    }
    both_are_there();
    working.stop().expect("it was told to stop");
    let status = learner.server().totals().status();
    assert_eq!(status.refused, 0, "{status:?}");
}

/// Nothing crosses and no socket is closed: pings notice, on the server's side. The worker comes back when things move on.
#[test]
fn a_partition_is_noticed() {
    let learner = Learner::start(&port(), cartpole_run(), zeros, false);
    let wire = Wire::to(learner.server().address());
    let working = Working::secure(vec![wire.address.clone()], 4, 1, Some(Security::Insecure));
    working.wait_for_steps(10);
    wire.frozen.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    learner.wait("it has left", |seen| seen.left.len() == 1 && seen.lanes.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    wire.frozen.store(false, Ordering::Relaxed);
    learner.wait("it is back", |seen| seen.lanes.len() == 1);
    let steps = working.status.steps();
    working.wait_for_steps(steps + 10);
    working.stop().expect("it was told to stop");
}

/// A worker with a network that answers pings, but with environments that hang.
#[test]
fn a_worker_that_does_not_step_is_sent_away() {
    let place = Place::new();
    let options = place.options_with(|limits| {
        (limits.begin, limits.step) = (Duration::from_millis(400), Duration::from_millis(300));
    });
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let mut never = Client::open(&place);
    never.greet(2);
    let status = never.end();
    assert_eq!(
        (status.code(), status.message()),
        (Code::DeadlineExceeded, "step 0 did not come in time")
    );
    let mut once = Client::open(&place);
    once.greet(2);
    once.step(2, 0);
    let status = once.end();
    assert_eq!(
        (status.code(), status.message()),
        (Code::DeadlineExceeded, "step 1 did not come in time")
    );
    learner.wait("both have left", |seen| {
        seen.left == ["step 0 did not come in time", "step 1 did not come in time"]
    });
}

#[test]
fn a_client_that_says_goodbye_leaves() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let mut client = Client::open(&place);
    client.greet(2);
    client.step(2, 0);
    client.close();
    assert_eq!(client.end().code(), Code::Ok);
    learner.wait("it has left", |seen| seen.left == ["it said goodbye"]);
}

/// The connection of a stream that has ended is closed, even if the client keeps it.
#[test]
fn a_connection_without_a_stream_is_closed() {
    let place = Place::new();
    let options = place.options_with(|limits| limits.step = Duration::from_millis(100));
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let mut client = Client::open(&place);
    client.greet(2);
    client.step(2, 0);
    client.end();
    let until = Instant::now() + Duration::from_secs(15);
    while learner.server().totals().status().connections > 0 {
        assert!(Instant::now() < until, "the connection is still open");
        thread::sleep(Duration::from_millis(20));
    }
}
