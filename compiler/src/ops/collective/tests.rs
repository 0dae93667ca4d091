//! Collectives over the axis of a vmap.

use super::*;
use crate::array::Array;
use crate::ir::Func;
use crate::transform::{VmapContext, vjp, vmap};
use crate::types::{DType, TensorType};

const MEMBERS: usize = 3;

/// Each of three members gets a row of two; `body` computes the member's results from it.
fn members(body: impl Fn(&mut Builder, Var) -> Vec<Var>) -> Func {
    let mut b = Builder::new();
    let x = b.param(TensorType::new(DType::F32, [2]));
    let results = body(&mut b, x);
    b.finish("member", results)
}

fn together(func: &Func) -> Func {
    let cx = VmapContext { axis: Some("members".to_string()), ..VmapContext::new(MEMBERS) };
    vmap(func, &cx, &vec![true; func.params.len()], &vec![true; func.results.len()]).0
}

fn rows() -> Array {
    Array::floats(DType::F32, [MEMBERS, 2], &[1.0, -2.0, 5.0, 4.0, 3.0, 4.0])
}

#[test]
fn sums_and_extrema_reach_every_member() {
    let func = members(|b, x| {
        let one = b.full_like(x, 1.0);
        let mut results = b.psum(&[x, one], "members");
        results.extend(b.all_reduce(&[x], "members", Combination::Max));
        results.extend(b.all_reduce(&[x], "members", Combination::Min));
        results
    });
    let results: Vec<Vec<f64>> =
        together(&func).eval(&[rows()]).iter().map(Array::to_f64).collect();
    assert_eq!(results[0], [9.0, 6.0].repeat(MEMBERS));
    assert_eq!(results[1], [3.0, 3.0].repeat(MEMBERS));
    assert_eq!(results[2], [5.0, 4.0].repeat(MEMBERS));
    assert_eq!(results[3], [1.0, -2.0].repeat(MEMBERS));
}

#[test]
fn every_member_knows_its_place_and_all_rows() {
    let func =
        members(|b, x| vec![b.axis_index("members"), b.all_gather(x, "members", MEMBERS, 1)]);
    let results = together(&func).eval(&[rows()]);
    assert_eq!(results[0].to_f64(), [0.0, 1.0, 2.0]);
    assert_eq!(results[1].to_f64(), [1.0, 5.0, 3.0, -2.0, 4.0, 4.0].repeat(MEMBERS));
}

#[test]
fn another_vmap_batches_a_collective() {
    let func = members(|b, x| b.psum(&[x], "members"));
    let (batch, flags) = vmap(&func, &VmapContext::new(4), &[true], &[false]);
    assert_eq!(flags, [true]);
    assert_eq!(batch.eqns.len(), 1);
    assert_eq!(batch.eqns[0].op, func.eqns[0].op);
}

/// The members' gradients of the sum of every member's results, taken inside the vmap and around
/// it.
#[test]
fn gradients_cross_the_axis() {
    let func = members(|b, x| {
        let place = b.axis_index("members");
        let place = b.convert(place, DType::F32);
        let place = b.broadcast_in_dim(place, &[2], &[]);
        let total = b.psum(&[x], "members")[0];
        let greatest = b.all_reduce(&[x], "members", Combination::Max)[0];
        let all = b.all_gather(x, "members", MEMBERS, 0);
        let all = b.reduce_sum(all, &[0]);
        let sum = b.add(total, greatest);
        let sum = b.add(sum, all);
        vec![b.mul(place, sum)]
    });
    let ones = Array::floats(DType::F32, [MEMBERS, 2], &[1.0; 6]);
    // 0 + 1 + 2 from each of the two sums; the greatest gets the same amount again, half of it at a
    // tie.
    let expected = [6.0, 6.0, 9.0, 7.5, 6.0, 7.5];
    let inside = vjp(&func, &[true]).expect("collectives have gradients");
    let outside = vjp(&together(&func), &[true]).expect("ordinary ops have gradients");
    let pull = |primal: &Func, pullback: &Func| {
        let residuals = primal.eval(&[rows()]).split_off(1);
        pullback.eval(&[residuals, vec![ones.clone()]].concat())[0].to_f64()
    };
    assert_eq!(pull(&together(&inside.primal), &together(&inside.pullback)), expected);
    assert_eq!(pull(&outside.primal, &outside.pullback), expected);
}
