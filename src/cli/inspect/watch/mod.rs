//! `podracer watch`: a page of present and past runs, served by this program itself.
//!
//! # Invariants
//! - The page changes no run. Files are read when the page requests them, and only for a moment at
//!   a time, so that a training on the same machine is not slowed down.
//! - The data kept of a run has a bound, however long its metrics are.
//! - A request from another machine must name a token.
//! - The page of a training is a process of its own: nothing that happens to the page reaches the
//!   training.

mod episode;
mod numbers;
mod server;
mod store;
mod thin;

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use podracer_plugins::unblocked;

use crate::cli::console::Console;
use crate::cli::signals;
use crate::machine::{host, random_name};
use crate::settings::UsageError;
use signals::ENDS_WITH;
use store::Store;

/// The default address of a page.
pub(crate) const HERE: &str = "127.0.0.1:7280";
/// The environment variable with the token of a page that serves at standard input; empty for a
/// page without a token.
const TOKEN: &str = "PODRACER_PAGE_TOKEN";

#[derive(Args, Debug)]
pub(crate) struct WatchArguments {
    /// Run directories, or folders of them
    #[arg(value_name = "RUN", default_value = "runs")]
    runs: Vec<PathBuf>,
    /// The address of the page; an address that other machines can reach requires a token
    #[arg(long, value_name = "HOST:PORT", default_value = HERE)]
    at: String,
    /// Serve at the listener in standard input: for the page of a training
    #[arg(long, hide = true)]
    inherited: bool,
}

pub(crate) fn watch(
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
    let (listener, token) = if args.inherited {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        (TcpListener::from(io::stdin().as_fd().try_clone_to_owned()?), token)
    } else {
        let page = Page::at(&args.at)?;
        console.say(&page.url);
        (page.listener, page.token)
    };
    let _heeding = signals::heed();
    server::serve(listener, token, Store::new(args.runs.clone()), interrupt)?;
    Ok(0)
}

/// A page that is served.
pub(crate) struct Page {
    listener: TcpListener,
    /// The token that a request must name; `None` for a page on this machine only.
    token: Option<String>,
    url: String,
}

impl Page {
    /// A page at an address.
    ///
    /// # Errors
    /// [`UsageError`] for a text that is no address, or an address that cannot be listened on.
    pub(crate) fn at(text: &str) -> Result<Self, UsageError> {
        let address = address(text)?;
        let token = (!address.ip().is_loopback()).then(random_name);
        let query = token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        let listener = TcpListener::bind(address).and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = listener.map_err(|error| {
            UsageError::new(format!(
                "cannot listen at {address}: {error}; name another port, or 0 for one that is free"
            ))
        })?;
        // No machine can be reached at 0.0.0.0: other machines know this machine by its name.
        let name = match address.ip().is_unspecified() {
            true => format!("{}:{}", host(), address.port()),
            false => address.to_string(),
        };
        Ok(Page { listener, token, url: format!("http://{name}/{query}") })
    }

    /// Shows a run that this process trains, in a child process that ends with its parent.
    ///
    /// # Errors
    /// An error if the process cannot be started.
    pub(crate) fn follow(self, run: &Path, console: &mut Console<'_>) -> Result<()> {
        let mut page = Command::new(std::env::current_exe()?);
        page.args(["watch", "--inherited"]).arg("--").arg(run);
        page.env(TOKEN, self.token.as_deref().unwrap_or("")).env(ENDS_WITH, id().to_string());
        page.stdin(OwnedFd::from(self.listener)).stdout(Stdio::null());
        // Ctrl-C is for the training, which the page shows until its end.
        page.process_group(0);
        unblocked(|| page.spawn()).context("cannot start the page of --watch")?;
        console.say(&self.url);
        Ok(())
    }
}

fn address(text: &str) -> Result<SocketAddr, UsageError> {
    let wrong = |error: String| UsageError::new(format!("{text}: expected HOST:PORT: {error}"));
    let mut addresses = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    addresses.next().ok_or_else(|| wrong("it names no address".to_owned()))
}
