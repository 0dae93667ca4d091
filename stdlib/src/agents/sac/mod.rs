//! Soft actor-critic: Haarnoja et al., "Soft Actor-Critic Algorithms and Applications", 2018. For
//! discrete actions: Christodoulou, "Soft Actor-Critic for Discrete Action Settings", 2019. The
//! action space selects between them.
//!
//! A gradient step updates the critics by equation 5, then the actor by equation 9 with the new
//! critics, then the temperature by equation 18, and moves the target critics. All equations apply
//! to actions scaled to [-1, 1] ([`UnitBox`]), as in the paper.

mod settings;

pub use settings::SacSettings;

use crate::agents::off_policy::{Batch, uniform};
use crate::agents::{OffPolicySettings, TorsoMlp, UnitBox};
use crate::counter::next_of_period;
use crate::distributions::{Categorical, Distribution, TanhNormal};
use crate::learn::of_legal;
use crate::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, LearnFromReplay, Mode, Optimized, Rollout, Step,
    Transition, View, Window, Windows, scan_mean,
};
use crate::losses::{
    discrete_soft_actor_loss, discrete_soft_q_learning, pick, soft_actor_loss, soft_q_learning,
    temperature_loss,
};
use crate::nn::Ensemble;
use crate::optim::{Adam, Flatten, Optimizer, incremental_update};
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// Bounds of the logarithm of the standard deviation before squashing, as in the authors'
/// implementation.
const LOG_STD: [f64; 2] = [-20.0, 2.0];
/// Number of critics; targets and the actor use the least of their values.
const CRITICS: usize = 2;

/// Adam, with all parameters of a network as one vector.
pub type SacOptimizer = Flatten<Adam>;

/// The agent of [`SacSettings`].
#[derive(Clone, Debug)]
pub struct Sac<O = SacOptimizer> {
    /// Space of the observations.
    pub observation: Space,
    /// Actions of a bounded box, or discrete actions.
    pub actions: SacActions,
    /// Optimizers of actor, critics and temperature.
    pub optimizers: SacOptimizers<O>,
    /// Settings of the agent. [`SacSettings::optimizers`] reads the learning rates, not this
    /// struct.
    pub settings: SacSettings,
}

/// Actions of [`Sac`].
#[derive(Clone, Debug)]
pub enum SacActions {
    /// Actions of a box.
    Continuous(UnitBox),
    /// A number of discrete actions.
    Discrete(usize),
}

/// Optimizers of [`Sac`].
#[derive(Clone, Debug)]
pub struct SacOptimizers<O> {
    /// Optimizer of the actor.
    pub actor: O,
    /// Optimizer of the critics.
    pub critics: O,
    /// Optimizer of the logarithm of the temperature.
    pub temperature: O,
}

/// Parameters that [`Sac`] acts with.
#[derive(Tree, Clone)]
pub struct SacParams {
    /// The policy: a mean and the logarithm of a standard deviation for each element of a continuous action, or logits.
    pub actor: TorsoMlp,
    /// Number of gradient steps taken. Before the first, actions are drawn uniformly. i32 `[]`
    pub steps: Tensor,
}

/// State of [`Sac`], with the states `A`, `C` and `T` of its optimizers.
#[derive(Tree, Clone)]
pub struct SacState<A: Tree, C: Tree, T: Tree> {
    /// The policy's network and its optimizer.
    pub actor: Optimized<TorsoMlp, A>,
    /// Soft action values: of one continuous action, or of every discrete action.
    pub critics: Optimized<Ensemble<TorsoMlp>, C>,
    /// The target critics.
    pub targets: Ensemble<TorsoMlp>,
    /// The logarithm of the temperature, f32 `[]`.
    pub temperature: Optimized<Tensor, T>,
    /// Number of gradient steps taken. i32 `[]`
    pub steps: Tensor,
}

/// Metrics of a gradient step: means over its batch.
#[derive(Tree, Clone, Copy)]
pub struct SacMetrics {
    /// Half of the squared errors of the critics, summed over the critics.
    pub critic_loss: Tensor,
    /// The actor's loss.
    pub actor_loss: Tensor,
    /// The entropy of the policy, in nats; for continuous actions, of actions in [-1, 1].
    pub entropy: Tensor,
    /// The temperature.
    pub temperature: Tensor,
    /// The value of the actions taken, averaged over the critics.
    pub value: Tensor,
}

