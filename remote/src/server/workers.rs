//! The learner's side of the workers that were dealt to one inference thread.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use podracer_envs::host::{WorkerEvent, WorkerId, WorkerStep, Workers, WorkersClosed};
use tokio::sync::mpsc;

/// A message from a stream to the learner.
pub(super) enum Event {
    Joined { worker: WorkerId, environments: usize, replies: mpsc::Sender<Reply> },
    Stepped { worker: WorkerId, sequence: u64, step: WorkerStep },
    Left { worker: WorkerId, reason: String },
}

/// A message from the learner to a stream.
pub(super) enum Reply {
    Admit {
        first_lane: usize,
        seed: u64,
    },
    Actions {
        sequence: u64,
        actions: Bytes,
        version: u64,
    },
    Dismiss(String),
    /// The run is complete.
    Complete,
    /// The learner stops, and may be back.
    Stop,
}

/// Replies that a worker may have before it: `Welcome`, an answer, a dismissal and the end of the run.
pub(super) const REPLIES: usize = 4;

/// The workers of one inference thread, as streams of a server.
pub(super) struct RemoteWorkers {
    events: Receiver<Event>,
    replies: HashMap<WorkerId, mpsc::Sender<Reply>>,
}

impl RemoteWorkers {
    pub(super) fn new(events: Receiver<Event>) -> Self {
        RemoteWorkers { events, replies: HashMap::new() }
    }

    fn reply(&mut self, worker: WorkerId, reply: Reply) {
        // A stream that takes no replies has ended, or soon will by its deadline.
        if let Some(replies) = self.replies.get(&worker) {
            let _ = replies.try_send(reply);
        }
    }
}

impl Workers for RemoteWorkers {
    fn are_elsewhere(&self) -> bool {
        true
    }

    fn next(&mut self, until: Instant) -> Result<Option<WorkerEvent>, WorkersClosed> {
        let event = match self.events.recv_deadline(until) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(WorkersClosed("the server has stopped".to_owned()));
            }
        };
        Ok(Some(match event {
            Event::Joined { worker, environments, replies } => {
                self.replies.insert(worker, replies);
                WorkerEvent::Joined { worker, environments }
            }
            Event::Stepped { worker, sequence, step } => {
                WorkerEvent::Stepped { worker, sequence, step }
            }
            Event::Left { worker, reason } => {
                self.replies.remove(&worker);
                WorkerEvent::Left { worker, reason }
            }
        }))
    }

    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        self.reply(worker, Reply::Admit { first_lane, seed });
    }

    fn answer(&mut self, worker: WorkerId, sequence: u64, actions: Bytes, version: u64) {
        self.reply(worker, Reply::Actions { sequence, actions, version });
    }

    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        self.reply(worker, Reply::Dismiss(reason.to_owned()));
        self.replies.remove(&worker);
    }
}
