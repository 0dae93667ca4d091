//! Queues that are full: a learner that is slow, or stuck, or asked for nothing. Actors wait for it, and nothing is lost.

use std::time::{Duration, Instant};

use podracer::sebulba::Sebulba;
use podracer_rl::agents::Ppo;
use podracer_rl::optim::Sgd;
use podracer_runtime::setters::*;
use podracer_runtime::{Activity, SebulbaRun};

use super::checkpoints::{resume, saved};
use super::{UNROLL, parameters, quick, small, start};
use crate::loops;

/// Actors that may be further ahead than their queues have room for.
fn ahead(queue: usize) -> Sebulba<Ppo<Sgd>> {
    small().lag(6).queue(queue)
}

fn wait_for(what: &str, there: impl Fn() -> bool) {
    let began = Instant::now();
    while !there() {
        // A busy machine is ten times as slow.
        assert!(began.elapsed() < Duration::from_secs(240), "{what} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until both actor threads wait for room, and have done so for a while.
pub fn full(run: &SebulbaRun) {
    let before = run.times();
    wait_for("a full queue", || {
        let spent = run.times().into_iter().zip(&before).take(2);
        let waited = spent.map(|(now, before)| now.since(before).of(Activity::WaitingForRoom));
        waited.min() > Some(Duration::from_millis(100))
    });
}

/// One trajectory was learnt from, one is in the queue, and one in the thread's hands.
#[test]
fn actors_wait_while_their_queues_are_full() {
    let mut alone = start(&ahead(8), 2, 3);
    let reports = alone.run(4).expect("some iterations");
    let expected = parameters(&alone);
    let mut run = start(&ahead(1), 2, 3);
    for (iteration, report) in reports.iter().enumerate() {
        full(&run);
        let acted = run.transfers().act.launches;
        assert_eq!(acted, (2 * (iteration + 2) * UNROLL) as u64);
        let again = run.run(1).expect("an iteration").remove(0);
        assert_eq!(
            (again.iteration, &again.metrics, &again.episodes),
            (report.iteration, &report.metrics, &report.episodes)
        );
    }
    assert_eq!(parameters(&run), expected);
}

/// A checkpoint does not wait for actors, and threads that wait for room end at once.
#[test]
fn a_run_whose_queues_are_full_is_saved_and_stopped() {
    let mut run = start(&ahead(1), 2, 3);
    run.run(2).expect("some iterations");
    full(&run);
    let checkpoint = saved(&mut run);
    let began = Instant::now();
    run.stop().expect("nothing went wrong");
    assert!(began.elapsed() < Duration::from_secs(20));
    let mut alone = start(&ahead(8), 2, 3);
    alone.run(2).expect("some iterations");
    let expected = saved(&mut alone).to_host().expect("on the host");
    assert_eq!(checkpoint.to_host().expect("on the host"), expected);
    let mut resumed = resume(&ahead(1), &loops::client(2), &checkpoint).expect("it goes on");
    let again = resumed.run(3).expect("some more");
    let reports = alone.run(3).expect("some more");
    for (again, report) in again.iter().zip(&reports) {
        assert_eq!(again.metrics, report.metrics);
    }
    assert_eq!(parameters(&resumed), parameters(&alone));
}

/// An iteration of several seconds on a fast machine too: a device that does not come back looks the same.
#[test]
fn a_watchdog_names_a_learner_that_is_stuck() {
    let mut agent = ahead(1).agent().clone();
    agent.settings.epochs = 150_000;
    let stuck = quick(Sebulba::new(agent)).unroll(UNROLL).lag(6).queue(1).patience(1);
    let mut run = start(&stuck, 2, 3);
    let error = run.run(1).expect_err("it is given up").to_string();
    for expected in [
        "nothing happened for 1 s, the run's `patience`: ",
        "actor thread 0 (cpu:0) waits for the learner to take a trajectory, its queue is full (for ",
        "actor thread 1 (cpu:0) waits for the learner to take a trajectory, its queue is full (for ",
        "the learner waits for its devices to do iteration 0 (for ",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // The iteration ends after all, and with it the thread.
    wait_for("the end of all threads", || {
        let mut times = run.times().into_iter();
        times.all(|thread| thread.of(Activity::Ended) > Duration::ZERO)
    });
}
