//! `call`: a function that is emitted once and called many times.

use super::once::{Once, once_rules};
use super::op::{Op, OpRef, Sample};
use crate::array::Array;
use crate::ir::{Builder, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue};
use crate::op_struct;
use crate::transform::{TransformError, deal, given, linearize, with_given};
use crate::types::{DType, TensorType};
use crate::words;
use std::sync::Arc;

words! {
    /// The place of a called function in the program that XLA's CPU compiler makes. A platform that launches each
    /// kernel inlines every call ([`simplify::Options::launches`](crate::simplify::Options::launches)).
    CallForm {
        /// The body is inlined.
        Inlined = "INLINED",
        /// The body is fused with nothing outside: XLA copies cheap equations into each of their readers, but computes
        /// the body of a fenced call once for all readers of its results.
        Fenced = "FENCED",
        /// As [`CallForm::Fenced`]; and the body, loops included, is one kernel on one thread.
        Kernel = "KERNEL",
    }
}

op_struct! {
    /// Runs `body` once on the operands. Calls of equal bodies share one function in the emitted module.
    Call = "call" {
        /// The function that is called.
        body: Arc<Func>,
        /// Its place in the compiled program.
        form: CallForm,
    }
}

impl Once for Call {
    fn body(&self) -> &Func {
        &self.body
    }

    fn around(&self, body: Func) -> OpRef {
        OpRef::new(Call { body: Arc::new(body), form: self.form })
    }
}

impl Call {
    fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let split = linearize(&self.body, &given(tangents))?;
        let mut values = b.emit_ref(self.around(split.primal), inputs);
        let residuals = values.split_off(self.body.results.len());
        let slopes = b.emit_ref(self.around(split.linear), &with_given(residuals, tangents));
        Ok((values, deal(&split.tangent_results, slopes)))
    }
}

impl Op for Call {
    once_rules! {}

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        if self.form == CallForm::Inlined || results.len() != 1 {
            return hlo.call(&self.body, self.form, inputs);
        }
        // XLA's CPU compiler divides a large root of a function among threads, and fails if the call is
        // in the kernel of a loop. It does not divide a tuple.
        let mut pair = (*self.body).clone();
        pair.results.push(pair.results[0]);
        let mut results = hlo.call(&Arc::new(pair), self.form, inputs);
        results.truncate(1);
        results
    }

    fn inline_body(&self) -> Option<Arc<Func>> {
        (self.form == CallForm::Inlined).then(|| self.body.clone())
    }

    fn asks_platform(&self) -> bool {
        self.form != CallForm::Inlined
    }

    fn for_platform(&self, launches: bool, _: &[TensorType]) -> Option<Func> {
        (self.asks_platform() && launches).then(|| (*self.body).clone())
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
        let sample = |form| {
            let inputs = vec![
                Array::floats(DType::F32, [3], &[0.1, 0.5, -2.0]),
                Array::floats(DType::F32, [3], &[1.0, -0.7, 0.2]),
            ];
            Sample::new(Call { body: body.clone(), form }, inputs).tolerance(1e-6)
        };
        CallForm::ALL.iter().copied().map(sample).collect()
    }
}
