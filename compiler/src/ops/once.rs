//! The rules of ops that run one body once: each rule transforms the body and wraps it in an op of
//! the same kind.

use super::TypeError;
use super::op::{OpRef, Operand, Pruned};
use crate::ir::{Batched, Builder, Func, Slope, Slopes, Var};
use crate::transform::{
    TransformError, VmapContext, dce, deal, given, jvp, needed, transpose, vmap, with_given,
};
use crate::types::TensorType;

/// An op that runs a body once on its operands.
pub(super) trait Once {
    /// The body that is run.
    fn body(&self) -> &Func;

    /// The op of this kind around another body.
    fn around(&self, body: Func) -> OpRef;

    /// The types of the results, as `Op::infer`.
    fn infer_once(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, self.body().params.len())?;
        let params = self.body().param_types();
        match (0..inputs.len()).find(|&i| inputs[i] != params[i]) {
            Some(i) => Err(TypeError::new(format!(
                "operand {i} is {}, the function takes {}",
                inputs[i], params[i]
            ))),
            None => Ok(self.body().result_types()),
        }
    }

    /// The op over a batch, as `Op::vmap`.
    fn vmap_once(
        &self,
        b: &mut Builder,
        cx: &VmapContext,
        inputs: &[Var],
        batched: &[bool],
    ) -> Batched {
        let force = vec![false; self.body().results.len()];
        let (body, marks) = vmap(self.body(), cx, batched, &force);
        b.emit_ref(self.around(body), inputs).into_iter().zip(marks).collect()
    }

    /// Values and tangents in one op.
    fn forward_once(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let (body, marks) = jvp(self.body(), &given(tangents))?;
        let operands = with_given(inputs.iter().copied(), tangents);
        let mut values = b.emit_ref(self.around(body), &operands);
        let slopes = values.split_off(self.body().results.len());
        Ok((values, deal(&marks, slopes)))
    }

    /// The cotangents of the operands, as `Op::transpose`.
    fn transpose_once(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Slope],
    ) -> Result<Slopes, TransformError> {
        let marked: Vec<bool> = inputs.iter().map(Operand::is_linear).collect();
        let force = vec![false; marked.iter().filter(|is| **is).count()];
        let (body, sent) = transpose(self.body(), &marked, &given(cotangents), &force)?;
        let operands = with_given(inputs.iter().filter_map(Operand::known), cotangents);
        let mut values = b.emit_ref(self.around(body), &operands).into_iter();
        let mut sent = sent.into_iter();
        let mut take = |is: bool| {
            (is && sent.next().unwrap_or(false)).then(|| values.next().expect("one value per mark"))
        };
        Ok(marked.iter().map(|&is| take(is)).collect())
    }

    /// The op without the parts that no result in `used` needs.
    fn prune_once(&self, used: &[bool]) -> Option<Pruned> {
        let (body, inputs, outputs) = pruned(self.body(), used)?;
        Some(Pruned { op: self.around(body), inputs, outputs })
    }
}

/// A body without the parts that the marked results do not need, and the positions of the
/// parameters and results that it keeps. `None` if every part is needed.
pub(super) fn pruned(old: &Func, used: &[bool]) -> Option<(Func, Vec<usize>, Vec<usize>)> {
    let needed = needed(old, used);
    let inputs: Vec<usize> =
        (0..old.params.len()).filter(|&i| needed[old.params[i].index()]).collect();
    let outputs: Vec<usize> = (0..used.len()).filter(|&i| used[i]).collect();
    let mut body = old.clone();
    body.results = outputs.iter().map(|&i| body.results[i]).collect();
    let mut body = dce(&body);
    if inputs.len() == body.params.len() && outputs.len() == used.len() && body == *old {
        return None;
    }
    body.params = inputs.iter().map(|&i| body.params[i]).collect();
    Some((body, inputs, outputs))
}

/// The rules of an op that is [`Once`] and has a method `linearized`.
macro_rules! once_rules {
    () => {
        fn infer(
            &self,
            inputs: &[$crate::TensorType],
        ) -> Result<Vec<$crate::TensorType>, $crate::TypeError> {
            self.infer_once(inputs)
        }

        fn eval(&self, inputs: &[$crate::Array]) -> Vec<$crate::Array> {
            self.body.eval(inputs)
        }

        fn vmap(
            &self,
            b: &mut $crate::Builder,
            cx: &$crate::transform::VmapContext,
            inputs: &[$crate::Var],
            batched: &[bool],
        ) -> $crate::ir::Batched {
            self.vmap_once(b, cx, inputs, batched)
        }

        fn prune(&self, used: &[bool]) -> Option<$crate::ops::Pruned> {
            self.prune_once(used)
        }

        $crate::ops::rules::region_derivative! {
            Self::forward_once, Self::linearized, Self::transpose_once
        }
    };
}
pub(super) use once_rules;
