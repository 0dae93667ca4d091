//! Every op lowers, and to values of its types. Whether XLA then computes what `eval` says is tested where XLA is linked.

use super::{cases, check_all, func_of, types_of};
use podracer_compiler::lower::{HloAttribute, HloOp, HloRegion, HloValue, lower_func};
use podracer_compiler::ops::{CallForm, Convolution};
use podracer_compiler::{Func, Hlo, Loc, TensorType};
use std::sync::Arc;

/// An emitter that keeps types only.
#[derive(Default)]
struct Recorder {
    types: Vec<TensorType>,
    /// The number of values that existed when each open region began.
    open: Vec<usize>,
    regions: u32,
}

impl Recorder {
    fn values(&mut self, types: &[TensorType]) -> Vec<HloValue> {
        let first = self.types.len();
        self.types.extend_from_slice(types);
        (first..self.types.len()).map(|i| HloValue(u32::try_from(i).expect("few values"))).collect()
    }
}

impl Hlo for Recorder {
    fn op(&mut self, op: HloOp<'_>) -> Vec<HloValue> {
        assert!(op.name.contains('.'), "{} has no dialect", op.name);
        for (i, (name, _)) in op.attributes.iter().enumerate() {
            assert!(
                op.attributes[..i].iter().all(|(other, _)| other != name),
                "{} has {name} twice",
                op.name
            );
        }
        for (_, attribute) in &op.attributes {
            if let HloAttribute::Convolution { lhs, rhs, out } = attribute {
                // In the body of a loop XLA's CPU backend is slow at any other order.
                let usual = Convolution::new(lhs.len() - 2);
                assert_eq!([lhs, rhs, out], [&usual.lhs_axes, &usual.rhs_axes, &usual.out_axes]);
            }
        }
        self.values(op.results)
    }

    fn begin_region(&mut self, arguments: &[TensorType]) -> Vec<HloValue> {
        self.open.push(self.types.len());
        self.values(arguments)
    }

    fn end_region(&mut self, _: &[HloValue]) -> HloRegion {
        self.open.pop().expect("end_region closes an open region");
        self.regions += 1;
        HloRegion(self.regions)
    }

    fn call(&mut self, func: &Arc<Func>, _: CallForm, _: &[HloValue]) -> Vec<HloValue> {
        let types = func.result_types();
        self.values(&types)
    }

    fn ty(&self, value: HloValue) -> TensorType {
        self.types[value.0 as usize].clone()
    }

    fn set_loc(&mut self, _: Loc) {}

    fn loc(&self) -> Loc {
        Loc::NONE
    }

    fn replicas(&self) -> usize {
        1
    }

    fn processes(&self) -> usize {
        1
    }

    fn whole_loops(&self) -> bool {
        false
    }

    fn refuse(&mut self, op: &'static str, message: String) {
        panic!("{op}: {message}");
    }
}

#[test]
fn every_op_lowers_to_its_types() {
    check_all(cases(), |case| {
        let func = func_of(&case.sample.op, &types_of(&case.sample.inputs))?;
        let mut recorder = Recorder::default();
        let arguments = recorder.values(&func.param_types());
        let types: Vec<TensorType> = lower_func(&mut recorder, &func, &arguments)
            .iter()
            .map(|&value| recorder.ty(value))
            .collect();
        if types != func.result_types() {
            return Err(format!("lowers to {types:?}, not {:?}", func.result_types()));
        }
        if recorder.open.is_empty() { Ok(()) } else { Err("leaves a region open".to_string()) }
    });
}
