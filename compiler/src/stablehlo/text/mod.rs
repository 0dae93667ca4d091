//! The text backend. It keeps the module as a tree of blocks, because the number of a value in
//! MLIR's text depends on later ops. The regions of a block number their values after the block's
//! own values. [`print`] then writes the tree.
//!
//! # Invariants
//! - Values are numbered in the order of creation. One list holds their types, by that number.
//! - Types and attributes are written only here, and locations only in [`print`].

mod attribute;
mod dense;
mod float;
mod opaque;
mod print;
mod types;

pub use opaque::opaque;

use super::emit::{Backend, BackendOp, BlockArgument, Function, Place};
use super::{Module, ModuleSpec};
use crate::ir::Loc;
use crate::types::TensorType;
use attribute::dictionary;

/// Number of a value of the module, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(usize);

/// A place in the user's source, or an argument's name.
enum Location {
    Source(Loc),
    Name(String),
}

/// A block. Its arguments' values have consecutive numbers.
pub(super) struct Block {
    first_argument: usize,
    arguments: Vec<Location>,
    ops: Vec<Op>,
}

/// An op. Its results' values have consecutive numbers.
struct Op {
    name: &'static str,
    operands: Vec<Value>,
    /// ` {name = value, ...}` or an empty string.
    attributes: String,
    callee: Option<String>,
    regions: Vec<Block>,
    first_result: usize,
    results: usize,
    loc: Loc,
}

/// A function of the module.
struct FunctionText {
    name: String,
    visibility: &'static str,
    /// Attributes of each argument, as in [`Op::attributes`].
    argument_attributes: Vec<String>,
    results: Vec<TensorType>,
    /// Attributes of each result.
    result_attributes: Vec<String>,
    body: Block,
}

/// A module as a tree, with its open blocks.
#[derive(Default)]
pub(super) struct TextBackend {
    types: Vec<TensorType>,
    open: Vec<Block>,
    functions: Vec<FunctionText>,
}

impl TextBackend {
    /// The finished module.
    pub(super) fn print(&self, spec: &ModuleSpec) -> Module {
        Module {
            text: print::module(self, spec, false),
            text_with_locations: print::module(self, spec, true),
        }
    }

    /// Makes values of these types, with consecutive numbers.
    fn define<'t>(&mut self, types: impl Iterator<Item = &'t TensorType>) -> Vec<Value> {
        let first = self.types.len();
        self.types.extend(types.cloned());
        (first..self.types.len()).map(Value).collect()
    }
}

impl Backend for TextBackend {
    type Value = Value;
    type Region = Block;

    fn open(&mut self, arguments: &[BlockArgument<'_>]) -> Vec<Value> {
        let locations = arguments.iter().map(|argument| match argument.place {
            Place::Source(loc) => Location::Source(loc),
            Place::Name(name) => Location::Name(name.to_owned()),
        });
        let first_argument = self.types.len();
        self.open.push(Block { first_argument, arguments: locations.collect(), ops: Vec::new() });
        self.define(arguments.iter().map(|argument| argument.ty))
    }

    fn close(&mut self) -> Block {
        self.open.pop().expect("a block is open")
    }

    fn append(&mut self, op: BackendOp<'_, Self>) -> Result<Vec<Value>, String> {
        let attributes = dictionary(op.attributes)?;
        let first_result = self.types.len();
        let values = self.define(op.results.iter());
        let block = self.open.last_mut().ok_or("no block is open")?;
        block.ops.push(Op {
            name: op.name,
            operands: op.operands.to_vec(),
            attributes,
            callee: op.callee.map(str::to_owned),
            regions: op.regions,
            first_result,
            results: values.len(),
            loc: op.loc,
        });
        Ok(values)
    }

    fn function(&mut self, function: Function<'_>, body: Block) -> Result<(), String> {
        let (params, results) = (function.func.params.len(), function.func.result_types());
        let argument_attributes = (0..params).map(|i| match function.argument_attribute(i) {
            Some(attribute) => dictionary(&[attribute]),
            None => Ok(String::new()),
        });
        let result_attributes = (0..results.len()).map(|i| match function.result_name(i) {
            Some(name) => format!(" {{jax.result_info = {}}}", types::quoted(name)),
            None => String::new(),
        });
        let argument_attributes = argument_attributes.collect::<Result<_, _>>()?;
        let result_attributes = result_attributes.collect();
        self.functions.push(FunctionText {
            name: function.name.to_owned(),
            visibility: function.visibility(),
            argument_attributes,
            results,
            result_attributes,
            body,
        });
        Ok(())
    }
}
