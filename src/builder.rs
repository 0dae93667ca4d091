//! Parts that the builders [`Anakin`](crate::anakin::Anakin), [`Sebulba`](crate::sebulba::Sebulba) and
//! [`CentralInference`](crate::central::CentralInference) share.

use std::path::Path;

use podracer_compiler::simplify::Options as Simplify;
use podracer_dsl::prelude::Tensor;
use podracer_rl::learn::Learn;
use podracer_runtime::setters::{ConfigureCentral, ConfigureHostLoop, ConfigureSebulba};
use podracer_runtime::{
    CentralSettings, Client, CompileOptions, Compiler, ExecutableCache, HostLoopSettings,
    OptionValue, Processes, ProgramOptions, SebulbaSettings, SebulbaShape, XlaOptions,
};

use crate::UsageError;

/// An agent, and the settings `S` of a loop with environments on the host:
/// [`Sebulba`](crate::sebulba::Sebulba) or [`CentralInference`](crate::central::CentralInference).
/// The methods of [`ConfigureHostLoop`] and of [`ConfigureSebulba`] or [`ConfigureCentral`] change
/// the settings in an experiment's table.
#[derive(Clone)]
pub struct HostTraining<A, S> {
    pub(crate) agent: A,
    pub(crate) settings: S,
    name: Option<String>,
    xla: Option<Vec<(String, OptionValue)>>,
    cache: Option<ExecutableCache>,
    simplify: Simplify,
    processes: Processes,
}

impl<A: Learn<Observation = Tensor>, S: AsRef<HostLoopSettings> + Default> HostTraining<A, S> {
    /// The default settings, with device 0 for acting and device 1 for learning.
    pub fn new(agent: A) -> Self {
        Self::with(agent, S::default())
    }

    /// The settings of an experiment's table. If they name no devices, device 0 acts and device 1
    /// learns.
    pub fn with(agent: A, settings: S) -> Self {
        HostTraining {
            agent,
            settings,
            name: None,
            xla: None,
            cache: None,
            simplify: Simplify::default(),
            processes: Processes::ONE,
        }
    }

    /// XLA's options, in place of the options by podracer's rule.
    #[must_use]
    pub fn xla(mut self, xla: Vec<(String, OptionValue)>) -> Self {
        self.xla = Some(xla);
        self
    }

    /// Cache of compiled programs, in place of the user's cache.
    #[must_use]
    pub fn cache(mut self, cache: ExecutableCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// The groups of simplifications before XLA; without this call there are none.
    #[must_use]
    pub fn simplify(mut self, simplify: Simplify) -> Self {
        self.simplify = simplify;
        self
    }

    /// The programs' name, for profiles and XLA's messages.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(module_name(name));
        self
    }

    /// The agent of the loop.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// The settings of the loop.
    pub fn settings(&self) -> &S {
        &self.settings
    }

    /// XLA's options for this run by podracer's rule. `platform` is `cpu`, `cuda` or `tpu`.
    #[must_use]
    pub fn xla_options(&self, platform: &str) -> Vec<(String, OptionValue)> {
        xla_options(platform, &self.simplify)
    }

    /// The simplifications before XLA.
    pub(crate) fn simplifications(&self) -> &Simplify {
        &self.simplify
    }

    /// The folder for a replay on the host, unless the settings name a folder.
    pub(crate) fn replay_in(mut self, folder: &Path) -> Self
    where
        S: ConfigureHostLoop,
    {
        self.settings.host_loop_settings().replay_folder.get_or_insert_with(|| folder.to_owned());
        self
    }

    /// The programs' name, or `otherwise` if no name was given, and the simplifications before XLA.
    pub(crate) fn tracing<'a>(&'a self, otherwise: &'a str) -> (&'a str, &'a Simplify) {
        (self.name.as_deref().unwrap_or(otherwise), &self.simplify)
    }

    /// The loop of one process of a client's world. Every process has the threads and devices of
    /// the settings.
    pub(crate) fn in_world_of(self, client: &Client) -> Self {
        HostTraining { processes: client.processes(), ..self }
    }

    /// Calls `start` with the compiler of its programs.
    pub(crate) fn compiling<T>(&self, client: &Client, start: impl FnOnce(Compiler<'_>) -> T) -> T {
        let rule = || self.xla_options(client.platform());
        let xla = self.xla.clone().unwrap_or_else(rule);
        let cache = self.cache.clone().unwrap_or_else(ExecutableCache::user);
        start(Compiler { client, xla: &xla, cache: &cache })
    }

    /// The sizes of the run with `threads` actor threads.
    pub(crate) fn shape(&self, threads: usize) -> SebulbaShape {
        let host = self.settings.as_ref();
        let (learners, processes) = (host.learning().len(), self.processes);
        SebulbaShape { threads, learners, processes, unroll: host.unroll }
    }

    /// Checks that there are steps, devices and lanes, and that the lanes divide over the learner
    /// devices.
    pub(crate) fn check_lanes(&self, lanes: usize) -> Result<(), UsageError> {
        let host = self.settings.as_ref();
        at_least_one(&[("unroll", host.unroll), ("the number of environments", lanes)])?;
        let learners = host.learning().len();
        if lanes.is_multiple_of(learners) {
            return Ok(());
        }
        Err(UsageError::new(format!(
            "the {lanes} environments of a thread do not divide over {learners} learner devices: their number must be a multiple of \
             {learners}"
        )))
    }
}

impl<A, S: ConfigureHostLoop> ConfigureHostLoop for HostTraining<A, S> {
    fn host_loop_settings(&mut self) -> &mut HostLoopSettings {
        self.settings.host_loop_settings()
    }
}

impl<A> ConfigureSebulba for HostTraining<A, SebulbaSettings> {
    fn sebulba_settings(&mut self) -> &mut SebulbaSettings {
        &mut self.settings
    }
}

impl<A> ConfigureCentral for HostTraining<A, CentralSettings> {
    fn central_settings(&mut self) -> &mut CentralSettings {
        &mut self.settings
    }
}

/// XLA's options by podracer's rule. `platform` is `cpu`, `cuda` or `tpu`.
pub(crate) fn xla_options(platform: &str, simplify: &Simplify) -> Vec<(String, OptionValue)> {
    let rule = XlaOptions::for_platform(platform);
    if simplify.whole_loops { rule.searching() } else { rule }.pairs()
}

/// The name of a module: `name` with `_` in place of every character except ASCII letters and
/// digits.
pub(crate) fn module_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Checks that each count is at least 1.
pub(crate) fn at_least_one(counts: &[(&str, usize)]) -> Result<(), UsageError> {
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((what, _)) => Err(UsageError::new(format!("{what} must be at least 1 and is 0"))),
        None => Ok(()),
    }
}

/// Options of a program for one device, by its index.
pub(crate) fn on_device(device: usize) -> ProgramOptions {
    let compile =
        CompileOptions { device_assignment: Some(vec![device]), ..CompileOptions::default() };
    ProgramOptions { compile, ..ProgramOptions::default() }
}
