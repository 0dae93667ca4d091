//! Counters (i32) for runs that last for days: they never wrap to negative numbers.

use podracer_dsl::prelude::*;

/// The count plus one, i32: `count + 1`, except that `i32::MAX` stays, as in
/// `optax.safe_increment`.
///
/// It is for counts that schedules and bias corrections read, which become constant long before
/// 2^31.
#[track_caller]
pub(crate) fn next_count(count: Tensor) -> Tensor {
    later(count, 1)
}

/// The count plus `more`, i32: `count + more`, and at most `i32::MAX`.
#[track_caller]
pub(crate) fn later(count: Tensor, more: i32) -> Tensor {
    count.minimum(i32::MAX - more) + more
}

/// The count plus one, i32, for work that is due at multiples of `period`: `count + 1`. After
/// `i32::MAX` the count continues at 2^31 modulo `period`, or at `period` if that is 0. So a count
/// of a run that has begun is positive, and the distance between two multiples stays `period`. A
/// count that stayed at `i32::MAX` would be due always or never.
#[track_caller]
pub(crate) fn next_of_period(count: Tensor, period: usize) -> Tensor {
    let period = i64::try_from(period.max(1)).unwrap_or(i64::MAX);
    let rest = (1 << 31) % period;
    let first = if rest == 0 { period } else { rest };
    let first = i32::try_from(first).unwrap_or(i32::MAX);
    select(count.eq(i32::MAX), first, count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(f: impl FnOnce() -> Tensor) -> Vec<i64> {
        let traced = trace((), |()| f()).expect("it traces");
        traced.eval(&[]).expect("it has values")[0].to_f64().iter().map(|&x| x as i64).collect()
    }

    #[test]
    fn a_count_wrapped_after_i32_max() {
        let greatest = i64::from(i32::MAX);
        let next = values(|| next_count(constant([0, 5, i32::MAX - 1, i32::MAX])));
        assert_eq!(next, [1, 6, greatest, greatest]);
        let after = values(|| later(constant([0, i32::MAX - 2, i32::MAX - 1, i32::MAX]), 2));
        assert_eq!(after, [2, greatest, greatest, greatest]);
    }

    #[test]
    fn a_period_fell_out_of_step_after_i32_max() {
        for period in [1i64, 2, 3, 7, 1000, 1 << 20, i64::from(i32::MAX)] {
            let start = i64::from(i32::MAX) - 3;
            let counts = values(|| {
                let counts = scan(scalar(start as i32), 0..8, |count, _| {
                    let next = next_of_period(count, period as usize);
                    (next, next)
                });
                counts.1
            });
            for (i, count) in counts.into_iter().enumerate() {
                let exact = start + 1 + i as i64;
                assert!(count > 0, "after {exact} by {period}: {count}");
                assert_eq!(count % period, exact % period, "after {exact} by {period}");
            }
        }
    }
}
