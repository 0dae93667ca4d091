//! Trees of Rust's own types: the tensor itself, tuples, arrays, `Vec`, `Option`.

use super::{Choice, IntoTree, Items, Kind, Over, Path, Sources, Step, Tree};
use crate::tensor::{IntoTensor, Tensor};

/// A tree with one leaf: `$leaf` returns the tensor of a reference, `$of` makes the tree from a
/// tensor.
macro_rules! leaf_tree {
    ($tree:ty, $leaf:expr, $of:expr) => {
        impl Over for $tree {
            type Item = $tree;
            fn sources(&self, sources: &mut Sources) {
                sources.push($leaf(self));
            }
            fn item(self, items: &mut Items<'_>) -> $tree {
                $of(items.take())
            }
        }

        impl IntoTree for $tree {
            type Tree = $tree;
            fn into_tree(self) -> $tree {
                self
            }
        }

        impl Tree for $tree {
            type Of<K: Kind> = K::Leaf;

            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor)) {
                f(path, $leaf(self));
            }
            fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> $tree {
                $of(f($leaf(self)))
            }
            fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> K::Leaf {
                f($leaf(self))
            }
            fn from_kind<K: Kind>(of: &K::Leaf, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> $tree {
                $of(f(of))
            }
            fn convert<J: Kind, K: Kind>(
                of: &J::Leaf,
                f: &mut dyn FnMut(&J::Leaf) -> K::Leaf,
            ) -> K::Leaf {
                f(of)
            }
            fn visit_kind<'a, K: Kind>(
                of: &'a K::Leaf,
                path: &mut Path,
                f: &mut dyn FnMut(&Path, &'a K::Leaf),
            ) {
                f(path, of);
            }
            fn into_leaves<K: Kind>(of: K::Leaf, leaves: &mut Vec<K::Leaf>) {
                leaves.push(of);
            }
        }
    };
}
pub(crate) use leaf_tree;

leaf_tree!(Tensor, Tensor::clone, std::convert::identity);

impl IntoTree for &Tensor {
    type Tree = Tensor;
    fn into_tree(self) -> Tensor {
        *self
    }
}

macro_rules! literal_trees {
    ($($type:ty),*) => {$(
        impl IntoTree for $type {
            type Tree = Tensor;
            #[track_caller]
            fn into_tree(self) -> Tensor {
                self.into_tensor()
            }
        }
    )*};
}
// One integer and one float type: with more, rustc could not infer the type of `0` in a carry
// before it checks the closure.
literal_trees!(f64, i32, bool);

