//! Batches of native environments, stepped by a pool of threads that all batches of the process share.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::{Deserialize, Serialize};

use super::{
    HostEnvironment, HostError, HostSpec, HostStep, NativeEnvironment, Outcome, Random, StepMemory,
};

/// A batch of native environments. Batches of more than [`NativeEnvironment::min_per_thread`] are cut into parts, which
/// the threads of rayon's global pool step; smaller ones step where [`HostEnvironment::receive`] is called.
pub struct Pool<E: NativeEnvironment> {
    spec: HostSpec,
    /// The parts, in order; `None` while a part is stepped by the thread pool.
    parts: Vec<Option<Share<E>>>,
    done: (Sender<Stepped<E>>, Receiver<Stepped<E>>),
    under_way: bool,
}

/// Index of a part and the part after its step, or the panic of one of its environments.
type Stepped<E> = (usize, Result<Share<E>, HostError>);

/// One episode and the random numbers of its environment.
#[derive(Serialize, Deserialize)]
struct PoolLane<S> {
    random: Random,
    state: S,
}

/// Environments that step together, with memory of their own: the part is sent to a thread and back.
struct Share<E: NativeEnvironment> {
    /// Index of the first environment in the batch.
    first: usize,
    environment: E,
    lanes: Vec<PoolLane<E::State>>,
    actions: Vec<u8>,
    memory: StepMemory,
}

