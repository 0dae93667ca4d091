//! Workers that do not step for a while, or never: the others do not wait for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use podracer::central::{CentralInference, local};
use podracer_envs::host::{
    Answer, HostEnvironment, NativeCartPole, Pool, WorkerEvent, WorkerId, Workers, WorkersClosed,
};
use podracer_rl::optim::sgd;
use podracer_runtime::setters::*;
use podracer_runtime::{CentralRun, Origin};

use super::quick;
use crate::loops;

/// Environments of a worker, and of all three.
const EACH: usize = 2;
const LANES: usize = 3 * EACH;

/// Workers in the process; worker 0 is silent from one of its steps on, until it is released.
struct Silent {
    inner: Box<dyn Workers>,
    from: u64,
    held: Option<WorkerEvent>,
    let_go: Arc<AtomicBool>,
}

impl Workers for Silent {
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        if self.let_go.load(Ordering::Relaxed)
            && let Some(event) = self.held.take()
        {
            return Ok(Some(event));
        }
        let event = self.inner.next(until)?;
        match event {
            Some(WorkerEvent::Stepped { worker: WorkerId(0), sequence, .. })
                if sequence >= self.from && !self.let_go.load(Ordering::Relaxed) =>
            {
                self.held = event;
                Ok(None)
            }
            event => Ok(event),
        }
    }
    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        self.inner.admit(worker, first_lane, seed);
    }
    fn answer(&mut self, answers: Vec<Answer>) {
        self.inner.answer(answers);
    }
    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        self.inner.dismiss(worker, reason);
    }
}

/// A run with batches that wait for all lanes, or otherwise closed after a second.
fn start(from: u64, let_go: &Arc<AtomicBool>) -> CentralRun {
    let batch = |n: usize| Pool::new(&NativeCartPole::new(20), n);
    let agent = loops::ppo(&podracer_envs::CartPole::default(), sgd(0.1));
    let central = quick(CentralInference::new(agent)).unroll(6).lag(0).capacity(Some(LANES));
    let central = central.timeout_ms(Some(1000.0));
    let batches = (0..3).map(|_| Box::new(batch(EACH)) as Box<dyn HostEnvironment>).collect();
    let inner = local(vec![batches]).unwrap().remove(0);
    let workers = Silent { inner, from, held: None, let_go: Arc::clone(let_go) };
    let spec = batch(LANES).spec().clone();
    let workers: Vec<Box<dyn Workers>> = vec![Box::new(workers)];
    central.start(&loops::client(2), &spec, Origin::Seed(1), workers).expect("the run starts")
}

/// The others take thirty iterations in less time than as many steps would take that each wait for a second.
#[track_caller]
fn others_go_on(run: &mut CentralRun) {
    let began = Instant::now();
    run.run(30).expect("the run goes on");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_worker_that_is_frozen_does_not_keep_the_others_waiting() {
    let let_go = Arc::new(AtomicBool::new(false));
    let mut run = start(15, &let_go);
    others_go_on(&mut run);
    let measures = run.measures();
    assert_eq!((measures.workers, measures.workers_late), (3, 1));
    assert!(measures.late >= 1 && measures.by_timeout == 0, "{measures:?}");
    // Where it steps again, it is one of them as before.
    let_go.store(true, Ordering::Relaxed);
    let began = Instant::now();
    while run.measures().workers_late > 0 && began.elapsed() < Duration::from_secs(60) {
        run.run(1).expect("the run goes on");
    }
    assert_eq!((run.measures().workers_late, run.measures().left), (0, 0));
}

#[test]
fn a_worker_that_only_joins_does_not_keep_the_others_waiting() {
    let mut run = start(0, &Arc::default());
    others_go_on(&mut run);
    let measures = run.measures();
    assert_eq!((measures.workers, measures.by_timeout), (3, 0));
}

/// Workers in the process, and one from elsewhere that joins, is silent for nine tenths of a second, leaves, and comes again.
struct Churning {
    inner: Box<dyn Workers>,
    events: VecDeque<WorkerEvent>,
    next: u64,
    leaves: Instant,
}

impl Churning {
    fn new(inner: Box<dyn Workers>) -> Self {
        Churning { inner, events: VecDeque::new(), next: 1000, leaves: Instant::now() }
    }

    /// The present worker leaves, if it is time, and the next comes.
    fn churn(&mut self) {
        if Instant::now() < self.leaves {
            return;
        }
        let worker = WorkerId(self.next);
        if self.next > 1000 {
            let before = WorkerId(self.next - 1);
            let reason = "it said goodbye".to_owned();
            self.events.push_back(WorkerEvent::Left { worker: before, reason });
        }
        let origin = Some(Arc::from("10.0.0.1"));
        self.events.push_back(WorkerEvent::Joined { worker, environments: EACH, origin });
        self.next += 1;
        self.leaves = Instant::now() + Duration::from_millis(900);
    }
}

impl Workers for Churning {
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        self.churn();
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        let event = self.inner.next(until.min(self.leaves))?;
        self.churn();
        Ok(event.or_else(|| self.events.pop_front()))
    }
    fn are_elsewhere(&self) -> bool {
        true
    }
    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        if worker.0 < 1000 {
            self.inner.admit(worker, first_lane, seed);
        }
    }
    fn answer(&mut self, answers: Vec<Answer>) {
        self.inner.answer(answers);
    }
    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        self.inner.dismiss(worker, reason);
    }
}

#[test]
fn a_worker_that_comes_and_goes_does_not_keep_the_others_waiting() {
    let batch = |n: usize| Pool::new(&NativeCartPole::new(20), n);
    let agent = loops::ppo(&podracer_envs::CartPole::default(), sgd(0.1));
    let central = quick(CentralInference::new(agent)).unroll(6).lag(0).capacity(Some(LANES + EACH));
    let central = central.timeout_ms(Some(60_000.0));
    let batches = (0..3).map(|_| Box::new(batch(EACH)) as Box<dyn HostEnvironment>).collect();
    let workers = Churning::new(local(vec![batches]).unwrap().remove(0));
    let spec = batch(LANES + EACH).spec().clone();
    let workers: Vec<Box<dyn Workers>> = vec![Box::new(workers)];
    let run = central.start(&loops::client(2), &spec, Origin::Seed(1), workers);
    others_go_on(&mut run.expect("the run starts"));
}
