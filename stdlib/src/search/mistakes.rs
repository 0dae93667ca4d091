//! Checks of a search's inputs.

use super::base::{RecurrentFnOutput, RootFnOutput};
use super::node::Node;
use super::simulate::{Extents, SearchState};
use super::tree::SearchTree;
use crate::expect;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// Number of elements of one array that XLA's 32-bit indices can address.
const MOST: usize = i32::MAX as usize;

/// The root and its invalid actions, without gradients.
#[track_caller]
pub(super) fn of_root<E: Tree>(
    name: &'static str,
    root: RootFnOutput<E>,
    invalid_actions: Option<Tensor>,
) -> (RootFnOutput<E>, Option<Tensor>) {
    let mut root = tree_map(&root, stop_gradient);
    let logits = root.prior_logits.ty();
    if logits.rank() != 2 || logits.dtype != F32 || logits.elements() == 0 {
        let message = format!(
            "expected the root's prior_logits as f32 [B, A], B roots and A actions, got {logits}: one root has a leading axis of 1"
        );
        root.prior_logits = fail(name, message, &[root.prior_logits], TensorType::new(F32, [1, 1]));
    }
    let shape = root.prior_logits.shape();
    root.value = f32_of(name, "the root's value", root.value, &shape[..1]);
    for (path, leaf) in root.embedding.paths().into_iter().zip(root.embedding.leaves()) {
        if leaf.shape().first() != Some(&shape[0]) {
            let path = path.under("embedding");
            let message = format!(
                "expected `{path}` with the roots as its leading axis, of extent {}, got {}",
                shape[0],
                leaf.ty()
            );
            let _ = fail(name, message, &[leaf], leaf.ty());
        }
    }
    let invalid_actions = invalid_actions.map(|invalid| {
        let meaning = "the roots and their actions";
        let wrong = if invalid.dtype() == BOOL {
            expect::shape(name, "invalid_actions", invalid, &shape, meaning)
        } else {
            let message =
                format!("expected invalid_actions as bool {shape:?}, got {}", invalid.ty());
            Some(fail(name, message, &[invalid], invalid.ty()))
        };
        wrong.map_or(invalid, |_| zeros(BOOL, &shape))
    });
    if let Some(invalid) = invalid_actions {
        let legal = (!invalid).any_axis(-1).all();
        check(
            legal,
            "a search needs a legal action at each root: all actions of one are invalid",
            (),
        );
    }
    let nan = root.prior_logits.ne(root.prior_logits).any() | root.value.ne(root.value).any();
    check(!nan, "the root of a search has a prior logit or a value that is NaN", ());
    (root, invalid_actions)
}

/// The trees that a search continues with, without gradients; `None` if they do not fit the roots.
#[track_caller]
pub(super) fn of_kept<E: Tree>(
    name: &'static str,
    root: &RootFnOutput<E>,
    kept: &SearchTree<E>,
) -> Option<SearchTree<E>> {
    let (given, wanted) = (kept.children_prior_logits.shape(), root.prior_logits.shape());
    if given.first() != wanted.first() || given.last() != wanted.last() {
        let message = format!(
            "expected trees of as many roots and actions as the root, {wanted:?}, got [B, N, A] {given:?}"
        );
        let _ = fail(name, message, &[kept.children_prior_logits], TensorType::scalar(F32));
        return None;
    }
    let types = |embedding: &E, axes: usize| -> Vec<TensorType> {
        let leaves = embedding.leaves().into_iter();
        leaves
            .map(|leaf| TensorType::new(leaf.dtype(), &leaf.shape()[axes.min(leaf.rank())..]))
            .collect()
    };
    if types(&kept.embeddings, 2) != types(&root.embedding, 1) {
        let message = format!(
            "expected trees with embeddings of the root's type, {}, got {} for [B, N]",
            root.embedding.spec(),
            kept.embeddings.spec()
        );
        let _ = fail(name, message, &kept.embeddings.leaves(), TensorType::scalar(F32));
        return None;
    }
    Some(tree_map(kept, stop_gradient))
}

/// A step of the model.
#[track_caller]
pub(super) fn of_step(
    name: &'static str,
    step: RecurrentFnOutput,
    batch: usize,
    actions: usize,
) -> RecurrentFnOutput {
    let step = RecurrentFnOutput {
        reward: f32_of(name, "reward", step.reward, &[batch]),
        discount: f32_of(name, "discount", step.discount, &[batch]),
        prior_logits: f32_of(name, "prior_logits", step.prior_logits, &[batch, actions]),
        value: f32_of(name, "value", step.value, &[batch]),
    };
    let nan = |x: Tensor| x.ne(x).any();
    let any = nan(step.reward) | nan(step.discount) | nan(step.prior_logits) | nan(step.value);
    check(
        !any,
        "the model of a search gave a reward, discount, prior logit or value that is NaN",
        (),
    );
    step
}

