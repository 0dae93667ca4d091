//! Many small parameters as one vector.

use super::Optimizer;
use podracer_dsl::prelude::*;

/// Gives the inner optimizer all leaves of a dtype as one vector: `optax.flatten`. The updates are the same for any
/// optimizer that treats elements alike or goes by a global norm (only that norm's sum has another order). Networks of many small
/// leaves compile and run faster so, as each step of the optimizer is one kernel and not one per leaf.
#[derive(Clone, Copy, Debug)]
pub struct Flatten<O> {
    /// Sees the vectors.
    pub inner: O,
}

/// [`Flatten`].
pub fn flatten<O: Optimizer>(inner: O) -> Flatten<O> {
    Flatten { inner }
}

/// The leaves of each dtype, one after another, row-major: a vector for each, in the order in which the dtypes first appear.
#[track_caller]
fn flat<P: Tree>(tree: &P) -> Vec<Tensor> {
    let mut vectors: Vec<Vec<Tensor>> = Vec::new();
    for leaf in tree.leaves() {
        let leaf = leaf.flatten();
        match vectors
            .iter_mut()
            .find(|one| one[0].dtype() == leaf.dtype())
        {
            Some(vector) => vector.push(leaf),
            None => vectors.push(vec![leaf]),
        }
    }
    vectors
        .iter()
        .map(|leaves| concatenate(leaves, 0))
        .collect()
}

/// The tree whose [`flat`] form `vectors` is, in the shapes of `like`.
#[track_caller]
fn unflat<P: Tree>(vectors: &[Tensor], like: &P) -> P {
    let mut taken = vec![0; vectors.len()];
    tree_map(like, |leaf| {
        let of_dtype = vectors.iter().position(|one| one.dtype() == leaf.dtype());
        let Some(i) = of_dtype else { return leaf };
        let begin = taken[i];
        taken[i] += leaf.elements();
        vectors[i].slice(begin..taken[i]).reshape(leaf.shape())
    })
}

impl<O: Optimizer> Optimizer for Flatten<O> {
    type State<P: Tree> = O::State<Vec<Tensor>>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        self.inner.init(&flat(params))
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let (updates, state) = self.inner.update(flat(&grads), state, &flat(params));
        (unflat(&updates, params), state)
    }
}
