//! Environments of the DSL in a program that steps them on the host, for loops with environments on
//! the host.

use crate::lanes::{lane_keys, run_keys};
use crate::sebulba::{next_key, step_key};
use podracer_dsl::prelude::*;
use podracer_envs::host::{HostSpec, StepOutcome};
use podracer_envs::{AutoReset, Environment};

/// A batch of environments of the DSL, for a program that steps them on the host.
#[derive(Clone)]
pub struct HostLoop<E: Environment<Observation = Tensor>> {
    environment: AutoReset<E>,
    environments: usize,
    unroll: usize,
}

/// The environments of a [`HostLoop`].
#[derive(Tree, Clone)]
pub struct HostLanes<S: Tree> {
    /// Their states. `[N, ...]`
    pub environment: S,
    /// The root keys of the present rollout, as words. u32 `[N, 2]`
    pub keys: Tensor,
    /// Number of the next step in the rollout, from 0. i32 `[]`
    pub time: Tensor,
}

impl<E: Environment<Observation = Tensor>> HostLoop<E> {
    /// A batch of `environments` environments. They draw the same keys as Anakin does for rollouts
    /// of `unroll` steps.
    pub fn new(environment: E, environments: usize, unroll: usize) -> Self {
        HostLoop { environment: environment.auto_reset(), environments, unroll }
    }

    /// Number and spaces of the environments.
    #[track_caller]
    pub fn spec(&self) -> HostSpec {
        // Compiling the environment's functions reports the environment's mistakes.
        let tells = eval_shape((key(),), |(key,)| {
            let state = self.environment.initial_state(key);
            (self.environment.legal_actions(&state), self.environment.success(&state))
        });
        let (masks, succeeds) = tells
            .map_or((false, false), |Spec((masks, success))| (masks.is_some(), success.is_some()));
        HostSpec {
            truncates: self.environment.truncates(),
            masks,
            succeeds,
            ..HostSpec::new(
                self.environments,
                self.environment.observation_space(),
                self.environment.action_space(),
            )
        }
    }

    /// The environments, their first observations and masks of legal actions. They follow from the
    /// run's key and from the global index of the first environment, i32 `[]`.
    /// first. i32 `[]`
    #[track_caller]
    pub fn begin(&self, key: Key, first: Tensor) -> (HostLanes<E::State>, Tensor, Option<Tensor>) {
        let [_, _, lanes_key] = run_keys(key);
        let indices = arange(self.environments) + first;
        let (environment, keys) = vmap((indices, whole(lanes_key)), |(index, key)| {
            let [environment_key, key] = lane_keys(key, index);
            (self.environment.initial_state(environment_key), key.words())
        });
        let observation = vmap(environment.clone(), |state| self.environment.observe(state));
        let legal_actions =
            vmap(environment.clone(), |state| self.environment.legal_actions(&state));
        (HostLanes { environment, keys, time: scalar(0) }, observation, legal_actions)
    }

    /// Steps all environments once. The last result is the success of each environment's state
    /// before any reset, f32 `[N]`, if the environment has [`Environment::success`].
    /// has [`Environment::success`].
    #[track_caller]
    pub fn step(
        &self,
        lanes: HostLanes<E::State>,
        action: Tensor,
    ) -> (HostLanes<E::State>, StepOutcome, Option<Tensor>) {
        let HostLanes { environment, keys, time } = lanes;
        let last = time.eq(self.unroll as i32 - 1);
        let lanes = (environment, Keys::from_words(keys), action);
        let (environment, keys, outcome, success) = vmap(lanes, |(state, key, action)| {
            let [step_key, reset_key] = [1, 2].map(|which| step_key(&key, time, which));
            let (state, timestep, success) =
                self.environment.step_with_success(state, action, step_key, reset_key);
            let shown = self.environment.truncates().then_some(timestep.observation);
            let outcome = StepOutcome {
                observation: self.environment.observe(state.clone()),
                reward: timestep.reward,
                terminated: timestep.terminated,
                truncated: timestep.truncated,
                next_observation: shown,
                legal_actions: self.environment.legal_actions(&state),
            };
            let keys = select(last, next_key(&key).words(), key.words());
            (state, keys, outcome, success)
        });
        let time = select(last, 0, time + 1);
        (HostLanes { environment, keys, time }, outcome, success)
    }
}
