//! Agents that plan: the search in `act`, the steps in a replay, and the targets of learning.

use crate::Number;
use crate::agents::RewardClipping;
use crate::learn::{
    ActorCriticOptimizer, AdamSettings, AnyAgent, DescribesOptimizer, LearnFromReplay, Mode,
    ReplaySettings, Replayed, RolloutOf, RolloutShape, Split, Task, View, Window, clipped,
};
use crate::optim::{Schedule, adam};
use crate::replay::stack_frames;
use crate::returns::n_step_bootstrapped_returns;
use crate::search::{
    ChanceRecurrentFnOutput, DecisionRecurrentFnOutput, GumbelMuZeroOptions, MuZeroOptions,
    PolicyOutput, RecurrentFnOutput, RootFnOutput, SearchOptions, stochastic_muzero_policy,
};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of levels of a tree in its picture.
const LEVELS: usize = 16;

/// Kinds of search.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchKind {
    /// MuZero's: pUCT, Dirichlet noise at the root, and actions in proportion to visits.
    #[default]
    Muzero,
    /// Gumbel MuZero's: sequential halving at the root, and the improved policy as the target.
    Gumbel,
}

/// Sources of the steps that a planning agent learns from.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LearnFrom {
    /// Each rollout, once.
    #[default]
    Rollouts,
    /// A replay, with the settings `replay`.
    Replay,
}

/// The search that chooses an agent's actions.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SearchSettings {
    /// The search: `muzero` (Schrittwieser et al. 2020) or `gumbel` (Danihelka et al. 2022).
    pub search: SearchKind,
    /// Simulations of a search.
    #[schemars(range(min = 1, max = 100_000))]
    pub simulations: usize,
    /// Share of Dirichlet noise in the root's policy, for `muzero`. Evaluations use none.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dirichlet_fraction: Number,
    /// Concentration of the Dirichlet noise, for `muzero`.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub dirichlet_alpha: Number,
    /// `c_1` of pUCT, for `muzero`: weight of the policy against the values of actions.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub pb_c_init: Number,
    /// `c_2` of pUCT, for `muzero`: number of visits beyond which the policy weighs more.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub pb_c_base: Number,
    /// Actions are drawn in proportion to `visits^(1 / temperature)`, for `muzero`; 0 takes the
    /// most visited action, as evaluations do.
    #[schemars(range(min = 0.0))]
    pub temperature: Number,
    /// Greatest number of actions tried at the root, for `gumbel`.
    #[schemars(range(min = 1, max = 10_000))]
    pub considered_actions: usize,
    /// Scale of the noise at the root, for `gumbel`. Evaluations use none.
    #[schemars(range(min = 0.0))]
    pub gumbel_scale: Number,
}

/// The 50 simulations of MuZero's paper for Atari, and mctx's defaults.
impl Default for SearchSettings {
    fn default() -> Self {
        let muzero = MuZeroOptions::default();
        let gumbel = GumbelMuZeroOptions::default();
        SearchSettings {
            search: SearchKind::Muzero,
            simulations: 50,
            dirichlet_fraction: muzero.dirichlet_fraction,
            dirichlet_alpha: muzero.dirichlet_alpha,
            pb_c_init: muzero.pb_c_init,
            pb_c_base: muzero.pb_c_base,
            temperature: muzero.temperature,
            considered_actions: gumbel.max_num_considered_actions,
            gumbel_scale: gumbel.gumbel_scale,
        }
    }
}

/// Settings that planning agents share: the optimizer, the search, and the source of learning.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct PlanningSettings {
    /// The optimizer of all parameters.
    #[serde(flatten)]
    pub optimizer: AdamSettings,
    /// Weight decay of the parameters, in addition to Adam's step (AdamW).
    #[schemars(range(min = 0.0))]
    pub weight_decay: Number,
    /// Source of the steps to learn from.
    pub learn_from: LearnFrom,
    /// With `learn_from = "rollouts"`: gradient steps per iteration, each from an equal part of a
    /// device's lanes.
    #[schemars(range(min = 1, max = 10_000))]
    pub gradient_steps: usize,
    /// Settings of the search.
    #[serde(flatten)]
    pub search: SearchSettings,
    /// Settings of the replay.
    #[serde(flatten)]
    pub replay: ReplaySettings,
}

impl Default for PlanningSettings {
    fn default() -> Self {
        PlanningSettings {
            optimizer: AdamSettings {
                learning_rate: 1e-3.into(),
                adam_epsilon: 1e-8.into(),
                max_gradient_norm: 5.0.into(),
                ..AdamSettings::default()
            },
            weight_decay: 1e-4.into(),
            learn_from: LearnFrom::Rollouts,
            gradient_steps: 1,
            search: SearchSettings::default(),
            replay: ReplaySettings {
                capacity: 1_000_000,
                minimum: 10_000,
                batch: 1024,
                replay_ratio: 1.0,
                ..ReplaySettings::default()
            },
        }
    }
}

impl DescribesOptimizer for PlanningSettings {
    type Optimizer = ActorCriticOptimizer;

