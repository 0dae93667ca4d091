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
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context, Result};
use clap::Args;

use super::{Console, signals};
use crate::machine::random_name;
use crate::settings::UsageError;
use server::Server;
use store::Store;

/// The address of a page unless another one is named.
pub(super) const HERE: &str = "127.0.0.1:7280";

#[derive(Args, Debug)]
pub(super) struct WatchArguments {
    /// Run directories, or folders of them
    #[arg(value_name = "RUN", default_value = "runs")]
    runs: Vec<PathBuf>,
    /// The address of the page; one that other machines reach asks for a token
    #[arg(long, value_name = "HOST:PORT", default_value = HERE)]
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
    let page = Page::at(&args.at)?;
    console.say(&page.url);
    let _heeding = signals::heed();
    page.server.serve(Store::new(args.runs.clone()), interrupt)?;
    Ok(0)
}

/// A page that is served.
pub(super) struct Page {
    server: Server,
    url: String,
}

impl Page {
    /// A page at an address.
    ///
    /// # Errors
    /// [`UsageError`] for an address that is none, or that cannot be listened at.
    pub(super) fn at(text: &str) -> Result<Self, UsageError> {
        let address = address(text)?;
        let token = (!address.ip().is_loopback()).then(random_name);
        let query = token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        let server = Server::at(address, token)?;
        Ok(Page { url: format!("http://{}/{query}", server.address()), server })
    }

    /// Shows a run that this process trains, until it ends.
    ///
    /// # Errors
    /// Where no thread can be started.
    pub(super) fn follow(self, run: &Path, console: &mut Console<'_>) -> Result<()> {
        console.say(&self.url);
        let Page { server, .. } = self;
        let store = Store::new(vec![run.to_owned()]);
        let serve = move || {
            if let Err(error) = server.serve(store, &AtomicBool::new(false)) {
                tracing::error!("the page of --watch has ended: {error:?}");
            }
        };
        let page = thread::Builder::new().name("page".to_owned()).spawn(serve);
        page.context("cannot start the page of --watch")?;
        Ok(())
    }
}

fn address(text: &str) -> Result<SocketAddr, UsageError> {
    let wrong = |error: String| UsageError::new(format!("{text}: expected HOST:PORT: {error}"));
    let mut addresses = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    addresses.next().ok_or_else(|| wrong("it names no address".to_owned()))
}
