//! Unix sockets that do not wake their reader when the other side has read.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A connected Unix socket.
///
/// tokio's own type watches for reading and writing at once. Linux reports room to write on a Unix
/// socket each time the other side has read, so every message wakes its sender needlessly. This
/// type watches for reading, and watches for writing only while there is no room.
pub(crate) struct UnixStream {
    socket: AsyncFd<StdUnixStream>,
    /// The same socket, watched for room to write.
    room: Option<AsyncFd<StdUnixStream>>,
}

/// Watches a socket for one of reading and writing.
#[allow(
    deprecated,
    reason = "the other way is unsafe, for types that change their descriptor: this one does not"
)]
fn watched(socket: StdUnixStream, interest: Interest) -> io::Result<AsyncFd<StdUnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

impl UnixStream {
    /// Takes over a connected socket.
    pub(crate) fn new(socket: tokio::net::UnixStream) -> io::Result<Self> {
        let socket = watched(socket.into_std()?, Interest::READABLE)?;
        Ok(UnixStream { socket, room: None })
    }

    fn poll_writing(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&StdUnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if let Some(room) = &self.room {
                let mut there = ready!(room.poll_write_ready(cx))?;
                there.clear_ready();
            }
            match write(self.socket.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.room.is_none() {
                        let same = self.socket.get_ref().try_clone()?;
                        self.room = Some(watched(same, Interest::WRITABLE)?);
                    }
                }
                done => {
                    self.room = None;
                    return Poll::Ready(done);
                }
            }
        }
    }
}

impl AsyncRead for UnixStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut there = ready!(self.socket.poll_read_ready(cx))?;
            let into = buffer.initialize_unfilled();
            match self.socket.get_ref().read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => there.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    // What came was all there was.
                    if 0 < read && read < into.len() {
                        there.clear_ready();
                    }
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |mut socket| socket.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |mut socket| socket.write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        let (one, other) = tokio::net::UnixStream::pair().expect("two sockets");
        (UnixStream::new(one).expect("a socket"), UnixStream::new(other).expect("a socket"))
    }

    /// Messages that are longer than the system's buffer arrive whole, and both ends continue.
    #[tokio::test]
    async fn messages_of_all_lengths_cross() {
        let (mut one, mut other) = pair();
        let lengths = [1, 1000, 5 << 20, 0, 3, 2 << 20];
        let sent = async {
            for (i, length) in lengths.into_iter().enumerate() {
                one.write_all(&vec![i as u8; length]).await.expect("it is open");
            }
            one.shutdown().await.expect("it is open");
            one
        };
        let read = async {
            let mut all = Vec::new();
            other.read_to_end(&mut all).await.expect("it is open");
            all
        };
        let (_, read) = tokio::join!(sent, read);
        let expected: Vec<u8> =
            lengths.into_iter().enumerate().flat_map(|(i, length)| vec![i as u8; length]).collect();
        assert!(read == expected, "{} bytes of {}", read.len(), expected.len());
    }

    /// The sender of a message was woken when the other side read it, and a second time by the answer.
    #[test]
    fn a_message_that_is_read_wakes_nobody() {
        const MESSAGES: usize = 10;
        let sleeps = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sleeps);
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let runtime = Builder::new_current_thread().enable_all().on_thread_park(count).build();
        let (one, mut other) = StdUnixStream::pair().expect("two sockets");
        one.set_nonblocking(true).expect("a socket");
        let answers = thread::spawn(move || {
            let mut byte = [0];
            for _ in 0..MESSAGES {
                other.read_exact(&mut byte).expect("it is open");
                thread::sleep(Duration::from_millis(5));
                other.write_all(&byte).expect("it is open");
            }
        });
        runtime.expect("a runtime").block_on(async {
            let one = tokio::net::UnixStream::from_std(one).and_then(UnixStream::new);
            let mut one = one.expect("a socket");
            for message in 0..MESSAGES as u8 {
                one.write_all(&[message]).await.expect("it is open");
                assert_eq!(one.read_u8().await.expect("it is open"), message);
            }
        });
        answers.join().expect("it ends");
        let sleeps = sleeps.load(Ordering::Relaxed);
        assert!(sleeps <= MESSAGES + 1, "slept {sleeps} times for {MESSAGES} messages");
    }
}
