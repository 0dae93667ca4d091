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
    /// The parameters with a path that fulfils a predicate.
    pub fn new(chosen: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Mask {
        Mask(Arc::new(chosen))
    }

    /// The leaves of a tree that the mask chooses, and the remaining leaves.
    fn divide<P: Tree>(&self, tree: &P) -> [Selection; 2] {
        Selection::divide(tree, &*self.0)
    }

    /// The tree, with the structure of `like`, that [`Mask::divide`] divides into these parts.
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

/// Passes only the chosen parameters to the inner optimizer, and returns the other parameters'
/// gradients unchanged, as in `optax.masked`. Use it inside a [`super::chain`], such as for weight
/// decay or clipping of some parameters. To freeze parameters, [`partition`] them with
/// [`set_to_zero`].
#[derive(Clone, Debug)]
pub struct Masked<O> {
    /// Optimizer of the chosen parameters.
    pub inner: O,
    /// Parameters of the inner optimizer.
    pub mask: Mask,
}

/// A [`Masked`] optimizer for the parameters with a key path that fulfils `chosen`.
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

/// One optimizer for the chosen parameters and another for all others: `optax.partition`, formerly
/// `optax.multi_transform`. Each sees only its own parameters, also in a global norm, under their
/// original key paths. Either optimizer may itself be a [`Partition`].
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
    /// Optimizer of the other parameters.
    pub others: B,
    /// Parameters of `chosen`.
    pub mask: Mask,
}

/// A [`Partition`]: `chosen` for the parameters with a key path that fulfils `is_chosen`, and
/// `others` for the rest.
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

/// Updates of 0, which keep parameters as they are: `optax.set_to_zero`.
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
