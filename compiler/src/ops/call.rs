//! `call`: a function that is emitted once and called many times.

use super::op::{Op, OpRef, OpStruct, Operand, Pruned, Rule, Sample};
use super::scan::effect_of;
use super::{Effect, TypeError};
use crate::array::Array;
use crate::attributes::Attributes;
use crate::ir::{Builder, Func, Var};
use crate::lower::{Hlo, HloValue};
use crate::op_struct;
use crate::transform::{
    Mode, TransformError, VmapContext, deal, jvp, linearize, needed, transpose, vmap,
};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body` once on the operands. Calls of equal bodies share one function in the emitted module.
    Call {
        /// What is called.
        body: Arc<Func>,
    }
}

impl Call {
    fn derivative(
        &self,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Option<Var>],
    ) -> Result<(Vec<Var>, Vec<Option<Var>>), TransformError> {
        let wrt: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        let results = self.body.results.len();
        let tangents = tangents.iter().flatten().copied();
        if mode == Mode::Forward {
            let (body, marks) = jvp(&self.body, &wrt)?;
            let operands: Vec<Var> = inputs.iter().copied().chain(tangents).collect();
            let mut values = b.emit(
                Call {
                    body: Arc::new(body),
                },
                &operands,
            );
            let slopes = values.split_off(results);
            return Ok((values, deal(&marks, slopes)));
        }
        let split = linearize(&self.body, &wrt)?;
        let mut values = b.emit(
            Call {
                body: Arc::new(split.primal),
            },
            inputs,
        );
        let operands: Vec<Var> = values
            .split_off(results)
            .into_iter()
            .chain(tangents)
            .collect();
        let slopes = b.emit(
            Call {
                body: Arc::new(split.linear),
            },
            &operands,
        );
        Ok((values, deal(&split.tangent_results, slopes)))
    }

    fn transposed(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Option<Var>],
    ) -> Result<Vec<Option<Var>>, TransformError> {
        let marked: Vec<bool> = inputs.iter().map(Operand::is_linear).collect();
        let given: Vec<bool> = cotangents.iter().map(Option::is_some).collect();
        let force = vec![false; marked.iter().filter(|is| **is).count()];
        let (body, sent) = transpose(&self.body, &marked, &given, &force)?;
        let operands: Vec<Var> = inputs
            .iter()
            .filter_map(Operand::known)
            .chain(cotangents.iter().flatten().copied())
            .collect();
        let mut values = b
            .emit(
                Call {
                    body: Arc::new(body),
                },
                &operands,
            )
            .into_iter();
        let mut sent = sent.into_iter();
        let mut take = |is: bool| {
            (is && sent.next().unwrap_or(false)).then(|| values.next().expect("one value per mark"))
        };
        Ok(marked.iter().map(|&is| take(is)).collect())
    }
}

impl Op for Call {
    fn mnemonic(&self) -> &'static str {
        "call"
    }

    fn attributes(&self) -> Attributes {
        self.struct_attributes()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, self.body.params.len())?;
        let params = self.body.param_types();
        match (0..inputs.len()).find(|&i| inputs[i] != params[i]) {
            Some(i) => Err(TypeError::new(format!(
                "operand {i} is {}, the function takes {}",
                inputs[i], params[i]
            ))),
            None => Ok(self.body.result_types()),
        }
    }

    fn effect(&self) -> Effect {
        effect_of(&[&self.body])
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
        let (body, marks) = vmap(
            &self.body,
            cx,
            batched,
            &vec![false; self.body.results.len()],
        );
        b.emit(
            Call {
                body: Arc::new(body),
            },
            inputs,
        )
        .into_iter()
        .zip(marks)
        .collect()
    }

    fn jvp(
        &self,
        _: &mut Builder,
        _: &[Var],
        _: &[Var],
        _: &[Option<Var>],
    ) -> Rule<Vec<Option<Var>>> {
        Rule::None("values and tangents are built together by `differentiate`")
    }

    fn differentiate(
        &self,
        _: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Option<Var>],
    ) -> Rule<(Vec<Var>, Vec<Option<Var>>)> {
        self.derivative(b, mode, inputs, tangents).into()
    }

    fn transpose(
        &self,
        b: &mut Builder,
        inputs: &[Operand],
        cotangents: &[Option<Var>],
    ) -> Rule<Vec<Option<Var>>> {
        self.transposed(b, inputs, cotangents).into()
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> Vec<HloValue> {
        hlo.call(&self.body, inputs)
    }

    fn with_funcs(&self, mut funcs: Vec<Arc<Func>>) -> Option<OpRef> {
        Some(OpRef::new(Call {
            body: funcs.remove(0),
        }))
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let needed = needed(&self.body, used);
        let inputs: Vec<usize> = (0..self.body.params.len())
            .filter(|&i| needed[self.body.params[i].index()])
            .collect();
        let outputs: Vec<usize> = (0..used.len()).filter(|&i| used[i]).collect();
        let mut body = (*self.body).clone();
        body.results = outputs.iter().map(|&i| body.results[i]).collect();
        let mut body = crate::transform::dce(&body);
        if inputs.len() == body.params.len()
            && outputs.len() == used.len()
            && body.eqns.len() == self.body.eqns.len()
        {
            return None;
        }
        body.params = inputs.iter().map(|&i| body.params[i]).collect();
        Some(Pruned {
            op: OpRef::new(Call {
                body: Arc::new(body),
            }),
            inputs,
            outputs,
        })
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
