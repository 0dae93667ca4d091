//! A search whose actions are selected by functions of the user's.

use super::base::{RecurrentFnOutput, RootFnOutput};
use super::fold;
use super::mistakes;
use super::node::{Columns, Node, chosen, pick};
use super::noise::Noise;
use super::policies::{GumbelMuZeroOptions, MuZeroOptions, run};
use super::selection::{GumbelSelection, Selection, Visit, puct_scores};
use super::simulate::Extents;
use super::tree::SearchTree;
use podracer_dsl::prelude::*;

/// Searches from `B` roots with actions that two functions select, as `mctx.search` does. [`muzero_policy`](super::muzero_policy) and the
/// others are such searches, with functions of their own and what they make of the finished trees.
///
/// `root_action_selection_fn` is given a key, the roots and the number of the simulation, i32 `[]`; `interior_action_selection_fn` a key and
/// one node of each tree. Both give actions, i32 `[B]`. [`muzero_action_selection`] and [`gumbel_muzero_interior_action_selection`] are two
/// of them. Where a node has changed, its next action is selected at once, and not only when a simulation comes by.
///
/// The other arguments, and gradients, are those of [`muzero_policy`](super::muzero_policy). `invalid_actions` are only checked: the
/// function for roots is to leave them out.
///
/// # Errors
/// As [`muzero_policy`](super::muzero_policy), and functions that give anything but i32 `[B]`. Where the program runs, a failed `check`: an
/// action out of range, in place of which the nearest one is taken, and an invalid one at a root.
#[allow(clippy::too_many_arguments, reason = "those of mctx's")]
#[track_caller]
pub fn search<E: Tree>(
    key: Key,
    root: RootFnOutput<E>,
    recurrent_fn: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
    root_action_selection_fn: impl Fn(Key, &Node, Tensor) -> Tensor,
    interior_action_selection_fn: impl Fn(Key, &Node) -> Tensor,
    num_simulations: usize,
    max_depth: Option<usize>,
    invalid_actions: Option<Tensor>,
) -> SearchTree<E> {
    const NAME: &str = "search";
    let (root, invalid_actions) = mistakes::of_root(NAME, root, invalid_actions);
    let extents = Extents::new(NAME, &root.prior_logits, num_simulations, max_depth, 0);
    let functions = Functions {
        root: root_action_selection_fn,
        interior: interior_action_selection_fn,
        invalid_actions,
    };
    let forest = run(NAME, extents, &functions, key, &root, None, recurrent_fn);
    SearchTree::new(extents, &root, forest, invalid_actions)
}

/// pUCT (Schrittwieser et al. 2020, appendix B, equation 2), as MuZero selects actions: of `options`, Q-transform and `pb_c`. Noise below
/// 1e-7 decides between equal scores. i32 `[B]`
#[track_caller]
pub fn muzero_action_selection(key: Key, node: &Node, options: &MuZeroOptions) -> Tensor {
    let (c_init, c_base) = (options.pb_c_init, options.pb_c_base);
    let scores = puct_scores(&node.columns(), options.qtransform, c_init, c_base);
    let noise = key.uniform(node.qvalues.shape()) * Noise::SCALE;
    fold::argmax(scores + noise.swap_axes(0, 1))
}

/// The action whose visits lag most behind the improved policy (Danihelka et al. 2022, section 5), as Gumbel MuZero selects actions below
/// the root: of `options`, the Q-transform. i32 `[B]`
#[track_caller]
pub fn gumbel_muzero_interior_action_selection(
    node: &Node,
    options: &GumbelMuZeroOptions,
) -> Tensor {
    fold::argmax(GumbelSelection::lag(&node.columns(), options.qtransform))
}

/// Selection by functions.
struct Functions<R, I> {
    root: R,
    interior: I,
    /// True for actions that are not allowed at the root, bool `[B, A]`.
    invalid_actions: Option<Tensor>,
}

impl<R: Fn(Key, &Node, Tensor) -> Tensor, I: Fn(Key, &Node) -> Tensor> Selection
    for Functions<R, I>
{
    fn reads_logits(&self) -> bool {
        true
    }

    #[track_caller]
    fn root(&self, node: &Columns, simulation: Tensor, noise: &Noise) -> Tensor {
        let node = node.node();
        let action = (self.root)(noise.key.fold_in(0), &node, simulation);
        let action = mistakes::selected("root_action_selection_fn", action, &node, None);
        if let Some(invalid) = self.invalid_actions {
            let wrong = pick(invalid, action);
            check(!wrong, "the root_action_selection_fn of a search took an invalid action", ());
        }
        action
    }

    #[track_caller]
    fn interior(&self, node: &Columns, visit: &Visit<'_>) -> Tensor {
        let node = node.node();
        let action = (self.interior)((visit.key)(), &node);
        let name = "interior_action_selection_fn";
        let action = mistakes::selected(name, action, &node, visit.live);
        chosen(action, node.visit_counts.dim(1)).astype(F32).swap_axes(0, 1)
    }

    fn noisy_actions(&self) -> Option<usize> {
        None
    }
}
