//! Listening: sockets that only their owner can open, and handshakes that do not wait for each other.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Totals;
use super::handshakes::Handshakes;
use super::limits::Limits;
use super::link::{Connection, Guarded, Socket};
use super::places::Places;
use crate::unix::UnixStream;
use crate::{Address, tls};

/// Time that a client has to hear why its connection is refused.
const PARTING: Duration = Duration::from_secs(1);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket. It is removed when the listener is dropped, unless another process's
/// socket has taken its place.
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()))
}

impl Listener {
    /// Listens at an address. It is called in the runtime that accepts.
    pub(super) fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(host) => {
                let listener = std::net::TcpListener::bind(host)?;
                // The standard library's queue has 128 places.
                listen(&listener, BACKLOG)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(TcpListener::from_std(listener)?))
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = StdUnixListener::from(private_socket(path)?);
                let file = SocketFile { path: path.clone(), identity: identity(path)? };
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(UnixListener::from_std(listener)?, file))
            }
        }
    }

    /// The address with the port that was chosen.
    pub(super) fn address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => Ok(Address::Tcp(listener.local_addr()?.to_string())),
            Listener::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
        }
    }

    async fn accept(&self) -> io::Result<(Socket, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Socket::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
                let peer = process.map_or("a process".to_owned(), |id| format!("process {id}"));
                Ok((Socket::Unix(UnixStream::new(stream)?), peer))
            }
        }
    }

    /// Accepts connections as long as the receiver exists.
    pub(super) async fn serve(
        self,
        acceptor: Option<TlsAcceptor>,
        (limits, totals): (Limits, Arc<Totals>),
        ready: mpsc::Sender<io::Result<Connection>>,
    ) {
        let places = Arc::new(Places::new(limits.connections));
        let mut handshakes = Handshakes::default();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = ready.closed() => return,
            };
            let (socket, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Descriptors may have run out: workers that leave free their descriptors.
                    totals.complain(|| format!("cannot accept a connection: {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let bounds = (&limits, totals.clone());
            let guarded = Guarded::new(socket, peer, bounds, acceptor.is_none());
            let link = Arc::clone(guarded.link());
            let (places, most, ready) = (places.clone(), limits.connections, ready.clone());
            let admitted = Arc::clone(&link);
            let admit = move |place: Option<_>, mut connection: Connection| async move {
                let Some(place) = place else {
                    return admitted
                        .complain(&format!("turned away: there are {most} connections"));
                };
                connection.guarded().admit(place);
                let _ = ready.send(Ok(connection)).await;
            };
            let Some(acceptor) = acceptor.clone() else {
                tokio::spawn(async move {
                    admit(places.take(&link).await, Connection::Plain(guarded)).await;
                });
                continue;
            };
            let (patience, origin) = (limits.tls, Arc::clone(&link.origin));
            let handshake = async move {
                // Only who has shown a certificate takes a place.
                if let Some(stream) = shaken(guarded, acceptor, patience).await {
                    admit(places.take(&link).await, Connection::Tls(Box::new(stream))).await;
                }
            };
            handshakes.add(&origin, tokio::spawn(handshake).abort_handle());
        }
    }
}

/// The connection after its TLS handshake. A handshake that fails is reported, and gives `None`.
async fn shaken(
    guarded: Guarded,
    acceptor: TlsAcceptor,
    patience: Duration,
) -> Option<TlsStream<Guarded>> {
    let link = Arc::clone(guarded.link());
    let complain = |problem: String| link.complain(&problem);
    let accepted = tokio::time::timeout(patience, acceptor.accept(guarded).into_fallible()).await;
    match accepted {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, guarded))) => {
            link.refuse();
            complain(match tls::is_no_tls(&error) {
                true => "its bytes are not TLS, and this learner uses TLS: a worker needs --certificates FOLDER in \
                         place of --insecure"
                    .to_owned(),
                false => format!("no TLS connection: {error}"),
            });
            part(guarded).await;
            None
        }
        Err(_) => {
            complain(format!("no TLS handshake within {patience:?}"));
            None
        }
    }
}

/// Closes a connection so that the other side hears why: closing it with bytes unread would reset it.
async fn part(mut connection: Guarded) {
    let _ = connection.shutdown().await;
    let mut unread = [0; 1024];
    let drain = async { while connection.read(&mut unread).await.is_ok_and(|read| read > 0) {} };
    let _ = tokio::time::timeout(PARTING, drain).await;
}

/// Checks that no process listens at an address.
pub(super) fn check(address: &Address) -> io::Result<()> {
    match address {
        Address::Tcp(host) => std::net::TcpListener::bind(host).map(drop),
        Address::Unix(path) => remove_stale(path),
    }
}

/// Removes the socket of a learner that was killed.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
    let taken =
        |what: &str| io::Error::new(io::ErrorKind::AddrInUse, format!("{} {what}", path.display()));
    if !data.file_type().is_socket() {
        return Err(taken("is there already, and is no socket"));
    }
    match StdUnixStream::connect(path) {
        Ok(_) => Err(taken("has a listener: another learner is running")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

/// A listening socket with mode 0600 from the moment its file exists.
fn private_socket(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Linux gives the file the mode of the socket, less the umask; other systems ignore it or fail.
    let _ = fchmod(&socket, Mode::RUSR | Mode::WUSR);
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// A port's queue must hold a burst of connections: with 128 places, a burst would keep every
    /// other client out for seconds.
    #[tokio::test]
    async fn a_burst_of_connections_to_a_port_is_queued() {
        let address = Address::Tcp("127.0.0.1:0".to_owned());
        let listener = Listener::bind(&address).expect("any port is free");
        let Address::Tcp(port) = listener.address().expect("it listens") else {
            panic!("it is no Unix socket");
        };
        let port = port.parse().expect("an address");
        // The connections are not accepted.
        let dial = |_| TcpStream::connect_timeout(&port, Duration::from_secs(1));
        let burst: io::Result<Vec<_>> = (0..300).map(dial).collect();
        assert!(burst.is_ok(), "{burst:?}");
    }
}
