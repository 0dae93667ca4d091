//! A session: one stream, from `Hello` until it breaks or the run is complete.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, StepLeaves};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::WorkerStatus;
use crate::packed::{pack_flags, pack_rewards};
use crate::proto::from_worker::Message as WorkerMessage;
use crate::proto::seed_client::SeedClient;
use crate::proto::to_worker::Message as LearnerMessage;
use crate::proto::{Actions, FromWorker, Hello, Step, ToWorker};
use crate::spaces::spaces_to_wire;
use crate::{MASKED, PACKED};

/// Steps that take longer run on a thread of their own, so that pings are answered meanwhile.
const LONG_STEP: Duration = Duration::from_millis(5);

/// Ends of a session.
pub(super) enum End {
    /// The run is complete.
    Complete,
    /// This process was asked to stop.
    Stopped,
    /// The learner ended the stream, or the connection broke.
    Broken(Status),
    /// The environments failed.
    Failed(HostError),
}

/// Environments with memory for their steps.
pub(super) struct Stepper {
    pub(super) environment: Box<dyn HostEnvironment>,
    leaves: StepLeaves<Bytes, Vec<f32>>,
    /// Time that the last step took.
    took: Duration,
}

enum Next {
    Begin { seed: u64, first_lane: usize },
    Step(Bytes),
}

impl Stepper {
    pub(super) fn new(environment: Box<dyn HostEnvironment>) -> Self {
        let lengths = environment.spec().step_lengths();
        Stepper {
            leaves: lengths
                .map(|bytes| BytesMut::zeroed(bytes).freeze(), |floats| vec![0.0; floats]),
            environment,
            // The first step resets the environments, which may take long.
            took: LONG_STEP,
        }
    }

    fn advance(&mut self, next: &Next) -> Result<(), HostError> {
        let begun = Instant::now();
        let mut leaves = std::mem::take(&mut self.leaves).map(writable, |floats| floats);
        let mut step = leaves.as_mut().map(|bytes| &mut bytes[..], |floats| &mut floats[..]);
        let done = match next {
            Next::Begin { seed, first_lane } => {
                self.environment.reset(*seed, *first_lane, &mut step)
            }
            Next::Step(actions) => self.environment.step(actions, &mut step),
        };
        self.leaves = leaves.map(BytesMut::freeze, |floats| floats);
        self.took = begun.elapsed();
        for report in self.environment.reports() {
            tracing::warn!("{report}");
        }
        done
    }

    /// The last step as a message of a protocol.
    fn message(&self, sequence: u64, protocol: u32) -> Step {
        let leaves = &self.leaves;
        let flags = || leaves.terminated.iter().zip(&leaves.truncated).map(|(a, b)| a | b);
        let size = leaves.next_observation.len() / leaves.reward.len().max(1);
        let rows = leaves.next_observation.chunks_exact(size.max(1)).zip(flags());
        let mut final_observations = BytesMut::new();
        for (row, _) in rows.filter(|(_, flag)| *flag != 0) {
            final_observations.extend_from_slice(row);
        }
        let successes = leaves.success.iter().zip(flags()).filter(|(_, flag)| *flag != 0);
        let (reward, terminated, truncated) = match protocol >= PACKED {
            true => (
                pack_rewards(&leaves.reward),
                pack_flags(&leaves.terminated),
                pack_flags(&leaves.truncated),
            ),
            false => (
                leaves.reward.iter().flat_map(|reward| reward.to_le_bytes()).collect(),
                leaves.terminated.clone(),
                leaves.truncated.clone(),
            ),
        };
        Step {
            sequence,
            observation: leaves.observation.clone(),
            reward,
            terminated,
            truncated,
            final_observations: final_observations.freeze(),
            legal_actions: pack_flags(&leaves.legal_actions),
            success: successes.flat_map(|(success, _)| success.to_le_bytes()).collect(),
        }
    }
}

/// The bytes of the last step to write the next into: the same memory, as the message with it has been sent by now.
fn writable(bytes: Bytes) -> BytesMut {
    bytes.try_into_mut().unwrap_or_else(|bytes| BytesMut::from(&bytes[..]))
}

/// A stream of a worker without its environments: the connection to its learner.
pub(super) struct Session {
    /// The batch, as the learner's messages name it.
    pub(super) name: String,
    pub(super) run: String,
    pub(super) protocol: u32,
    pub(super) status: Arc<WorkerStatus>,
    /// Resolved once the batch has to stop.
    pub(super) stopped: oneshot::Receiver<()>,
}

