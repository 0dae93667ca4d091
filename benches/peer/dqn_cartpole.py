"""The peer for DQN: PureJaxRL's formulation on gymnax CartPole, the whole of training in one jitted program.

Formulation (https://github.com/luchris429/purejaxrl): dense layers of 120 and 84; 10 environments; flashbax's flat buffer of 10,000 transitions, added to at every step of the environments; from 10,000 steps on, every 10 steps (which is
every step of 10 environments) a gradient step of Adam from a batch of 128, whose squared errors are to the target network's greatest value; the target copied every 500 steps; epsilon from 1 to 0.05 over half of the run; a learning rate
that falls linearly. It is what people run, so nothing here is tuned beyond it.
"""

from typing import Any, NamedTuple

from timing import run_training

import flashbax
import flax.linen as nn
import gymnax
import jax
import jax.numpy as jnp
import optax
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper

BUFFER = 10_000
BATCH = 128
INTERVAL = 10
WARM_UP = 10_000
TARGET = 500
LEARNING_RATE = 2.5e-4
EPSILON = (1.0, 0.05)
EXPLORATION = 0.5
GAMMA = 0.99


class Network(nn.Module):
    """Values of the actions."""

    actions: int

    @nn.compact
    def __call__(self, x):
        for units in (120, 84):
            x = nn.relu(nn.Dense(units)(x))
        return nn.Dense(self.actions)(x)


class Step(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    done: Any


class Learner(NamedTuple):
    params: Any
    target: Any
    optimizer: Any


def make_train(num_envs, updates):
    env, params = gymnax.make("CartPole-v1")
    env = LogWrapper(FlattenObservationWrapper(env))
    network = Network(env.action_space(params).n)
    optimizer = optax.adam(optax.linear_schedule(LEARNING_RATE, 0.0, updates))
    explored = EXPLORATION * updates * num_envs
    buffer = flashbax.make_flat_buffer(
        max_length=BUFFER,
        min_length=BATCH,
        sample_batch_size=BATCH,
        add_sequences=False,
        add_batch_size=num_envs,
    )

    def objective(weights, target, first, second):
        best = jnp.max(network.apply(target, second.observation), -1)
        goal = first.reward + GAMMA * (1.0 - first.done) * best
        values = network.apply(weights, first.observation)
        chosen = jnp.take_along_axis(values, first.action[:, None], -1)[:, 0]
        return jnp.mean(jnp.square(chosen - goal))

    def learn(learner, pair):
        gradient = jax.grad(objective)(learner.params, learner.target, pair.first, pair.second)
        change, state = optimizer.update(gradient, learner.optimizer)
        return learner._replace(params=optax.apply_updates(learner.params, change), optimizer=state)

    def update(carry, number):
        learner, stored, env_state, observation, key = carry
        key, explore_key, draw_key, env_key, sample_key = jax.random.split(key, 5)
        best = jnp.argmax(network.apply(learner.params, observation), -1)
        steps = number * num_envs
        epsilon = jnp.clip(EPSILON[0] + (EPSILON[1] - EPSILON[0]) * steps / explored, EPSILON[1])
        explores = jax.random.uniform(explore_key, (num_envs,)) < epsilon
        action = jnp.where(explores, jax.random.randint(draw_key, (num_envs,), 0, network.actions), best)
        keys = jax.random.split(env_key, num_envs)
        after, env_state, reward, done, info = jax.vmap(env.step, (0, 0, 0, None))(keys, env_state, action, params)
        stored = buffer.add(stored, Step(observation, action, reward, done))
        steps = steps + num_envs
        due = buffer.can_sample(stored) & (steps > WARM_UP) & (steps % INTERVAL == 0)
        learner = jax.lax.cond(
            due, lambda: learn(learner, buffer.sample(stored, sample_key).experience), lambda: learner
        )
        target = jax.tree.map(lambda new, old: jnp.where(steps % TARGET == 0, new, old), learner.params, learner.target)
        return (learner._replace(target=target), stored, env_state, after, key), info

    def train(key):
        key, init_key, reset_key = jax.random.split(key, 3)
        weights = network.init(init_key, jnp.zeros(env.observation_space(params).shape))
        learner = Learner(weights, jax.tree.map(jnp.copy, weights), optimizer.init(weights))
        observation, env_state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        seen = Step(observation[0], jnp.int32(0), jnp.float32(0.0), jnp.bool_(False))
        carry = (learner, buffer.init(seen), env_state, observation, key)
        return jax.lax.scan(update, carry, jnp.arange(updates))

    return train


if __name__ == "__main__":
    run_training(__doc__, "purejaxrl", make_train, 1, num_envs=10, total_timesteps=500_000)
