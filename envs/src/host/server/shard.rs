//! A part of a batch: the environments of one server, and the processes that serve them one after another.

use std::ops::Range;

use super::super::{HostError, HostSpec, HostStep};
use super::ServerOptions;
use super::process::{Fault, Process};
use super::protocol::{Introduction, picture_bytes, reset_line, seeds, shortened};

/// The environments of one server.
pub(super) struct Shard {
    options: ServerOptions,
    /// Index of the server in the batch.
    index: usize,
    /// Indices of the server's environments in the batch.
    environments: Range<usize>,
    /// `None` after a fault that was an error.
    process: Option<Process>,
    introduction: Introduction,
    restarts: usize,
    /// The run's seed, and the global index of the batch's first environment; `None` before the first episodes.
    begun: Option<(u64, usize)>,
    /// Number of the step that was asked for last; 0 is a reset.
    number: u64,
    /// The fault that kept the last request from being sent.
    fault: Option<Fault>,
    /// True for environments whose next step is reset-only: if the spec has such steps, those whose episode just ended.
    resting: Vec<bool>,
}

/// A server that has not sent its spaces yet.
pub(super) struct Starting {
    options: ServerOptions,
    index: usize,
    environments: Range<usize>,
    process: Process,
}

impl Shard {
    pub(super) fn start(
        options: &ServerOptions,
        index: usize,
        environments: Range<usize>,
    ) -> Result<Starting, HostError> {
        let options = options.clone();
        match Process::start(&options, environments.len()) {
            Ok(process) => Ok(Starting { options, index, environments, process }),
            Err(fault) => Err(HostError::Server {
                server: index,
                python: options.python,
                problem: format!("{fault}"),
            }),
        }
    }

