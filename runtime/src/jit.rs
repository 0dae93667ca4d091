//! Functions of host values: traced, compiled and run in one call.
//!
//! State that stays on devices between calls, such as a training's, belongs to a [`Program`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use podracer_compiler::TensorType;
use podracer_dsl::prelude::{
    ArgumentSpec, IntoTree, Key, Spec, Tensor, TraceErrors, Tree, Types, Warning, trace,
};

use crate::tree::{self, Host, OnHost, Placement};
use crate::{Array, Client, Element, Program, ProgramOptions, RuntimeError};

/// The reason why a call of a function on host values failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Mistakes in the function, with the user's lines.
    #[error("{0}")]
    Trace(#[from] TraceErrors),
    /// Compiling or running failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Host values as arguments of a function: numbers, bools, arrays, slices and `Vec`s of them,
/// [`Array`]s, a [`Seed`], trees on the host, and tuples of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value to call a compiled function with",
    label = "expected a number such as `1.0f32`, an array, slice or `Vec` of numbers, a `Array`, a `Host<T>`, a `Seed`, or a tuple of these",
    note = "numbers need their dtype: `1.0f32` is f32, `1.0` alone would be f64"
)]
pub trait HostArguments {
    /// The tree of tensors that the function takes.
    type Tree: Tree;

    /// Types of the values, in their structure.
    fn spec(&self) -> Spec<Self::Tree>;

    /// Appends the values, in the order of the leaves.
    fn arrays(self, leaves: &mut Vec<Array>);
}

/// A seed, which a function gets as a [`Key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl HostArguments for Seed {
    type Tree = Key;
    fn spec(&self) -> Spec<Key> {
        podracer_dsl::prelude::key()
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        leaves.push(Array::key(self.0));
    }
}

impl HostArguments for Array {
    type Tree = Tensor;
    fn spec(&self) -> Spec<Tensor> {
        Spec(self.ty().clone())
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        leaves.push(self);
    }
}

impl HostArguments for &Array {
    type Tree = Tensor;
    fn spec(&self) -> Spec<Tensor> {
        Spec(self.ty().clone())
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        leaves.push(self.clone());
    }
}

impl<T: Tree> HostArguments for &Host<T> {
    type Tree = T;
    fn spec(&self) -> Spec<T> {
        Spec(T::convert::<OnHost, Types>(&self.0, &mut |leaf| leaf.ty().clone()))
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        self.visit(|_, leaf| leaves.push(leaf.clone()));
    }
}

/// Numbers in nested slices have the shape `shape`.
fn dense<T: Element>(shape: impl AsRef<[usize]>, values: &[T]) -> Array {
    Array::from_slice(shape, values).expect("there is one value per element")
}

impl<T: Element> HostArguments for &[T] {
    type Tree = Tensor;
    fn spec(&self) -> Spec<Tensor> {
        Spec(TensorType::new(T::DTYPE, [self.len()]))
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        leaves.push(dense([self.len()], self));
    }
}

impl<T: Element> HostArguments for Vec<T> {
    type Tree = Tensor;
    fn spec(&self) -> Spec<Tensor> {
        self.as_slice().spec()
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        self.as_slice().arrays(leaves);
    }
}

impl<T: Element> HostArguments for &Vec<T> {
    type Tree = Tensor;
    fn spec(&self) -> Spec<Tensor> {
        self.as_slice().spec()
    }
    fn arrays(self, leaves: &mut Vec<Array>) {
        self.as_slice().arrays(leaves);
    }
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl HostArguments for $type {
            type Tree = Tensor;
            fn spec(&self) -> Spec<Tensor> {
                Spec(TensorType::scalar(<$type as Element>::DTYPE))
            }
            fn arrays(self, leaves: &mut Vec<Array>) {
                leaves.push(Array::scalar(self));
            }
        }

        impl<const N: usize> HostArguments for [$type; N] {
            type Tree = Tensor;
            fn spec(&self) -> Spec<Tensor> {
                self.as_slice().spec()
            }
            fn arrays(self, leaves: &mut Vec<Array>) {
                self.as_slice().arrays(leaves);
            }
        }

