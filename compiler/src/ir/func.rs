//! Functions, equations and variables.

use super::watch::{self, Watched, Watcher};
use super::{Builder, Loc};
use crate::array::Array;
use crate::ops::OpRef;
use crate::scalar::Scalar;
use crate::types::TensorType;
use smallvec::SmallVec;

/// A variable of a [`Func`]: an index into its type table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

impl Var {
    /// The index as a `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The tangent or cotangent of a value; `None` is zero.
pub type Slope = Option<Var>;

/// The tangents of some values, or their cotangents, in order.
pub type Slopes = Vec<Slope>;

/// The results of an op under vmap, each with true if the batch is its leading axis.
pub type Batched = Vec<(Var, bool)>;

/// The operands or results of an equation. Most equations have few, and long programs are large, so
/// they are stored in the equation itself.
pub type Vars = SmallVec<[Var; 4]>;

/// One application of an op.
#[derive(Clone, Debug)]
pub struct Eqn {
    /// The op that is applied.
    pub op: OpRef,
    /// The operands, in the op's order.
    pub inputs: Vars,
    /// The results, each defined here.
    pub outputs: Vars,
    /// The user's line that caused it.
    pub loc: Loc,
}

/// A function: parameters, equations in order, results.
///
/// Equality and hashing ignore names, locations and the variables' indices: two functions are equal
/// if they compute the same by the same steps.
#[derive(Clone, Debug)]
pub struct Func {
    /// A name for readers; it affects no result.
    pub name: String,
    /// The type of every variable.
    pub types: Vec<TensorType>,
    /// The parameters, in order.
    pub params: Vec<Var>,
    /// The equations, each after the equations it depends on.
    pub eqns: Vec<Eqn>,
    /// The results. A variable may occur several times, and parameters may occur.
    pub results: Vec<Var>,
}

impl Func {
    /// The type of a variable.
    pub fn ty(&self, var: Var) -> &TensorType {
        &self.types[var.index()]
    }

    /// The types of the parameters.
    pub fn param_types(&self) -> Vec<TensorType> {
        self.params.iter().map(|&var| self.ty(var).clone()).collect()
    }

    /// The types of the results.
    pub fn result_types(&self) -> Vec<TensorType> {
        self.results.iter().map(|&var| self.ty(var).clone()).collect()
    }

    /// Runs the function by the reference semantics of its ops: slow, and the reference for every
    /// transform.
    pub fn eval(&self, arguments: &[Array]) -> Vec<Array> {
        assert_eq!(self.params.len(), arguments.len(), "one argument per parameter");
        let mut values: Vec<Option<Array>> = vec![None; self.types.len()];
        for (&param, argument) in self.params.iter().zip(arguments) {
            assert_eq!(self.ty(param), argument.ty(), "the argument's type is the parameter's");
            values[param.index()] = Some(argument.clone());
        }
        let watched = watch::begin(self, arguments);
        let last_uses = self.last_uses();
        for (position, eqn) in self.eqns.iter().enumerate() {
            if watched && watch::enter(self, position) {
                // The results are no longer needed: the evaluation ends as soon as it can.
                watch::give_up();
                return self.result_types().into_iter().map(zeros).collect();
            }
            let mut inputs = Vec::with_capacity(eqn.inputs.len());
            for (operand, &var) in eqn.inputs.iter().enumerate() {
                let value = &mut values[var.index()];
                let is_last = last_uses[var.index()] == Some((position, operand));
                let value = if is_last { value.take() } else { value.clone() };
                inputs.push(value.expect("defined before use"));
            }
            let mut outputs = eqn.op.eval(&inputs);
            if watched {
                watch::leave(self, position, &inputs, &mut outputs);
            }
            debug_assert_eq!(outputs.len(), eqn.outputs.len());
            for (&var, value) in eqn.outputs.iter().zip(outputs) {
                debug_assert_eq!(
                    self.ty(var),
                    value.ty(),
                    "{}: eval gave another type than infer",
                    eqn.op.mnemonic()
                );
                // Values that are never read take no memory.
                if last_uses[var.index()].is_some() {
                    values[var.index()] = Some(value);
                }
            }
        }
        let result = |var: &Var| values[var.index()].clone().expect("defined before use");
        let results: Vec<Array> = self.results.iter().map(result).collect();
        if watched {
            watch::end(self, &results);
        }
        results
    }

    /// The last use of each variable: the equation's position and the operand's. A result of the
    /// function counts as used by the equation after the last. `None` for a variable that is never
    /// read.
    fn last_uses(&self) -> Vec<Option<(usize, usize)>> {
        let mut last = vec![None; self.types.len()];
        for (position, eqn) in self.eqns.iter().enumerate() {
            for (operand, var) in eqn.inputs.iter().enumerate() {
                last[var.index()] = Some((position, operand));
            }
        }
        self.results.iter().for_each(|var| last[var.index()] = Some((self.eqns.len(), 0)));
        last
    }

