//! Different optimizers for different parameters, chosen by their key paths.

use super::Optimizer;
use super::selection::Selection;
use podracer_dsl::prelude::*;
use std::fmt;
use std::sync::Arc;

/// A choice of parameters by their key paths, such as `policy.layers[0].weight`.
#[derive(Clone)]
pub struct Mask(Arc<dyn Fn(&Path) -> bool + Send + Sync>);

impl Mask {
    /// The parameters whose path fulfils a predicate.
    pub fn new(chosen: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Mask {
        Mask(Arc::new(chosen))
    }

    /// The leaves of a tree that the mask chooses, and the others.
    fn divide<P: Tree>(&self, tree: &P) -> [Selection; 2] {
        Selection::divide(tree, &*self.0)
    }

    /// The tree of `like`'s structure that [`Mask::divide`] divides into these parts.
    #[track_caller]
    fn join<P: Tree>(&self, parts: [Selection; 2], like: &P) -> P {
        Selection::join(parts, like, &*self.0)
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a predicate of key paths")
    }
}

/// Gives the inner optimizer the chosen parameters only, and passes the gradients of the others on: `optax.masked`. Inside of
/// a [`super::chain`], such as weight decay or clipping for some; to keep parameters as they are, [`partition`] them with
/// [`set_to_zero`].
#[derive(Clone, Debug)]
pub struct Masked<O> {
    /// Optimizer of the chosen parameters.
    pub inner: O,
    /// Parameters that it gets.
    pub mask: Mask,
}

/// A [`Masked`] optimizer of the parameters whose key path fulfils `chosen`.
pub fn masked<O: Optimizer>(
    inner: O,
    chosen: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> Masked<O> {
    Masked { inner, mask: Mask::new(chosen) }
}

impl<O: Optimizer> Optimizer for Masked<O> {
    type State<P: Tree> = O::State<Selection>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        let [chosen, _] = self.mask.divide(params);
        self.inner.init(&chosen)
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let ([chosen, others], [params, _]) = (self.mask.divide(&grads), self.mask.divide(params));
        let (updates, state) = self.inner.update(chosen, state, &params);
        (self.mask.join([updates, others], &grads), state)
    }
}

/// One optimizer for the chosen parameters and another one for all others: `optax.partition`, once `optax.multi_transform`.
/// Each sees its own parameters only, also in a global norm, under the key paths that they have: either may be a [`Partition`]
/// again.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # use podracer_rl::optim::{Optimizer, adam, adamw, partition, set_to_zero};
/// #[derive(Tree, Clone)]
/// struct Net { torso: Tensor, head: Tensor, bias: Tensor }
///
/// let under = |name: &'static str| move |path: &Path| path.0.first() == Some(&Step::Field(name));
/// let optimizer = partition(under("torso"), set_to_zero(), partition(under("bias"), adam(1e-3), adamw(1e-3)));
/// let traced = trace((f32([4, 3]), f32([3]), f32([])), |(torso, head, bias)| {
///     let net = Net { torso, head, bias };
///     let grads = grad(net.clone(), |net| (dot(net.torso, net.head).sum() + net.bias).square());
///     optimizer.step(net.clone(), optimizer.init(&net), grads).0
/// })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Partition<A, B> {
    /// Optimizer of the chosen parameters.
    pub chosen: A,
    /// Optimizer of all others.
    pub others: B,
    /// Parameters that the first one gets.
    pub mask: Mask,
}

/// A [`Partition`]: `chosen` for the parameters whose key path fulfils `is_chosen`, and `others` for the others.
pub fn partition<A: Optimizer, B: Optimizer>(
    is_chosen: impl Fn(&Path) -> bool + Send + Sync + 'static,
    chosen: A,
    others: B,
) -> Partition<A, B> {
    Partition { chosen, others, mask: Mask::new(is_chosen) }
}

impl<A: Optimizer, B: Optimizer> Optimizer for Partition<A, B> {
    type State<P: Tree> = (A::State<Selection>, B::State<Selection>);

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> Self::State<P> {
        let [chosen, others] = self.mask.divide(params);
        (self.chosen.init(&chosen), self.others.init(&others))
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: Self::State<P>, params: &P) -> (P, Self::State<P>) {
        let [chosen, others] = self.mask.divide(&grads);
        let [of_chosen, of_others] = self.mask.divide(params);
        let (chosen, first) = self.chosen.update(chosen, state.0, &of_chosen);
        let (others, second) = self.others.update(others, state.1, &of_others);
        (self.mask.join([chosen, others], &grads), (first, second))
    }
}

/// Updates of 0, which leave parameters as they are: `optax.set_to_zero`.
#[derive(Clone, Copy, Debug)]
pub struct SetToZero;

/// A [`SetToZero`].
pub fn set_to_zero() -> SetToZero {
    SetToZero
}

impl Optimizer for SetToZero {
    type State<P: Tree> = ();

    fn init<P: Tree>(&self, _params: &P) {}

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, _state: (), _params: &P) -> (P, ()) {
        (super::zeros_like(&grads), ())
    }
}
