//! A fault of one thread ends the run with an error that names it, and never leaves another thread waiting.

use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use podracer::sebulba::Sebulba;
use podracer_envs::host::{HostEnvironment, HostError};
use podracer_rl::agents::Ppo;
use podracer_rl::optim::{Sgd, sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{SebulbaError, SebulbaRun, ThreadFailure};

use super::checkpoints::{resume, saved};
use super::{ENVIRONMENTS, UNROLL, cartpoles, parameters, quick, small, spec, with};
use crate::loops;

/// A run with an event at the second actor thread's tenth step, which is in its second trajectory.
fn with_trouble(
    sebulba: &Sebulba<Ppo<Sgd>>,
    trouble: impl Fn() -> Result<(), HostError> + Send + 'static,
) -> SebulbaRun {
    let mut trouble = Some(trouble);
    let batch = |thread| -> anyhow::Result<Box<dyn HostEnvironment>> {
        if thread != 1 {
            return Ok(Box::new(cartpoles(ENVIRONMENTS)));
        }
        let trouble = trouble.take().expect("one thread has it");
        let mut steps = 0;
        Ok(Box::new(with(move || {
            steps += 1;
            if steps == 10 { trouble() } else { Ok(()) }
        })))
    };
    sebulba.start(&loops::client(2), &spec(), 1, batch).expect("the run starts")
}

/// A fault that begins when the sender sends, or is dropped.
fn waits() -> (Sender<()>, impl Fn() -> Result<(), HostError> + Send) {
    let (begin, begun) = mpsc::channel();
    let wait = move || {
        // An error means that it is dropped.
        let _ = begun.recv();
        Ok(())
    };
    (begin, wait)
}

/// The error of the run, which comes soon and stays.
fn error(run: &mut SebulbaRun) -> SebulbaError {
    let began = Instant::now();
    let error = run.run(100).expect_err("it ends in an error");
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(matches!(run.run(1), Err(SebulbaError::Over)));
    error
}

/// A checkpoint that was saved before is good.
#[test]
fn a_panic_in_an_actor_thread_is_an_error_that_names_it() {
    let (begin, wait) = waits();
    let trouble = move || {
        wait()?;
        panic!("the pole broke")
    };
    let mut run = with_trouble(&small(), trouble);
    run.run(1).expect("an iteration");
    let checkpoint = saved(&mut run);
    let learnt = parameters(&run);
    begin.send(()).expect("the thread waits");
    let error = error(&mut run);
    assert!(matches!(error, SebulbaError::Thread { failure: ThreadFailure::Panicked(_), .. }));
    assert_eq!(error.to_string(), "actor thread 1 (cpu:0) panicked: the pole broke");
    let mut run = resume(&small(), &loops::client(2), &checkpoint).expect("it goes on");
    assert_eq!(parameters(&run), learnt);
    assert_eq!(run.run(2).expect("some iterations")[0].iteration, 1);
}

#[test]
fn an_error_of_an_environment_too() {
    let trouble = || Err(HostError::failed("the server has gone"));
    assert_eq!(
        error(&mut with_trouble(&small(), trouble)).to_string(),
        "actor thread 1 (cpu:0) was stopped by its environments: the server has gone"
    );
}

/// An environment that never comes back: its thread is named, and who waits for it.
#[test]
fn a_watchdog_names_waiting_threads() {
    for (sebulba, waits_for) in [
        (small(), "parameters 2 of the learner"),
        (small().lag(4).queue(1), "the learner to take a trajectory, its queue is full"),
    ] {
        let (_keep, trouble) = waits();
        let sebulba = sebulba.patience(2);
        let error = error(&mut with_trouble(&sebulba, trouble)).to_string();
        for expected in [
            "nothing happened for 2 s, the run's `patience`: ",
            &format!("actor thread 0 (cpu:0) waits for {waits_for} (for "),
            "actor thread 1 (cpu:0) steps its environments (for ",
            "the learner waits for a trajectory of actor thread 1 (for ",
        ] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}

/// An environment that is slow once is waited for.
#[test]
fn a_pause_within_the_patience_is_none_of_the_watchdogs_business() {
    let trouble = || {
        std::thread::sleep(Duration::from_secs(2));
        Ok(())
    };
    let sebulba = small().patience(20);
    let mut run = with_trouble(&sebulba, trouble);
    assert_eq!(run.run(5).expect("it goes on").len(), 5);
}

/// Networks of terabytes: nothing is begun, and nothing is left running.
#[test]
fn what_does_not_fit_into_memory_is_an_error() {
    let mut agent = loops::ppo(&podracer_envs::CartPole::default(), sgd(0.1));
    agent.settings.networks.hidden = vec![1 << 20, 1 << 20];
    let started =
        quick(Sebulba::new(agent))
            .unroll(UNROLL)
            .start(&loops::client(2), &spec(), 1, |_| Ok(Box::new(cartpoles(ENVIRONMENTS))));
    let error = format!("{:#}", started.err().expect("it is too large"));
    assert!(error.contains("not enough memory: the training takes at least 8192."), "{error}");
    assert!(error.contains("`0.replicated.agent.params.actor.layers[1].weight`"), "{error}");
}

#[test]
fn what_does_not_fit_is_said_before_anything_starts() {
    let client = loops::client(2);
    let batch = |environments| {
        move |_| -> anyhow::Result<Box<dyn HostEnvironment>> {
            Ok(Box::new(cartpoles(environments)))
        }
    };
    let message = |started: anyhow::Result<SebulbaRun>| {
        let error = started.err().expect("it is refused");
        format!("{error:#}")
    };
    let other = message(small().start(&client, &spec(), 1, batch(3)));
    assert!(
        other.contains("the environments of actor thread 0 are")
            && other.contains("environments: 3"),
        "{other}"
    );
    let none =
        message(small().learners(vec![1, 5]).start(&client, &spec(), 1, batch(ENVIRONMENTS)));
    assert!(none.contains("device 5"), "{none}");
    let odd =
        message(small().learners(vec![0, 1, 2]).start(&client, &spec(), 1, batch(ENVIRONMENTS)));
    assert!(
        odd.contains("the 4 environments of a thread do not divide over 3 learner devices"),
        "{odd}"
    );
}
