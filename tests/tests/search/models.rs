//! Random tabular models, equal to those in `tests/golden/make_mctx.py`.

use podracer_dsl::prelude::*;
use podracer_rl::search::*;

pub const ROOTS: usize = 2;
const STATES: usize = 11;
const OUTCOMES: usize = 3;

/// The search to run.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    pub policy: &'a str,
    pub qtransform: &'a str,
    pub actions: usize,
    pub simulations: usize,
    pub max_depth: Option<usize>,
}

/// Numbers of one model.
#[derive(Tree, Clone)]
pub struct Settings {
    pub seed: Tensor,
    pub discount: Tensor,
    pub levels: Tensor,
    pub invalid: Tensor,
}

/// A model of some states. An edge leads from each pair of state and action to a state, or several do.
struct Model {
    next: Tensor,
    reward: Tensor,
    prior_logits: Tensor,
    value: Tensor,
    discount: Tensor,
    chance_logits: Tensor,
    afterstate_value: Tensor,
    invalid: Tensor,
}

impl Model {
    fn new(settings: &Settings, actions: usize, edges: usize) -> Model {
        let [next, reward, logits, value, ends, chance, afterstate, invalid, _] =
            Key::new(settings.seed).split_into();
        let numbers = |key: Key, shape: &[usize]| {
            (key.uniform(shape) * settings.levels).floor() * (2.0 / settings.levels) - 1.0
        };
        let pairs = [STATES * actions, edges];
        Model {
            next: next.randint(pairs, 0..STATES),
            reward: numbers(reward, &pairs),
            prior_logits: 2.0 * numbers(logits, &[STATES, actions]),
            value: numbers(value, &[STATES]),
            discount: select(ends.uniform(pairs).lt(0.1), 0.0, settings.discount),
            chance_logits: 2.0 * numbers(chance, &pairs),
            afterstate_value: numbers(afterstate, &pairs[..1]),
            invalid: invalid.uniform([ROOTS, actions]).lt(0.3) & settings.invalid,
        }
    }
}

/// A search's results as a record has them.
#[derive(Tree, Clone)]
pub struct Found {
    pub visit_counts: Tensor,
    pub action: Tensor,
    pub value: Tensor,
    pub weights: Tensor,
    pub qvalues: Tensor,
    pub node_values: Tensor,
    pub nodes: Tensor,
}

impl Search<'_> {
    fn qtransform(&self) -> QTransform {
        match self.qtransform {
            "by_min_max" => qtransform_by_min_max(-4.0, 4.0),
            "by_parent_and_siblings" => qtransform_by_parent_and_siblings(),
            "completed_by_mix_value" => qtransform_completed_by_mix_value(),
            other => panic!("no Q-transform is called {other}"),
        }
    }

    /// Runs the search of both roots of a model.
    pub fn run(&self, settings: Settings) -> Found {
        let stochastic = self.policy == "stochastic_muzero";
        let actions = self.actions;
        let model = Model::new(&settings, actions, if stochastic { OUTCOMES } else { 1 });
        let edge_of = |state: Tensor, action: Tensor| state * actions as i32 + action;
        let of = |table: Tensor, edge: Tensor, outcome: Tensor| {
            table.flatten().take(edge * table.dim(1) as i32 + outcome, 0)
        };
        let state = arange(ROOTS);
        let root = RootFnOutput {
            prior_logits: model.prior_logits.take(state, 0),
            value: model.value.take(state, 0),
            embedding: state,
        };
        // Action 1 is always valid.
        let one = iota(I32, [ROOTS, actions], 1).eq(1);
        let invalid = Some(model.invalid & !one);
        let key = Key::new(settings.seed + 1);
        let step = |_: Key, action: Tensor, state: Tensor| {
            let (edge, first) = (edge_of(state, action), zeros(I32, [ROOTS]));
            let state = of(model.next, edge, first);
            let output = RecurrentFnOutput {
                reward: of(model.reward, edge, first),
                discount: of(model.discount, edge, first),
                prior_logits: model.prior_logits.take(state, 0),
                value: model.value.take(state, 0),
            };
            (output, state)
        };
        let (simulations, max_depth, qtransform) =
            (self.simulations, self.max_depth, self.qtransform());
        let muzero = MuZeroOptions { qtransform, max_depth, ..MuZeroOptions::default() };
        match self.policy {
            "muzero" => found(&muzero_policy(key, root, step, simulations, invalid, &muzero)),
            "gumbel_muzero" => {
                let options =
                    GumbelMuZeroOptions { qtransform, max_depth, ..GumbelMuZeroOptions::default() };
                found(&gumbel_muzero_policy(key, root, step, simulations, invalid, &options))
            }
            "stochastic_muzero" => {
                let decide = |_: Key, action: Tensor, state: Tensor| {
                    let edge = edge_of(state, action.clamp(0, actions as i32 - 1));
                    let output = DecisionRecurrentFnOutput {
                        chance_logits: model.chance_logits.take(edge, 0),
                        afterstate_value: model.afterstate_value.take(edge, 0),
                    };
                    (output, edge)
                };
                let happen = |_: Key, outcome: Tensor, edge: Tensor| {
                    let outcome = outcome.clamp(0, OUTCOMES as i32 - 1);
                    let state = of(model.next, edge, outcome);
                    let output = ChanceRecurrentFnOutput {
                        action_logits: model.prior_logits.take(state, 0),
                        value: model.value.take(state, 0),
                        reward: of(model.reward, edge, outcome),
                        discount: of(model.discount, edge, outcome),
                    };
                    (output, state)
                };
                found(&stochastic_muzero_policy(
                    key,
                    root,
                    decide,
                    happen,
                    simulations,
                    invalid,
                    &muzero,
                ))
            }
            other => panic!("no policy is called {other}"),
        }
    }
}

/// The results of a policy as a record has them.
pub fn found<E: Tree>(output: &PolicyOutput<E>) -> Found {
    let tree = &output.search_tree;
    let summary = tree.summary();
    let weigh = |x: Tensor| {
        let count = *x.shape().last().expect("an axis");
        (x * (arange(count) + 1).astype(x.dtype())).sum_axis(-1)
    };
    let shape = (tree.parents + 2) * (tree.action_from_parent + 2) + tree.node_visits;
    let nodes = arange(tree.num_simulations() + 1) + 1;
    Found {
        visit_counts: summary.visit_counts.astype(I32),
        action: output.action,
        value: summary.value,
        weights: weigh(output.action_weights),
        qvalues: weigh(summary.qvalues),
        node_values: weigh(tree.node_values),
        nodes: (shape * nodes).rem(65521).sum_axis(-1),
    }
}
