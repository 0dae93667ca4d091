//! `trace`: runs a Rust function once and returns its program.

use super::error::{TraceError, TraceErrors, Warning};
use super::state::{self, Trace};
use crate::control::vmap_func;
use crate::tree::{ArgumentSpec, IntoTree, Path, Spec, Tree, Types};
use podracer_compiler::text::Readable;
use podracer_compiler::transform::{self, VmapContext};
use podracer_compiler::{Array, Func, Loc, NotFinite, TensorType, Watcher};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A traced function: its IR, the specs of its arguments and results, and warnings.
///
/// Prints as the text of the IR.
pub struct Traced<A: Tree, R: Tree> {
    func: Func,
    replicas: Option<usize>,
    arguments: Spec<A>,
    results: Spec<R>,
    warnings: Vec<Warning>,
}

/// Runs `f` once on tensors of the types `spec`, and returns the traced program, or all mistakes.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let step = trace((f32([3]), i32([])), |(state, action)| state * action.astype(F32))?;
/// assert_eq!(step.results().to_string(), "f32[3]");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// A panic of `f` is caught. The mistakes recorded before it are the errors; if there are none, the
/// panic is the error.
#[track_caller]
pub fn trace<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    f: impl FnOnce(S::Tree) -> R,
) -> Result<Traced<S::Tree, R::Tree>, TraceErrors> {
    trace_with(None, spec, f)
}

/// [`trace`] for a program with a known number of replicas; the function describes one replica.
/// Needed only if the program depends on their number, as `all_gather` over `Replicas` does.
#[track_caller]
pub fn trace_replicated<S: ArgumentSpec, R: IntoTree>(
    replicas: usize,
    spec: S,
    f: impl FnOnce(S::Tree) -> R,
) -> Result<Traced<S::Tree, R::Tree>, TraceErrors> {
    trace_with(Some(replicas), spec, f)
}

#[track_caller]
fn trace_with<S: ArgumentSpec, R: IntoTree>(
    replicas: Option<usize>,
    spec: S,
    f: impl FnOnce(S::Tree) -> R,
) -> Result<Traced<S::Tree, R::Tree>, TraceErrors> {
    let loc = Loc::caller();
    let arguments = spec.into_spec();
    let depth = state::push(replicas);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let traced = S::Tree::from_kind::<Types>(&arguments.0, &mut |ty| {
            state::with(|trace| trace.param(ty.clone(), false, loc))
                .unwrap_or(crate::Tensor::dead(loc))
        });
        let results = f(traced).into_tree();
        let spec = results.spec();
        let closed = state::with(|trace| trace.close("main", &results.leaves()));
        (spec, closed)
    }));
    let (mut errors, warnings) = state::pop(depth).map(Trace::into_reports).unwrap_or_default();
    match outcome {
        Ok((results, Some(closed))) if errors.is_empty() => {
            let func = transform::settle(&closed.func);
            let func = transform::cse(&transform::dce(&func));
            Ok(Traced { func, replicas, arguments, results, warnings })
        }
        Ok(_) => Err(TraceErrors { errors }),
        Err(panic) => {
            if errors.is_empty() {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(ToString::to_string)
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                errors.push(
                    TraceError::new("", format!("the traced function panicked: {text}"), loc)
                        .label("traced here"),
                );
            }
            Err(TraceErrors { errors })
        }
    }
}

/// The types that `f` would return for arguments of these types. Traces `f` and discards the
/// program.
#[track_caller]
pub fn eval_shape<S: ArgumentSpec, R: IntoTree>(
    spec: S,
    f: impl FnOnce(S::Tree) -> R,
) -> Result<Spec<R::Tree>, TraceErrors> {
    trace(spec, f).map(|traced| traced.results)
}

impl<A: Tree, R: Tree> Traced<A, R> {
    /// The program: the leaves of the arguments in, the leaves of the results out. Dead code and
    /// common subexpressions are removed.
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// The number of replicas that the program is for; `None` if it runs on any number.
    pub fn replicas(&self) -> Option<usize> {
        self.replicas
    }

    /// The types of the arguments.
    pub fn arguments(&self) -> &Spec<A> {
        &self.arguments
    }

