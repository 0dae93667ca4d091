//! The store: a ring of the steps of every lane, and windows drawn from it.

use super::SumTree;
use super::ring::Ring;
use crate::learn::{Axes, RolloutShape};
use crate::number::Number;
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, fail, report_at};

/// Greatest number of steps of a device: indices of steps are i32, and so are their sums.
const MOST: usize = 1 << 30;

/// Greatest number of windows in a batch: f32 can represent the bounds of this many parts of an
/// interval.
const MOST_DRAWS: usize = 1 << 24;

/// A ring of the last steps of a device's lanes. Windows of steps are drawn from it uniformly (Lin
/// 1992, "Self-improving reactive agents based on reinforcement learning, planning and teaching")
/// or by priority.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Least number of steps that are kept, over all lanes of one device. It is rounded up to whole
    /// rollouts and to whole periods.
    pub capacity: usize,
    /// Number of steps of a window.
    pub length: usize,
    /// Steps between the starts of two windows of a lane; with 1, a window may begin at every step.
    /// It divides the steps of a rollout, or is a multiple of them.
    pub period: usize,
    /// Settings of draws by priority; `None` draws uniformly.
    pub priorities: Option<Priorities>,
}

/// Settings of draws by priority: Schaul et al. 2016, "Prioritized experience replay".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priorities {
    /// The exponent `alpha` of the priorities; draws are in proportion to the result, and 0 draws
    /// uniformly.
    pub exponent: Number,
}

/// A [`Replay`]'s data on one device, in rings of `C` steps of `N` lanes.
#[derive(Tree, Clone)]
pub struct Stored<I: Tree, S: Tree = ()> {
    /// Steps. `[C, N, ..]`
    pub steps: I,
    /// Data of the starts of windows, such as the memory of a recurrent network. `[C / period, N, ..]`
    pub starts: S,
    /// The position of the next step. i32 `[1]`
    pub position: Tensor,
    /// Number of steps kept of each lane. i32 `[1]`, at most `C`
    pub size: Tensor,
    /// The priorities of windows; `None` if windows are drawn uniformly.
    pub priorities: Option<StoredPriorities>,
}

/// Priorities of a device's windows.
#[derive(Tree, Clone)]
pub struct StoredPriorities {
    /// Priorities raised to their exponent, by start and lane: `C / period * N` leaves. 0 if no
    /// window begins at a leaf.
    pub tree: SumTree,
    /// The greatest priority so far, raised to the exponent, which new windows get; 1 at first. f32
    /// `[1]`
    pub greatest: Tensor,
}

/// Windows drawn from a [`Replay`]. `B` is the number of windows for this device.
#[derive(Tree, Clone)]
pub struct Sample<I: Tree, S: Tree = ()> {
    /// Steps of the windows. `[L, B, ..]`
    pub steps: I,
    /// Data that was kept for the starts of the windows. `[B, ..]`
    pub starts: S,
    /// Indices of the windows, over all devices, for [`Replay::set_priorities`]. Each device owns a
    /// contiguous range. i32 `[B]`
    pub indices: Tensor,
    /// Number of steps of the lane since each window began, including the window's. i32 `[B]`
    pub ages: Tensor,
    /// The probability of drawing each window. f32 `[B]`
    pub probabilities: Tensor,
    /// The number of windows that can be drawn, over all devices. f32 `[]`
    pub windows: Tensor,
}

impl<I: Tree, S: Tree> Sample<I, S> {
    /// Importance weights `(windows * probability)^-exponent`, divided by the greatest of the batch
    /// (section 3.4 of Schaul et al.): 1 fully corrects for the priorities in expectation, 0 does
    /// not correct. f32 `[B]`
    #[track_caller]
    pub fn importance_weights(&self, exponent: impl Into<Number>, axes: &Axes) -> Tensor {
        // In an empty store the probability is 0, and its power would be infinite.
        let ratios = (self.windows * self.probabilities).maximum(f64::from(f32::MIN_POSITIVE));
        let weights = pow(ratios, -exponent.into());
        weights / axes.max(weights.max())
    }
}

