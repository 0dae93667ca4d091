//! Trees of spaces: one space for each leaf of an observation.

use crate::space::Space;
use podracer_dsl::prelude::*;

/// The kind of trees with spaces as leaves.
#[derive(Clone, Copy, Debug)]
pub enum InSpace {}

impl Kind for InSpace {
    type Leaf = Space;
    type View<T: Tree> = T::Of<InSpace>;

    fn wrap<T: Tree>(of: T::Of<InSpace>) -> T::Of<InSpace> {
        of
    }
    fn unwrap<T: Tree>(view: T::Of<InSpace>) -> T::Of<InSpace> {
        view
    }
    fn peek<T: Tree>(view: &T::Of<InSpace>) -> &T::Of<InSpace> {
        view
    }
}

/// A space for each leaf of a tree of observations: [`Space`] for a tensor, `(Space, Space)` for
/// `(Tensor, Tensor)`, and for a struct the struct of spaces that `#[derive(Tree)]` generates.
/// Gymnasium's `Dict` and `Tuple`.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_envs::{Space, Spaces, leaf_spaces};
///
/// #[derive(Tree, Clone, Copy)]
/// struct Seen {
///     position: Tensor, // f32 [2]
///     holds: Tensor,    // i32 []
/// }
///
/// let spaces: Spaces<Seen> = SeenOf { position: Space::bounded([2], -1.0, 1.0), holds: Space::discrete(3) };
/// let [(path, space), _] = &leaf_spaces::<Seen>(&spaces)[..] else { panic!("two leaves") };
/// assert_eq!((path.to_string().as_str(), space.ty().to_string().as_str()), ("position", "f32[2]"));
/// ```
pub type Spaces<T> = <T as Tree>::Of<InSpace>;

/// The spaces of a tree's leaves with their key paths, in the tree's order.
pub fn leaf_spaces<T: Tree>(spaces: &Spaces<T>) -> Vec<(Path, Space)> {
    let mut leaves = Vec::new();
    T::visit_kind::<InSpace>(spaces, &mut Path::root(), &mut |path, space| {
        leaves.push((path.clone(), space.clone()));
    });
    leaves
}

/// The types of a tree's leaves, from their spaces.
pub(crate) fn spec_of<T: Tree>(spaces: &Spaces<T>) -> Spec<T> {
    Spec(T::convert::<InSpace, Types>(spaces, &mut Space::ty))
}