        impl<const N: usize, const M: usize> HostArguments for [[$type; M]; N] {
            type Tree = Tensor;
            fn spec(&self) -> Spec<Tensor> {
                Spec(TensorType::new(<$type as Element>::DTYPE, [N, M]))
            }
            fn arrays(self, leaves: &mut Vec<Array>) {
                leaves.push(dense([N, M], self.as_flattened()));
            }
        }
    )*};
}
scalars!(bool, i8, i16, i32, i64, u8, u16, u32, u64, half::f16, half::bf16, f32, f64);

macro_rules! tuples {
    ($($name:ident)*) => {
        #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
        impl<$($name: HostArguments),*> HostArguments for ($($name,)*) {
            type Tree = ($($name::Tree,)*);
            fn spec(&self) -> Spec<Self::Tree> {
                let ($($name,)*) = self;
                ($($name.spec(),)*).into_spec()
            }
            fn arrays(self, leaves: &mut Vec<Array>) {
                let ($($name,)*) = self;
                $($name.arrays(leaves);)*
            }
        }
    };
}
tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

/// A program of one argument tree, shared by calls.
type SharedProgram<T, R> = Arc<Program<(T,), R>>;

/// The types of an argument tree, and the program for them.
type CompiledFor<T, R> = (Spec<T>, SharedProgram<T, R>);

/// A function that is compiled at its first call with arguments of each type; [`TypedPrograms::jit`](crate::TypedPrograms::jit) makes it.
pub struct Jit<T: Tree, R: IntoTree, F> {
    client: Client,
    function: F,
    programs: Mutex<Vec<CompiledFor<T, R::Tree>>>,
    warnings: Mutex<Vec<Warning>>,
}

impl<T: Tree, R: IntoTree, F: Fn(T) -> R> Jit<T, R, F> {
    pub(crate) fn new(client: Client, function: F) -> Self {
        Jit { client, function, programs: Mutex::default(), warnings: Mutex::default() }
    }

    /// Calls the function on host values, on the client's first device, and copies the results to
    /// the host. It compiles first if the types of the arguments are new.
    ///
    /// # Errors
    /// [`CallError::Trace`] with the mistakes in the function; [`CallError::Runtime`] if compiling
    /// or running failed.
    pub fn call<X: HostArguments<Tree = T>>(
        &self,
        arguments: X,
    ) -> Result<Host<R::Tree>, CallError> {
        let spec = arguments.spec();
        let program = self.program(&spec)?;
        let mut leaves = Vec::new();
        arguments.arrays(&mut leaves);
        let uploaded = program.upload(tree::from_leaves::<T, OnHost>(&spec, leaves))?;
        let results = program.run((uploaded,)).map_err(RuntimeError::from)?;
        Ok(results.to_host()?)
    }

    /// Warnings of the programs so far, with the user's lines: mistakes that do not stop the
    /// programs, such as a `cond` with both branches run by a batch. They are also logged at the
    /// level of warnings.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of different argument types that the function was compiled for.
    pub fn compiled(&self) -> usize {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn program(&self, spec: &Spec<T>) -> Result<SharedProgram<T, R::Tree>, CallError> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(known, _)| known == spec) {
            return Ok(program.clone());
        }
        let traced = trace((spec.clone(),), |(arguments,)| (self.function)(arguments))?;
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in traced.warnings() {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let placements = vec![Placement::Replicated; traced.results().leaves().len()];
        let options = ProgramOptions::default();
        let program = Program::compile(&self.client, "jit", &traced, placements, &options)?;
        let program = Arc::new(program);
        programs.push((spec.clone(), program.clone()));
        Ok(program)
    }
}

impl<T: Tree, R: IntoTree, F> fmt::Debug for Jit<T, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let types: Vec<String> = programs.iter().map(|(spec, _)| spec.to_string()).collect();
        write!(f, "a function compiled for [{}]", types.join(", "))
    }
}
