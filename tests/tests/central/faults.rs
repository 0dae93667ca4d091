//! Faults: a run with central inference ends with a clear error, and no thread waits for one that has ended.

use std::time::{Duration, Instant};

use bytes::Bytes;
use podracer::central::{CentralInference, local};
use podracer_envs::host::{
    Answer, HostEnvironment, HostError, HostSpec, HostStep, NativeCartPole, Pool, WorkerEvent,
    WorkerId, WorkerStep, Workers, WorkersClosed,
};
use podracer_rl::agents::Ppo;
use podracer_rl::optim::{Sgd, sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{CentralRun, Origin};

use super::quick;
use crate::loops;

const LANES: usize = 4;

fn seed() -> CentralInference<Ppo<Sgd>> {
    let agent = loops::ppo(&podracer_envs::CartPole::default(), sgd(0.1));
    quick(CentralInference::new(agent)).unroll(6).capacity(Some(LANES))
}

fn spec() -> HostSpec {
    Pool::new(&NativeCartPole::new(4), LANES).spec().clone()
}

fn start(seed: &CentralInference<Ppo<Sgd>>, workers: Vec<Box<dyn Workers>>) -> CentralRun {
    seed.start(&loops::client(2), &spec(), Origin::Seed(1), workers).expect("the run starts")
}

/// CartPoles that fail at a step.
struct Fails(Pool<NativeCartPole>, usize);

impl HostEnvironment for Fails {
    fn spec(&self) -> &HostSpec {
        self.0.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.0.reset(seed, first, step)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.1 -= 1;
        match self.1 {
            0 => Err(HostError::failed("the simulator is out of memory")),
            _ => self.0.send(actions),
        }
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.0.receive(step)
    }
}

#[test]
fn an_environment_that_fails_in_the_process_ends_the_run_with_its_error() {
    let half = || Pool::new(&NativeCartPole::new(4), LANES / 2);
    let batches: Vec<Box<dyn HostEnvironment>> =
        vec![Box::new(half()), Box::new(Fails(half(), 40))];
    let mut run = start(&seed(), local(vec![batches]).unwrap());
    let began = Instant::now();
    let error = run.run(1000).unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(
        error.contains("inference thread 0") && error.contains("worker 1: the simulator is out"),
        "{error}"
    );
    let over = run.run(1).unwrap_err().to_string();
    assert!(over.contains("ended with an error before"), "{over}");
}

/// Workers that step environments of their own, and then make a fault.
struct Wrong {
    inner: Vec<Box<dyn Workers>>,
    /// The step of worker 0's fault.
    at: u64,
    wrong: fn(u64, &mut u64, &mut WorkerStep),
    dismissed: std::sync::mpsc::Sender<(WorkerId, String)>,
}

impl Workers for Wrong {
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        let mut event = self.inner[0].next(until)?;
        if let Some(WorkerEvent::Stepped { worker: WorkerId(0), sequence, step }) = &mut event
            && *sequence == self.at
        {
            (self.wrong)(self.at, sequence, step);
        }
        Ok(event)
    }
    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        self.inner[0].admit(worker, first_lane, seed);
    }
    fn answer(&mut self, answers: Vec<Answer>) {
        self.inner[0].answer(answers);
    }
    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        let _ = self.dismissed.send((worker, reason.to_owned()));
        self.inner[0].dismiss(worker, reason);
    }
}

/// The faulty worker is sent away, and the run continues with the other.
#[track_caller]
fn goes_on(wrong: fn(u64, &mut u64, &mut WorkerStep), expected: &str) {
    let half =
        || Box::new(Pool::new(&NativeCartPole::new(4), LANES / 2)) as Box<dyn HostEnvironment>;
    let (dismissed, told) = std::sync::mpsc::channel();
    let inner = local(vec![vec![half(), half()]]).unwrap();
    let workers = Wrong { inner, at: 15, wrong, dismissed };
    let mut run = start(&seed(), vec![Box::new(workers)]);
    run.run(40).expect("the run goes on");
    let (worker, reason) = told.try_recv().expect("somebody was sent away");
    assert_eq!(worker, WorkerId(0));
    assert!(reason.contains(expected), "{reason}");
    let measures = run.measures();
    assert_eq!((measures.left, measures.workers, measures.lanes), (1, 1, LANES as u64 / 2));
    assert_eq!(measures.lost, LANES as u64 / 2);
}

