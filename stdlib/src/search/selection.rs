//! Selection of a node's next action: pUCT, and sequential halving with Gumbel noise.

use super::fold;
use super::node::Columns;
use super::noise::Noise;
use super::qtransform::QTransform;
use super::seq_halving::{considered_visits, sequence};
use crate::Number;
use podracer_dsl::prelude::*;

/// A visit of nodes below the roots, one of each tree.
pub(super) struct Visit<'a> {
    /// A key used only by this visit.
    pub(super) key: &'a dyn Fn() -> Key,
    /// Trees that have such a node, bool `[B]`; selections in other trees are discarded. `None`:
    /// all trees.
    pub(super) live: Option<Tensor>,
}

/// Selection of actions at the root and below it.
pub(super) trait Selection {
    /// True if selection below the root reads prior logits in addition to the probabilities.
    fn reads_logits(&self) -> bool {
        false
    }

    /// True if selection below the root uses the keys of visits; each round of the backup has one
    /// key.
    fn draws(&self) -> bool {
        false
    }

    /// The probabilities `[B, A]` that nodes keep for logits `[B, A]`.
    fn prior_probs(&self, logits: Tensor) -> Tensor {
        fold::softmax(logits.swap_axes(0, 1)).swap_axes(0, 1)
    }

    /// The roots' actions in a simulation, i32 `[B]`. `simulation` is i32 `[]`.
    fn root(&self, node: &Columns, simulation: Tensor, noise: &Noise) -> Tensor;

    /// The scores of the actions of a node below the root, f32 `[A, B]`: the action with the
    /// greatest score is selected.
    fn interior(&self, node: &Columns, visit: &Visit<'_>) -> Tensor;

    /// The number of actions with noise that decides between equal scores; `None` without noise.
    fn noisy_actions(&self) -> Option<usize>;
}

/// pUCT (Schrittwieser et al. 2020, appendix B, equation 2).
#[derive(Clone)]
pub(super) struct MuZeroSelection {
    pub(super) qtransform: QTransform,
    pub(super) pb_c_init: Number,
    pub(super) pb_c_base: Number,
    pub(super) actions: usize,
    /// True if noise decides between equal scores.
    pub(super) tie_noise: bool,
    /// Actions that the root must not take. bool `[B, A]`
    pub(super) invalid_actions: Option<Tensor>,
}

/// The scores of pUCT, f32 `[A, B]`: the action with the greatest score is selected.
#[track_caller]
pub(super) fn puct_scores(
    node: &Columns,
    qtransform: QTransform,
    pb_c_init: Number,
    pb_c_base: Number,
) -> Tensor {
    let pb_c = pb_c_init.into_tensor() + ((node.visits + pb_c_base + 1.0) / pb_c_base).log();
    let policy = node.visits.sqrt() * pb_c * node.prior_probs / (node.visit_counts + 1.0);
    qtransform.of(node) + policy
}

impl MuZeroSelection {
    #[track_caller]
    pub(super) fn scores(&self, node: &Columns) -> Tensor {
        puct_scores(node, self.qtransform, self.pb_c_init, self.pb_c_base)
    }
}

impl Selection for MuZeroSelection {
    #[track_caller]
    fn root(&self, node: &Columns, _: Tensor, noise: &Noise) -> Tensor {
        let scores = masked(self.scores(node), self.invalid_actions);
        noise.argmax(scores, scalar(0))
    }

    #[track_caller]
    fn interior(&self, node: &Columns, _: &Visit<'_>) -> Tensor {
        self.scores(node)
    }

    fn noisy_actions(&self) -> Option<usize> {
        self.tie_noise.then_some(self.actions)
    }
}

/// Sequential halving with Gumbel noise at the root, and below it the action with visits that lag
/// most behind the improved policy (Danihelka et al. 2022, section 5).
#[derive(Clone)]
pub(super) struct GumbelSelection {
    pub(super) qtransform: QTransform,
    /// Gumbel noise of the root's actions. f32 `[A, B]`
    pub(super) gumbel: Tensor,
    pub(super) num_simulations: usize,
    pub(super) max_num_considered_actions: usize,
    /// Actions that the root must not take. bool `[B, A]`
    pub(super) invalid_actions: Option<Tensor>,
}

impl GumbelSelection {
    /// The improved policy minus each action's share of visits, f32 `[A, B]`.
    #[track_caller]
    pub(super) fn lag(node: &Columns, qtransform: QTransform) -> Tensor {
        let probs = fold::softmax(node.prior_logits + qtransform.of(node));
        probs - node.visit_counts / (1.0 + fold::count(node.visit_counts))
    }

    /// The scores of the root's actions that were visited `considered` times, f32 `[B]`, and -inf
    /// for the others. f32 `[A, B]`
    #[track_caller]
    pub(super) fn score_considered(&self, node: &Columns, considered: Tensor) -> Tensor {
        let logits = node.prior_logits - fold::max(node.prior_logits);
        let score = maximum(self.gumbel + logits + self.qtransform.of(node), -1e9);
        let score = select(node.visit_counts.eq(considered), score, f64::NEG_INFINITY);
        masked(score, self.invalid_actions)
    }

    /// The roots' actions, i32 `[B]`, in a simulation, i32 `[]`, or in one simulation per tree, i32
    /// `[B]`.
    #[track_caller]
    pub(super) fn root_action(&self, node: &Columns, simulation: Tensor) -> Tensor {
        let (batch, actions) = (node.value.len(), node.qvalues.dim(0));
        // A table for more actions than there are would never be read, and would be as large as the
        // setting.
        let most = self.max_num_considered_actions.min(actions);
        let considered = match self.invalid_actions {
            None => {
                let visits = sequence(most, self.num_simulations);
                constant(&visits[..]).at(simulation).broadcast_to([batch])
            }
            Some(invalid) => {
                let valid = (!invalid).astype(I32).sum_axis(-1).minimum(most as i32);
                let visits = considered_visits(most, self.num_simulations).concat();
                constant(&visits[..]).take(valid * self.num_simulations as i32 + simulation, 0)
            }
        };
        fold::argmax(self.score_considered(node, considered))
    }
}

impl Selection for GumbelSelection {
    fn reads_logits(&self) -> bool {
        true
    }

    #[track_caller]
    fn root(&self, node: &Columns, simulation: Tensor, _: &Noise) -> Tensor {
        self.root_action(node, simulation)
    }

    #[track_caller]
    fn interior(&self, node: &Columns, _: &Visit<'_>) -> Tensor {
        GumbelSelection::lag(node, self.qtransform)
    }

    fn noisy_actions(&self) -> Option<usize> {
        None
    }
}

/// The scores, `[A, B]`, with -inf for invalid actions, bool `[B, A]`.
#[track_caller]
pub(super) fn masked(scores: Tensor, invalid_actions: Option<Tensor>) -> Tensor {
    match invalid_actions {
        Some(invalid) => select(invalid.swap_axes(0, 1), f64::NEG_INFINITY, scores),
        None => scores,
    }
}
