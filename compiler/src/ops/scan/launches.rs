//! Scans with fewer kernels in an iteration, for platforms that launch each kernel.
//!
//! Invariant: the results are bit-identical.

use super::Scan;
use crate::ir::{Builder, Var};
use crate::types::{DType, TensorType};
use std::sync::Arc;

/// Greatest number of iterations that become one, and of equations in the body of each of these:
/// XLA compiles them to a kernel or two.
const ITERATIONS: usize = 8;
const EQUATIONS: usize = 24;

/// Greatest size of an output slice that is written together with others. Copying a larger slice
/// takes longer than a launch.
const BYTES: usize = 1 << 18;

/// Emits the loop with several short bodies per iteration, and with small outputs written together;
/// `None` if it has neither.
pub(super) fn fewer(scan: &Scan, b: &mut Builder, inputs: &[Var]) -> Option<Vec<Var>> {
    let factor = factor(scan);
    let packs = packs(&scan.body.result_types()[scan.carries..]);
    match (factor, packs.iter().all(|pack| pack.len() == 1)) {
        (1, true) => None,
        (1, false) => Some(packed(scan, b, inputs, &packs)),
        _ => {
            let (unrolled, operands) = unrolled(scan, b, inputs, factor);
            let results =
                fewer(&unrolled, b, &operands).unwrap_or_else(|| b.emit(unrolled, &operands));
            Some(by_iteration(scan, b, results))
        }
    }
}

/// The number of iterations that become one.
fn factor(scan: &Scan) -> usize {
    let eqns = &scan.body.eqns;
    if eqns.len() > EQUATIONS || !eqns.iter().all(|eqn| eqn.op.pointwise() || eqn.op.recompute()) {
        return 1;
    }
    (1..=ITERATIONS.min(scan.length))
        .rev()
        .find(|&factor| scan.length.is_multiple_of(factor))
        .unwrap_or(1)
}

/// The scan with `factor` iterations merged into one, and its operands. The leading axis of arrays
/// and outputs is split in two: `[length / factor, factor]`.
fn unrolled(scan: &Scan, b: &mut Builder, inputs: &[Var], factor: usize) -> (Scan, Vec<Var>) {
    let length = scan.length / factor;
    let (consts, carries, xs) = scan.split(inputs);
    let mut operands = [consts, carries].concat();
    for &x in xs {
        let ty = b.ty(x).unstacked().stacked(factor).stacked(length);
        operands.push(b.reshape(x, &ty.shape));
    }
    let mut inner = Builder::new();
    let params: Vec<Var> = (operands.iter().enumerate())
        .map(|(i, &operand)| {
            let ty = b.ty(operand);
            inner.param(if i < scan.carried().end { ty.clone() } else { ty.unstacked() })
        })
        .collect();
    let (consts, carries, xs) = scan.split(&params);
    let mut carries = carries.to_vec();
    let mut stacks: Vec<Vec<Var>> = vec![Vec::new(); scan.body.results.len() - scan.carries];
    let positions = Scan { length: factor, ..scan.clone() };
    for position in positions.positions() {
        let slices = xs.iter().map(|&x| {
            let slice = inner.slice_axis(x, 0, position, position + 1);
            let ty = inner.ty(x).unstacked();
            inner.reshape(slice, &ty.shape)
        });
        let slices: Vec<Var> = slices.collect();
        let mut results = inner.inline(&scan.body, &[consts, &carries, &slices].concat());
        let outputs = results.split_off(scan.carries);
        carries = results;
        for (stack, y) in stacks.iter_mut().zip(outputs) {
            let ty = inner.ty(y).stacked(1);
            stack.push(inner.reshape(y, &ty.shape));
        }
    }
    let outputs = stacks.into_iter().map(|mut stack| {
        if scan.reverse {
            stack.reverse();
        }
        inner.concatenate(&stack, 0)
    });
    let results: Vec<Var> = outputs.collect();
    let results = [carries, results].concat();
    let body = Arc::new(inner.finish(scan.body.name.clone(), results));
    (Scan { body, length, ..scan.clone() }, operands)
}