impl Replay {
    /// An empty store for one device with rollouts of this shape. `step` has the types of one step
    /// of one lane, and `start` the types of the data that is kept with the start of a window.
    ///
    /// Errors: a capacity below one window, and a period that neither divides the steps of a rollout nor is a multiple.
    #[track_caller]
    pub fn init<I: Tree, S: Tree>(
        &self,
        step: &Spec<I>,
        start: &Spec<S>,
        shape: RolloutShape,
    ) -> Stored<I, S> {
        let RolloutShape { lanes, unroll } = shape;
        let period = self.period.max(1);
        let unit = unroll.max(period);
        let steps = self.ring_steps(shape);
        let bytes = step.types().iter().map(|ty| ty.bytes() as f64).sum();
        let leaves = [step.types().len(), start.types().len()];
        let mistakes = self.mistakes(steps, leaves, bytes, shape);
        // After a mistake, a substitute for the rest of the trace.
        let steps = steps.filter(|_| mistakes.is_empty()).unwrap_or(unit.min(MOST));
        for mistake in mistakes {
            report_at(Loc::caller(), "Replay::init", mistake, &[]);
        }
        let rows = (steps / period).max(1);
        Stored {
            steps: step.stacked(lanes).stacked(steps).zeros(),
            starts: start.stacked(lanes).stacked(rows).zeros(),
            position: zeros(I32, [1]),
            size: zeros(I32, [1]),
            priorities: self.priorities.map(|_| StoredPriorities {
                tree: SumTree::zeros(rows * lanes),
                greatest: ones(F32, [1]),
            }),
        }
    }

    /// Number of steps per lane that a store of this shape has room for: the capacity, in whole
    /// rollouts and periods. `None` if there are too many to count.
    #[must_use]
    pub fn ring_steps(&self, shape: RolloutShape) -> Option<usize> {
        let unit = shape.unroll.max(self.period).max(1);
        self.capacity.div_ceil(shape.lanes.max(1)).max(1).checked_next_multiple_of(unit)
    }

    /// Mistakes in these settings, for rings of `steps` steps (`None` if there are too many to
    /// count). `leaves` is the number of leaves of steps and starts, and `bytes` the size of a
    /// step.
    fn mistakes(
        &self,
        steps: Option<usize>,
        [leaves, leaves_of_start]: [usize; 2],
        bytes: f64,
        shape: RolloutShape,
    ) -> Vec<String> {
        let RolloutShape { lanes, unroll } = shape;
        let Replay { capacity, length, period, priorities } = *self;
        let mut mistakes = Vec::new();
        if lanes == 0 || unroll == 0 {
            mistakes.push(format!(
                "rollouts of {unroll} steps of {lanes} lanes: expected 1 or more of both"
            ));
        }
        if leaves == 0 {
            mistakes.push(
                "the steps to keep have no leaves: expected a tree with a tensor of each step, such as its observation"
                    .to_owned(),
            );
        }
        if length == 0 || period == 0 {
            mistakes.push(format!(
                "windows of {length} steps, one every {period} steps: expected 1 or more of both"
            ));
        } else if unroll > 0 && unroll % period != 0 && period % unroll != 0 {
            mistakes.push(format!(
                "a window begins every {period} steps and a rollout has {unroll}: one must be a multiple of the other"
            ));
        }
        if leaves_of_start > 0 && unroll > 0 && period % unroll != 0 {
            mistakes.push(format!(
                "what is kept with the start of a window is known at the start of a rollout: expected a period that is a multiple of the rollout's {unroll} steps, got {period}"
            ));
        }
        match steps.filter(|steps| steps.saturating_mul(lanes) <= MOST) {
            None => mistakes.push(format!(
                "a capacity of {capacity} steps, in whole rollouts and periods of each of {lanes} lanes, is more than 2^30 steps: lower it; its steps take {:.2} GiB",
                capacity as f64 * bytes / f64::from(1 << 30)
            )),
            Some(steps) if length > steps => mistakes.push(format!(
                "a window has {length} steps, and a capacity of {capacity} is {steps} steps of each of {lanes} lanes: raise the capacity to {} or more",
                length.saturating_mul(lanes)
            )),
            Some(_) => {}
        }
        if let Some(exponent) = priorities.and_then(|settings| settings.exponent.constant())
            && !(exponent >= 0.0 && exponent.is_finite())
        {
            mistakes.push(format!(
                "draws in proportion to priorities to the power of {exponent}: expected 0 or more"
            ));
        }
        mistakes
    }

    /// Adds the steps of a rollout, `[T, N, ..]`, in place of the oldest steps; `starts` has the
    /// data of its first steps, `[N, ..]`. New windows get the greatest priority so far, so that
    /// each is drawn soon.
    ///
    /// Errors: a rollout with a shape other than in [`Replay::init`].
    #[must_use]
    #[track_caller]
    pub fn add<I: Tree, S: Tree>(&self, state: Stored<I, S>, steps: I, starts: S) -> Stored<I, S> {
        let ring = Ring::of(self, &state);
        // `init` reports steps without leaves.
        let Some(&added) = steps.leaves().first() else { return state };
        let (unroll, lanes) = (added.dim(0), added.dim(1));
        if lanes != ring.lanes || unroll == 0 || !ring.steps.is_multiple_of(unroll) {
            let message = format!(
                "{unroll} steps of {lanes} lanes are added to rings of {} steps of {} lanes: expected rollouts of the shape that `init` was given",
                ring.steps, ring.lanes
            );
            let _ = fail("Replay::add", message, &[added], added.ty());
            return state;
        }
        let Stored { position, size, priorities, .. } = state;
        let first = position.index(0);
        let row = first / ring.period as i32;
        let begins = first.rem(ring.period as i32).eq(0);
        let kept = state.steps.zip_with(&steps, |all, new| write(all, new, first));
        let kept_starts = state.starts.zip_with(&starts, |all, new| {
            let new = new.expand_dims(0);
            write(all, select(begins, new, all.take(row.reshape([1]), 0)), row)
        });
        let size = (size + unroll as i32).minimum(ring.steps as i32);
        let next = Ring {
            position: (first + unroll as i32).rem(ring.steps as i32),
            size: size.index(0),
            ..ring
        };
        Stored {
            steps: kept,
            starts: kept_starts,
            position: next.position.reshape([1]),
            size,
            priorities: priorities.map(|old| next.refreshed(old, first, unroll)),
        }
    }

