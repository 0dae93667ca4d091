//! Stochastic MuZero's policy, with alternating decisions and chance outcomes.

use super::base::{PolicyOutput, RecurrentFnOutput, RootFnOutput};
use super::fold;
use super::mistakes;
use super::node::{Columns, Node, column};
use super::noise::Noise;
use super::policies::{MuZeroOptions, all, draw, noisy, run};
use super::selection::{MuZeroSelection, Selection, Visit, masked};
use super::simulate::Extents;
use super::tree::SearchTree;
use podracer_dsl::prelude::*;

/// A model's step from a state and an action to an afterstate: the state after the action, before
/// the chance outcome.
#[derive(Tree, Clone)]
pub struct DecisionRecurrentFnOutput {
    /// Logits of the chance outcomes, f32 `[B, C]`.
    pub chance_logits: Tensor,
    /// Values of the afterstates, f32 `[B]`.
    pub afterstate_value: Tensor,
}

/// A model's step from an afterstate and a chance outcome to the next state.
#[derive(Tree, Clone)]
pub struct ChanceRecurrentFnOutput {
    /// Logits of a policy network, f32 `[B, A]`.
    pub action_logits: Tensor,
    /// Values of the states, f32 `[B]`.
    pub value: Tensor,
    /// Rewards, f32 `[B]`.
    pub reward: Tensor,
    /// Discounts, f32 `[B]`.
    pub discount: Tensor,
}

/// The embedding of a decision node or chance node.
#[derive(Tree, Clone)]
pub struct StochasticRecurrentState<E: Tree, F: Tree> {
    /// The embedding of the state; meaningless at a chance node.
    pub state_embedding: E,
    /// The embedding of the afterstate; meaningless at a decision node.
    pub afterstate_embedding: F,
    /// True for a decision node, bool `[B]`.
    pub is_decision_node: Tensor,
}

/// Actions at even depths, chance outcomes at odd depths. Both are edges of one tree, the actions
/// first.
struct StochasticSelection {
    decision: MuZeroSelection,
}

impl StochasticSelection {
    /// The node with its actions only.
    #[track_caller]
    fn decision_node(&self, node: &Columns) -> Columns {
        let actions = |x: Tensor| x.slice(..self.decision.actions);
        Columns(Node {
            prior_logits: actions(node.prior_logits),
            prior_probs: actions(node.prior_probs),
            qvalues: actions(node.qvalues),
            visit_counts: actions(node.visit_counts),
            ..(**node).clone()
        })
    }
}

impl Selection for StochasticSelection {
    #[track_caller]
    fn prior_probs(&self, logits: Tensor) -> Tensor {
        // The unused half of a node's edges is -inf, as a finite number: a softmax gives no NaN.
        let finite = maximum(logits, f64::from(f32::MIN)).swap_axes(0, 1);
        let actions = self.decision.actions;
        let (actions, chance) = (finite.slice(..actions), finite.slice(actions..));
        concatenate(&[fold::softmax(actions), fold::softmax(chance)], 0).swap_axes(0, 1)
    }

    #[track_caller]
    fn root(&self, node: &Columns, _: Tensor, noise: &Noise) -> Tensor {
        let scores = self.decision.scores(&self.decision_node(node));
        noise.argmax(masked(scores, self.decision.invalid_actions), scalar(0))
    }

    #[track_caller]
    fn interior(&self, node: &Columns, _: &Visit<'_>) -> Tensor {
        let decides = node.depth.rem(2.0).eq(0.0);
        let decision = self.decision.scores(&self.decision_node(node));
        let outcomes = |x: Tensor| x.slice(self.decision.actions..);
        let chance = outcomes(node.prior_probs) / (outcomes(node.visit_counts) + 1.0);
        let decision = select(decides, decision, f64::NEG_INFINITY);
        concatenate(&[decision, select(decides, f64::NEG_INFINITY, chance)], 0)
    }

    fn noisy_actions(&self) -> Option<usize> {
        self.decision.noisy_actions()
    }
}

