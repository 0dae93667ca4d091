//! A key-value store that the processes of a training share while they open their devices. Plugins
//! of accelerators use it to exchange information about their devices and the connections between
//! them. One process serves the store.

#[rustfmt::skip] // generated
mod proto;

mod client;
mod server;

use std::net::{SocketAddr, UdpSocket};

pub use client::StoreClient;
pub use server::StoreServer;

/// Largest message: the topology of thousands of devices is a single value.
const LARGEST: usize = 256 << 20;

/// Failures of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A store that cannot be served or reached at any of its addresses.
    #[error("the processes' store cannot be {what} at {addresses}: {problem}")]
    Away {
        /// Reached or served.
        what: &'static str,
        /// The addresses.
        addresses: String,
        /// The problem with the last address.
        problem: String,
    },
    /// A refusal of the store, or a connection that broke.
    #[error("the processes' store: {0}")]
    Refused(String),
}

/// The external addresses of a port of this machine: by its name, and by its address in the
/// external network.
fn addresses_elsewhere(port: u16) -> Vec<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Nothing is sent: this only looks up the route to an unused address.
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    let own = own.ok().map(|own| SocketAddr::new(own.ip(), port).to_string());
    own.into_iter().chain([format!("{name}:{port}")]).collect()
}
