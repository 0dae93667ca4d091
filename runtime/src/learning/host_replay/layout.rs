//! The layout of steps, lanes and starts: in the bytes of a rollout on the disk, and in the arrays
//! of windows.

use podracer_compiler::TensorType;

use super::HostReplay;

/// The layout of a rollout's bytes: first the steps of every lane, lane by lane and in the order of
/// time, then the data of the start of each lane. Lanes are ordered by learner device, then by
/// actor thread. A step's leaves are adjacent, so that a window is read in one piece from each
/// rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) learners: usize,
    /// Lanes of one actor thread on one learner device.
    lanes_of_thread: usize,
    /// Number of lanes over all learner devices.
    pub(super) lanes: usize,
    /// Steps of a rollout.
    pub(super) unroll: usize,
    /// Bytes of each leaf of one lane's step.
    step: Vec<usize>,
    /// Bytes of each leaf of one lane's start.
    start: Vec<usize>,
}

/// A thread's part of a rollout for one learner device, in the layout's order.
pub(super) struct Packed {
    steps: Vec<u8>,
    starts: Vec<u8>,
}

impl Layout {
    /// The layout of rollouts from `threads` threads. Their shards for each learner device have
    /// leaves with these types: steps `[T, N, ..]`, and starts `[N, ..]` after the first
    /// `replay.step_leaves`.
    pub(super) fn new(
        replay: &HostReplay,
        shard: &[TensorType],
        threads: usize,
        learners: usize,
    ) -> Self {
        let (steps, starts) = shard.split_at(replay.step_leaves);
        let shape = steps.first().map_or(&[][..], |leaf| &leaf.shape[..]);
        // Steps without leaves are an error of the trace.
        let &[unroll, lanes, ..] = shape else { unreachable!("steps are [T, N, ..]") };
        Layout {
            learners,
            lanes_of_thread: lanes,
            lanes: lanes * threads * learners,
            unroll,
            step: steps.iter().map(|leaf| leaf.bytes() / (unroll * lanes)).collect(),
            start: starts.iter().map(|leaf| leaf.bytes() / lanes).collect(),
        }
    }

    /// Bytes of one lane's step.
    pub(super) fn step_bytes(&self) -> usize {
        self.step.iter().sum()
    }

    /// Bytes of one lane's start.
    fn start_bytes(&self) -> usize {
        self.start.iter().sum()
    }

    /// Bytes of a rollout.
    pub(super) fn rollout_bytes(&self) -> usize {
        self.lanes * (self.unroll * self.step_bytes() + self.start_bytes())
    }

    /// The first byte of a lane's step in a rollout.
    fn step_at(&self, lane: usize, step: usize) -> usize {
        (lane * self.unroll + step) * self.step_bytes()
    }

    /// The first byte of a lane's start.
    fn start_at(&self, lane: usize) -> usize {
        self.lanes * self.unroll * self.step_bytes() + lane * self.start_bytes()
    }

    /// A shard in the layout of a rollout. `leaves` are the bytes of its leaves.
    pub(super) fn pack(&self, leaves: &[&[u8]]) -> Packed {
        let (lanes, record) = (self.lanes_of_thread, self.step_bytes());
        let (steps, starts) = leaves.split_at(self.step.len());
        let mut packed = Packed {
            steps: vec![0; lanes * self.unroll * record],
            starts: vec![0; lanes * self.start_bytes()],
        };
        let mut first = 0;
        for (bytes, &size) in steps.iter().zip(&self.step) {
            for (row, value) in bytes.chunks_exact(size.max(1)).enumerate() {
                let (step, lane) = (row / lanes, row % lanes);
                let offset = (lane * self.unroll + step) * record + first;
                packed.steps[offset..offset + size].copy_from_slice(value);
            }
            first += size;
        }
        let mut first = 0;
        for (bytes, &size) in starts.iter().zip(&self.start) {
            for (lane, value) in bytes.chunks_exact(size.max(1)).enumerate() {
                let offset = lane * self.start_bytes() + first;
                packed.starts[offset..offset + size].copy_from_slice(value);
            }
            first += size;
        }
        packed
    }

    /// The bytes of a rollout, from the parts of each thread for each learner device.
    pub(super) fn rollout(&self, threads: &[Vec<Packed>]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.rollout_bytes());
        for learner in 0..self.learners {
            threads.iter().for_each(|parts| bytes.extend_from_slice(&parts[learner].steps));
        }
        for learner in 0..self.learners {
            threads.iter().for_each(|parts| bytes.extend_from_slice(&parts[learner].starts));
        }
        bytes
    }

    /// The pieces of a window with `length` steps that begins with a lane's step at `time`, counted
    /// from the start of the run. For each rollout with a part of the window, there is the
    /// rollout's number, the first byte, and the number of steps.
    pub(super) fn pieces(
        &self,
        lane: usize,
        time: u64,
        length: usize,
    ) -> impl Iterator<Item = (u64, usize, usize)> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            let now = time + done as u64;
            let step = (now % self.unroll as u64) as usize;
            let steps = (self.unroll - step).min(length - done);
            done += steps;
            let piece = (now / self.unroll as u64, self.step_at(lane, step), steps);
            (steps > 0).then_some(piece)
        })
    }

    /// The rollout that contains the start of a window from `time`, the start's first byte in it,
    /// and the number of bytes.
    pub(super) fn start_piece(&self, lane: usize, time: u64) -> (u64, usize, usize) {
        (time / self.unroll as u64, self.start_at(lane), self.start_bytes())
    }

    /// Copies steps of a window into the arrays of windows `[G, L, B, ..]`. `place` counts windows of the first step's row.
    pub(super) fn place_steps(
        &self,
        steps: &[u8],
        place: usize,
        batch: usize,
        into: &mut [Vec<u8>],
    ) {
        let record = self.step_bytes();
        for (row, step) in steps.chunks_exact(record.max(1)).enumerate() {
            split(step, &self.step, place + row * batch, into);
        }
    }

    /// Copies the start of a window into the arrays `[G, B, ..]`, which come after the arrays of
    /// the steps.
    pub(super) fn place_start(&self, start: &[u8], place: usize, into: &mut [Vec<u8>]) {
        split(start, &self.start, place, &mut into[self.step.len()..]);
    }

    /// Arrays of zeros for windows of each learner device: the bytes of every leaf.
    pub(super) fn arrays(&self, replay: &HostReplay) -> Vec<Vec<u8>> {
        let starts = replay.gradient_steps * replay.batch;
        let steps = self.step.iter().map(|size| vec![0; size * starts * replay.length]);
        steps.chain(self.start.iter().map(|size| vec![0; size * starts])).collect()
    }
}

/// Copies the leaves of a record to their arrays, as element number `element` of each.
fn split(record: &[u8], sizes: &[usize], element: usize, into: &mut [Vec<u8>]) {
    let mut rest = record;
    for (&size, array) in sizes.iter().zip(into) {
        let (value, after) = rest.split_at(size);
        array[element * size..(element + 1) * size].copy_from_slice(value);
        rest = after;
    }
}