    /// The number of steps that this device keeps, over all its lanes. i32 `[]`
    #[track_caller]
    pub fn steps<I: Tree, S: Tree>(&self, state: &Stored<I, S>) -> Tensor {
        let ring = Ring::of(self, state);
        ring.size * ring.lanes as i32
    }

    /// The number of windows that this device could draw. i32 `[]`
    #[track_caller]
    pub fn windows<I: Tree, S: Tree>(&self, state: &Stored<I, S>) -> Tensor {
        let ring = Ring::of(self, state);
        ring.rows() * ring.lanes as i32
    }

    /// Draws `batch` windows over all devices, with replacement, and returns this device's part.
    /// `key` is the same on all devices. By priority, the batch is drawn from `batch` parts with
    /// equal probability (section 3.3 of Schaul et al.). An empty store gives zeros.
    ///
    /// Errors: a batch that does not divide over the devices, or has more than 2^24 windows; 2^31
    /// steps or more on all devices.
    #[track_caller]
    pub fn sample<I: Tree, S: Tree>(
        &self,
        state: &Stored<I, S>,
        batch: usize,
        key: Key,
        axes: &Axes,
    ) -> Sample<I, S> {
        let members = axes.members();
        if batch == 0 || !batch.is_multiple_of(members) {
            let message =
                format!("a batch of {batch} windows is not shared evenly by {members} devices");
            report_at(Loc::caller(), "Replay::sample", message, &[]);
        } else if batch > MOST_DRAWS {
            let message =
                format!("a batch of {batch} windows is more than 2^24: draw it in several parts");
            report_at(Loc::caller(), "Replay::sample", message, &[]);
        }
        let part = (batch.min(MOST_DRAWS) / members).max(1);
        let ring = Ring::of(self, state);
        let kept = ring.steps * ring.lanes;
        if kept.saturating_mul(members) > i32::MAX as usize {
            let message = format!(
                "{kept} steps on each of {members} devices are 2^31 or more: lower the capacity"
            );
            report_at(Loc::caller(), "Replay::sample", message, &[]);
        }
        let windows = (ring.rows() * ring.lanes as i32).astype(F32) * members as f64;
        let Some(StoredPriorities { tree, .. }) = &state.priorities else {
            let draw = key.fold_in(axes.index());
            let drawn = draw.randint_between([part], scalar(0), self.windows(state).maximum(1));
            let indices = ring.index(drawn);
            let probabilities = (1.0 / windows.maximum(1.0)).broadcast_to([part]);
            let (steps, starts) = ring.windows(state, indices);
            let ages = ring.ages(ring.first(indices));
            let indices = indices + axes.index() * ring.leaves() as i32;
            return Sample { steps, starts, indices, ages, probabilities, windows };
        };
        let all = part * members;
        let strata = (arange(all).astype(F32) + key.uniform([all])) / all as f64;
        let here = axes.index();
        let totals = axes.sum(one_hot(here, members) * tree.total());
        let sums = strata * totals.sum();
        let (owner, rest) = owners(totals, sums);
        let mine = owner.eq(here);
        let indices = select(mine, tree.find(rest), 0);
        let (steps, starts) = ring.windows(state, indices);
        let ages = ring.ages(ring.first(indices));
        let probabilities = tree.get(indices) / totals.sum().maximum(f64::from(f32::MIN_POSITIVE));
        let indices = indices + here * ring.leaves() as i32;
        let share = |leaf: Tensor, axis: usize| share(leaf, axis, mine, part, axes);
        Sample {
            steps: tree_map(&steps, |leaf| share(leaf, 1)),
            starts: tree_map(&starts, |leaf| share(leaf, 0)),
            indices: share(indices, 0),
            ages: share(ages, 0),
            probabilities: share(probabilities, 0),
            windows,
        }
    }

