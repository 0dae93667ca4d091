//! Loops and branches that rewrite themselves.

use super::check;
use crate::ir::{Builder, Func, Var};
use crate::ops::{AllReduce, Combination, Direction, Effect, REPLICAS, Scan, While};
use crate::simplify::{Group, Options};
use crate::types::{DType, TensorType};
use std::sync::Arc;

fn f32s(shape: impl AsRef<[usize]>) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn ops(func: &Func) -> Vec<&'static str> {
    func.eqns.iter().map(|eqn| eqn.op.mnemonic()).collect()
}

/// The body of the first equation with bodies.
fn body(func: &Func) -> Func {
    let mut bodies =
        func.eqns.iter().flat_map(|eqn| eqn.op.funcs().into_iter().cloned().collect::<Vec<_>>());
    (*bodies.next().expect("there is a region op")).clone()
}

/// A scan over `xs: f32[length, 2]` with a const `w: f32[2]` and two carries; the second never changes.
fn scan(length: usize, reverse: bool) -> Func {
    let mut inner = Builder::new();
    let [w, c, still, x] = [(); 4].map(|()| inner.param(f32s([2])));
    let root = inner.sqrt(w);
    let scaled = inner.mul(c, root);
    let next = inner.add(scaled, x);
    let y = inner.mul(next, still);
    let body = Arc::new(inner.finish("step", vec![next, still, y, x, w, y]));
    let mut b = Builder::new();
    let [w, c, still] = [(); 3].map(|()| b.param(f32s([2])));
    let xs = b.param(f32s([length, 2]));
    let op = Scan { body, length, reverse, consts: 1, carries: 2 };
    let results = b.emit(op, &[w, c, still, xs]);
    b.finish("main", results)
}

#[test]
fn a_scan_keeps_only_what_changes() {
    for reverse in [false, true] {
        let after = check(&scan(4, reverse), &Options::all(), 1);
        let inner = body(&after);
        // The resulting slices and constants are the original slices and constants.
        assert_eq!(ops(&inner), ["sqrt", "multiply", "add", "multiply"], "{after}");
        assert_eq!(inner.results.len(), 2, "{after}");
    }
}

#[test]
fn constants_and_repeated_operands_enter_a_scan_once() {
    let mut inner = Builder::new();
    let [a, z, c, d, x, y] = [(); 6].map(|()| inner.param(f32s([])));
    let t = inner.mul(a, z);
    let t = inner.add(t, c);
    let next = inner.add(t, x);
    let t = inner.mul(a, z);
    let t = inner.add(t, d);
    let other = inner.add(t, y);
    let step = Arc::new(inner.finish("step", vec![next, next, other]));
    let mut b = Builder::new();
    let (a, c, xs) = (b.param(f32s([])), b.param(f32s([])), b.param(f32s([3])));
    let two = b.full(&f32s([]), 2.0);
    let op = Scan { body: step, length: 3, reverse: false, consts: 2, carries: 2 };
    let results = b.emit(op, &[a, two, c, c, xs, xs]);
    let after = check(&b.finish("main", results), &Options::all(), 4);
    let inner = body(&after);
    assert_eq!((inner.params.len(), inner.results.len()), (3, 2), "{after}");
}

#[test]
fn a_while_loop_keeps_only_what_changes() {
    let int = TensorType::scalar(DType::I32);
    let mut inner = Builder::new();
    let (limit, n) = (inner.param(int.clone()), inner.param(int.clone()));
    let most = inner.mul(limit, limit);
    let five = inner.full(&int, 5.0);
    let most = inner.minimum(most, five);
    let going = inner.compare(Direction::Lt, n, most);
    let condition = Arc::new(inner.finish("condition", vec![going]));
    let mut inner = Builder::new();
    let (limit, n) = (inner.param(int.clone()), inner.param(int.clone()));
    let one = inner.full(&int, 1.0);
    let square = inner.mul(limit, limit);
    let step = inner.maximum(square, one);
    let step = inner.minimum(step, one);
    let next = inner.add(n, step);
    let body_func = Arc::new(inner.finish("body", vec![limit, next]));
    let mut b = Builder::new();
    let (limit, n) = (b.param(int.clone()), b.param(int));
    let zero = b.full_like(n, 0.0);
    let n = b.maximum(n, zero);
    let op = While { condition, body: body_func, condition_consts: 0, body_consts: 0 };
    let results = b.emit(op, &[limit, n]);
    let after = check(&b.finish("main", results), &Options::all(), 6);
    assert_eq!(body(&after).params.len(), 2, "{after}");
    let outputs = &after.eqns.last().expect("there are equations").outputs;
    assert_eq!(outputs.len(), 1, "{after}");
}

/// Collectives are neither merged nor reordered, even if their operands are simplified.
#[test]
fn effects_stay_in_order() {
    let reduce = |b: &mut Builder, x: Var, computation| {
        let op = AllReduce { axis: REPLICAS.to_string(), computation };
        b.emit(op, &[x])[0]
    };
    let mut b = Builder::new();
    let x = b.param(f32s([2]));
    let first = reduce(&mut b, x, Combination::Sum);
    let minus = b.neg(x);
    let plus = b.neg(minus);
    let second = reduce(&mut b, plus, Combination::Max);
    let zero = b.full_like(second, 0.0);
    let same = b.sub(second, zero);
    let third = reduce(&mut b, same, Combination::Sum);
    let total = b.add(third, first);
    let func = b.finish("main", vec![total]);
    let after = check(&func, &Options::all(), 7);
    let effects = |func: &Func| {
        func.eqns
            .iter()
            .filter(|eqn| eqn.op.effect() != Effect::Pure)
            .map(|eqn| eqn.op.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(effects(&after), effects(&func));
    assert_eq!(after.eqns.len(), 4, "{after}");
}

/// A body's equations are simplified in their own region.
#[test]
fn bodies_are_simplified() {
    let mut inner = Builder::new();
    let c = inner.param(f32s([2]));
    let minus = inner.neg(c);
    let plus = inner.neg(minus);
    let next = inner.add(plus, c);
    let step = Arc::new(inner.finish("step", vec![next]));
    let mut b = Builder::new();
    let c = b.param(f32s([2]));
    let op = Scan { body: step, length: 3, reverse: false, consts: 0, carries: 1 };
    let results = b.emit(op, &[c]);
    let after = check(&b.finish("main", results), &Options::default().with(Group::Algebra), 8);
    assert_eq!(ops(&body(&after)), ["add"]);
}
