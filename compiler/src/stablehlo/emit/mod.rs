//! The part of module emission that does not depend on the module's representation.
//!
//! The emitter implements the trait [`Hlo`], the interface for the ops' lowerings, and checks every
//! call. A [`Backend`] builds the module, and may trust its input.
//!
//! # Invariants
//! - An op reads only visible values: values that are defined in its own block, or in a block
//!   around it.
//! - A region is given to exactly one op.
//! - The first mistake is returned. After it the backend gets no more ops; blocks are still opened
//!   and closed in pairs.
//! - A constant is emitted once per block and value, and a private function once, regardless of the
//!   number of calls.

mod emitter;
mod symbols;

use super::spec::{ArgumentSpec, ModuleSpec};
use super::{Donation, EmitError};
use crate::ir::{Func, Loc};
use crate::lower::{Hlo, HloAttribute, lower_func};
use crate::types::TensorType;
use emitter::Emitter;

/// A representation of modules, into which the emitter builds.
pub trait Backend {
    /// A value: the result of an op or the argument of a block.
    type Value: Copy;

    /// A region of one finished block.
    type Region;

    /// Opens a block inside the innermost open block, if there is one; returns the values of its
    /// arguments.
    fn open(&mut self, arguments: &[BlockArgument<'_>]) -> Vec<Self::Value>;

    /// Closes the innermost open block. At least one block is open.
    fn close(&mut self) -> Self::Region;

    /// Appends an op to the innermost open block; returns its results.
    ///
    /// # Errors
    /// A sentence with the reason why the op cannot be built.
    fn append(&mut self, op: BackendOp<'_, Self>) -> Result<Vec<Self::Value>, String>;

    /// Appends a function to the module. No block is open.
    ///
    /// # Errors
    /// A sentence with the reason why the function cannot be built.
    fn function(&mut self, function: Function<'_>, body: Self::Region) -> Result<(), String>;
}

/// The origin of an op or of a block argument.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A place in the user's source; [`Loc::NONE`] is MLIR's unknown location.
    Source(Loc),
    /// The key path of an argument of the main function, which XLA shows as the parameter's name.
    Name(&'a str),
}

/// The type and the place of a block's argument.
#[derive(Clone, Copy, Debug)]
pub struct BlockArgument<'a> {
    /// The argument's type.
    pub ty: &'a TensorType,
    /// The argument's place.
    pub place: Place<'a>,
}

/// An op with visible operands, and with regions that no other op has.
pub struct BackendOp<'a, B: Backend + ?Sized> {
    /// The full name, such as `stablehlo.add`.
    pub name: &'static str,
    /// The operands, in order.
    pub operands: &'a [B::Value],
    /// The attributes by name, in the order of the op's lowering.
    pub attributes: &'a [(&'static str, HloAttribute)],
    /// The symbol of the attribute `callee`, only for `func.call`.
    pub callee: Option<&'a str>,
    /// The regions, in order.
    pub regions: Vec<B::Region>,
    /// The result types, in order.
    pub results: &'a [TensorType],
    /// The place in the user's source.
    pub loc: Loc,
}

/// The signature of a function of the module.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// The symbol, which needs no quotes.
    pub name: &'a str,
    /// The function that is emitted, for its types.
    pub func: &'a Func,
    /// The specification of the module, for the public function `main`; `None` for private
    /// functions.
    pub main: Option<&'a ModuleSpec>,
}

impl<'a> Function<'a> {
    /// `public` or `private`.
    #[must_use]
    pub fn visibility(&self) -> &'static str {
        if self.main.is_some() { "public" } else { "private" }
    }

    /// The attribute that lets XLA reuse the memory of an argument.
    #[must_use]
    pub fn argument_attribute(&self, argument: usize) -> Option<(&'static str, HloAttribute)> {
        match self.main?.arguments.get(argument)?.donation {
            Donation::Kept => None,
            Donation::Into(result) => {
                // The specification was checked: the result exists.
                let result = i32::try_from(result).unwrap_or(i32::MAX);
                Some(("tf.aliasing_output", HloAttribute::I32(result)))
            }
            Donation::Donor => Some(("jax.buffer_donor", HloAttribute::Bool(true))),
        }
    }

    /// The key path of a result, which tools for XLA's modules look for as `jax.result_info`.
    #[must_use]
    pub fn result_name(&self, result: usize) -> Option<&'a str> {
        let name = self.main?.result_names.get(result)?;
        (!name.is_empty()).then_some(name)
    }
}

/// Emits `func` as the public function `main` of the backend's module, followed by all called
/// functions.
///
/// # Errors
/// [`EmitError`] if the specification does not fit the function, or an op cannot be lowered.
pub fn emit<B: Backend>(backend: &mut B, func: &Func, spec: &ModuleSpec) -> Result<(), EmitError> {
    spec.check(func)?;
    let mut emitter = Emitter::new(backend, spec);
    function(&mut emitter, Function { name: "main", func, main: Some(spec) });
    // Emitting a function may call more functions; the list grows until it has every reachable
    // function.
    for index in 0.. {
        let Some((name, callee)) = emitter.callee(index) else {
            break;
        };
        function(&mut emitter, Function { name: &name, func: &callee, main: None });
    }
    emitter.finish()
}

fn function<B: Backend>(emitter: &mut Emitter<'_, B>, function: Function<'_>) {
    let func = function.func;
    emitter.set_loc(Loc::NONE);
    let types = func.param_types();
    let place = |i: usize| match function.main.and_then(|spec| spec.arguments.get(i)) {
        Some(ArgumentSpec { name, .. }) if !name.is_empty() => Place::Name(name),
        _ => Place::Source(Loc::NONE),
    };
    let arguments: Vec<_> =
        types.iter().enumerate().map(|(i, ty)| BlockArgument { ty, place: place(i) }).collect();
    let arguments = emitter.open(&arguments);
    let results = lower_func(emitter, func, &arguments);
    emitter.close_function(function, &results);
}
