//! Workers that come, leave, and come again in random order: no lane ever gets another's memory.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use podracer::central::CentralInference;
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_envs::host::{
    Answer, HostSpec, Random, WorkerEvent, WorkerId, WorkerStep, Workers, WorkersClosed,
};
use podracer_rl::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Rollout, checked_begin_episode,
};
use podracer_runtime::setters::*;
use podracer_runtime::{CentralMeasures, IterationReport, Origin};

use super::quick;
use crate::loops;

/// Number of elements in memories and observations.
const NUMBERS: i32 = 9973;
const LANES: usize = 8;
const UNROLL: usize = 5;

/// An agent that remembers all that its lane has seen, done and got since it began: its action is a number made of that.
#[derive(Clone)]
struct Remembers {
    /// True if learning keeps data of lanes.
    keeps: bool,
}

impl Agent for Remembers {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = Tensor;
    type Extras = Tensor;
    fn init_memory(&self, _: LaneId) -> Tensor {
        scalar(1)
    }
    fn begin_episode(&self, memory: Tensor) -> Tensor {
        (memory * 31 + 5).rem(NUMBERS)
    }
    fn act(
        &self,
        _: &Tensor,
        memory: Tensor,
        input: Input,
        _: Mode,
        _: Key,
    ) -> Act<Tensor, Tensor> {
        let reward = input.last_reward.astype(I32);
        let memory = memory * 33 + input.observation * 2 + input.last_action * 5 + reward * 7;
        let memory = memory.rem(NUMBERS);
        Act { action: memory, memory, extras: memory }
    }
}

impl Learn for Remembers {
    type State = Tensor;
    type Store = Option<Tensor>;
    type Metrics = Tensor;
    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, rollout: &Spec<Rollout<Self>>, _: &Axes) -> Option<Tensor> {
        self.keeps.then(|| zeros(F32, [rollout.reward.shape[1]]))
    }
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    /// Acts again: the metric is the number of steps with actions that another memory has chosen.
    fn learn(
        &self,
        state: Tensor,
        store: Option<Tensor>,
        rollout: Rollout<Self>,
        _: Cx,
    ) -> (Tensor, Option<Tensor>, Tensor) {
        let lanes = (rollout.memory, axis(rollout.input, 1), axis(rollout.action, 1));
        let wrong = vmap(lanes, |(memory, input, action)| {
            let begun = input.first;
            let steps = (input, action, begun);
            let (_, wrong) = scan((memory, constant(false)), steps, |(memory, later), step| {
                let (input, action, first) = step;
                // The memory before the first step already belongs to its episode.
                let fresh = checked_begin_episode(self, memory);
                let memory = select(first & later, fresh, memory);
                let act =
                    self.act(&state, memory, input, Mode::Greedy, Key::from_words(zeros(U32, [2])));
                ((act.memory, constant(true)), act.action.ne(action).astype(F32))
            });
            wrong.sum()
        });
        (state + 1.0, store, wrong.sum())
    }
}

fn spec() -> HostSpec {
    HostSpec::new(LANES, Space::discrete(NUMBERS as usize), Space::discrete(NUMBERS as usize))
}

/// A lane as its worker knows it.
#[derive(Clone, Default)]
struct Known {
    memory: i32,
    observation: i32,
    last_action: i32,
    last_reward: i32,
    first: bool,
}

impl Known {
    fn expected(&mut self) -> i32 {
        if self.first {
            self.memory = (self.memory * 31 + 5) % NUMBERS;
        }
        self.memory =
            (self.memory * 33 + self.observation * 2 + self.last_action * 5 + self.last_reward * 7)
                % NUMBERS;
        self.memory
    }
}

/// Workers that come and go as a seed says, and know what every lane must remember.
struct Scripted {
    random: Random,
    next: u64,
    workers: BTreeMap<WorkerId, (Vec<Known>, u64)>,
    /// Workers that are not admitted yet.
    asking: BTreeMap<WorkerId, usize>,
    events: VecDeque<WorkerEvent>,
    /// Events that came so far.
    moment: usize,
    /// Event after which no worker leaves or joins any more.
    calm: usize,
}

