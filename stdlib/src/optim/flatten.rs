//! Many small parameters as one vector.

use super::Optimizer;
use crate::ravel::{ravel, unravel};
use podracer_dsl::prelude::*;

/// Gives the inner optimizer all leaves of a dtype as one vector, as `optax.flatten` does, but for leaves of 65,536 elements and
/// more, which are vectors of their own. The updates are the same for any optimizer that treats elements alike or goes by a global
/// norm (only that norm's sum has another order). Networks of many small leaves compile and run faster so, as each step of the
/// optimizer is one kernel and not one per leaf.
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