impl<E: NativeEnvironment> Pool<E> {
    /// A batch of `environments` copies of `prototype`, at least one.
    ///
    /// # Panics
    /// If `environments` is 0, or the system has less memory than the batch needs.
    #[must_use]
    pub fn new(prototype: &E, environments: usize) -> Self {
        Self::try_new(prototype, environments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Pool::new`].
    ///
    /// # Errors
    /// [`HostError::Memory`] if the system has less memory than the batch needs.
    ///
    /// # Panics
    /// If `environments` is 0.
    pub fn try_new(prototype: &E, environments: usize) -> Result<Self, HostError> {
        assert!(environments > 0, "a batch has at least one environment");
        let threads = rayon::current_num_threads();
        let parts = (environments / prototype.min_per_thread().max(1)).clamp(1, threads);
        Self::try_in_parts(prototype, environments, parts)
    }

    /// The spec of a batch of `environments` copies of `prototype`, which are not made.
    #[must_use]
    pub fn spec_of(prototype: &E, environments: usize) -> HostSpec {
        HostSpec {
            environments,
            observation: prototype.observation_space(),
            action: prototype.action_space(),
            truncates: prototype.truncates(),
            skips: false,
            masks: false,
            succeeds: false,
        }
    }

    /// Like [`Pool::new`], in a given number of parts. More than one are stepped by the pool's threads.
    ///
    /// # Panics
    /// If there are no parts, fewer environments than parts, or less memory than the batch needs.
    #[must_use]
    pub fn in_parts(prototype: &E, environments: usize, parts: usize) -> Self {
        Self::try_in_parts(prototype, environments, parts).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_in_parts(prototype: &E, environments: usize, parts: usize) -> Result<Self, HostError> {
        assert!(
            (1..=environments).contains(&parts),
            "{environments} environments do not make {parts} parts"
        );
        let spec = Self::spec_of(prototype, environments);
        let part = |index: usize| {
            let bound = |part: usize| part * environments / parts;
            let (first, size) = (bound(index), bound(index + 1) - bound(index));
            let memory = StepMemory::try_new(&HostSpec { environments: size, ..spec.clone() })?;
            let lane = |_| {
                let mut random = Random::from_state(0);
                PoolLane { state: prototype.initial_state(&mut random), random }
            };
            let bytes = size * size_of::<PoolLane<E::State>>();
            let mut lanes = Vec::new();
            lanes
                .try_reserve_exact(size)
                .map_err(|_| HostError::Memory { environments: size, bytes })?;
            lanes.extend((0..size).map(lane));
            let environment = prototype.clone();
            Ok(Some(Share { first, environment, lanes, actions: Vec::new(), memory }))
        };
        let parts = (0..parts).map(part).collect::<Result<_, HostError>>()?;
        Ok(Pool { parts, spec, done: unbounded(), under_way: false })
    }

    fn expect_rest(&self) -> Result<(), HostError> {
        if self.under_way || self.parts.iter().any(Option::is_none) {
            return Err(HostError::Order(
                "a step is under way, or ended in an error: nothing else can be done now",
            ));
        }
        Ok(())
    }

    /// The parts of a batch that is not stepping.
    fn at_rest(&mut self) -> Result<impl Iterator<Item = &mut Share<E>>, HostError> {
        self.expect_rest()?;
        Ok(self.parts.iter_mut().flatten())
    }
}

impl<E: NativeEnvironment> HostEnvironment for Pool<E> {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        step.check(&self.spec)?;
        for part in self.at_rest()? {
            for (i, lane) in part.lanes.iter_mut().enumerate() {
                lane.random = Random::of_environment(seed, first + part.first + i);
                lane.state = part.environment.initial_state(&mut lane.random);
            }
            part.observe();
            part.copy_to(step);
        }
        step.begin();
        Ok(())
    }

    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.spec.check_actions(actions)?;
        let size = self.spec.action.ty().bytes();
        for part in self.at_rest()? {
            part.actions.clear();
            let bytes = part.first * size..(part.first + part.lanes.len()) * size;
            part.actions.extend_from_slice(&actions[bytes]);
        }
        self.under_way = true;
        if self.parts.len() > 1 {
            for (index, slot) in self.parts.iter_mut().enumerate() {
                if let Some(part) = slot.take() {
                    let done = self.done.0.clone();
                    // A batch that was dropped meanwhile takes nothing back.
                    rayon::spawn(move || drop(done.send((index, part.stepped()))));
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        if !std::mem::take(&mut self.under_way) {
            return Err(HostError::Order("`receive` comes after `send`"));
        }
        step.check(&self.spec)?;
        let mut failed = Ok(());
        // Take all parts that are here before any comes back from the pool: they come in any order.
        let here: Vec<_> = self.parts.iter_mut().map(Option::take).collect();
        for (index, part) in here.into_iter().enumerate() {
            let (index, part) = match part {
                Some(part) => (index, part.stepped()),
                // The batch holds a sender itself, so that there is always one to come.
                None => self.done.1.recv().map_err(HostError::failed)?,
            };
            match part {
                Ok(part) => {
                    part.copy_to(step);
                    self.parts[index] = Some(part);
                }
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    fn snapshot(&self) -> Result<Option<Vec<u8>>, HostError> {
        self.expect_rest()?;
        let lanes: Vec<&PoolLane<E::State>> =
            self.parts.iter().flatten().flat_map(|part| &part.lanes).collect();
        postcard::to_stdvec(&lanes).map(Some).map_err(HostError::failed)
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), HostError> {
        self.expect_rest()?;
        let (lanes, rest): (Vec<PoolLane<E::State>>, _) = postcard::take_from_bytes(snapshot)
            .map_err(|error| HostError::Snapshot(error.to_string()))?;
        let environments = self.spec.environments;
        if lanes.len() != environments {
            return Err(HostError::Snapshot(format!(
                "it comes from a batch of {} environments, and this batch has {environments}",
                lanes.len()
            )));
        }
        if !rest.is_empty() {
            return Err(HostError::Snapshot(format!(
                "it has {} bytes too many: it comes from another batch",
                rest.len()
            )));
        }
        let mut lanes = lanes.into_iter().enumerate();
        for part in self.at_rest()? {
            for (lane, (environment, saved)) in part.lanes.iter_mut().zip(lanes.by_ref()) {
                part.environment.check(&saved.state).map_err(|problem| {
                    HostError::Snapshot(format!("environment {environment}: {problem}"))
                })?;
                *lane = saved;
            }
        }
        Ok(())
    }
}

impl<E: NativeEnvironment> Share<E> {
    /// Steps every environment, and resets those whose episode ended.
    fn stepped(mut self) -> Result<Self, HostError> {
        let mut index = self.first;
        // A panic must neither end the process (as it would on a thread of the pool) nor the other batches.
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let size = self.actions.len() / self.lanes.len();
            let step = self.memory.step();
            let observations = step.observation.len() / self.lanes.len();
            for (i, PoolLane { random, state }) in self.lanes.iter_mut().enumerate() {
                index = self.first + i;
                let bytes = i * observations..(i + 1) * observations;
                let action = &self.actions[i * size..(i + 1) * size];
                let outcome = self.environment.step(state, action, random);
                let Outcome { reward, terminated, truncated } = outcome;
                step.reward[i] = reward;
                step.terminated[i] = u8::from(terminated);
                step.truncated[i] = u8::from(truncated);
                if !step.next_observation.is_empty() {
                    self.environment.observe(state, &mut step.next_observation[bytes.clone()]);
                }
                if outcome.done() {
                    *state = self.environment.initial_state(random);
                }
                self.environment.observe(state, &mut step.observation[bytes]);
            }
        }));
        match caught {
            Ok(()) => Ok(self),
            Err(panic) => {
                Err(HostError::Panicked { environment: index, message: panic_message(&*panic) })
            }
        }
    }

    fn observe(&mut self) {
        let step = self.memory.step();
        let size = step.observation.len() / self.lanes.len();
        for (lane, bytes) in self.lanes.iter().zip(step.observation.chunks_exact_mut(size)) {
            self.environment.observe(&lane.state, bytes);
        }
    }

    /// Copies the part's step into the step of the batch.
    fn copy_to(&self, step: &mut HostStep<'_>) {
        let size = self.memory.observation().len() / self.lanes.len();
        let bytes = self.first * size..(self.first + self.lanes.len()) * size;
        if !step.next_observation.is_empty() {
            step.next_observation[bytes.clone()].copy_from_slice(self.memory.next_observation());
        }
        step.observation[bytes].copy_from_slice(self.memory.observation());
        for i in 0..self.lanes.len() {
            let (terminated, truncated) = self.memory.done(i);
            step.reward[self.first + i] = self.memory.reward()[i];
            step.terminated[self.first + i] = u8::from(terminated);
            step.truncated[self.first + i] = u8::from(truncated);
        }
    }
}

/// The message of a panic.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it says nothing".to_owned())
}