/// The actor's losses of a batch, with the terms of the temperature's loss. f32 `[B]` each
#[derive(Tree, Clone, Copy)]
struct PolicyLosses {
    loss: Tensor,
    /// Negated entropies of the policy; for continuous actions, estimates from one draw.
    log_prob: Tensor,
    target_entropy: Tensor,
}

impl SacActions {
    /// Actions of a space.
    ///
    /// # Errors
    /// Returns a sentence if the actions are neither discrete nor a bounded box.
    pub fn new(space: &Space) -> Result<SacActions, String> {
        Ok(match space {
            Space::Discrete { n, .. } => SacActions::Discrete(*n),
            other => SacActions::Continuous(UnitBox::new(other)?),
        })
    }
}

/// The distribution of a continuous action in [-1, 1].
#[track_caller]
fn gaussian(actor: &TorsoMlp, observation: Tensor) -> TanhNormal {
    let output = actor.apply(observation);
    let [loc, log_std] = [0, 1].map(|half| {
        let size = output.len() / 2;
        output.slice(half * size..(half + 1) * size)
    });
    TanhNormal::new(loc, log_std.clamp(LOG_STD[0], LOG_STD[1]).exp())
}

/// The draw in [-1, 1], f32 `[A]`, made from standard normal numbers, and its log-density, f32
/// `[]`.
#[track_caller]
fn draw(actor: &TorsoMlp, observation: Tensor, noise: Tensor) -> (Tensor, Tensor) {
    let (unit, log_prob) = gaussian(actor, observation).draw_of(noise);
    (unit, log_prob.sum())
}

impl<O: Optimizer> Sac<O> {
    /// Standard normal numbers for `draws` draws of the actions of a batch, f32 `[draws, B, A]`.
    /// Discrete actions read none.
    #[track_caller]
    fn noise(&self, key: Key, draws: usize, batch: usize) -> Tensor {
        let elements = match &self.actions {
            SacActions::Continuous(scaled) => scaled.elements(),
            SacActions::Discrete(_) => 1,
        };
        // A loop. Otherwise XLA would draw each number again for all units of the layers that read
        // it, and compile that for a minute.
        map(0..draws, |draw| key.fold_in(draw).normal([batch, elements]))
    }

    /// Errors of the critics, f32 `[B, 2]`, and the mean values of the actions taken, f32 `[B]`.
    #[track_caller]
    fn errors(
        &self,
        critics: &Ensemble<TorsoMlp>,
        (targets, actor, temperature): (&Ensemble<TorsoMlp>, &TorsoMlp, Tensor),
        batch: &Batch,
        noise: Tensor,
    ) -> (Tensor, Tensor) {
        vmap((batch.transitions.clone(), noise), |(step, noise)| {
            let Transition { observation, action, reward, discount, .. } = step;
            let next = step.next_observation;
            match &self.actions {
                SacActions::Continuous(scaled) => {
                    let unit = scaled.unit(action);
                    let q_tm1 = critics.apply(|critic| critic.value(observation, unit));
                    let (unit_t, log_prob_t) = draw(actor, next, noise);
                    let q_t = targets.apply(|critic| critic.value(next, unit_t));
                    let errors =
                        soft_q_learning(q_tm1, reward, discount, q_t, log_prob_t, temperature);
                    (errors, q_tm1.mean())
                }
                SacActions::Discrete(_) => {
                    let q_tm1 = critics.apply(|critic| critic.apply(observation));
                    let logits_t = of_legal(actor.apply(next), step.next_legal_actions);
                    let q_t = targets.apply(|critic| critic.apply(next));
                    let errors = discrete_soft_q_learning(
                        q_tm1,
                        action,
                        reward,
                        discount,
                        q_t,
                        logits_t,
                        temperature,
                    );
                    (errors, pick(q_tm1, action.broadcast_to([CRITICS])).mean())
                }
            }
        })
    }