/// Actions that a function selected for nodes, i32 `[B]`, in range. `live` marks the trees where
/// the action matters; all if `None`.
#[track_caller]
pub(super) fn selected(
    name: &'static str,
    action: Tensor,
    node: &Node,
    live: Option<Tensor>,
) -> Tensor {
    let (batch, actions) = (node.value.len(), node.visit_counts.dim(1));
    let expected = TensorType::new(I32, [batch]);
    if action.ty() != expected {
        let message =
            format!("expected an action of each of {batch} trees, {expected}, got {}", action.ty());
        return fail(name, message, &[action], expected);
    }
    let within = action.clamp(0, actions as i32 - 1);
    let mut right = within.eq(action);
    if let Some(live) = live {
        right = right | !live;
    }
    let lowest = action.min();
    let highest = action.max();
    check(
        right,
        "an action selection function of a search took actions from {} to {}: the last action is {}",
        (lowest, highest, scalar(actions as i32 - 1)),
    );
    within
}

/// The number of the next simulation of a search, in `0..end`, which must equal the number from the
/// loop, i32 `[]`.
#[track_caller]
pub(super) fn next_simulation<E: Tree>(
    simulation: Tensor,
    state: &SearchState<E>,
    end: usize,
) -> Tensor {
    const NAME: &str = "loop_fn";
    let expected = TensorType::scalar(I32);
    if simulation.ty() != expected {
        let message =
            format!("expected the number of a simulation, {expected}, got {}", simulation.ty());
        return fail(NAME, message, &[simulation], expected);
    }
    let next = state.visits().astype(I32).max() - 1;
    check(
        simulation.eq(next) & simulation.lt(end as i32),
        "the loop_fn of a search ran simulation {} after {} others: expected 0..{} in the order of their numbers",
        (simulation, next, scalar(end as i32)),
    );
    next.minimum(end as i32 - 1)
}

/// Logits of outcomes. The model determines the number of outcomes.
#[track_caller]
pub(super) fn chance_logits(name: &'static str, logits: Tensor, batch: usize) -> Tensor {
    let ty = logits.ty();
    if ty.rank() == 2 && ty.shape[0] == batch && ty.shape[1] > 0 && ty.dtype == F32 {
        return logits;
    }
    let message = format!("expected chance_logits as f32 [{batch}, C], C outcomes, got {ty}");
    fail(name, message, &[logits], TensorType::new(F32, [batch, 1]))
}

#[track_caller]
pub(super) fn f32_of(name: &'static str, what: &str, tensor: Tensor, shape: &[usize]) -> Tensor {
    let expected = TensorType::new(F32, shape);
    if tensor.ty() == expected {
        return tensor;
    }
    let message = format!("expected {what} as {expected}, got {}", tensor.ty());
    fail(name, message, &[tensor], expected)
}

impl Extents {
    /// The extents of a search from roots with these logits, `[B, A]`.
    #[track_caller]
    pub(super) fn new(
        name: &'static str,
        prior_logits: &Tensor,
        num_simulations: usize,
        max_depth: Option<usize>,
        kept: usize,
    ) -> Extents {
        let (batch, actions) = (prior_logits.dim(0), prior_logits.dim(1));
        let refuse = |message: String| {
            let _ = fail(name, message, &[], TensorType::scalar(F32));
        };
        if num_simulations == 0 {
            refuse("expected at least one simulation, got num_simulations 0".to_owned());
        }
        if max_depth == Some(0) {
            refuse("expected a max_depth of at least 1, got 0".to_owned());
        }
        let mut extents = Extents {
            batch,
            actions,
            num_simulations: num_simulations.max(1),
            max_depth: max_depth.unwrap_or(num_simulations + kept).max(1),
            kept,
        };
        let numbers = extents.numbers();
        if numbers > MOST || num_simulations >= 1 << 24 {
            refuse(format!(
                "{batch} trees of {num_simulations} simulations and {actions} actions are {numbers} numbers, {} GB, in one array; \
                 its indices reach {MOST}: search fewer roots at once, with `map`",
                numbers * 4 / 1_000_000_000
            ));
            extents = Extents { num_simulations: 1, kept: 0, ..extents };
        }
        extents
    }

    /// Number of elements in all rows of nodes.
    fn numbers(&self) -> usize {
        self.nodes() * self.batch * super::rows::width(self.actions, true)
    }
}
