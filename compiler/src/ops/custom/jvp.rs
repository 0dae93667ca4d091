//! `custom_jvp`: a function with a user-defined forward derivative.

use super::{CAPTURED, at_most, check, floats};
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::ops::op::effect_of;
use crate::ops::rules::{no_jvp, no_transpose};
use crate::ops::{Effect, Op, OpRef, Rule, Sample, TypeError};
use crate::transform::{
    Mode, TransformError, VmapContext, deal, instantiate, linearize, vmap, with_given,
};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body`. Its derivative is `rule`, which is linear in the tangents.
    CustomJvp = "custom_jvp" {
        /// The function itself: arguments ++ captures -> results.
        body: Arc<Func>,
        /// The rule: arguments ++ tangents of the float arguments ++ captures -> results ++ tangents of the float results.
        rule: Arc<Func>,
        /// The number of operands that are captures.
        captures: usize,
    }
}

const NOT_LINEAR: &str = "the tangent that its rule gives is not linear in the tangents that it takes, or its value depends on them";

impl CustomJvp {
    /// The number of arguments.
    fn arguments(&self) -> usize {
        self.body.params.len() - self.captures
    }

    /// Expands a list with one entry per operand to the parameters of the rule: a tangent has the
    /// same entry as its argument.
    fn for_rule<T: Clone>(&self, given: &[T]) -> Vec<T> {
        let (arguments, captures) = given.split_at(self.arguments());
        let types = self.body.param_types();
        let slopes: Vec<T> = arguments
            .iter()
            .zip(&types)
            .filter(|(_, ty)| ty.dtype.is_float())
            .map(|(given, _)| given.clone())
            .collect();
        [arguments, &slopes, captures].concat()
    }

    /// The rule's operands, with zeros for missing tangents.
    fn operands(&self, b: &mut Builder, inputs: &[Var], tangents: &[Slope]) -> Vec<Var> {
        let (arguments, captures) = inputs.split_at(self.arguments());
        let mut operands = arguments.to_vec();
        for (&argument, &tangent) in arguments.iter().zip(tangents) {
            if b.ty(argument).dtype.is_float() {
                operands.push(instantiate(b, tangent, argument));
            }
        }
        operands.extend(captures);
        operands
    }

    fn derivative(
        &self,
        this: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let results = self.body.results.len();
        let float_results: Vec<bool> =
            self.body.result_types().iter().map(|ty| ty.dtype.is_float()).collect();
        if mode == Mode::Forward {
            let operands = self.operands(b, inputs, tangents);
            let mut values = b.inline(&self.rule, &operands);
            let slopes = values.split_off(results);
            return Ok((values, deal(&float_results, slopes)));
        }
        // The rule is linear in the tangents, so its derivative at zero is the rule itself.
        // `linearize` splits the rule, with any loops in it.
        let arguments = self.arguments();
        let given = (0..inputs.len()).filter(|&i| b.ty(inputs[i]).dtype.is_float());
        let mut wrt = vec![false; arguments];
        wrt.extend(given.filter(|&i| i < arguments).map(|i| tangents[i].is_some()));
        wrt.resize(self.rule.params.len(), false);
        let parts = linearize(&self.rule, &wrt)?;
        let mut primal = parts.primal;
        primal.results.drain(results..self.rule.results.len());
        let primal = crate::transform::dce(&primal);
        let depends = primal.depends_on(&wrt);
        let values_depend = parts.tangent_results[..results].contains(&true);
        if values_depend || primal.results.iter().any(|var| depends[var.index()]) {
            return Rule::None(NOT_LINEAR).of(this, b.loc());
        }
        let operands = self.operands(b, inputs, &vec![None; inputs.len()]);
        let mut values = b.inline(&primal, &operands);
        let residuals = values.split_off(results);
        let slopes = b.inline(&parts.linear, &with_given(residuals, tangents));
        let mut slopes = deal(&parts.tangent_results[results..], slopes).into_iter();
        let slope_of = |is: bool| if is { slopes.next().flatten() } else { None };
        let slopes = float_results.into_iter().map(slope_of).collect();
        Ok((values, slopes))
    }
}

impl Op for CustomJvp {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        at_most("captures", self.captures, "operands", self.body.params.len())?;
        check("the operands", inputs, &self.body.param_types())?;
        let rule = self.for_rule(inputs);
        check("the operands of the rule", &self.rule.param_types(), &rule)?;
        let results = self.body.result_types();
        let wanted = [results.clone(), floats(&results)].concat();
        check("the results of the rule", &self.rule.result_types(), &wanted)?;
        Ok(results)
    }

    fn effect(&self) -> Effect {
        effect_of(&[&self.body])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        self.body.eval(inputs)
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        // A value and its tangent are batched alike, and so are the results of the body and the
        // rule.
        let results = self.body.results.len();
        let types = self.body.result_types();
        let mut force = vec![false; results];
        loop {
            let of_slopes: Vec<usize> =
                (0..results).filter(|&i| types[i].dtype.is_float()).collect();
            let both: Vec<bool> =
                force.iter().copied().chain(of_slopes.iter().map(|&i| force[i])).collect();
            let (body, mut marks) = vmap(&self.body, cx, batched, &force);
            let (rule, of_rule) = vmap(&self.rule, cx, &self.for_rule(batched), &both);
            (0..results).for_each(|i| marks[i] |= of_rule[i]);
            for (&i, &mark) in of_slopes.iter().zip(&of_rule[results..]) {
                marks[i] |= mark;
            }
            if marks == force {
                let op = CustomJvp {
                    body: Arc::new(body),
                    rule: Arc::new(rule),
                    captures: self.captures,
                };
                return b.emit(op, inputs).into_iter().zip(marks).collect();
            }
            force = marks;
        }
    }

    no_jvp! {}

    fn differentiate(
        &self,
        this: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<(Vec<Var>, Slopes)> {
        if tangents[self.arguments()..].iter().any(Option::is_some) {
            return Rule::None(CAPTURED);
        }
        self.derivative(this, b, mode, inputs, tangents).into()
    }

    no_transpose! { "it is not linear: only its derivative is" }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        lower_func(hlo, &self.body, inputs)
    }

    fn settled(&self, _: &[TensorType]) -> Option<Func> {
        Some((*self.body).clone())
    }
}

impl CustomJvp {
    /// Examples for the generic tests: the sine of x times a captured c, with a hand-written
    /// cosine.
    pub fn samples() -> Vec<Sample> {
        let ty = TensorType::new(DType::F32, [2]);
        let mut b = Builder::new();
        let (x, n) = (b.param(ty.clone()), b.param(TensorType::scalar(DType::I32)));
        let c = b.param(ty.clone());
        let scaled = b.mul(x, c);
        let sine = b.sin(scaled);
        let body = Arc::new(b.finish("f", vec![sine, n]));
        let mut b = Builder::new();
        let (x, n) = (b.param(ty.clone()), b.param(TensorType::scalar(DType::I32)));
        let (dx, c) = (b.param(ty.clone()), b.param(ty));
        let scaled = b.mul(x, c);
        let (sine, cosine) = (b.sin(scaled), b.cos(scaled));
        let slope = b.mul(cosine, c);
        let slope = b.mul(slope, dx);
        let rule = Arc::new(b.finish("rule", vec![sine, n, slope]));
        let inputs = vec![
            Array::floats(DType::F32, [2], &[0.4, -1.3]),
            Array::ints(DType::I32, [], &[3]),
            Array::floats(DType::F32, [2], &[1.5, 0.7]),
        ];
        let op = CustomJvp { body, rule, captures: 1 };
        // The generic derivative tests differentiate by every operand, including captures.
        vec![Sample::new(op, inputs).tolerance(1e-6).not_differentiable()]
    }
}
