//! Addresses: a Unix socket or a port of a host.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a learner listens: `unix:PATH` or `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A host and a port. A listener takes port 0 for any free one.
    Tcp(String),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address: expected unix:PATH or HOST:PORT, such as unix:run/seed.sock or 10.0.0.7:7000"
)]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Address::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare =
            !host.contains([':', '/', ' ']) || (host.starts_with('[') && host.ends_with(']'));
        match port.parse::<u16>() {
            Ok(_) if bare && !host.is_empty() => Ok(Address::Tcp(text.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl Address {
    /// The address as a worker on another machine says it: with this machine's name where it listens at all of its interfaces,
    /// or `THIS-MACHINE` if it has none.
    #[must_use]
    pub fn from_elsewhere(&self) -> Address {
        let of_all = match self {
            Address::Tcp(text) => {
                text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_unspecified())
            }
            Address::Unix(_) => None,
        };
        match of_all {
            Some(address) => {
                let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
                let known = !matches!(&*name, "" | "localhost" | "(none)");
                let name = if known { &*name } else { "THIS-MACHINE" };
                Address::Tcp(format!("{name}:{}", address.port()))
            }
            None => self.clone(),
        }
    }
}

impl Address {
    /// The address of one of several servers on a machine, with `before` servers before it. It has
    /// a port number higher by `before`, or the socket's path with the number at its end. `None` if
    /// the port does not exist. Port 0 stays unchanged, and so does the first server's address.
    #[must_use]
    pub fn nth(&self, before: usize) -> Option<Address> {
        match self {
            _ if before == 0 => Some(self.clone()),
            Address::Unix(path) => {
                Some(Address::Unix(path.with_added_extension(before.to_string())))
            }
            Address::Tcp(text) => {
                let (host, port) = text.rsplit_once(':')?;
                let port: u16 = port.parse().ok()?;
                let before = if port == 0 { 0 } else { u16::try_from(before).ok()? };
                Some(Address::Tcp(format!("{host}:{}", port.checked_add(before)?)))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(host) => f.write_str(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_interfaces_prints_the_machines_name() {
        for text in ["0.0.0.0:7000", "[::]:7000"] {
            let said = text.parse::<Address>().expect(text).from_elsewhere().to_string();
            assert!(said.ends_with(":7000") && !said.starts_with(['0', '[', '(']), "{said}");
            assert!(!said.starts_with("localhost"), "{said}");
        }
        for text in ["127.0.0.1:7000", "unix:a.sock", "learner.example:7000"] {
            assert_eq!(text.parse::<Address>().expect(text).from_elsewhere().to_string(), text);
        }
    }

    #[test]
    fn servers_of_one_machine_have_addresses_of_their_own() {
        for (text, before, expected) in [
            ("0.0.0.0:7000", 0, Some("0.0.0.0:7000")),
            ("0.0.0.0:7000", 2, Some("0.0.0.0:7002")),
            ("[::1]:0", 2, Some("[::1]:0")),
            ("learner.example:65535", 1, None),
            ("unix:/run/a.sock", 1, Some("unix:/run/a.sock.1")),
        ] {
            let nth = text.parse::<Address>().expect(text).nth(before);
            assert_eq!(nth.map(|address| address.to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["unix:/a/b.sock", "unix:b", "localhost:7000", "127.0.0.1:0", "[::1]:80"] {
            assert_eq!(
                text.parse::<Address>().map(|address| address.to_string()).as_deref(),
                Ok(text)
            );
        }
        for text in ["", "unix:", "localhost", ":80", "a:b", "::1:80", "host:70000", "a/b:80"] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
