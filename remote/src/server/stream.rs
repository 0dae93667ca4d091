//! The stream of one worker: the protocol's order of messages, and the answers.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use podracer_envs::host::{Answer, HostSpec, WorkerEvent, WorkerId, printable};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

use super::Streams;
use super::check::StepCheck;
use super::link::{Alarm, Link};
use super::workers::{EventSender, REPLIES, Reply};
use crate::proto::from_worker::Message as WorkerMessage;
use crate::proto::to_worker::Message as LearnerMessage;
use crate::proto::{Actions, FromWorker, Hello, ToWorker, Welcome};
use crate::{PACKED, PROTOCOL, spaces};

/// Bytes of the longest status message: it is sent in a header.
const MOST_REASON: usize = 1000;

/// The answers to a `Work` call. Polling them also reads the worker's messages: a step needs no
/// other task.
pub(super) struct WorkStream {
    shared: Arc<Streams>,
    link: Arc<Link>,
    said: Streaming<FromWorker>,
    worker: WorkerId,
    phase: Phase,
    /// Time until which the worker must have said something; `None` while it waits for the learner.
    due: Option<Instant>,
    alarm: Alarm,
    /// The worker that was taken in; `None` before its `Hello`, and after its end.
    member: Option<StreamMember>,
    name: String,
}

struct StreamMember {
    environments: usize,
    check: StepCheck,
    replies: mpsc::Receiver<Reply>,
    events: EventSender,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The worker says `Hello` next.
    Hello,
    /// The learner admits it next.
    Joined,
    /// The worker steps next, and this is the step's number.
    Stepping(u64),
    /// The learner answers this step next.
    Answering(u64),
    Over,
}

impl WorkStream {
    pub(super) fn new(shared: Arc<Streams>, link: Arc<Link>, said: Streaming<FromWorker>) -> Self {
        let worker = WorkerId(shared.next_worker.fetch_add(1, Ordering::Relaxed));
        WorkStream {
            due: Some(Instant::now() + shared.limits.handshake),
            name: link.peer.clone(),
            shared,
            link,
            said,
            worker,
            phase: Phase::Hello,
            alarm: Alarm::new(),
            member: None,
        }
    }

    /// Processes a message from the worker.
    fn hear(&mut self, message: FromWorker) -> Result<(), Status> {
        match (message.message, self.phase) {
            (Some(WorkerMessage::Hello(hello)), Phase::Hello) => self.greet(hello),
            (Some(WorkerMessage::Step(step)), Phase::Stepping(sequence)) => {
                let Some(member) = &self.member else { return Ok(()) };
                let step = member.check.step(step, sequence).map_err(Status::invalid_argument)?;
                let event = WorkerEvent::Stepped { worker: self.worker, sequence, step };
                if !member.events.send(event) {
                    return Err(stopped());
                }
                let steps = &self.shared.totals.environment_steps;
                steps.fetch_add(member.environments as u64, Ordering::Relaxed);
                self.phase = Phase::Answering(sequence);
                self.expect(None);
                Ok(())
            }
            (None, _) => Err(Status::invalid_argument("a message has neither `hello` nor `step`")),
            (Some(WorkerMessage::Step(_)), Phase::Hello) => {
                Err(Status::invalid_argument("the first message must be `hello` and is `step`"))
            }
            (Some(WorkerMessage::Step(step)), phase) => {
                let before = match phase {
                    Phase::Answering(sequence) => format!("the answer to step {sequence}"),
                    _ => "`welcome`".to_owned(),
                };
                let sequence = step.sequence;
                Err(Status::invalid_argument(format!("step {sequence} came before {before}")))
            }
            (Some(WorkerMessage::Hello(_)), _) => {
                Err(Status::invalid_argument("`hello` came twice"))
            }
        }
    }

