//! Twin delayed deep deterministic policy gradients: Fujimoto, van Hoof and Meger, "Addressing
//! Function Approximation Error in Actor-Critic Methods", 2018 (TD3). With [`Td3Settings::twin`]
//! and target noise off, and a period of 1, it is DDPG: Lillicrap et al., "Continuous control with
//! deep reinforcement learning", 2016.
//!
//! A gradient step updates the critics by algorithm 1 of the paper. Every
//! [`Td3Settings::policy_period`]-th gradient step also updates the actor, and moves the targets of
//! both. Actions are scaled to [-1, 1] ([`UnitBox`]).

use crate::Number;
use crate::agents::off_policy::{Batch, CriticStep, uniform};
use crate::agents::{OffPolicySettings, TorsoMlp, UnitBox};
use crate::counter::next_of_period;
use crate::learn::{
    Act, Agent, AgentSettings, AnyAgent, Cx, Input, LaneId, LearnFromReplay, Mode, Optimized,
    ReplaySettings, Rollout, RolloutShape, Step, Task, Transition, Window, Windows,
};
use crate::losses::{clipped_double_q_learning, target_policy_smoothing};
use crate::nn::Ensemble;
use crate::optim::{Adam, Flatten, Optimizer, incremental_update};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TD3 (Fujimoto et al. 2018), for bounded continuous actions. The defaults equal those in the
/// authors' implementation, which differs from the paper's appendix in networks, batches and
/// learning rates. With `twin = false`, `policy_period = 1` and `target_noise = 0` it is DDPG
/// (Lillicrap et al. 2016).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Td3Settings {
    /// Settings that TD3 shares with SAC. The targets are updated whenever the actor takes a
    /// gradient step.
    #[serde(flatten)]
    pub off_policy: OffPolicySettings,
    /// If true, there are two critics, and targets use the lesser of their values.
    pub twin: bool,
    /// Period of the actor's gradient steps and of the targets' updates, in gradient steps of the
    /// critics.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub policy_period: usize,
    /// Standard deviation of the noise in target actions, for actions in [-1, 1].
    #[schemars(range(min = 0.0))]
    pub target_noise: Number,
    /// Greatest magnitude of the noise in target actions.
    #[schemars(range(min = 0.0))]
    pub target_noise_clip: Number,
    /// Standard deviation of the exploration noise, for actions in [-1, 1].
    #[schemars(range(min = 0.0))]
    pub exploration_noise: Number,
}

impl Default for Td3Settings {
    fn default() -> Self {
        let shared = OffPolicySettings::default();
        Td3Settings {
            off_policy: OffPolicySettings {
                replay: ReplaySettings { minimum: 25_000, ..shared.replay },
                ..OffPolicySettings::default()
            },
            twin: true,
            policy_period: 2,
            target_noise: 0.2.into(),
            target_noise_clip: 0.5.into(),
            exploration_noise: 0.1.into(),
        }
    }
}

/// The agent of [`Td3Settings`].
#[derive(Clone, Debug)]
pub struct Td3<O = Flatten<Adam>> {
    /// Space of the observations.
    pub observation: Space,
    /// Actions of a bounded box.
    pub actions: UnitBox,
    /// Optimizer of the actor.
    pub actor_optimizer: O,
    /// Optimizer of the critics.
    pub critic_optimizer: O,
    /// Settings of the agent. Learning rates are not read here.
    pub settings: Td3Settings,
}

impl AgentSettings for Td3Settings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let [actor_optimizer, critic_optimizer] = self.off_policy.optimizers();
        let agent = Td3 {
            observation: task.observation.clone(),
            actions: UnitBox::new(&task.action)
                .map_err(|problem| format!("agent.kind = td3: {problem}"))?,
            actor_optimizer,
            critic_optimizer,
            settings: self.clone(),
        };
        self.off_policy.replayed(agent, task)
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.off_policy.check_rollout(rollout, devices)
    }
}

/// Parameters that [`Td3`] acts with.
#[derive(Tree, Clone)]
pub struct Td3Params {
    /// The policy: the action in [-1, 1] before tanh, f32 `[A]`.
    pub actor: TorsoMlp,
    /// Number of gradient steps taken. Before the first, actions are drawn uniformly. i32 `[]`
    pub steps: Tensor,
}

/// An actor and critics.
#[derive(Tree, Clone)]
pub struct Td3Networks {
    /// The policy: observation to action.
    pub actor: TorsoMlp,
    /// Values of actions.
    pub critics: Ensemble<TorsoMlp>,
}

/// State of [`Td3`], with the states `A` and `C` of its optimizers.
#[derive(Tree, Clone)]
pub struct Td3State<A: Tree, C: Tree> {
    /// The policy's network and its optimizer.
    pub actor: Optimized<TorsoMlp, A>,
    /// Values of actions.
    pub critics: Optimized<Ensemble<TorsoMlp>, C>,
    /// The target networks.
    pub targets: Td3Networks,
    /// Number of gradient steps taken. i32 `[]`
    pub steps: Tensor,
}

/// Metrics of a gradient step: means over its batch.
#[derive(Tree, Clone, Copy)]
pub struct Td3Metrics {
    /// Half of the squared errors of the critics, summed over the critics.
    pub critic_loss: Tensor,
    /// The actor's loss: minus the first critic's value of its actions.
    pub actor_loss: Tensor,
    /// The value of the actions taken, averaged over the critics.
    pub value: Tensor,
}

/// The policy's action in [-1, 1]. f32 `[A]`
#[track_caller]
fn policy(actor: &TorsoMlp, observation: Tensor) -> Tensor {
    actor.apply(observation).tanh()
}

