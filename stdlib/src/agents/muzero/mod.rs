//! MuZero: Schrittwieser et al., "Mastering Atari, Go, Chess and Shogi by Planning with a Learned Model", 2020.
//!
//! `act` searches with the learned model. The loss sums over steps `t` of a lane and `K` steps of
//! the model after each. `z` are the returns of `n` steps, bootstrapped from the search's values,
//! `u` the rewards, and `pi` the search's policies:
//!
//! ```text
//! l_t = H(pi_t, p_0) + c H(z_t, v_0) + 1/K sum_(k = 1..K) (H(pi_(t+k), p_k) + c H(z_(t+k), v_k) + H(u_(t+k), r_k))
//! ```
//!
//! In a game of two players who move in turns, a reward is for the player who moved, and a value
//! for the player to move. The discount, in the search and in `z`, is therefore negative.
//!
//! `H` is the cross-entropy, over bins for values and rewards (two-hot, rescaled), and `c` is
//! `value_cost`. Half of the gradient passes each step of the model.

mod chance;
mod loss;
mod network;
mod planes;
mod settings;

pub use chance::{ChanceNetwork, Encoded};
pub use loss::{MuZeroLoss, MuZeroMetrics, MuZeroTargets, MuZeroTerms};
pub use network::{MuZeroNetwork, Support};
pub use planes::{ActionPlanes, PlanesHead, PlanesNetwork, PlanesTorso};
pub use settings::{ModelKind, MuZeroSettings};

use crate::Number;
use crate::agents::planning::{discount_between, searched_actions};
use crate::agents::{PlanExtras, PlannedStep};
use crate::learn::{
    Act, ActorCriticOptimizer, Agent, Cx, DescribesOptimizer, FrameMemory, Input, LaneId,
    LearnFromReplay, Mode, Optimized, Rollout, Task, View, Window, Windows, no_frames, stack_frame,
    stacked_space,
};
use crate::optim::Optimizer;
use crate::search::{
    ChanceRecurrentFnOutput, DecisionRecurrentFnOutput, PolicyOutput, RecurrentFnOutput,
    RootFnOutput,
};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space};

/// The agent of [`MuZeroSettings`]. It learns when wrapped in [`Split`](crate::learn::Split) or
/// [`Replayed`](crate::learn::Replayed).
#[derive(Clone, Debug)]
pub struct MuZero {
    /// Space of the observations, of single frames.
    pub observation: Space,
    /// Number of actions, `A`.
    pub actions: usize,
    /// Number of players who take turns, as in [`Environment::players`]. With 2 players, the agent
    /// moves for both, and the value of a state is its value for the player to move.
    pub players: usize,
    /// Number of iterations of the run, over which the learning rate falls.
    pub iterations: usize,
    /// Settings of the agent.
    pub settings: MuZeroSettings,
}

impl MuZero {
    /// The agent for a task. An environment that steps on the host has one player.
    ///
    /// # Errors
    /// Returns a sentence if the torso does not support the observations, the model does not fit
    /// the torso, or actions are not discrete.
    pub fn for_task(settings: &MuZeroSettings, task: &Task) -> Result<MuZero, String> {
        settings.check_model(&stacked_space(&task.observation, settings.frames))?;
        Ok(MuZero {
            observation: task.observation.clone(),
            actions: searched_actions("MuZero", task)?,
            players: task.model.as_ref().map_or(1, |model| model.players()),
            iterations: task.iterations,
            settings: settings.clone(),
        })
    }

    /// The discount of the value after a step, from the view of the player who steps. It is
    /// negative in a game of two players, where the next value is the other player's.
    pub(super) fn discount(&self) -> Number {
        discount_between(self.players, self.settings.discount)
    }

