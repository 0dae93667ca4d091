//! An inference thread: gathers the steps of its workers into batches, acts in their lanes, and answers.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::Sender;
use podracer_envs::host::{Answer, HostSpec, Workers};

use super::batch::{Entry, Leaves, Waiting, entries, numbers};
use super::capacity::rule;
use super::compile::{DevicePrograms, SizedPrograms};
use super::lanes::Lanes;
use super::measure::Measured;
use super::missing::Missing;
use super::unrolls::{Complete, Fillings};
use super::working::Working;
use crate::learning::Activity;
use crate::learning::error::ThreadFailure;
use crate::learning::parameters::Version;
use crate::learning::shared::Shared;
use crate::outcome;
use crate::reports::{self, read_log};
use crate::{Argument, Array, Buffer};

/// Longest time between two checks if the run is over.
const LOOK: Duration = Duration::from_millis(100);

/// An inference thread.
pub(super) struct Inference {
    pub(super) shared: Arc<Shared>,
    pub(super) programs: Arc<DevicePrograms>,
    pub(super) workers: Box<dyn Workers>,
    /// The thread's number: the index of its device among the inference devices.
    pub(super) index: usize,
    /// The thread's number among the inference threads in all processes.
    pub(super) number: usize,
    /// Number of inference threads.
    pub(super) threads: usize,
    /// The lanes of the thread.
    pub(super) spec: HostSpec,
    pub(super) unroll: usize,
    pub(super) seed: u64,
    /// Number of iterations that were done before the run began.
    pub(super) iterations: u64,
    pub(super) capacity: Option<usize>,
    pub(super) timeout: Option<Duration>,
    pub(super) lag: u64,
    pub(super) keeps_rows: bool,
    /// Number of complete batches of unrolls: of this thread, or over all threads if any thread's
    /// batch fills an iteration.
    pub(super) complete: Arc<AtomicU64>,
    pub(super) to_prefetch: Sender<Complete>,
    pub(super) measured: Arc<Measured>,
}

/// Some lanes of a batch, as arguments on the device.
struct Chunk<'a> {
    programs: &'a SizedPrograms,
    outcome: Vec<Arc<Buffer>>,
    lanes: Buffer,
}

