//! `while`: a loop with a length that is known only at run time.

mod sample;

use super::TypeError;
use super::loops::{WithTangents, fixpoint, kept};
use super::op::{Op, OpRef, Pruned, Rule};
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloOp, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::ops::rules::{no_jvp, no_transpose};
use crate::transform::{
    Mode, TransformError, VmapContext, dce, deal, given, jvp_with, needed, vmap,
};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body` as long as `condition` holds.
    ///
    /// Operands: the constants that only the condition reads, the constants that only the body
    /// reads, and the initial carry. The results are the final carry. It has only a forward
    /// derivative: the number of steps that a reverse pass would have to save is unknown.
    While = "while" {
        /// The condition: condition consts ++ carry -> bool[].
        condition: Arc<Func>,
        /// One iteration: body consts ++ carry -> carry.
        body: Arc<Func>,
        /// The number of operands that only the condition reads.
        condition_consts: usize,
        /// The number of operands that only the body reads.
        body_consts: usize,
    }
}

const NO_REVERSE: &str = "a loop of unknown length cannot run backward; use `scan` or `fori_loop` with a fixed number of steps, \
                          or `jvp` for forward mode";

impl While {
    fn split<'a, T>(&self, operands: &'a [T]) -> (&'a [T], &'a [T], &'a [T]) {
        let (condition, rest) = operands.split_at(self.condition_consts);
        let (body, carry) = rest.split_at(self.body_consts);
        (condition, body, carry)
    }

    fn forward(
        &self,
        b: &mut Builder,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Result<(Vec<Var>, Slopes), TransformError> {
        let (condition_consts, rest) = inputs.split_at(self.condition_consts);
        let tangents = &tangents[self.condition_consts..];
        let types = self.body.param_types();
        let carried = self.body_consts..types.len();
        let mut marked = given(tangents);
        let (body, results) =
            fixpoint(&mut marked, carried.clone(), carried.len(), |marked, force| {
                jvp_with(&self.body, marked, force)
            })?;
        // The body takes its consts, their tangents, the carry, its tangents; the condition does not read tangents.
        let groups = [0..self.body_consts, carried.clone()];
        let WithTangents { body: mut inner, arguments, operands, ends } =
            WithTangents::new(b, &types, groups, &marked, rest, tangents);
        let operands = [condition_consts, &operands].concat();
        let values = inner.inline(&body, &arguments);
        let body = Arc::new(inner.finish(self.body.name.clone(), values));

        let mut inner = Builder::new();
        let arguments = inner.add_params(self.condition.param_types());
        inner.add_params(kept(&types[carried.clone()], &marked[carried.clone()]));
        let going = inner.inline(&self.condition, &arguments);
        let condition = Arc::new(inner.finish(self.condition.name.clone(), going));

        let op = While {
            condition,
            body,
            condition_consts: self.condition_consts,
            body_consts: ends[0],
        };
        let mut outputs = b.emit(op, &operands);
        let slopes = outputs.split_off(carried.len());
        Ok((outputs, deal(&results, slopes)))
    }

    /// The loop with a carry that never changes as a constant.
    pub(crate) fn slimmer(&self, b: &mut Builder, inputs: &[Var]) -> Option<Vec<Var>> {
        let params = &self.body.params[self.body_consts..];
        let still = (0..params.len()).find(|&i| self.body.results[i] == params[i])?;
        let mut condition = (*self.condition).clone();
        let param = condition.params.remove(self.condition_consts + still);
        condition.params.insert(self.condition_consts, param);
        let mut body = (*self.body).clone();
        let param = body.params.remove(self.body_consts + still);
        body.params.insert(self.body_consts, param);
        body.results.remove(still);
        let (condition_consts, body_consts, carry) = self.split(inputs);
        let value = carry[still];
        let rest = (0..carry.len()).filter(|&i| i != still).map(|i| carry[i]);
        let operands: Vec<Var> = (condition_consts.iter().chain([&value]))
            .chain(body_consts)
            .chain([&value])
            .copied()
            .chain(rest)
            .collect();
        let slimmer = While {
            condition: Arc::new(condition),
            body: Arc::new(body),
            condition_consts: self.condition_consts + 1,
            body_consts: self.body_consts + 1,
        };
        let mut results = b.emit(slimmer, &operands);
        results.insert(still, value);
        Some(results)
    }
}

impl Op for While {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        if inputs.len() < self.condition_consts + self.body_consts {
            refuse!("fewer operands than consts");
        }
        let (condition_consts, body_consts, carry) = self.split(inputs);
        let given = |consts: &[TensorType]| consts.iter().chain(carry).cloned().collect::<Vec<_>>();
        if self.condition.param_types() != given(condition_consts)
            || self.body.param_types() != given(body_consts)
        {
            refuse!("the condition or the body takes other operands than it is given");
        }
        match self.condition.result_types().as_slice() {
            [ty] if *ty == TensorType::scalar(DType::Bool) => {}
            [ty] => refuse!("the condition must be bool[], got {ty}"),
            several => refuse!("the condition must be one bool[], got {} results", several.len()),
        }
        let results = self.body.result_types();
        if results.len() != carry.len() {
            refuse!("the carry has {} values, the body gives {}", carry.len(), results.len());
        }
        match (0..carry.len()).find(|&i| carry[i] != results[i]) {
            Some(i) => Err(TypeError::new(format!(
                "carry {i} goes in as {} and comes out as {}",
                carry[i], results[i]
            ))),
            None => Ok(results),
        }
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (condition_consts, body_consts, carry) = self.split(inputs);
        let mut carry = carry.to_vec();
        let with = |consts: &[Array], carry: &[Array]| {
            consts.iter().chain(carry).cloned().collect::<Vec<_>>()
        };
        while self.condition.eval(&with(condition_consts, &carry))[0].get(0).bool() {
            carry = self.body.eval(&with(body_consts, &carry));
        }
        carry
    }

    fn turns(&self) -> Option<usize> {
        Some(8)
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let (condition_flags, body_flags, carry_flags) = self.split(batched);
        let mut carry_flags = carry_flags.to_vec();
        let with = |consts: &[bool], carry: &[bool]| {
            consts.iter().chain(carry).copied().collect::<Vec<_>>()
        };
        let (condition, body, lanes_differ) = loop {
            let (condition, differ) =
                vmap(&self.condition, cx, &with(condition_flags, &carry_flags), &[false]);
            if differ[0] && carry_flags.contains(&false) {
                // Lanes end at different times, so every carry is batched.
                carry_flags.fill(true);
                continue;
            }
            let (body, results) =
                vmap(&self.body, cx, &with(body_flags, &carry_flags), &carry_flags);
            if results == carry_flags {
                break (condition, body, differ[0]);
            }
            carry_flags = results;
        };
        let first_carry = self.condition_consts + self.body_consts;
        let operands = inputs.iter().enumerate().map(|(i, &input)| {
            if i >= first_carry && carry_flags[i - first_carry] {
                cx.batch(b, input, batched[i])
            } else {
                input
            }
        });
        let inputs: Vec<Var> = operands.collect();
        if !lanes_differ {
            let op = While { condition: Arc::new(condition), body: Arc::new(body), ..self.clone() };
            return b.emit(op, &inputs).into_iter().zip(carry_flags).collect();
        }

        // Run while any lane runs; a lane that has ended keeps its carry. The body must know which
        // lanes are running, so it also reads the operands of the condition.
        let mut any = Builder::new();
        let arguments = any.add_params(condition.param_types());
        let lanes = any.inline(&condition, &arguments)[0];
        let going = any.reduce_or(lanes, &[0]);
        let any = any.finish(condition.name.clone(), vec![going]);

        let mut masked = Builder::new();
        let condition_types = condition.param_types();
        let consts = masked.add_params(condition_types[..self.condition_consts].to_vec());
        let arguments = masked.add_params(body.param_types());
        let carry = &arguments[self.body_consts..];
        let condition_arguments: Vec<Var> = consts.iter().chain(carry).copied().collect();
        let lanes = masked.inline(&condition, &condition_arguments)[0];
        let next = masked.inline(&body, &arguments);
        let kept =
            carry.iter().zip(next).map(|(&old, new)| masked.select_examples(lanes, new, old));
        let kept = kept.collect();
        let masked = masked.finish(body.name.clone(), kept);
        let operands: Vec<Var> =
            inputs[..self.condition_consts].iter().chain(&inputs).copied().collect();
        let op = While {
            condition: Arc::new(any),
            body: Arc::new(masked),
            condition_consts: self.condition_consts,
            body_consts: self.condition_consts + self.body_consts,
        };
        b.emit(op, &operands).into_iter().map(|var| (var, true)).collect()
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
        // The condition has no float results: tangents of operands that only it reads are dropped.
        if tangents[self.condition_consts..].iter().all(Option::is_none) {
            let outputs = b.emit_ref(this.clone(), inputs);
            let none = vec![None; outputs.len()];
            return Rule::Some((outputs, none));
        }
        match mode {
            Mode::Forward => self.forward(b, inputs, tangents).into(),
            Mode::Linearize => Rule::None(NO_REVERSE),
        }
    }

    no_transpose! { NO_REVERSE }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        let types: Vec<TensorType> = inputs.iter().map(|&value| hlo.ty(value)).collect();
        let arguments = hlo.begin_region(&types);
        let (condition_consts, _, carry) = self.split(&arguments);
        let operands: Vec<HloValue> = condition_consts.iter().chain(carry).copied().collect();
        let going = lower_func(hlo, &self.condition, &operands);
        let condition = hlo.end_region(&going);

        let arguments = hlo.begin_region(&types);
        let (_, body_consts, carry) = self.split(&arguments);
        let operands: Vec<HloValue> = body_consts.iter().chain(carry).copied().collect();
        let next = lower_func(hlo, &self.body, &operands);
        let first_carry = self.condition_consts + self.body_consts;
        let state: Vec<HloValue> = arguments[..first_carry].iter().copied().chain(next).collect();
        let body = hlo.end_region(&state);

        let op = HloOp::new("stablehlo.while", inputs, &types).regions(vec![condition, body]);
        hlo.op(op).split_off(first_carry)
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let condition = dce(&self.condition);
        let tested = needed(&condition, &[true]);
        let (consts, carry) = condition.params.split_at(self.condition_consts);
        // A carry is needed if its final value is needed, or if the condition or a needed carry
        // reads it.
        let mut wanted: Vec<bool> =
            (carry.iter().zip(used)).map(|(param, used)| *used || tested[param.index()]).collect();
        let read = loop {
            let read = needed(&self.body, &wanted);
            let carry = &self.body.params[self.body_consts..];
            let more: Vec<usize> =
                (0..wanted.len()).filter(|&i| read[carry[i].index()] && !wanted[i]).collect();
            if more.is_empty() {
                break read;
            }
            more.into_iter().for_each(|i| wanted[i] = true);
        };
        let outputs: Vec<usize> = (0..wanted.len()).filter(|&i| wanted[i]).collect();
        let mut body = (*self.body).clone();
        body.results = outputs.iter().map(|&i| body.results[i]).collect();
        let body = dce(&body);
        let kept = |params: &[Var], needed: &[bool]| -> Vec<usize> {
            (0..params.len()).filter(|&i| needed[params[i].index()]).collect()
        };
        let condition_consts = kept(consts, &tested);
        let body_consts = kept(&self.body.params[..self.body_consts], &read);
        let first = [0, self.condition_consts, self.condition_consts + self.body_consts];
        let parts = [&condition_consts, &body_consts, &outputs];
        let inputs: Vec<usize> = (parts.iter().zip(first))
            .flat_map(|(part, first)| part.iter().map(move |i| first + i))
            .collect();
        let all = first[2] + used.len();
        if inputs.len() == all && condition == *self.condition && body == *self.body {
            return None;
        }
        let taken = |mut func: Func, consts: &[usize], all: usize| {
            let carry = outputs.iter().map(|i| all + i);
            let params = consts.iter().copied().chain(carry);
            func.params = params.map(|i| func.params[i]).collect();
            Arc::new(func)
        };
        let op = While {
            condition: taken(condition, &condition_consts, self.condition_consts),
            body: taken(body, &body_consts, self.body_consts),
            condition_consts: condition_consts.len(),
            body_consts: body_consts.len(),
        };
        Some(Pruned { op: OpRef::new(op), inputs, outputs })
    }
}
