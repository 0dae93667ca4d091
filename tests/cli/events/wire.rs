//! A way to a port that resets its connections, or puts garbage into them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use podracer::envs::host::Random;
use rustix::net::sockopt::set_socket_linger;

/// Both ends of a connection: to the worker, and to the learner.
type Pair = (TcpStream, TcpStream);

pub struct Wire {
    pub port: u16,
    open: Arc<Mutex<Vec<Pair>>>,
}

impl Wire {
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it listens").port();
        let open: Arc<Mutex<Vec<Pair>>> = Arc::default();
        let all = open.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // A learner that is away: the worker's connection is closed.
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let copy = |stream: &TcpStream| stream.try_clone().expect("it is open");
                for (from, to) in [(copy(&near), copy(&far)), (copy(&far), copy(&near))] {
                    thread::spawn(move || carry(from, to));
                }
                all.lock().expect("no thread panicked").push((near, far));
            }
        });
        Wire { port, open }
    }

    /// The connections that are open.
    fn take(&self) -> Vec<Pair> {
        let all = std::mem::take(&mut *self.open.lock().expect("no thread panicked"));
        all.into_iter().filter(|(near, _)| near.peer_addr().is_ok()).collect()
    }

    /// Resets all connections, on both sides, and gives their number.
    pub fn reset(&self) -> usize {
        let all = self.take();
        for (near, far) in &all {
            for stream in [near, far] {
                // A connection that closes with this time is reset the connection.
                let _ = set_socket_linger(stream, Some(Duration::ZERO));
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        all.len()
    }

    /// Inserts random bytes into the learner's input on all connections, between two of the
    /// worker's messages or within a message.
    pub fn inject(&self, random: &mut Random) -> usize {
        let all = self.take();
        for (_, far) in &all {
            let bytes: Vec<u8> =
                (0..1 + random.below(2000)).map(|_| random.below(256) as u8).collect();
            let _ = (&mut &*far).write_all(&bytes);
        }
        let n = all.len();
        self.open.lock().expect("no thread panicked").extend(all);
        n
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
