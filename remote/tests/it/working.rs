//! Well-behaved workers.

use std::time::Duration;

use podracer_envs::host::{HostEnvironment, Pool, StepMemory, WorkerStep};
use podracer_remote::server::ServerOptions;

use crate::support::{Learner, Place, SEED, Working, cartpole, cartpole_run, lean, zeros};

/// The steps of CartPoles that are stepped right here, as the learner should see them.
fn locally(first: usize, n: usize, steps: usize) -> Vec<WorkerStep> {
    let mut pool = Pool::new(&cartpole(), n);
    let mut memory = StepMemory::new(&pool.spec().clone());
    pool.reset(SEED, first, &mut memory.step()).expect("it resets");
    let mut all = Vec::new();
    loop {
        let step = WorkerStep::copied(&memory);
        let actions = lean(&step, n).expect("it always answers");
        all.push(step);
        if all.len() == steps {
            return all;
        }
        pool.step(&actions, &mut memory.step()).expect("it steps");
    }
}

/// Episodes of 11 steps at most: some end by themselves, others are cut off, and the last observations come along.
#[test]
fn what_crosses_is_what_the_environments_did() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), lean, true);
    let working = Working::start(vec![place.address()], 10, 2);
    learner.wait("both batches are there and step", |seen| {
        seen.steps.len() == 2 && seen.steps.values().all(|steps| steps.len() > 20)
    });
    working.stop().expect("it was told to stop");
    learner.wait("both batches have left", |seen| seen.left.len() == 2);
    learner.look(|seen| {
        assert_eq!(seen.left, ["it said goodbye"; 2]);
        assert_eq!(seen.steps.keys().collect::<Vec<_>>(), [&0, &5], "lanes are contiguous");
        for (&first, steps) in &seen.steps {
            let expected = locally(first, 5, steps.len());
            assert!(expected.iter().any(|step| step.truncated.contains(&1)), "some are cut off");
            for (number, (step, expected)) in steps.iter().zip(&expected).enumerate() {
                assert_eq!(step, expected, "first lane {first}, step {number}");
            }
        }
    });
}

#[test]
fn a_run_that_is_complete_ends_its_workers() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let working = Working::start(vec![place.address()], 4, 2);
    working.wait_for_steps(10);
    learner.complete();
    working.end().expect("a run that is complete is no failure");
}

/// The learner is gone for a while, and comes back at the same address.
#[test]
fn a_learner_that_restarts_gets_its_workers_back() {
    let place = Place::new();
    let working = Working::start(vec![place.address()], 6, 3);
    for life in 1..=3 {
        let learner = Learner::start(&place.options(), cartpole_run(), lean, true);
        learner.wait("all batches are there and step", |seen| {
            seen.lanes.len() == 3 && seen.steps.values().all(|steps| steps.len() > 20)
        });
        learner.look(|seen| {
            for (&first, steps) in &seen.steps {
                assert_eq!(
                    *steps,
                    locally(first, 2, steps.len()),
                    "life {life}: episodes begin anew"
                );
            }
        });
    }
    let sessions = working.status.sessions();
    assert!(sessions >= 9, "{sessions}");
    working.stop().expect("it was told to stop");
}

#[test]
fn workers_are_dealt_out_in_turn() {
    let place = Place::new();
    let (options, run) = (place.options(), cartpole_run());
    let first = Learner::with_threads(&options, run.clone(), zeros, true, 3);
    let working = Working::start(vec![place.address()], 6, 6);
    // Each stand-in thread counts lanes from 0: every thread has two workers, on the lanes 0 and 1.
    first.wait("all six are there", |seen| seen.joined == 6);
    first.look(|seen| {
        let lanes: Vec<usize> = seen.lanes.values().map(|(first, _)| *first).collect();
        assert_eq!(lanes.iter().filter(|&&lane| lane == 0).count(), 3, "{lanes:?}");
    });
    drop(working);

    // Batches begin with the address of their number.
    let other = Place::new();
    let second = Learner::start(&other.options(), run, zeros, true);
    let working = Working::start(vec![place.address(), other.address()], 6, 6);
    second.wait("half of them", |seen| seen.joined == 3);
    drop(working);
}

/// 4,096 lanes over 64 connections: threads are not counted by lanes or workers.
#[test]
fn many_lanes_need_no_threads() {
    let place = Place::new();
    let options = ServerOptions { threads: 2, ..place.options() };
    let learner = Learner::start(&options, cartpole_run(), zeros, false);
    let working = Working::start(vec![place.address()], 4096, 64);
    learner.wait_for(Duration::from_secs(60), "all are there and step", |seen| {
        seen.lanes.len() == 64 && seen.environment_steps > 20 * 4096
    });
    let status = learner.server().totals().status();
    assert_eq!((status.workers, status.lanes, status.connections), (64, 4096, 64));
    let of_the_server = threads().iter().filter(|name| name.starts_with("seed-server")).count();
    assert_eq!(of_the_server, 2, "as many as were asked for");
    drop(working);
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this is Linux");
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    tasks.flatten().filter_map(name).collect()
}
