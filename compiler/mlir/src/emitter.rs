//! The emitter: the compiler's trait `Hlo`, implemented with melior.
//!
//! # Invariants
//! - A value is used only where it is visible: in the block that defines it or in a region opened inside that block.
//!   MLIR would find a violation, but only after building use lists that outlive their values, so it is checked first.
//! - A region is given to exactly one op.
//! - After the first mistake nothing more is built: values are then types only, and the mistake is what comes back.

use crate::MlirError;
use crate::attribute::attribute;
use crate::constant::portable_bools;
use crate::types::{tensor_type, tensor_types};
use melior::Context;
use melior::ir::attribute::{FlatSymbolRefAttribute, StringAttribute};
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationBuilder;
use melior::ir::{Attribute, Block, Identifier, Location, Region, RegionLike, Value};
use podracer_compiler::lower::hlo_op;
use podracer_compiler::{
    Array, Func, Hlo, HloAttribute, HloOp, HloRegion, HloValue, Loc, TensorType,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A value: the MLIR one, unless a mistake came before, its type, and the block it is visible in.
struct Entry<'c> {
    value: Option<Value<'c, 'c>>,
    ty: TensorType,
    scope: u32,
}

/// A block under construction.
struct Scope<'c> {
    id: u32,
    block: Block<'c>,
    /// Constants of this block by value, since lowerings ask for the same few again and again.
    constants: HashMap<Arc<Array>, HloValue>,
}

/// A private function that has been called and is to be emitted under this name.
pub struct Callee {
    pub name: String,
    pub func: Arc<Func>,
}

/// Builds ops into the innermost open block.
pub struct Emitter<'c> {
    context: &'c Context,
    replicas: usize,
    location: Location<'c>,
    place: Loc,
    values: Vec<Entry<'c>>,
    regions: Vec<Option<Region<'c>>>,
    scopes: Vec<Scope<'c>>,
    next_scope: u32,
    callees: Vec<Callee>,
    callee_by_pointer: HashMap<*const Func, usize>,
    callee_by_value: HashMap<Arc<Func>, usize>,
    names: HashSet<String>,
    error: Option<MlirError>,
}

impl<'c> Emitter<'c> {
    /// An emitter with no open block.
    pub fn new(context: &'c Context, replicas: usize) -> Self {
        Emitter {
            context,
            replicas,
            location: Location::unknown(context),
            place: Loc::NONE,
            values: Vec::new(),
            regions: Vec::new(),
            scopes: Vec::new(),
            next_scope: 0,
            callees: Vec::new(),
            callee_by_pointer: HashMap::new(),
            callee_by_value: HashMap::new(),
            names: HashSet::from(["main".to_string()]),
            error: None,
        }
    }

    /// The `index`-th function called so far, in order of the first call.
    pub fn callee(&self, index: usize) -> Option<&Callee> {
        self.callees.get(index)
    }

    /// Opens a block with an argument of each type at its location.
    pub fn open(&mut self, types: &[TensorType], locations: &[Location<'c>]) -> Vec<HloValue> {
        let arguments: Vec<_> = types
            .iter()
            .zip(locations)
            .map(|(ty, &location)| (tensor_type(self.context, ty), location))
            .collect();
        let block = Block::new(&arguments);
        let id = self.next_scope;
        self.next_scope += 1;
        let values: Vec<Value<'c, 'c>> =
            (0..types.len()).filter_map(|i| block.argument(i).ok()).map(Value::from).collect();
        self.scopes.push(Scope { id, block, constants: HashMap::new() });
        values
            .into_iter()
            .zip(types)
            .map(|(value, ty)| self.define(Some(value), ty.clone()))
            .collect()
    }

    /// Closes a function's block, which must be the only open one.
    pub fn close_function(&mut self, results: &[HloValue]) -> Region<'c> {
        while self.scopes.len() > 1 {
            self.fail("region", "it is left open");
            self.scopes.pop();
        }
        self.close("func.return", results)
    }

