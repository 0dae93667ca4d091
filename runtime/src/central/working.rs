//! The state of an inference thread: its lanes, their unrolls, and the steps that wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use podracer_dsl::Report;

use super::batch::{Waiting, oldest};
use super::lanes::Lanes;
use super::missing::Missing;
use super::unrolls::Fillings;
use crate::Buffer;
use crate::learning::Episode;

/// The state of an inference thread.
pub(super) struct Working {
    pub(super) lanes: Lanes,
    /// The agent's memory of each lane, on the device.
    pub(super) actor: Vec<Buffer>,
    pub(super) fillings: Fillings,
    /// Steps that wait for their answers, the oldest first.
    pub(super) waiting: VecDeque<Waiting>,
    /// Episodes that ended since the last full batch of unrolls.
    pub(super) episodes: Vec<Episode>,
    /// Prints and failed checks of the agent since the last full batch.
    pub(super) reports: Vec<Report>,
    /// Number of workers that were admitted.
    pub(super) admitted: u64,
    pub(super) capacity: usize,
    pub(super) timeout: Duration,
    pub(super) missing: Missing,
    /// The time of the next check for missing workers.
    pub(super) look_for_missed: Instant,
}

impl Working {
    /// Number of environments with steps that can be taken up, and the arrival time of the first.
    pub(super) fn ready(&self) -> (usize, Option<Instant>) {
        let ready = || self.waiting.iter().filter(|one| self.has_room(one));
        (ready().map(|one| one.lanes.len()).sum(), ready().map(|one| one.arrived).min())
    }

    /// False for a step that ends unrolls without room.
    pub(super) fn has_room(&self, waiting: &Waiting) -> bool {
        self.fillings.has_room(waiting.lanes.clone())
    }

    /// Takes the steps that can be taken up: the oldest, with at most `most` environments or from
    /// one worker.
    pub(super) fn take_ready(&mut self, most: usize) -> Vec<Waiting> {
        let waiting = std::mem::take(&mut self.waiting);
        let (batch, rest) = oldest(waiting, most, |one| self.has_room(one));
        self.waiting = rest;
        batch
    }
}
