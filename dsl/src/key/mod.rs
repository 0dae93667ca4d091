//! Random numbers: keys that split, and draws that are pure functions of keys. They follow
//! `jax.random` (threefry, partitionable mode); [`Key`] lists which draws are bit-identical.
//!
//! # Invariants
//! - A key is used once: it is not `Copy`, and its methods take `self`. Reuse that rustc cannot see
//!   (a clone, a key captured by a body that repeats) is found while tracing.
//! - Words come from threefry2x32, unrolled and elementwise at the place of use: XLA fuses them
//!   into the ops that read them.

mod choice;
mod continuous;
mod discrete;
mod gamma_slope;
mod permute;
mod rejection;
mod threefry;

use crate::tensor::{IntoTensor, Operand, Tensor, create, report, stack};
use crate::trace::{called, state};
use crate::tree::{IntoTree, Items, Kind, Over, Path, Sources, Spec, Tree, leaf_tree};
use podracer_compiler::{DType, Loc, TensorType};
use threefry::{halves_split, threefry2x32};

/// A random key: two words, u32 `[2]`.
///
/// Use it once. [`Key::split`] makes two keys, [`Key::split_n`] makes `n` keys to go over in `scan`
/// or `vmap`, and [`Key::fold_in`] makes the key of an index.
///
/// # How near draws are to those of `jax.random`
///
/// Keys and words are bit-identical. So are draws that need only integer arithmetic, comparisons
/// and one addition. Draws that need a logarithm or another approximation depend on its
/// implementation: XLA's here, or the reference semantics'
/// ([`Traced::eval`](crate::prelude::Traced::eval)), against jaxlib's XLA. The formulas are the
/// same. The table shows the greatest distances, in units in the last place of the draw. It
/// compares 928 draws, of 32 keys in three shapes, on CPUs with and without AVX-512, with jax
/// 0.10.2 on a CPU with AVX-512.
///
/// | draw | compiled by XLA | reference semantics |
/// |---|---|---|
/// | `split`, `split_n`, `fold_in`, `bits` | equal | equal |
/// | `randint`, `permutation`, `bernoulli`, `rademacher` | equal | equal |
/// | `categorical`, `poisson` | equal | equal |
/// | `uniform` | equal | equal |
/// | `uniform_range` | equal | 160 |
/// | `normal` | 1 | 3 |
/// | `truncated_normal` | 673 | 613 |
/// | `gumbel` | equal | 128 |
/// | `exponential`, `laplace` | 1 | 1 |
/// | `logistic` | 4 | 8 |
/// | `cauchy` | equal | 1 |
/// | `gamma` | 15 | 10 |
/// | `loggamma` | 12 | 256 |
/// | `beta` | 7 | 9 |
/// | `dirichlet` | 23 | 35 |
///
/// Great distances belong to draws near 0, which lose digits by cancellation: their absolute error
/// is as large as for a draw near 1. `categorical`, `bernoulli` and `poisson` compare floats, and
/// may differ if the two sides differ only in the last place. [`Key::feistel_permutation`] has no
/// counterpart in jax.
#[derive(Clone, Debug)]
#[must_use = "a key that is not used draws nothing"]
pub struct Key {
    words: Tensor,
    /// The two words, if they were computed one by one. Taking them out of `words` again would
    /// leave a concatenation and slices in every loop that splits keys. XLA does not fuse these
    /// with the computation of the words.
    halves: Option<(Tensor, Tensor)>,
}

/// The spec of a random key: u32 `[2]`.
pub fn key() -> Spec<Key> {
    Spec(TensorType::new(DType::U32, [2]))
}

/// Several keys, to go over in `vmap`, `scan` or `map`: u32 `[n, 2]`.
#[derive(Clone, Debug)]
#[must_use = "keys that are not used draw nothing"]
pub struct Keys {
    words: Tensor,
}

/// A seed: a number on the host, or an integer scalar of the program.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a seed",
    label = "expected u64, u32, i32 or an integer scalar `Tensor`"
)]
pub trait Seed {
    /// The two u32 words of the key, the high one first.
    fn words(self) -> (Operand, Operand);
}

impl Seed for u64 {
    fn words(self) -> (Operand, Operand) {
        (((self >> 32) as u32).operand(), (self as u32).operand())
    }
}

impl Seed for u32 {
    fn words(self) -> (Operand, Operand) {
        u64::from(self).words()
    }
}

/// The bits of the number without sign extension, as in jax without 64-bit types.
impl Seed for i32 {
    fn words(self) -> (Operand, Operand) {
        (self as u32).words()
    }
}

impl Seed for Tensor {
    #[track_caller]
    fn words(self) -> (Operand, Operand) {
        let ty = self.ty();
        if ty.rank() > 0 || !ty.dtype.is_integer() {
            report(
                "Key::new",
                format!("expected an integer scalar as the seed, got {ty}"),
                &[self],
            );
        }
        if ty.dtype.size() == 8 {
            let high = self.shift_right_logical(32).astype(DType::U32);
            return (high.operand(), self.astype(DType::U32).operand());
        }
        (0u32.operand(), self.astype(DType::U32).operand())
    }
}

