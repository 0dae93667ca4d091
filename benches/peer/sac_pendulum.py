"""The peer for SAC: flax, optax and a flashbax flat buffer on gymnax Pendulum, the whole of training in one jitted program.

As in CleanRL's `sac_continuous_action.py` with the paper's schedule: after every step of the environments as many gradient steps as there are environments, each of critics, actor and
temperature; batches of 256, two hidden layers of 256. The two critics are networks of their own, which on a CPU is faster than one batched product for both.
"""

from typing import Any, NamedTuple

from timing import run_training

import distrax
import flashbax
import flax.linen as nn
import gymnax
import jax
import jax.numpy as jnp
import optax
from gymnax.wrappers.purerl import LogWrapper

BATCH = 256
CAPACITY = 100_000
STARTS = 256
GAMMA = 0.99
TAU = 0.005
RATE = 3e-4
BOUND = 2.0


class Actor(nn.Module):
    """Mean and logarithm of the standard deviation before squashing."""

    @nn.compact
    def __call__(self, observation):
        x = nn.relu(nn.Dense(256)(observation))
        x = nn.relu(nn.Dense(256)(x))
        return nn.Dense(1)(x), jnp.clip(nn.Dense(1)(x), -20, 2)


class Critic(nn.Module):
    """Value of an action in [-1, 1]."""

    @nn.compact
    def __call__(self, observation, action):
        x = nn.relu(nn.Dense(256)(jnp.concatenate([observation, action], -1)))
        x = nn.relu(nn.Dense(256)(x))
        return jnp.squeeze(nn.Dense(1)(x), -1)


class Learner(NamedTuple):
    actor: Any
    critics: Any
    targets: Any
    temperature: Any
    actor_opt: Any
    critic_opt: Any
    temperature_opt: Any


def make_train(num_envs, updates):
    env, params = gymnax.make("Pendulum-v1")
    env = LogWrapper(env)
    actor, critic = Actor(), Critic()
    adam = optax.adam(RATE)
    buffer = flashbax.make_flat_buffer(CAPACITY, STARTS, BATCH, add_batch_size=num_envs)

    def policy(weights, observation, key):
        mean, log_std = actor.apply(weights, observation)
        normal = distrax.Normal(mean, jnp.exp(log_std))
        action, log_prob = distrax.Transformed(normal, distrax.Tanh()).sample_and_log_prob(seed=key)
        return action, log_prob.sum(-1)

    def values(weights, observation, action):
        return jnp.stack([critic.apply(one, observation, action) for one in weights])

    def gradient_step(learner, key, replay):
        sample_key, target_key, actor_key = jax.random.split(key, 3)
        pairs = buffer.sample(replay, sample_key).experience
        first, second = pairs.first, pairs.second
        temperature = jnp.exp(learner.temperature)
        action, log_prob = policy(learner.actor, second["observation"], target_key)
        value = values(learner.targets, second["observation"], action).min(0) - temperature * log_prob
        target = first["reward"] + GAMMA * (1.0 - first["done"]) * value

        def critic_loss(weights):
            errors = values(weights, first["observation"], first["action"]) - target
            return optax.l2_loss(errors).sum(0).mean()

        grads = jax.grad(critic_loss)(learner.critics)
        change, critic_opt = adam.update(grads, learner.critic_opt)
        critics = optax.apply_updates(learner.critics, change)

        def actor_loss(weights):
            action, log_prob = policy(weights, first["observation"], actor_key)
            value = values(critics, first["observation"], action).min(0)
            return (temperature * log_prob - value).mean(), log_prob

        grads, log_prob = jax.grad(actor_loss, has_aux=True)(learner.actor)
        change, actor_opt = adam.update(grads, learner.actor_opt)
        weights = optax.apply_updates(learner.actor, change)
        slope = -temperature * (log_prob - 1.0).mean()
        change, temperature_opt = adam.update(slope, learner.temperature_opt)
        targets = optax.incremental_update(critics, learner.targets, TAU)
        log_temperature = learner.temperature + change
        return Learner(weights, critics, targets, log_temperature, actor_opt, critic_opt, temperature_opt)

    def update(carry, _):
        learner, replay, env_state, observation, key = carry
        key, action_key, random_key, env_key, learn_key = jax.random.split(key, 5)
        action, _ = policy(learner.actor, observation, action_key)
        random = jax.random.uniform(random_key, action.shape, minval=-1.0)
        action = jnp.where(buffer.can_sample(replay), action, random)
        keys = jax.random.split(env_key, num_envs)
        after, env_state, reward, done, info = jax.vmap(env.step, (0, 0, 0, None))(keys, env_state, BOUND * action, params)
        replay = buffer.add(replay, {"observation": observation, "action": action, "reward": reward, "done": done})

        def learn(learner):
            one = lambda learner, key: (gradient_step(learner, key, replay), None)
            return jax.lax.scan(one, learner, jax.random.split(learn_key, num_envs))[0]

        learner = jax.lax.cond(buffer.can_sample(replay), learn, lambda learner: learner, learner)
        return (learner, replay, env_state, after, key), info

    def train(key):
        actor_key, critic_key, reset_key, key = jax.random.split(key, 4)
        observation, env_state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        action = jnp.zeros((num_envs, 1))
        weights = actor.init(actor_key, observation)
        critics = [critic.init(key, observation, action) for key in jax.random.split(critic_key)]
        temperature = jnp.zeros(())
        states = [adam.init(one) for one in (weights, critics, temperature)]
        learner = Learner(weights, critics, critics, temperature, *states)
        one = {"observation": observation[0], "action": action[0], "reward": jnp.zeros(()), "done": jnp.zeros((), bool)}
        carry = (learner, buffer.init(one), env_state, observation, key)
        return jax.lax.scan(update, carry, None, updates)

    return train


if __name__ == "__main__":
    run_training(__doc__, "sac in jax", make_train, 1, num_envs=1, total_timesteps=5_000)