    pub(super) fn started(starting: Starting) -> Result<Self, HostError> {
        let Starting { options, index, environments, mut process } = starting;
        match process.shake_hands(environments.len(), options.start_timeout) {
            Ok(introduction) => Ok(Shard {
                options,
                index,
                process: Some(process),
                introduction,
                restarts: 0,
                begun: None,
                number: 0,
                fault: None,
                resting: vec![false; environments.len()],
                environments,
            }),
            Err(fault) => Err(HostError::Server {
                server: index,
                python: options.python,
                problem: format!("{fault}{}", process.end(&fault, options.step_timeout)),
            }),
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn environments(&self) -> Range<usize> {
        self.environments.clone()
    }

    pub(super) fn spec(&self) -> &HostSpec {
        &self.introduction.spec
    }

    pub(super) fn about(&self) -> &str {
        &self.introduction.about
    }

    /// Height and width of the pictures, or why there are none.
    pub(super) fn picture_size(&self) -> Result<[usize; 2], &str> {
        self.introduction.picture.as_ref().copied().map_err(String::as_str)
    }

    /// Pictures of the first environment, oldest first.
    pub(super) fn draw(&mut self) -> Result<Vec<Vec<u8>>, HostError> {
        self.take_pictures().map_err(|fault| {
            let patience = self.options.step_timeout;
            let printed = self.process.take().map(|process| process.end(&fault, patience));
            self.error(&fault, &printed.unwrap_or_default())
        })
    }

    fn take_pictures(&mut self) -> Result<Vec<Vec<u8>>, Fault> {
        let timeout = self.options.step_timeout;
        let size = self.picture_size().map(picture_bytes);
        let size = size.map_err(|why| Fault::Nonsense(format!("no pictures, as {why}")))?;
        let process = self.alive()?;
        process.say("draw")?;
        let line = process.hear(timeout)?;
        let count = match &line[..] {
            "drawn 1" => 1,
            "drawn 2" => 2,
            other => {
                let other = shortened(other);
                return Err(Fault::Nonsense(format!("expected one picture or two, got {other}")));
            }
        };
        let mut bytes = vec![0; count * size];
        let unplaced = || Fault::Nonsense("no pictures".to_owned());
        let place = process.layout()?.picture.ok_or_else(unplaced)?;
        process.read(place, &mut bytes)?;
        Ok(bytes.chunks(size).map(<[u8]>::to_vec).collect())
    }

    /// Asks the server to close its environments and to end.
    pub(super) fn ask_to_end(&mut self) {
        if let Some(process) = &mut self.process {
            process.ask_to_end(self.options.step_timeout);
        }
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    pub(super) fn process(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// Asks for new episodes.
    pub(super) fn begin(&mut self, seed: u64, first: usize) {
        self.begun = Some((seed, first));
        self.fault = self.ask_for_episodes().err();
    }

    fn ask_for_episodes(&mut self) -> Result<(), Fault> {
        let (seed, first) = self.begun.unwrap_or_default();
        let global = first + self.environments.start..first + self.environments.end;
        let line = reset_line(&seeds(seed, global.clone(), self.restarts), global.start);
        self.number = 0;
        self.alive()?.say(&line)
    }

    fn alive(&mut self) -> Result<&mut Process, Fault> {
        self.process.as_mut().ok_or(Fault::Died)
    }

    /// Asks for a step with the actions' bytes.
    pub(super) fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        if self.begun.is_none() {
            return Err(HostError::Order("`reset` comes before the first `send`"));
        }
        let number = self.number + 1;
        self.number = number;
        let ask = |process: &mut Process| {
            process.write(process.layout()?.action, actions)?;
            process.say(&format!("step {number}"))
        };
        self.fault = self.alive().and_then(ask).err();
        Ok(())
    }

    /// Waits for the answer to the last request. After a fault the server is restarted, if any restarts are left.
    pub(super) fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        let number = self.number;
        let Err(mut fault) = self.take_answer(step) else {
            return Ok(());
        };
        // The memory outlives its server, and the step that failed was written into the other slot.
        let mut shown = vec![0; step.observation.len()];
        if let (1.., Some(process)) = (number, &self.process) {
            let mut read = |process: &Process| {
                let slot = &process.layout()?.slots[(number as usize - 1) % 2];
                process.read(slot.observation, &mut shown)
            };
            read(process).map_err(|fault| self.error(&fault, ""))?;
        }
        let resting = self.resting.clone();
        while let Err(next) = self.restart(&fault)?.take_answer(step) {
            fault = next;
        }
        if number > 0 {
            let cut_off = if self.spec().truncates {
                step.next_observation.copy_from_slice(&shown);
                &mut step.truncated
            } else {
                &mut step.terminated
            };
            cut_off.fill(1);
            // Without an episode under way none is cut off: the step is reset-only.
            for (i, _) in resting.iter().enumerate().filter(|(_, resting)| **resting) {
                (step.terminated[i], step.truncated[i]) = (1, 1);
            }
        }
        Ok(())
    }

    /// Waits for the answer, and writes the first observations or the step.
    fn take_answer(&mut self, step: &mut HostStep<'_>) -> Result<(), Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let number = self.number;
        let timeout = match number {
            0 => self.options.start_timeout,
            _ => self.options.step_timeout,
        };
        let process = self.alive()?;
        process.expect(&format!("done {number}"), timeout)?;
        let slot = process.layout()?.slots[number as usize % 2].clone();
        process.read(slot.observation, step.observation)?;
        if number == 0 {
            step.begin();
            self.resting.fill(false);
            return Ok(());
        }
        let mut reward = vec![0; 4 * step.reward.len()];
        process.read(slot.reward, &mut reward)?;
        for (reward, bytes) in step.reward.iter_mut().zip(reward.as_chunks().0) {
            *reward = f32::from_le_bytes(*bytes);
        }
        process.read(slot.terminated, step.terminated)?;
        process.read(slot.truncated, step.truncated)?;
        if let Some(next_observation) = slot.next_observation {
            // Only the rows of episodes that ended differ.
            step.next_observation.copy_from_slice(step.observation);
            let size = step.observation.len() / step.reward.len();
            for (i, row) in step.next_observation.chunks_exact_mut(size).enumerate() {
                if step.terminated[i] | step.truncated[i] > 0 {
                    process.read(next_observation + i * size, row)?;
                }
            }
        }
        self.take_ends(step.terminated, step.truncated)
    }

    /// Checks the end flags of a step against the spec, and notes which environments reset in the next step.
    fn take_ends(&mut self, terminated: &[u8], truncated: &[u8]) -> Result<(), Fault> {
        let &HostSpec { truncates, skips, .. } = self.spec();
        let mut next = vec![false; self.resting.len()];
        let ends = terminated.iter().zip(truncated);
        for (i, (ends, &resting)) in ends.zip(&self.resting).enumerate() {
            next[i] = match (ends, resting) {
                ((0, 0), false) => false,
                ((1, 0), false) => skips,
                ((0, 1), false) if truncates => skips,
                ((1, 1), true) => false,
                ((terminated, truncated), _) => {
                    let expected = match (resting, truncates) {
                        (true, _) => "which both are 1 in the step after an end",
                        (false, true) => "of which at most one can be 1",
                        (false, false) => "of which at most one can be 1, and only the former",
                    };
                    return Err(Fault::Nonsense(format!(
                        "environment {i} of it has terminated = {terminated} and truncated = {truncated}, {expected}"
                    )));
                }
            };
        }
        self.resting = next;
        Ok(())
    }

    /// Starts another server, and asks it for new episodes; an error if no restarts are left.
    fn restart(&mut self, fault: &Fault) -> Result<&mut Self, HostError> {
        let patience = self.options.step_timeout;
        let printed = self.process.take().map(|process| process.end(fault, patience));
        let printed = printed.unwrap_or_default();
        if self.restarts >= self.options.restarts {
            return Err(self.error(fault, &printed));
        }
        self.restarts += 1;
        tracing::warn!(
            "environment server {} is restarted ({} of {} times), with fresh episodes in its {} environments: {fault}{printed}",
            self.index,
            self.restarts,
            self.options.restarts,
            self.environments.len()
        );
        self.fault = self.start_again().err();
        Ok(self)
    }

    fn start_again(&mut self) -> Result<(), Fault> {
        let environments = self.environments.len();
        let process = Process::start(&self.options, environments)?;
        let timeout = self.options.start_timeout;
        let now = self.process.insert(process).shake_hands(environments, timeout)?;
        let before = &self.introduction;
        if now.spec != before.spec {
            return Err(Fault::Nonsense(format!(
                "it serves other spaces than before: {:?} in place of {:?}",
                now.spec, before.spec
            )));
        }
        if now.picture.as_ref().ok() != before.picture.as_ref().ok() {
            return Err(Fault::Nonsense("its pictures have another size than before".to_owned()));
        }
        self.ask_for_episodes()
    }

    fn error(&self, fault: &Fault, printed: &str) -> HostError {
        let after = match self.restarts {
            0 => String::new(),
            1 => " after a restart".to_owned(),
            restarts => format!(" after {restarts} restarts"),
        };
        HostError::Server {
            server: self.index,
            python: self.options.python.clone(),
            problem: format!("{fault}{after}{printed}"),
        }
    }
}

/// Ends the server, which closes its environments before.
impl Drop for Shard {
    fn drop(&mut self) {
        self.ask_to_end();
        for problem in self.process.take().map(Process::finish).unwrap_or_default() {
            tracing::warn!("environment server {}: {problem}", self.index);
        }
    }
}
