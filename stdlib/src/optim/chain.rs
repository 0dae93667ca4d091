//! Two optimizers, one after the other.

use super::Optimizer;
use podracer_dsl::Tree;

/// Two optimizers; the second transforms the updates of the first.
#[derive(Clone, Copy, Debug)]
pub struct Chain<A, B> {
    /// Optimizer of the gradients.
    pub first: A,
    /// Optimizer of the first optimizer's updates.
    pub second: B,
}

/// A [`Chain`] of two optimizers.
pub fn chain<A: Optimizer, B: Optimizer>(first: A, second: B) -> Chain<A, B> {
    Chain { first, second }
}

impl<A: Optimizer, B: Optimizer> Optimizer for Chain<A, B> {
    type State<P: Tree> = (A::State<P>, B::State<P>);

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        (self.first.init(params), self.second.init(params))
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let (updates, first) = self.first.update(grads, state.0, params);
        let (updates, second) = self.second.update(updates, state.1, params);
        (updates, (first, second))
    }
}
