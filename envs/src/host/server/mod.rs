//! Environments in server processes: those of Gymnasium, ale-py and EnvPool, and of any other program that speaks the
//! protocol. Steps cross through shared memory.
//!
//! A server is a Python process (`server.py`, which comes with the program) with a batch of environments. Requests and
//! answers are lines on a socket; observations, rewards, ends and actions lie in memory that both processes map. A server
//! that crashes leaves the run alive, this process needs no Python interpreter, and the licences of Python packages do not
//! touch it.
//!
//! # Invariants
//! - A server ends with its client. The client that drops it has it close its environments, and kills it if that takes longer than a
//!   step may; the kernel kills it when the client is gone, even by SIGKILL. So do the processes that it starts. The shared memory has no
//!   name, so that none of it stays behind.
//! - Everything from a server is checked before it is used: its spaces, its protocol, each answer, each flag. Every wait
//!   for an answer has a timeout.

mod process;
mod protocol;
mod settings;
mod shard;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{HostEnvironment, HostError, HostSpec, HostStep};
pub use settings::{
    Atari, AtariProcessing, Autoreset, EnvPool, Gymnasium, Packages, Preset, Resize,
    ServerSettings, Vectorization,
};
use shard::Shard;

/// The server that comes with the program.
const SOURCE: &str = concat!(
    include_str!("server.py"),
    "\n\n",
    include_str!("values.py"),
    "\n\n",
    include_str!("vector_environments.py"),
    "\n\n",
    include_str!("atari.py"),
    include_str!("start.py")
);

/// Program and configuration of servers, and limits on their faults.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    python: PathBuf,
    modules: Option<PathBuf>,
    source: String,
    configuration: serde_json::Map<String, serde_json::Value>,
    servers: usize,
    restarts: usize,
    pictures: bool,
    start_timeout: Duration,
    step_timeout: Duration,
}

impl ServerOptions {
    /// Options of servers that the interpreter `python` runs; it has the packages that `configuration` needs.
    /// `configuration` becomes a JSON object with `name` and the keys that the server reads for that name.
    ///
    /// # Errors
    /// [`HostError::Failed`] if `configuration` is not an object.
    pub fn new(
        python: impl Into<PathBuf>,
        configuration: &impl Serialize,
    ) -> Result<Self, HostError> {
        match serde_json::to_value(configuration).map_err(HostError::failed)? {
            serde_json::Value::Object(configuration) => Ok(ServerOptions {
                python: python.into(),
                modules: None,
                source: SOURCE.to_owned(),
                configuration,
                servers: 1,
                restarts: 10,
                pictures: false,
                start_timeout: Duration::from_secs(60),
                step_timeout: Duration::from_secs(30),
            }),
            other => Err(HostError::failed(format!(
                "the configuration of a server must be an object and is {other}"
            ))),
        }
    }

    /// Sets a folder that servers import modules from, before those of `PYTHONPATH` and of the interpreter. Default: none; they
    /// never import from the current folder.
    #[must_use]
    pub fn modules(mut self, folder: impl Into<PathBuf>) -> Self {
        self.modules = Some(folder.into());
        self
    }

    /// Replaces `server.py` by another Python program, which speaks the protocol that the head of that file describes.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the number of servers that share a batch: at least 1, at most one per environment. Default: 1.
    #[must_use]
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    /// Sets the number of times that each server is restarted before its next fault is an error. Default: 10.
    #[must_use]
    pub fn restarts(mut self, restarts: usize) -> Self {
        self.restarts = restarts;
        self
    }

    /// Has environments prepared for [`Servers::draw`]. Default: they are not, as drawing costs.
    #[must_use]
    pub fn pictures(mut self) -> Self {
        self.pictures = true;
        self
    }

    /// Sets the time that a server may take to start, and again to begin its first episodes. Default: 60 s.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Sets the time that a server may take for a step, and to close its environments at the end. Default: 30 s.
    #[must_use]
    pub fn step_timeout(mut self, timeout: Duration) -> Self {
        self.step_timeout = timeout;
        self
    }
}

