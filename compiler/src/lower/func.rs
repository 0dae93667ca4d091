//! Lowers a function's equations into the emitter's current block.

use super::{Hlo, HloRegion, HloResults, HloValue};
use crate::ir::Func;

/// Emits the equations of `func` in place, with `arguments` as its parameters; returns its results.
pub fn lower_func(hlo: &mut dyn Hlo, func: &Func, arguments: &[HloValue]) -> HloResults {
    assert_eq!(func.params.len(), arguments.len(), "one argument per parameter");
    let mut values: Vec<Option<HloValue>> = vec![None; func.types.len()];
    for (&param, &argument) in func.params.iter().zip(arguments) {
        values[param.index()] = Some(argument);
    }
    let read = |values: &[Option<HloValue>], var: crate::ir::Var| {
        values[var.index()].expect("defined before use")
    };
    for eqn in &func.eqns {
        let inputs: Vec<HloValue> = eqn.inputs.iter().map(|&var| read(&values, var)).collect();
        let types: Vec<_> = eqn.outputs.iter().map(|&var| func.ty(var).clone()).collect();
        hlo.set_loc(eqn.loc);
        let outputs = eqn.op.lower(hlo, &inputs, &types);
        debug_assert_eq!(
            outputs.len(),
            eqn.outputs.len(),
            "{}: one value per result",
            eqn.op.mnemonic()
        );
        for (&var, &value) in eqn.outputs.iter().zip(&outputs) {
            debug_assert_eq!(
                hlo.ty(value),
                *func.ty(var),
                "{}: lowered to another type",
                eqn.op.mnemonic()
            );
            values[var.index()] = Some(value);
        }
    }
    func.results.iter().map(|&var| read(&values, var)).collect()
}

/// Emits `func` as a separate region.
pub fn lower_region(hlo: &mut dyn Hlo, func: &Func) -> HloRegion {
    let arguments = hlo.begin_region(&func.param_types());
    let results = lower_func(hlo, func, &arguments);
    hlo.end_region(&results)
}
