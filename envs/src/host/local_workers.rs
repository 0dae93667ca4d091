//! Workers that are threads of this process, with a batch of environments each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};

use super::{
    Answer, HostEnvironment, HostError, StepMemory, WorkerEvent, WorkerId, WorkerStep, Workers,
    WorkersClosed,
};

/// Workers that are threads of this process, with a batch of environments each. One that fails ends them all: nobody would start
/// it again.
pub struct LocalWorkers {
    events: Receiver<Result<WorkerEvent, WorkersClosed>>,
    /// The commands of each worker; dropped to end it.
    workers: Vec<(WorkerId, Option<Sender<Command>>)>,
    threads: Vec<JoinHandle<()>>,
}

/// Longest time that dropping the workers waits for steps under way.
const PATIENCE: Duration = Duration::from_secs(5);

enum Command {
    Begin { seed: u64, first: usize },
    Act { sequence: u64, actions: Bytes },
}

impl LocalWorkers {
    /// A thread for each batch of environments. The workers' numbers begin with `first`. Restarts of environments are added to
    /// `restarts`.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn new(
        environments: Vec<Box<dyn HostEnvironment>>,
        first: u64,
        restarts: &Arc<AtomicUsize>,
    ) -> Result<Self, HostError> {
        let (sender, events) = unbounded();
        let mut all = LocalWorkers { events, workers: Vec::new(), threads: Vec::new() };
        for (number, environments) in (first..).zip(environments) {
            let worker = WorkerId(number);
            let n = environments.spec().environments;
            // Nobody has dropped the other end.
            let _ = sender.send(Ok(WorkerEvent::Joined { worker, environments: n, origin: None }));
            let (commands, received) = bounded(2);
            let (sender, restarts) = (sender.clone(), Arc::clone(restarts));
            let thread = thread::Builder::new().name(format!("worker {number}"));
            let thread = thread.spawn(move || {
                let worked = work(environments, worker, &received, &sender, &restarts);
                if let Err(error) = worked {
                    // The inference thread may have ended.
                    let _ = sender.send(Err(WorkersClosed(format!("worker {number}: {error}"))));
                }
            });
            all.threads.push(thread.map_err(HostError::failed)?);
            all.workers.push((worker, Some(commands)));
        }
        Ok(all)
    }

    /// Number of the workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// True if there are no workers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    fn command(&mut self, worker: WorkerId, command: Command) {
        let commands = self.workers.iter().find(|(id, _)| *id == worker);
        if let Some((_, Some(commands))) = commands {
            // A worker that has failed says so itself.
            let _ = commands.send(command);
        }
    }
}

impl Workers for LocalWorkers {
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        match self.events.recv_deadline(until) {
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(WorkersClosed("all workers were sent away".to_owned()))
            }
        }
    }

    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        self.command(worker, Command::Begin { seed, first: first_lane });
    }

    fn answer(&mut self, answers: Vec<Answer>) {
        for Answer { worker, sequence, actions, .. } in answers {
            self.command(worker, Command::Act { sequence, actions });
        }
    }

    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        tracing::warn!("worker {} ends: {reason}", worker.0);
        self.workers.iter_mut().filter(|(id, _)| *id == worker).for_each(|(_, one)| *one = None);
    }
}

impl Drop for LocalWorkers {
    fn drop(&mut self) {
        self.workers.clear();
        let began = Instant::now();
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && began.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Carries out requests until the channel of requests is closed.
fn work(
    mut environments: Box<dyn HostEnvironment>,
    worker: WorkerId,
    commands: &Receiver<Command>,
    events: &Sender<Result<WorkerEvent, WorkersClosed>>,
    restarts: &AtomicUsize,
) -> Result<(), HostError> {
    let mut memory = StepMemory::try_new(environments.spec())?;
    let mut known = 0;
    for command in commands {
        let sequence = match command {
            Command::Begin { seed, first } => {
                environments.reset(seed, first, &mut memory.step())?;
                0
            }
            Command::Act { sequence, actions } => {
                environments.step(&actions, &mut memory.step())?;
                sequence + 1
            }
        };
        for report in environments.reports() {
            tracing::warn!("worker {}: {report}", worker.0);
        }
        restarts.fetch_add(environments.restarts() - known, Ordering::Relaxed);
        known = environments.restarts();
        let step = WorkerStep::copied(&memory);
        if events.send(Ok(WorkerEvent::Stepped { worker, sequence, step })).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{HostSpec, NativeCartPole, Pool};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn pools(n: usize) -> Vec<Box<dyn HostEnvironment>> {
        (0..n)
            .map(|_| Box::new(Pool::new(&NativeCartPole::new(9), 3)) as Box<dyn HostEnvironment>)
            .collect()
    }

    #[test]
    fn workers_step_as_their_environments_do() {
        let mut workers = LocalWorkers::new(pools(2), 5, &Arc::default()).unwrap();
        for number in [5, 6] {
            let event = workers.next(soon()).unwrap().unwrap();
            let WorkerEvent::Joined { worker, environments: 3, .. } = event else { panic!() };
            assert_eq!(worker, WorkerId(number));
        }
        assert!(workers.next(Instant::now()).unwrap().is_none(), "nobody was admitted");
        workers.admit(WorkerId(6), 4, 7);
        let mut pool = Pool::new(&NativeCartPole::new(9), 3);
        let mut memory = StepMemory::new(pool.spec());
        pool.reset(7, 4, &mut memory.step()).unwrap();
        for expected in 0..3 {
            let event = workers.next(soon()).unwrap().unwrap();
            let WorkerEvent::Stepped { worker, sequence, step } = event else { panic!() };
            assert_eq!((worker, sequence), (WorkerId(6), expected));
            assert_eq!(step, WorkerStep::copied(&memory));
            let actions = Bytes::from(vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
            pool.step(&actions, &mut memory.step()).unwrap();
            workers.answer(vec![Answer { worker, sequence, actions, version: 0 }]);
        }
    }

    #[test]
    fn a_worker_that_fails_ends_them_all() {
        let mut workers = LocalWorkers::new(pools(2), 0, &Arc::default()).unwrap();
        workers.admit(WorkerId(1), 0, 0);
        let actions = Bytes::from(vec![9; 12]);
        workers.answer(vec![Answer { worker: WorkerId(1), sequence: 0, actions, version: 0 }]);
        let error = loop {
            match workers.next(soon()) {
                Ok(event) => assert!(event.is_some(), "it takes too long"),
                Err(error) => break error,
            }
        };
        let said = error.to_string();
        assert!(said.contains("worker 1") && said.contains("the action is"), "{said}");
    }

    #[test]
    fn without_truncation_there_is_no_next_observation() {
        let spec = HostSpec { truncates: false, ..pools(1)[0].spec().clone() };
        assert!(WorkerStep::copied(&StepMemory::new(&spec)).next_observation.is_empty());
    }
}
