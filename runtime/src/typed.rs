//! Functions of the DSL and external StableHLO as typed programs of a client.

use std::time::Instant;

use podracer_compiler::TensorType;
use podracer_dsl::prelude::{ArgumentSpec, IntoTree, Spec, Tree};

use crate::tree::{Host, Placement};
use crate::{CallError, Client, HostArguments, Jit, Module, Program, ProgramOptions, RuntimeError};

/// The typed program for the specs `S` and `Q`.
type Loaded<S, Q> = Program<<S as ArgumentSpec>::Tree, <Q as ArgumentSpec>::Tree>;

/// Typed programs of a [`Client`]: functions of the DSL, and StableHLO with declared types.
pub trait TypedPrograms {
    /// Wraps a function. It is traced and compiled at the first call with arguments of each type,
    /// and only run afterwards. `jax.jit`.
    ///
    /// ```no_run
    /// # use podracer_dsl::prelude::*;
    /// # use podracer_runtime::{CallError, Client, ClientOptions, TypedPrograms};
    /// # fn main() -> Result<(), CallError> {
    /// let client = Client::cpu(ClientOptions::default())?;
    /// let norm = client.jit(|(x, scale): (Tensor, Tensor)| (x * scale).norm());
    /// assert_eq!(norm.call(([3f32, 4.0], 2f32))?.item::<f32>()?, 10.0);
    /// # Ok(())
    /// # }
    /// ```
    fn jit<T: Tree, R: IntoTree, F: Fn(T) -> R>(&self, function: F) -> Jit<T, R, F>;

    /// Calls a function once on host values: traces, compiles and runs it, and copies the results
    /// to the host. [`TypedPrograms::jit`] keeps the compiled program.
    ///
    /// ```no_run
    /// # use podracer_dsl::prelude::*;
    /// # use podracer_runtime::{CallError, Client, ClientOptions, TypedPrograms};
    /// # fn main() -> Result<(), CallError> {
    /// let client = Client::cpu(ClientOptions::default())?;
    /// let y = client.call((vec![1f32, 2.0], 3f32), |(x, scale)| (x * scale).sin())?.to_vec::<f32>()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Jit::call`].
    fn call<X: HostArguments, R: IntoTree>(
        &self,
        arguments: X,
        function: impl Fn(X::Tree) -> R,
    ) -> Result<Host<R::Tree>, CallError>;

    /// Compiles StableHLO text (see [`Module::parse`]) as a typed program. The leaves of
    /// `arguments` and `results`, in their order, are the arguments and results of the module's
    /// function `main`. jax's order is the same: fields of a struct correspond to the entries of a
    /// dict, sorted by key.
    ///
    /// ```no_run
    /// # use podracer_dsl::prelude::*;
    /// # use podracer_runtime::{Client, ClientOptions, ProgramOptions, TypedPrograms};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::cpu(ClientOptions::default())?;
    /// let text = std::fs::read_to_string("policy.mlir")?;
    /// // f32[4], u32[2] -> i32[]
    /// let policy = client.load_stablehlo(text, (f32([4]), key()), i32([]), &ProgramOptions::default())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RuntimeError::StableHlo`]; [`RuntimeError::Signature`] if the types differ from the types
    /// in `main`, before anything is compiled; the errors of [`Client::compile`].
    fn load_stablehlo<S: ArgumentSpec, Q: ArgumentSpec>(
        &self,
        text: impl Into<String>,
        arguments: S,
        results: Q,
        options: &ProgramOptions,
    ) -> Result<Loaded<S, Q>, RuntimeError>;
}

impl TypedPrograms for Client {
    fn jit<T: Tree, R: IntoTree, F: Fn(T) -> R>(&self, function: F) -> Jit<T, R, F> {
        Jit::new(self.clone(), function)
    }

    fn call<X: HostArguments, R: IntoTree>(
        &self,
        arguments: X,
        function: impl Fn(X::Tree) -> R,
    ) -> Result<Host<R::Tree>, CallError> {
        self.jit(function).call(arguments)
    }

    fn load_stablehlo<S: ArgumentSpec, Q: ArgumentSpec>(
        &self,
        text: impl Into<String>,
        arguments: S,
        results: Q,
        options: &ProgramOptions,
    ) -> Result<Loaded<S, Q>, RuntimeError> {
        let start = Instant::now();
        let module = Module::parse(text)?;
        let (arguments, results) = (arguments.into_spec(), results.into_spec());
        same("argument", &arguments, &module.arguments)?;
        same("result", &results, &module.results)?;
        let placements = vec![Placement::Replicated; module.results.len()];
        let compiled = options.cache.compile(self, &module, &options.compile)?;
        Ok(Program::new(results, (placements, &options.compile), compiled, start.elapsed()))
    }
}

/// Compares the types that the caller declares with the types in `main`.
fn same<T: Tree>(what: &str, spec: &Spec<T>, actual: &[TensorType]) -> Result<(), RuntimeError> {
    let declared = spec.leaves();
    let signature = |place, declared, actual| RuntimeError::Signature { place, declared, actual };
    if declared.len() != actual.len() {
        let types: Vec<String> = actual.iter().map(TensorType::to_string).collect();
        let hint = match what {
            "argument" if actual.len() < declared.len() => {
                "; `jax.jit` leaves out arguments that are not used, unless its argument is `keep_unused=True`"
            }
            _ => "",
        };
        return Err(signature(
            format!("number of {what}s"),
            declared.len().to_string(),
            format!("{} ({}{hint})", actual.len(), types.join(", ")),
        ));
    }
    for (index, ((path, declared), actual)) in declared.iter().zip(actual).enumerate() {
        if declared != actual {
            let place = match path.0.is_empty() {
                true => format!("{what} {index}"),
                false => format!("{what} {index} (`{path}`)"),
            };
            return Err(signature(place, declared.to_string(), actual.to_string()));
        }
    }
    Ok(())
}
