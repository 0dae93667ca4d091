//! Noise that decides between actions with equal scores.

use super::fold;
use podracer_dsl::any_example;
use podracer_dsl::prelude::*;

/// The noise of one simulation: for each tree and level `actions` uniform numbers in `[0, 1e-7)`,
/// equal to mctx's.
///
/// It is drawn only if the two best scores of a node are so close that it decides.
pub(super) struct Noise {
    /// The simulation's key.
    pub(super) key: Key,
    pub(super) batch: usize,
    /// Number of actions with noise, the first actions of a node; `None` without noise.
    pub(super) actions: Option<usize>,
}

/// True if noise may decide which of the scores `[A, B]` is greatest. bool `[B]`
#[track_caller]
pub(super) fn ties(scores: Tensor) -> Tensor {
    // The margin exceeds the noise: scores may be rounded differently when they are computed again.
    let most = fold::max(scores);
    let near = most - 1.5e-7 - most.abs() * 4e-7;
    fold::count(scores.ge(near).astype(I32)).index(0).gt(1)
}

impl Noise {
    /// Greatest noise that is added to a score.
    pub(super) const SCALE: f64 = 1e-7;

    /// The actions with the greatest scores `[A, B]` after adding the noise of a level, i32 `[]`.
    /// i32 `[B]`
    #[track_caller]
    pub(super) fn argmax(&self, scores: Tensor, depth: Tensor) -> Tensor {
        let without = fold::argmax(scores);
        if self.actions.is_none() {
            return without;
        }
        let tie = ties(scores);
        cond(
            any_example(tie.any()),
            || select(tie, self.always(None, scores, depth), without),
            || without,
        )
    }

    /// [`Noise::argmax`] for the trees with these indices, i32 `[B]`, or for all trees, whether or
    /// not noise decides.
    #[track_caller]
    pub(super) fn always(&self, trees: Option<Tensor>, scores: Tensor, depth: Tensor) -> Tensor {
        let Some(drawn) = self.actions else { return fold::argmax(scores) };
        // One key per tree; each level splits it and uses one of the two.
        let words = match trees {
            None => self.key.again().split_n(self.batch).words(),
            Some(trees) => vmap(trees, |tree| self.key.fold_in(tree).words()),
        };
        let (_, words) = while_loop(
            (0, words),
            |(level, _)| level.lt(depth),
            |(level, words)| {
                (level + 1, vmap(Keys::from_words(words), |key| key.split().0).words())
            },
        );
        let noise =
            vmap(Keys::from_words(words), |key| key.split().1.uniform([drawn])) * Noise::SCALE;
        let rest = (scores.dim(0) - drawn) as i64;
        fold::argmax(scores + noise.swap_axes(0, 1).pad(&[(0, rest), (0, 0)], 0.0))
    }
}