    /// Closes the innermost block with a terminator that returns these values.
    fn close(&mut self, terminator: &'static str, results: &[HloValue]) -> Region<'c> {
        self.build(terminator, results, &[], Vec::new(), &[]);
        let region = Region::new();
        if let Some(scope) = self.scopes.pop() {
            region.append_block(scope.block);
        }
        region
    }

    /// The first mistake, if there was one. Consumes the emitter, after which no unfinished block is left.
    pub fn finish(mut self) -> Result<(), MlirError> {
        if self.regions.iter().any(Option::is_some) {
            self.fail("region", "it was given to no op");
        }
        self.error.take().map_or(Ok(()), Err)
    }

    /// True once a lowering made a mistake; [`Self::finish`] returns it.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn fail(&mut self, op: &str, message: impl Into<String>) {
        let place = self.place.to_string();
        self.error.get_or_insert(MlirError::Lowering {
            op: op.to_string(),
            place,
            message: message.into(),
        });
    }

    fn define(&mut self, value: Option<Value<'c, 'c>>, ty: TensorType) -> HloValue {
        let index = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        let scope = self.scopes.last().map_or(u32::MAX, |scope| scope.id);
        self.values.push(Entry { value, ty, scope });
        HloValue(index)
    }

    fn entry(&self, value: HloValue) -> &Entry<'c> {
        self.values.get(value.0 as usize).expect("values belong to the emitter that gave them")
    }

    /// The MLIR value, if it is visible here.
    fn operand(&self, value: HloValue) -> Option<Value<'c, 'c>> {
        let entry = self.entry(value);
        self.scopes.iter().any(|scope| scope.id == entry.scope).then_some(entry.value)?
    }

    /// Appends an op; gives its results, without MLIR values if a mistake was made before or here.
    fn build(
        &mut self,
        name: &'static str,
        operands: &[HloValue],
        attributes: &[(&'static str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
        results: &[TensorType],
    ) -> Vec<HloValue> {
        let built = if self.failed() {
            None
        } else {
            self.append(name, operands, attributes, regions, results)
        };
        let values = built.unwrap_or_else(|| vec![None; results.len()]);
        values.into_iter().zip(results).map(|(value, ty)| self.define(value, ty.clone())).collect()
    }

    fn append(
        &mut self,
        name: &'static str,
        operands: &[HloValue],
        attributes: &[(&'static str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
        results: &[TensorType],
    ) -> Option<Vec<Option<Value<'c, 'c>>>> {
        let mut values = Vec::with_capacity(operands.len());
        for (i, &operand) in operands.iter().enumerate() {
            let Some(value) = self.operand(operand) else {
                self.fail(name, format!("operand {i} is not visible here"));
                return None;
            };
            values.push(value);
        }
        let named: Vec<_> = attributes
            .iter()
            .map(|&(name, attribute)| (Identifier::new(self.context, name), attribute))
            .collect();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(&values)
            .add_attributes(&named)
            .add_regions_vec(regions)
            .add_results(&tensor_types(self.context, results))
            .build();
        let (Ok(operation), Some(scope)) = (operation, self.scopes.last()) else {
            self.fail(name, "MLIR does not build it");
            return None;
        };
        let operation = scope.block.append_operation(operation);
        Some((0..results.len()).map(|i| operation.result(i).ok().map(Value::from)).collect())
    }

    fn take_regions(&mut self, name: &str, regions: &[HloRegion]) -> Vec<Region<'c>> {
        let mut taken = Vec::with_capacity(regions.len());
        for region in regions {
            match self.regions.get_mut(region.0 as usize).and_then(Option::take) {
                Some(region) => taken.push(region),
                None => self.fail(name, "it takes a region that another op has"),
            }
        }
        taken
    }

    /// `stablehlo.constant`, once per block and value.
    fn constant(&mut self, array: &Arc<Array>, results: &[TensorType]) -> Vec<HloValue> {
        if results != std::slice::from_ref(array.ty()) {
            self.fail("stablehlo.constant", format!("its value has type {}", array.ty()));
        }
        if let Some(&value) = self.scopes.last().and_then(|scope| scope.constants.get(array)) {
            return vec![value];
        }
        let value = if let Some(bytes) = portable_bools(array) {
            let bytes = Arc::new(bytes);
            let value = self.constant(&bytes, std::slice::from_ref(bytes.ty()))[0];
            hlo_op(self, "stablehlo.convert", &[value], Vec::new(), array.ty())
        } else {
            match attribute(self.context, &HloAttribute::Dense(array.clone())) {
                Ok(attribute) => self.build(
                    "stablehlo.constant",
                    &[],
                    &[("value", attribute)],
                    Vec::new(),
                    results,
                )[0],
                Err(message) => {
                    self.fail("stablehlo.constant", message);
                    self.define(None, array.ty().clone())
                }
            }
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.constants.insert(array.clone(), value);
        }
        vec![value]
    }

    /// The symbol of a private function, which is emitted later if this is its first call.
    fn symbol(&mut self, func: &Arc<Func>) -> String {
        let pointer = Arc::as_ptr(func);
        let known = self
            .callee_by_pointer
            .get(&pointer)
            .or_else(|| self.callee_by_value.get(func))
            .copied();
        let index = known.unwrap_or_else(|| {
            let name = self.fresh_name(&func.name);
            self.callees.push(Callee { name, func: func.clone() });
            self.callee_by_value.insert(func.clone(), self.callees.len() - 1);
            self.callees.len() - 1
        });
        // Only a pointer that `callees` keeps alive may serve as a key: another's address may be used again.
        if known.is_none() {
            self.callee_by_pointer.insert(pointer, index);
        }
        self.callees[index].name.clone()
    }

    /// A name that reads like the given one, needs no quotes in MLIR's text and is not taken.
    fn fresh_name(&mut self, name: &str) -> String {
        let readable: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = if readable.starts_with(|c: char| c.is_ascii_alphabetic()) {
            readable
        } else {
            format!("f{readable}")
        };
        let mut candidate = base.clone();
        for number in 1.. {
            if self.names.insert(candidate.clone()) {
                break;
            }
            candidate = format!("{base}_{number}");
        }
        candidate
    }
}

impl Hlo for Emitter<'_> {
    fn op(&mut self, op: HloOp<'_>) -> Vec<HloValue> {
        if let ("stablehlo.constant", [("value", HloAttribute::Dense(array))]) =
            (op.name, op.attributes.as_slice())
        {
            return self.constant(array, op.results);
        }
        let mut attributes = Vec::with_capacity(op.attributes.len());
        for (name, value) in &op.attributes {
            match attribute(self.context, value) {
                Ok(attribute) => attributes.push((*name, attribute)),
                Err(message) => self.fail(op.name, format!("attribute `{name}`: {message}")),
            }
        }
        let regions = self.take_regions(op.name, &op.regions);
        self.build(op.name, op.operands, &attributes, regions, op.results)
    }

    fn begin_region(&mut self, arguments: &[TensorType]) -> Vec<HloValue> {
        self.open(arguments, &vec![self.location; arguments.len()])
    }

    fn end_region(&mut self, results: &[HloValue]) -> HloRegion {
        // The outermost block is the function's.
        let region = if self.scopes.len() > 1 {
            Some(self.close("stablehlo.return", results))
        } else {
            self.fail("stablehlo.return", "no region is open");
            None
        };
        self.regions.push(region);
        HloRegion(u32::try_from(self.regions.len() - 1).expect("fewer than 2^32 regions"))
    }

    fn call(&mut self, func: &Arc<Func>, arguments: &[HloValue]) -> Vec<HloValue> {
        let symbol = self.symbol(func);
        let callee = FlatSymbolRefAttribute::new(self.context, &symbol).into();
        self.build("func.call", arguments, &[("callee", callee)], Vec::new(), &func.result_types())
    }

    fn ty(&self, value: HloValue) -> TensorType {
        self.entry(value).ty.clone()
    }

    fn set_loc(&mut self, loc: Loc) {
        self.place = loc;
        self.location = match loc.parts() {
            Some((file, line, column)) => {
                Location::new(self.context, file, line as usize, column as usize)
            }
            None => Location::unknown(self.context),
        };
    }

    fn loc(&self) -> Loc {
        self.place
    }

    fn replicas(&self) -> usize {
        self.replicas
    }

    fn refuse(&mut self, op: &'static str, message: String) {
        let place = self.place.to_string();
        self.error.get_or_insert(MlirError::Refused { op, place, message });
    }
}

/// Blocks are dropped after everything that may use their values: first the regions that no op took, older and thus
/// inner ones first, then the open blocks from the innermost outwards.
impl Drop for Emitter<'_> {
    fn drop(&mut self) {
        for region in &mut self.regions {
            drop(region.take());
        }
        while self.scopes.pop().is_some() {}
    }
}

/// A string attribute.
pub fn string<'c>(context: &'c Context, text: &str) -> Attribute<'c> {
    StringAttribute::new(context, text).into()
}