/// The results of an unrolled scan with a single leading axis again.
fn by_iteration(scan: &Scan, b: &mut Builder, mut results: Vec<Var>) -> Vec<Var> {
    for stack in &mut results[scan.carries..] {
        let ty = b.ty(*stack).unstacked().unstacked().stacked(scan.length);
        *stack = b.reshape(*stack, &ty.shape);
    }
    results
}

/// The outputs by position, grouped into lists that are written together: small outputs with
/// elements of the same size.
fn packs(outputs: &[TensorType]) -> Vec<Vec<usize>> {
    let mut packs: Vec<Vec<usize>> = Vec::new();
    let small = |ty: &TensorType| ty.bytes() <= BYTES && ty.elements() > 0;
    let alike = |a: &TensorType, b: &TensorType| {
        a.dtype == b.dtype || word(a.dtype).is_some() && word(a.dtype) == word(b.dtype)
    };
    for (k, ty) in outputs.iter().enumerate() {
        let with = packs
            .iter_mut()
            .find(|pack| small(ty) && small(&outputs[pack[0]]) && alike(ty, &outputs[pack[0]]));
        match with {
            Some(pack) => pack.push(k),
            None => packs.push(vec![k]),
        }
    }
    packs
}

/// The unsigned integer type that holds the bits of an element; `None` for bools, which have no bit
/// pattern.
fn word(dtype: DType) -> Option<DType> {
    match (dtype, dtype.size()) {
        (DType::Bool, _) => None,
        (_, 1) => Some(DType::U8),
        (_, 2) => Some(DType::U16),
        (_, 4) => Some(DType::U32),
        _ => Some(DType::U64),
    }
}

/// Emits the scan with one output for each of `packs`, and takes the packed outputs apart.
fn packed(scan: &Scan, b: &mut Builder, inputs: &[Var], packs: &[Vec<usize>]) -> Vec<Var> {
    let body = &scan.body;
    let outputs = body.result_types().split_off(scan.carries);
    // Bits are the same in any type; a pack with a single type keeps it.
    let dtype = |pack: &[usize]| {
        let first = outputs[pack[0]].dtype;
        let one = pack.iter().all(|&k| outputs[k].dtype == first);
        if one { first } else { word(first).unwrap_or(first) }
    };
    let mut inner = Builder::new();
    let params: Vec<Var> = body.param_types().into_iter().map(|ty| inner.param(ty)).collect();
    let mut results = inner.inline(body, &params);
    let ys = results.split_off(scan.carries);
    for pack in packs {
        results.push(match pack[..] {
            [only] => ys[only],
            _ => {
                let flat = pack.iter().map(|&k| {
                    let bits = inner.bitcast_convert(ys[k], dtype(pack));
                    inner.reshape(bits, &[outputs[k].elements()])
                });
                let flat: Vec<Var> = flat.collect();
                inner.concatenate(&flat, 0)
            }
        });
    }
    let body = Arc::new(inner.finish(body.name.clone(), results));
    let mut results = b.emit(Scan { body, ..scan.clone() }, inputs);
    let stacks = results.split_off(scan.carries);
    let mut places: Vec<(usize, Var)> = Vec::new();
    for (pack, &stack) in packs.iter().zip(&stacks) {
        if let [only] = pack[..] {
            places.push((only, stack));
            continue;
        }
        let mut at = 0;
        for &k in pack {
            let ty = outputs[k].stacked(scan.length);
            let part = b.slice_axis(stack, 1, at, at + outputs[k].elements());
            let part = b.reshape(part, &ty.shape);
            places.push((k, b.bitcast_convert(part, ty.dtype)));
            at += outputs[k].elements();
        }
    }
    places.sort_unstable_by_key(|(k, _)| *k);
    results.extend(places.into_iter().map(|(_, var)| var));
    results
}
