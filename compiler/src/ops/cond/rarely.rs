//! `rarely`: a branch that few examples of a batch take, run only for those examples.

use super::Cond;
use crate::array::Array;
use crate::ir::{Batched, Builder, Func, Slope, Slopes, Var};
use crate::lower::{Hlo, HloResults, HloValue, lower_func};
use crate::op_struct;
use crate::ops::once::pruned;
use crate::ops::op::{Effect, Op, OpRef, Operand, Pruned, Rule, Sample, effect_of, result_types};
use crate::ops::{Call, CallForm, Combiner, Direction, Scatter, TypeError, While};
use crate::transform::{Mode, VmapContext, vmap};
use crate::types::{DType, TensorType};
use std::sync::Arc;

op_struct! {
    /// Runs `body` for the examples of a batch that take it, and gives the others their fallbacks.
    ///
    /// Operands: the mask of the examples that take the branch, `bool[N]`; the operands of the
    /// body; a fallback for each result, `[N, ..]`. The results come from the body for the examples
    /// that take it, and from the fallbacks for the others.
    ///
    /// The examples that take it are gathered in blocks of 1/32 of the batch, and the body runs
    /// once for each block that is needed.
    Rarely = "rarely" {
        /// The function of one example.
        body: Arc<Func>,
        /// Positions of the body's operands that all examples share, rising; the other operands
        /// have the batch as leading axis.
        shared: Vec<usize>,
    }
}

/// The least batch that is divided into blocks, the least block, and the ratio of a batch to a
/// block.
const BATCH: usize = 32;
const BLOCK: usize = 8;
const PART: usize = 32;

/// The least [work apart](Func::work_apart) of a branch that makes gathering worthwhile. A branch
/// without loops, reductions and products is fused with the surrounding ops into one kernel for all
/// examples, which takes less time than gathering.
const WORK: usize = 128;

/// True if it is faster to run this branch of a `cond` only for the examples that take it. A branch
/// with a collective runs for all examples.
fn pays(branch: &Arc<Func>, cx: &VmapContext) -> bool {
    let crosses = effect_of(&[branch]) == Effect::Collective
        || branch.eqns.iter().any(|eqn| eqn.op.names_axis(cx));
    cx.size >= BATCH && !crosses && branch.work_apart() >= WORK
}

impl Rarely {
    /// The op for a body and the marks of its operands that have the batch as leading axis.
    fn new(body: Arc<Func>, batched: &[bool]) -> Rarely {
        Rarely { body, shared: (0..batched.len()).filter(|&i| !batched[i]).collect() }
    }

    /// Marks the operands of the body that have the batch as leading axis.
    fn batched(&self) -> Vec<bool> {
        (0..self.body.params.len()).map(|i| !self.shared.contains(&i)).collect()
    }

    fn split<'a, T>(&self, operands: &'a [T]) -> (&'a T, &'a [T], &'a [T]) {
        let (takes, rest) = operands.split_first().expect("one operand says who takes it");
        let (inputs, fallbacks) = rest.split_at(self.body.params.len());
        (takes, inputs, fallbacks)
    }

    /// The same function, running the body for all examples.
    fn for_all(&self, types: &[TensorType]) -> Func {
        let mut b = Builder::new();
        let operands = b.add_params(types.to_vec());
        let (&takes, inputs, fallbacks) = self.split(&operands);
        let force = vec![true; self.body.results.len()];
        let batch = VmapContext::new(types[0].shape[0]);
        let values = b.inline(&vmap(&self.body, &batch, &self.batched(), &force).0, inputs);
        let results = values.into_iter().zip(fallbacks);
        let results = results.map(|(value, &fallback)| b.select_examples(takes, value, fallback));
        let results = results.collect();
        b.finish(self.body.name.clone(), results)
    }

    /// [`Self::for_all`] as an op, which has all rules.
    fn call_for_all(&self, types: &[TensorType]) -> OpRef {
        OpRef::new(Call { body: Arc::new(self.for_all(types)), form: CallForm::Inlined })
    }

    /// The same function. It gathers blocks of the examples that take the body, and replaces their
    /// fallbacks by their results.
    fn by_blocks(&self, types: &[TensorType]) -> Func {
        let size = types[0].shape[0];
        let block = (size / PART).max(BLOCK);
        if size <= block {
            return self.for_all(types);
        }
        let mut b = Builder::new();
        let operands = b.add_params(types.to_vec());
        let (&takes, inputs, fallbacks) = self.split(&operands);
        // The numbers of the examples that take the body, followed by a number that no example has.
        let ones = b.convert(takes, DType::I32);
        let [one, none] = [1, size].map(|number| b.full_like(ones, number as f64));
        let rank = b.cumsum(ones, 0, false);
        let rank = b.sub(rank, one);
        let places = b.select(takes, rank, none);
        let numbers = b.iota(DType::I32, &[size], 0);
        let scatter = Scatter::at(1, 1, 0, Combiner::Set);
        let taking = b.scatter(none, places, numbers, scatter);
        let outside = TensorType::new(DType::I32, [size.next_multiple_of(block) - size]);
        let outside = b.full(&outside, size as f64);
        let taking = b.concatenate(&[taking, outside], 0);
        let count = b.reduce_sum(ones, &[0]);

        let done = b.zeros(&TensorType::scalar(DType::I32));
        let carry = [&[done], fallbacks].concat();
        let op = While {
            condition: Arc::new(goes_on(&b.types(&carry))),
            body: Arc::new(self.block(block, b.ty(taking), &b.types(inputs), &b.types(&carry))),
            condition_consts: 1,
            body_consts: 1 + inputs.len(),
        };
        let results = b.emit(op, &[&[count, taking], inputs, &carry].concat()).split_off(1);
        b.finish(self.body.name.clone(), results)
    }

    /// A round of the loop: `(taking, inputs, examples done, results) -> (examples done, results)`.
    fn block(
        &self,
        block: usize,
        taking: &TensorType,
        inputs: &[TensorType],
        carry: &[TensorType],
    ) -> Func {
        let mut b = Builder::new();
        let taking = b.param(taking.clone());
        let inputs = b.add_params(inputs.to_vec());
        let carry = b.add_params(carry.to_vec());
        let (&done, results) = carry.split_first().expect("the examples done");
        let examples = b.dynamic_slice(taking, &[done], &[block]);
        let batched = self.batched();
        let rows = inputs.iter().zip(&batched);
        let rows = rows.map(|(&x, batched)| if *batched { b.take(x, examples, 0) } else { x });
        let rows: Vec<Var> = rows.collect();
        let force = vec![true; results.len()];
        let body = vmap(&self.body, &VmapContext::new(block), &batched, &force).0;
        let values = b.inline(&body, &rows);
        let results = results.iter().zip(values).map(|(&all, rows)| {
            let op = Scatter::at(b.ty(all).rank(), 1, 0, Combiner::Set);
            // Numbers that no example has are out of range, and their rows are dropped.
            b.scatter(all, examples, rows, op)
        });
        let mut next: Vec<Var> = results.collect();
        let block = b.full_like(done, block as f64);
        next.insert(0, b.add(done, block));
        b.finish("block", next)
    }
}

