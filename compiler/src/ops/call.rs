//! `call`: a function that is emitted once and called many times.

use super::TypeError;
use super::once::Once;
use super::op::{Op, OpRef, Operand, Pruned, Rule, Sample};
use crate::array::Array;
use crate::ir::{Builder, Func, Var};
use crate::lower::{Hlo, HloValue};
use crate::op_struct;
use crate::transform::{Mode, TransformError, VmapContext, deal, linearize};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body` once on the operands. Calls of equal bodies share one function in the emitted module.
    Call = "call" {
        /// What is called.
        body: Arc<Func>,
    }
}

impl Once for Call {
    fn body(&self) -> &Func {
        &self.body
    }

    fn around(&self, body: Func) -> OpRef {
        OpRef::new(Call { body: Arc::new(body) })
    }
}

impl Call {
    fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Option<Var>],
    ) -> Result<(Vec<Var>, Vec<Option<Var>>), TransformError> {
        let wrt: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        let split = linearize(&self.body, &wrt)?;
        let mut values = b.emit_ref(self.around(split.primal), inputs);
        let operands: Vec<Var> = values
            .split_off(self.body.results.len())
            .into_iter()
            .chain(tangents.iter().flatten().copied())
            .collect();
        let slopes = b.emit_ref(self.around(split.linear), &operands);
        Ok((values, deal(&split.tangent_results, slopes)))
    }
}

impl Op for Call {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        self.infer_once(inputs)
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        self.body.eval(inputs)
    }

    fn vmap(
        &self,
        b: &mut Builder,
        cx: &VmapContext,
        inputs: &[Var],
        batched: &[bool],
    ) -> Vec<(Var, bool)> {
        self.vmap_once(b, cx, inputs, batched)
    }

    fn jvp(
        &self,
        _: &mut Builder,
        _: &[Var],
        _: &[Var],
        _: &[Option<Var>],
    ) -> Rule<Vec<Option<Var>>> {
        Rule::TOGETHER
    }

    fn differentiate(
        &self,
        _: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Option<Var>],
    ) -> Rule<(Vec<Var>, Vec<Option<Var>>)> {
        match mode {
            Mode::Forward => self.forward_once(b, inputs, tangents).into(),
            Mode::Linearize => self.linearized(b, inputs, tangents).into(),
        }
    }

    fn transpose(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Option<Var>],
    ) -> Rule<Vec<Option<Var>>> {
        self.transpose_once(b, inputs, cotangents).into()
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> Vec<HloValue> {
        hlo.call(&self.body, inputs)
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        self.prune_once(used)
    }

    fn inline_body(&self) -> Option<Arc<Func>> {
        Some(self.body.clone())
    }
}

impl Call {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let mut b = Builder::new();
        let x = b.param(TensorType::new(DType::F32, [3]));
        let y = b.param(TensorType::new(DType::F32, [3]));
        let product = b.mul(x, y);
        let sine = b.sin(product);
        let body = Arc::new(b.finish("product_sine", vec![sine, y]));
        let inputs = vec![
            Array::floats(DType::F32, [3], &[0.1, 0.5, -2.0]),
            Array::floats(DType::F32, [3], &[1.0, -0.7, 0.2]),
        ];
        vec![Sample::new(Call { body }, inputs).tolerance(1e-6)]
    }
}