/// A batch of environments, spread over servers.
///
/// A server that dies, does not answer in time or answers nonsense is restarted, with fresh episodes: in that step its
/// environments have no reward, are truncated (terminated, if the spec has no truncation), and `next_observation` is their
/// last observation before it. A warning says why. After [`ServerOptions::restarts`] restarts of a server its next fault
/// is an error, with the end of the server's output; so is a fault before the first servers have sent their spaces.
///
/// Servers cannot be restored: [`HostEnvironment::snapshot`] is `None`.
pub struct Servers {
    spec: HostSpec,
    shards: Vec<Shard>,
    under_way: bool,
}

impl Servers {
    /// Starts the servers, and waits until all have sent their spaces.
    ///
    /// # Errors
    /// [`HostError::Server`] for a server that does not start; [`HostError::Failed`] if their spaces differ, or there are
    /// fewer environments than servers.
    pub fn start(options: &ServerOptions, environments: usize) -> Result<Self, HostError> {
        let servers = options.servers;
        if !(1..=environments).contains(&servers) {
            return Err(HostError::failed(format!(
                "a batch of {environments} environments cannot be spread over {servers} servers: each has at least one"
            )));
        }
        let bound = |server: usize| server * environments / servers;
        // All servers are starting before the first is waited for.
        let starting = (0..servers)
            .map(|i| Shard::start(options, i, bound(i)..bound(i + 1)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut shards = starting.into_iter().map(Shard::started).collect::<Result<Vec<_>, _>>()?;
        let spec = |shard: &Shard| HostSpec { environments, ..shard.spec().clone() };
        let first = spec(&shards[0]);
        if let Some(other) = shards.iter_mut().find(|shard| spec(shard) != first) {
            return Err(HostError::failed(format!(
                "environment servers 0 and {} serve different spaces: {first:?} and {:?}",
                other.index(),
                spec(other)
            )));
        }
        Ok(Servers { spec: first, shards, under_way: false })
    }

    /// Each server's description of itself: its packages with their versions, and its environment.
    pub fn about(&self) -> impl Iterator<Item = &str> {
        self.shards.iter().map(Shard::about)
    }

    /// Height and width of the pictures that [`Servers::draw`] gives.
    ///
    /// # Errors
    /// The reason why there are none, as a part of a sentence.
    pub fn picture_size(&self) -> Result<[usize; 2], &str> {
        match &self.shards[..] {
            [first, ..] => first.picture_size(),
            [] => Err("there is no server"),
        }
    }

    /// Draws the batch's first environment, with [`ServerOptions::pictures`]: one picture of its present state. If an episode of it
    /// ended in the last step, a picture of that episode's last state comes before, where the server can draw it. u8
    /// `[height, width, 3]` each
    ///
    /// # Errors
    /// [`HostError::Order`] during a step; [`HostError::Server`] of a server that draws nothing, or fails to.
    pub fn draw(&mut self) -> Result<Vec<Vec<u8>>, HostError> {
        if self.under_way {
            return Err(HostError::Order("a step is under way: `receive` comes first"));
        }
        match &mut self.shards[..] {
            [first, ..] => first.draw(),
            [] => Ok(Vec::new()),
        }
    }

    /// Process id of each running server.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.shards.iter().filter_map(Shard::process)
    }
}

/// All servers close their environments at the same time.
impl Drop for Servers {
    fn drop(&mut self) {
        self.shards.iter_mut().for_each(Shard::ask_to_end);
    }
}

impl HostEnvironment for Servers {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.check(&self.spec)?;
        if self.under_way {
            return Err(HostError::Order("a step is under way: `receive` comes first"));
        }
        for shard in &mut self.shards {
            shard.begin(seed, first);
        }
        for shard in &mut self.shards {
            shard.receive(&mut step.part(shard.environments()))?;
        }
        step.begin();
        Ok(())
    }

    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        if self.under_way {
            return Err(HostError::Order("a step is under way: `receive` comes first"));
        }
        self.spec.check_actions(actions)?;
        let size = self.spec.action.ty().bytes();
        for shard in &mut self.shards {
            let environments = shard.environments();
            shard.send(&actions[environments.start * size..environments.end * size])?;
        }
        self.under_way = true;
        Ok(())
    }

    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        if !std::mem::take(&mut self.under_way) {
            return Err(HostError::Order("`receive` comes after `send`"));
        }
        step.check(&self.spec)?;
        for shard in &mut self.shards {
            shard.receive(&mut step.part(shard.environments()))?;
        }
        Ok(())
    }

    fn restarts(&self) -> usize {
        self.shards.iter().map(Shard::restarts).sum()
    }
}
