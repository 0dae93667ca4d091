//! Test doubles: an op with a test function as its lowering, and an op that calls a function.

use podracer_compiler::ops::{CallForm, OpStruct};
use podracer_compiler::stablehlo::{Module, ModuleSpec};
use podracer_compiler::transform::VmapContext;
use podracer_compiler::{
    Array, Attributes, Builder, DType, Func, Hlo, HloAttribute, HloOp, HloRegion, HloValue, Loc,
    Op, Operand, Rule, TensorType, TypeError, Var, op_struct,
};
use podracer_mlir::agreement::{difference, modules};
use std::sync::Arc;

/// The lowering of a double: any function that emits.
pub type Lower = fn(&mut dyn Hlo, &[HloValue], &[TensorType]) -> Vec<HloValue>;

/// An op with a lowering that the test defines. Its name is its identity.
#[derive(Clone, Debug)]
pub struct Double {
    pub name: &'static str,
    pub results: Vec<TensorType>,
    pub lower: Lower,
}

op_struct! {
    /// An op that calls a function.
    CallDouble = "call_double" {
        /// The function that is called.
        body: Arc<Func>,
    }
}

macro_rules! no_other_rules {
    () => {
        fn eval(&self, _: &[Array]) -> Vec<Array> {
            unreachable!("doubles are only emitted")
        }
        fn vmap(
            &self,
            _: &mut Builder,
            _: &VmapContext,
            _: &[Var],
            _: &[bool],
        ) -> Vec<(Var, bool)> {
            unreachable!("doubles are only emitted")
        }
        fn jvp(
            &self,
            _: &mut Builder,
            _: &[Var],
            _: &[Var],
            _: &[Option<Var>],
        ) -> Rule<Vec<Option<Var>>> {
            Rule::None("doubles are only emitted")
        }
        fn transpose(
            &self,
            _: &mut Builder,
            _: &[Operand],
            _: &[Option<Var>],
        ) -> Rule<Vec<Option<Var>>> {
            Rule::None("doubles are only emitted")
        }
    };
}

impl OpStruct for Double {
    fn mnemonic(&self) -> &'static str {
        self.name
    }
    fn attributes(&self) -> Attributes {
        Attributes::none()
    }
}

impl Op for Double {
    fn infer(&self, _: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        Ok(self.results.clone())
    }
    fn lower(
        &self,
        hlo: &mut dyn Hlo,
        inputs: &[HloValue],
        results: &[TensorType],
    ) -> Vec<HloValue> {
        (self.lower)(hlo, inputs, results)
    }
    no_other_rules!();
}

impl Op for CallDouble {
    fn infer(&self, _: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        Ok(self.body.result_types())
    }
    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> Vec<HloValue> {
        hlo.call(&self.body, CallForm::Inlined, inputs)
    }
    no_other_rules!();
}

/// A tensor type.
pub fn ty(dtype: DType, shape: &[usize]) -> TensorType {
    TensorType::new(dtype, shape)
}

/// A function of one op.
pub fn func(
    name: &'static str,
    params: &[TensorType],
    results: &[TensorType],
    lower: Lower,
) -> Func {
    func_at(name, Loc::NONE, params, results, lower)
}

/// A function of one op that the user wrote at `loc`.
pub fn func_at(
    name: &'static str,
    loc: Loc,
    params: &[TensorType],
    results: &[TensorType],
    lower: Lower,
) -> Func {
    let mut b = Builder::new();
    let params: Vec<Var> = params.iter().map(|ty| b.param(ty.clone())).collect();
    b.set_loc(loc);
    let outputs = b.emit(Double { name, results: results.to_vec(), lower }, &params);
    b.finish(name, outputs)
}

/// The module of a function under the default specification.
pub fn module(func: &Func) -> Module {
    module_of(func, &ModuleSpec::new(func.name.clone(), func))
}

/// The module of a function, checked to be equal to MLIR's module.
pub fn module_of(func: &Func, spec: &ModuleSpec) -> Module {
    let modules = modules(func, spec).unwrap_or_else(|error| panic!("{}: {error}", func.name));
    assert_eq!(difference(&modules), None, "{}", func.name);
    let [written, _] = modules;
    written
}

/// One op with attributes and regions.
pub fn op(
    hlo: &mut dyn Hlo,
    name: &'static str,
    operands: &[HloValue],
    attributes: Vec<(&'static str, HloAttribute)>,
    regions: Vec<HloRegion>,
    results: &[TensorType],
) -> Vec<HloValue> {
    hlo.op(HloOp { name, operands, attributes, regions, results })
}

/// A region of two scalars that applies one op to them.
pub fn scalar_region(hlo: &mut dyn Hlo, name: &'static str, dtype: DType) -> HloRegion {
    let scalar = ty(dtype, &[]);
    let arguments = hlo.begin_region(&[scalar.clone(), scalar.clone()]);
    let results = op(hlo, name, &arguments, Vec::new(), Vec::new(), &[scalar]);
    hlo.end_region(&results)
}

/// Asserts that the text has every one of these parts.
#[track_caller]
pub fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "missing `{part}` in\n{text}");
    }
}
