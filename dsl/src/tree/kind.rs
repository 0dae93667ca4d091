//! Kinds: the places where the leaves of a tree may live.

use super::Tree;

/// A place for leaves. Other crates add theirs: a kind has a leaf type, and a newtype over `T::Of<Self>` that derefs to
/// it, so that a field of a viewed struct is a view again (`&state.params` is a `&Device<Params>`):
///
/// ```text
/// struct Device<T: Tree>(T::Of<OnDevice>);
/// impl<T: Tree> Deref for Device<T> { type Target = T::Of<OnDevice>; .. }
/// impl Kind for OnDevice { type Leaf = Buffer; type View<T: Tree> = Device<T>; .. }
/// ```
pub trait Kind: Sized + 'static {
    /// What a tensor is there.
    type Leaf: 'static;
    /// The newtype over `T::Of<Self>`.
    type View<T: Tree>: 'static;

    /// Into the newtype.
    fn wrap<T: Tree>(of: T::Of<Self>) -> Self::View<T>;
    /// Out of the newtype.
    fn unwrap<T: Tree>(view: Self::View<T>) -> T::Of<Self>;
    /// Inside the newtype.
    fn peek<T: Tree>(view: &Self::View<T>) -> &T::Of<Self>;
}
