//! The emitter: the trait [`Hlo`], implemented on top of a [`Backend`].

use super::symbols::Symbols;
use super::{Backend, BackendOp, BlockArgument, Function, Place};
use crate::array::Array;
use crate::ir::{Func, Loc};
use crate::lower::{Hlo, HloAttribute, HloOp, HloRegion, HloResults, HloValue, hlo_op};
use crate::ops::CallForm;
use crate::stablehlo::constant::portable_bools;
use crate::stablehlo::{EmitError, ModuleSpec};
use crate::types::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// A value: the backend's value, unless there was an error before, its type, and the block that
/// makes it visible.
struct Entry<V> {
    value: Option<V>,
    ty: TensorType,
    scope: u32,
}

/// An open block.
struct Scope {
    id: u32,
    /// Constants of this block by value, since lowerings request the same few values again and
    /// again.
    constants: HashMap<Arc<Array>, HloValue>,
}

/// Builds ops into the innermost open block of a backend.
pub(super) struct Emitter<'b, B: Backend> {
    backend: &'b mut B,
    replicas: usize,
    processes: usize,
    whole_loops: bool,
    loc: Loc,
    values: Vec<Entry<B::Value>>,
    regions: Vec<Option<B::Region>>,
    scopes: Vec<Scope>,
    next_scope: u32,
    symbols: Symbols,
    error: Option<EmitError>,
}

/// The parts of an op other than its operands and results.
struct Parts<'a, R> {
    attributes: &'a [(&'static str, HloAttribute)],
    callee: Option<&'a str>,
    regions: Vec<R>,
}

impl<R> Parts<'_, R> {
    fn none() -> Self {
        Parts { attributes: &[], callee: None, regions: Vec::new() }
    }
}

impl<'b, B: Backend> Emitter<'b, B> {
    /// An emitter into a backend without open blocks, for the replicas and processes in `spec`.
    pub(super) fn new(backend: &'b mut B, spec: &ModuleSpec) -> Self {
        Emitter {
            backend,
            replicas: spec.replicas,
            processes: spec.processes.calling(),
            whole_loops: spec.whole_loops,
            loc: Loc::NONE,
            values: Vec::new(),
            regions: Vec::new(),
            scopes: Vec::new(),
            next_scope: 0,
            symbols: Symbols::new(),
            error: None,
        }
    }

    /// The `index`-th function called so far with its symbol, in order of the first call.
    pub(super) fn callee(&self, index: usize) -> Option<(String, Arc<Func>)> {
        self.symbols.callee(index)
    }

