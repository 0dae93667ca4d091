//! Lanes that change workers, and lanes without workers: the windows that a replay learns from, and
//! the state after a stop.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use podracer::central::CentralInference;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_envs::host::{
    Answer, HostSpec, Random, WorkerEvent, WorkerId, WorkerStep, Workers, WorkersClosed,
};
use podracer_rl::learn::{
    Act, Agent, Cx, Input, LaneId, LearnFromReplay, Mode, ReplaySettings, Replayed, Rollout,
    Window, Windows,
};
use podracer_runtime::setters::*;
use podracer_runtime::{CentralRun, Origin, ReplayMemory};

use super::quick;
use crate::loops;

const LANES: usize = 4;
const UNROLL: usize = 4;

/// An agent with metrics that are the weights of the windows with steps of two workers, and of
/// every window.
#[derive(Clone, Debug)]
struct Windowed;

/// A step as the replay keeps it: its reward is the number of the worker that made it.
#[derive(Tree, Clone)]
struct Made {
    by: Tensor,
}

impl Agent for Windowed {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();
    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, _: &Tensor, (): (), _: Input, _: Mode, _: Key) -> Act<(), ()> {
        Act { action: scalar(0), memory: (), extras: () }
    }
}

impl LearnFromReplay for Windowed {
    type State = Tensor;
    type Step = Made;
    type Start = ();
    type Metrics = (Tensor, Tensor);
    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn keep(&self, rollout: Rollout<Self>) -> (Made, ()) {
        (Made { by: rollout.reward }, ())
    }
    fn window(&self, _: &Spec<Made>) -> Window {
        Window { length: 3, period: 1, learnt: 1 }
    }
    fn gradient_step(
        &self,
        state: Tensor,
        windows: Windows<Made>,
        _: &Cx,
    ) -> (Tensor, Tensor, (Tensor, Tensor)) {
        let Windows { steps: Made { by }, weights, .. } = windows;
        let joined = by.index(0).ne(by.index(-1)).astype(F32);
        let metrics = ((joined * weights).sum(), weights.sum());
        (state + 1.0, ones(F32, weights.shape()), metrics)
    }
}

/// Workers with their number as reward and with episodes that never end. They leave now and then,
/// and another worker comes; from some moment on, all are silent.
struct Changing {
    random: Random,
    next: u64,
    /// The environments of each.
    workers: BTreeMap<WorkerId, usize>,
    events: VecDeque<WorkerEvent>,
    moment: usize,
    silent_from: usize,
}

impl Changing {
    fn new(seed: u64, silent_from: usize) -> Self {
        let mut workers = Changing {
            random: Random::of_environment(seed, 0),
            next: 0,
            workers: BTreeMap::new(),
            events: VecDeque::new(),
            moment: 0,
            silent_from,
        };
        (0..LANES / 2).for_each(|_| workers.join(2));
        workers
    }

    fn join(&mut self, environments: usize) {
        let worker = WorkerId(self.next);
        self.next += 1;
        self.workers.insert(worker, environments);
        self.events.push_back(WorkerEvent::Joined { worker, environments, origin: None });
    }

    fn step(&mut self, worker: WorkerId, sequence: u64) {
        let Some(&n) = self.workers.get(&worker) else { return };
        let number = if sequence > 0 { worker.0 as f32 } else { 0.0 };
        let numbers: Bytes = number.to_le_bytes().repeat(n).into();
        let step = WorkerStep {
            observation: numbers.clone(),
            reward: numbers,
            terminated: vec![0; n].into(),
            truncated: vec![0; n].into(),
            ..WorkerStep::default()
        };
        self.events.push_back(WorkerEvent::Stepped { worker, sequence, step });
    }
}

