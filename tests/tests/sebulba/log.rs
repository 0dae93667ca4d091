//! What agents and environments say while they act and learn comes back with the reports of the iterations.

use podracer::sebulba::{Sebulba, compiled_environments};
use podracer_dsl::Report;
use podracer_dsl::prelude::*;
use podracer_envs::host::HostEnvironment;
use podracer_envs::{Environment, MemoryChain, Space, TimeStep};
use podracer_rl::learn::{Act, Agent, Axes, Cx, Input, LaneId, Learn, Mode, Rollout};
use podracer_runtime::IterationReport;
use podracer_runtime::setters::*;

use super::quick;
use crate::loops;

/// A memory chain that says something in every step, if it is loud.
#[derive(Clone)]
struct Chain {
    inner: MemoryChain,
    loud: bool,
}

impl Environment for Chain {
    type State = <MemoryChain as Environment>::State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Self::State {
        self.inner.initial_state(key)
    }
    fn step(&self, state: Self::State, action: Tensor, key: Key) -> (Self::State, TimeStep) {
        if self.loud {
            check(state.time.lt(2), "the environment is at {}", state.time);
        }
        self.inner.step(state, action, key)
    }
    fn observe(&self, state: Self::State) -> Tensor {
        self.inner.observe(state)
    }
    fn observation_space(&self) -> Space {
        self.inner.observation_space()
    }
    fn action_space(&self) -> Space {
        self.inner.action_space()
    }
    fn truncates(&self) -> bool {
        false
    }
}

/// Counts its iterations, and, if it is loud, prints them when it acts and learns.
#[derive(Clone)]
struct Counter {
    loud: bool,
}

impl Agent for Counter {
    type Observation = Tensor;
    type Params = Tensor;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _: LaneId) {}
    fn begin_episode(&self, (): ()) {}
    fn act(&self, params: &Tensor, (): (), input: Input, _: Mode, key: Key) -> Act<(), ()> {
        if self.loud {
            debug_print("acting, iteration {}, first {}", (*params, input.first));
        }
        Act { action: key.randint([], 0..2), memory: (), extras: () }
    }
}

impl Learn for Counter {
    type State = Tensor;
    type Store = ();
    type Metrics = Tensor;

    fn init(&self, _: Key) -> Tensor {
        scalar(0.0)
    }
    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}
    fn params(&self, state: &Tensor) -> Tensor {
        *state
    }
    fn learn(&self, state: Tensor, (): (), _: Rollout<Self>, cx: Cx) -> (Tensor, (), Tensor) {
        if self.loud {
            debug_print("learning, iteration {}", cx.iteration);
            check(state.lt(1), "learnt {} times before", state);
        }
        (state + 1.0, (), state)
    }
}

/// Lanes of a thread, and steps of a trajectory.
const LANES: usize = 2;
const UNROLL: usize = 3;

/// Two iterations of two threads, with `learners` learners.
fn reports(loud: bool, learners: &[usize]) -> Vec<IterationReport> {
    let client = loops::client(4);
    let environment = Chain { inner: MemoryChain { length: 9, bits: 1 }, loud };
    let batch = || {
        compiled_environments(&client, 1, environment.clone(), LANES, UNROLL)
            .expect("the environments compile")
    };
    let spec = batch().spec().clone();
    let mut run = quick(Sebulba::new(Counter { loud }))
        .learners(learners.to_vec())
        .threads(2)
        .unroll(UNROLL)
        .lag(0)
        .start(&client, &spec, 0, |_| Ok(Box::new(batch())))
        .expect("the run starts");
    assert_eq!(run.metric_names(), ["metric"]);
    run.run(2).expect("the iterations")
}

/// Text, place and count of the reports with this beginning.
fn told(reports: &[Report], text: &str) -> Vec<(String, Vec<usize>, usize)> {
    let some = reports.iter().filter(|report| report.text.starts_with(text));
    some.map(|report| (report.text.clone(), report.at.clone(), report.count)).collect()
}

#[test]
fn prints_and_failed_checks_come_back_with_the_iteration() {
    let iterations = reports(true, &[2]);
    for (number, report) in iterations.iter().enumerate() {
        let mut expected = Vec::new();
        for thread in 0..2 {
            for step in 0..UNROLL {
                for lane in 0..LANES {
                    let text = format!("acting, iteration {number}, first {}", number + step == 0);
                    expected.push((text, vec![thread, step, lane], 1));
                }
            }
        }
        assert_eq!(told(&report.reports, "acting"), expected);
        let text = format!("learning, iteration {number}");
        assert_eq!(told(&report.reports, "learning"), [(text, vec![], 1)]);
    }
    // The environments' third step is the first step after their second; both lanes of each thread
    // fail in it.
    let checks = |number: usize| -> Vec<&Report> {
        iterations[number].reports.iter().filter(|report| report.is_check).collect()
    };
    let first = checks(0);
    assert_eq!(first.len(), 1, "{first:?}");
    assert_eq!((&first[0].at[..], first[0].count), (&[0, 2, 0][..], 2 * LANES));
    assert!(first[0].to_string().contains(file!()), "{}", first[0]);
    let second = told(&iterations[1].reports, "learnt");
    assert_eq!(second, [("learnt 1 times before".to_owned(), vec![], 1)]);
}

#[test]
fn each_learner_device_says_which_it_is() {
    let iterations = reports(true, &[2, 3]);
    let text = |device: usize| ("learning, iteration 1".to_owned(), vec![device], 1);
    assert_eq!(told(&iterations[1].reports, "learning"), [text(0), text(1)]);
}

/// A program that says nothing has no results for it, and its loud twin computes the same.
#[test]
fn programs_that_say_nothing_have_no_further_results() {
    let environment = Chain { inner: MemoryChain::default(), loud: false };
    let spec = podracer_rl::host_loop::HostLoop::new(environment, LANES, UNROLL).spec();
    let results = |loud: bool| {
        let traced = quick(Sebulba::new(Counter { loud })).trace(&spec).expect("it traces");
        traced.programs().map(|program| program.lowered.module.results.len())
    };
    let [quiet, loud] = [false, true].map(results);
    assert_eq!(quiet[2], 4, "agent, key, iteration and the metric");
    assert!(loud[0] > quiet[0] && loud[1] == quiet[1] && loud[2] > quiet[2], "{quiet:?}, {loud:?}");
    assert!(reports(false, &[2]).iter().all(|report| report.reports.is_empty()));
}