    /// The search of one lane from a stack of frames.
    fn search(
        &self,
        params: &MuZeroNetwork,
        seen: Tensor,
        legal: Option<Tensor>,
        mode: Mode,
        key: Key,
    ) -> PolicyOutput<()> {
        let search = &self.settings.planning.search;
        let (values, rewards) = (self.settings.value_support(), self.settings.reward_support());
        let embedding = params.represent(seen).expand_dims(0);
        let predict = |embedding: Tensor| {
            let (policy, value) = vmap(embedding, |embedding| params.predict(embedding));
            (policy, values.mean(value))
        };
        let (prior_logits, value) = predict(embedding);
        let root = RootFnOutput { prior_logits, value, embedding };
        let discount = self.discount().into_tensor().broadcast_to([1]);
        let step = |embedding: Tensor, edge: Tensor| {
            let (embedding, reward) =
                vmap((embedding, edge), |(embedding, edge)| params.step(embedding, edge));
            let (prior_logits, value) = predict(embedding);
            (
                RecurrentFnOutput { reward: rewards.mean(reward), discount, prior_logits, value },
                embedding,
            )
        };
        let actions = self.actions;
        match params.chance().zip(self.settings.chance_outcomes) {
            None => {
                let model = |_: Key, action: Tensor, embedding: Tensor| {
                    step(embedding, action.one_hot(actions))
                };
                search.plan(key, root, model, legal, mode)
            }
            Some((chance, outcomes)) => {
                let decide = |_: Key, action: Tensor, embedding: Tensor| {
                    let both = (embedding, action.one_hot(actions));
                    let after = vmap(both, |(embedding, action)| chance.after(embedding, action));
                    let (chance_logits, value) = vmap(after, |after| chance.predict(after));
                    let afterstate_value = values.mean(value);
                    (DecisionRecurrentFnOutput { chance_logits, afterstate_value }, after)
                };
                let happen = |_: Key, outcome: Tensor, after: Tensor| {
                    let (output, embedding) = step(after, outcome.one_hot(outcomes));
                    let RecurrentFnOutput { reward, discount, prior_logits, value } = output;
                    let action_logits = prior_logits;
                    let output = ChanceRecurrentFnOutput { action_logits, value, reward, discount };
                    (output, embedding)
                };
                search.plan_with_chance(key, root, decide, happen, legal, mode)
            }
        }
    }
}

impl Agent for MuZero {
    type Observation = Tensor;
    type Params = MuZeroNetwork;
    type Memory = FrameMemory;
    type Extras = PlanExtras;

    fn init_memory(&self, _: LaneId) -> FrameMemory {
        no_frames(&self.observation, self.settings.frames)
    }

    fn begin_episode(&self, memory: FrameMemory) -> FrameMemory {
        memory
    }

    fn act(
        &self,
        params: &MuZeroNetwork,
        memory: FrameMemory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<FrameMemory, PlanExtras> {
        let (seen, memory) = stack_frame(memory, input.observation, input.first);
        let (action, extras) =
            PlanExtras::of(&self.search(params, seen, input.legal_actions, mode, key));
        Act { action, memory, extras }
    }

    fn view(
        &self,
        params: &MuZeroNetwork,
        memory: FrameMemory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> View {
        let (seen, _) = stack_frame(memory, input.observation, input.first);
        View::of_search(&self.search(params, seen, input.legal_actions, mode, key))
    }
}

impl LearnFromReplay for MuZero {
    type State =
        Optimized<MuZeroNetwork, <ActorCriticOptimizer as Optimizer>::State<MuZeroNetwork>>;
    type Step = PlannedStep;
    type Start = ();
    type Metrics = MuZeroMetrics;

    fn init(&self, key: Key) -> Self::State {
        let seen = stacked_space(&self.observation, self.settings.frames);
        let network = MuZeroNetwork::init(key, &seen, self.actions, &self.settings);
        Optimized::new(&self.settings.planning.at(scalar(0), self.iterations), network)
    }

    fn params(&self, state: &Self::State) -> MuZeroNetwork {
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
    ) -> (Self::State, Tensor, MuZeroMetrics) {
        let optimizer = self.settings.planning.at(cx.iteration, self.iterations);
        let (state, MuZeroLoss { priorities, metrics, .. }) =
            state.gradient_step(&optimizer, cx, |network| {
                let loss = self.loss(&network, &windows, cx);
                (loss.loss, loss)
            });
        (state, priorities, cx.mean(metrics))
    }
}