    fn greet(&mut self, hello: Hello) -> Result<(), Status> {
        let shared = self.shared.clone();
        let (run, n) = (&shared.run, hello.environments as usize);
        if !hello.name.is_empty() {
            let name: String = hello.name.chars().take(200).collect();
            self.name =
                format!("{} ({})", printable(&name).replace(['\n', '\t'], " "), self.link.peer);
        }
        if !(1..=PROTOCOL).contains(&hello.protocol) {
            return Err(Status::failed_precondition(format!(
                "the worker speaks protocol {} and this learner protocols 1 to {PROTOCOL}: use the same version on both sides",
                hello.protocol
            )));
        }
        if !hello.run.is_empty() && hello.run != run.id {
            return Err(Status::aborted(format!(
                "the worker has made environments for another run ({:.80}); this run is {}",
                hello.run, run.id
            )));
        }
        let most = run.spec.environments;
        if !(1..=most).contains(&n) {
            return Err(Status::failed_precondition(format!(
                "a worker of this run has 1 to {most} environments, and this worker has {n}"
            )));
        }
        let worker_spaces = hello.spaces.unwrap_or_default();
        spaces::compare(&run.spec, &worker_spaces).map_err(Status::failed_precondition)?;
        if shared.completed.load(Ordering::Acquire) {
            return Err(Status::ok(""));
        }
        let thread = shared.next_thread.fetch_add(1, Ordering::Relaxed) % shared.events.len();
        let events = shared.events[thread].clone();
        let limit = shared.limits.lanes;
        let room = |lanes: usize| lanes.checked_add(n).filter(|&lanes| lanes <= limit);
        let lanes = &shared.totals.lanes;
        if lanes.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
            return Err(Status::resource_exhausted(format!(
                "there is no room for {n} more environments: the learner takes {limit} at once"
            )));
        }
        if !events.take_room() {
            lanes.fetch_sub(n, Ordering::AcqRel);
            return Err(Status::resource_exhausted(
                "the learner has not heard yet of all the workers that came and left",
            ));
        }
        let (answers, replies) = mpsc::channel(REPLIES);
        let of_worker = HostSpec { environments: n, ..run.spec.clone() };
        let check = StepCheck::new(of_worker, &shared.limits);
        let check = check.packed(hello.protocol >= PACKED);
        self.link.greeted(self.worker.0, check.most_bytes() as i64);
        shared.totals.workers.fetch_add(1, Ordering::Relaxed);
        shared.streams().insert(self.worker, answers.downgrade());
        let origin = Some(Arc::clone(&self.link.origin));
        let joined = WorkerEvent::Joined { worker: self.worker, environments: n, origin };
        let sent = events.join(joined, answers);
        self.member = Some(StreamMember { environments: n, check, replies, events });
        self.phase = Phase::Joined;
        self.expect(None);
        if sent { Ok(()) } else { Err(stopped()) }
    }

    /// The message to the worker for a reply of the learner.
    fn tell(&mut self, reply: Option<Reply>) -> Result<Option<LearnerMessage>, Status> {
        match (reply, self.phase) {
            (Some(Reply::Admit { first_lane, seed }), Phase::Joined) => {
                self.phase = Phase::Stepping(0);
                self.expect(Some(self.shared.limits.begin));
                let first_lane = first_lane as u64;
                let run = Some(self.shared.run.to_wire());
                Ok(Some(LearnerMessage::Welcome(Welcome { run, first_lane, seed })))
            }
            (Some(Reply::Actions(answer)), Phase::Answering(asked)) if answer.sequence == asked => {
                let Answer { sequence, actions, version, .. } = answer;
                self.phase = Phase::Stepping(sequence + 1);
                self.expect(Some(self.shared.limits.step));
                if let Some(member) = &self.member {
                    self.link.grant(member.check.most_bytes() as i64);
                }
                Ok(Some(LearnerMessage::Actions(Actions { sequence, actions, version })))
            }
            // An answer to another question is a mistake of the learner.
            (Some(Reply::Admit { .. } | Reply::Actions(_)), phase) => {
                tracing::error!(
                    "worker {}: an answer that nothing asked for ({phase:?})",
                    self.name
                );
                Ok(None)
            }
            (Some(Reply::Dismiss(reason)), _) => Err(Status::aborted(reason)),
            (Some(Reply::TurnAway(reason)), _) => Err(Status::resource_exhausted(reason)),
            (Some(Reply::Complete), _) => Err(Status::ok("")),
            (Some(Reply::Stop) | None, _) => Err(stopped()),
        }
    }

    fn expect(&mut self, within: Option<Duration>) {
        self.due = within.map(|within| Instant::now() + within);
        self.link.expect(self.worker.0, self.due);
    }

    /// Ends the worker's membership, and tells the learner why.
    fn leave(&mut self, reason: &str) {
        self.phase = Phase::Over;
        let Some(member) = self.member.take() else { return };
        let totals = &self.shared.totals;
        self.shared.streams().remove(&self.worker);
        self.link.ended(self.worker.0, member.check.most_bytes() as i64);
        totals.lanes.fetch_sub(member.environments, Ordering::AcqRel);
        totals.workers.fetch_sub(1, Ordering::Relaxed);
        let left = WorkerEvent::Left { worker: self.worker, reason: reason.to_owned() };
        let _ = member.events.send(left);
    }

    /// Ends the stream with this status for the worker.
    fn end(&mut self, status: Status) -> Option<Result<ToWorker, Status>> {
        let reason = match (status.code(), status.message()) {
            (Code::Ok, _) => "the run is complete",
            (_, reason) => reason,
        };
        let reason = clip(&printable(reason));
        if matches!(status.code(), Code::FailedPrecondition | Code::InvalidArgument) {
            self.shared.totals.refused.fetch_add(1, Ordering::Relaxed);
        }
        if !matches!(status.code(), Code::Ok | Code::Unavailable) {
            self.shared.totals.complain(|| format!("worker {}: sent away: {reason}", self.name));
        }
        self.leave(&reason);
        match status.code() {
            Code::Ok => None,
            code => Some(Err(Status::new(code, reason))),
        }
    }
}

