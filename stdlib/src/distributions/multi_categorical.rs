//! Several independent categorical distributions as one.

use super::{Categorical, Distribution};
use podracer_dsl::prelude::*;

/// Distribution of `K` independent values, the `i`-th with `counts[i]` choices: the actions of a
/// multi-discrete space. Log-probability and entropy are sums over the values.
#[derive(Tree, Clone, Copy)]
pub struct MultiCategorical {
    /// The distribution of each value, with logits `f32[.., K, M]`, where `M` is the greatest
    /// count. Missing choices have the logit -inf.
    pub values: Categorical,
}

impl MultiCategorical {
    /// The distribution with logits `f32[.., counts[0] + counts[1] + ..]`, in the order of the
    /// values.
    #[track_caller]
    pub fn new(logits: Tensor, counts: &[usize]) -> Self {
        let most = counts.iter().copied().max().unwrap_or_default();
        let no_padding = vec![(0, 0); logits.rank().saturating_sub(1)];
        let padded = |(logits, &count): (Tensor, &usize)| {
            let end = [&no_padding[..], &[(0, (most - count) as i64)]].concat();
            logits.pad(&end, f64::NEG_INFINITY)
        };
        let values = logits.split_sizes(counts, -1);
        let values: Vec<Tensor> = values.into_iter().zip(counts).map(padded).collect();
        MultiCategorical { values: Categorical::new(stack(&values, -2)) }
    }
}

impl Distribution for MultiCategorical {
    /// A draw `i32[.., K]`.
    #[track_caller]
    fn sample(&self, key: Key) -> Tensor {
        self.values.sample(key)
    }

    /// The log-probability `f32[..]` of values `i32[.., K]`.
    #[track_caller]
    fn log_prob(&self, value: Tensor) -> Tensor {
        self.values.log_prob(value).sum_axis(-1)
    }

    /// The entropy in nats, `f32[..]`.
    #[track_caller]
    fn entropy(&self) -> Tensor {
        self.values.entropy().sum_axis(-1)
    }

    /// The most probable values `i32[.., K]`.
    #[track_caller]
    fn mode(&self) -> Tensor {
        self.values.mode()
    }

    /// KL(self || other) in nats, `f32[..]`.
    #[track_caller]
    fn kl_divergence(&self, other: &Self) -> Tensor {
        self.values.kl_divergence(&other.values).sum_axis(-1)
    }
}
