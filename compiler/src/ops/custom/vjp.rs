//! `custom_vjp`: a function with a user-defined backward pass.

use super::{CAPTURED, at_most, check, first_results, floats};
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::ops::op::effect_of;
use crate::ops::rules::{no_jvp, no_transpose};
use crate::ops::{Effect, Op, OpRef, Operand, Rule, Sample, TypeError};
use crate::transform::{Mode, VmapContext, deal, vmap, with_given};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Returns the results of `forward` that are not residuals. Its reverse derivative is
    /// `backward`, which reads the residuals.
    CustomVjp = "custom_vjp" {
        /// The forward function: arguments ++ captures -> results ++ residuals.
        forward: Arc<Func>,
        /// The backward function: residuals ++ cotangents of the float results ++ captures -> cotangents of the float
        /// arguments.
        backward: Arc<Func>,
        /// The number of residuals.
        residuals: usize,
        /// The number of operands that are captures.
        captures: usize,
    }
}

const NO_FORWARD: &str =
    "it has a reverse derivative only; use `custom_jvp`: its rule serves forward and reverse mode";

impl CustomVjp {
    fn arguments(&self) -> usize {
        self.forward.params.len() - self.captures
    }

    fn results(&self) -> usize {
        self.forward.results.len() - self.residuals
    }

    fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> (Vec<Var>, Slopes) {
        let mut values = b.inline(&self.forward, inputs);
        let residuals = values.split_off(self.results());
        let (arguments, captures) = inputs.split_at(self.arguments());
        let wanted = arguments
            .iter()
            .zip(tangents)
            .filter(|(argument, _)| b.ty(**argument).dtype.is_float())
            .map(|(_, tangent)| tangent.is_some());
        let wanted: Vec<bool> = wanted.collect();

        // The backward pass for the arguments that have a tangent; values other than cotangents
        // come first.
        let mut backward = (*self.backward).clone();
        let mut keep = wanted.into_iter();
        backward.results.retain(|_| keep.next().unwrap_or(false));
        backward.params[self.residuals..].rotate_right(captures.len());
        let pullback =
            Pullback { backward: Arc::new(backward), known: residuals.len() + captures.len() };
        let known = residuals.into_iter().chain(captures.iter().copied());
        let operands = with_given(known, tangents);
        let slopes = b.emit(pullback, &operands);
        let is_float: Vec<bool> =
            values.iter().map(|&value| b.ty(value).dtype.is_float()).collect();
        (values, deal(&is_float, slopes))
    }
}

impl Op for CustomVjp {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let forward = &self.forward;
        at_most("captures", self.captures, "operands", forward.params.len())?;
        at_most("residuals", self.residuals, "results", forward.results.len())?;
        check("the operands", inputs, &self.forward.param_types())?;
        let mut results = self.forward.result_types();
        let residuals = results.split_off(self.results());
        let (arguments, captures) = inputs.split_at(self.arguments());
        let wanted = [residuals, floats(&results), captures.to_vec()].concat();
        let backward = &self.backward;
        check("the operands of the pass back", &backward.param_types(), &wanted)?;
        let wanted = floats(arguments);
        check("the results of the pass back", &backward.result_types(), &wanted)?;
        Ok(results)
    }

    fn effect(&self) -> Effect {
        effect_of(&[&self.forward])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let mut results = self.forward.eval(inputs);
        results.truncate(self.results());
        results
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let (forward, marks) =
            vmap(&self.forward, cx, batched, &vec![false; self.forward.results.len()]);
        // A cotangent is batched if its result is batched; a cotangent of an unbatched argument is
        // summed over the batch.
        let (results, residuals) = marks.split_at(self.results());
        let (arguments, captures) = batched.split_at(self.arguments());
        let types = self.forward.result_types();
        let cotangents = (0..results.len()).filter(|&i| types[i].dtype.is_float());
        let flags: Vec<bool> = residuals
            .iter()
            .copied()
            .chain(cotangents.map(|i| results[i]))
            .chain(captures.iter().copied())
            .collect();
        let params = self.forward.param_types();
        let sent: Vec<bool> = (0..arguments.len())
            .filter(|&i| params[i].dtype.is_float())
            .map(|i| arguments[i])
            .collect();
        let (backward, marks_back) = vmap(&self.backward, cx, &flags, &sent);
        let mut body = Builder::new();
        let operands = body.add_params(backward.param_types());
        let summed: Vec<Var> = body
            .inline(&backward, &operands)
            .iter()
            .zip(marks_back.iter().zip(&sent))
            .map(
                |(&var, (&is, &wanted))| {
                    if is && !wanted { body.reduce_sum(var, &[0]) } else { var }
                },
            )
            .collect();
        let op = CustomVjp {
            forward: Arc::new(forward),
            backward: Arc::new(body.finish(backward.name.clone(), summed)),
            ..self.clone()
        };
        let results = results.to_vec();
        b.emit(op, inputs).into_iter().zip(results).collect()
    }

    no_jvp! { NO_FORWARD }

    fn differentiate(
        &self,
        _: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<(Vec<Var>, Slopes)> {
        if tangents[self.arguments()..].iter().any(Option::is_some) {
            return Rule::None(CAPTURED);
        }
        match mode {
            Mode::Forward => Rule::None(NO_FORWARD),
            Mode::Linearize => Rule::Some(self.linearized(b, inputs, tangents)),
        }
    }

    no_transpose! { "it is not linear: only its derivative is" }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        lower_func(hlo, &first_results(&self.forward, self.results()), inputs)
    }

    fn settled(&self, _: &[TensorType]) -> Option<Func> {
        Some(first_results(&self.forward, self.results()))
    }
}