impl Inference {
    /// Infers until the run is over.
    pub(super) fn run(mut self) -> Result<(), ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let mut working = self.begin()?;
        while !shared.is_closed() {
            let Some((batch, by_timeout)) = self.gather(&mut working)? else { continue };
            if self.infer(&mut working, batch, by_timeout)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The thread before its first worker.
    fn begin(&self) -> Result<Working, ThreadFailure> {
        let n = self.spec.environments;
        let status = &self.shared.statuses[self.index];
        status.begin(Activity::Inference, 0);
        let start = &self.programs.start;
        let key = start.upload(0, 0, &Array::key(self.seed))?;
        let first = start.upload(0, 1, &Array::scalar(self.first_lane() as i32))?;
        let continues = start.upload(0, 2, &Array::scalar(false))?;
        let actor = only(start.execute(vec![vec![key.into(), first.into(), continues.into()]])?);
        let mut working = Working {
            lanes: Lanes::new(n, self.iterations > 0),
            actor,
            fillings: Fillings::new(n, self.keeps_rows, self.lag as usize + 2),
            waiting: VecDeque::new(),
            episodes: Vec::new(),
            reports: Vec::new(),
            admitted: 0,
            capacity: self.capacity.unwrap_or(n),
            timeout: self.timeout.unwrap_or(LOOK),
            missing: Missing::new(),
            look_for_missed: Instant::now(),
        };
        if self.capacity.is_none() || self.timeout.is_none() {
            self.pick(&mut working)?;
        }
        Ok(working)
    }

    /// Chooses the capacity and the timeout that are not set, from the time of inferences of
    /// padding. The capacity is the smallest size that costs at most a quarter more per observation
    /// than the cheapest size. The timeout is twice the time of a batch of that capacity.
    fn pick(&self, working: &mut Working) -> Result<(), ThreadFailure> {
        let Some(nets) = self.shared.parameters.latest() else { return Ok(()) };
        let mut times = Vec::new();
        for programs in &self.programs.sized {
            let spec = HostSpec { environments: programs.size, ..self.spec.clone() };
            let zeros: Vec<Vec<u8>> =
                spec.outcome().types().iter().map(|ty| vec![0; ty.bytes()]).collect();
            let mut best = Duration::MAX;
            for _ in 0..3 {
                let began = Instant::now();
                let chunk = self.chunk(programs, &[], |leaf| Cow::from(&zeros[leaf]))?;
                self.act(&nets, working, &chunk)?;
                best = best.min(began.elapsed());
            }
            times.push((programs.size, best));
        }
        working.reports.clear();
        let (capacity, timeout) = rule(&times, self.capacity);
        working.capacity = capacity;
        working.timeout = self.timeout.unwrap_or(timeout);
        tracing::info!(
            "inference thread {}: a batch closes at {} environments, or after {:.1} ms",
            self.index,
            working.capacity,
            working.timeout.as_secs_f64() * 1e3
        );
        Ok(())
    }

    /// Global index of the thread's first lane.
    pub(super) fn first_lane(&self) -> usize {
        self.number * self.spec.environments
    }

    /// Waits until a batch closes, and returns true if the timeout closed it. `None` if no step is
    /// ready: the caller checks if the run is over.
    fn gather(
        &mut self,
        working: &mut Working,
    ) -> Result<Option<(Vec<Waiting>, bool)>, ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.index];
        let look = Instant::now() + LOOK;
        let mut idle = false;
        // A worker is not late if its step came while this thread was acting or waiting for the
        // learner.
        for _ in 0..self.spec.environments {
            let Some(event) = self.workers.next(Instant::now())? else { break };
            self.take_up(working, event)?;
        }
        loop {
            let (ready, since) = working.ready();
            let now = Instant::now();
            self.look_for_late(working, now);
            // If every expected worker has stepped, no further step comes soon.
            let expected_until = working.lanes.expected_until();
            let all = ready > 0 && expected_until.is_none();
            let closes = since.map(|since| since + working.timeout);
            let by_timeout = closes.is_some_and(|closes| closes <= now);
            if ready >= working.capacity || all || by_timeout {
                let full = ready >= working.capacity || all;
                working.missing = Missing::new();
                // One worker too many would be padded to the next size.
                let most = self.programs.fitting(working.capacity).size.max(working.capacity);
                return Ok(Some((working.take_ready(most), !full)));
            }
            if now >= look {
                let waits = !working.waiting.is_empty();
                working.missing.say(self.index, &working.lanes, &working.fillings, waits);
                return Ok(None);
            }
            if !idle {
                let awaited = working.capacity.min(working.lanes.taken().max(1));
                status.begin_if_new(
                    Activity::WaitingForWorkers,
                    awaited.saturating_sub(ready) as u64,
                );
                idle = true;
            }
            let until = [closes, expected_until].into_iter().flatten().fold(look, Instant::min);
            if let Some(event) = self.workers.next(until)? {
                status.begin(Activity::Host, 0);
                idle = false;
                self.take_up(working, event)?;
            }
        }
    }

    /// Acts in the lanes of a batch and answers its workers. `Break` once the run is over.
    fn infer(
        &mut self,
        working: &mut Working,
        batch: Vec<Waiting>,
        by_timeout: bool,
    ) -> Result<ControlFlow<()>, ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.index];
        status.begin(Activity::Host, 0);
        for one in &batch {
            let finished = &mut working.episodes;
            working.lanes.count_episodes(one.lanes.clone(), &one.step, finished);
        }
        let all = entries(&batch);
        let over = |entry: &&Entry| working.lanes.get(entry.lane).time == self.unroll;
        let over: Vec<Entry> = all.iter().filter(over).copied().collect();
        if !over.is_empty() {
            status.begin(Activity::Sending, 0);
            if self.take_out(working, &batch, &over)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let done = self.complete.load(Ordering::Relaxed);
        let done = if self.keeps_rows { done } else { done / self.threads as u64 };
        let wanted = self.iterations + done.saturating_sub(self.lag);
        status.begin(Activity::WaitingForParameters, wanted);
        let Some(nets) = shared.parameters.at_least(wanted) else {
            return Ok(ControlFlow::Break(()));
        };
        let mut actions = Vec::new();
        let mut padded = 0;
        let mut times = Vec::new();
        for entries in all.chunks(self.programs.sized[0].size) {
            status.begin(Activity::Inference, entries.len() as u64);
            let began = Instant::now();
            let programs = self.programs.fitting(entries.len());
            let leaves = Leaves::new(&batch, entries, programs.size);
            let chunk = self.chunk(programs, entries, |leaf| leaves.get(leaf))?;
            let chosen = self.act(&nets, working, &chunk)?;
            let bytes_of_action = chosen.bytes().len() / programs.size;
            actions.extend_from_slice(&chosen.bytes()[..entries.len() * bytes_of_action]);
            padded += programs.size;
            times.push(began.elapsed());
        }
        status.begin(Activity::Host, 0);
        for entry in &all {
            working.lanes.acted(entry.lane, nets.number);
        }
        let bytes_of_action = actions.len() / all.len();
        let mut actions = Bytes::from(actions);
        let answers = batch.iter().map(|one| Answer {
            worker: one.worker,
            sequence: one.sequence,
            actions: actions.split_to(one.lanes.len() * bytes_of_action),
            version: nets.number,
        });
        self.workers.answer(answers.collect());
        let now = Instant::now();
        let mut measured = self.measured.lock();
        let counts = &mut measured.all;
        for one in &batch {
            counts.answer.add(now.saturating_duration_since(one.arrived));
            working.lanes.answered(one.worker, now);
        }
        counts.batches += 1;
        counts.by_timeout += u64::from(by_timeout);
        counts.observations += all.len() as u64;
        counts.padded += padded as u64;
        counts.room += working.capacity.max(all.len()) as u64;
        times.into_iter().for_each(|time| counts.inference.add(time));
        Ok(ControlFlow::Continue(()))
    }

    /// Copies the outcomes and lanes of some entries to the device, for a size. `leaf` returns the
    /// bytes of an outcome's leaf.
    fn chunk<'a, 'b>(
        &'a self,
        programs: &'a SizedPrograms,
        entries: &[Entry],
        leaf: impl Fn(usize) -> Cow<'b, [u8]>,
    ) -> Result<Chunk<'a>, ThreadFailure> {
        let act = &programs.act;
        // After the networks and the actor's state, and before the lanes.
        let first = self.programs.nets + self.programs.start.results().len();
        let last = act.arguments().len() - 1;
        let outcome = outcome::upload(act, first, (last - first, self.spec.truncates), leaf)?;
        let lanes = entries.iter().map(|entry| entry.lane);
        let lanes = numbers(lanes, self.spec.environments, programs.size);
        let lanes = act.upload_bytes(0, last, &lanes)?;
        Ok(Chunk { programs, outcome, lanes })
    }

    /// Acts in the lanes of a chunk: the actions, on the host.
    fn act(
        &self,
        nets: &Version,
        working: &mut Working,
        chunk: &Chunk<'_>,
    ) -> Result<Array, ThreadFailure> {
        let kept = nets.leaves[self.index].iter().map(Argument::Kept);
        let actor = std::mem::take(&mut working.actor);
        let leaves = actor.len();
        let arguments = kept
            .chain(actor.into_iter().map(Argument::Donated))
            .chain(chunk.outcome.iter().map(Arc::as_ref).chain([&chunk.lanes]).map(Argument::Kept));
        let results = chunk.programs.act.execute(vec![arguments.collect()])?;
        let mut results = only(results).into_iter();
        let actions = results.next().expect("`act` gives actions and a state");
        working.actor = results.by_ref().take(leaves).collect();
        let actions = actions.to_host()?;
        let said = read_log(&chunk.programs.log, results.as_slice())?;
        reports::add(&mut working.reports, said, &[]);
        Ok(actions)
    }

    /// Takes the unrolls of lanes that have acted all of their steps, and sends full batches to the
    /// prefetch thread.
    fn take_out(
        &self,
        working: &mut Working,
        batch: &[Waiting],
        over: &[Entry],
    ) -> Result<ControlFlow<()>, ThreadFailure> {
        let mut placed: Vec<(usize, Vec<(Entry, usize)>)> = Vec::new();
        let (mut versions, mut most) = (0, 0);
        for entry in over {
            let of_unroll = working.lanes.taken_out(entry.lane);
            versions += of_unroll.count;
            most = most.max(of_unroll.count);
            let (filling, row) = working.fillings.place(entry.lane, of_unroll);
            match placed.iter_mut().find(|(known, _)| *known == filling) {
                Some((_, rows)) => rows.push((*entry, row)),
                None => placed.push((filling, vec![(*entry, row)])),
            }
        }
        for (filling, rows) in placed {
            for rows in rows.chunks(self.programs.sized[0].size) {
                let programs = self.programs.fitting(rows.len());
                let entries: Vec<Entry> = rows.iter().map(|(entry, _)| *entry).collect();
                let leaves = Leaves::new(batch, &entries, programs.size);
                let chunk = self.chunk(programs, &entries, |leaf| leaves.get(leaf))?;
                let rows = rows.iter().map(|(_, row)| *row);
                let rows = numbers(rows, self.spec.environments, programs.size);
                self.collect(working, filling, &chunk, &rows)?;
            }
        }
        {
            let counts = &mut self.measured.lock().all;
            counts.unrolls += over.len() as u64;
            counts.versions += versions;
            counts.most_versions = counts.most_versions.max(most);
        }
        while let Some(full) = working.fillings.pop_full() {
            self.complete.fetch_add(1, Ordering::Relaxed);
            let complete = Complete {
                thread: self.index,
                buffers: full.buffers,
                steps: self.unroll * self.spec.environments,
                versions: full.versions,
                episodes: std::mem::take(&mut working.episodes),
                reports: std::mem::take(&mut working.reports),
            };
            // Without room, the prefetch thread waits for the learner. It ends with the run, and so
            // does this thread.
            if self.to_prefetch.send(complete).is_err() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Writes the unrolls of a chunk's lanes into the rows of a batch.
    fn collect(
        &self,
        working: &mut Working,
        filling: usize,
        chunk: &Chunk<'_>,
        rows: &[u8],
    ) -> Result<(), ThreadFailure> {
        let take_out = &chunk.programs.take_out;
        let mut unrolls = std::mem::take(&mut working.fillings.get(filling).buffers);
        if unrolls.is_empty() {
            let nothing = self.programs.unrolls.upload(0, 0, &Array::from_slice([1], &[0_u32])?)?;
            unrolls = only(self.programs.unrolls.execute(vec![vec![nothing.into()]])?);
        }
        let rows = take_out.upload_bytes(0, take_out.arguments().len() - 1, rows)?;
        let outcome = chunk.outcome.iter().map(Arc::as_ref);
        let kept = working.actor.iter().chain(outcome).chain([&chunk.lanes]);
        let arguments = unrolls.into_iter().map(Argument::Donated);
        let arguments = arguments.chain(kept.map(Argument::Kept)).chain([rows.into()]);
        let unrolls = only(take_out.execute(vec![arguments.collect()])?);
        working.fillings.get(filling).buffers = unrolls;
        Ok(())
    }
}

/// The results of the only replica.
pub(super) fn only(results: Vec<Vec<Buffer>>) -> Vec<Buffer> {
    results.into_iter().next().unwrap_or_default()
}
