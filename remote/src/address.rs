//! Addresses: a Unix socket or a port of a host.

use std::fmt;
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
