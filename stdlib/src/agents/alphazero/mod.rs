//! AlphaZero: Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play", 2018.
//!
//! `act` searches with the environment's own `step`, from the state that [`Environment::state_of`]
//! makes of the observation. In a game of two players the agent moves for both, and the value of a
//! state is its value for the player to move. The loss of each step, with `z` the outcome of its
//! game and `pi` the search's policy (equation 1), is
//!
//! ```text
//! l = c (z - v)^2 - pi^T log p
//! ```

mod settings;

pub use settings::AlphaZeroSettings;

use crate::Number;
use crate::agents::planning::discount_between;
use crate::agents::{PlanExtras, PlannedStep};
use crate::learn::weighted;
use crate::learn::{
    Act, ActorCriticOptimizer, Agent, Cx, DescribesOptimizer, Input, LaneId, LearnFromReplay, Mode,
    Optimized, Rollout, View, Window, Windows, step_weights,
};
use crate::losses::softmax_cross_entropy;
use crate::net::{Networks, TorsoNet};
use crate::nn::{Initializer, Mlp};
use crate::optim::Optimizer;
use crate::search::{PolicyOutput, alphazero_policy};
use podracer_dsl::prelude::*;
use podracer_envs::{AnyEnvironment, Environment, Space};

/// The agent of [`AlphaZeroSettings`]. It learns when wrapped in [`Split`](crate::learn::Split) or
/// [`Replayed`](crate::learn::Replayed).
#[derive(Clone)]
pub struct AlphaZero {
    /// The environment, which is the model.
    pub model: AnyEnvironment,
    /// Number of actions, `A`.
    pub actions: usize,
    /// Number of iterations of the run, over which the learning rate falls.
    pub iterations: usize,
    /// Settings of the agent.
    pub settings: AlphaZeroSettings,
}

/// Networks of policy and value with a shared torso.
#[derive(Tree, Clone)]
pub struct AlphaZeroNetwork {
    /// Observation to features.
    pub torso: TorsoNet,
    /// Features to logits of the actions.
    pub policy: Mlp,
    /// Features to the value before the tanh.
    pub value: Mlp,
}

impl AlphaZeroNetwork {
    /// New networks. Weights are drawn LeCun normal, but the last layers' weights are 0: the first
    /// searches see a uniform policy and values of 0.
    #[track_caller]
    pub fn init(key: Key, observation: &Space, actions: usize, networks: &Networks) -> Self {
        let weights = Initializer::lecun_normal();
        let keys = key.split_n(3);
        let (torso, features) = TorsoNet::init(keys.at(0), observation, networks, weights);
        let head = |i: usize, outputs: usize| {
            let sizes = [&[features], &networks.hidden[..], &[outputs]].concat();
            let activation = networks.activation;
            let mlp = Mlp::init(keys.at(i), &sizes, activation, weights, Initializer::Zeros);
            if networks.layer_norm { mlp.with_layer_norm() } else { mlp }
        };
        AlphaZeroNetwork { torso, policy: head(1, actions), value: head(2, 1) }
    }

    /// Logits of the actions, f32 `[A]`, and the value of the player to move, f32 `[]`, in [-1, 1].
    #[track_caller]
    pub fn apply(&self, observation: Tensor) -> (Tensor, Tensor) {
        let features = self.torso.apply(observation);
        (self.policy.apply(features), self.value.apply(features).index(0).tanh())
    }
}

impl AlphaZero {
    /// Makes an agent with this environment as the model.
    ///
    /// # Errors
    /// Returns a sentence if the environment's states cannot be recovered from its observations.
    pub fn new(
        model: AnyEnvironment,
        actions: usize,
        iterations: usize,
        settings: AlphaZeroSettings,
    ) -> Result<AlphaZero, String> {
        let mut known = false;
        let observation = model.observation_space().ty().into_spec();
        let traced = eval_shape(observation, |seen| known = model.state_of(seen).is_some());
        if let Err(errors) = traced {
            return Err(format!(
                "the environment's `state_of` does not fit its observations: {errors}"
            ));
        }
        if !known {
            return Err(
                "AlphaZero searches with the environment as its model, from the state that an observation tells: expected an \
                 environment with `state_of`, such as `tic-tac-toe`, `connect-four` or `othello`; `muzero` learns a model"
                    .to_owned(),
            );
        }
        Ok(AlphaZero { model, actions, iterations, settings })
    }

    /// The discount of the value after a step, from the view of the player who steps.
    fn discount(&self) -> Number {
        discount_between(self.model.players(), self.settings.discount)
    }