    /// The types of the results.
    pub fn results(&self) -> &Spec<R> {
        &self.results
    }

    /// The paths of the results' leaves, in order.
    pub fn result_paths(&self) -> Vec<Path> {
        self.results.leaves().into_iter().map(|(path, _)| path).collect()
    }

    /// The readable text. Parameters and results have the paths of the arguments and results.
    pub fn readable(&self) -> Readable<'_> {
        let arguments = self.arguments.leaves();
        let paths = arguments.iter().map(|(path, _)| path.or("argument"));
        self.func
            .readable()
            .params(paths)
            .results(self.result_paths().iter().map(|path| path.or("")))
    }

    /// The warnings: code that works but is probably not intended.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The program under another name.
    pub fn named(mut self, name: &str) -> Self {
        self.func.name = name.to_string();
        self
    }

    /// The program over a batch: all arguments and results get a leading axis of extent `size`.
    pub fn vmap(&self, size: usize) -> Traced<A, R> {
        let func = vmap_func(&self.func, &VmapContext::new(size), self.func.params.len());
        Traced {
            func: transform::cse(&transform::dce(&func)),
            arguments: self.arguments.stacked(size),
            results: self.results.stacked(size),
            ..self.clone()
        }
    }

    /// Runs the program by the reference semantics: slow, exact, without a device. Takes one array
    /// for each leaf of the arguments and returns one for each leaf of the results.
    pub fn eval(&self, arguments: &[Array]) -> Result<Vec<Array>, EvalError> {
        self.check_arguments(arguments)?;
        Ok(self.func.eval(arguments))
    }

    /// Runs the program by the reference semantics, and names the first op, with the user's line,
    /// that produces a NaN from inputs without NaN. It is like `jax_debug_nans`, but compiles
    /// nothing: run a step of a training loop on the state that was saved before the NaN. A NaN
    /// that a later `select` discards is reported too: its gradient is often the mistake.
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// let slope = trace(f32([2]), |x| grad(x, |x| x.sqrt().sum() * 0.0))?;
    /// let origin = slope.first_nan(&[Array::floats(F32, [2], &[4.0, 0.0])])?.unwrap();
    /// assert_eq!((origin.op, origin.index), ("multiply", vec![1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_nan(&self, arguments: &[Array]) -> Result<Option<NotFinite>, EvalError> {
        self.check_arguments(arguments)?;
        let watched = self.func.eval_watched(arguments, &Watcher::default());
        Ok(watched.and_then(|watched| watched.first_nan))
    }

    fn check_arguments(&self, arguments: &[Array]) -> Result<(), EvalError> {
        let leaves = self.arguments.leaves();
        if leaves.len() != arguments.len() {
            return Err(EvalError::Count { expected: leaves.len(), got: arguments.len() });
        }
        for ((path, ty), array) in leaves.into_iter().zip(arguments) {
            if ty != *array.ty() {
                return Err(EvalError::Type {
                    path: path.under("arguments"),
                    expected: ty,
                    got: array.ty().clone(),
                });
            }
        }
        Ok(())
    }
}

impl<A: Tree, R: Tree> Clone for Traced<A, R> {
    fn clone(&self) -> Self {
        Traced {
            func: self.func.clone(),
            replicas: self.replicas,
            arguments: self.arguments.clone(),
            results: self.results.clone(),
            warnings: self.warnings.clone(),
        }
    }
}

impl<A: Tree, R: Tree> fmt::Display for Traced<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.func.fmt(f)
    }
}

impl<A: Tree, R: Tree> fmt::Debug for Traced<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.func)
    }
}

/// An error of [`Traced::eval`]: arguments that the traced function does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The number of arrays differs from the number of leaves.
    #[error("the arguments have {expected} leaves, got {got} arrays")]
    Count {
        /// The number of leaves of the arguments.
        expected: usize,
        /// The number of arrays that were given.
        got: usize,
    },
    /// The type of an array differs from its leaf's type.
    #[error("`{path}` is {expected}, got {got}")]
    Type {
        /// The path of the leaf.
        path: String,
        /// The type of the leaf.
        expected: TensorType,
        /// The type of the array.
        got: TensorType,
    },
}
