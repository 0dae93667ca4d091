//! A replay on the host: rollouts on its disk, windows of them on the learner devices.
//!
//! The learner devices draw windows, and the host gathers them. A separate thread writes each
//! iteration's rollout to the disk, and brings the requested windows to the devices while the next
//! iterations learn. It works in the order of the iterations, regardless of the threads' speed: a
//! deterministic schedule stays deterministic.

mod layout;
mod log;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select_biased, unbounded};
use podracer_compiler::TensorType;

use super::error::{ReplayError, ThreadFailure};
use super::supply::{Queues, Supply};
use super::thread_status::{Activity, ThreadStatus};
use super::trajectory::{Batch, Data, Handles, Trajectory};
use crate::checkpoint::FileSource;
use crate::{Array, Checkpoint, CheckpointError, Executable, RuntimeError};
use layout::{Layout, Packed};
use log::RolloutLog;
use windows::{Request, Windows};

/// The sizes of a replay on the host. Windows of each learner device are `[G, L, B, ..]`, and their starts `[G, B, ..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostReplay {
    /// Steps of each lane that windows are drawn from: a multiple of a rollout's.
    pub steps: usize,
    /// Steps of a window, `L`.
    pub length: usize,
    /// Steps between the starts of two windows of a lane.
    pub period: usize,
    /// Most gradient steps of an iteration, `G`.
    pub gradient_steps: usize,
    /// Windows of a gradient step on each device, `B`.
    pub batch: usize,
    /// Iterations from the draw of windows to learning from them.
    pub ahead: usize,
    /// Number of a shard's leaves that are steps; the other leaves belong to the start of a
    /// rollout.
    pub step_leaves: usize,
}

/// Work for the thread.
enum Job {
    /// Write the rollout of these shards of every thread.
    Write(Vec<Vec<Packed>>),
    /// Bring windows to the devices.
    Gather(Request),
    /// Send the written files, with the number of rollouts in a segment.
    Parts(Sender<(u64, Vec<(u64, FileSource)>)>),
}

/// The progress of the learner.
struct Progress {
    /// Iterations that have their data.
    taken: u64,
    /// The requests without delivered data, in order.
    requests: VecDeque<Request>,
}

/// A supply that keeps rollouts on the disk, and gives each iteration windows of them.
pub(crate) struct ReplaySupply {
    windows: Windows,
    queues: Queues<Vec<Packed>>,
    progress: Mutex<Progress>,
    log: Mutex<RolloutLog>,
    jobs: (Sender<Job>, Receiver<Job>),
    ready: (Sender<Data>, Receiver<Data>),
    /// The learner's program, and the index of its first argument that holds windows.
    learn: (Arc<Executable>, usize),
    /// Arrays for iterations without gradient steps.
    blank: Arc<Handles>,
    /// Dropped to end the thread.
    open: Mutex<Option<Sender<Infallible>>>,
    closed: Receiver<Infallible>,
}

/// Rollouts and requests that may wait for the thread.
const ROOM: usize = 4;
/// The prefix of the names of the supply's data in a checkpoint.
const PART: &str = "replay.";
/// The prefix of the names of the log's files in a checkpoint, which are a part of the store.
const SEGMENT: &str = "state.sharded.segment-";

impl HostReplay {
    /// Number of the last rollouts that may contain a window until it has been learnt from.
    fn kept(&self, layout: &Layout) -> u64 {
        (self.steps / layout.unroll + self.ahead - 1) as u64
    }

    /// Checks that the disk of a folder has room for the replay, in addition to its data from a
    /// checkpoint.
    pub(crate) fn check_space(
        &self,
        (shard, threads, learners): (&[TensorType], usize, usize),
        folder: &Path,
        from: Option<&Checkpoint<'_>>,
    ) -> Result<(), ReplayError> {
        let layout = Layout::new(self, shard, threads, learners);
        let needed = log::bytes(layout.rollout_bytes() as u64, self.kept(&layout));
        let there = from.map_or(0, |from| from.files.values().map(FileSource::bytes).sum());
        log::check_space(folder, needed.saturating_sub(there))
    }
}

