//! Reductions over the actions of nodes, `[A, B]` to `[1, B]`, by halving: the first half of the
//! actions is combined with the second, and so on.
//!
//! On a CPU XLA reduces one element after another, and each waits for the previous element. Halves
//! are independent, and are vectors. The last few rows use a plain reduction: otherwise XLA would
//! recompute the halves for each action that is compared with the result.

use podracer_dsl::prelude::*;

/// Number of rows left for the plain reduction.
const LAST: usize = 3;

/// Halves the rows until a few are left. Rows in the middle may be used twice: `f(x, x)` must be
/// `x`.
#[track_caller]
fn halved(mut x: Tensor, f: impl Fn(Tensor, Tensor) -> Tensor) -> Tensor {
    while x.dim(0) > LAST {
        let (all, half) = (x.dim(0), x.dim(0).div_ceil(2));
        x = f(x.slice(..half), x.slice(all - half..));
    }
    x
}

/// The greatest number of each column; NaN if the column has a NaN. `[1, B]`
#[track_caller]
pub(super) fn max(x: Tensor) -> Tensor {
    halved(x, |a, b| maximum(a, b)).max_axis(keepdims(0))
}

/// The least number of each column. `[1, B]`
#[track_caller]
pub(super) fn min(x: Tensor) -> Tensor {
    halved(x, |a, b| minimum(a, b)).min_axis(keepdims(0))
}

/// Greatest number of actions with sums in the order of a plain reduction, as in mctx. If two
/// actions are equal except for rounding, the order decides between them.
const IN_ORDER: usize = 64;

/// The sum of each column. `[1, B]`
#[track_caller]
pub(super) fn sum(x: Tensor) -> Tensor {
    if x.dim(0) <= IN_ORDER { x.sum_axis(keepdims(0)) } else { count(x) }
}

/// The sum of each column of integers, in any order. `[1, B]`
#[track_caller]
pub(super) fn count(mut x: Tensor) -> Tensor {
    while x.dim(0) > LAST {
        let half = x.dim(0).div_ceil(2);
        let missing = (2 * half - x.dim(0)) as i64;
        x = x.slice(..half) + x.slice(half..).pad(&[(0, missing), (0, 0)], 0);
    }
    x.sum_axis(keepdims(0))
}

/// The first position of each column's greatest number, i32 `[B]`. If the column contains NaN, an
/// arbitrary position.
///
/// Positions are reduced together with the numbers. A later search for the greatest number might
/// not find it, because XLA computes the numbers twice and may round them differently.
#[track_caller]
pub(super) fn argmax(mut x: Tensor) -> Tensor {
    let mut at = iota(I32, x.shape(), 0);
    while x.dim(0) > 1 {
        let (all, half) = (x.dim(0), x.dim(0).div_ceil(2));
        let (a, b) = (x.slice(..half), x.slice(all - half..));
        let (at_a, at_b) = (at.slice(..half), at.slice(all - half..));
        let first = a.gt(b) | (a.eq(b) & at_a.lt(at_b));
        (x, at) = (select(first, a, b), select(first, at_a, at_b));
    }
    at.index(0)
}

/// The softmax of each column.
#[track_caller]
pub(super) fn softmax(x: Tensor) -> Tensor {
    let exp = (x - max(x)).exp();
    exp / sum(exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_give_what_a_reduction_gives() {
        for actions in [1, 2, 3, 7, 18, 33] {
            let traced = trace(f32([actions, 4]), |x| {
                let greatest = (max(x).index(0), x.max_axis(0));
                let least = (min(x).index(0), x.min_axis(0));
                (greatest, least, (count(x).index(0), x.sum_axis(0)), (argmax(x), x.argmax(0)))
            });
            // Integers, so that sums are exact; some are equal.
            let x: Vec<f64> = (0..4 * actions).map(|i| f64::from((i * 7919 % 11) as u32)).collect();
            let results = traced.expect("it traces").eval(&[Array::floats(F32, [actions, 4], &x)]);
            let results = results.expect("it runs");
            for pair in results.chunks(2) {
                assert_eq!(pair[0], pair[1], "{actions} actions");
            }
        }
    }
}
