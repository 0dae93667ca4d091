//! Normalisation of observations and rewards to about unit scale, for any agent. Observations of
//! MuJoCo's environments, for example, differ by orders of magnitude.
//!
//! The statistics are the mean and variance of the observations so far, as in Gymnasium's
//! `NormalizeObservation`, and the variance of the running returns so far. The returns are computed
//! as in Gymnasium's vector wrapper `NormalizeReward` (1.4) for environments that reset within the
//! step that ends an episode. A lane's running return is `g_t = discount * g_{t-1} + r_t`, with
//! these rules at the ends of episodes:
//! - A step that terminates an episode has `g_t = r_t` alone, because Gymnasium discounts the
//!   return by 0 at such a step.
//! - A step that cuts an episode off has the `g_t` of any other step.
//! - After either, the next episode begins with a return of 0. Gymnasium's wrapper of a single
//!   environment does not reset the return: it carries into the next episode, after a cut whole and
//!   after an end as the last reward.
//!
//! Gymnasium updates its statistics at each step, before it normalises that step. Here they are
//! updated once per iteration: rewards are divided by a deviation that includes their own rollout,
//! and observations are normalised by the statistics known when they were acted on. Normalised
//! numbers are clipped to [`Normalized::limit`]; Gymnasium leaves clipping to other wrappers.
//!
//! The statistics are published, checkpointed and exported with the parameters, and never changed
//! by acting, so that an evaluation normalises as training does. An iteration normalises
//! observations with the statistics that acted. It returns statistics that include its own rollout
//! on all devices.

use super::steps::weighted;
use super::{
    Agent, Axes, Cx, Input, Learn, Rollout, RolloutOf, RolloutShape, Staleness, Wrapper,
    step_weights,
};
use crate::Number;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// An agent with normalised observations that learns from normalised rewards.
#[derive(Clone, Debug)]
pub struct Normalized<A> {
    /// The inner agent.
    pub agent: A,
    /// The observations before normalisation.
    pub observation: Space,
    /// True to normalise observations to `(x - mean) / std`, element by element.
    pub observations: bool,
    /// The discount of the return; rewards are divided by the return's standard deviation. `None`
    /// leaves rewards as they are.
    pub rewards: Option<Number>,
    /// Greatest magnitude of normalised numbers; greater numbers are clipped.
    pub limit: f64,
}

impl<A> Normalized<A> {
    /// The agent with observations and rewards normalised and clipped to [-10, 10], as is common for PPO in MuJoCo's environments.
    pub fn new(agent: A, observation: Space, discount: impl Into<Number>) -> Self {
        let rewards = Some(discount.into());
        Normalized { agent, observation, observations: true, rewards, limit: 10.0 }
    }
}

/// Running mean and variance of numbers.
#[derive(Tree, Clone, Copy, Debug)]
pub struct Moments {
    /// Number of values. f32 `[]`
    pub count: Tensor,
    /// Mean of the values. f32 `[...]`
    pub mean: Tensor,
    /// Variance of the values. f32 `[...]`
    pub variance: Tensor,
}

/// Number added to variances before their square roots are taken.
const EPSILON: f64 = 1e-8;
/// Count of the initial moments.
const FIRST_COUNT: f64 = 1e-4;

impl Moments {
    /// Initial moments: mean 0 and variance 1, with a count so small that the first numbers
    /// override them.
    pub fn first(shape: &[usize]) -> Moments {
        Moments {
            count: full([], FIRST_COUNT),
            mean: zeros(F32, shape),
            variance: ones(F32, shape),
        }
    }

    /// The moments after more numbers, f32 `[T, N, ...]` on each member of the axes, by the update
    /// of Chan et al. (1979). Reset-only steps of `rollout` do not count.
    #[track_caller]
    pub fn with<M: Tree, X: Tree>(
        self,
        numbers: Tensor,
        rollout: &RolloutOf<Tensor, M, X>,
        axes: &Axes,
    ) -> Moments {
        let Moments { count, mean, variance } = self;
        let more = axes.sum(rollout.steps_that_count());
        let weights = rollout.skipped.map(|skipped| {
            let mut shape = vec![1; numbers.rank()];
            shape[..2].copy_from_slice(&skipped.shape());
            step_weights(!skipped, axes).reshape(shape).broadcast_to(numbers.shape())
        });
        let mean_of = |numbers| axes.mean(weighted(numbers, weights).mean_axis([0, 1]));
        let its_mean = mean_of(numbers);
        let its_variance = mean_of((numbers - its_mean).square());
        let total = count + more;
        let (delta, share) = (its_mean - mean, more / total);
        Moments {
            count: total,
            mean: mean + delta * share,
            variance: variance * (1.0 - share)
                + its_variance * share
                + delta.square() * share * (1.0 - share),
        }
    }
}