impl Scripted {
    fn new(seed: u64, calm: usize) -> Self {
        Scripted {
            random: Random::of_environment(seed, 0),
            next: 0,
            workers: BTreeMap::new(),
            asking: BTreeMap::new(),
            events: VecDeque::new(),
            moment: 0,
            calm,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn join(&mut self, environments: usize) {
        let worker = WorkerId(self.next);
        self.next += 1;
        self.asking.insert(worker, environments);
        self.events.push_back(WorkerEvent::Joined { worker, environments, origin: None });
    }

    fn leave(&mut self) {
        let all: Vec<WorkerId> = self.workers.keys().copied().collect();
        let worker = all[self.below(all.len())];
        self.workers.remove(&worker);
        // Steps that are on their way still come.
        self.events.push_back(WorkerEvent::Left { worker, reason: "it was killed".to_owned() });
    }

    /// The next step of a worker, each of its lanes with the reward and the end that the seed gives.
    fn step(&mut self, worker: WorkerId, sequence: u64) {
        let Some((mut lanes, _)) = self.workers.remove(&worker) else { return };
        let (mut step, mut ends) = ((Vec::new(), Vec::new()), Vec::new());
        for lane in &mut lanes {
            lane.observation = self.below(NUMBERS as usize) as i32;
            let over = sequence > 0 && self.below(4) == 0;
            let reward = if sequence > 0 { self.below(9) as i32 } else { 0 };
            lane.first = over || sequence == 0;
            lane.last_reward = if lane.first { 0 } else { reward };
            if lane.first {
                lane.last_action = 0;
            }
            step.0.extend(lane.observation.to_le_bytes());
            step.1.extend((reward as f32).to_le_bytes());
            ends.push(u8::from(over));
        }
        let n = lanes.len();
        let step = WorkerStep {
            observation: step.0.into(),
            reward: step.1.into(),
            terminated: ends.into(),
            truncated: vec![0; n].into(),
            ..WorkerStep::default()
        };
        self.workers.insert(worker, (lanes, sequence));
        self.events.push_back(WorkerEvent::Stepped { worker, sequence, step });
    }
}

impl Workers for Scripted {
    fn next(&mut self, _: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        self.moment += 1;
        let taken: usize = self.workers.values().map(|(lanes, _)| lanes.len()).sum();
        let asked: usize = self.asking.values().sum();
        if self.moment < self.calm {
            match self.below(12) {
                0 if !self.workers.is_empty() => self.leave(),
                // Some of them find no room, and are sent away.
                1 | 2 => {
                    let n = 1 + self.below(4);
                    self.join(n);
                }
                _ => {}
            }
        } else if taken + asked < LANES {
            self.join(1);
        }
        // Events of several workers come in any order; events of one worker in order.
        let at = match self.events.len() {
            0 => return Ok(None),
            n => self.below(n),
        };
        let of = |event: &WorkerEvent| match event {
            WorkerEvent::Joined { worker, .. }
            | WorkerEvent::Stepped { worker, .. }
            | WorkerEvent::Left { worker, .. } => *worker,
        };
        let worker = of(&self.events[at]);
        let at = self.events.iter().position(|event| of(event) == worker).unwrap();
        Ok(self.events.remove(at))
    }

    fn admit(&mut self, worker: WorkerId, first: usize, _: u64) {
        let n = self.asking.remove(&worker).expect("a worker that asked is admitted");
        assert!(first + n <= LANES);
        let begun = Known { memory: 1, first: true, ..Known::default() };
        self.workers.insert(worker, (vec![begun; n], 0));
        self.step(worker, 0);
    }

    fn answer(&mut self, answers: Vec<Answer>) {
        for Answer { worker, sequence, actions, .. } in answers {
            let Some((lanes, at)) = self.workers.get_mut(&worker) else { continue };
            assert_eq!(*at, sequence);
            assert_eq!(actions.len(), 4 * lanes.len());
            for (lane, action) in lanes.iter_mut().zip(actions.as_chunks::<4>().0) {
                let action = i32::from_le_bytes(*action);
                assert_eq!(action, lane.expected(), "worker {} at step {sequence}", worker.0);
                lane.last_action = action;
            }
            self.step(worker, sequence + 1);
        }
    }

    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        assert!(reason.contains("lanes"), "{reason}");
        self.asking.remove(&worker).expect("only those that asked are sent away");
    }
}

fn run(keeps: bool, seed: u64, capacity: usize) -> (Vec<IterationReport>, CentralMeasures) {
    let seed_rl = quick(CentralInference::new(Remembers { keeps }))
        .actors(vec![0])
        .learners(vec![1])
        .unroll(UNROLL)
        .capacity(Some(capacity))
        .timeout_ms(Some(0.3))
        .lag(1);
    let workers: Vec<Box<dyn Workers>> = vec![Box::new(Scripted::new(seed, 6000))];
    let mut run = seed_rl
        .start(&loops::client(2), &spec(), Origin::Seed(seed), workers)
        .expect("the run starts");
    // In the calm all lanes have workers.
    let mut reports = Vec::new();
    while reports.len() < 400 {
        reports.extend(run.run(20).expect("the iterations"));
    }
    run.stop().expect("no thread failed");
    (reports, run.measures())
}

#[track_caller]
fn check(keeps: bool, seed: u64, capacity: usize) {
    let (reports, measures) = run(keeps, seed, capacity);
    for report in &reports {
        assert_eq!(report.metrics, [0.0], "iteration {}", report.iteration);
    }
    assert!(measures.left > 50 && measures.lost > 50, "{measures:?}");
    assert!(measures.joined > measures.left);
    assert!(measures.padded > measures.observations, "some batches are padded: {measures:?}");
    let learnt = (reports.len() * LANES) as u64;
    assert!(measures.unrolls >= learnt, "{measures:?}");
}

/// Unrolls are learnt from in any order of lanes.
#[test]
fn no_lane_gets_anothers_memory() {
    check(false, 3, 3);
    check(false, 4, LANES);
}

/// Unrolls are learnt from in the order of their lanes.
#[test]
fn no_lane_gets_anothers_memory_where_rows_are_kept() {
    check(true, 5, 5);
}
