//! The backend of MLIR's objects, made with melior.
//!
//! # Invariants
//! - A value does not outlive its block: MLIR keeps a list of uses in each value, so the emitter
//!   drops inner blocks before outer blocks. The emitter also checks that an op reads only visible
//!   values.
//! - Functions are appended to a module only after every function is finished.

use crate::attribute::{attribute, string};
use crate::types::{tensor_type, tensor_types};
use melior::Context;
use melior::ir::attribute::{
    ArrayAttribute, DictionaryAttribute, FlatSymbolRefAttribute, TypeAttribute,
};
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, Block, Identifier, Location, Operation, Region, RegionLike, Value};
use podracer_compiler::Loc;
use podracer_compiler::stablehlo::emit::{Backend, BackendOp, BlockArgument, Function, Place};

/// The open blocks, and the functions that are finished.
pub struct MlirBackend<'c> {
    context: &'c Context,
    open: Vec<Block<'c>>,
    functions: Vec<Operation<'c>>,
}

impl<'c> MlirBackend<'c> {
    pub fn new(context: &'c Context) -> Self {
        MlirBackend { context, open: Vec::new(), functions: Vec::new() }
    }

    /// The functions of the module, in order.
    pub fn into_functions(self) -> Vec<Operation<'c>> {
        self.functions
    }

    fn source(&self, loc: Loc) -> Location<'c> {
        match loc.parts() {
            Some((file, line, column)) => {
                Location::new(self.context, file, line as usize, column as usize)
            }
            None => Location::unknown(self.context),
        }
    }

    fn place(&self, place: Place<'_>) -> Location<'c> {
        match place {
            Place::Source(loc) => self.source(loc),
            Place::Name(name) => {
                Location::name(self.context, name, Location::unknown(self.context))
            }
        }
    }

    fn named(&self, name: &str, attribute: Attribute<'c>) -> (Identifier<'c>, Attribute<'c>) {
        (Identifier::new(self.context, name), attribute)
    }

    /// A dictionary of no attribute or one.
    fn dictionary(&self, attribute: Option<(&str, Attribute<'c>)>) -> Attribute<'c> {
        let named: Vec<_> =
            attribute.into_iter().map(|(name, value)| self.named(name, value)).collect();
        DictionaryAttribute::new(self.context, &named).into()
    }
}

impl<'c> Backend for MlirBackend<'c> {
    type Value = Value<'c, 'c>;
    type Region = Region<'c>;

    fn open(&mut self, arguments: &[BlockArgument<'_>]) -> Vec<Value<'c, 'c>> {
        let types: Vec<_> = arguments
            .iter()
            .map(|argument| (tensor_type(self.context, argument.ty), self.place(argument.place)))
            .collect();
        let block = Block::new(&types);
        let values =
            (0..types.len()).filter_map(|i| block.argument(i).ok()).map(Value::from).collect();
        self.open.push(block);
        values
    }

    fn close(&mut self) -> Region<'c> {
        let region = Region::new();
        if let Some(block) = self.open.pop() {
            region.append_block(block);
        }
        region
    }

    fn append(&mut self, op: BackendOp<'_, Self>) -> Result<Vec<Value<'c, 'c>>, String> {
        let mut attributes = Vec::with_capacity(op.attributes.len() + 1);
        for (name, value) in op.attributes {
            let value = attribute(self.context, value)
                .map_err(|message| format!("attribute `{name}`: {message}"))?;
            attributes.push(self.named(name, value));
        }
        if let Some(callee) = op.callee {
            let callee = FlatSymbolRefAttribute::new(self.context, callee).into();
            attributes.push(self.named("callee", callee));
        }
        let operation = OperationBuilder::new(op.name, self.source(op.loc))
            .add_operands(op.operands)
            .add_attributes(&attributes)
            .add_regions_vec(op.regions)
            .add_results(&tensor_types(self.context, op.results))
            .build()
            .map_err(|error| format!("MLIR does not build it: {error}"))?;
        let block = self.open.last().ok_or("no block is open")?;
        let operation = block.append_operation(operation);
        let results = (0..op.results.len()).map(|i| operation.result(i).map(Value::from));
        results.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    fn function(&mut self, function: Function<'_>, body: Region<'c>) -> Result<(), String> {
        let context = self.context;
        let inputs = function.func.param_types();
        let outputs = function.func.result_types();
        let ty = FunctionType::new(
            context,
            &tensor_types(context, &inputs),
            &tensor_types(context, &outputs),
        );
        let mut attributes = vec![
            self.named("sym_name", string(context, function.name)),
            self.named("sym_visibility", string(context, function.visibility())),
            self.named("function_type", TypeAttribute::new(ty.into()).into()),
        ];
        let mut arguments = Vec::with_capacity(inputs.len());
        for i in 0..inputs.len() {
            let donation = function.argument_attribute(i);
            let donation =
                donation.map(|(name, value)| attribute(context, &value).map(|value| (name, value)));
            arguments.push(donation.transpose()?);
        }
        let name =
            |i| function.result_name(i).map(|name| ("jax.result_info", string(context, name)));
        let results: Vec<_> = (0..outputs.len()).map(name).collect();
        for (name, list) in [("arg_attrs", arguments), ("res_attrs", results)] {
            if list.iter().any(Option::is_some) {
                let list: Vec<_> =
                    list.into_iter().map(|attribute| self.dictionary(attribute)).collect();
                attributes.push(self.named(name, ArrayAttribute::new(context, &list).into()));
            }
        }
        let operation = OperationBuilder::new("func.func", Location::unknown(context))
            .add_attributes(&attributes)
            .add_regions([body])
            .build()
            .map_err(|error| format!("MLIR does not build it: {error}"))?;
        self.functions.push(operation);
        Ok(())
    }
}
