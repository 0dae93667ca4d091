//! Many small parameters as one vector.

use super::Optimizer;
use crate::ravel::{ravel, unravel};
use podracer_dsl::prelude::*;

/// Passes all leaves of a dtype to the inner optimizer as one vector, as `optax.flatten` does,
/// except that leaves with at least 65,536 elements remain separate vectors. The updates are equal
/// for any optimizer that treats elements alike or uses a global norm, apart from the summation
/// order of that norm. Networks with many small leaves compile and run faster, because each step of
/// the optimizer is one kernel instead of one per leaf.
#[derive(Clone, Copy, Debug)]
pub struct Flatten<O> {
    /// Optimizer of the vectors.
    pub inner: O,
}

/// A [`Flatten`] around an optimizer.
pub fn flatten<O: Optimizer>(inner: O) -> Flatten<O> {
    Flatten { inner }
}

impl<O: Optimizer> Optimizer for Flatten<O> {
    type State<P: Tree> = O::State<Vec<Tensor>>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        self.inner.init(&ravel(params))
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let (updates, state) = self.inner.update(ravel(&grads), state, &ravel(params));
        (unravel(&updates, &params.spec()), state)
    }
}
