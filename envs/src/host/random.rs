//! The random number generator of native environments.

use serde::{Deserialize, Serialize};

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): eight bytes of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Random(u64);

impl Random {
    /// The generator of an environment, by the run's seed and the environment's global index.
    #[must_use]
    pub fn of_environment(seed: u64, index: usize) -> Self {
        // A draw between the two keeps neighbouring seeds and indices apart.
        let mut of_run = Random(seed);
        Random(of_run.bits() ^ (index as u64).wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws uniformly from [0, 1), in steps of 2^-24.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Draws uniformly from `low..high`.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.uniform()
    }

    /// Draws one of `0..n` by multiplication, with a bias below `n` / 2^64. Gives 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// The generator with a state, which is all that its draws depend on.
    #[must_use]
    pub fn from_state(state: u64) -> Self {
        Random(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for the state 1234567, as published with the reference implementation.
    #[test]
    fn words_are_splitmix64s() {
        let mut random = Random::from_state(1_234_567);
        let words: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_stay_in_their_ranges_and_fill_them() {
        let mut random = Random::of_environment(3, 5);
        let draws: Vec<f32> = (0..10_000).map(|_| random.range(-0.05, 0.05)).collect();
        assert!(draws.iter().all(|draw| (-0.05..0.05).contains(draw)));
        let mean = draws.iter().sum::<f32>() / draws.len() as f32;
        assert!(mean.abs() < 0.001, "{mean}");
        let mut counts = [0; 5];
        (0..10_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| (1_850..2_150).contains(count)), "{counts:?}");
    }

    #[test]
    fn environments_differ() {
        let mut first: Vec<u64> = (0..100)
            .flat_map(|seed| (0..100).map(move |index| Random::of_environment(seed, index).bits()))
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 10_000);
    }
}
