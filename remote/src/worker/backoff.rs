//! Pauses between attempts to connect.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Pauses that double from 0.1 to 10 seconds, each drawn between half of it and all of it: workers that lost their learner
/// together do not come back together.
pub(super) struct Backoff {
    next: Duration,
    random: RandomState,
    drawn: u64,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { next: FIRST, random: RandomState::new(), drawn: 0 }
    }

    /// Begins again with short pauses, after a connection that worked.
    pub(super) fn reset(&mut self) {
        self.next = FIRST;
    }

    pub(super) fn pause(&mut self) -> Duration {
        self.drawn += 1;
        let unit = self.random.hash_one(self.drawn) as f64 / u64::MAX as f64;
        let pause = self.next.mul_f64(0.5 + 0.5 * unit);
        self.next = (2 * self.next).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_ten_seconds_and_are_spread() {
        let mut backoff = Backoff::new();
        let mut whole = FIRST;
        for _ in 0..20 {
            let pause = backoff.pause();
            assert!(whole / 2 <= pause && pause <= whole, "{pause:?} of {whole:?}");
            whole = (2 * whole).min(LONGEST);
        }
        assert_ne!(backoff.pause(), backoff.pause());
        assert_ne!(Backoff::new().pause(), Backoff::new().pause(), "two workers differ");
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }
}