impl Session {
    /// Runs one stream, and gives the environments back if they are still of use.
    ///
    /// It is a separate task: waking a runtime's first future takes two system calls, and waking a
    /// task takes none.
    pub(super) async fn run(
        mut self,
        mut client: SeedClient<Channel>,
        stepper: Stepper,
    ) -> (End, Option<Stepper>) {
        let (spec, protocol) = (stepper.environment.spec().clone(), self.protocol);
        if spec.masks && protocol < MASKED {
            let problem = HostError::failed(format!(
                "the environments have masks of legal actions, and the learner speaks protocol {protocol}, which has none: use podracer \
                 of the same version on both sides"
            ));
            return (End::Failed(problem), Some(stepper));
        }
        let (say, said) = mpsc::channel(2);
        let hello = Hello {
            protocol,
            environments: spec.environments as u32,
            spaces: Some(spaces_to_wire(&spec)),
            run: self.run.clone(),
            name: self.name.clone(),
        };
        let _ = say.try_send(FromWorker { message: Some(WorkerMessage::Hello(hello)) });
        let opening = client.work(ReceiverStream::new(said));
        let mut incoming = tokio::select! {
            opened = opening => match opened {
                Ok(opened) => opened.into_inner(),
                Err(status) => return (End::Broken(status), Some(stepper)),
            },
            _ = &mut self.stopped => return (End::Stopped, Some(stepper)),
        };
        let mut stepper = Some(stepper);
        let end = self.talk(&mut incoming, &say, &mut stepper, &spec).await;
        drop(say);
        if matches!(end, End::Stopped) {
            // The learner hears a goodbye, and not a connection that breaks.
            let goodbye = async { while let Ok(Some(_)) = incoming.message().await {} };
            let _ = tokio::time::timeout(Duration::from_millis(500), goodbye).await;
        }
        (end, stepper)
    }

    async fn talk(
        &mut self,
        incoming: &mut Streaming<ToWorker>,
        say: &mpsc::Sender<FromWorker>,
        stepper: &mut Option<Stepper>,
        spec: &HostSpec,
    ) -> End {
        let mut expected = None;
        let mut asked_at = Instant::now();
        loop {
            let message = tokio::select! {
                message = incoming.message() => match message {
                    Ok(Some(message)) => message.message,
                    Ok(None) => return End::Complete,
                    Err(status) => return End::Broken(status),
                },
                _ = &mut self.stopped => return End::Stopped,
            };
            let (next, sequence) = match (message, expected) {
                (Some(LearnerMessage::Welcome(welcome)), None) => {
                    let first_lane = welcome.first_lane as usize;
                    tracing::info!(
                        "{}: lanes {first_lane} to {}",
                        self.name,
                        first_lane + spec.environments - 1
                    );
                    (Next::Begin { seed: welcome.seed, first_lane }, 0)
                }
                (
                    Some(LearnerMessage::Actions(Actions { sequence, actions, version })),
                    Some(asked),
                ) if sequence == asked => {
                    self.status.answered(version, spec.environments, asked_at.elapsed());
                    (Next::Step(actions), sequence + 1)
                }
                (message, _) => {
                    let got = match message {
                        Some(LearnerMessage::Welcome(_)) => "a second `welcome`".to_owned(),
                        Some(LearnerMessage::Actions(actions)) => {
                            format!("actions {}", actions.sequence)
                        }
                        None => "nothing".to_owned(),
                    };
                    let asked =
                        expected.map_or("`welcome`".to_owned(), |asked| format!("actions {asked}"));
                    return End::Broken(Status::internal(format!("expected {asked}, got {got}")));
                }
            };
            let Some(mut at_hand) = stepper.take() else {
                return End::Broken(Status::internal("the environments are gone"));
            };
            let done;
            if at_hand.took < LONG_STEP {
                done = at_hand.advance(&next);
            } else {
                let stepping = spawn_blocking(move || {
                    let done = at_hand.advance(&next);
                    (at_hand, done)
                });
                (at_hand, done) = match stepping.await {
                    Ok(stepped) => stepped,
                    Err(error) => return End::Failed(HostError::failed(error)),
                };
            }
            if let Err(error) = done {
                *stepper = Some(at_hand);
                return End::Failed(error);
            }
            self.status.stepped(at_hand.took);
            let step = at_hand.message(sequence, self.protocol);
            *stepper = Some(at_hand);
            expected = Some(sequence);
            asked_at = Instant::now();
            // A stream that takes nothing has broken: the next message says why.
            let _ = say.send(FromWorker { message: Some(WorkerMessage::Step(step)) }).await;
        }
    }
}