/// `(count, examples done, results)`: true if some are left.
fn goes_on(carry: &[TensorType]) -> Func {
    let mut b = Builder::new();
    let count = b.param(TensorType::scalar(DType::I32));
    let carry = b.add_params(carry.to_vec());
    let left = b.compare(Direction::Lt, carry[0], count);
    b.finish("examples_left", vec![left])
}

impl Op for Rarely {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let results = self.body.result_types();
        TypeError::check_arity(inputs, 1 + self.body.params.len() + results.len())?;
        let (takes, inputs, fallbacks) = self.split(inputs);
        if takes.dtype != DType::Bool || takes.rank() != 1 {
            refuse!("the examples that take the body must be bool[N], got {takes}");
        }
        let stacked = |ty: TensorType| ty.stacked(takes.shape[0]);
        let params = self.body.param_types().into_iter().zip(self.batched());
        let params = params.map(|(ty, batched)| if batched { stacked(ty) } else { ty });
        if !params.eq(inputs.iter().cloned()) {
            refuse!("the body takes other operands than it is given");
        }
        if !results.into_iter().map(stacked).eq(fallbacks.iter().cloned()) {
            refuse!("the fallbacks must have the types of the results, with the batch in front");
        }
        Ok(fallbacks.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let types = result_types(self, inputs);
        let (takes, inputs, fallbacks) = self.split(inputs);
        let batched = self.batched();
        let mut rows: Vec<Vec<Array>> = vec![Vec::new(); types.len()];
        for example in 0..takes.ty().shape[0] {
            let row = |x: &Array| x.index_leading(example);
            let results = if takes.at(&[example]).bool() {
                let inputs = inputs.iter().zip(&batched);
                let own = inputs.map(|(x, batched)| if *batched { row(x) } else { x.clone() });
                self.body.eval(&own.collect::<Vec<_>>())
            } else {
                fallbacks.iter().map(row).collect()
            };
            rows.iter_mut().zip(results).for_each(|(rows, result)| rows.push(result));
        }
        rows.iter().zip(&types).map(|(rows, ty)| Array::stack(&ty.unstacked(), rows)).collect()
    }

