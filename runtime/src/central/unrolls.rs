//! The batches of unrolls that are filled on an inference device.

use std::collections::VecDeque;
use std::ops::Range;

use podracer_dsl::Report;

use super::lanes::Versions;
use crate::Buffer;
use crate::learning::Episode;

/// A batch of unrolls that is being filled: a row for each unroll.
pub(super) struct Filling {
    /// The unrolls, on the device; empty before the first.
    pub(super) buffers: Vec<Buffer>,
    rows: Vec<bool>,
    filled: usize,
    /// Sum over its steps of their parameters' versions.
    pub(super) versions: u64,
}

/// A full batch of unrolls, on its way to the learner.
pub(super) struct Complete {
    /// Index of the inference thread.
    pub(super) thread: usize,
    pub(super) buffers: Vec<Buffer>,
    /// Number of steps, over all rows.
    pub(super) steps: usize,
    pub(super) versions: u64,
    pub(super) episodes: Vec<Episode>,
    pub(super) reports: Vec<Report>,
}

/// The batches that are being filled, in the order of learning.
pub(super) struct Fillings {
    open: VecDeque<Filling>,
    rows: usize,
    /// True if a lane's unrolls are always in its row.
    keeps_rows: bool,
    /// Number of batches that may be open.
    most: usize,
}

impl Fillings {
    pub(super) fn new(rows: usize, keeps_rows: bool, most: usize) -> Self {
        Fillings { open: VecDeque::new(), rows, keeps_rows, most }
    }

    /// True if each lane of a worker has a row for its unroll, or may open a batch for it. If rows
    /// are kept, a lane can be ahead of the others only by `most` unrolls. There is one exception:
    /// a worker always has room if the oldest batch waits for one of its lanes. Another of its
    /// lanes may be ahead because it belonged to another worker before; without the exception, both
    /// would wait forever. The exception adds at most one batch for each lane.
    pub(super) fn has_room(&self, mut lanes: Range<usize>) -> bool {
        let lacks = |filling: &Filling, lane: usize| !filling.rows[lane];
        let oldest_waits = |oldest: &Filling| lanes.clone().any(|lane| lacks(oldest, lane));
        !self.keeps_rows
            || self.open.len() < self.most
            || self.open.front().is_some_and(oldest_waits)
            || lanes.all(|lane| self.open.iter().any(|filling| lacks(filling, lane)))
    }

    /// True if the oldest batch waits for an unroll of `lane`.
    pub(super) fn oldest_lacks(&self, lane: usize) -> bool {
        self.keeps_rows && self.open.front().is_some_and(|oldest| !oldest.rows[lane])
    }

    /// The batch (by its position among the open batches) and the row for an unroll of this lane.
    pub(super) fn place(&mut self, lane: usize, versions: Versions) -> (usize, usize) {
        let fits = |filling: &Filling| match self.keeps_rows {
            true => !filling.rows[lane],
            false => filling.filled < self.rows,
        };
        let position = self.open.iter().position(fits).unwrap_or_else(|| {
            let rows = vec![false; self.rows];
            self.open.push_back(Filling { buffers: Vec::new(), rows, filled: 0, versions: 0 });
            self.open.len() - 1
        });
        let filling = &mut self.open[position];
        let row = if self.keeps_rows { lane } else { filling.filled };
        filling.rows[row] = true;
        filling.filled += 1;
        filling.versions += versions.sum;
        (position, row)
    }

    pub(super) fn get(&mut self, position: usize) -> &mut Filling {
        &mut self.open[position]
    }

    /// The oldest batch, if it is full.
    pub(super) fn pop_full(&mut self) -> Option<Filling> {
        self.open.front().filter(|filling| filling.filled == self.rows)?;
        self.open.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(fillings: &mut Fillings, lane: usize) -> (usize, usize) {
        fillings.place(lane, Versions::default())
    }

    #[test]
    fn unrolls_of_any_lanes_fill_rows_in_their_order() {
        let mut fillings = Fillings::new(3, false, 2);
        let placed: Vec<_> =
            [2, 2, 0, 1].into_iter().map(|lane| place(&mut fillings, lane)).collect();
        assert_eq!(placed, [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert!(fillings.pop_full().is_some() && fillings.pop_full().is_none());
    }

    #[test]
    fn rows_that_are_kept_have_one_unroll_of_each_lane() {
        let mut fillings = Fillings::new(3, true, 2);
        let placed: Vec<_> = [2, 2, 0].into_iter().map(|lane| place(&mut fillings, lane)).collect();
        assert_eq!(placed, [(0, 2), (1, 2), (0, 0)]);
        assert!(
            !fillings.has_room(2..3) && fillings.has_room(0..1) && fillings.pop_full().is_none()
        );
        // Lane 2 has no room. It belongs to the worker of lane 1, which the oldest batch waits for.
        assert!(fillings.has_room(1..3));
        assert_eq!(place(&mut fillings, 1), (0, 1));
        assert_eq!(place(&mut fillings, 2), (2, 2));
        assert!(fillings.pop_full().is_some() && !fillings.has_room(2..3));
    }
}
