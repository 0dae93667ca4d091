//! The learner's side of the workers that were dealt to one inference thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use podracer_envs::host::{Answer, WorkerEvent, WorkerId, Workers, WorkersClosed};
use tokio::sync::mpsc;

/// A message from a stream to the learner: an event, and where the replies go to if the event is that a worker joins.
type StreamMessage = (WorkerEvent, Option<mpsc::Sender<Reply>>);

/// The events of one inference thread, on their way to it. A worker has at most three on the way: it joined, it stepped, it left.
pub(super) fn events(most_workers: usize) -> (EventSender, EventReceiver) {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let unheard = Arc::new(AtomicUsize::new(0));
    let events = EventSender { messages: sender, unheard: Arc::clone(&unheard), most_workers };
    (events, EventReceiver { messages: receiver, unheard })
}

/// The streams' end of the events of an inference thread.
#[derive(Clone)]
pub(super) struct EventSender {
    messages: Sender<StreamMessage>,
    /// Workers that have joined, without a processed departure.
    unheard: Arc<AtomicUsize>,
    most_workers: usize,
}

impl EventSender {
    /// Takes up a worker that joins. False if the thread is too far behind to hear of more.
    pub(super) fn take_room(&self) -> bool {
        let room = |workers: usize| (workers < self.most_workers).then_some(workers + 1);
        self.unheard.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok()
    }

    /// Reports that a worker joins, with the channel of its replies; false if the run is over.
    pub(super) fn join(&self, joined: WorkerEvent, replies: mpsc::Sender<Reply>) -> bool {
        self.messages.send((joined, Some(replies))).is_ok()
    }

    /// Sends an event of a worker that has joined; false if the run is over.
    pub(super) fn send(&self, event: WorkerEvent) -> bool {
        self.messages.send((event, None)).is_ok()
    }
}

/// The inference thread's end of its events.
pub(super) struct EventReceiver {
    messages: Receiver<StreamMessage>,
    unheard: Arc<AtomicUsize>,
}

/// A message from the learner to a stream.
pub(super) enum Reply {
    Admit {
        first_lane: usize,
        seed: u64,
    },
    Actions(Answer),
    Dismiss(String),
    /// There is no room for it now.
    TurnAway(String),
    /// The run is complete.
    Complete,
    /// The learner stops, and may be back.
    Stop,
}

/// Replies that a worker may have before it: `Welcome`, an answer, a dismissal and the end of the run.
pub(super) const REPLIES: usize = 4;

/// The workers of one inference thread, as streams of a server.
pub(super) struct RemoteWorkers {
    events: EventReceiver,
    replies: HashMap<WorkerId, mpsc::Sender<Reply>>,
    post: mpsc::UnboundedSender<Post>,
}

/// The answers of a batch, each with its stream.
type Post = Vec<(mpsc::Sender<Reply>, Answer)>;

/// Delivers the answers of batches to their streams. It is a task of the server, which wakes a
/// stream without a system call; the inference thread would need one for each answer. Its queue is
/// bounded: a worker has at most one unanswered step.
async fn deliver(mut post: mpsc::UnboundedReceiver<Post>) {
    while let Some(answers) = post.recv().await {
        for (stream, answer) in answers {
            let _ = stream.try_send(Reply::Actions(answer));
        }
    }
}

impl RemoteWorkers {
    /// The workers with streams that send these events. It must be called within the server's
    /// runtime.
    pub(super) fn new(events: EventReceiver) -> Self {
        let (post, answers) = mpsc::unbounded_channel();
        tokio::spawn(deliver(answers));
        RemoteWorkers { events, replies: HashMap::new(), post }
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
        let (event, replies) = match self.events.messages.recv_deadline(until) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(WorkersClosed("the server has stopped".to_owned()));
            }
        };
        match (&event, replies) {
            (WorkerEvent::Joined { worker, .. }, Some(replies)) => {
                self.replies.insert(*worker, replies);
            }
            (WorkerEvent::Left { worker, .. }, _) => {
                self.replies.remove(worker);
                self.events.unheard.fetch_sub(1, Ordering::AcqRel);
            }
            _ => {}
        }
        Ok(Some(event))
    }

    fn admit(&mut self, worker: WorkerId, first_lane: usize, seed: u64) {
        self.reply(worker, Reply::Admit { first_lane, seed });
    }

    fn answer(&mut self, answers: Vec<Answer>) {
        let streams = |answer: Answer| Some((self.replies.get(&answer.worker)?.clone(), answer));
        let _ = self.post.send(answers.into_iter().filter_map(streams).collect());
    }

    fn dismiss(&mut self, worker: WorkerId, reason: &str) {
        self.reply(worker, Reply::Dismiss(reason.to_owned()));
        self.replies.remove(&worker);
    }

    fn turn_away(&mut self, worker: WorkerId, reason: &str) {
        self.reply(worker, Reply::TurnAway(reason.to_owned()));
        self.replies.remove(&worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers that came and left while the inference thread was elsewhere were kept without a bound.
    #[test]
    fn events_that_nobody_takes_up_are_bounded() {
        let (streams, taken_up) = events(2);
        let post = mpsc::unbounded_channel().0;
        let mut workers = RemoteWorkers { events: taken_up, replies: HashMap::new(), post };
        let come_and_go = |worker: u64| {
            let room = streams.take_room();
            if room {
                let worker = WorkerId(worker);
                let replies = mpsc::channel(REPLIES).0;
                let origin = Some(Arc::from("a host"));
                let joined = WorkerEvent::Joined { worker, environments: 1, origin };
                let left = WorkerEvent::Left { worker, reason: "it said goodbye".to_owned() };
                assert!(streams.join(joined, replies));
                assert!(streams.send(left));
            }
            room
        };
        assert_eq!([0, 1, 2].map(come_and_go), [true, true, false]);
        let mut next = || workers.next(Instant::now());
        assert!(matches!(next(), Ok(Some(WorkerEvent::Joined { .. }))));
        assert!(!come_and_go(3), "it has not left yet");
        assert!(matches!(next(), Ok(Some(WorkerEvent::Left { .. }))));
        assert!(come_and_go(4));
    }
}
