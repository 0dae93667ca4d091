//! Acting and learning of actor-critics: an actor-critic is defined by its loss and by the extras
//! that its loss reads.

use super::{ActorCriticAgent, ActorCriticSettings};
use crate::learn::{
    Act, Agent, Axes, Cx, Input, Iterated, LaneId, Learn, Mode, Optimized, Rollout, RolloutOf,
    Staleness, View, scan_mean,
};
use crate::net::{ActorCritic, Memory, Policy};
use crate::optim::Optimizer;
use podracer_dsl::prelude::*;

/// A step of acting, with the values that extras can be computed from.
pub struct Acted<'a> {
    /// The parameters.
    pub params: &'a ActorCritic,
    /// The features of the input, and of the memory if there is a core. f32 `[F]`
    pub features: Tensor,
    /// The policy for the features.
    pub policy: &'a Policy,
    /// The chosen action. No gradient flows into it.
    pub action: Tensor,
    /// The memory after the step.
    pub memory: Memory,
}

/// A rollout of an [`ActorCriticAgent`] with extras `X`.
pub type ActorCriticRollout<X> = RolloutOf<Tensor, Memory, X>;

/// State of an [`ActorCriticAgent`] with the optimizer `O`.
pub type ActorCriticState<O> = Optimized<ActorCritic, <O as Optimizer>::State<ActorCritic>>;

/// Settings of an actor-critic that takes one gradient step of a loss in each iteration. With such
/// settings an [`ActorCriticAgent`] acts and learns.
///
/// ```
/// use podracer_dsl::prelude::*;
/// use podracer_envs::CartPole;
/// use podracer_rl::agents::*;
/// use podracer_rl::learn::*;
/// use podracer_rl::net::*;
/// use podracer_rl::anakin::AgentLoop;
/// use podracer_rl::nn::Initializer;
/// use podracer_envs::Environment;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// /// Actor-critic with one-step temporal differences (Sutton and Barto 2018, section 13.5).
/// #[derive(Clone, Default, Deserialize, JsonSchema, Serialize)]
/// #[serde(default)]
/// struct OneStepSettings {
///     /// The optimizer of all parameters.
///     #[serde(flatten)]
///     optimizer: AdamSettings,
///     /// The networks of policy and value.
///     #[serde(flatten)]
///     networks: Networks,
/// }
///
/// impl AgentSettings for OneStepSettings {
///     fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
///         Ok(AnyAgent::new(ActorCriticAgent::for_task(self, task)?))
///     }
/// }
///
/// impl ActorCriticSettings for OneStepSettings {
///     type Optimizer = AdamSettings;
///
///     fn optimizer(&self) -> &AdamSettings {
///         &self.optimizer
///     }
///
///     fn shape(&self) -> ActorCriticShape {
///         self.networks.shape(Initializer::lecun_normal(), Core::default(), false)
///     }
/// }
///
/// impl ActorCriticLoss for OneStepSettings {
///     type Extras = ();
///     type Metrics = Tensor;
///
///     fn extras(&self, _: &Acted) {}
///
///     fn loss(&self, params: ActorCritic, rollout: &ActorCriticRollout<()>, _: &Axes) -> (Tensor, Tensor) {
///         let terms = of_each_lane(&params, rollout, |steps, Evaluated { log_prob, v_tm1, v_t, .. }, ()| {
///             let error = steps.reward + steps.discounts(0.99.into()) * v_t - v_tm1;
///             error.square() - log_prob * stop_gradient(error)
///         });
///         (terms.mean(), terms.mean())
///     }
///
///     fn staleness(&self) -> Staleness {
///         Staleness::Refused
///     }
/// }
///
/// let environment = CartPole::default();
/// let agent = ActorCriticAgent::<OneStepSettings, _>::new(environment.observation_space(), environment.action_space());
/// let agent_loop = AgentLoop::new(environment, agent, 8, 16);
/// let state = trace(key(), |key| agent_loop.init(key))?.results().clone();
/// trace((&state,), |(state,)| agent_loop.iterate(state))?;
/// # Ok::<(), TraceErrors>(())
/// ```
pub trait ActorCriticLoss: ActorCriticSettings {
    /// Data of a step of acting that the loss reads.
    type Extras: Tree;
    /// Scalars of an iteration, f32 `[]`.
    type Metrics: Tree;

    /// The extras of a step.
    fn extras(&self, acted: &Acted) -> Self::Extras;

    /// The loss of a rollout, f32 `[]`, a mean over this device's data, and the metrics.
    fn loss(
        &self,
        params: ActorCritic,
        rollout: &ActorCriticRollout<Self::Extras>,
        axes: &Axes,
    ) -> (Tensor, Self::Metrics);

