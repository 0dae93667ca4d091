//! The policies of MuZero and Gumbel MuZero.

use super::base::{PolicyOutput, RecurrentFnOutput, RootFnOutput};
use super::mistakes;
use super::qtransform::{
    QTransform, qtransform_by_parent_and_siblings, qtransform_completed_by_mix_value,
};
use super::selection::{GumbelSelection, MuZeroSelection, Selection};
use super::simulate::{Extents, Forest, LoopBody, Search, SearchState};
use super::tree::SearchTree;
use crate::Number;
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Settings of [`muzero_policy`], with mctx's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct MuZeroOptions {
    /// Greatest number of edges between the root and a node. If it cuts a simulation off, a node is
    /// evaluated again. `None`: unlimited.
    pub max_depth: Option<usize>,
    /// Transform of action values to the scale of the policy.
    pub qtransform: QTransform,
    /// Share of the Dirichlet noise in the root's prior policy, from 0 to 1.
    pub dirichlet_fraction: Number,
    /// Concentration of the Dirichlet noise.
    pub dirichlet_alpha: Number,
    /// `c_1` of pUCT.
    pub pb_c_init: Number,
    /// `c_2` of pUCT.
    pub pb_c_base: Number,
    /// Actions are drawn in proportion to `visit_counts^(1 / temperature)`. With 0 the most visited
    /// action is taken.
    pub temperature: Number,
    /// True if noise below 1e-7 decides between actions with equal scores, as in mctx. Otherwise
    /// the first of them is taken, which costs less.
    pub tie_noise: bool,
}

impl Default for MuZeroOptions {
    fn default() -> Self {
        MuZeroOptions {
            max_depth: None,
            qtransform: qtransform_by_parent_and_siblings(),
            dirichlet_fraction: 0.25.into(),
            dirichlet_alpha: 0.3.into(),
            pb_c_init: 1.25.into(),
            pb_c_base: 19652.0.into(),
            temperature: 1.0.into(),
            tie_noise: true,
        }
    }
}

/// Settings of [`gumbel_muzero_policy`], with mctx's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct GumbelMuZeroOptions {
    /// As [`MuZeroOptions::max_depth`].
    pub max_depth: Option<usize>,
    /// Transform of action values to the scale of the logits.
    pub qtransform: QTransform,
    /// Greatest number of actions tried at the root.
    pub max_num_considered_actions: usize,
    /// Scale of the Gumbel noise; 0 for evaluation in games with perfect information.
    pub gumbel_scale: Number,
}

impl Default for GumbelMuZeroOptions {
    fn default() -> Self {
        GumbelMuZeroOptions {
            max_depth: None,
            qtransform: qtransform_completed_by_mix_value(),
            max_num_considered_actions: 16,
            gumbel_scale: 1.0.into(),
        }
    }
}

/// MuZero's search (Schrittwieser et al. 2020, "Mastering Atari, Go, Chess and Shogi by planning
/// with a learned model", appendix B). The action is drawn in proportion to the visits of the
/// root's actions, which are `action_weights`.
///
/// `recurrent_fn` gets a key, actions, i32 `[B]`, and the embeddings of the states before, trees of
/// `[B, ..]`. It returns a step of the model and the embeddings after it. It captures its
/// parameters. `invalid_actions` is bool `[B, A]`, true for actions that the root must not take.
/// The model itself can make other actions unlikely by its logits.
///
/// No gradient flows through a search: its results are constants for the gradient of the root and
/// of values that `recurrent_fn` captures.
///
/// # Errors Rejects a search without simulations, depth or actions; tensors of other shapes; and an embedding that changes its type. When the program runs, a root without a legal action and NaN from the model fail a `check`.
#[track_caller]
pub fn muzero_policy<E: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &MuZeroOptions,
) -> PolicyOutput<E> {
    let name = "muzero_policy";
    go_on(name, key, root, None, recurrent_fn, num_simulations, invalid_actions, options)
}

/// [`muzero_policy`] that continues with the trees of an earlier search, from
/// [`SearchTree::subtree`]. Their nodes, visits and values are present from the beginning, and
/// `action_weights` includes the root's earlier visits. Logits, value and embedding of the root
/// come from `root`.
///
/// The resulting tree has the nodes of the simulations first, then the kept nodes.
#[track_caller]
pub fn muzero_policy_from<E: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    kept: &SearchTree<E>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &MuZeroOptions,
) -> PolicyOutput<E> {
    let name = "muzero_policy_from";
    let kept = mistakes::of_kept(name, &root, kept);
    let kept = kept.as_ref();
    go_on(name, key, root, kept, recurrent_fn, num_simulations, invalid_actions, options)
}

#[allow(clippy::too_many_arguments, reason = "those of a policy")]
#[track_caller]
fn go_on<E: Tree>(
    name: &'static str,
    key: Key,
    root: RootFnOutput<E>,
    kept: Option<&SearchTree<E>>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &MuZeroOptions,
) -> PolicyOutput<E> {
    let (root, invalid_actions) = mistakes::of_root(name, root, invalid_actions);
    let [action_key, dirichlet_key, search_key] = key.split_into();
    let root = noisy(dirichlet_key, root, invalid_actions, options);
    let nodes = kept.map_or(0, |kept| kept.node_visits.dim(1) - 1);
    let (logits, max_depth) = (&root.prior_logits, options.max_depth);
    let extents = Extents::new(name, logits, num_simulations, max_depth, nodes);
    let selection = MuZeroSelection {
        qtransform: options.qtransform,
        pb_c_init: options.pb_c_init,
        pb_c_base: options.pb_c_base,
        actions: extents.actions,
        tie_noise: options.tie_noise,
        invalid_actions,
    };
    let forest = run(name, extents, &selection, search_key, &root, kept, recurrent_fn, all);
    let search_tree = SearchTree::new(extents, &root, forest, invalid_actions);
    draw(action_key, search_tree, options.temperature)
}