    fn optimizer(&self, learning_rate: Schedule) -> ActorCriticOptimizer {
        let adam = adam(learning_rate).eps(self.optimizer.adam_epsilon);
        clipped(self.optimizer.max_gradient_norm, adam.weight_decay(self.weight_decay))
    }

    fn learning_rate(&self) -> Number {
        self.optimizer.learning_rate
    }

    fn anneals(&self) -> bool {
        self.optimizer.anneal_learning_rate
    }
}

impl PlanningSettings {
    /// Number of first steps that are learnt from in a window of `length` steps. It is one in the
    /// replay, where windows hold the full return of that step, and all steps of a rollout.
    #[must_use]
    pub fn starts(&self, length: usize) -> usize {
        match self.learn_from {
            LearnFrom::Replay => 1,
            LearnFrom::Rollouts => length,
        }
    }

    /// An agent that learns from rollouts, or from windows of `window` steps of a replay.
    pub(super) fn learning<A>(
        &self,
        agent: A,
        window: usize,
        task: &Task,
    ) -> Result<AnyAgent, String>
    where
        A: LearnFromReplay<Observation = Tensor, Start = ()> + Clone + 'static,
    {
        match self.learn_from {
            LearnFrom::Rollouts => {
                Ok(AnyAgent::new(Split { agent, gradient_steps: self.gradient_steps }))
            }
            LearnFrom::Replay => {
                self.replay.check(window)?;
                Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay, task)))
            }
        }
    }

    /// Checks that gradient steps from rollouts divide the lanes equally, or that windows fit into
    /// the replay.
    pub(super) fn check_rollout(
        &self,
        window: Window,
        rollout: RolloutShape,
        devices: usize,
    ) -> Result<(), String> {
        match self.learn_from {
            LearnFrom::Replay => self.replay.check_rollout(window, rollout, devices),
            LearnFrom::Rollouts => Split::<()>::check(rollout.lanes, self.gradient_steps),
        }
    }
}

/// The number of actions of a task, for an agent that searches.
///
/// # Errors
/// Returns a sentence that names the agent if the actions are not discrete.
pub(super) fn searched_actions(agent: &str, task: &Task) -> Result<usize, String> {
    match &task.action {
        Space::Discrete { n, .. } => Ok(*n),
        other => Err(format!(
            "{agent}'s search has a node for each action: expected a discrete action space, and the environment has {other:?}"
        )),
    }
}

/// The discount of the value after a step in a game of `players` players, from the view of the
/// player who steps. It is negated for two players, who take turns, because the next value is the
/// other player's.
pub(super) fn discount_between(players: usize, discount: Number) -> Number {
    match players {
        1 => discount,
        _ => -discount,
    }
}

/// Results of a search that learning reads.
#[derive(Tree, Clone, Copy)]
pub struct PlanExtras {
    /// The policy's target: shares of visits, or the improved policy. f32 `[A]`
    pub policy: Tensor,
    /// The root's value by the search. f32 `[]`
    pub value: Tensor,
}

impl PlanExtras {
    /// The action of one lane's search, i32 `[]`, and the search's extras.
    #[track_caller]
    pub(super) fn of(output: &PolicyOutput<()>) -> (Tensor, PlanExtras) {
        let value = output.search_tree.summary().value.index(0);
        (output.action.index(0), PlanExtras { policy: output.action_weights.index(0), value })
    }
}

impl View {
    /// The view of a search of one lane: its policy, its values, and its tree as a picture.
    #[track_caller]
    pub(super) fn of_search(output: &PolicyOutput<()>) -> View {
        let summary = output.search_tree.summary();
        View {
            value: Some(summary.value.index(0)),
            probabilities: Some(output.action_weights.index(0)),
            action_values: Some(summary.qvalues.index(0)),
            picture: Some(output.search_tree.picture(LEVELS).index(0)),
        }
    }
}

impl SearchSettings {
    /// Options of the search with these settings; a greedy search has no noise.
    pub(super) fn options(&self, mode: Mode) -> SearchOptions {
        match self.search {
            SearchKind::Muzero => SearchOptions::MuZero(self.muzero_options(mode)),
            SearchKind::Gumbel => SearchOptions::Gumbel(GumbelMuZeroOptions {
                max_num_considered_actions: self.considered_actions,
                gumbel_scale: explores(self.gumbel_scale, mode),
                ..GumbelMuZeroOptions::default()
            }),
        }
    }

    fn muzero_options(&self, mode: Mode) -> MuZeroOptions {
        MuZeroOptions {
            dirichlet_fraction: explores(self.dirichlet_fraction, mode),
            dirichlet_alpha: self.dirichlet_alpha,
            pb_c_init: self.pb_c_init,
            pb_c_base: self.pb_c_base,
            temperature: explores(self.temperature, mode),
            // Networks hardly ever give equal scores.
            tie_noise: false,
            ..MuZeroOptions::default()
        }
    }