    /// [`Func::eval`] together with the sources of nonfinite numbers. `None` if the watcher stopped
    /// it. An equation in the body of a loop is found in the round that makes such a number.
    pub fn eval_watched(&self, arguments: &[Array], watcher: &Watcher) -> Option<Watched> {
        watch::watched(self, arguments, watcher)
    }

    /// The function of `params` that `eqns` compute; `eqns` are some of this function's equations,
    /// in order. Variables are renumbered.
    pub fn subset<'a>(
        &'a self,
        params: &[Var],
        eqns: impl IntoIterator<Item = &'a Eqn>,
        results: &[Var],
    ) -> Func {
        let mut types = Vec::new();
        let mut map: Vec<Option<Var>> = vec![None; self.types.len()];
        let mut define = |var: Var, map: &mut Vec<Option<Var>>| {
            let new = Var(u32::try_from(types.len()).expect("no more variables than before"));
            types.push(self.ty(var).clone());
            map[var.index()] = Some(new);
            new
        };
        let read = |map: &[Option<Var>], var: Var| {
            map[var.index()].expect("the kept equations are closed under use")
        };
        let params = params.iter().map(|&var| define(var, &mut map)).collect();
        let mut kept = Vec::new();
        for eqn in eqns {
            let inputs = eqn.inputs.iter().map(|&var| read(&map, var)).collect();
            let outputs = eqn.outputs.iter().map(|&var| define(var, &mut map)).collect();
            kept.push(Eqn { op: eqn.op.clone(), inputs, outputs, loc: eqn.loc });
        }
        let results = results.iter().map(|&var| read(&map, var)).collect();
        Func { name: self.name.clone(), types, params, eqns: kept, results }
    }

    /// The function with the same parameters, with each equation emitted again by `emit`. `emit`
    /// gets the equation and the new inputs, and returns the new outputs.
    pub(crate) fn rebuilt(
        &self,
        mut emit: impl FnMut(&mut Builder, &Eqn, &[Var]) -> Vec<Var>,
    ) -> Func {
        let mut b = Builder::new();
        let mut map: Vec<Option<Var>> = vec![None; self.types.len()];
        for &param in &self.params {
            map[param.index()] = Some(b.param(self.ty(param).clone()));
        }
        let read = |map: &[Option<Var>], vars: &[Var]| -> Vec<Var> {
            let new = |var: &Var| map[var.index()].expect("variables are defined before use");
            vars.iter().map(new).collect()
        };
        for eqn in &self.eqns {
            b.set_loc(eqn.loc);
            let outputs = emit(&mut b, eqn, &read(&map, &eqn.inputs));
            for (from, to) in eqn.outputs.iter().zip(outputs) {
                map[from.index()] = Some(to);
            }
        }
        b.finish(self.name.clone(), read(&map, &self.results))
    }

    /// For every variable, true if it depends on one of the `marked` parameters.
    pub fn depends_on(&self, marked: &[bool]) -> Vec<bool> {
        let mut depends = vec![false; self.types.len()];
        for (&param, &mark) in self.params.iter().zip(marked) {
            depends[param.index()] = mark;
        }
        for eqn in &self.eqns {
            if eqn.inputs.iter().any(|var| depends[var.index()]) {
                eqn.outputs.iter().for_each(|var| depends[var.index()] = true);
            }
        }
        depends
    }

    /// The number of every variable in order of definition, parameters first; `None` for an
    /// undefined variable.
    pub(crate) fn numbers(&self) -> Vec<Option<u32>> {
        let mut numbers = vec![None; self.types.len()];
        let outputs = self.eqns.iter().flat_map(|eqn| &eqn.outputs);
        for (number, var) in (0..).zip(self.params.iter().chain(outputs)) {
            // A malformed function must be printable too: the verifier shows it.
            if let Some(slot) = numbers.get_mut(var.index()) {
                *slot = Some(number);
            }
        }
        numbers
    }

    /// A measure of the work that cannot be fused with the surrounding ops. It counts the elements
    /// that loops compute, once per round, and the elements that reductions, sorts and products
    /// read.
    pub fn work_apart(&self) -> usize {
        self.work(0)
    }

