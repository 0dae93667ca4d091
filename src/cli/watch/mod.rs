//! `podracer watch`: a page of runs that are trained, or were, from this program itself.
//!
//! # Invariants
//! - Nothing of a run is changed. Files are read when the page asks, and for a moment at a time, so that a training beside it has the machine.
//! - What a run is kept as has a bound, however long its metrics are.
//! - Who asks from elsewhere than this machine names a token.

mod server;
mod store;
mod thin;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;

use super::{Console, signals};
use crate::machine::random_name;
use crate::settings::UsageError;
use server::Server;
use store::Store;

#[derive(Args, Debug)]
pub(super) struct WatchArguments {
    /// Run directories, or folders of them
    #[arg(value_name = "RUN", default_value = "runs")]
    runs: Vec<PathBuf>,
    /// The address of the page; one that other machines reach asks for a token
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7280")]
    at: String,
}

pub(super) fn watch(
    args: &WatchArguments,
    console: &mut Console<'_>,
    interrupt: &AtomicBool,
) -> Result<u8> {
    if let Some(missing) = args.runs.iter().find(|run| !run.is_dir()) {
        let problem = format!(
            "there is no folder `{}`: name run directories, or a folder of them",
            missing.display()
        );
        return Err(UsageError::new(problem).into());
    }
    let address = address(&args.at)?;
    let token = (!address.ip().is_loopback()).then(random_name);
    let server = Server::at(address, token.clone())?;
    let token = token.map_or_else(String::new, |token| format!("?token={token}"));
    console.say(&format!("http://{}/{token}", server.address()));
    let _heeding = signals::heed();
    server.serve(Store::new(args.runs.clone()), interrupt)?;
    Ok(0)
}

fn address(text: &str) -> Result<SocketAddr, UsageError> {
    let wrong =
        |error: String| UsageError::new(format!("--at {text}: expected HOST:PORT: {error}"));
    let mut addresses = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    addresses.next().ok_or_else(|| wrong("it names no address".to_owned()))
}
