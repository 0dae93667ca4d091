//! Random orders.

use super::Key;
use super::discrete::bits_of;
use super::threefry::halves_split;
use crate::tensor::{Tensor, create, fail, resolve_axis, sort_together};
use crate::trace::called_opaquely;
use podracer_compiler::{DType, TensorType};

/// The number of rounds of sorting by random words after which ties are negligible, as jax computes
/// it.
fn rounds(elements: usize) -> usize {
    (3.0 * (elements.max(1) as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize
}

#[track_caller]
fn sort_by_words(mut halves: (Tensor, Tensor), mut x: Tensor, dimension: usize) -> Tensor {
    let ty = x.ty();
    for _ in 0..rounds(ty.elements()) {
        let [next, draw] = halves_split(halves);
        halves = next;
        let words = bits_of(draw, DType::U32, &ty.shape);
        x = sort_together(&[words, x], 1, dimension as isize)[1];
    }
    x
}

/// Random permutations.
impl Key {
    /// A random permutation of the numbers 0 to n - 1, every order equally likely, by sorting. i32 `[n]`
    #[track_caller]
    pub fn permutation(self, n: usize) -> Tensor {
        let _call = called_opaquely("permutation");
        let halves = self.consume();
        sort_by_words(halves, create::arange(n), 0)
    }

    /// Shuffles the slices of `x` along an axis: all elements of a slice move together.
    #[track_caller]
    pub fn shuffle(self, x: Tensor, axis: isize) -> Tensor {
        let _call = called_opaquely("shuffle");
        let ty = x.ty();
        let halves = self.consume();
        match resolve_axis("shuffle", axis, ty.rank()) {
            Some(0) if ty.rank() == 1 => sort_by_words(halves, x, 0),
            Some(resolved) => {
                x.take(sort_by_words(halves, create::arange(ty.shape[resolved]), 0), axis)
            }
            None => crate::tensor::poison(ty),
        }
    }

    /// Shuffles every line of `x` along an axis in a random order of its own.
    #[track_caller]
    pub fn shuffle_independent(self, x: Tensor, axis: isize) -> Tensor {
        let _call = called_opaquely("shuffle_independent");
        let ty = x.ty();
        let halves = self.consume();
        match resolve_axis("shuffle", axis, ty.rank()) {
            Some(dimension) => sort_by_words(halves, x, dimension),
            None => crate::tensor::poison(ty),
        }
    }

    /// A random permutation of the numbers 0 to n - 1, many times faster than [`Key::permutation`]: for minibatches.
    /// i32 `[n]`
    ///
    /// A keyed Feistel network of six rounds over pairs from Z_a x Z_b with a * b = n, a near b. It is a bijection for
    /// every key, but only 2^64 of the n! orders occur, and not exactly equally often. Position and pair statistics
    /// show no deviation at n = 512 and 8192. Where n has no divisor near its root (a < b / 64, or n < 64) this sorts.
    #[track_caller]
    pub fn feistel_permutation(self, n: usize) -> Tensor {
        let _call = called_opaquely("feistel_permutation");
        let halves = self.consume();
        let guess = TensorType::new(DType::I32, [n]);
        if n as u64 > 1 << 31 {
            let message = format!("expected at most 2^31 elements, got {n}");
            return fail("feistel_permutation", message, &[halves.0], guess);
        }
        let a =
            (1..).take_while(|a| a * a <= n).filter(|a| n.is_multiple_of(*a)).last().unwrap_or(1);
        let b = n.checked_div(a).unwrap_or(1);
        if n < 64 || a * 64 < b {
            return sort_by_words(halves, create::arange(n), 0);
        }
        let round_keys = bits_of(halves, DType::U32, &[6]);
        let positions = create::iota(DType::U32, [n], 0);
        let (mut left, mut right) = (positions / b as u32, positions % b as u32);
        for round in 0..6 {
            let round_key = round_keys.index(round);
            if round % 2 == 0 {
                left = (left + mix(right, round_key) % a as u32) % a as u32;
            } else {
                right = (right + mix(left, round_key) % b as u32) % b as u32;
            }
        }
        (left * b as u32 + right).astype(DType::I32)
    }
}

/// A word that depends on all bits of `x` and `key`: the finalizer of MurmurHash3.
#[track_caller]
fn mix(x: Tensor, key: Tensor) -> Tensor {
    let mut h = x ^ key;
    h = (h ^ (h >> 16)) * 0x85EB_CA6Bu32;
    h = (h ^ (h >> 13)) * 0xC2B2_AE35u32;
    h ^ (h >> 16)
}
