//! AlphaZero: a search with the environment itself as the model.

use super::base::{PolicyOutput, RecurrentFnOutput, RootFnOutput};
use super::policies::{GumbelMuZeroOptions, MuZeroOptions, gumbel_muzero_policy, muzero_policy};
use crate::Number;
use podracer_dsl::prelude::*;
use podracer_envs::Environment;

/// A kind of search, with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchOptions {
    /// [`muzero_policy`].
    MuZero(MuZeroOptions),
    /// [`gumbel_muzero_policy`].
    Gumbel(GumbelMuZeroOptions),
}

impl SearchOptions {
    /// Searches from the roots, with the arguments of [`muzero_policy`].
    ///
    /// # Errors
    /// The errors of [`muzero_policy`].
    #[track_caller]
    pub fn search<E: Tree>(
        &self,
        key: Key,
        root: RootFnOutput<E>,
        recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
        num_simulations: usize,
        invalid_actions: Option<Tensor>,
    ) -> PolicyOutput<E> {
        let (simulations, invalid) = (num_simulations, invalid_actions);
        match self {
            SearchOptions::MuZero(options) => {
                muzero_policy(key, root, recurrent_fn, simulations, invalid, options)
            }
            SearchOptions::Gumbel(options) => {
                gumbel_muzero_policy(key, root, recurrent_fn, simulations, invalid, options)
            }
        }
    }
}

/// The embedding of a node: a state of the environment.
#[derive(Tree, Clone)]
pub struct EnvironmentState<S: Tree> {
    /// The state, a tree of `[B, ..]`.
    pub state: S,
    /// True if the episode has ended before the node, so that there are no more rewards. bool `[B]`
    pub done: Tensor,
}

/// AlphaZero's search (Silver et al. 2018, "A general reinforcement learning algorithm that masters
/// chess, shogi, and Go through self-play"). The model is the environment's own `step`, from
/// `states`, a tree of `[B, ..]`. Its random numbers come from the search's key and differ from the
/// environment's future random numbers: in an environment with chance, each node is one outcome.
///
/// `evaluate` gets observations, a tree of `[B, ..]`, and returns logits, f32 `[B, A]`, and values,
/// f32 `[B]`, as a network does. In a game of two players who move in turns, `discount` is -1 or a
/// negative number near it. Rewards are then for the player who has moved, and the observation and
/// its value are for the player to move.
///
/// Actions that are not legal are never taken, at the root and below.
///
/// Errors are as in [`muzero_policy`].
#[track_caller]
pub fn alphazero_policy<V: Environment>(
    key: Key,
    environment: &V,
    states: V::State,
    evaluate: impl Fn(V::Observation) -> (Tensor, Tensor),
    discount: impl Into<Number>,
    num_simulations: usize,
    options: &SearchOptions,
) -> PolicyOutput<EnvironmentState<V::State>> {
    let evaluate = |_, _: &V::State, observation| evaluate(observation);
    environment_policy(key, environment, states, evaluate, discount, num_simulations, options)
}

/// [`alphazero_policy`] with an `evaluate` that also gets a key and the states.
#[track_caller]
pub(super) fn environment_policy<V: Environment>(
    key: Key,
    environment: &V,
    states: V::State,
    evaluate: impl Fn(Key, &V::State, V::Observation) -> (Tensor, Tensor),
    discount: impl Into<Number>,
    num_simulations: usize,
    options: &SearchOptions,
) -> PolicyOutput<EnvironmentState<V::State>> {
    let discount = discount.into();
    let legal = |states: &V::State| -> Option<Tensor> {
        vmap(states.clone(), |state| environment.legal_actions(&state))
    };
    let observations = vmap(states.clone(), |state| environment.observe(state));
    // The search splits the key into a few keys, with the smallest indices.
    let (prior_logits, value) = evaluate(key.fold_in(i32::MAX), &states, observations);
    let batch = value.len();
    let invalid_actions = legal(&states).map(|legal| !legal);
    let embedding = EnvironmentState { state: states, done: zeros(BOOL, [batch]) };
    let root = RootFnOutput { prior_logits, value, embedding };
    let model = |key: Key, action: Tensor, before: EnvironmentState<V::State>| {
        let [step_key, value_key] = key.split_into();
        let keys = step_key.split_n(batch);
        let (state, step) = vmap((before.state, action, keys), |(state, action, key)| {
            environment.step(state, action, key)
        });
        let (logits, value) = evaluate(value_key, &state, step.observation);
        let prior_logits = match legal(&state) {
            Some(legal) => select(legal, logits, f64::from(f32::MIN)),
            None => logits,
        };
        let done = before.done | step.terminated;
        let output = RecurrentFnOutput {
            reward: select(before.done, 0.0, step.reward),
            discount: select(done, 0.0, discount),
            prior_logits,
            value: select(done, 0.0, value),
        };
        (output, EnvironmentState { state, done })
    };
    options.search(key, root, model, num_simulations, invalid_actions)
}
