//! Batches of environments on the host, for the actor threads of a run with `[sebulba]`.

use std::rc::Rc;

use anyhow::Result;
use podracer_dsl::Tensor;
use podracer_envs::Environment;
use podracer_envs::host::{HostEnvironment, HostSpec, NativeEnvironment, Pool};
use podracer_rl::host_loop::HostLoop;
use podracer_runtime::{Client, ClientOptions};

use crate::sebulba::compiled_environments;
use crate::settings::UsageError;

/// A source of batches of environments with the same spec.
#[derive(Clone)]
pub struct Batches {
    /// The spec of each batch.
    pub spec: HostSpec,
    make: Rc<dyn Fn() -> Result<Box<dyn HostEnvironment>>>,
}

impl Batches {
    /// Batches of `spec`, each made by a call of `make`.
    pub fn new<H: HostEnvironment + 'static>(
        spec: HostSpec,
        make: impl Fn() -> Result<H> + 'static,
    ) -> Self {
        Batches { spec, make: Rc::new(move || Ok(Box::new(make()?))) }
    }

    /// Environments that cannot be made here, for the given reason.
    pub(super) fn elsewhere(spec: HostSpec, reason: &'static str) -> Self {
        Batches { spec, make: Rc::new(move || Err(UsageError::new(reason).into())) }
    }

    /// Batches of `lanes` environments in plain Rust.
    pub fn native(environment: impl NativeEnvironment, lanes: usize) -> Self {
        let spec = Pool::spec_of(&environment, lanes);
        Batches::new(spec, move || Ok(Pool::try_new(&environment, lanes)?))
    }

    /// Batches of `lanes` environments of the DSL, compiled for the host, for rollouts of `unroll`
    /// steps.
    pub fn compiled(
        environment: impl Environment<Observation = Tensor>,
        lanes: usize,
        unroll: usize,
    ) -> Self {
        let spec = HostLoop::new(environment.clone(), lanes, unroll).spec();
        Batches::new(spec, move || {
            // A separate client: its threads do not compete for the devices that act and learn.
            let host =
                Client::cpu(ClientOptions { cpu_devices: Some(1), ..ClientOptions::default() })?;
            compiled_environments(&host, 0, environment.clone(), lanes, unroll)
        })
    }

    /// The next batch.
    ///
    /// # Errors
    /// Errors of the environment.
    pub fn make(&self) -> Result<Box<dyn HostEnvironment>> {
        (self.make)()
    }
}
