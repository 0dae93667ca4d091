//! Environments of the DSL as environments on the host: compiled for a CPU device and stepped by
//! one program.

use podracer_dsl::Report;
use podracer_dsl::prelude::{
    Key, Log, Spec, Tensor, Tree, collect, f32 as f32_spec, i32 as i32_spec, trace, u32 as u32_spec,
};
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep, StepOutcome};

use crate::reports::read_log;
use crate::warnings;
use crate::{Argument, Array, Buffer, Client, Executable, ProgramOptions, SebulbaError, lower};

/// A batch of environments that are functions of the DSL.
pub struct CompiledEnvironments {
    spec: HostSpec,
    begin: Executable,
    step: Executable,
    /// The environments, on the device.
    state: Vec<Buffer>,
    /// The results of the step in progress.
    under_way: Option<Vec<Buffer>>,
    /// Types of the reports from `check` and `debug_print` in `step`; the `outcome` leaves of the
    /// results precede them.
    log: Spec<Log>,
    outcome: usize,
    /// Reports of `check` and `debug_print` that have not been taken yet.
    reports: Vec<Report>,
}

impl CompiledEnvironments {
    /// Compiles the two functions for the device in `options`. `begin` makes the environments,
    /// their first observations, and their first masks of legal actions if they have any. It takes
    /// the run's key and the global index of the first environment. `step` takes a batch of
    /// actions. It also returns the successes, f32 `[N]`, for environments that have them
    /// ([`HostSpec::succeeds`]).
    ///
    /// # Errors
    /// [`SebulbaError::Trace`] with the mistakes in the functions, [`SebulbaError::Options`] if
    /// they do not match `spec`, [`SebulbaError::Runtime`].
    #[track_caller]
    pub fn compile<S: Tree>(
        client: &Client,
        options: &ProgramOptions,
        spec: HostSpec,
        begin: impl FnOnce(Key, Tensor) -> (S, Tensor, Option<Tensor>),
        step: impl FnOnce(S, Tensor) -> (S, StepOutcome, Option<Tensor>),
    ) -> Result<Self, SebulbaError> {
        let begin = trace((u32_spec([2]), i32_spec([])), |(key, first)| {
            begin(Key::from_words(key), first)
        })?;
        let (state, observation, legal_actions) = &**begin.results();
        let action = Spec::<Tensor>(spec.action_type());
        let step = trace((state, &action), |(state, action)| collect(|| step(state, action)))?;
        let (stepped, log) = &**step.results();
        let (stepped, outcome, success) = &**stepped;
        let expected = spec.outcome();
        let succeeds = f32_spec([spec.environments]);
        let succeeds_as_described = *success == Spec(spec.succeeds.then_some(succeeds));
        let shows =
            **observation == spec.observation_type() && *legal_actions == expected.legal_actions;
        if !shows || !succeeds_as_described || *outcome != expected || stepped != state {
            return Err(SebulbaError::Options(format!(
                "environments of {spec:?} show {observation} with masks {legal_actions}, and step from {state} to {stepped} with {outcome} and successes {success}: \
                 expected {expected}"
            )));
        }
        begin.warnings().iter().chain(step.warnings()).for_each(warnings::tell);
        let compile = |name, lowered: crate::Lowered| {
            let compiled = options.cache.compile(client, &lowered.module, &options.compile);
            compiled.map(|(executable, _)| {
                tracing::debug!(name, "compiled environments");
                executable
            })
        };
        Ok(CompiledEnvironments {
            begin: compile("begin", lower("environments_begin", &begin, 1)?)?,
            step: compile("step", lower("environments_step", &step, 1)?)?,
            spec,
            state: Vec::new(),
            under_way: None,
            log: Spec::clone(log),
            outcome: outcome.leaves().len() + success.leaves().len(),
            reports: Vec::new(),
        })
    }

    fn expect_rest(&self) -> Result<(), HostError> {
        if self.under_way.is_some() {
            return Err(HostError::Order("a step is under way: receive it first"));
        }
        Ok(())
    }
}