    /// Searches from one lane with a model that takes an action and an embedding. Both have a
    /// leading axis of 1, as everything in `root` does. Returns the action, i32 `[]`, and the
    /// search's extras.
    #[track_caller]
    pub(super) fn plan<E: Tree>(
        &self,
        key: Key,
        root: RootFnOutput<E>,
        model: impl FnOnce(Key, Tensor, E) -> (RecurrentFnOutput, E),
        legal: Option<Tensor>,
        mode: Mode,
    ) -> PolicyOutput<()> {
        let (invalid, simulations) = (invalid(legal), self.simulations);
        self.options(mode).search(key, root, model, simulations, invalid).without_embeddings()
    }

    /// [`SearchSettings::plan`] by pUCT, with a model of afterstates and chance outcomes.
    #[track_caller]
    pub(super) fn plan_with_chance<E: Tree, F: Tree>(
        &self,
        key: Key,
        root: RootFnOutput<E>,
        decide: impl Fn(Key, Tensor, E) -> (DecisionRecurrentFnOutput, F),
        happen: impl Fn(Key, Tensor, F) -> (ChanceRecurrentFnOutput, E),
        legal: Option<Tensor>,
        mode: Mode,
    ) -> PolicyOutput<()> {
        let (invalid, options) = (invalid(legal), self.muzero_options(mode));
        let simulations = self.simulations;
        stochastic_muzero_policy(key, root, decide, happen, simulations, invalid, &options)
            .without_embeddings()
    }
}

/// A parameter of exploration, which is 0 in evaluations.
fn explores(number: Number, mode: Mode) -> Number {
    match mode {
        Mode::Explore => number,
        Mode::Greedy => 0.0.into(),
    }
}

/// The actions that a search from one lane must not take, bool `[1, A]`.
#[track_caller]
fn invalid(legal: Option<Tensor>) -> Option<Tensor> {
    legal.map(|legal| (!legal).expand_dims(0))
}

/// One step of a lane with a search, as in windows.
#[derive(Tree, Clone)]
pub struct PlannedStep {
    /// The observation that the agent acted on: a single frame.
    pub observation: Tensor,
    /// The action. i32 `[]`
    pub action: Tensor,
    /// The reward. f32 `[]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state. bool `[]`
    pub terminated: Tensor,
    /// True if the step's episode was cut off. bool `[]`
    pub truncated: Tensor,
    /// True for a reset-only step; `None` if the environment has no such steps. bool `[]`
    pub skipped: Option<Tensor>,
    /// The search's policy and value of the observation.
    pub plan: PlanExtras,
}

impl PlannedStep {
    /// The steps of a rollout. `[T, N, ..]`
    pub fn of<M: Tree>(rollout: RolloutOf<Tensor, M, PlanExtras>) -> PlannedStep {
        PlannedStep {
            observation: rollout.input.observation,
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
            truncated: rollout.truncated,
            skipped: rollout.skipped,
            plan: rollout.extras,
        }
    }

    /// The steps of a window `[frames - 1 + L, ..]` without its first `frames - 1`, with
    /// observations of `frames` frames each. `[L, ..]`
    #[track_caller]
    pub(super) fn stacked(self, frames: usize) -> PlannedStep {
        if frames == 1 {
            return self;
        }
        let done = self.terminated | self.truncated;
        // The end of an episode before the window's first step is irrelevant.
        let first = concatenate(&[full([1], false), done.slice_axis(0, 0..done.len() - 1)], 0);
        let observation = stack_frames(self.observation, first, frames);
        let rest = tree_map(&self, |leaf| leaf.slice_axis(0, frames - 1..));
        PlannedStep { observation, ..rest }
    }

    /// The same steps, `[L, ..]`, with rewards to learn from.
    #[track_caller]
    pub(super) fn clipped(self, clipping: RewardClipping) -> PlannedStep {
        match clipping {
            RewardClipping::None => self,
            RewardClipping::AbsOne => PlannedStep { reward: self.reward.clamp(-1.0, 1.0), ..self },
        }
    }

    /// Steps of a window that count, bool `[L]`: all except reset-only steps.
    #[track_caller]
    pub(super) fn counts(&self) -> Tensor {
        match self.skipped {
            Some(skipped) => !skipped,
            None => full(self.reward.shape(), true),
        }
    }

    /// The value target of each step of a window, f32 `[L]`: the rewards of up to `n` steps plus
    /// the search's value of the state after them. A return ends early at a terminal state. It also
    /// ends early at the last step with a known search value, and is bootstrapped from that value:
    /// at the window's last step, and at a step that cuts an episode off.
    #[track_caller]
    pub fn value_targets(&self, n: usize, discount: impl Into<Number>) -> Tensor {
        let _scope = scope("PlannedStep::value_targets");
        let value = self.plan.value;
        let steps = value.len();
        let last = arange(steps).eq(steps as i32 - 1);
        let known_by_search = !self.terminated & (self.truncated | last);
        let discount = discount.into().into_tensor().broadcast_to([steps]);
        // No value flows from the last step to the first.
        let returns = n_step_bootstrapped_returns(
            self.reward,
            select(self.terminated, 0.0, discount),
            value.roll(-1, 0),
            n,
            select(known_by_search.roll(-1, 0), 0.0, 1.0),
        );
        select(known_by_search, value, returns)
    }
}
