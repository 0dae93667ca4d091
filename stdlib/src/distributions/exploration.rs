//! Exploration policies from action values; each is a categorical distribution.

use super::Categorical;
use crate::{Number, expect};
use podracer_dsl::prelude::*;

/// Actions from their values.
impl Categorical {
    /// The Boltzmann policy, `softmax(preferences / temperature)`. The higher the `temperature`,
    /// which is above 0, the closer the policy is to uniform. `preferences` are `f32[.., A]`, such
    /// as action values; an action with preference -inf is never drawn.
    #[track_caller]
    pub fn softmax(preferences: Tensor, temperature: impl Into<Number>) -> Self {
        let op = "Categorical::softmax";
        let _scope = scope(op);
        let temperature = temperature.into();
        let wrong = expect::constant_is(op, "temperature", temperature, "above 0", |x| x > 0.0);
        let logits = wrong.map_or_else(|| preferences / temperature, |wrong| preferences + wrong);
        Categorical { logits }
    }

    /// The epsilon-greedy policy, Sutton and Barto, "Reinforcement Learning", 2018, section 2.2. It
    /// takes the action with the greatest preference with probability `1 - epsilon`, and any action
    /// with probability `epsilon`. Ties share the probability `1 - epsilon`.
    ///
    /// `preferences` are `f32[.., A]`, `epsilon` is in [0, 1]. An action with preference -inf is
    /// never drawn, not even for exploration.
    #[track_caller]
    pub fn epsilon_greedy(preferences: Tensor, epsilon: impl Into<Number>) -> Self {
        let op = "Categorical::epsilon_greedy";
        let _scope = scope(op);
        let epsilon = epsilon.into();
        let holds = |x: f64| (0.0..=1.0).contains(&x);
        if let Some(wrong) = expect::constant_is(op, "epsilon", epsilon, "in [0, 1]", holds) {
            return Categorical { logits: preferences + wrong };
        }
        let evenly = |among: Tensor| {
            let among = select(among, preferences.full_like(1.0), 0.0);
            among / among.sum_axis(keepdims(-1))
        };
        let greedy = evenly(preferences.eq(preferences.max_axis(keepdims(-1))));
        let any = evenly(preferences.gt(f64::NEG_INFINITY));
        Categorical { logits: ((1.0 - epsilon) * greedy + epsilon * any).log() }
    }
}