    /// Two batches become one.
    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let (&takes, ..) = self.split(inputs);
        let size = *b.ty(takes).shape.last().expect("an axis of examples");
        let own = |i: usize| i == 0 || !self.shared.contains(&(i - 1));
        let merged = inputs.iter().enumerate().map(|(i, &x)| {
            if !own(i) && !batched[i] {
                return x;
            }
            let x = cx.batch(b, x, batched[i]);
            let row = b.ty(x).shape[if own(i) { 2 } else { 1 }..].to_vec();
            let x = match own(i) {
                true => x,
                false => {
                    let dims: Vec<usize> = std::iter::once(0).chain(2..2 + row.len()).collect();
                    b.broadcast_in_dim(x, &[&[cx.size, size], &row[..]].concat(), &dims)
                }
            };
            b.reshape(x, &[&[cx.size * size], &row[..]].concat())
        });
        let merged: Vec<Var> = merged.collect();
        let marks: Vec<bool> = (1..=self.body.params.len()).map(|i| own(i) || batched[i]).collect();
        let results = b.emit(Rarely::new(self.body.clone(), &marks), &merged).into_iter();
        let apart = results.map(|x| {
            let row = b.ty(x).shape[1..].to_vec();
            (b.reshape(x, &[&[cx.size, size], &row[..]].concat()), true)
        });
        apart.collect()
    }

    /// The tangents of the fallbacks alone: none reaches the body.
    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let (&takes, ..) = self.split(inputs);
        let (.., tangents) = self.split(tangents);
        let kept = tangents.iter().map(|tangent| {
            let tangent = (*tangent)?;
            let zeros = b.full_like(tangent, 0.0);
            Some(b.select_examples(takes, zeros, tangent))
        });
        Rule::Some(kept.collect())
    }

    fn differentiate(
        &self,
        this: &OpRef,
        b: &mut Builder,
        mode: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<(Vec<Var>, Slopes)> {
        let (_, own, _) = self.split(tangents);
        if own.iter().any(Option::is_some) {
            let call = self.call_for_all(&b.types(inputs));
            return call.differentiate(&call, b, mode, inputs, tangents);
        }
        let outputs = b.emit_ref(this.clone(), inputs);
        self.jvp(b, inputs, &outputs, tangents).map(|tangents| (outputs, tangents))
    }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let types: Vec<TensorType> = inputs.iter().map(|input| input.ty(b).clone()).collect();
        self.call_for_all(&types).transpose(b, inputs, cotangents)
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], _: &[TensorType]) -> HloResults {
        let types: Vec<TensorType> = inputs.iter().map(|&input| hlo.ty(input)).collect();
        lower_func(hlo, &self.by_blocks(&types), inputs)
    }

    fn settled(&self, inputs: &[TensorType]) -> Option<Func> {
        Some(self.by_blocks(inputs))
    }

    fn prune(&self, used: &[bool]) -> Option<Pruned> {
        let (body, kept, outputs) = pruned(&self.body, used)?;
        let batched = self.batched();
        let batched: Vec<bool> = kept.iter().map(|&i| batched[i]).collect();
        let fallbacks = outputs.iter().map(|i| 1 + self.body.params.len() + i);
        let inputs = std::iter::once(0).chain(kept.iter().map(|i| 1 + i)).chain(fallbacks);
        Some(Pruned {
            op: OpRef::new(Rarely::new(Arc::new(body), &batched)),
            inputs: inputs.collect(),
            outputs,
        })
    }
}

impl Rarely {
    /// Examples for the generic tests: some examples, none and all, of a batch that is one block
    /// and of a larger batch.
    pub fn samples() -> Vec<Sample> {
        let mut b = Builder::new();
        let x = b.param(TensorType::new(DType::F32, [2]));
        let scale = b.param(TensorType::scalar(DType::F32));
        let factor = b.broadcast_in_dim(scale, &[2], &[]);
        let product = b.mul(x, factor);
        let sine = b.sin(product);
        let sum = b.reduce_sum(sine, &[0]);
        let body = Arc::new(b.finish("sine", vec![sine, sum]));
        let sample = |takes: &[bool]| {
            let size = takes.len();
            let ramp = |shape: &[usize]| crate::ops::samples::ramp(DType::F32, shape);
            let inputs = vec![
                Array::bools([size], takes),
                ramp(&[size, 2]),
                Array::floats(DType::F32, [], &[0.7]),
                ramp(&[size, 2]),
                ramp(&[size]),
            ];
            Sample::new(Rarely { body: body.clone(), shared: vec![1] }, inputs).tolerance(1e-5)
        };
        let some: Vec<bool> = (0..20).map(|i| i % 5 != 3).collect();
        vec![sample(&[false, true, true]), sample(&[false; 9]), sample(&[true; 9]), sample(&some)]
    }
}

impl Cond {
    /// The choice of [`Self::rarely`] over a batch, if it pays: the first branch for all examples, the second for those that take it.
    pub(super) fn vmap_rarely(
        &self,
        b: &mut Builder,
        cx: &VmapContext,
        inputs: &[Var],
        batched: &[bool],
    ) -> Option<Batched> {
        let [no, yes] = &self.branches[..] else { return None };
        if !self.rarely || !pays(yes, cx) {
            return None;
        }
        let force = vec![true; no.results.len()];
        let fallbacks = b.inline(&vmap(no, cx, &batched[1..], &force).0, &inputs[1..]);
        let op = Rarely::new(yes.clone(), &batched[1..]);
        let results = b.emit(op, &[inputs, &fallbacks].concat());
        Some(results.into_iter().map(|var| (var, true)).collect())
    }
}
