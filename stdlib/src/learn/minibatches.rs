//! Minibatches of a rollout, one for each gradient step of an iteration.

use super::{Axes, RolloutShape};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Passes over a rollout in minibatches, drawn again for each pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minibatches {
    /// Number of passes over the rollout.
    pub epochs: usize,
    /// Number of minibatches per pass.
    pub count: usize,
    /// True for exactly uniform permutations, which sort; false for Feistel bijections.
    pub exact_shuffle: bool,
    /// True if minibatches consist of whole lanes, with all their steps.
    pub whole_lanes: bool,
}

impl Minibatches {
    /// Number of gradient steps per iteration, `U`.
    pub fn updates(&self) -> usize {
        self.epochs * self.count
    }

    /// Checks that the steps of one device divide into minibatches; `lstm` is the setting that
    /// requires whole lanes.
    pub fn check(&self, shape: RolloutShape, lstm: Option<usize>) -> Result<(), String> {
        let RolloutShape { lanes, unroll } = shape;
        let (minibatches, batch) = (self.count, lanes * unroll);
        if let Some(units) = lstm.filter(|_| !lanes.is_multiple_of(minibatches)) {
            return Err(format!(
                "{lanes} environments per device do not divide into agent.minibatches = {minibatches}: with agent.lstm = {units} \
                 each minibatch has whole trajectories"
            ));
        }
        if !batch.is_multiple_of(minibatches) {
            return Err(format!(
                "a batch of {batch} steps per device ({lanes} environments, unroll {unroll}) does not divide into \
                 agent.minibatches = {minibatches}"
            ));
        }
        Ok(())
    }

    /// The steps of each gradient step, i32 `[U, M]`, by their numbers in the rollout, or the
    /// lanes. Each device draws its own.
    #[track_caller]
    pub fn draw(&self, agent: &str, shape: RolloutShape, key: Key, axes: &Axes) -> Tensor {
        let &Minibatches { epochs, count: minibatches, exact_shuffle, whole_lanes } = self;
        let RolloutShape { lanes, unroll } = shape;
        let count = if whole_lanes { lanes } else { lanes * unroll };
        // Each device shuffles its own. A loop is used, or XLA would draw the key for each element
        // of the permutation.
        let epochs = arange(epochs) + axes.index() * epochs as i32;
        let keys = vmap((epochs, whole(key)), |(epoch, key)| key.fold_in(epoch));
        let permutations = map(keys, |key| match exact_shuffle {
            true => key.permutation(count),
            false => key.feistel_permutation(count),
        });
        if count.is_multiple_of(minibatches) {
            return permutations.reshape([self.updates(), count / minibatches]);
        }
        let what = match whole_lanes {
            true => format!("the trajectories of {count} environments, each whole for the core,"),
            false => format!("a cycle's {count} steps ({unroll} steps of {lanes} environments)"),
        };
        let message = format!("{what} do not divide into {minibatches} minibatches");
        let guess = TensorType::new(I32, [self.updates(), count / minibatches.max(1)]);
        fail(agent, message, &[permutations], guess)
    }
}

/// The tensor with its first two axes merged.
#[track_caller]
pub(crate) fn merged(x: Tensor) -> Tensor {
    let shape = x.shape();
    x.reshape([&[shape[0] * shape[1]], &shape[2..]].concat())
}