    /// The terms of the loss for the first `starts` steps of a window of one lane, `[L, ..]`.
    #[track_caller]
    pub fn terms(
        &self,
        network: &AlphaZeroNetwork,
        steps: &PlannedStep,
        starts: usize,
    ) -> AlphaZeroTerms {
        let _scope = scope("AlphaZero::terms");
        let first = |leaf: Tensor| leaf.slice_axis(0, 0..starts);
        let target = first(steps.value_targets(self.settings.n_step, self.discount()));
        let (logits, value) = vmap(first(steps.observation), |seen| network.apply(seen));
        AlphaZeroTerms {
            policy_loss: softmax_cross_entropy(logits, first(steps.plan.policy)),
            value_loss: (stop_gradient(target) - value).square(),
            value,
            search_value: first(steps.plan.value),
            counts: first(steps.counts()),
        }
    }
}

/// Terms of the loss for each of `S` steps. f32 `[S]`
#[derive(Tree, Clone, Copy)]
pub struct AlphaZeroTerms {
    /// Cross-entropy between the search's policy and the network's.
    pub policy_loss: Tensor,
    /// Squared error of the value.
    pub value_loss: Tensor,
    /// The network's value.
    pub value: Tensor,
    /// The search's value.
    pub search_value: Tensor,
    /// True for steps that count. bool `[S]`
    pub counts: Tensor,
}

/// Metrics of a gradient step: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct AlphaZeroMetrics {
    /// The policy loss plus the weighted value loss.
    pub loss: Tensor,
    /// Cross-entropy between the search's policy and the network's.
    pub policy_loss: Tensor,
    /// Squared error of the value.
    pub value_loss: Tensor,
    /// The network's value for the player to move.
    pub value: Tensor,
    /// The search's value for the player to move.
    pub search_value: Tensor,
}

impl Agent for AlphaZero {
    type Observation = Tensor;
    type Params = AlphaZeroNetwork;
    type Memory = ();
    type Extras = PlanExtras;

    fn init_memory(&self, _: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    fn act(
        &self,
        params: &AlphaZeroNetwork,
        (): (),
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<(), PlanExtras> {
        let (action, extras) = PlanExtras::of(&self.search(params, input, mode, key));
        Act { action, memory: (), extras }
    }

    fn view(&self, params: &AlphaZeroNetwork, (): (), input: Input, mode: Mode, key: Key) -> View {
        View::of_search(&self.search(params, input, mode, key))
    }
}

impl AlphaZero {
    /// The search of one lane.
    fn search(
        &self,
        params: &AlphaZeroNetwork,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> PolicyOutput<()> {
        let state = self.model.state_of(input.observation).expect("`AlphaZero::new` asks for it");
        let states = tree_map(&state, |leaf| leaf.expand_dims(0));
        let evaluate = |seen| vmap(seen, |seen| params.apply(seen));
        let search = &self.settings.planning.search;
        alphazero_policy(
            key,
            &self.model,
            states,
            evaluate,
            self.discount(),
            search.simulations,
            &search.options(mode),
        )
        .without_embeddings()
    }
}

impl LearnFromReplay for AlphaZero {
    type State =
        Optimized<AlphaZeroNetwork, <ActorCriticOptimizer as Optimizer>::State<AlphaZeroNetwork>>;
    type Step = PlannedStep;
    type Start = ();
    type Metrics = AlphaZeroMetrics;

    fn init(&self, key: Key) -> Self::State {
        let (seen, networks) = (self.model.observation_space(), &self.settings.networks);
        let network = AlphaZeroNetwork::init(key, &seen, self.actions, networks);
        Optimized::new(&self.settings.planning.at(scalar(0), self.iterations), network)
    }

    fn params(&self, state: &Self::State) -> AlphaZeroNetwork {
        state.params.clone()
    }

    fn keep(&self, rollout: Rollout<Self>) -> (PlannedStep, ()) {
        (PlannedStep::of(rollout), ())
    }

    fn window(&self, _: &Spec<PlannedStep>) -> Window {
        self.settings.window()
    }

    fn gradient_step(
        &self,
        state: Self::State,
        windows: Windows<PlannedStep>,
        cx: &Cx,
    ) -> (Self::State, Tensor, AlphaZeroMetrics) {
        let _scope = scope("AlphaZero::gradient_step");
        let Windows { steps, weights, .. } = windows;
        let starts = self.settings.planning.starts(steps.reward.dim(0));
        let optimizer = self.settings.planning.at(cx.iteration, self.iterations);
        let (state, (priorities, metrics)) = state.gradient_step(&optimizer, cx, |network| {
            // [B, S]
            let terms = vmap(axis(steps, 1), |steps| self.terms(&network, &steps, starts));
            let counted = step_weights(terms.counts, cx);
            let mean = |term: Tensor| weighted(term, Some(counted)).mean();
            let loss = terms.policy_loss + self.settings.value_cost * terms.value_loss;
            let loss = mean(weights.expand_dims(1) * loss);
            let metrics = AlphaZeroMetrics {
                loss,
                policy_loss: mean(terms.policy_loss),
                value_loss: mean(terms.value_loss),
                value: mean(terms.value),
                search_value: mean(terms.search_value),
            };
            (loss, stop_gradient((terms.value_loss.mean_axis(1).sqrt(), metrics)))
        });
        (state, priorities, cx.mean(metrics))
    }
}
