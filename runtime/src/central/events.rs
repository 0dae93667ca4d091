//! The events of an inference thread: the actions of its workers, and late workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use podracer_envs::host::{HostSpec, WorkerEvent, WorkerId};

use super::batch::Waiting;
use super::inference::{Inference, only};
use super::lanes::{Lanes, Stepped};
use super::working::Working;
use crate::learning::error::ThreadFailure;
use crate::{Argument, Array};

/// Time without a step before a worker is reported as missing.
const MISSED: Duration = Duration::from_secs(5);
/// Factor for the numbers of admissions, which spreads their bits over the whole seed.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Inference {
    /// Handles an event of a worker.
    pub(super) fn take_up(
        &mut self,
        working: &mut Working,
        event: WorkerEvent,
    ) -> Result<(), ThreadFailure> {
        match event {
            WorkerEvent::Joined { worker, environments, origin } => {
                self.admit(working, worker, environments, origin)?;
            }
            WorkerEvent::Stepped { worker, sequence, step } => {
                let arrived = Instant::now();
                let checked = working.lanes.stepped(worker, sequence, arrived);
                let checked = checked.and_then(|stepped| {
                    self.note_step(worker, &stepped);
                    let environments = stepped.environments;
                    step.check(&HostSpec { environments, ..self.spec.clone() })
                        .map_err(|problem| format!("its step is wrong: {problem}"))
                });
                match (checked, working.lanes.lanes_of(worker)) {
                    (Ok(()), Some(lanes)) => {
                        let waiting = Waiting { worker, sequence, step, lanes, arrived };
                        working.waiting.push_back(waiting);
                    }
                    (Err(problem), Some(_)) => {
                        self.workers.dismiss(worker, &problem);
                        self.free(working, worker, &problem);
                    }
                    // It was sent away earlier.
                    (_, None) => {}
                }
            }
            WorkerEvent::Left { worker, reason } => self.free(working, worker, &reason),
        }
        self.count_workers(&working.lanes);
        Ok(())
    }

    /// Records the workers that are late by now, and reports each of them once: the other workers
    /// continue without it.
    pub(super) fn look_for_late(&self, working: &mut Working, now: Instant) {
        let late = working.lanes.note_late(now);
        if late > 0 {
            self.measured.lock().all.late += late as u64;
            self.count_workers(&working.lanes);
        }
        if now < working.look_for_missed {
            return;
        }
        for origin in working.lanes.take_given_up() {
            tracing::warn!(
                "inference thread {}: new workers from {origin} are late or leave, again and again: batches do not wait for the next such workers",
                self.index
            );
        }
        working.look_for_missed = now + MISSED / 5;
        for (worker, environments, silence) in working.lanes.newly_missed(now, MISSED) {
            tracing::warn!(
                "worker {} ({environments} environments) has not stepped for {:.0} s: batches do not wait for it",
                worker.0,
                silence.as_secs_f64()
            );
        }
    }

    /// Measures a step, and reports that a missing worker's step has come.
    fn note_step(&self, worker: WorkerId, stepped: &Stepped) {
        if let Some(took) = stepped.took {
            self.measured.lock().all.step.add(took);
        }
        if stepped.missed {
            tracing::info!("worker {} steps again", worker.0);
        }
    }

    fn count_workers(&self, lanes: &Lanes) {
        let there = [lanes.workers(), lanes.taken(), lanes.late()].map(|count| count as u64);
        self.measured.lock().there[self.index] = there;
    }

    /// Gives a worker lanes without memory, or sends it away.
    fn admit(
        &mut self,
        working: &mut Working,
        worker: WorkerId,
        n: usize,
        origin: Option<Arc<str>>,
    ) -> Result<(), ThreadFailure> {
        let Some((lanes, used)) = working.lanes.admit(worker, n, origin, Instant::now()) else {
            let (all, taken) = (self.spec.environments, working.lanes.taken());
            let problem = format!(
                "it has {n} environments, and of the {all} lanes of inference thread {} {taken} are taken: start it with at most {} \
                 environments, or raise central.environments",
                self.index,
                working.lanes.widest_gap()
            );
            tracing::warn!("worker {} is sent away: {problem}", worker.0);
            self.workers.turn_away(worker, &problem);
            return Ok(());
        };
        let mut seed = self.seed;
        if used {
            // Random numbers that differ from the lanes' first worker.
            working.admitted += 1;
            let number = (self.iterations << 32) ^ working.admitted;
            seed ^= number.wrapping_mul(SPREAD);
            self.restart(working, &lanes, seed)?;
        }
        let first = self.first_lane() + lanes.start;
        self.workers.admit(worker, first, seed);
        self.measured.lock().all.joined += 1;
        Ok(())
    }

    /// Resets lanes to the start of a run with this seed.
    fn restart(
        &self,
        working: &mut Working,
        lanes: &std::ops::Range<usize>,
        seed: u64,
    ) -> Result<(), ThreadFailure> {
        let restart = &self.programs.restart;
        let leaves = working.actor.len();
        let mask: Vec<u8> =
            (0..self.spec.environments).map(|lane| u8::from(lanes.contains(&lane))).collect();
        let key = restart.upload(0, leaves, &Array::key(seed))?;
        let first = restart.upload(0, leaves + 1, &Array::scalar(self.first_lane() as i32))?;
        let mask = restart.upload_bytes(0, leaves + 2, &mask)?;
        let actor = std::mem::take(&mut working.actor);
        let arguments = actor.into_iter().map(Argument::Donated);
        let arguments = arguments.chain([key.into(), first.into(), mask.into()]);
        working.actor = only(restart.execute(vec![arguments.collect()])?);
        Ok(())
    }

    /// Frees the lanes of a worker that has left.
    fn free(&self, working: &mut Working, worker: WorkerId, reason: &str) {
        let Some(lost) = working.lanes.free(worker) else { return };
        working.waiting.retain(|waiting| waiting.worker != worker);
        tracing::warn!("worker {} has left: {reason}; unfinished unrolls: {lost}", worker.0);
        let counts = &mut self.measured.lock().all;
        counts.left += 1;
        counts.lost += lost as u64;
    }
}