impl Key {
    /// Makes the key of a seed, as `jax.random.key(seed)` does.
    #[track_caller]
    pub fn new(seed: impl Seed) -> Key {
        let (high, low) = seed.words();
        Key::of_halves(crate::tensor::materialize(high), crate::tensor::materialize(low))
    }

    #[track_caller]
    fn of_halves(high: Tensor, low: Tensor) -> Key {
        Key { words: stack(&[high, low], 0), halves: Some((high, low)) }
    }

    /// A key from words that are already one tensor.
    fn of_words(words: Tensor) -> Key {
        Key { words, halves: None }
    }

    /// Makes a key of its raw words, u32 `[2]`.
    #[track_caller]
    pub fn from_words(words: Tensor) -> Key {
        let ty = words.ty();
        if ty.dtype != DType::U32 || ty.shape[..] != [2] {
            report("Key::from_words", format!("expected u32[2], got {ty}"), &[words]);
            return Key::of_words(crate::tensor::poison(TensorType::new(DType::U32, [2])));
        }
        Key::of_words(words)
    }

    /// The raw words, u32 `[2]`, for storing. Reading them does not use the key up.
    pub fn words(&self) -> Tensor {
        self.words
    }

    /// The words, for a draw; a second use is an error.
    #[track_caller]
    fn consume(self) -> (Tensor, Tensor) {
        let loc = Loc::caller();
        state::with(|trace| trace.consume(self.words, loc));
        self.halves()
    }

    #[track_caller]
    fn halves(&self) -> (Tensor, Tensor) {
        let ty = self.words.ty();
        if ty.dtype != DType::U32 || ty.shape[..] != [2] {
            let message = format!(
                "expected one key, u32[2], got {ty}: go over a stack of keys with `vmap` or `scan`"
            );
            report("key", message, &[self.words]);
            let half = crate::tensor::poison(TensorType::scalar(DType::U32));
            return (half, half);
        }
        self.halves.unwrap_or_else(|| (self.words.index(0), self.words.index(1)))
    }

    /// A copy of the key, for using the same numbers twice on purpose: antithetic draws, common random numbers over a
    /// batch.
    #[track_caller]
    pub fn again(&self) -> Key {
        let loc = Loc::caller();
        let words = self.words;
        let copy = state::with(|trace| {
            let (var, poison) = trace.read(words);
            trace.handle(var, poison, loc)
        });
        Key { words: copy.unwrap_or(words), halves: self.halves }
    }

    /// Splits into two independent keys.
    #[track_caller]
    pub fn split(self) -> (Key, Key) {
        let [first, second] = self.split_into();
        (first, second)
    }

    /// Splits into `N` independent keys: `let [init, act, learn] = key.split_into();`
    #[track_caller]
    pub fn split_into<const N: usize>(self) -> [Key; N] {
        let _call = called("split");
        let mut keys = Vec::with_capacity(N);
        for (high, low) in halves_split::<N>(self.consume()) {
            keys.push(Key::of_halves(high, low));
        }
        std::array::from_fn(|i| keys[i].clone())
    }

    /// Splits into `n` independent keys, to go over in `vmap`, `scan` or `map`.
    #[track_caller]
    pub fn split_n(self, n: usize) -> Keys {
        let _call = called("split_n");
        let (a, b) = self.consume();
        let (high, low) = threefry2x32(a, b, None, Some(create::iota(DType::U32, [n], 0)));
        Keys { words: stack(&[high, low], 1) }
    }

    /// The key of an index, such as an environment's number or a step: different indices give
    /// different keys. `self` is kept, and should not be used for anything else.
    #[track_caller]
    pub fn fold_in(&self, data: impl IntoTensor) -> Key {
        let _call = called("fold_in");
        let data = data.into_tensor();
        let ty = data.ty();
        if ty.rank() > 0 || !ty.dtype.is_integer() {
            report("fold_in", format!("expected an integer scalar, got {ty}"), &[data]);
        }
        let (a, b) = self.halves();
        let (high, low) = threefry2x32(a, b, None, Some(data.astype(DType::U32)));
        Key::of_halves(high, low)
    }
}

impl Keys {
    /// Makes keys of raw words, u32 `[n, 2]`.
    #[track_caller]
    pub fn from_words(words: Tensor) -> Keys {
        let ty = words.ty();
        if ty.dtype != DType::U32 || ty.rank() != 2 || ty.shape.last() != Some(&2) {
            report("Keys::from_words", format!("expected u32[n,2], got {ty}"), &[words]);
        }
        Keys { words }
    }

    /// The raw words, u32 `[n, 2]`.
    pub fn words(&self) -> Tensor {
        self.words
    }

    /// The number of keys.
    #[allow(clippy::len_without_is_empty, reason = "the count is part of the program's types")]
    #[track_caller]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The key at position `i`.
    #[track_caller]
    pub fn at(&self, i: usize) -> Key {
        Key::of_words(self.words.index(i))
    }
}

/// `vmap` and `scan` give the closure one key in each round.
impl Over for Keys {
    type Item = Key;
    fn sources(&self, sources: &mut Sources) {
        sources.push(self.words);
    }
    fn item(self, items: &mut Items<'_>) -> Key {
        Key::of_words(items.take())
    }
}

// A stack of keys, such as the result of `vmap` over a function that returns a key, goes over its
// leading axis.
leaf_tree!(Key, Key::words, Key::of_words);
