//! A run that resumes from a checkpoint, and checkpoints that it cannot resume from.

use podracer::sebulba::Sebulba;
use podracer_envs::host::HostEnvironment;
use podracer_rl::agents::Ppo;
use podracer_rl::optim::Sgd;
use podracer_runtime::setters::*;
use podracer_runtime::{
    Array, Checkpoint, Checkpoints, Client, ExecutableCache, Schedule, SebulbaRun,
};

use super::{ENVIRONMENTS, cartpoles, parameters, small, spec, start, with};
use crate::loops;

/// A checkpoint, after which the run continues.
pub fn saved(run: &mut SebulbaRun) -> Checkpoint<'static> {
    run.checkpoint().expect("a checkpoint").detached().expect("live buffers")
}

pub fn resume(
    sebulba: &Sebulba<Ppo<Sgd>>,
    client: &Client,
    checkpoint: &Checkpoint<'_>,
) -> anyhow::Result<SebulbaRun> {
    sebulba.resume(client, &spec(), checkpoint, |_| Ok(Box::new(cartpoles(ENVIRONMENTS))))
}

/// Four threads, by way of a file, at several moments: before the lag is full and after it.
#[test]
fn what_follows_a_checkpoint_is_what_would_have_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = ExecutableCache::at(folder.path().join("programs"), u64::MAX);
    let sebulba = small().actors(vec![0, 1]).learners(vec![2, 3]).cache(cache);
    for lag in 0..3 {
        let sebulba = sebulba.clone().lag(lag);
        let mut alone = start(&sebulba, 4, 7);
        let reports = alone.run(7).expect("some iterations");
        let expected = parameters(&alone);
        drop(alone);

        let checkpoints = Checkpoints::new(folder.path().join(lag.to_string()), 1);
        let mut run = start(&sebulba, 4, 7);
        let client = loops::client(4);
        for iterations in [0, 1, 2, 3, 1] {
            let done = checkpoints.latest().map_or(0, |found| found.checkpoint.iterations) as usize;
            let again = run.run(iterations).expect("some iterations");
            for (again, report) in again.iter().zip(&reports[done..]) {
                assert_eq!(
                    (again.iteration, &again.metrics, &again.episodes, again.lag),
                    (report.iteration, &report.metrics, &report.episodes, report.lag),
                    "lag {lag}"
                );
            }
            let checkpoint = run.checkpoint().expect("a checkpoint");
            checkpoints.save(&checkpoint).expect("it is written");
            let found = checkpoints.latest().expect("it is read");
            let read = found.checkpoint.to_host().expect("it is read");
            assert_eq!(read, checkpoint.to_host().expect("live buffers"));
            assert_eq!(run.fresh_episodes(), 0);
            run = resume(&sebulba, &client, &found.checkpoint).expect("it goes on");
        }
        assert_eq!(parameters(&run), expected, "lag {lag}");
        // The resumed run's checkpoint equals the uninterrupted run's.
        let mut alone = start(&sebulba, 4, 7);
        alone.run(7).expect("some iterations");
        let checkpoint = alone.checkpoint().expect("a checkpoint");
        let latest = checkpoints.latest().expect("it is read").checkpoint.to_host();
        let expected = checkpoint.to_host().expect("live buffers");
        assert_eq!(latest.expect("it is read"), expected, "lag {lag}");
    }
}

/// Actors are ahead by the schedule's bound, and a checkpoint does not wait for them.
#[test]
fn a_free_running_run_goes_on_too() {
    let sebulba = small().schedule(Schedule::FreeRunning);
    let mut run = start(&sebulba, 2, 1);
    run.run(5).expect("some iterations");
    let checkpoint = saved(&mut run);
    let learnt = parameters(&run);
    let mut run = resume(&sebulba, &loops::client(2), &checkpoint).expect("it goes on");
    assert_eq!(parameters(&run), learnt);
    let reports = run.run(5).expect("some more");
    assert_eq!(reports[0].iteration, 5);
    assert!(reports.iter().all(|report| report.lag >= 0.0));
}

/// The wrapper has no snapshot.
#[test]
fn environments_that_cannot_be_put_back_begin_fresh_episodes() {
    let batch = |_| -> anyhow::Result<Box<dyn HostEnvironment>> { Ok(Box::new(with(|| Ok(())))) };
    let client = loops::client(2);
    let mut run = small().start(&client, &spec(), 3, batch).expect("a run");
    run.run(2).expect("some iterations");
    let checkpoint = saved(&mut run);
    assert!(!checkpoint.arrays.contains_key("actors[0].environment"));
    let learnt = parameters(&run);
    let resumed = || {
        let mut run = small().resume(&client, &spec(), &checkpoint, batch).expect("it goes on");
        assert_eq!((run.fresh_episodes(), parameters(&run)), (2, learnt.clone()));
        run.run(2).expect("some more");
        parameters(&run)
    };
    let once = resumed();
    assert_eq!(resumed(), once);
    run.run(2).expect("some more");
    assert_ne!(parameters(&run), once);
}

/// The same trajectories, in larger or smaller parts per learner device.
#[test]
fn other_learners_go_on() {
    let before = small().learners(vec![1, 2]).lag(0);
    let mut run = start(&before, 3, 5);
    run.run(2).expect("some iterations");
    let checkpoint = saved(&mut run);
    let learnt = parameters(&run);
    let client = loops::client(4);
    let reports = run.run(1).expect("an iteration");
    for learners in [&[1][..], &[0, 1, 2, 3]] {
        let mut run = resume(&before.clone().learners(learners.to_vec()), &client, &checkpoint)
            .expect("it goes on");
        assert_eq!((run.fresh_episodes(), parameters(&run)), (0, learnt.clone()));
        let again = run.run(1).expect("an iteration");
        assert_eq!((again[0].iteration, &again[0].episodes), (2, &reports[0].episodes));
        assert_ne!(parameters(&run), learnt);
    }
}

#[test]
fn a_checkpoint_of_another_run_says_what_does_not_fit() {
    let mut run = start(&small(), 2, 1);
    run.run(2).expect("some iterations");
    let good = saved(&mut run);
    let client = loops::client(4);
    let problem = |sebulba: &Sebulba<Ppo<Sgd>>, checkpoint: &Checkpoint<'_>| {
        let error = resume(sebulba, &client, checkpoint).err();
        format!("{:#}", error.expect("it does not fit"))
    };
    let said = problem(&small().actors(vec![0, 2]), &good);
    assert!(said.contains("it has no `actors[2].carried."), "{said}");
    let said = problem(&small().threads(1), &good);
    assert!(said.contains("it has the environments of more than 1 actor thread(s)"), "{said}");
    let said = problem(&small().lag(2), &good);
    assert!(said.contains("it has no `published[0]."), "{said}");
    let mut other = good.clone();
    let weight = other.arrays.keys().find(|name| name.contains("weight"));
    let weight = weight.expect("a weight").clone();
    other.arrays.insert(weight.clone(), Array::scalar(1.0f32).into());
    let said = problem(&small(), &other);
    assert!(said.contains(&format!("`{weight}` is f32[] and must be f32[")), "{said}");
    let mut torn = good.clone();
    let environment = Array::from_slice([3], &[1u8, 2, 3]).expect("bytes");
    torn.arrays.insert("actors[1].environment".to_owned(), environment.into());
    let mut run = resume(&small(), &client, &torn).expect("only its thread reads that");
    let said = run.run(1).expect_err("it cannot be put back").to_string();
    assert!(
        said.contains("actor thread 1") && said.contains("the snapshot cannot be restored"),
        "{said}"
    );
    assert!(run.checkpoint().is_err());
}
