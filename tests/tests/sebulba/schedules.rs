//! Parameters that trajectories are acted with; timing changes nothing where it must not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use podracer_envs::host::{HostEnvironment, Random};
use podracer_runtime::setters::*;
use podracer_runtime::{Activity, Array, Schedule};

use super::pressure::full;
use super::{parameters, small, spec, start, with};
use crate::loops;

/// Four actor threads on two devices, two learners, and environments that take as long as they like.
fn hurried(seed: u64) -> Vec<(String, Array)> {
    static HURRY: AtomicU64 = AtomicU64::new(0);
    let sebulba = small().actors(vec![0, 1]).learners(vec![2, 3]);
    let batch = |_| -> anyhow::Result<Box<dyn HostEnvironment>> {
        let mut random = Random::from_state(HURRY.fetch_add(1, Ordering::Relaxed));
        Ok(Box::new(with(move || {
            std::thread::sleep(Duration::from_micros(random.below(2_000) as u64));
            Ok(())
        })))
    };
    let mut run = sebulba.start(&loops::client(4), &spec(), seed, batch).expect("the run starts");
    run.run(4).expect("some iterations");
    run.run(3).expect("some more");
    parameters(&run)
}

#[test]
fn a_seed_decides_the_run_whatever_the_timing() {
    let once = hurried(5);
    assert_eq!(hurried(5), once);
    assert_eq!(hurried(5), once);
    let other = hurried(6);
    assert!(once.iter().zip(&other).any(|(one, other)| one != other));
}

#[test]
fn trajectories_are_acted_with_the_parameters_of_the_lag() {
    for lag in 0..3 {
        let sebulba = small().lag(lag);
        let mut run = start(&sebulba, 2, 1);
        let reports = run.run(6).expect("some iterations");
        for (iteration, report) in reports.iter().enumerate() {
            assert_eq!(report.iteration, iteration as u64);
            assert_eq!(report.lag, iteration.min(lag) as f64, "iteration {iteration}, lag {lag}");
            assert!(report.metrics.iter().all(|metric| metric.is_finite()));
        }
        // Six steps in episodes of at most four: every trajectory sees an end.
        assert!(reports.iter().all(|report| !report.episodes.is_empty()));
        let longest = reports.iter().flat_map(|report| &report.episodes);
        assert_eq!(longest.map(|episode| episode.length).max(), Some(4));
    }
}

/// An old trajectory teaches other things than a fresh one.
#[test]
fn the_lag_changes_what_is_learnt() {
    let after = |lag| {
        let mut run = start(&small().lag(lag), 2, 1);
        run.run(3).expect("some iterations");
        parameters(&run)
    };
    assert_ne!(after(0), after(1));
}

#[test]
fn free_running_actors_take_the_latest_parameters() {
    let sebulba = small().schedule(Schedule::FreeRunning).queue(1);
    let mut run = start(&sebulba, 2, 1);
    let mut reports = run.run(20).expect("some iterations");
    // Until iterations are requested the queues fill: their trajectories, and those that actors
    // hold, are old when they are learnt from.
    full(&run);
    reports.extend(run.run(20).expect("some more"));
    for report in &reports {
        // At most the queue, the trajectories waiting to enter it, and those being acted are old.
        assert!((0.0..=4.0).contains(&report.lag), "{report:?}");
        assert!(report.queued <= 2, "{report:?}");
    }
    assert!(reports[1..].iter().any(|report| report.lag > 0.0));
    let times = run.times();
    let names: Vec<&str> = times.iter().map(|times| times.thread.as_str()).collect();
    assert_eq!(names, ["actor thread 0 (cpu:0)", "actor thread 1 (cpu:0)", "the learner"]);
    for actor in &times[..2] {
        assert!(actor.of(Activity::Inference) > Duration::ZERO);
        assert!(actor.of(Activity::WaitingForRoom) > Duration::ZERO);
    }
    assert!(times[2].of(Activity::Iteration) > Duration::ZERO);
}
