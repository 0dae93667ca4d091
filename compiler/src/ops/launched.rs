//! `launched`: tests if the program is compiled for a platform that launches each kernel.

use super::rules::nullary_derivative;
use super::{Op, Sample, TypeError};
use crate::array::Array;
use crate::ir::{Batched, Builder, Var};
use crate::lower::{Hlo, HloResults, HloValue, hlo_constant};
use crate::op_struct;
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// True if kernels are launched one by one
    /// ([`simplify::Options::launches`](crate::simplify::Options::launches)), as on a GPU,
    /// otherwise false. No operands; the result is `bool[]`.
    ///
    /// Simplification knows the value, and replaces a [`Cond`](super::Cond) with this choice by the
    /// chosen branch. Without simplification it is false, as in the reference semantics.
    Launched = "launched" {}
}

impl Launched {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        vec![Sample::new(Launched {}, vec![])]
    }
}

fn no() -> Array {
    Array::bools([], &[false])
}

impl Op for Launched {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 0)?;
        Ok(vec![TensorType::scalar(DType::Bool)])
    }

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        vec![no()]
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, _: &[Var], _: &[bool]) -> Batched {
        vec![(b.emit1(Launched {}, &[]), false)]
    }

    nullary_derivative! {}

    fn asks_platform(&self) -> bool {
        true
    }

    fn of_platform(&self, launches: bool) -> Option<Scalar> {
        Some(Scalar::Bool(launches))
    }

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], _: &[TensorType]) -> HloResults {
        vec![hlo_constant(hlo, Arc::new(no()))]
    }
}
