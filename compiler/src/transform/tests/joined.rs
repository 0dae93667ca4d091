//! Tests of merging collectives.

use crate::ops::{AllReduce, Combination};
use crate::transform::join;
use crate::{Builder, DType, Func, TensorType, Var};

fn all_reduce(b: &mut Builder, computation: Combination, of: Var) -> Var {
    let op = AllReduce { axis: "replicas".to_owned(), computation };
    b.emit1(op, &[of])
}

/// The operands of each all-reduce, in their order.
fn operands(func: &Func) -> Vec<usize> {
    let all = func.eqns.iter().filter(|eqn| eqn.op.downcast::<AllReduce>().is_some());
    all.map(|eqn| eqn.inputs.len()).collect()
}

#[test]
fn all_reduces_that_do_not_need_each_other_are_one() {
    let mut b = Builder::new();
    let [x, y] = [3, 2].map(|n| b.param(TensorType::new(DType::F32, [n])));
    // A mean and a variance of each of two values: two waits, not four. The maximum is separate.
    let sums = [x, y].map(|value| all_reduce(&mut b, Combination::Sum, value));
    let squares: Vec<Var> = ([x, y].iter().zip(sums))
        .map(|(&value, sum)| {
            let apart = b.emit1(crate::ops::Subtract {}, &[value, sum]);
            let square = b.emit1(crate::ops::Multiply {}, &[apart, apart]);
            all_reduce(&mut b, Combination::Sum, square)
        })
        .collect();
    let greatest = all_reduce(&mut b, Combination::Max, x);
    let func = b.finish("statistics", [&sums[..], &squares, &[greatest]].concat());
    assert_eq!(operands(&func), [1; 5]);
    let joined = join(&func);
    assert_eq!(operands(&joined), [2, 1, 2]);
    assert_eq!(joined.result_types(), func.result_types());
    assert_eq!(join(&joined), joined);
}

#[test]
fn nothing_moves_where_nothing_is_joined() {
    let mut b = Builder::new();
    let x = b.param(TensorType::new(DType::F32, [2]));
    let sum = all_reduce(&mut b, Combination::Sum, x);
    let twice = b.emit1(crate::ops::Add {}, &[x, x]);
    let of_both = b.emit1(crate::ops::Add {}, &[sum, twice]);
    let func = b.finish("one", vec![of_both]);
    assert_eq!(join(&func), func);
}
