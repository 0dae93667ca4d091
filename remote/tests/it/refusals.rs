//! Workers that do not fit: they are rejected with a reason, and no other worker is disturbed.

use std::time::{Duration, Instant};

use podracer_envs::host::WorkerEvent;
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::{Hello, Step};
use podracer_remote::server::Server;
use podracer_remote::worker::WorkerError;
use podracer_remote::{RunDescription, worker};
use tonic::Code;

use crate::support::{
    Client, Learner, Place, Working, cartpole_run, cartpole_spaces, hello, never, step, zeros,
};

#[test]
fn workers_that_do_not_fit_are_refused() {
    let place = Place::new();
    let learner = Learner::start(
        &place.options_with(|limits| limits.lanes = 80),
        cartpole_run(),
        zeros,
        false,
    );
    let good = Working::start(vec![place.address()], 2, 1);
    good.wait_for_steps(5);
    let check = |code: Code, reason: &str, hello: Hello| {
        let mut client = Client::open(&place);
        client.say(WorkerMessage::Hello(hello));
        let status = client.end();
        assert_eq!((status.code(), status.message()), (code, reason));
    };
    let mut other_spaces = cartpole_spaces();
    other_spaces.action.as_mut().expect("it is there").counts = vec![3];
    let final_one = Code::FailedPrecondition;
    check(
        final_one,
        "the worker speaks protocol 4 and this learner protocols 1 to 3: use the same version on both sides",
        Hello { protocol: 4, ..hello(1) },
    );
    check(
        final_one,
        "the action space of the run is i32[] of 2 values and the worker's is i32[] of 3 values",
        Hello { spaces: Some(other_spaces), ..hello(1) },
    );
    check(final_one, "there is no observation space", Hello { spaces: None, ..hello(1) });
    check(
        final_one,
        "a worker of this run has 1 to 64 environments, and this worker has 0",
        hello(0),
    );
    check(
        final_one,
        "a worker of this run has 1 to 64 environments, and this worker has 65",
        hello(65),
    );
    check(
        Code::Aborted,
        "the worker has made environments for another run (run-0); this run is run-1",
        Hello { run: "run-0".to_owned(), ..hello(1) },
    );
    let mut large = Client::open(&place);
    large.greet(64);
    check(
        Code::ResourceExhausted,
        "there is no room for 16 more environments: the learner takes 80 at once",
        hello(16),
    );
    drop(large);
    learner.wait("the lanes are free again", |seen| seen.lanes.len() == 1);
    Client::open(&place).greet(16);
    good.wait_for_steps(good.status.steps() + 5);
    good.stop().expect("it was not disturbed");
}

/// A worker without lanes in an inference thread must not receive `ABORTED`.
#[test]
fn a_worker_without_room_hears_that_resources_are_exhausted() {
    let place = Place::new();
    let (_server, mut workers) =
        Server::start(&place.options(), cartpole_run(), 1).expect("it starts");
    let mut client = Client::open(&place);
    client.say(WorkerMessage::Hello(hello(2)));
    let until = Instant::now() + Duration::from_secs(10);
    let Ok(Some(WorkerEvent::Joined { worker, .. })) = workers[0].next(until) else {
        panic!("it has joined");
    };
    workers[0].turn_away(worker, "all lanes are taken");
    let status = client.end();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "all lanes are taken"));
}

#[test]
fn nonsense_ends_the_stream_that_it_came_on() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let good = Working::start(vec![place.address()], 2, 1);
    good.wait_for_steps(5);
    type Say<'a> = &'a dyn Fn(&mut Client);
    let later = |change: fn(&mut Step)| {
        move |client: &mut Client| {
            client.greet(2);
            client.step(2, 0);
            client.step(2, 1);
            let mut step = step(2, 2);
            change(&mut step);
            client.say(WorkerMessage::Step(step));
        }
    };
    let nan = later(|step| step.reward = [[0; 4], f32::NAN.to_le_bytes()].concat().into());
    let long = later(|step| step.observation = vec![0; 33].into());
    let short = later(|step| step.terminated = vec![0].into());
    let flag = later(|step| step.truncated = vec![7, 0].into());
    let number = later(|step| step.sequence = 1);
    let ended = later(|step| step.terminated = vec![1, 0].into());
    let check = |reason: &str, say: Say<'_>| {
        let mut client = Client::open(&place);
        say(&mut client);
        let status = client.end();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, reason));
        if !reason.contains("hello` and") && !reason.contains("neither") {
            // Both sides hear the same.
            learner.wait(reason, |seen| seen.left.iter().any(|left| left == reason));
        }
    };
    check(
        "step 2: the reward of environment 1 is NaN: rewards must be from -1000000 to 1000000 (central.reward_bound)",
        &nan,
    );
    check("step 2: `observation` must have 32 bytes for 2 environments and has 33", &long);
    check("step 2: `terminated` must have 2 bytes for 2 environments and has 1", &short);
    check("step 2: (terminated, truncated) of environment 0 are (0, 7): a flag is 0 or 1", &flag);
    check("expected step 2, got step 1", &number);
    check(
        "step 2: `final_observations` must have 16 bytes for 1 environments that ended and has 0",
        &ended,
    );
    check("the first message must be `hello` and is `step`", &|client| {
        client.say(WorkerMessage::Step(step(2, 0)));
    });
    check("a message has neither `hello` nor `step`", &|client| client.say_nothing_in_particular());
    check("`hello` came twice", &|client| {
        client.greet(2);
        client.say(WorkerMessage::Hello(hello(2)));
    });
    good.wait_for_steps(good.status.steps() + 5);
    good.stop().expect("it was not disturbed");
}

#[test]
fn a_step_that_comes_before_the_answer_to_the_last_one_ends_its_stream() {
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), never, false);
    let mut client = Client::open(&place);
    client.greet(2);
    client.say(WorkerMessage::Step(step(2, 0)));
    client.say(WorkerMessage::Step(step(2, 1)));
    let reason = "step 1 came before the answer to step 0";
    let status = client.end();
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, reason));
    learner.wait("it has left", |seen| seen.left == [reason]);
}

/// A worker with other environments ends with the learner's message, and does not reconnect.
#[test]
fn a_refusal_is_final() {
    let place = Place::new();
    let run = cartpole_run();
    let skips = podracer_envs::host::HostSpec { skips: true, ..run.spec.clone() };
    let _learner =
        Learner::start(&place.options(), RunDescription { spec: skips, ..run }, zeros, false);
    let refused = Working::start(vec![place.address()], 2, 2).end();
    let Err(WorkerError::Refused { reason, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "`skips` is true for the run and false for the worker");
}

#[test]
fn environments_that_cannot_be_made_end_the_worker() {
    let place = Place::new();
    let _learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let options = worker::WorkerOptions {
        addresses: vec![place.address()],
        security: None,
        environments: 3,
        batches: 1,
    };
    let told = worker::work(
        &options,
        &|run, n| Err(format!("no {} of {n} here", run.environment).into()),
        &std::sync::Arc::default(),
        &false.into(),
    );
    let told = told.expect_err("they cannot be made").to_string();
    assert!(told.ends_with("no cartpole of 3 here"), "{told}");
}
