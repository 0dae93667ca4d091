//! Attention: Vaswani et al., "Attention Is All You Need", 2017.

use super::initializer::Initializer;
use super::linear::Linear;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Scaled dot-product attention of `H` heads, Vaswani et al., 2017, eq. 1:
///
/// ```text
/// softmax_s(query_t key_s / sqrt(D)) value_s, summed over s
/// ```
///
/// `query` is `f32[T, H, D]`, `key` `f32[S, H, D]`, `value` `f32[S, H, E]`; the result is `f32[T,
/// H, E]`. `mask` is a bool that broadcasts to `[H, T, S]`, such as `[T, S]`: if it is false, step
/// `t` does not see step `s`. A step that sees no step gets the mean over all values, as in flax.
#[track_caller]
pub fn dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Option<Tensor>,
) -> Tensor {
    let op = "dot_product_attention";
    let _scope = scope(op);
    let ([q, k, v], types) = (
        [query, key, value].map(|x| x.shape()),
        format!("query {}, key {}, value {}", query.ty(), key.ty(), value.ty()),
    );
    let axes = [&q, &k, &v].iter().all(|shape| shape.len() == 3);
    if !axes || q[1] != k[1] || q[2] != k[2] || k[..2] != v[..2] {
        let message = format!(
            "expected query [T, H, D], key [S, H, D] and value [S, H, E], got {types}: a batch goes through `vmap`"
        );
        return fail(op, message, &[query, key, value], query.ty());
    }
    let scaled = query / (q[2] as f64).sqrt();
    let mut logits = einsum("thd,shd->hts", &[scaled, key]);
    if let Some(mask) = mask {
        if mask.dtype() != BOOL {
            let message = format!("expected a bool mask, got {}", mask.ty());
            return fail(op, message, &[mask], query.ty());
        }
        // The lowest finite number instead of -inf, so that a row that sees no step does not become
        // NaN.
        let lowest = if logits.dtype() == F16 { -65504.0 } else { -3.3e38 };
        logits = select(mask, logits, lowest);
    }
    einsum("hts,she->the", &[logits.softmax(-1), value])
}

/// The mask that lets a step see itself and all steps before it, `bool[T, T]`: `t` sees `s` if `s
/// <= t`.
#[track_caller]
pub fn causal_mask(steps: usize) -> Tensor {
    let shape = [steps, steps];
    iota(I32, shape, 0).ge(iota(I32, shape, 1))
}

/// [`causal_mask`] within the episodes of a trajectory, `bool[T, T]`: `t` sees `s` if `s <= t` and
/// no episode begins in between. `reset` is `bool[T]`, true if step `t` begins an episode.
#[track_caller]
pub fn episode_mask(reset: Tensor) -> Tensor {
    let _scope = scope("episode_mask");
    let episode = reset.astype(I32).cumsum(0);
    let same = episode.expand_dims(1).eq(episode.expand_dims(0));
    same & causal_mask(reset.len())
}

/// Attention with learned projections: [`dot_product_attention`] with `heads` projections each of
/// queries, keys and values, then a joint projection of the heads. Vaswani et al., 2017, section
/// 3.2.2; flax's `MultiHeadDotProductAttention`.
#[derive(Tree, Clone)]
pub struct MultiHeadAttention {
    /// Projection to queries, `in` to `heads * size`.
    pub query: Linear,
    /// Projection to keys, `in` to `heads * size`.
    pub key: Linear,
    /// Projection to values, `in` to `heads * size`.
    pub value: Linear,
    /// Projection of the heads, `heads * size` to `out`.
    pub out: Linear,
    /// Number of heads.
    #[tree(fixed)]
    pub heads: usize,
}

impl MultiHeadAttention {
    /// A layer from `inputs` features to `inputs` features, with `heads` heads of `size` features.
    /// Weights are drawn as in flax: LeCun normal, biases 0.
    #[track_caller]
    pub fn init(key: Key, inputs: usize, heads: usize, size: usize) -> MultiHeadAttention {
        let [query, key, value, out] = key.split_into();
        let layer = |key: Key, inputs: usize, outputs: usize| {
            Linear::init(key, inputs, outputs, Initializer::lecun_normal())
        };
        MultiHeadAttention {
            query: layer(query, inputs, heads * size),
            key: layer(key, inputs, heads * size),
            value: layer(value, inputs, heads * size),
            out: layer(out, heads * size, inputs),
            heads,
        }
    }

    /// Attends from the steps of `queries`, `f32[T, in]`, to the steps of `memory`, `f32[S, in]`:
    /// `f32[T, out]`. `mask` as in [`dot_product_attention`]. If both are the same it is
    /// self-attention.
    #[track_caller]
    pub fn apply(&self, queries: Tensor, memory: Tensor, mask: Option<Tensor>) -> Tensor {
        let op = "MultiHeadAttention::apply";
        let _scope = scope(op);
        if queries.rank() != 2 || memory.rank() != 2 {
            let message = format!(
                "expected [T, in] and [S, in], got {} and {}: a batch goes through `vmap`",
                queries.ty(),
                memory.ty()
            );
            return fail(op, message, &[queries, memory], queries.ty());
        }
        let features = self.query.bias.elements();
        if self.heads == 0 || !features.is_multiple_of(self.heads) {
            let message = format!("{features} features do not divide into {} heads", self.heads);
            return fail(op, message, &[queries], queries.ty());
        }
        // Loops instead of closures, so that an error has the caller's line.
        let mut projected = [queries, memory, memory];
        for (x, layer) in projected.iter_mut().zip([self.query, self.key, self.value]) {
            let y = layer.apply(*x);
            *x = y.reshape([y.dim(0), self.heads, y.dim(1) / self.heads]);
        }
        let [query, key, value] = projected;
        let heads = dot_product_attention(query, key, value, mask);
        self.out.apply(heads.flatten_rest())
    }
}
