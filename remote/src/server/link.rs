//! A connection's socket, with a deadline and a budget of bytes: a peer that sends too much or too
//! late is cut off, regardless of the layers above.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::Totals;
use super::limits::{CREDIT_PER_SECOND, FIRST_CREDIT, LINGER, Limits};
use crate::tls;
use crate::unix::UnixStream;

/// Shared state of a connection and its streams.
pub(super) struct Link {
    /// Who is at the other end, for messages.
    pub(super) peer: String,
    /// The host at the other end, or the process for a Unix socket.
    pub(super) origin: Arc<str>,
    totals: Arc<Totals>,
    state: Mutex<State>,
}

struct State {
    /// Bytes that may still come, before what time adds.
    credit: i64,
    credited: Instant,
    /// The most that `credit` can be: a step of every stream.
    most: i64,
    /// The deadline of a connection without streams.
    idle_until: Instant,
    /// The streams, each with the time until which its worker must have done something.
    streams: BTreeMap<u64, Option<Instant>>,
    problem: Option<String>,
    /// Wakes the task that reads from the connection.
    reader: Option<Waker>,
}

impl Link {
    fn new(peer: String, limits: &Limits, totals: Arc<Totals>) -> Self {
        let now = Instant::now();
        let state = State {
            credit: FIRST_CREDIT,
            credited: now,
            most: FIRST_CREDIT,
            idle_until: now + limits.handshake,
            streams: BTreeMap::new(),
            problem: None,
            reader: None,
        };
        let origin = peer.rsplit_once(':').map_or(&*peer, |(host, _)| host).into();
        Link { peer, origin, totals, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a stream of this connection has sent `Hello`; each of its steps has at most
    /// `step_bytes` bytes.
    pub(super) fn greeted(&self, stream: u64, step_bytes: i64) {
        let mut state = self.state();
        state.most += step_bytes;
        state.credit += step_bytes;
        state.streams.insert(stream, None);
    }

    /// Sets the time until which the worker of a stream must have done something; `None` while it waits for the learner.
    pub(super) fn expect(&self, stream: u64, until: Option<Instant>) {
        if let Some(due) = self.state().streams.get_mut(&stream) {
            *due = until.map(|until| until + LINGER);
        }
    }

    /// Lets the next step of a stream come.
    pub(super) fn grant(&self, step_bytes: i64) {
        let mut state = self.state();
        state.credit = (state.credit.max(0) + step_bytes).min(state.most);
        state.credited = Instant::now();
    }

    /// Notes that a stream has ended.
    pub(super) fn ended(&self, stream: u64, step_bytes: i64) {
        let mut state = self.state();
        if state.streams.remove(&stream).is_some() {
            state.most -= step_bytes;
            // Or each further Hello would add to what may come.
            state.credit = state.credit.min(state.most);
        }
        state.idle_until = Instant::now() + LINGER;
    }

    /// Tells a problem with the connection.
    pub(super) fn complain(&self, problem: &str) {
        self.totals.complain(|| format!("{}: {problem}", self.peer));
    }

    /// Counts the connection as refused.
    pub(super) fn refuse(&self) {
        self.totals.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// True for a connection on which no worker was taken in yet.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.streams.is_empty() && state.most == FIRST_CREDIT
    }

    /// Ends an idle connection.
    pub(super) fn give_way(&self) {
        let mut state = self.state();
        state.idle_until = Instant::now();
        state.reader.take().into_iter().for_each(Waker::wake);
    }

    /// The reason why the connection was cut off, if it was.
    pub(super) fn problem(&self) -> Option<String> {
        self.state().problem.clone()
    }

    /// The earliest deadline, and its reason.
    fn due(&self) -> Option<Instant> {
        let state = self.state();
        match state.streams.is_empty() {
            true => Some(state.idle_until),
            false => state.streams.values().flatten().min().copied(),
        }
    }

    fn spend(&self, bytes: usize) -> io::Result<()> {
        self.totals.received.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut state = self.state();
        state.credit -= bytes as i64;
        if state.credit < 0 {
            let free = state.credited.elapsed().as_secs() as i64 * CREDIT_PER_SECOND;
            if state.credit + free < 0 {
                let problem = "it sent more than a step before the answer to the last";
                return Err(self.cut(&mut state, problem));
            }
        }
        Ok(())
    }

    /// Refuses a connection that begins with TLS, where nothing is encrypted.
    fn is_encrypted(&self) -> io::Error {
        self.totals.refused.fetch_add(1, Ordering::Relaxed);
        let problem = "it begins with TLS, and this learner was started with --insecure: start the learner with --certificates, \
                       too, or the worker with --insecure";
        self.cut(&mut self.state(), problem)
    }

    fn late(&self) -> io::Error {
        let mut state = self.state();
        let problem = match state.streams.is_empty() {
            true => "it said no Hello in time",
            false => "it did not step in time",
        };
        self.cut(&mut state, problem)
    }

    fn cut(&self, state: &mut State, problem: &str) -> io::Error {
        // A connection that has worked and is left open is not an error.
        if state.most == FIRST_CREDIT {
            self.totals.complain(|| format!("{}: {problem}", self.peer));
        }
        state.problem.get_or_insert_with(|| problem.to_owned());
        io::Error::new(io::ErrorKind::TimedOut, problem.to_owned())
    }
}

/// An alarm that is set anew only if it would ring too late: a deadline that moves on with each step costs nothing.
pub(super) struct Alarm {
    sleep: Pin<Box<Sleep>>,
    set: Option<Instant>,
}

impl Alarm {
    pub(super) fn new() -> Self {
        Alarm { sleep: Box::pin(sleep_until(Instant::now())), set: None }
    }

    /// Tells if `due` has passed, and otherwise wakes the task when it does.
    pub(super) fn poll(&mut self, due: Option<Instant>, cx: &mut Context<'_>) -> bool {
        loop {
            match (self.set, due) {
                (None, None) => return false,
                (set, Some(due)) if set.is_none_or(|set| set > due) => {
                    self.sleep.as_mut().reset(due);
                    self.set = Some(due);
                }
                _ => {}
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return false;
            }
            let rang = self.set.take();
            if due.is_some_and(|due| rang >= Some(due)) {
                return true;
            }
        }
    }
}

/// A socket of either kind.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The socket of a connection, with its deadline and budget.
pub(super) struct Guarded {
    socket: Socket,
    link: Arc<Link>,
    alarm: Alarm,
    /// True before the first byte of a connection without TLS.
    begins_plain: bool,
    /// Its place among the connections, once it has one.
    place: Option<OwnedSemaphorePermit>,
}

impl Guarded {
    pub(super) fn new(
        socket: Socket,
        peer: String,
        (limits, totals): (&Limits, Arc<Totals>),
        begins_plain: bool,
    ) -> Self {
        totals.connections.fetch_add(1, Ordering::Relaxed);
        let link = Arc::new(Link::new(peer, limits, totals));
        Guarded { socket, link, alarm: Alarm::new(), begins_plain, place: None }
    }

    /// The state that the connection shares with its streams.
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Gives the connection a place, which it has as long as it is open.
    pub(super) fn admit(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.link.totals.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Applies an operation to the socket, of whichever kind it is.
macro_rules! each {
    ($socket:expr, $pinned:ident => $operation:expr) => {
        match $socket {
            Socket::Tcp(socket) => {
                let $pinned = Pin::new(socket);
                $operation
            }
            Socket::Unix(socket) => {
                let $pinned = Pin::new(socket);
                $operation
            }
        }
    };
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let due = self.link.due();
        if self.alarm.poll(due, cx) {
            return Poll::Ready(Err(self.link.late()));
        }
        {
            let reader = &mut self.link.state().reader;
            if !reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
                *reader = Some(cx.waker().clone());
            }
        }
        let before = buffer.filled().len();
        ready!(each!(&mut self.socket, socket => socket.poll_read(cx, buffer)))?;
        if std::mem::take(&mut self.begins_plain)
            && buffer.filled().get(before) == Some(&tls::HANDSHAKE)
        {
            return Poll::Ready(Err(self.link.is_encrypted()));
        }
        Poll::Ready(self.link.spend(buffer.filled().len() - before))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(each!(&mut self.socket, socket => socket.poll_write(cx, bytes)))?;
        add(&self.link.totals.sent, written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written =
            ready!(each!(&mut self.socket, socket => socket.poll_write_vectored(cx, parts)))?;
        add(&self.link.totals.sent, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut self.socket, socket => socket.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(&mut self.socket, socket => socket.poll_shutdown(cx))
    }
}

fn add(total: &AtomicU64, bytes: usize) {
    total.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// A connection, after its TLS handshake if there is one.
pub(super) enum Connection {
    Plain(Guarded),
    Tls(Box<TlsStream<Guarded>>),
}

impl Connected for Connection {
    type ConnectInfo = Arc<Link>;

    fn connect_info(&self) -> Arc<Link> {
        match self {
            Connection::Plain(socket) => socket.link.clone(),
            Connection::Tls(stream) => stream.get_ref().0.link.clone(),
        }
    }
}

impl Connection {
    /// The socket under the encryption, if there is any.
    pub(super) fn guarded(&mut self) -> &mut Guarded {
        match self {
            Connection::Plain(socket) => socket,
            Connection::Tls(stream) => stream.get_mut().0,
        }
    }
}

/// Applies an operation to the connection, encrypted or not.
macro_rules! either {
    ($connection:expr, $pinned:ident => $operation:expr) => {
        match $connection.get_mut() {
            Connection::Plain(stream) => {
                let $pinned = Pin::new(stream);
                $operation
            }
            Connection::Tls(stream) => {
                let $pinned = Pin::new(stream);
                $operation
            }
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each `Hello` added the bytes of a step, whether or not its stream was over.
    #[test]
    fn streams_that_are_over_leave_no_bytes_behind() {
        let link = Link::new("a peer".to_owned(), &Limits::default(), Arc::default());
        for stream in 0..1000 {
            link.greeted(stream, 1 << 20);
            link.ended(stream, 1 << 20);
        }
        assert!(link.spend(FIRST_CREDIT as usize).is_ok());
        assert!(link.spend(1 << 20).is_err());
    }
}
