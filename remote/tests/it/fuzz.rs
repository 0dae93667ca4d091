//! Streams of mutated messages: none brings the server down, and none leaves a lane behind.
//!
//! `PODRACER_MESSAGES=1000000 cargo test --release -p podracer-remote fuzzed` sends that many.

use std::time::Duration;

use bytes::Bytes;
use podracer_remote::proto::from_worker::Message as WorkerMessage;
use podracer_remote::proto::{Hello, Step};
use tonic::Code;

use crate::raw;
use crate::support::{Learner, Place, Working, cartpole_run, connect, hello, step, zeros};

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// The corpus: right messages, and each wrong in one way that the checks look at.
fn corpus(random: &mut Random, sequence: u64) -> Bytes {
    let right = || step(2, sequence);
    let message = match random.below(17) {
        0 => WorkerMessage::Hello(Hello { protocol: random.below(4) as u32, ..hello(2) }),
        1 => WorkerMessage::Hello(Hello { environments: u32::MAX, ..hello(2) }),
        2 => WorkerMessage::Hello(Hello { spaces: None, ..hello(2) }),
        3 => WorkerMessage::Step(Step { sequence: u64::MAX, ..right() }),
        4 => WorkerMessage::Step(Step { observation: vec![0xff; 32].into(), ..right() }),
        5 => {
            WorkerMessage::Step(Step { observation: vec![0; random.below(100)].into(), ..right() })
        }
        6 => WorkerMessage::Step(Step { reward: vec![0xff; 8].into(), ..right() }),
        7 => WorkerMessage::Step(Step {
            terminated: vec![random.below(3) as u8, 1].into(),
            ..right()
        }),
        8 => WorkerMessage::Step(Step { final_observations: vec![0; 16].into(), ..right() }),
        9 => WorkerMessage::Step(Step {
            terminated: vec![1, 0].into(),
            final_observations: vec![0; 16].into(),
            ..right()
        }),
        10 => WorkerMessage::Step(Step { reward: vec![0; 4].into(), ..right() }),
        11 => WorkerMessage::Step(Step {
            terminated: vec![random.below(5) as u8].into(),
            truncated: Bytes::new(),
            ..right()
        }),
        12 => WorkerMessage::Step(Step {
            terminated: Bytes::new(),
            truncated: Bytes::new(),
            ..right()
        }),
        _ => WorkerMessage::Step(right()),
    };
    raw::encode(message)
}

/// Changes some bytes, cuts the message off, or doubles a part of it.
fn mutate(random: &mut Random, message: &Bytes) -> Bytes {
    let mut bytes = message.to_vec();
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, 0xff),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes.into()
}

#[test]
fn fuzzed_streams_end_with_a_reason() {
    let messages = std::env::var("PODRACER_MESSAGES").ok().and_then(|text| text.parse().ok());
    let messages: usize = messages.unwrap_or(20_000);
    let place = Place::new();
    let learner = Learner::start(&place.options(), cartpole_run(), zeros, false);
    let good = Working::start(vec![place.address()], 2, 1);
    let (runtime, channel) = connect(&place);
    let (mut random, mut sent, mut streams) = (Random(1), 0, 0);
    let (mut ended, mut answered) = (0, 0);
    while sent < messages {
        streams += 1;
        let (say, mut told) = runtime.block_on(raw::open(channel.clone())).expect("it opens");
        runtime.block_on(async {
            let mut next = if random.below(8) == 0 {
                corpus(&mut random, 0)
            } else {
                raw::encode(WorkerMessage::Hello(Hello { protocol: 1 + streams % 2, ..hello(2) }))
            };
            let mut sequence = 0;
            loop {
                sent += 1;
                if say.send(next).await.is_err() {
                    break;
                }
                let hears = tokio::time::timeout(Duration::from_secs(20), told.message());
                match hears.await.expect("every message is answered, or ends the stream") {
                    Ok(Some(_)) => answered += 1,
                    Ok(None) => break,
                    Err(status) => {
                        let code = status.code();
                        let known = matches!(
                            code,
                            Code::InvalidArgument | Code::FailedPrecondition | Code::Aborted
                        );
                        assert!(known && !status.message().is_empty(), "{status:?}");
                        ended += 1;
                        break;
                    }
                }
                // Long and short streams.
                next = match random.below(20) {
                    0 => corpus(&mut random, sequence),
                    1 => {
                        let right = corpus(&mut random, sequence);
                        mutate(&mut random, &right)
                    }
                    _ => raw::encode(WorkerMessage::Step(step(2, sequence))),
                };
                sequence += 1;
            }
        });
    }
    assert!(
        answered > messages / 2 && ended > messages / 100,
        "{answered} answered, {ended} ended"
    );
    eprintln!(
        "{sent} messages on {streams} streams: {answered} answered, {ended} streams ended with a reason"
    );
    good.wait_for_steps(good.status.steps() + 5);
    good.stop().expect("it was not disturbed");
    learner.wait("all lanes are free", |seen| seen.lanes.is_empty());
    assert_eq!(learner.server().totals().status().lanes, 0);
}