fn stopped() -> Status {
    Status::unavailable("the learner stops: come again when it is back")
}

/// A reason that fits into a header.
fn clip(reason: &str) -> String {
    match reason.char_indices().nth(MOST_REASON) {
        Some((end, _)) => format!("{} ..", &reason[..end]),
        None => reason.to_owned(),
    }
}

impl Stream for WorkStream {
    type Item = Result<ToWorker, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.phase == Phase::Over {
                return Poll::Ready(None);
            }
            if let Some(member) = &mut this.member
                && let Poll::Ready(reply) = member.replies.poll_recv(cx)
            {
                match this.tell(reply) {
                    Ok(Some(message)) => {
                        return Poll::Ready(Some(Ok(ToWorker { message: Some(message) })));
                    }
                    Ok(None) => continue,
                    Err(status) => return Poll::Ready(this.end(status)),
                }
            }
            match Pin::new(&mut this.said).poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => {
                    if let Err(status) = this.hear(message) {
                        return Poll::Ready(this.end(status));
                    }
                }
                Poll::Ready(Some(Err(status))) => {
                    let problem =
                        this.link.problem().unwrap_or_else(|| status.message().to_owned());
                    return Poll::Ready(match status.code() {
                        // The received bytes are no message of the protocol.
                        Code::Internal
                        | Code::OutOfRange
                        | Code::InvalidArgument
                        | Code::Unimplemented => this.end(Status::invalid_argument(problem)),
                        _ => {
                            this.leave(&problem);
                            None
                        }
                    });
                }
                Poll::Ready(None) => {
                    this.leave("it said goodbye");
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    let due = this.due;
                    if this.alarm.poll(due, cx) {
                        let late = match this.phase {
                            Phase::Hello => "there was no `hello` in time".to_owned(),
                            Phase::Stepping(step) => format!("step {step} did not come in time"),
                            _ => continue,
                        };
                        return Poll::Ready(this.end(Status::deadline_exceeded(late)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for WorkStream {
    fn drop(&mut self) {
        let problem = self.link.problem();
        self.leave(problem.as_deref().unwrap_or("its connection is closed"));
    }
}