    #[track_caller]
    fn policy_losses(
        &self,
        actor: &TorsoMlp,
        (critics, temperature): (&Ensemble<TorsoMlp>, Tensor),
        batch: &Batch,
        noise: Tensor,
    ) -> PolicyLosses {
        let &SacSettings { target_entropy, discrete_target_entropy, .. } = &self.settings;
        let Transition { observation, legal_actions, .. } = batch.transitions;
        let states = (observation, legal_actions, noise);
        vmap(states, |(observation, legal, noise)| match &self.actions {
            SacActions::Continuous(_) => {
                let (unit, log_prob) = draw(actor, observation, noise);
                let q = critics.apply(|critic| critic.value(observation, unit));
                let loss = soft_actor_loss(log_prob, q, temperature);
                let elements = full([], unit.len() as f64);
                PolicyLosses { loss, log_prob, target_entropy: target_entropy * elements }
            }
            SacActions::Discrete(n) => {
                let logits = of_legal(actor.apply(observation), legal);
                let q = critics.apply(|critic| critic.apply(observation));
                let loss = discrete_soft_actor_loss(logits, q, temperature);
                let log_prob = -Categorical::new(logits).entropy();
                let choices = legal.map_or(full([], *n as f64), |legal| legal.astype(F32).sum());
                let target_entropy = discrete_target_entropy * choices.log();
                PolicyLosses { loss, log_prob, target_entropy }
            }
        })
    }

    /// A gradient step of the actor and of the temperature, and metrics: the actor's loss and the
    /// entropy.
    #[track_caller]
    fn policy_step(
        &self,
        (actor, temperature): Policy<O>,
        critics: &Ensemble<TorsoMlp>,
        batch: &Batch,
        noise: Tensor,
        axes: &Axes,
    ) -> (Policy<O>, [Tensor; 2]) {
        let now = temperature.params.exp();
        let (actor, losses) = actor.gradient_step(&self.optimizers.actor, axes, |actor| {
            let losses = self.policy_losses(&actor, (critics, now), batch, noise);
            (batch.mean(losses.loss), stop_gradient(losses))
        });
        let temperature = match self.settings.learn_temperature {
            false => temperature,
            true => {
                let optimizer = &self.optimizers.temperature;
                let step = |log_temperature| {
                    let terms = (losses.log_prob, losses.target_entropy);
                    let losses = vmap(terms, |(log_prob, target)| {
                        temperature_loss(log_temperature, log_prob, target)
                    });
                    (batch.mean(losses), ())
                };
                temperature.gradient_step(optimizer, axes, step).0
            }
        };
        ((actor, temperature), [batch.mean(losses.loss), -batch.mean(losses.log_prob)])
    }
}

/// Actor and temperature with the states of their optimizers.
type Policy<O> = (
    Optimized<TorsoMlp, <O as Optimizer>::State<TorsoMlp>>,
    Optimized<Tensor, <O as Optimizer>::State<Tensor>>,
);

/// The state of a [`Sac`] with optimizers `O`.
type StateOf<O> = SacState<
    <O as Optimizer>::State<TorsoMlp>,
    <O as Optimizer>::State<Ensemble<TorsoMlp>>,
    <O as Optimizer>::State<Tensor>,
>;

impl<O: Optimizer> Agent for Sac<O> {
    type Observation = Tensor;
    type Params = SacParams;
    type Memory = ();
    type Extras = ();

    fn init_memory(&self, _lane: LaneId) {}

    fn begin_episode(&self, (): ()) {}

    /// Draws an action, uniformly before the first gradient step. A greedy action is the mean
    /// before squashing, or the most probable action.
    fn act(&self, params: &SacParams, (): (), input: Input, mode: Mode, key: Key) -> Act<(), ()> {
        let SacParams { actor, steps } = params;
        let (observation, begun) = (input.observation, steps.gt(0));
        let action = match (&self.actions, mode) {
            (SacActions::Continuous(scaled), Mode::Greedy) => {
                scaled.action(gaussian(actor, observation).mode())
            }
            (SacActions::Continuous(scaled), Mode::Explore) => {
                let policy = gaussian(actor, observation);
                let noise = key.normal(policy.normal.loc.shape());
                scaled.action(select(begun, policy.draw_of(noise).0, uniform(noise)))
            }
            (SacActions::Discrete(_), mode) => {
                let logits = actor.apply(observation);
                match mode {
                    Mode::Greedy => of_legal(logits, input.legal_actions).argmax(-1),
                    Mode::Explore => {
                        let logits = select(begun, logits, 0.0);
                        key.categorical(of_legal(logits, input.legal_actions))
                    }
                }
            }
        };
        Act { action, memory: (), extras: () }
    }