impl ReplaySupply {
    /// A replay without rollouts in a folder. `shard` holds the types of a shard's leaves; `learn`
    /// is the learner's program with the index of its first window argument.
    pub(crate) fn new(
        replay: HostReplay,
        (shard, threads): (&[TensorType], usize),
        folder: &Path,
        learn: (Arc<Executable>, usize),
        room: usize,
    ) -> Result<Self, RuntimeError> {
        let learners = learn.0.devices().len();
        let layout = Layout::new(&replay, shard, threads, learners);
        let log = RolloutLog::new(folder, layout.rollout_bytes(), replay.kept(&layout));
        let blank = layout.arrays(&replay);
        let blank = (0..learners).map(|learner| uploaded(&learn, learner, &blank));
        let blank = Arc::new(blank.collect::<Result<_, _>>()?);
        let requests = vec![Request::default(); replay.ahead].into();
        let (open, closed) = bounded(0);
        Ok(ReplaySupply {
            windows: Windows { replay, layout },
            queues: Queues::new(threads, room),
            progress: Mutex::new(Progress { taken: 0, requests }),
            log: Mutex::new(log),
            jobs: bounded(ROOM),
            ready: unbounded(),
            learn,
            blank,
            open: Mutex::new(Some(open)),
            closed,
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, RolloutLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the thread a job, as soon as there is room. Returns `Break` once the supply is closed.
    fn ask(&self, job: Job) -> ControlFlow<()> {
        select_biased! {
            recv(self.closed) -> _ => ControlFlow::Break(()),
            send(self.jobs.0, job) -> _ => ControlFlow::Continue(()),
        }
    }

    /// Brings the windows of a request to the devices. `arrays` are the host's arrays for one
    /// device.
    fn gathered(&self, request: &Request, arrays: &mut [Vec<u8>]) -> Result<Data, ThreadFailure> {
        if request.count == 0 {
            return Ok(Data::Lent(Arc::clone(&self.blank)));
        }
        let log = self.log();
        let mut handles = Vec::new();
        for learner in 0..self.windows.layout.learners {
            self.windows.gather(&log, request, learner, arrays)?;
            handles.push(uploaded(&self.learn, learner, arrays)?);
        }
        Ok(Data::Given(handles))
    }
}

/// Uploads the windows of a learner device to it.
fn uploaded(
    (learn, first): &(Arc<Executable>, usize),
    learner: usize,
    arrays: &[Vec<u8>],
) -> Result<Vec<crate::Buffer>, RuntimeError> {
    let leaves = arrays.iter().enumerate();
    leaves.map(|(leaf, bytes)| learn.upload_bytes(learner, first + leaf, bytes)).collect()
}

impl Supply for ReplaySupply {
    fn put(
        &self,
        thread: usize,
        trajectory: Trajectory,
        status: &ThreadStatus,
    ) -> Result<ControlFlow<()>, ThreadFailure> {
        let Trajectory { shards, steps, versions, episodes, reports } = trajectory;
        let packed = shards.iter().map(|leaves| {
            let arrays = leaves.iter().map(|leaf| leaf.to_host());
            let arrays = arrays.collect::<Result<Vec<Array>, RuntimeError>>()?;
            Ok(self.windows.layout.pack(&arrays.iter().map(Array::bytes).collect::<Vec<_>>()))
        });
        let shards = packed.collect::<Result<Vec<Packed>, RuntimeError>>()?;
        let trajectory = Trajectory { shards, steps, versions, episodes, reports };
        Ok(self.queues.put(thread, trajectory, status))
    }

    fn take(&self, status: &ThreadStatus) -> Result<Option<Batch>, ThreadFailure> {
        let Some((mut batch, shards)) = self.queues.take(status) else { return Ok(None) };
        status.begin(Activity::WaitingForWindows, 0);
        if self.ask(Job::Write(shards)).is_break() {
            return Ok(None);
        }
        let ready = select_biased! {
            recv(self.closed) -> _ => return Ok(None),
            recv(self.ready.1) -> ready => ready,
        };
        let Ok(data) = ready else { return Ok(None) };
        let mut progress = self.progress();
        progress.taken += 1;
        progress.requests.pop_front();
        batch.data = data;
        Ok(Some(batch))
    }

    /// The results are, for each learner device: the number of gradient steps, i32 `[1]`, and the windows, i32 `[G, B]`.
    fn feedback(&self, _: &[u64], results: Handles) -> Result<(), ThreadFailure> {
        let mut request = Request { rollouts: self.progress().taken, ..Request::default() };
        for leaves in &results {
            let [count, indices] = &leaves[..] else {
                let problem = format!("`learn` asks for windows in {} leaves", leaves.len());
                return Err(ReplayError::Misfit(problem).into());
            };
            request.count =
                count.to_host()?.to_vec::<i32>()?.first().map_or(0, |&count| count as usize);
            request.indices.extend(indices.to_host()?.to_vec::<i32>()?);
        }
        self.progress().requests.push_back(request.clone());
        // If the supply is closed, the learner notices when it takes.
        let _ = self.ask(Job::Gather(request));
        Ok(())
    }

    fn work(&self, status: &ThreadStatus) -> Result<(), ThreadFailure> {
        let mut arrays = self.windows.layout.arrays(&self.windows.replay);
        let mut gather = |request: &Request| {
            status.begin(Activity::Gathering, request.rollouts);
            let data = self.gathered(request, &mut arrays)?;
            let _ = self.ready.0.send(data);
            Ok::<(), ThreadFailure>(())
        };
        // The windows in the checkpoint that were drawn and not learnt from yet.
        let requests = self.progress().requests.clone();
        requests.iter().try_for_each(&mut gather)?;
        loop {
            status.begin(Activity::Idle, 0);
            let job = select_biased! {
                recv(self.closed) -> _ => return Ok(()),
                recv(self.jobs.1) -> job => job,
            };
            match job {
                Err(_) => return Ok(()),
                Ok(Job::Gather(request)) => gather(&request)?,
                Ok(Job::Write(threads)) => {
                    status.begin(Activity::Storing, self.log().written());
                    self.log().append(&self.windows.layout.rollout(&threads))?;
                }
                Ok(Job::Parts(to)) => {
                    let log = self.log();
                    // The run may have given up waiting.
                    let _ = to.send((log.per_segment(), log.parts()));
                }
            }
        }
    }

    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) -> Result<(), CheckpointError> {
        let (to, parts) = bounded(1);
        let over = || CheckpointError::Array("the run's replay has ended".to_owned());
        if self.ask(Job::Parts(to)).is_break() {
            return Err(over());
        }
        let parts = select_biased! {
            recv(self.closed) -> _ => return Err(over()),
            recv(parts) -> parts => parts,
        };
        let (per_segment, parts) = parts.map_err(|_| over())?;
        for (number, part) in parts {
            checkpoint.files.insert(format!("{SEGMENT}{number}"), part);
        }
        let mut arrays = vec![("rollouts_of_a_segment".to_owned(), Array::scalar(per_segment))];
        for (number, request) in self.progress().requests.iter().enumerate() {
            let Request { rollouts, count, indices } = request;
            let mut add =
                |what: &str, array| arrays.push((format!("drawn[{number}].{what}"), array));
            add("rollouts", Array::scalar(*rollouts));
            add("count", Array::scalar(*count as i32));
            add("indices", Array::from_slice([indices.len()], indices)?);
        }
        checkpoint.insert(PART, arrays);
        Ok(())
    }

    fn restore(&self, checkpoint: &Checkpoint<'_>) -> Result<(), CheckpointError> {
        let array = |name: String| checkpoint.array(&(PART.to_owned() + &name));
        let mut requests = VecDeque::new();
        for number in 0..self.windows.replay.ahead {
            requests.push_back(Request {
                rollouts: array(format!("drawn[{number}].rollouts"))?.item()?,
                count: array(format!("drawn[{number}].count"))?.item::<i32>()?.max(0) as usize,
                indices: array(format!("drawn[{number}].indices"))?.to_vec()?,
            });
        }
        let per_segment: u64 = array("rollouts_of_a_segment".to_owned())?.item()?;
        let number = |name: &str| name.strip_prefix(SEGMENT).and_then(|n| n.parse::<u64>().ok());
        let parts = checkpoint.files.iter();
        let mut parts: Vec<(u64, &FileSource)> =
            parts.filter_map(|(name, file)| Some((number(name)?, file))).collect();
        parts.sort_by_key(|(number, _)| *number);
        let mut log = self.log();
        log.restore((checkpoint.iterations, per_segment.max(1)), &parts)
            .map_err(|error| CheckpointError::Misfit(error.to_string()))?;
        let windows_of_request = self.windows.layout.learners
            * self.windows.replay.gradient_steps
            * self.windows.replay.batch;
        if let Some(wrong) =
            requests.iter().find(|one| ![0, windows_of_request].contains(&one.indices.len()))
        {
            let problem = format!(
                "it has {} drawn windows and must have {windows_of_request}",
                wrong.indices.len()
            );
            return Err(CheckpointError::Misfit(problem));
        }
        *self.progress() = Progress { taken: checkpoint.iterations, requests };
        Ok(())
    }

    /// Ends only the waiting for rollouts: the thread still writes the rollouts of the last
    /// iteration, gathers its windows, and can be saved.
    fn recall(&self) {
        self.queues.close();
    }

    fn close(&self) {
        self.queues.close();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
