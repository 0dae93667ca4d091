//! Connections to a learner.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};

use crate::proto::seed_client::SeedClient;
use crate::unix::UnixStream;
use crate::{Address, SecurityError, tls};

/// Time that a connection may take, its TLS handshake included.
const CONNECT: Duration = Duration::from_secs(10);
/// Time between pings to the learner, and the time that it has to answer one.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(30);

/// A socket, encrypted or not.
trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// The first byte that a learner answered, or [`NO_TLS`]: which of the two sides has TLS and which has not.
#[derive(Clone, Default)]
pub(super) struct Answered(Arc<AtomicU8>);

/// Kept for a learner that answers a TLS handshake with something else. Neither HTTP/2 nor TLS begins with this byte.
const NO_TLS: u8 = u8::MAX;

impl Answered {
    /// The mistake, if one side has TLS and the other has not.
    pub(super) fn mistake(&self, address: &Address) -> Option<SecurityError> {
        match self.0.load(Ordering::Relaxed) {
            tls::ALERT => Some(SecurityError::Encrypted(address.clone())),
            NO_TLS => Some(SecurityError::Plain(address.clone())),
            _ => None,
        }
    }
}

/// Connects to a learner. `most_bytes` is the length of its longest message.
pub(super) async fn connect(
    address: &Address,
    tls: Option<&TlsConnector>,
    most_bytes: usize,
    answered: &Answered,
) -> Result<SeedClient<Channel>, tonic::transport::Error> {
    let dial = {
        let (address, tls, answered) = (address.clone(), tls.cloned(), answered.clone());
        tower::service_fn(move |_| {
            let (address, tls, answered) = (address.clone(), tls.clone(), answered.clone());
            async move { Ok::<_, io::Error>(TokioIo::new(dial(&address, tls, answered).await?)) }
        })
    };
    // The name is for HTTP alone: `dial` knows where to go, and TLS asks for the learner's name.
    let channel = Endpoint::from_static("http://podracer-learner")
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect_with_connector(dial)
        .await?;
    Ok(SeedClient::new(channel).max_decoding_message_size(most_bytes))
}

async fn dial(
    address: &Address,
    tls: Option<TlsConnector>,
    answered: Answered,
) -> io::Result<Box<dyn Io>> {
    match address {
        Address::Unix(path) => {
            Ok(Box::new(UnixStream::new(tokio::net::UnixStream::connect(path).await?)?))
        }
        Address::Tcp(host) => {
            let stream = TcpStream::connect(host).await?;
            stream.set_nodelay(true)?;
            match tls {
                None => Ok(Box::new(Plain { stream, answered, first: true })),
                Some(tls) => {
                    let connected = tls.connect(tls::learner_name(), stream).await;
                    let connected = connected.inspect_err(|error| {
                        if tls::is_no_tls(error) {
                            answered.0.store(NO_TLS, Ordering::Relaxed);
                        }
                    });
                    Ok(Box::new(connected?))
                }
            }
        }
    }
}

/// A connection without TLS; its first byte shows if the learner has TLS.
struct Plain {
    stream: TcpStream,
    answered: Answered,
    /// True before the first byte.
    first: bool,
}

impl AsyncRead for Plain {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if std::mem::take(&mut self.first)
            && let Some(byte) = buffer.filled().get(before)
        {
            self.answered.0.store(*byte, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Plain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The message of a status with the causes of a broken connection, and true if the cause is a certificate, so that another attempt
/// would fail as well.
pub(super) fn explain(status: &tonic::Status) -> (String, bool) {
    let mut text = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text += if text.is_empty() { "" } else { ": " };
            text += &said;
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.map(|inner| inner as &(dyn Error + 'static));
        cause = inner.filter(|inner| inner.source().is_some()).or_else(|| error.source());
    }
    // HTTP/2 keeps the words of an error of TLS, and not the error.
    let of_certificates =
        ["received fatal alert", "invalid peer certificate"].iter().any(|said| text.contains(said));
    (text, of_certificates)
}
