//! The capacity and the timeout of batches: how many environments wait for each other, and for how
//! long.

use std::time::Duration;

/// Chooses the capacity, if it is not set, and the timeout, from the sizes of batches and their
/// times, the largest first.
pub(super) fn rule(times: &[(usize, Duration)], capacity: Option<usize>) -> (usize, Duration) {
    let cost = |&(size, time): &(usize, Duration)| time.as_secs_f64() / size as f64;
    let cheapest = times.iter().map(cost).fold(f64::INFINITY, f64::min);
    let cheap = times.iter().rev().find(|one| cost(one) <= 1.25 * cheapest);
    let capacity = capacity.or(cheap.map(|one| one.0)).unwrap_or(1);
    let fits = times.iter().rev().find(|one| one.0 >= capacity).or(times.first());
    let time = fits.map_or(Duration::ZERO, |one| one.1);
    (capacity, (2 * time).clamp(Duration::from_micros(200), Duration::from_millis(50)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_takes_the_smallest_batch_that_is_cheap() {
        let ms = Duration::from_millis;
        let times = [(64, ms(8)), (16, ms(2)), (4, ms(1))];
        assert_eq!(rule(&times, None), (16, ms(4)));
        assert_eq!(rule(&times, Some(40)), (40, ms(16)));
        assert_eq!(rule(&[(8, Duration::from_micros(10))], None).1, Duration::from_micros(200));
        assert_eq!(rule(&[(8, ms(900))], None).1, ms(50));
    }
}