    /// The mean, over every window on every device, of the priorities raised to their exponent. f32
    /// `[]`; 1 if windows are drawn uniformly.
    #[track_caller]
    pub fn mean_priority<I: Tree, S: Tree>(&self, state: &Stored<I, S>, axes: &Axes) -> Tensor {
        let Some(StoredPriorities { tree, .. }) = &state.priorities else {
            return scalar(1.0);
        };
        let windows = self.windows(state).astype(F32);
        axes.sum(tree.total()) / axes.sum(windows).maximum(1.0)
    }

    /// Sets the priorities of windows that were drawn: `indices` i32 `[B]` from [`Sample`],
    /// `priorities` f32 `[B]`, not negative. Call it before the next [`Replay::add`] overwrites
    /// some of the windows. Windows with priority 0 are drawn only if all windows have priority 0.
    /// A replay without priorities stays as it is.
    ///
    /// A negative priority fails a [`check`]. A priority that is NaN or infinite comes from an
    /// agent that diverges, which its metrics show. In both cases the window keeps its previous
    /// priority.
    ///
    /// Errors: a number of priorities other than the number of indices.
    #[must_use]
    #[track_caller]
    pub fn set_priorities<I: Tree, S: Tree>(
        &self,
        state: Stored<I, S>,
        indices: Tensor,
        priorities: Tensor,
        axes: &Axes,
    ) -> Stored<I, S> {
        let ring = Ring::of(self, &state);
        let (Some(old), Some(settings)) = (state.priorities, self.priorities) else {
            return Stored { priorities: None, ..state };
        };
        if indices.rank() != 1 || priorities.shape() != indices.shape() {
            let message = format!(
                "expected a priority for each index, i32 `[B]` and f32 `[B]`, got {} and {}",
                indices.ty(),
                priorities.ty()
            );
            let about = [indices, priorities];
            report_at(Loc::caller(), "Replay::set_priorities", message, &about);
            return Stored { priorities: Some(old), ..state };
        }
        let good = priorities.ge(0.0) & priorities.is_finite();
        check(!priorities.lt(0.0), "expected priorities of 0 or more, got {}", priorities);
        // Their sum over all devices is finite, and it is 0 only if there are no windows.
        let most = f64::from(f32::MAX) / (2 * ring.leaves() * axes.members()) as f64;
        let values = pow(select(good, priorities, 0.0), settings.exponent);
        let values = values.minimum(most).maximum(f64::from(f32::MIN_POSITIVE));
        let values = select(good, values, -1.0);
        let (indices, values) = (axes.gather(indices), axes.gather(values));
        let local = indices - axes.index() * ring.leaves() as i32;
        let before = old.tree.get(local);
        let greatest = old.greatest.maximum(values.max());
        // An empty store draws positions where no window begins; these have no priority.
        let changes = before.gt(0.0) & values.gt(0.0);
        let values = select(changes, values, before);
        let priorities = Some(StoredPriorities { tree: old.tree.set(local, values), greatest });
        Stored { priorities, ..state }
    }
}

/// Replaces rows from `first` on, i32 `[]`.
#[track_caller]
fn write(all: Tensor, rows: Tensor, first: Tensor) -> Tensor {
    let mut starts = vec![scalar(0); all.rank()];
    starts[0] = first;
    dynamic_update_slice(all, rows, &starts)
}

/// The device with the sum that each of `sums` falls into, and the rest within it: `totals` is f32
/// `[n]`, `sums` f32 `[B]`.
#[track_caller]
fn owners(totals: Tensor, sums: Tensor) -> (Tensor, Tensor) {
    let start = (zeros(I32, sums.shape()), sums, scalar(0.0));
    let (owner, rest, _) = (0..totals.len()).fold(start, |(owner, rest, before), device| {
        let total = totals.index(device);
        let here = total.gt(0.0) & sums.ge(before);
        (select(here, device as i32, owner), select(here, sums - before, rest), before + total)
    });
    (owner, rest)
}

/// This device's part of a batch. A device has the examples with a true `mine`, bool `[B]`.
#[track_caller]
fn share(leaf: Tensor, axis: usize, mine: Tensor, part: usize, axes: &Axes) -> Tensor {
    if axes.members() == 1 {
        return leaf;
    }
    let shape: Vec<usize> =
        (0..leaf.rank()).map(|a| if a == axis { mine.len() } else { 1 }).collect();
    let mine = mine.reshape(shape).broadcast_to(leaf.shape());
    // Bools cannot be summed.
    let summed = if leaf.dtype() == BOOL { leaf.astype(U8) } else { leaf };
    let all = axes.sum(select(mine, summed, 0));
    let mut starts = vec![scalar(0); leaf.rank()];
    starts[axis] = axes.index() * part as i32;
    let mut sizes = leaf.shape();
    sizes[axis] = part;
    dynamic_slice(all, &starts, &sizes).astype(leaf.dtype())
}