    /// [`Learn::staleness`].
    fn staleness(&self) -> Staleness;
}

/// Settings of an actor-critic with a learning rule of its own. Settings with an
/// [`ActorCriticLoss`] implement this trait too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no way to learn",
    note = "implement `ActorCriticLoss` for one gradient step of a loss in each iteration, or else `LearnActorCritic`"
)]
pub trait LearnActorCritic: ActorCriticSettings {
    /// Data of a step of acting that learning reads.
    type Extras: Tree;
    /// Scalars of an iteration, f32 `[]`.
    type Metrics: Tree;

    /// The extras of a step.
    fn extras(&self, acted: &Acted) -> Self::Extras;

    /// Learns from a rollout.
    fn learn<O: Optimizer>(
        agent: &ActorCriticAgent<Self, O>,
        state: ActorCriticState<O>,
        rollout: ActorCriticRollout<Self::Extras>,
        cx: &Cx,
    ) -> (ActorCriticState<O>, Self::Metrics);

    /// [`Learn::iterate`].
    fn iterate<O: Optimizer, W: Tree>(
        agent: &ActorCriticAgent<Self, O>,
        state: ActorCriticState<O>,
        act: impl FnOnce(&ActorCritic) -> (ActorCriticRollout<Self::Extras>, W),
        cx: &Cx,
    ) -> (ActorCriticState<O>, Self::Metrics, W) {
        let (rollout, with) = act(&state.params);
        let (state, metrics) = Self::learn(agent, state, rollout, cx);
        (state, metrics, with)
    }

    /// [`Learn::staleness`].
    fn staleness(&self) -> Staleness;
}

impl<S: ActorCriticLoss> LearnActorCritic for S {
    type Extras = S::Extras;
    type Metrics = S::Metrics;

    fn extras(&self, acted: &Acted) -> S::Extras {
        ActorCriticLoss::extras(self, acted)
    }

    fn learn<O: Optimizer>(
        agent: &ActorCriticAgent<S, O>,
        state: ActorCriticState<O>,
        rollout: ActorCriticRollout<S::Extras>,
        cx: &Cx,
    ) -> (ActorCriticState<O>, S::Metrics) {
        let loss = |params| agent.settings.loss(params, &rollout, cx);
        scan_mean(state, 1, |state, _| state.gradient_step(&agent.optimizer, cx, loss))
    }

    fn staleness(&self) -> Staleness {
        ActorCriticLoss::staleness(self)
    }
}

impl<S: LearnActorCritic, O: Optimizer> Agent for ActorCriticAgent<S, O> {
    type Observation = Tensor;
    type Params = ActorCritic;
    type Memory = Memory;
    type Extras = S::Extras;

    fn init_memory(&self, _: LaneId) -> Memory {
        self.no_memory()
    }

    fn begin_episode(&self, _: Memory) -> Memory {
        self.no_memory()
    }

    fn act(
        &self,
        params: &ActorCritic,
        memory: Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<Memory, S::Extras> {
        let (memory, features) = params.see(memory, &input);
        let policy = params.policy(features, input.legal_actions);
        // The score-function estimator: a gradient goes through the probability of the action, not through the draw.
        let action = stop_gradient(policy.choose(mode, key));
        let acted = Acted { params, features, policy: &policy, action, memory };
        let extras = self.settings.extras(&acted);
        Act { action, memory, extras }
    }

    fn view(&self, params: &ActorCritic, memory: Memory, input: Input, _: Mode, _: Key) -> View {
        let (_, features) = params.see(memory, &input);
        let probabilities = match params.policy(features, input.legal_actions) {
            Policy::Discrete(policy) => Some(policy.probs()),
            Policy::MultiDiscrete(_) | Policy::Gaussian(_) | Policy::Parts(..) => None,
        };
        View { value: Some(params.value(features)), probabilities, ..View::default() }
    }
}

impl<S: LearnActorCritic, O: Optimizer> Learn for ActorCriticAgent<S, O> {
    type State = ActorCriticState<O>;
    type Store = ();
    type Metrics = S::Metrics;

    fn init(&self, key: Key) -> Self::State {
        self.init_state(key)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> ActorCritic {
        state.params.clone()
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), S::Metrics) {
        let (state, metrics) = S::learn(self, state, rollout, &cx);
        (state, (), metrics)
    }

    fn iterate<W: Tree>(
        &self,
        state: Self::State,
        (): (),
        act: impl FnOnce(&ActorCritic) -> (Rollout<Self>, W),
        cx: Cx,
    ) -> Iterated<Self, W> {
        let (state, metrics, with) = S::iterate(self, state, act, &cx);
        (state, (), metrics, with)
    }

    fn staleness(&self) -> Staleness {
        self.settings.staleness()
    }
}
