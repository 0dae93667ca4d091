//! A search with user-defined functions that select the actions and run the simulations.

use super::base::{RecurrentFnOutput, RootFnOutput};
use super::fold;
use super::mistakes;
use super::node::{Columns, Node, chosen, pick};
use super::noise::Noise;
use super::policies::{GumbelMuZeroOptions, MuZeroOptions, run};
use super::selection::{GumbelSelection, Selection, Visit, puct_scores};
use super::simulate::{Extents, LoopBody, SearchState};
use super::tree::SearchTree;
use crate::expect;
use podracer_dsl::prelude::*;
use std::ops::Range;

/// Searches from `B` roots with two functions that select the actions, as `mctx.search` does.
/// [`muzero_policy`](super::muzero_policy) and the other policies are such searches, with functions
/// of their own and with results that they compute from the finished trees.
///
/// `root_action_selection_fn` gets a key, the roots and the number of the simulation, i32 `[]`.
/// `interior_action_selection_fn` gets a key and one node of each tree. Both return actions, i32
/// `[B]`, such as [`muzero_action_selection`] and [`gumbel_muzero_interior_action_selection`]. When
/// a node has changed, its next action is selected at once, and not when a simulation reaches it.
///
/// `loop_fn` runs the simulations. It gets their numbers, `0..num_simulations`, the state before
/// the first simulation, and a simulation: a function of its number, i32 `[]`, and the state before
/// it. `|simulations, state, simulate| fori_loop(simulations, state, simulate)` runs all of them,
/// as mctx does by default. A `while_loop` may end earlier, depending on [`SearchState::summary`];
/// nodes of simulations that did not run have no visits.
///
/// The other arguments, and gradients, are as in [`muzero_policy`](super::muzero_policy).
/// `invalid_actions` are only checked: the function for roots must avoid them.
///
/// # Errors Returns the errors of [`muzero_policy`](super::muzero_policy), and rejects functions
/// that return anything but i32 `[B]`. When the program runs, the following fail a `check`: an
/// action out of range, which is replaced by the nearest action; an invalid action at a root; a
/// simulation without the next number, which is replaced by the next simulation; and too many
/// simulations.
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
    loop_fn: impl FnOnce(Range<usize>, SearchState<E>, LoopBody<'_, E>) -> SearchState<E>,
) -> SearchTree<E> {
    const NAME: &str = "search";
    let (root, invalid_actions) = mistakes::of_root(NAME, root, invalid_actions);
    let extents = Extents::new(NAME, &root.prior_logits, num_simulations, max_depth, 0);
    let functions = SelectionFunctions {
        root: root_action_selection_fn,
        interior: interior_action_selection_fn,
        invalid_actions,
    };
    let in_order = |simulations: Range<usize>, state: SearchState<E>, body: LoopBody<'_, E>| {
        let (end, spec) = (simulations.end, state.spec());
        let body =
            |simulation, state| body(mistakes::next_simulation(simulation, &state, end), state);
        expect_types("loop_fn", loop_fn(simulations, state, Box::new(body)), &spec)
    };
    let forest = run(NAME, extents, &functions, key, &root, None, recurrent_fn, in_order);
    SearchTree::new(extents, &root, forest, invalid_actions)
}

/// pUCT (Schrittwieser et al. 2020, appendix B, equation 2), MuZero's selection of actions. It
/// reads Q-transform, `pb_c` and `tie_noise` from `options`. i32 `[B]`
#[track_caller]
pub fn muzero_action_selection(key: Key, node: &Node, options: &MuZeroOptions) -> Tensor {
    let (c_init, c_base) = (options.pb_c_init, options.pb_c_base);
    let scores = puct_scores(&node.columns(), options.qtransform, c_init, c_base);
    if !options.tie_noise {
        return fold::argmax(scores);
    }
    let noise = key.uniform(node.qvalues.shape()) * Noise::SCALE;
    fold::argmax(scores + noise.swap_axes(0, 1))
}

/// The action with visits that lag most behind the improved policy (Danihelka et al. 2022, section
/// 5). Gumbel MuZero selects actions below the root by it. It reads the Q-transform from `options`.
/// i32 `[B]`
#[track_caller]
pub fn gumbel_muzero_interior_action_selection(
    node: &Node,
    options: &GumbelMuZeroOptions,
) -> Tensor {
    fold::argmax(GumbelSelection::lag(&node.columns(), options.qtransform))
}

/// Sequential halving with Gumbel noise (Danihelka et al. 2022, section 3 and algorithm 2), Gumbel
/// MuZero's selection of actions at the root. It reads Q-transform and `max_num_considered_actions`
/// from `options`. i32 `[B]`
///
/// `root_gumbel`, f32 `[B, A]`, is the noise times its scale, the same in every simulation; mctx
/// keeps it in the tree. `num_simulations` is the search's number of simulations; the roots' visits
/// determine the present simulation. Actions that are true in `invalid_actions`, bool `[B, A]`, are
/// not taken.
///
/// # Errors
/// Rejects noise and actions of other shapes.
#[track_caller]
pub fn gumbel_muzero_root_action_selection(
    node: &Node,
    root_gumbel: Tensor,
    num_simulations: usize,
    invalid_actions: Option<Tensor>,
    options: &GumbelMuZeroOptions,
) -> Tensor {
    const NAME: &str = "gumbel_muzero_root_action_selection";
    let shape = node.qvalues.shape();
    let wrong =
        |what, tensor| expect::shape(NAME, what, tensor, &shape, "the roots and their actions");
    let mistake = wrong("root_gumbel", root_gumbel)
        .or_else(|| invalid_actions.and_then(|invalid| wrong("invalid_actions", invalid)));
    if mistake.is_some() {
        return zeros(I32, &shape[..1]);
    }
    let selection = GumbelSelection {
        qtransform: options.qtransform,
        gumbel: root_gumbel.swap_axes(0, 1),
        num_simulations: num_simulations.max(1),
        max_num_considered_actions: options.max_num_considered_actions,
        invalid_actions,
    };
    selection.root_action(&node.columns(), node.visit_counts.sum_axis(-1).astype(I32))
}

/// Selection by functions.
struct SelectionFunctions<R, I> {
    root: R,
    interior: I,
    /// True for actions that are not allowed at the root, bool `[B, A]`.
    invalid_actions: Option<Tensor>,
}

impl<R: Fn(Key, &Node, Tensor) -> Tensor, I: Fn(Key, &Node) -> Tensor> Selection
    for SelectionFunctions<R, I>
{
    fn reads_logits(&self) -> bool {
        true
    }

    fn draws(&self) -> bool {
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