/// Runs a program with one replica.
fn run(program: &Executable, arguments: Vec<Argument<'_>>) -> Result<Vec<Buffer>, HostError> {
    let results = program.execute(vec![arguments]).map_err(HostError::failed)?;
    Ok(results.into_iter().next().unwrap_or_default())
}

/// Copies a result into the caller's memory.
fn fetch(buffer: &Buffer, into: &mut [u8]) -> Result<(), HostError> {
    into.copy_from_slice(buffer.to_host().map_err(HostError::failed)?.bytes());
    Ok(())
}

/// Reads f32s from their bytes.
fn read_floats(bytes: &[u8], into: &mut [f32]) {
    for (number, bytes) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *number = f32::from_le_bytes(*bytes);
    }
}

impl HostEnvironment for CompiledEnvironments {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.expect_rest()?;
        step.check(&self.spec)?;
        let upload = |index, array| self.begin.upload(0, index, &array).map_err(HostError::failed);
        let key = upload(0, Array::key(seed))?;
        let first = upload(1, Array::scalar(first as i32))?;
        let mut results = run(&self.begin, vec![key.into(), first.into()])?;
        let shown = results.split_off(self.step.arguments().len() - 1);
        let legal_actions = self.spec.masks.then_some(&mut *step.legal_actions);
        for (leaf, into) in
            shown.iter().zip([&mut *step.observation].into_iter().chain(legal_actions))
        {
            fetch(leaf, into)?;
        }
        step.begin();
        self.state = results;
        Ok(())
    }

    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.expect_rest()?;
        if self.state.is_empty() {
            return Err(HostError::Order("`reset` comes first"));
        }
        let leaves = self.state.len();
        let actions = self.step.upload_bytes(0, leaves, actions).map_err(HostError::failed)?;
        let state = std::mem::take(&mut self.state);
        let arguments = state.into_iter().chain([actions]).map(Argument::Donated);
        let mut results = run(&self.step, arguments.collect())?;
        self.under_way = Some(results.split_off(leaves));
        self.state = results;
        Ok(())
    }

    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.check(&self.spec)?;
        let mut outcome =
            self.under_way.take().ok_or(HostError::Order("`receive` comes after `send`"))?;
        let log = outcome.split_off(self.outcome);
        self.reports.extend(read_log(&self.log, &log).map_err(HostError::failed)?);
        let mut rewards = vec![0; 4 * step.reward.len()];
        let always =
            [&mut *step.observation, &mut rewards, &mut *step.terminated, &mut *step.truncated];
        let next_observation = self.spec.truncates.then_some(&mut *step.next_observation);
        let legal_actions = self.spec.masks.then_some(&mut *step.legal_actions);
        let into = always.into_iter().chain(next_observation).chain(legal_actions);
        for (leaf, into) in outcome.iter().zip(into) {
            fetch(leaf, into)?;
        }
        read_floats(&rewards, step.reward);
        let ended = step.terminated.contains(&1) || step.truncated.contains(&1);
        if let Some(successes) = outcome.last().filter(|_| self.spec.succeeds && ended) {
            let mut bytes = rewards;
            fetch(successes, &mut bytes)?;
            read_floats(&bytes, step.success);
        }
        Ok(())
    }

    fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    fn snapshot(&self) -> Result<Option<Vec<u8>>, HostError> {
        self.expect_rest()?;
        let mut bytes = Vec::new();
        for leaf in &self.state {
            bytes.extend(leaf.to_host().map_err(HostError::failed)?.bytes());
        }
        Ok(Some(bytes))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), HostError> {
        self.expect_rest()?;
        let types = &self.step.arguments()[..self.step.arguments().len() - 1];
        let expected: usize = types.iter().map(|ty| ty.bytes()).sum();
        if snapshot.len() != expected {
            return Err(HostError::Snapshot(format!(
                "these environments take {expected} bytes and it has {}",
                snapshot.len()
            )));
        }
        let mut rest = snapshot;
        let mut state = Vec::with_capacity(types.len());
        for (index, ty) in types.iter().enumerate() {
            let (leaf, after) = rest.split_at(ty.bytes());
            state.push(self.step.upload_bytes(0, index, leaf).map_err(HostError::failed)?);
            rest = after;
        }
        self.state = state;
        Ok(())
    }
}
