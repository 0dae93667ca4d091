//! `checkpoint`: a function that recomputes values in its backward pass, except the values that a
//! policy keeps; and `named`, which names values for policies.

use super::TypeError;
use super::once::{Once, once_rules};
use super::op::{Op, OpRef, Operand, Rule, Sample};
use super::samples::ramp;
use super::save::Save;
use crate::array::Array;
use crate::ir::{Batched, Builder, Eqn, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::transform::{
    Linearized, TransformError, VmapContext, deal, given, linearize, with_given,
};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body` once on the operands. Its derivative keeps the values that `save` selects for
    /// the backward pass, and recomputes the other values that it reads.
    ///
    /// Chen et al. 2016, "Training deep nets with sublinear memory cost".
    Checkpoint = "checkpoint" {
        /// The function that is run.
        body: Arc<Func>,
        /// The values that are kept.
        save: Save,
        /// True if the body recomputes values: then it must wait for its operands. Otherwise XLA
        /// would find that it already has the values and keep them.
        again: bool,
    }
}

impl Once for Checkpoint {
    fn body(&self) -> &Func {
        &self.body
    }

    fn around(&self, body: Func) -> OpRef {
        OpRef::new(Checkpoint { body: Arc::new(body), ..self.clone() })
    }
}

impl Checkpoint {
    /// Emits the body, with results for the kept values, and one op that recomputes the others and
    /// then the tangents.
    fn linearized(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let Linearized { primal, linear, tangent_results, .. } =
            linearize(&self.body, &given(tangents))?;
        let (results, residuals) = primal.results.split_at(self.body.results.len());
        let Plan { saved, again } = self.plan(&primal, residuals);

        let values = results.iter().chain(&saved).copied().collect::<Vec<_>>();
        let values = crate::transform::dce(&primal.subset(&primal.params, &primal.eqns, &values));
        let mut values = b.emit_ref(self.around(values), inputs);
        let kept = values.split_off(results.len());

        // operands ++ saved -> residuals, and then the linear part.
        let params: Vec<Var> = primal.params.iter().chain(&saved).copied().collect();
        let again = primal.subset(&params, again, residuals);
        let mut body = Builder::new();
        let arguments = body.add_params(again.param_types());
        let mut operands = body.inline(&again, &arguments);
        operands.extend(body.add_params(linear.param_types().split_off(operands.len())));
        let slopes = body.inline(&linear, &operands);
        let op = Checkpoint {
            body: Arc::new(body.finish(self.body.name.clone(), slopes)),
            save: self.save.clone(),
            again: true,
        };
        let slopes = b.emit(op, &with_given(inputs.iter().copied().chain(kept), tangents));
        Ok((values, deal(&tangent_results, slopes)))
    }

    /// Decides which values are kept and which are recomputed, going back from the residuals to the
    /// operands.
    fn plan<'a>(&self, primal: &'a Func, residuals: &[Var]) -> Plan<'a> {
        let mut wanted = vec![false; primal.types.len()];
        residuals.iter().for_each(|var| wanted[var.index()] = true);
        let (mut saved, mut again) = (Vec::new(), Vec::new());
        for eqn in primal.eqns.iter().rev() {
            let outputs: Vec<Var> =
                eqn.outputs.iter().filter(|var| wanted[var.index()]).copied().collect();
            if outputs.is_empty() {
                continue;
            }
            if eqn.op.saved_by(&self.save) {
                saved.extend(outputs);
            } else {
                eqn.inputs.iter().for_each(|var| wanted[var.index()] = true);
                again.push(eqn);
            }
        }
        saved.reverse();
        again.reverse();
        Plan { saved, again }
    }
}

/// The kept residuals, and the equations that recompute the others.
struct Plan<'a> {
    saved: Vec<Var>,
    again: Vec<&'a Eqn>,
}

impl Op for Checkpoint {
    once_rules! {}

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        lower_func(hlo, &self.with_barrier(), inputs)
    }

    fn settled(&self, _: &[TensorType]) -> Option<Func> {
        Some(self.with_barrier())
    }
}

impl Checkpoint {
    /// The body, behind a barrier on its operands if it recomputes values. The cotangents are among
    /// the operands, so that nothing is computed before the backward pass arrives.
    fn with_barrier(&self) -> Func {
        if !self.again || self.body.params.is_empty() {
            return (*self.body).clone();
        }
        let mut b = Builder::new();
        let operands = b.add_params(self.body.param_types());
        let operands = b.optimization_barrier(&operands);
        let results = b.inline(&self.body, &operands);
        b.finish(self.body.name.clone(), results)
    }

    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let mut b = Builder::new();
        let x = b.param(TensorType::new(DType::F32, [2, 2]));
        let w = b.param(TensorType::new(DType::F32, [2, 2]));
        let product = b.matmul(x, w);
        let named = b.emit1(Named { name: "hidden".to_string() }, &[product]);
        let sine = b.sin(named);
        let cosine = b.cos(sine);
        let body = Arc::new(b.finish("layer", vec![cosine, w]));
        let sample = |save, again| {
            let inputs = vec![
                Array::floats(DType::F32, [2, 2], &[0.1, 0.5, -2.0, 0.3]),
                Array::floats(DType::F32, [2, 2], &[1.0, -0.7, 0.2, 0.4]),
            ];
            let body = body.clone();
            Sample::new(Checkpoint { body, save, again }, inputs).tolerance(1e-6)
        };
        vec![
            sample(Save::Nothing, false),
            sample(Save::Everything, false),
            sample(Save::Dots, true),
            sample(Save::Names(vec!["hidden".to_string()]), false),
        ]
    }
}

op_struct! {
    /// Its operand, with this name for [`Save::Names`].
    Named = "named" {
        /// The name, which [`Save::Names`] lists.
        name: String,
    }
}

impl Named {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let name = "hidden".to_string();
        vec![Sample::new(Named { name }, vec![ramp(DType::F32, [2, 3])])]
    }
}

impl Op for Named {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 1)?;
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        inputs.to_vec()
    }

    fn vmap(&self, b: &mut Builder, _: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        vec![(b.emit1(self.clone(), inputs), batched[0])]
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(tangents.to_vec())
    }

    fn transpose(&self, _: &mut Builder, _: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        Rule::Some(cotangents.to_vec())
    }

    fn lower(&self, _: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        inputs.to_vec()
    }

    fn settled(&self, inputs: &[TensorType]) -> Option<Func> {
        let mut b = Builder::new();
        let x = b.param(inputs[0].clone());
        Some(b.finish(self.name.clone(), vec![x]))
    }

    fn saved_by(&self, policy: &Save) -> bool {
        match policy {
            Save::Everything => true,
            Save::Names(names) => names.contains(&self.name),
            Save::Nothing | Save::Dots => false,
        }
    }
}
