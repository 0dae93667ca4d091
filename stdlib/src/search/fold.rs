//! Reductions over the actions of nodes, `[B, A]` to `[B, 1]`, by halves: the first half of the actions with the second, and so on.
//!
//! XLA reduces a row on a CPU one element after another, each waiting for the one before. Halves do not wait: with 18 actions a
//! level of the tree takes a fraction of the time, and with hundreds the halves are vectors.

use podracer_dsl::prelude::*;

/// Halves until one column is left. Columns in the middle may be taken twice: `f(x, x)` must be `x`.
#[track_caller]
fn halved(mut x: Tensor, f: impl Fn(Tensor, Tensor) -> Tensor) -> Tensor {
    while x.dim(1) > 1 {
        let (all, half) = (x.dim(1), x.dim(1).div_ceil(2));
        x = f(x.slice((.., ..half)), x.slice((.., all - half..)));
    }
    x
}

/// The greatest number of each row; NaN if one of them is. `[B, 1]`
#[track_caller]
pub(super) fn max(x: Tensor) -> Tensor {
    halved(x, |a, b| maximum(a, b))
}

/// The least number of each row. `[B, 1]`
#[track_caller]
pub(super) fn min(x: Tensor) -> Tensor {
    halved(x, |a, b| minimum(a, b))
}

/// Actions up to which sums are in the order of a plain reduction, as mctx's are: between two actions that are equally good but for
/// rounding, the order decides.
const IN_ORDER: usize = 64;

/// The sum of each row. `[B, 1]`
#[track_caller]
pub(super) fn sum(x: Tensor) -> Tensor {
    if x.dim(1) <= IN_ORDER { x.sum_axis(keepdims(-1)) } else { count(x) }
}

/// The sum of each row of whole numbers, whose order makes no difference. `[B, 1]`
#[track_caller]
pub(super) fn count(mut x: Tensor) -> Tensor {
    let mut rest: Option<Tensor> = None;
    while x.dim(1) > 1 {
        let (all, half) = (x.dim(1), x.dim(1) / 2);
        if all % 2 == 1 {
            let last = x.slice((.., all - 1..));
            rest = Some(rest.map_or(last, |rest| rest + last));
        }
        x = x.slice((.., ..half)) + x.slice((.., half..2 * half));
    }
    rest.map_or(x, |rest| x + rest)
}

/// The first position of each row's greatest number, i32 `[B]`. With a NaN in the row, some position.
#[track_caller]
pub(super) fn argmax(x: Tensor) -> Tensor {
    let last = x.dim(1) as i32 - 1;
    min(select(x.eq(max(x)), iota(I32, x.shape(), 1), last)).index_axis(1, 0)
}

/// The softmax of each row.
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
            let traced = trace(f32([4, actions]), |x| {
                let greatest = (max(x).index_axis(1, 0), x.max_axis(-1));
                let least = (min(x).index_axis(1, 0), x.min_axis(-1));
                (
                    greatest,
                    least,
                    (count(x).index_axis(1, 0), x.sum_axis(-1)),
                    (argmax(x), x.argmax(-1)),
                )
            });
            // Whole numbers, so that sums are exact; some are equal.
            let x: Vec<f64> = (0..4 * actions).map(|i| f64::from((i * 7919 % 11) as u32)).collect();
            let results = traced.expect("it traces").eval(&[Array::floats(F32, [4, actions], &x)]);
            let results = results.expect("it runs");
            for pair in results.chunks(2) {
                assert_eq!(pair[0], pair[1], "{actions} actions");
            }
        }
    }
}