    fn view(&self, params: &SacParams, (): (), input: Input, _: Mode, _: Key) -> View {
        match &self.actions {
            SacActions::Continuous(_) => View::default(),
            SacActions::Discrete(_) => {
                View::of_logits(params.actor.apply(input.observation), input.legal_actions)
            }
        }
    }
}

impl<O: Optimizer> LearnFromReplay for Sac<O> {
    type State = StateOf<O>;
    type Step = Step;
    type Start = ();
    type Metrics = SacMetrics;

    fn init(&self, key: Key) -> StateOf<O> {
        let networks = &self.settings.off_policy.networks;
        let (seen, results) = match &self.actions {
            SacActions::Continuous(scaled) => (scaled.elements(), 1),
            SacActions::Discrete(n) => (0, *n),
        };
        let outputs = if seen > 0 { 2 * seen } else { results };
        let [actor_key, critic_key] = key.split_into();
        let actor = TorsoMlp::init(actor_key, &self.observation, 0, outputs, networks);
        let critics = Ensemble::init(critic_key, CRITICS, |key| {
            TorsoMlp::init(key, &self.observation, seen, results, networks)
        });
        let SacOptimizers { actor: of_actor, critics: of_critics, temperature } = &self.optimizers;
        let start = self.settings.temperature.into_tensor().astype(F32).log();
        SacState {
            actor: Optimized::new(of_actor, actor),
            critics: Optimized::new(of_critics, critics.clone()),
            targets: critics,
            temperature: Optimized::new(temperature, start),
            steps: scalar(0),
        }
    }

    fn params(&self, state: &StateOf<O>) -> SacParams {
        SacParams { actor: state.actor.params.clone(), steps: state.steps }
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
    ) -> (StateOf<O>, Tensor, SacMetrics) {
        let _scope = scope("Sac::gradient_step");
        let SacState { actor, critics, targets, temperature, steps } = state;
        let policy_period = self.settings.policy_period;
        let &OffPolicySettings { polyak, n_step, discount, .. } = &self.settings.off_policy;
        let (batch, axes) = (&Batch::of(&windows, n_step, discount), &cx.axes);
        let noise = self.noise(cx.key.fold_in(axes.index()), 1 + policy_period, batch.len());
        let now = temperature.params.exp();
        let (critics, learnt) =
            batch.critic_step(critics, &self.optimizers.critics, axes, |critics| {
                self.errors(critics, (&targets, &actor.params, now), batch, noise.index(0))
            });
        let steps = next_of_period(steps, policy_period);
        let policy = (actor, temperature);
        let (policy, [actor_loss, entropy]) = if policy_period <= 1 {
            self.policy_step(policy, &critics.params, batch, noise.index(1), axes)
        } else {
            // Times the period, so that means over gradient steps equal means over the policy's
            // gradient steps.
            let times = policy_period as f64;
            let stays = policy.clone();
            cond(
                steps.rem(policy_period as i32).eq(0),
                || {
                    let (policy, metrics) = scan_mean(policy, policy_period, |policy, turn| {
                        let noise = noise.at(turn + 1);
                        self.policy_step(policy, &critics.params, batch, noise, axes)
                    });
                    (policy, metrics.map(|metric| metric * times))
                },
                || (stays, [scalar(0.0); 2]),
            )
        };
        let (actor, temperature) = policy;
        let targets = incremental_update(&critics.params, &targets, polyak);
        let metrics = SacMetrics {
            critic_loss: learnt.loss,
            actor_loss,
            entropy,
            temperature: temperature.params.exp(),
            value: learnt.value,
        };
        let state = SacState { actor, critics, targets, temperature, steps };
        (state, learnt.priorities, axes.mean(metrics))
    }
}
