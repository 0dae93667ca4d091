//! Steps of workers that wait for their answers, and the program arguments for some of their lanes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use podracer_envs::host::{WorkerId, WorkerStep};

/// A step that waits for its answer.
pub(super) struct Waiting {
    pub(super) worker: WorkerId,
    pub(super) sequence: u64,
    pub(super) step: WorkerStep,
    /// The worker's lanes, one for each of its environments.
    pub(super) lanes: Range<usize>,
    pub(super) arrived: Instant,
}

/// One environment of a waiting step.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Index of the waiting step.
    waiting: usize,
    /// Index of the environment in its worker.
    environment: usize,
    pub(super) lane: usize,
}

/// Divides the steps that can be `taken` up: the oldest steps with at most `most` environments
/// together, or the first step alone, and the remaining steps, in order.
pub(super) fn oldest(
    waiting: VecDeque<Waiting>,
    most: usize,
    taken: impl Fn(&Waiting) -> bool,
) -> (Vec<Waiting>, VecDeque<Waiting>) {
    let (mut batch, mut rest, mut size) = (Vec::new(), VecDeque::new(), 0);
    for one in waiting {
        let fits = batch.is_empty() || size + one.lanes.len() <= most;
        if fits && taken(&one) {
            size += one.lanes.len();
            batch.push(one);
        } else {
            rest.push_back(one);
        }
    }
    (batch, rest)
}

/// All environments of some steps.
pub(super) fn entries(batch: &[Waiting]) -> Vec<Entry> {
    let entries_of = |(waiting, one): (usize, &Waiting)| {
        let lanes = one.lanes.clone().enumerate();
        lanes.map(move |(environment, lane)| Entry { waiting, environment, lane })
    };
    batch.iter().enumerate().flat_map(entries_of).collect()
}

/// The outcomes of some entries, followed by padding to `size` that repeats the first.
pub(super) struct Leaves<'a> {
    batch: &'a [Waiting],
    entries: &'a [Entry],
    size: usize,
    /// The leaves of each waiting step.
    all: Vec<Vec<&'a [u8]>>,
    /// The step with exactly these environments, in order: its leaves are not copied.
    whole: Option<usize>,
}

impl<'a> Leaves<'a> {
    pub(super) fn new(batch: &'a [Waiting], entries: &'a [Entry], size: usize) -> Self {
        let whole = match entries {
            [first, ..] if entries.len() == size && batch[first.waiting].lanes.len() == size => {
                let same = |entry: &Entry| entry.waiting == first.waiting;
                entries.iter().all(same).then_some(first.waiting)
            }
            _ => None,
        };
        let all = batch.iter().map(|one| one.step.leaves().collect()).collect();
        Leaves { batch, entries, size, all, whole }
    }

    /// The bytes of a leaf.
    pub(super) fn get(&self, leaf: usize) -> Cow<'a, [u8]> {
        if let Some(waiting) = self.whole {
            return self.all[waiting][leaf].into();
        }
        let padding = self.entries.iter().take(1).cycle().take(self.size - self.entries.len());
        let slice = |entry: &Entry| {
            let bytes = self.all[entry.waiting][leaf];
            let extent = bytes.len() / self.batch[entry.waiting].lanes.len();
            &bytes[entry.environment * extent..(entry.environment + 1) * extent]
        };
        let slices: Vec<&[u8]> = self.entries.iter().chain(padding).map(slice).collect();
        slices.concat().into()
    }
}

/// Little-endian i32s, followed by padding to `size`.
pub(super) fn numbers(
    numbers: impl Iterator<Item = usize>,
    padding: usize,
    size: usize,
) -> Vec<u8> {
    let padded = numbers.chain(std::iter::repeat(padding)).take(size);
    padded.flat_map(|number| (number as i32).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(worker: u64, lanes: Range<usize>) -> Waiting {
        let n = lanes.len();
        let observation: Vec<u8> = lanes.clone().flat_map(|lane| [lane as u8; 2]).collect();
        let step = WorkerStep {
            observation: observation.into(),
            reward: vec![worker as u8; 4 * n].into(),
            terminated: vec![0; n].into(),
            truncated: vec![1; n].into(),
            ..WorkerStep::default()
        };
        let arrived = Instant::now();
        Waiting { worker: WorkerId(worker), sequence: 0, step, lanes, arrived }
    }

    #[test]
    fn environments_of_several_workers_are_one_batch() {
        let batch = [waiting(1, 4..6), waiting(2, 0..3)];
        let all = entries(&batch);
        let lanes: Vec<usize> = all.iter().map(|entry| entry.lane).collect();
        assert_eq!(lanes, [4, 5, 0, 1, 2]);
        let leaves = Leaves::new(&batch, &all[1..4], 5);
        assert_eq!(leaves.get(0)[..], [5, 5, 0, 0, 1, 1, 5, 5, 5, 5]);
        assert_eq!(leaves.get(1)[..8], [1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(numbers([3, 1].into_iter(), 7, 3), [3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    }

    /// A batch of 612 lanes with a capacity equal to the compiled size 610 must not be padded to
    /// 2,440.
    #[test]
    fn a_batch_is_not_larger_than_its_program() {
        let steps = || (0..5).map(|i| waiting(i as u64, 4 * i..4 * i + 4)).collect::<VecDeque<_>>();
        let numbers = |steps: &[Waiting]| steps.iter().map(|one| one.worker.0).collect::<Vec<_>>();
        let taken = |most: usize| {
            let (batch, rest) = oldest(steps(), most, |one| one.worker != WorkerId(1));
            (numbers(&batch), numbers(&Vec::from(rest)))
        };
        assert_eq!(taken(10), (vec![0, 2], vec![1, 3, 4]));
        assert_eq!(taken(12), (vec![0, 2, 3], vec![1, 4]));
        assert_eq!(taken(3), (vec![0], vec![1, 2, 3, 4]), "one worker is never split");
        assert_eq!(taken(100), (vec![0, 2, 3, 4], vec![1]));
    }

    #[test]
    fn a_step_of_one_worker_is_not_copied() {
        let batch = [waiting(1, 4..6), waiting(2, 0..3)];
        let all = entries(&batch);
        let whole = Leaves::new(&batch, &all[2..], 3);
        assert!((0..4).all(|leaf| matches!(whole.get(leaf), Cow::Borrowed(_))));
        assert_eq!(whole.get(0)[..], [0, 0, 1, 1, 2, 2]);
        assert!(matches!(Leaves::new(&batch, &all[2..4], 3).get(0), Cow::Owned(_)));
    }
}
