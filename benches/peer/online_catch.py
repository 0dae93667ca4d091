"""The peer for Anakin's minimal unit (Hessel et al. 2021, figure 2): an online actor-critic on gymnax Catch, whose gradient goes through acting.

Network, loss and optimizer are those of our experiment `catch-online`: two towers of two tanh layers of 64; lambda returns of 0.95; entropy 0.01, value 0.5, gradient norm 0.5, Adam of 1e-3. All of training is one
jitted program, and the objective of a rollout is computed while it acts, so that the update uses the forward pass by which it acted.
"""

from timing import run_training

import gymnax
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper

from ppo_cartpole import ActorCritic

STEPS = 32
GAMMA = 0.99
LAMBDA = 0.95
ENTROPY = 0.01
VALUE = 0.5


def lambda_returns(rewards, discounts, values_t):
    """Targets, [T, N]; `values_t` are those of the states that the steps led to."""

    def back(target, step):
        reward, discount, value_t = step
        target = reward + discount * ((1.0 - LAMBDA) * value_t + LAMBDA * target)
        return target, target

    _, targets = jax.lax.scan(back, values_t[-1], (rewards, discounts, values_t), reverse=True)
    return targets


def make_train(num_envs, updates):
    env, params = gymnax.make("Catch-bsuite")
    env = LogWrapper(FlattenObservationWrapper(env))
    network = ActorCritic(env.action_space(params).n)

    def objective(weights, env_state, observation, key):
        def act(carry, key):
            env_state, observation = carry
            action_key, env_key = jax.random.split(key)
            policy, value = network.apply(weights, observation)
            action = policy.sample(seed=action_key)
            keys = jax.random.split(env_key, num_envs)
            after, env_state, reward, done, info = jax.vmap(env.step, (0, 0, 0, None))(keys, env_state, action, params)
            step = (policy.log_prob(action), policy.entropy(), value, reward, GAMMA * (1.0 - done))
            return (env_state, after), (step, info)

        keys = jax.random.split(key, STEPS)
        (env_state, observation), (steps, info) = jax.lax.scan(act, (env_state, observation), keys)
        log_prob, entropy, values, rewards, discounts = steps
        _, last_value = network.apply(weights, observation)
        values_t = jnp.concatenate([values[1:], last_value[None]])
        targets = jax.lax.stop_gradient(lambda_returns(rewards, discounts, values_t))
        advantages = targets - values
        actor = -(log_prob * jax.lax.stop_gradient(advantages)).mean()
        critic = 0.5 * jnp.square(advantages).mean()
        return actor + VALUE * critic - ENTROPY * entropy.mean(), (env_state, observation, info)

    def update(carry, key):
        learner, env_state, observation = carry
        gradient = jax.grad(objective, has_aux=True)
        grads, (env_state, observation, info) = gradient(learner.params, env_state, observation, key)
        return (learner.apply_gradients(grads=grads), env_state, observation), info

    def train(key):
        key, init_key, reset_key = jax.random.split(key, 3)
        weights = network.init(init_key, jnp.zeros(env.observation_space(params).shape))
        optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3, eps=1e-5))
        learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)
        observation, env_state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        return jax.lax.scan(update, (learner, env_state, observation), jax.random.split(key, updates))

    return train


if __name__ == "__main__":
    run_training(__doc__, "anakin-online", make_train, STEPS, num_envs=64, total_timesteps=1_000_000)