/// Gumbel MuZero's search (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"):
/// sequential halving over some actions of the root, and below it actions in proportion to the
/// improved policy. The action is the best of the most visited actions, and `action_weights` is the
/// improved policy, `softmax(logits + qtransform(q))`.
///
/// Arguments and errors are as in [`muzero_policy`].
#[track_caller]
pub fn gumbel_muzero_policy<E: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &GumbelMuZeroOptions,
) -> PolicyOutput<E> {
    const NAME: &str = "gumbel_muzero_policy";
    let (root, invalid_actions) = mistakes::of_root(NAME, root, invalid_actions);
    let prior_logits = mask_invalid_actions(root.prior_logits, invalid_actions);
    let root = RootFnOutput { prior_logits, ..root };
    let [search_key, gumbel_key] = key.split_into();
    let gumbel = gumbel_key.gumbel(prior_logits.shape()) * options.gumbel_scale;
    let extents = Extents::new(NAME, &prior_logits, num_simulations, options.max_depth, 0);
    let selection = GumbelSelection {
        qtransform: options.qtransform,
        gumbel: gumbel.swap_axes(0, 1),
        num_simulations: extents.num_simulations,
        max_num_considered_actions: options.max_num_considered_actions,
        invalid_actions,
    };
    let forest = run(NAME, extents, &selection, search_key, &root, None, recurrent_fn, all);
    let node = Search { extents, selection: &selection }.root_node(&root, &forest.roots);
    let most = node.visit_counts.max_axis(-1);
    let action = selection.score_considered(&node.columns(), most).argmax(0);
    let improved = prior_logits + options.qtransform.apply(&node);
    let action_weights = mask_invalid_actions(improved, invalid_actions).softmax(-1);
    let search_tree = SearchTree::new(extents, &root, forest, invalid_actions);
    PolicyOutput { action, action_weights, search_tree }
}

/// Runs all simulations.
#[track_caller]
pub(super) fn all<E: Tree>(
    simulations: Range<usize>,
    state: SearchState<E>,
    simulate: LoopBody<'_, E>,
) -> SearchState<E> {
    fori_loop(simulations, state, simulate)
}

/// Runs a search with a checked model.
#[allow(clippy::too_many_arguments, reason = "those of a search")]
#[track_caller]
pub(super) fn run<E: Tree, S: Selection>(
    name: &'static str,
    extents: Extents,
    selection: &S,
    key: Key,
    root: &RootFnOutput<E>,
    kept: Option<&SearchTree<E>>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    loop_fn: impl FnOnce(Range<usize>, SearchState<E>, LoopBody<'_, E>) -> SearchState<E>,
) -> Forest<E> {
    // A model is called in a loop's body, where errors have no caller.
    let _scope = scope(name);
    let spec = root.embedding.spec();
    let recurrent_fn = |key: Key, action: Tensor, embedding: E| {
        let (output, embedding) = recurrent_fn(key, action, embedding);
        let output = mistakes::of_step(name, output, extents.batch, extents.actions);
        let embedding = expect_types("embedding", embedding, &spec);
        // The model's parameters get their gradients elsewhere; the loops of a search have none.
        (tree_map(&output, stop_gradient), tree_map(&embedding, stop_gradient))
    };
    Search { extents, selection }.run(key, root, kept, recurrent_fn, loop_fn)
}

/// The root with noise in its policy.
#[track_caller]
pub(super) fn noisy<E: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    invalid_actions: Option<Tensor>,
    options: &MuZeroOptions,
) -> RootFnOutput<E> {
    let (batch, actions) = (root.value.len(), root.prior_logits.dim(1));
    let noise = key.dirichlet([batch], full([actions], options.dirichlet_alpha));
    let probs = root.prior_logits.softmax(-1);
    let fraction = options.dirichlet_fraction;
    let logits = logits_of((1.0 - fraction) * probs + fraction * noise);
    RootFnOutput { prior_logits: mask_invalid_actions(logits, invalid_actions), ..root }
}

/// Draws actions in proportion to visits.
#[track_caller]
pub(super) fn draw<E: Tree>(
    key: Key,
    search_tree: SearchTree<E>,
    temperature: Number,
) -> PolicyOutput<E> {
    let action_weights = search_tree.summary().visit_probs;
    let logits = logits_of(action_weights);
    let logits = logits - logits.max_axis(keepdims(-1));
    // Divided by the least positive number instead of 0, all logits except the greatest become
    // -inf.
    let logits = logits / maximum(temperature, f64::from(f32::MIN_POSITIVE));
    PolicyOutput { action: key.categorical(logits), action_weights, search_tree }
}

#[track_caller]
fn logits_of(probs: Tensor) -> Tensor {
    maximum(probs, f64::from(f32::MIN_POSITIVE)).log()
}

/// The logits with the least finite number for invalid actions: a softmax gives no NaN even if all
/// actions are invalid.
#[track_caller]
fn mask_invalid_actions(logits: Tensor, invalid_actions: Option<Tensor>) -> Tensor {
    let Some(invalid) = invalid_actions else { return logits };
    let logits = logits - logits.max_axis(keepdims(-1));
    select(invalid, f64::from(f32::MIN), logits)
}