macro_rules! tuple_trees {
    ($($name:ident $position:tt),*) => {
        impl<$($name: Over),*> Over for ($($name,)*) {
            type Item = ($($name::Item,)*);
            #[allow(unused_variables)]
            #[track_caller]
            fn sources(&self, sources: &mut Sources) {
                $(
                    sources.enter(Step::Position($position));
                    self.$position.sources(sources);
                    sources.leave();
                )*
            }
            #[allow(unused_variables, clippy::unused_unit)]
            fn item(self, items: &mut Items<'_>) -> Self::Item {
                ($(self.$position.item(items),)*)
            }
        }

        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($name: Tree),*> Tree for ($($name,)*) {
            type Of<K: Kind> = ($(K::View<$name>,)*);

            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor)) {
                $(path.within(Step::Position($position), |path| self.$position.visit(path, f));)*
            }
            fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
                ($(self.$position.map(f),)*)
            }
            fn choices(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Choice)) {
                $(path.within(Step::Position($position), |path| self.$position.choices(path, f));)*
            }
            fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> Self::Of<K> {
                ($(K::wrap::<$name>(self.$position.to_kind::<K>(f)),)*)
            }
            fn from_kind<K: Kind>(of: &Self::Of<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> Self {
                ($($name::from_kind::<K>(K::peek::<$name>(&of.$position), f),)*)
            }
            fn convert<J: Kind, K: Kind>(of: &Self::Of<J>, f: &mut dyn FnMut(&J::Leaf) -> K::Leaf) -> Self::Of<K> {
                ($(K::wrap::<$name>($name::convert::<J, K>(J::peek::<$name>(&of.$position), f)),)*)
            }
            fn visit_kind<'a, K: Kind>(of: &'a Self::Of<K>, path: &mut Path, f: &mut dyn FnMut(&Path, &'a K::Leaf)) {
                $(path.within(Step::Position($position), |path| $name::visit_kind::<K>(K::peek::<$name>(&of.$position), path, f));)*
            }
            fn into_leaves<K: Kind>(of: Self::Of<K>, leaves: &mut Vec<K::Leaf>) {
                $($name::into_leaves::<K>(K::unwrap::<$name>(of.$position), leaves);)*
            }
        }

        impl<$($name: IntoTree),*> IntoTree for ($($name,)*) {
            type Tree = ($($name::Tree,)*);
            #[allow(clippy::unused_unit)]
            #[track_caller]
            fn into_tree(self) -> Self::Tree {
                ($(self.$position.into_tree(),)*)
            }
        }
    };
}
tuple_trees!();
tuple_trees!(A 0);
tuple_trees!(A 0, B 1);
tuple_trees!(A 0, B 1, C 2);
tuple_trees!(A 0, B 1, C 2, D 3);
tuple_trees!(A 0, B 1, C 2, D 3, E 4);
tuple_trees!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple_trees!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple_trees!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Arrays, `Vec` and `Option`: elements of one type, with their index as the path's step. `$each`
/// gives the elements by reference and `$own` by value; `$back` makes the collection from the
/// result of `map`.
macro_rules! element_trees {
    ($whole:ident $(<_, $n:ident>)?, each: $each:ident $(, own: $own:ident)? $(, back: $back:ident)?, choice: $choice:expr) => {
        impl<T: Over $(, const $n: usize)?> Over for $whole<T $(, $n)?> {
            type Item = $whole<T::Item $(, $n)?>;
            #[track_caller]
            fn sources(&self, sources: &mut Sources) {
                for (i, part) in self.iter().enumerate() {
                    sources.enter(Step::Index(i));
                    part.sources(sources);
                    sources.leave();
                }
            }
            fn item(self, items: &mut Items<'_>) -> Self::Item {
                self$(.$own())?.map(|part| part.item(items))$(.$back())?
            }
        }

        impl<T: Tree $(, const $n: usize)?> Tree for $whole<T $(, $n)?> {
            type Of<K: Kind> = $whole<K::View<T> $(, $n)?>;

            fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor)) {
                for (i, part) in self.iter().enumerate() {
                    path.within(Step::Index(i), |path| part.visit(path, f));
                }
            }
            fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> Self {
                self.$each().map(|part| part.map(f))$(.$back())?
            }
            fn choices(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Choice)) {
                let choice: fn(&Self) -> Option<Choice> = $choice;
                if let Some(choice) = choice(self) {
                    f(path, choice);
                }
                for (i, part) in self.iter().enumerate() {
                    path.within(Step::Index(i), |path| part.choices(path, f));
                }
            }
            fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> Self::Of<K> {
                self.$each().map(|part| K::wrap::<T>(part.to_kind::<K>(f)))$(.$back())?
            }
            fn from_kind<K: Kind>(of: &Self::Of<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> Self {
                of.$each().map(|part| T::from_kind::<K>(K::peek::<T>(part), f))$(.$back())?
            }
            fn convert<J: Kind, K: Kind>(of: &Self::Of<J>, f: &mut dyn FnMut(&J::Leaf) -> K::Leaf) -> Self::Of<K> {
                of.$each().map(|part| K::wrap::<T>(T::convert::<J, K>(J::peek::<T>(part), f)))$(.$back())?
            }
            fn visit_kind<'a, K: Kind>(of: &'a Self::Of<K>, path: &mut Path, f: &mut dyn FnMut(&Path, &'a K::Leaf)) {
                for (i, part) in of.iter().enumerate() {
                    path.within(Step::Index(i), |path| T::visit_kind::<K>(K::peek::<T>(part), path, f));
                }
            }
            fn into_leaves<K: Kind>(of: Self::Of<K>, leaves: &mut Vec<K::Leaf>) {
                of.into_iter().for_each(|part| T::into_leaves::<K>(K::unwrap::<T>(part), leaves));
            }
        }

        impl<T: IntoTree $(, const $n: usize)?> IntoTree for $whole<T $(, $n)?> {
            type Tree = $whole<T::Tree $(, $n)?>;
            #[track_caller]
            fn into_tree(self) -> Self::Tree {
                self$(.$own())?.map(IntoTree::into_tree)$(.$back())?
            }
        }
    };
}
type Array<T, const N: usize> = [T; N];
element_trees!(Array<_, N>, each: each_ref, choice: |_| None);
element_trees!(Vec, each: iter, own: into_iter, back: collect, choice: |_| None);
element_trees!(Option, each: as_ref, choice: |option| {
    Some(Choice::Variant(if option.is_some() { "Some" } else { "None" }))
});