impl Workers for Changing {
    fn are_elsewhere(&self) -> bool {
        self.silent_from < usize::MAX
    }
    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        self.moment += 1;
        if self.moment >= self.silent_from || self.events.is_empty() {
            let wait = until.saturating_duration_since(Instant::now());
            std::thread::sleep(wait.min(Duration::from_millis(1)));
            return Ok(None);
        }
        if self.random.below(15) == 0 {
            let all: Vec<WorkerId> = self.workers.keys().copied().collect();
            let worker = all[self.random.below(all.len())];
            let n = self.workers.remove(&worker).expect("it is one of them");
            self.events.push_back(WorkerEvent::Left { worker, reason: "it was killed".to_owned() });
            self.join(n);
        }
        Ok(self.events.pop_front())
    }
    fn admit(&mut self, worker: WorkerId, _: usize, _: u64) {
        self.step(worker, 0);
    }
    fn answer(&mut self, answers: Vec<Answer>) {
        answers.iter().for_each(|answer| self.step(answer.worker, answer.sequence + 1));
    }
    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        panic!("worker {} is sent away: {reason}", worker.0);
    }
}

fn spec() -> HostSpec {
    HostSpec {
        environments: LANES,
        observation: Space::unbounded([]),
        action: Space::discrete(2),
        truncates: false,
        skips: false,
        masks: false,
        succeeds: false,
    }
}

fn seed(prioritized: bool) -> CentralInference<Replayed<Windowed>> {
    let settings = ReplaySettings {
        capacity: 16 * LANES * UNROLL,
        minimum: 2 * LANES * UNROLL,
        batch: 16,
        replay_ratio: 4.0,
        prioritized,
        ..ReplaySettings::default()
    };
    quick(CentralInference::new(Replayed { agent: Windowed, settings, iterations: 200 }))
        .actors(vec![0])
        .learners(vec![1])
        .unroll(UNROLL)
        .capacity(Some(LANES))
        .timeout_ms(Some(0.3))
        .lag(1)
}

fn start(seed: &CentralInference<Replayed<Windowed>>, workers: Changing) -> CentralRun {
    let workers: Vec<Box<dyn Workers>> = vec![Box::new(workers)];
    seed.start(&loops::client(2), &spec(), Origin::Seed(3), workers).expect("the run starts")
}

/// The reward shows the step's worker: no window that counts has steps of two workers.
#[test]
fn windows_never_join_the_steps_of_two_workers() {
    for seed in [seed(false), seed(true), seed(true).replay(ReplayMemory::Host)] {
        let mut run = start(&seed, Changing::new(5, usize::MAX));
        let (mut joined, mut learnt) = (0.0, 0.0);
        for report in run.run(200).expect("the iterations") {
            joined += report.metrics[0];
            learnt += report.metrics[1];
        }
        let measures = run.measures();
        assert!(measures.left > 20, "{measures:?}");
        assert!(learnt > 1000.0, "{learnt}");
        assert_eq!(joined, 0.0, "of {learnt}, {measures:?}");
    }
}

/// The run is interrupted while it waits for workers from elsewhere. Its checkpoint has everything
/// that it has learnt and kept.
#[test]
fn a_run_that_waits_for_workers_leaves_a_checkpoint_with_its_replay() {
    for seed in [seed(true), seed(true).replay(ReplayMemory::Host)] {
        let seed = seed.patience(2);
        let mut run = start(&seed, Changing::new(5, 1500));
        let interrupt = AtomicBool::new(false);
        let reports = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_secs(4));
                interrupt.store(true, Ordering::Relaxed);
            });
            run.run_until(100_000, &interrupt).expect("it is no fault")
        });
        assert!(reports.len() > 10, "{} iterations", reports.len());
        let checkpoint = run.checkpoint().expect("a checkpoint");
        assert_eq!(checkpoint.iterations, reports.len() as u64);
        let workers: Vec<Box<dyn Workers>> = vec![Box::new(Changing::new(6, usize::MAX))];
        let client = loops::client(2);
        let origin = Origin::Checkpoint(&checkpoint);
        let mut resumed = seed.start(&client, &spec(), origin, workers).expect("the run goes on");
        let kept = |run: &CentralRun, report: &podracer_runtime::IterationReport| {
            let at = run.metric_names().iter().position(|name| name == "replay.size");
            report.metrics[at.expect("it is a metric")]
        };
        let next = resumed.run(3).expect("the iterations");
        assert_eq!(next[0].iteration, reports.len() as u64);
        let full = kept(&run, reports.last().expect("there are some"));
        assert!(kept(&resumed, &next[0]) >= full, "the replay is what it was");
        run.stop().expect("nothing failed");
    }
}