op_struct! {
    /// The linear function with `backward` as its transpose. It exists only between `linearize` and
    /// `transpose`: its forward direction is not defined.
    Pullback = "custom_vjp" {
        /// The backward function: known operands ++ cotangents of the results -> cotangents of the other operands.
        backward: Arc<Func>,
        /// The number of known operands.
        known: usize,
    }
}

impl Op for Pullback {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let mut params = self.backward.param_types();
        let results = params.split_off(self.known);
        let wanted = [params, self.backward.result_types()].concat();
        check("the operands", inputs, &wanted)?;
        Ok(results)
    }

    fn eval(&self, _: &[Array]) -> Vec<Array> {
        unreachable!("{NO_FORWARD}")
    }

    fn vmap(&self, _: &mut Builder, _: &VmapContext, _: &[Var], _: &[bool]) -> Batched {
        unreachable!("{NO_FORWARD}")
    }

    no_jvp! { NO_FORWARD }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let mut operands: Vec<Var> = inputs.iter().filter_map(Operand::known).collect();
        debug_assert_eq!(operands.len(), self.known, "tangents are linear");
        let types = self.backward.param_types().split_off(self.known);
        for (ty, &cotangent) in types.iter().zip(cotangents) {
            operands.push(cotangent.unwrap_or_else(|| b.zeros(ty)));
        }
        let sent = b.inline(&self.backward, &operands);
        let none = vec![None; self.known];
        Rule::Some(none.into_iter().chain(sent.into_iter().map(Some)).collect())
    }

    fn lower(&self, hlo: &mut dyn Hlo, _: &[HloValue], results: &[TensorType]) -> HloResults {
        hlo.refuse(Self::MNEMONIC, NO_FORWARD.to_string());
        let zero = |ty: &TensorType| {
            crate::lower::hlo_splat(hlo, ty, crate::scalar::Scalar::zero(ty.dtype))
        };
        results.iter().map(zero).collect()
    }

    fn transpose_only(&self) -> Option<&'static str> {
        Some(NO_FORWARD)
    }
}

impl CustomVjp {
    /// Examples for the generic tests: the sine of x times a captured c, with a hand-written
    /// backward pass.
    pub fn samples() -> Vec<Sample> {
        let ty = TensorType::new(DType::F32, [2]);
        let mut b = Builder::new();
        let (x, n) = (b.param(ty.clone()), b.param(TensorType::scalar(DType::I32)));
        let c = b.param(ty.clone());
        let scaled = b.mul(x, c);
        let (sine, cosine) = (b.sin(scaled), b.cos(scaled));
        let forward = Arc::new(b.finish("forward", vec![sine, n, cosine]));
        let mut b = Builder::new();
        let (cosine, ct, c) = (b.param(ty.clone()), b.param(ty.clone()), b.param(ty.clone()));
        let slope = b.mul(cosine, c);
        let back = b.mul(slope, ct);
        let backward = Arc::new(b.finish("backward", vec![back]));
        let inputs = vec![
            Array::floats(DType::F32, [2], &[0.4, -1.3]),
            Array::ints(DType::I32, [], &[3]),
            Array::floats(DType::F32, [2], &[1.5, 0.7]),
        ];
        let op = CustomVjp { forward, backward, residuals: 1, captures: 1 };
        vec![Sample::new(op, inputs).tolerance(1e-6).not_differentiable()]
    }
}
