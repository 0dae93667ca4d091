//! Kinds: the places where the leaves of a tree may live, such as the host or a device.

use super::Tree;

/// A kind of tree: the place where its leaves live. A kind has a leaf type, and a newtype over
/// `T::Of<Self>` that derefs to it. A field of a viewed struct is therefore a view again
/// (`&state.params` is a `&Device<Params>`):
///
/// ```text
/// struct Device<T: Tree>(T::Of<OnDevice>);
/// impl<T: Tree> Deref for Device<T> { type Target = T::Of<OnDevice>; .. }
/// impl Kind for OnDevice { type Leaf = Buffer; type View<T: Tree> = Device<T>; .. }
/// ```
pub trait Kind: Sized + 'static {
    /// The type of a leaf in this kind, such as a buffer.
    type Leaf: 'static;
    /// The view: the newtype over `T::Of<Self>`.
    type View<T: Tree>: 'static;

    /// Wraps a tree into the view.
    fn wrap<T: Tree>(of: T::Of<Self>) -> Self::View<T>;
    /// Takes the tree out of the view.
    fn unwrap<T: Tree>(view: Self::View<T>) -> T::Of<Self>;
    /// Borrows the tree inside of the view.
    fn peek<T: Tree>(view: &Self::View<T>) -> &T::Of<Self>;
}