    /// The work apart of `turns` rounds of a loop, or 1 outside of loops.
    fn work(&self, turns: usize) -> usize {
        let elements =
            |vars: &[Var]| -> usize { vars.iter().map(|&v| self.ty(v).elements()).sum() };
        let of = |eqn: &Eqn| {
            let own = elements(&eqn.outputs).saturating_mul(turns);
            let many = eqn.op.reads_many();
            let read = if many { elements(&eqn.inputs) } else { 0 };
            let read = read.saturating_mul(turns.max(1));
            let inner = eqn.op.turns().map_or(turns, |inner| inner.saturating_mul(turns.max(1)));
            let bodies = eqn.op.funcs();
            let inner = bodies.iter().map(|func| func.work(inner));
            inner.fold(own.saturating_add(read), usize::saturating_add)
        };
        self.eqns.iter().map(of).fold(0, usize::saturating_add)
    }

    /// The number of ops that a library executes, including ops in bodies, and their total
    /// [multiplications](crate::Op::library_work).
    pub fn library_work(&self) -> (usize, usize) {
        let of = |eqn: &Eqn| {
            let inputs: Vec<TensorType> =
                eqn.inputs.iter().map(|&var| self.ty(var).clone()).collect();
            let own = eqn.op.library_work(&inputs);
            let bodies = eqn.op.funcs();
            let inner = bodies.iter().map(|func| func.library_work());
            inner.fold((usize::from(own > 0), own), together)
        };
        self.eqns.iter().map(of).fold((0, 0), together)
    }

    /// The number of equations, including equations in bodies.
    pub fn eqn_count(&self) -> usize {
        let inner = |eqn: &Eqn| eqn.op.funcs().iter().map(|func| func.eqn_count()).sum::<usize>();
        self.eqns.iter().map(|eqn| 1 + inner(eqn)).sum()
    }
}

fn together(one: (usize, usize), other: (usize, usize)) -> (usize, usize) {
    (one.0 + other.0, one.1.saturating_add(other.1))
}

impl PartialEq for Func {
    fn eq(&self, other: &Self) -> bool {
        let (numbers, others) = (self.numbers(), other.numbers());
        let read = |a: &[Var], b: &[Var]| {
            let same = |(a, b): (&Var, &Var)| numbers[a.index()] == others[b.index()];
            a.len() == b.len() && a.iter().zip(b).all(same)
        };
        let defined = |a: &[Var], b: &[Var]| {
            let same = |(&a, &b): (&Var, &Var)| self.ty(a) == other.ty(b);
            a.len() == b.len() && a.iter().zip(b).all(same)
        };
        let same = |(a, b): (&Eqn, &Eqn)| {
            read(&a.inputs, &b.inputs) && defined(&a.outputs, &b.outputs) && a.op == b.op
        };
        self.eqns.len() == other.eqns.len()
            && defined(&self.params, &other.params)
            && self.eqns.iter().zip(&other.eqns).all(same)
            && read(&self.results, &other.results)
    }
}

impl Eq for Func {}

impl std::hash::Hash for Func {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let numbers = self.numbers();
        let mut read = |vars: &[Var]| vars.iter().for_each(|var| numbers[var.index()].hash(state));
        read(&self.results);
        self.eqns.iter().for_each(|eqn| read(&eqn.inputs));
        self.params.len().hash(state);
        self.eqns.iter().for_each(|eqn| eqn.op.hash(state));
    }
}

/// Zeros of a type.
fn zeros(ty: TensorType) -> Array {
    let zero = Scalar::zero(ty.dtype);
    Array::splat(ty, zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Call, CallForm, Convolution, DotGeneral};
    use crate::types::DType;
    use std::sync::Arc;

    fn f32s(shape: impl AsRef<[usize]>) -> TensorType {
        TensorType::new(DType::F32, shape)
    }

    #[test]
    fn the_work_of_libraries_is_that_of_products_in_bodies_too() {
        let mut b = Builder::new();
        let (matrix, other) = (b.param(f32s([2, 3])), b.param(f32s([3, 4])));
        let product = b.emit(DotGeneral::matmul(), &[matrix, other])[0];
        let body = Arc::new(b.finish("body", vec![product]));
        let mut b = Builder::new();
        let arguments = [[2, 3], [3, 4], [3, 1]].map(|shape| b.param(f32s(shape)));
        let [matrix, other, column] = arguments;
        let called = b.emit(Call { body, form: CallForm::Inlined }, &[matrix, other])[0];
        // No library multiplies a matrix and a vector.
        let vector = b.emit(DotGeneral::matmul(), &[matrix, column])[0];
        let (image, kernel) = (b.param(f32s([5, 6, 6, 2])), b.param(f32s([3, 3, 2, 7])));
        let convolved = b.emit(Convolution::new(2), &[image, kernel])[0];
        assert_eq!(b.ty(convolved).shape[..], [5, 4, 4, 7]);
        let func = b.finish("products", vec![called, vector, convolved]);
        assert_eq!(func.library_work(), (2, 2 * 3 * 4 + 5 * 4 * 4 * 7 * 3 * 3 * 2));
    }
}
