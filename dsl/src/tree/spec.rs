//! Specs: trees with types as leaves. They decide the types of a traced function's arguments.

use super::structure::choices;
use super::{Kind, Path, Tree};
use crate::tensor::create::zeros;
use crate::tensor::{Shape, Tensor};
use podracer_compiler::{DType, Loc, TensorType};
use std::fmt;
use std::ops::Deref;

/// The kind of leaves that are types; its trees are [`Spec`]s.
#[derive(Clone, Copy, Debug)]
pub enum Types {}

impl Kind for Types {
    type Leaf = TensorType;
    type View<T: Tree> = Spec<T>;

    fn wrap<T: Tree>(of: T::Of<Self>) -> Spec<T> {
        Spec(of)
    }
    fn unwrap<T: Tree>(view: Spec<T>) -> T::Of<Self> {
        view.0
    }
    fn peek<T: Tree>(view: &Spec<T>) -> &T::Of<Self> {
        &view.0
    }
}

/// The types of a tree's leaves, in its structure: `Spec<State>` derefs to `StateOf<Types>`, which
/// has [`TensorType`]s as leaves.
pub struct Spec<T: Tree>(pub T::Of<Types>);

impl<T: Tree> Spec<T> {
    /// Paths and types of the leaves, in order.
    pub fn leaves(&self) -> Vec<(Path, TensorType)> {
        let mut leaves = Vec::new();
        T::visit_kind::<Types>(&self.0, &mut Path::root(), &mut |path, ty| {
            leaves.push((path.clone(), ty.clone()))
        });
        leaves
    }

    /// The types of the leaves, in order.
    pub fn types(&self) -> Vec<TensorType> {
        self.leaves().into_iter().map(|(_, ty)| ty).collect()
    }

    /// Builds the tree in another kind: `f` makes the leaves from their types, in order.
    pub fn build<K: Kind>(&self, f: &mut dyn FnMut(&TensorType) -> K::Leaf) -> K::View<T> {
        K::wrap::<T>(T::convert::<Types, K>(&self.0, f))
    }

    /// A tree of this structure; its leaves belong to no trace.
    pub(super) fn skeleton(&self) -> T {
        T::from_kind::<Types>(&self.0, &mut |_| Tensor::dead(Loc::NONE))
    }

    /// The tree of these types with all numbers zero.
    #[track_caller]
    pub fn zeros(&self) -> T {
        T::from_kind::<Types>(&self.0, &mut |ty| zeros(ty.dtype, ty.shape.clone()))
    }

    /// The spec of `size` such trees, stacked along a new leading axis.
    pub fn stacked(&self, size: usize) -> Spec<T> {
        Spec(T::convert::<Types, Types>(&self.0, &mut |ty| ty.stacked(size)))
    }

    /// The spec without the leading axis of every leaf: the spec of a single tree in a stack.
    pub fn unstacked(&self) -> Spec<T> {
        Spec(T::convert::<Types, Types>(&self.0, &mut |ty| {
            TensorType::new(ty.dtype, ty.shape.get(1..).unwrap_or_default())
        }))
    }
}

impl<T: Tree> Deref for Spec<T> {
    type Target = T::Of<Types>;

    fn deref(&self) -> &T::Of<Types> {
        &self.0
    }
}

impl<T: Tree> Clone for Spec<T> {
    fn clone(&self) -> Self {
        Spec(T::convert::<Types, Types>(&self.0, &mut |ty| ty.clone()))
    }
}

impl<T: Tree> PartialEq for Spec<T> {
    fn eq(&self, other: &Self) -> bool {
        let alike = choices(&self.skeleton()) == choices(&other.skeleton());
        alike && self.leaves() == other.leaves()
    }
}

impl<T: Tree> Eq for Spec<T> {}

impl<T: Tree> fmt::Debug for Spec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `{velocity: f32[], position: f32[3]}`.
impl<T: Tree> fmt::Display for Spec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leaves = self.leaves();
        match &leaves[..] {
            [(path, ty)] if path.0.is_empty() => write!(f, "{ty}"),
            _ => {
                let leaves: Vec<String> =
                    leaves.iter().map(|(path, ty)| format!("{path}: {ty}")).collect();
                write!(f, "{{{}}}", leaves.join(", "))
            }
        }
    }
}

/// The types of arguments: specs by value or reference, and tuples, arrays, `Vec`s and `Option`s of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a spec of arguments",
    label = "expected `Spec<T>`, `&Spec<T>`, `f32([..])`, `key()`, or a tuple of them"
)]
pub trait ArgumentSpec {
    /// The tree that the traced function gets.
    type Tree: Tree;

    /// The spec of the arguments.
    fn into_spec(self) -> Spec<Self::Tree>;
}

impl<T: Tree> ArgumentSpec for Spec<T> {
    type Tree = T;
    fn into_spec(self) -> Spec<T> {
        self
    }
}

impl<T: Tree> ArgumentSpec for &Spec<T> {
    type Tree = T;
    fn into_spec(self) -> Spec<T> {
        self.clone()
    }
}

impl ArgumentSpec for TensorType {
    type Tree = Tensor;
    fn into_spec(self) -> Spec<Tensor> {
        Spec(self)
    }
}

impl<S: ArgumentSpec> ArgumentSpec for Vec<S> {
    type Tree = Vec<S::Tree>;
    fn into_spec(self) -> Spec<Self::Tree> {
        Spec(self.into_iter().map(ArgumentSpec::into_spec).collect())
    }
}

impl<S: ArgumentSpec> ArgumentSpec for Option<S> {
    type Tree = Option<S::Tree>;
    fn into_spec(self) -> Spec<Self::Tree> {
        Spec(self.map(ArgumentSpec::into_spec))
    }
}

impl<S: ArgumentSpec, const N: usize> ArgumentSpec for [S; N] {
    type Tree = [S::Tree; N];
    fn into_spec(self) -> Spec<Self::Tree> {
        Spec(self.map(ArgumentSpec::into_spec))
    }
}

macro_rules! tuple_specs {
    ($($name:ident)*) => {
        #[allow(non_snake_case)]
        impl<$($name: ArgumentSpec),*> ArgumentSpec for ($($name,)*) {
            type Tree = ($($name::Tree,)*);
            fn into_spec(self) -> Spec<Self::Tree> {
                let ($($name,)*) = self;
                Spec(($($name.into_spec(),)*))
            }
        }
    };
}
tuple_specs!();
tuple_specs!(A);
tuple_specs!(A B);
tuple_specs!(A B C);
tuple_specs!(A B C D);
tuple_specs!(A B C D E);
tuple_specs!(A B C D E F);
tuple_specs!(A B C D E F G);
tuple_specs!(A B C D E F G H);

/// Specs of single tensors, named by dtype: `f32([128, 4])`.
pub mod dtype_specs {
    use super::{DType, Shape, Spec, Tensor, TensorType};

    macro_rules! dtype_specs {
        ($($name:ident: $dtype:ident),*) => {$(
            #[doc = concat!("The spec of a tensor of ", stringify!($name), ".")]
            pub fn $name(shape: impl Shape) -> Spec<Tensor> {
                Spec(TensorType::new(DType::$dtype, shape.into_shape()))
            }
        )*};
    }
    dtype_specs!(bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f16: F16, bf16: BF16, f32: F32, f64: F64);
}