/// Parameters of the agent, with the moments that normalise its inputs.
#[derive(Tree, Clone)]
pub struct NormalizedParams<P: Tree> {
    /// The agent's parameters.
    pub nets: P,
    /// Moments of observations, if they are normalised.
    pub observations: Option<Moments>,
    /// Moments of discounted returns, if rewards are normalised.
    pub returns: Option<Moments>,
}

/// The agent's state, with the moments of observations and returns.
#[derive(Tree, Clone)]
pub struct NormalizedState<S: Tree> {
    /// The agent's state.
    pub agent: S,
    /// Moments of observations, if they are normalised.
    pub observations: Option<Moments>,
    /// Moments of discounted returns, if rewards are normalised.
    pub returns: Option<Moments>,
}

/// The agent's store, with the running return of each lane.
#[derive(Tree, Clone)]
pub struct NormalizedStore<X: Tree> {
    /// The agent's store.
    pub store: X,
    /// The discounted return so far of each lane's episode, if rewards are normalised. f32 `[N]`
    pub returns: Option<Tensor>,
}

impl<A: Agent<Observation = Tensor>> Normalized<A> {
    /// The rollout with its observations normalised.
    #[track_caller]
    fn normalized(&self, moments: Option<Moments>, rollout: Rollout<A>) -> Rollout<A> {
        rollout.map_observations(|seen, _| self.normal(moments, seen))
    }

    /// Observations `[.., S]`, normalised.
    #[track_caller]
    fn normal(&self, moments: Option<Moments>, observation: Tensor) -> Tensor {
        match moments {
            None => observation,
            Some(of) => {
                let scaled = (observation.astype(F32) - of.mean) / (of.variance + EPSILON).sqrt();
                scaled.clamp(-self.limit, self.limit)
            }
        }
    }
}

impl<A: Agent<Observation = Tensor>> Wrapper for Normalized<A> {
    type Inner = A;
    type Observation = Tensor;
    type Params = NormalizedParams<A::Params>;

    fn inner(&self) -> &A {
        &self.agent
    }

    fn inner_params<'a>(&self, params: &'a Self::Params) -> &'a A::Params {
        &params.nets
    }

    fn inner_input(&self, params: &Self::Params, input: Input) -> Input {
        input.map_observation(|seen| self.normal(params.observations, seen))
    }
}

impl<A: Learn<Observation = Tensor>> Learn for Normalized<A> {
    type State = NormalizedState<A::State>;
    type Store = NormalizedStore<A::Store>;
    type Metrics = A::Metrics;

    fn init(&self, key: Key) -> Self::State {
        let shape = self.observation.shape();
        NormalizedState {
            agent: self.agent.init(key),
            observations: self.observations.then(|| Moments::first(&shape)),
            returns: self.rewards.map(|_| Moments::first(&[])),
        }
    }

    fn init_store(&self, rollout: &Spec<Rollout<Self>>, axes: &Axes) -> Self::Store {
        let returns = self.rewards.map(|_| zeros(F32, [RolloutShape::of(rollout).lanes]));
        let seen = eval_shape(rollout, |rollout| {
            let first = self.observations.then(|| Moments::first(&self.observation.shape()));
            self.normalized(first, rollout)
        });
        let seen = seen.expect("types alone change");
        NormalizedStore { store: self.agent.init_store(&seen, axes), returns }
    }

    fn params(&self, state: &Self::State) -> Self::Params {
        let &NormalizedState { ref agent, observations, returns } = state;
        NormalizedParams { nets: self.agent.params(agent), observations, returns }
    }

    fn learn(
        &self,
        state: Self::State,
        store: Self::Store,
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, Self::Store, Self::Metrics) {
        let scope = scope("Normalized::learn");
        let seen = state.observations;
        let shown = rollout.input.observation.astype(F32);
        let observations = seen.map(|statistics| statistics.with(shown, &rollout, &cx.axes));
        let (mut reward, mut returns, mut returns_so_far) = (rollout.reward, None, None);
        if let (Some(discount), Some(before), Some(statistics)) =
            (self.rewards, store.returns, state.returns)
        {
            let before = match rollout.taken_over {
                Some(taken_over) => select(taken_over, 0.0, before),
                None => before,
            };
            let steps = (reward, rollout.terminated, rollout.done());
            let (last, all) = scan(before, steps, |so_far, (reward, terminated, done)| {
                let so_far = so_far * select(terminated, 0.0, discount) + reward;
                (select(done, 0.0, so_far), so_far)
            });
            let statistics = statistics.with(all, &rollout, &cx.axes);
            reward =
                (reward / (statistics.variance + EPSILON).sqrt()).clamp(-self.limit, self.limit);
            (returns, returns_so_far) = (Some(statistics), Some(last));
        }
        let rollout = RolloutOf { reward, ..self.normalized(seen, rollout) };
        drop(scope);
        let (agent, store, metrics) = self.agent.learn(state.agent, store.store, rollout, cx);
        let state = NormalizedState { agent, observations, returns };
        (state, NormalizedStore { store, returns: returns_so_far }, metrics)
    }

    fn staleness(&self) -> Staleness {
        self.agent.staleness()
    }
}
