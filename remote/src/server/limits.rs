//! Bounds on a learner's resources for workers.

use std::time::Duration;

/// Bounds on what workers may take of a learner: room and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Most simultaneous connections; further connections are closed on arrival. Default: 1,024.
    pub connections: usize,
    /// Most lanes at once, over all workers; the server asks further workers to connect again later. Default: 65,536.
    pub lanes: usize,
    /// Greatest magnitude of a reward. Default: a million.
    pub reward: f32,
    /// Greatest magnitude of an element of an observation on each side on which its space has no bound. Default: a million.
    pub observation: f32,
    /// Time of a TLS handshake, before which a connection takes no place. Default: 2 s.
    pub tls: Duration,
    /// Time from a connection's first byte to its `Hello`. Default: 10 s.
    pub handshake: Duration,
    /// Time from `Welcome` to the first observations. Default: 120 s.
    pub begin: Duration,
    /// Time from an answer to the next step: others do not wait for it. Default: 300 s.
    pub step: Duration,
    /// Time between pings to a worker. Default: 10 s.
    pub keep_alive: Duration,
    /// Time that a worker has to answer a ping. Default: 30 s.
    pub keep_alive_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            lanes: 1 << 16,
            reward: 1e6,
            observation: 1e6,
            tls: Duration::from_secs(2),
            handshake: Duration::from_secs(10),
            begin: Duration::from_secs(120),
            step: Duration::from_secs(300),
            keep_alive: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(30),
        }
    }
}

/// Bytes that a connection may send before its first `Hello`: TLS, HTTP/2 and long bounds of a space.
pub(super) const FIRST_CREDIT: i64 = 256 << 10;

/// Bytes per second that a connection may send in addition to its steps: pings and windows.
pub(super) const CREDIT_PER_SECOND: i64 = 16 << 10;

/// TLS handshakes at once. Where there are more, the oldest of the address that has the most is closed.
pub(super) const HANDSHAKES: usize = 64;

/// The most workers, per connection that the limits allow, that have joined an inference thread and
/// that it has not seen leave yet.
pub(super) const UNHEARD: usize = 4;

/// Streams of one connection: clients of some languages share one connection among all of a process.
pub(super) const STREAMS: u32 = 256;

/// Time that a connection may stay open after its last stream has ended.
pub(super) const LINGER: Duration = Duration::from_secs(5);