#[test]
fn a_worker_whose_steps_have_the_wrong_size_is_sent_away() {
    goes_on(
        |_, _, step| step.reward = Bytes::new(),
        "`reward` must have 8 bytes for 2 environments and has 0",
    );
    goes_on(
        |_, _, step| step.next_observation = Bytes::new(),
        "`next_observation` must have 32 bytes for 2 environments and has 0",
    );
}

#[test]
fn a_worker_that_steps_out_of_turn_is_sent_away() {
    goes_on(|_, sequence, _| *sequence += 7, "its step 22 came where step 15 was expected");
}

/// No worker ever comes: in the process that is a fault, and with workers from elsewhere it is not.
struct Nobody {
    elsewhere: bool,
}

impl Workers for Nobody {
    fn are_elsewhere(&self) -> bool {
        self.elsewhere
    }
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(None)
    }
    fn admit(&mut self, _: WorkerId, _: usize, _: u64) {}
    fn answer(&mut self, _: Vec<Answer>) {}
    fn dismiss(&mut self, _: WorkerId, _: &str) {}
}

/// A negative timeout ended the process.
#[test]
fn a_timeout_that_is_no_time_is_an_error() {
    for milliseconds in [-1.0, f64::NAN, f64::INFINITY] {
        let nobody: Vec<Box<dyn Workers>> = vec![Box::new(Nobody { elsewhere: false })];
        let central = seed().timeout_ms(Some(milliseconds));
        let error = central.start(&loops::client(2), &spec(), Origin::Seed(1), nobody).err();
        let error = format!("{:#}", error.expect("it is none"));
        assert!(error.contains("must be a time: 0 or more"), "{error}");
    }
}

#[test]
fn a_run_without_workers_ends_with_the_waiting_threads() {
    let seed = seed().patience(3);
    let mut run = start(&seed, vec![Box::new(Nobody { elsewhere: false })]);
    let error = run.run(1).unwrap_err().to_string();
    assert!(error.contains("nothing happened for 3 s"), "{error}");
    assert!(error.contains("waits for steps of"), "{error}");
}

#[test]
fn a_run_that_waits_for_workers_from_elsewhere_is_stopped_by_an_interrupt() {
    let seed = seed().patience(2);
    let mut run = start(&seed, vec![Box::new(Nobody { elsewhere: true })]);
    let interrupt = std::sync::atomic::AtomicBool::new(false);
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(4));
            interrupt.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let reports = run.run_until(3, &interrupt).expect("it is no fault");
        assert!(reports.is_empty());
    });
    assert!(began.elapsed() > Duration::from_secs(3), "it waited beyond its patience");
    assert_eq!(run.checkpoint().expect("a checkpoint").iterations, 0);
    assert!(!run.parameters().expect("the parameters").is_empty());
    run.stop().expect("nothing failed");
}

#[test]
fn dropping_a_run_under_way_ends_its_threads() {
    let batch = || Box::new(Pool::new(&NativeCartPole::new(4), LANES)) as Box<dyn HostEnvironment>;
    for lag in [0_usize, 1] {
        let mut run = start(&seed().lag(lag), local(vec![vec![batch()]]).unwrap());
        run.run(2).expect("the iterations");
        let began = Instant::now();
        drop(run);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

/// A checkpoint has the learning, and the run resumes from it with fresh episodes.
#[test]
fn a_run_goes_on_from_its_checkpoint() {
    let batch = || Box::new(Pool::new(&NativeCartPole::new(4), LANES)) as Box<dyn HostEnvironment>;
    let seed = seed().lag(0);
    let mut run = start(&seed, local(vec![vec![batch()]]).unwrap());
    run.run(3).expect("the iterations");
    let before = run.parameters().unwrap();
    let checkpoint = run.checkpoint().expect("a checkpoint");
    assert_eq!(checkpoint.iterations, 3);
    let workers = local(vec![vec![batch()]]).unwrap();
    let client = loops::client(2);
    let mut resumed = seed
        .start(&client, &spec(), Origin::Checkpoint(&checkpoint), workers)
        .expect("the run goes on");
    assert!(resumed.resumed());
    assert_eq!(resumed.parameters().unwrap(), before);
    let reports = resumed.run(2).expect("the iterations");
    assert_eq!(reports.iter().map(|report| report.iteration).collect::<Vec<_>>(), [3, 4]);
    assert!(reports.iter().all(|report| report.lag == 0.0));
    assert_ne!(resumed.parameters().unwrap(), before);
}