/// The state of a [`Td3`] with optimizers `O`.
type StateOf<O> =
    Td3State<<O as Optimizer>::State<TorsoMlp>, <O as Optimizer>::State<Ensemble<TorsoMlp>>>;

impl<O: Optimizer> Td3<O> {
    /// Errors of the critics, f32 `[B, K]`, and the mean values of the actions taken, f32 `[B]`.
    #[track_caller]
    fn errors(
        &self,
        critics: &Ensemble<TorsoMlp>,
        targets: &Td3Networks,
        batch: &Batch,
        key: Key,
    ) -> (Tensor, Tensor) {
        let &Td3Settings { target_noise, target_noise_clip, .. } = &self.settings;
        let next = batch.transitions.next_observation;
        let unit_t = vmap(next, |next| policy(&targets.actor, next));
        let unit_t = match target_noise.is(0.0) {
            true => unit_t,
            false => {
                target_policy_smoothing(key, unit_t, target_noise, target_noise_clip, -1.0, 1.0)
            }
        };
        vmap((batch.transitions.clone(), unit_t), |(step, unit_t)| {
            let Transition { observation, action, reward, discount, .. } = step;
            let next = step.next_observation;
            let unit = self.actions.unit(action);
            let q_tm1 = critics.apply(|critic| critic.value(observation, unit));
            let q_t = targets.critics.apply(|critic| critic.value(next, unit_t));
            (clipped_double_q_learning(q_tm1, reward, discount, q_t), q_tm1.mean())
        })
    }
}

impl<O: Optimizer> Agent for Td3<O> {
    type Observation = Tensor;
    type Params = Td3Params;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _lane: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    /// Returns the policy's action, with noise while exploring. Before the first gradient step, the
    /// action is drawn uniformly.
    fn act(&self, params: &Td3Params, (): (), input: Input, mode: Mode, key: Key) -> Act<(), ()> {
        let Td3Params { actor, steps } = params;
        let best = policy(actor, input.observation);
        let unit = match mode {
            Mode::Greedy => best,
            Mode::Explore => {
                let noise = key.normal(best.shape());
                let explored = (best + self.settings.exploration_noise * noise).clamp(-1.0, 1.0);
                select(steps.gt(0), explored, uniform(noise))
            }
        };
        Act { action: self.actions.action(unit), memory: (), extras: () }
    }
}

impl<O: Optimizer> LearnFromReplay for Td3<O> {
    type State = StateOf<O>;
    type Step = Step;
    type Start = ();
    type Metrics = Td3Metrics;

    fn init(&self, key: Key) -> StateOf<O> {
        let (networks, actions) = (&self.settings.off_policy.networks, self.actions.elements());
        let [actor_key, critic_key] = key.split_into();
        let actor = TorsoMlp::init(actor_key, &self.observation, 0, actions, networks);
        let count = if self.settings.twin { 2 } else { 1 };
        let critics = Ensemble::init(critic_key, count, |key| {
            TorsoMlp::init(key, &self.observation, actions, 1, networks)
        });
        Td3State {
            actor: Optimized::new(&self.actor_optimizer, actor.clone()),
            critics: Optimized::new(&self.critic_optimizer, critics.clone()),
            targets: Td3Networks { actor, critics },
            steps: scalar(0),
        }
    }

    fn params(&self, state: &StateOf<O>) -> Td3Params {
        Td3Params { actor: state.actor.params.clone(), steps: state.steps }
    }

    fn keep(&self, rollout: Rollout<Self>) -> (Step, ()) {
        (Step::of(rollout), ())
    }

    fn window(&self, steps: &Spec<Step>) -> Window {
        Step::window(steps, self.settings.off_policy.n_step)
    }

    fn gradient_step(
        &self,
        state: StateOf<O>,
        windows: Windows<Step>,
        cx: &Cx,
    ) -> (StateOf<O>, Tensor, Td3Metrics) {
        let _scope = scope("Td3::gradient_step");
        let Td3State { actor, critics, targets, steps } = state;
        let policy_period = self.settings.policy_period;
        let &OffPolicySettings { polyak, n_step, discount, .. } = &self.settings.off_policy;
        let (batch, axes) = (&Batch::of(&windows, n_step, discount), &cx.axes);
        let key = cx.key.fold_in(axes.index());
        let (critics, learnt) =
            batch.critic_step(critics, &self.critic_optimizer, axes, |critics| {
                self.errors(critics, &targets, batch, key)
            });
        let steps = next_of_period(steps, policy_period);
        let stays = (actor.clone(), targets.clone());
        let turn = || {
            let (actor, loss) = actor.gradient_step(&self.actor_optimizer, axes, |actor| {
                let loss = -batch.mean(vmap(batch.transitions.observation, |observation| {
                    critics.params.members[0].value(observation, policy(&actor, observation))
                }));
                (loss, stop_gradient(loss))
            });
            let now = Td3Networks { actor: actor.params.clone(), critics: critics.params.clone() };
            let targets = incremental_update(&now, &targets, polyak);
            // Times the period, so that the mean over gradient steps equals the mean over the
            // actor's gradient steps.
            ((actor, targets), loss * policy_period as f64)
        };
        let ((actor, targets), actor_loss) = if policy_period <= 1 {
            turn()
        } else {
            cond(steps.rem(policy_period as i32).eq(0), turn, || (stays, scalar(0.0)))
        };
        let CriticStep { loss: critic_loss, value, priorities } = learnt;
        let metrics = Td3Metrics { critic_loss, actor_loss, value };
        let state = Td3State { actor, critics, targets, steps };
        (state, priorities, axes.mean(metrics))
    }
}