    /// Opens a block; returns its arguments.
    pub(super) fn open(&mut self, arguments: &[BlockArgument<'_>]) -> HloResults {
        let values = self.backend.open(arguments);
        debug_assert_eq!(values.len(), arguments.len(), "one value per argument");
        self.scopes.push(Scope { id: self.next_scope, constants: HashMap::new() });
        self.next_scope += 1;
        let types = arguments.iter().map(|argument| argument.ty.clone());
        values.into_iter().zip(types).map(|(value, ty)| self.define(Some(value), ty)).collect()
    }

    /// Closes a function's block, which must be the only open block, and appends the function to
    /// the module.
    pub(super) fn close_function(&mut self, function: Function<'_>, results: &[HloValue]) {
        while self.scopes.len() > 1 {
            self.fail("region", "it is left open");
            self.scopes.pop();
            drop(self.backend.close());
        }
        let body = self.close("func.return", results);
        if self.error.is_none()
            && let Err(message) = self.backend.function(function, body)
        {
            self.fail("func.func", message);
        }
    }

    /// Closes the innermost block with a terminator that returns these values.
    fn close(&mut self, terminator: &'static str, results: &[HloValue]) -> B::Region {
        self.build(terminator, results, Parts::none(), &[]);
        self.scopes.pop();
        self.backend.close()
    }

    /// The first mistake, if there was one. Consumes the emitter; afterwards no unfinished block is
    /// left.
    pub(super) fn finish(mut self) -> Result<(), EmitError> {
        if self.regions.iter().any(Option::is_some) {
            self.fail("region", "it was given to no op");
        }
        self.error.take().map_or(Ok(()), Err)
    }

    fn fail(&mut self, op: &str, message: impl Into<String>) {
        let (op, place, message) = (op.to_string(), self.loc.to_string(), message.into());
        self.error.get_or_insert(EmitError::Lowering { op, place, message });
    }

    fn define(&mut self, value: Option<B::Value>, ty: TensorType) -> HloValue {
        let index = u32::try_from(self.values.len()).expect("fewer than 2^32 values");
        let scope = self.scopes.last().map_or(u32::MAX, |scope| scope.id);
        self.values.push(Entry { value, ty, scope });
        HloValue(index)
    }

    fn entry(&self, value: HloValue) -> &Entry<B::Value> {
        self.values.get(value.0 as usize).expect("values belong to the emitter that gave them")
    }

    /// The backend's value, if it is visible in the current block.
    fn operand(&self, value: HloValue) -> Option<B::Value> {
        let entry = self.entry(value);
        self.scopes.iter().any(|scope| scope.id == entry.scope).then_some(entry.value)?
    }

    /// Appends an op and returns its results. The results lack the backend's values if there was an
    /// error before or in this op.
    fn build(
        &mut self,
        name: &'static str,
        operands: &[HloValue],
        parts: Parts<'_, B::Region>,
        results: &[TensorType],
    ) -> HloResults {
        let mut values = vec![None; results.len()];
        if self.error.is_none() {
            match self.append(name, operands, parts, results) {
                Ok(built) => {
                    debug_assert_eq!(built.len(), results.len(), "one value per result");
                    values = built.into_iter().map(Some).collect();
                }
                Err(message) => self.fail(name, message),
            }
        }
        values.into_iter().zip(results).map(|(value, ty)| self.define(value, ty.clone())).collect()
    }

    fn append(
        &mut self,
        name: &'static str,
        operands: &[HloValue],
        parts: Parts<'_, B::Region>,
        results: &[TensorType],
    ) -> Result<Vec<B::Value>, String> {
        let Parts { attributes, callee, regions } = parts;
        let mut values = Vec::with_capacity(operands.len());
        for (i, &operand) in operands.iter().enumerate() {
            let value = self.operand(operand);
            values.push(value.ok_or_else(|| format!("operand {i} is not visible here"))?);
        }
        let (operands, loc) = (&values[..], self.loc);
        self.backend.append(BackendOp { name, operands, attributes, callee, regions, results, loc })
    }

    fn take_regions(&mut self, name: &str, regions: &[HloRegion]) -> Vec<B::Region> {
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
    fn constant(&mut self, array: &Arc<Array>, results: &[TensorType]) -> HloResults {
        const NAME: &str = "stablehlo.constant";
        if results != std::slice::from_ref(array.ty()) {
            self.fail(NAME, format!("its value has type {}", array.ty()));
        }
        if let Some(&value) = self.scopes.last().and_then(|scope| scope.constants.get(array)) {
            return vec![value];
        }
        let value = if let Some(bytes) = portable_bools(array) {
            let bytes = Arc::new(bytes);
            let value = self.constant(&bytes, std::slice::from_ref(bytes.ty()))[0];
            hlo_op(self, "stablehlo.convert", &[value], Vec::new(), array.ty())
        } else {
            let attributes = [("value", HloAttribute::Dense(array.clone()))];
            let parts = Parts { attributes: &attributes, ..Parts::none() };
            self.build(NAME, &[], parts, std::slice::from_ref(array.ty()))[0]
        };
        if let Some(scope) = self.scopes.last_mut() {
            scope.constants.insert(array.clone(), value);
        }
        vec![value]
    }
}

impl<B: Backend> Hlo for Emitter<'_, B> {
    fn op(&mut self, op: HloOp<'_>) -> HloResults {
        if let ("stablehlo.constant", [("value", HloAttribute::Dense(array))]) =
            (op.name, op.attributes.as_slice())
        {
            return self.constant(array, op.results);
        }
        let regions = self.take_regions(op.name, &op.regions);
        let parts = Parts { attributes: &op.attributes, callee: None, regions };
        self.build(op.name, op.operands, parts, op.results)
    }

    fn begin_region(&mut self, arguments: &[TensorType]) -> HloResults {
        let place = Place::Source(self.loc);
        let arguments: Vec<_> = arguments.iter().map(|ty| BlockArgument { ty, place }).collect();
        self.open(&arguments)
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

    fn call(&mut self, func: &Arc<Func>, form: CallForm, arguments: &[HloValue]) -> HloResults {
        let symbol = self.symbols.symbol(func);
        let words = match form {
            CallForm::Inlined => vec![],
            CallForm::Fenced => vec![("inlineable", "false")],
            CallForm::Kernel => vec![("inlineable", "false"), ("xla_cpu_small_call", "true")],
        };
        let attributes = [("mhlo.frontend_attributes", HloAttribute::Texts(words))];
        let attributes = if form == CallForm::Inlined { &[] } else { &attributes[..] };
        let parts = Parts { attributes, callee: Some(&symbol), ..Parts::none() };
        self.build("func.call", arguments, parts, &func.result_types())
    }

    fn ty(&self, value: HloValue) -> TensorType {
        self.entry(value).ty.clone()
    }

    fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    fn loc(&self) -> Loc {
        self.loc
    }

    fn replicas(&self) -> usize {
        self.replicas
    }

    fn processes(&self) -> usize {
        self.processes
    }

    fn whole_loops(&self) -> bool {
        self.whole_loops
    }

    fn refuse(&mut self, op: &'static str, message: String) {
        let place = self.loc.to_string();
        self.error.get_or_insert(EmitError::Refused { op, place, message });
    }
}

/// Regions and blocks are dropped after everything that may use their values. The regions that no
/// op took come first, older and thus inner regions before newer. The open blocks follow, from the
/// innermost outwards.
impl<B: Backend> Drop for Emitter<'_, B> {
    fn drop(&mut self) {
        for region in &mut self.regions {
            drop(region.take());
        }
        while self.scopes.pop().is_some() {
            drop(self.backend.close());
        }
    }
}
