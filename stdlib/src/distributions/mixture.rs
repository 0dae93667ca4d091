//! Mixtures of distributions from one family.

use super::{Categorical, Distribution};
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Distribution of a value drawn from one of `K` components of one family: Bishop, "Mixture density
/// networks", 1994. It has neither an entropy nor a divergence in closed form. Estimate the entropy
/// by `-log_prob` of a sample.
#[derive(Tree, Clone)]
pub struct MixtureSameFamily<D: Distribution + Tree> {
    /// Distribution of the component, with logits `f32[.., K]`.
    pub mixture: Categorical,
    /// Components: one distribution, with an axis of `K` behind the mixture's axes in its
    /// parameters: `[.., K]`, or `[.., K, n]` for distributions of vectors.
    pub components: D,
}

impl<D: Distribution + Tree> MixtureSameFamily<D> {
    /// The mixture of components.
    pub fn new(mixture: Categorical, components: D) -> Self {
        MixtureSameFamily { mixture, components }
    }

    /// A draw. As in distrax, one half of the key draws the component, the other every component's
    /// value.
    #[track_caller]
    pub fn sample(&self, key: Key) -> Tensor {
        let _scope = scope("MixtureSameFamily::sample");
        let (of_mixture, of_components) = key.split();
        let component = self.mixture.sample(of_mixture);
        self.of_component(self.components.sample(of_components), component)
    }

    /// The log-density `f32[..]` of a value, `log sum_k pi_k p_k(value)`.
    #[track_caller]
    pub fn log_prob(&self, value: Tensor) -> Tensor {
        let _scope = scope("MixtureSameFamily::log_prob");
        let event = value.rank() as isize - (self.mixture.logits.rank() as isize - 1);
        if event < 0 {
            let message = format!(
                "expected a value with the axes of the mixture (logits {}), got {}",
                self.mixture.logits.ty(),
                value.ty()
            );
            return fail("MixtureSameFamily::log_prob", message, &[value], value.ty());
        }
        let of_each = self.components.log_prob(value.expand_dims(-1 - event));
        (of_each + self.mixture.log_probs()).logsumexp(-1)
    }

    /// A draw and its log-density.
    #[track_caller]
    pub fn sample_and_log_prob(&self, key: Key) -> (Tensor, Tensor) {
        let value = self.sample(key);
        (value, self.log_prob(value))
    }

    /// The mode of a component that has the greatest density under the mixture. The density may be
    /// greater between the modes.
    #[track_caller]
    pub fn mode(&self) -> Tensor {
        let _scope = scope("MixtureSameFamily::mode");
        let modes = self.components.mode();
        let axis = self.mixture.logits.rank() as isize - 1;
        let count = self.mixture.logits.shape().last().copied().unwrap_or(1);
        let log_probs: Vec<Tensor> =
            (0..count).map(|k| self.log_prob(modes.index_axis(axis, k))).collect();
        self.of_component(modes, stack(&log_probs, -1).argmax(-1))
    }

    /// Selects the value of one component, `[..]`, from the components' values, `[.., K]` or `[..,
    /// K, n]`; `component` is `i32[..]`.
    #[track_caller]
    fn of_component(&self, values: Tensor, component: Tensor) -> Tensor {
        let axis = component.rank() as isize;
        let chosen = iota(I32, values.shape(), axis);
        let mut component = component;
        while component.rank() < values.rank() {
            component = component.expand_dims(-1);
        }
        select(chosen.eq(component), values, values.zeros_like()).sum_axis(axis)
    }
}
