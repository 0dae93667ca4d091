//! An actor-critic along one lane's rollout, with the memories of acting. Agents use it that take
//! one gradient step from whole trajectories, such as [`Impala`](crate::agents::Impala) and
//! [`A2c`](crate::agents::A2c).

use crate::Number;
use crate::learn::{Input, RolloutOf};
use crate::net::{ActorCritic, Memory};
use podracer_dsl::prelude::*;

/// The steps of one lane's rollout, `[T, ..]`, with features in place of inputs.
#[derive(Tree, Clone)]
pub struct LaneSteps {
    features: Tensor,
    legal_actions: Option<Tensor>,
    action: Tensor,
    /// Rewards for the actions.
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state. bool `[T]`
    pub terminated: Tensor,
    truncated: Tensor,
    /// Features of the input after each step, where every episode is taken to continue; `None` if
    /// the environment never truncates.
    features_after: Option<Tensor>,
}

/// Policy and value at each step of one lane's rollout, f32 `[T]`.
#[derive(Tree, Clone, Copy)]
pub struct Evaluated {
    /// Logarithm of the probability of the action taken.
    pub log_prob: Tensor,
    /// Entropy of the policy, in nats.
    pub entropy: Tensor,
    /// Value of the step's input.
    pub v_tm1: Tensor,
    /// Value after the step, without a gradient. If the episode was cut off, it is the value of the
    /// episode's last observation.
    pub v_t: Tensor,
}

/// Applies `f` to each lane of a rollout: to its steps, to policy and value at each step, and to
/// the extras. Results `[N, ..]`.
#[track_caller]
pub fn of_each_lane<X: Tree, R: Tree>(
    params: &ActorCritic,
    rollout: &RolloutOf<Tensor, Memory, X>,
    f: impl Fn(&LaneSteps, Evaluated, X) -> R,
) -> R {
    let see = |inputs: Input| vmap(inputs, |input| params.features(&input));
    let see_all = |inputs: Input| vmap(inputs, see);
    let steps = LaneSteps {
        features: see_all(rollout.input.clone()),
        legal_actions: rollout.input.legal_actions,
        action: rollout.action,
        reward: rollout.reward,
        terminated: rollout.terminated,
        truncated: rollout.truncated,
        features_after: rollout.inputs_after().map(see_all),
    };
    let last = see(rollout.next_input.clone());
    let lanes = (rollout.memory, axis((steps, rollout.extras.clone()), 1), last);
    vmap(lanes, |(memory, (steps, extras), last)| {
        f(&steps, steps.evaluate(params, memory, last), extras)
    })
}

impl LaneSteps {
    /// True if the episode is over after the step. bool `[T]`
    #[track_caller]
    pub fn done(&self) -> Tensor {
        self.terminated | self.truncated
    }

    /// Policy and value at each step, with the memories of acting. `last` has the features of the
    /// input after the last step.
    #[track_caller]
    fn evaluate(&self, params: &ActorCritic, memory: Memory, last: Tensor) -> Evaluated {
        let done = self.done();
        // If the first step begins an episode, acting has already reset the memory.
        let begins = concatenate(&[scalar(false).expand_dims(0), done.slice(..-1)], 0);
        let (memories, features) = params.remember_all(memory, self.features, begins);
        let acted = (features, self.legal_actions, self.action);
        let (log_prob, entropy, v_tm1) = vmap(acted, |(features, legal, action)| {
            let policy = params.policy(features, legal);
            (policy.log_prob(action), policy.entropy(), params.value(features))
        });
        let value_after = |(memory, features)| params.value(params.remember(memory, features).1);
        // The value after the last step counts if no episode ended at that step, so the memory is
        // kept.
        let memory = tree_map(&memories, |leaf| leaf.index(-1));
        let v_last = value_after((memory, last)).expand_dims(0);
        let v_next = concatenate(&[v_tm1.slice(1..), v_last], 0);
        let v_t = match self.features_after {
            Some(after) => select(self.truncated, vmap((memories, after), value_after), v_next),
            None => v_next,
        };
        Evaluated { log_prob, entropy, v_tm1, v_t: stop_gradient(v_t) }
    }

    /// The discount after each step: 0 where the episode terminated. f32 `[T]`
    #[track_caller]
    pub fn discounts(&self, discount: Number) -> Tensor {
        let discount = discount.into_tensor().broadcast_to(self.reward.shape());
        select(self.terminated, 0.0, discount)
    }
}