/// Stochastic MuZero's search (Antonoglou et al. 2022, "Planning in stochastic environments with a
/// learned model"). An action leads to an afterstate, and a chance outcome leads from the
/// afterstate to the next state. Below an afterstate the outcomes are visited in proportion to
/// their probabilities. The rest is as in [`muzero_policy`](super::muzero_policy).
///
/// `decision_recurrent_fn` gets a key, actions, i32 `[B]`, and embeddings of states. It returns its
/// output and the embeddings of afterstates. `chance_recurrent_fn` gets a key, outcomes, i32 `[B]`,
/// and embeddings of afterstates, and returns its output and the embeddings of states. Both are
/// called for all nodes, and their outputs for nodes of the other kind are discarded: for these, an
/// action or an outcome may be out of range.
///
/// The tree has only the actions at each node, as in mctx.
#[track_caller]
pub fn stochastic_muzero_policy<E: Tree, F: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    decision_recurrent_fn: impl Fn(Key, Tensor, E) -> (DecisionRecurrentFnOutput, F),
    chance_recurrent_fn: impl Fn(Key, Tensor, F) -> (ChanceRecurrentFnOutput, E),
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &MuZeroOptions,
) -> PolicyOutput<StochasticRecurrentState<E, F>> {
    const NAME: &str = "stochastic_muzero_policy";
    let (root, invalid_actions) = mistakes::of_root(NAME, root, invalid_actions);
    let [action_key, dirichlet_key, search_key] = key.split_into();
    let root = noisy(dirichlet_key, root, invalid_actions, options);
    let (batch, actions) = (root.value.len(), root.prior_logits.dim(1));
    // Only for the types: the root's afterstate is never read.
    let nothing = zeros(I32, [batch]);
    let (output, after) =
        decision_recurrent_fn(action_key.again(), nothing, root.embedding.clone());
    let chance_logits = mistakes::chance_logits(NAME, output.chance_logits, batch);
    let outcomes = chance_logits.dim(1);
    let (state_spec, after_spec) = (root.embedding.spec(), after.spec());

    let none = |count: usize| full([batch, count], f64::NEG_INFINITY);
    let root = RootFnOutput {
        prior_logits: concatenate(&[root.prior_logits, none(outcomes)], 1),
        value: root.value,
        embedding: StochasticRecurrentState {
            state_embedding: root.embedding,
            afterstate_embedding: after_spec.zeros(),
            is_decision_node: full([batch], true),
        },
    };
    let recurrent_fn = |key: Key, edge: Tensor, state: StochasticRecurrentState<E, F>| {
        let decides = state.is_decision_node;
        let (decision, after) = decision_recurrent_fn(key.again(), edge, state.state_embedding);
        let after = expect_types("afterstate_embedding", after, &after_spec);
        let outcome = edge - actions as i32;
        let (chance, next) = chance_recurrent_fn(key, outcome, state.afterstate_embedding);
        let next = expect_types("state_embedding", next, &state_spec);
        let f32s = |what, x, shape: &[usize]| mistakes::f32_of(NAME, what, x, shape);
        let chance_logits = f32s("chance_logits", decision.chance_logits, &[batch, outcomes]);
        let action_logits = f32s("action_logits", chance.action_logits, &[batch, actions]);
        let output = RecurrentFnOutput {
            reward: select(decides, 0.0, chance.reward),
            discount: select(decides, 1.0, chance.discount),
            prior_logits: select(
                column(decides),
                concatenate(&[none(actions), chance_logits], 1),
                concatenate(&[action_logits, none(outcomes)], 1),
            ),
            value: select(decides, decision.afterstate_value, chance.value),
        };
        let state = StochasticRecurrentState {
            state_embedding: next,
            afterstate_embedding: after,
            is_decision_node: !decides,
        };
        (output, state)
    };
    let extents = Extents::new(NAME, &root.prior_logits, num_simulations, options.max_depth, 0);
    let decision = MuZeroSelection {
        qtransform: options.qtransform,
        pb_c_init: options.pb_c_init,
        pb_c_base: options.pb_c_base,
        actions,
        tie_noise: options.tie_noise,
        invalid_actions,
    };
    let selection = StochasticSelection { decision };
    let forest = run(NAME, extents, &selection, search_key, &root, None, recurrent_fn, all);
    let tree = SearchTree::new(extents, &root, forest, None).first_actions(actions);
    let root_invalid_actions = invalid_actions.unwrap_or_else(|| zeros(BOOL, [batch, actions]));
    draw(action_key, SearchTree { root_invalid_actions, ..tree }, options.temperature)
}
