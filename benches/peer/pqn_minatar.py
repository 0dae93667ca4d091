"""The peer for PQN: purejaxql's formulation on gymnax's Breakout of MinAtar, the whole of training in one jitted program.

Formulation (https://github.com/mttga/purejaxql): a convolution of 16 channels and a dense layer of 128, each followed by layer normalisation and max(x, 0); epsilon-greedy rollouts of 32 steps; Q(lambda) by a
reverse scan in which every end counts as a termination; 2 epochs of 32 minibatches, drawn by one permutation of the whole batch an epoch; half of the squared error, gradients clipped by their global norm,
RAdam with a learning rate that falls linearly. It is what people run, so nothing here is tuned beyond it. Observations are not divided by 255, which the original does to boards of zeros and ones.
"""

from typing import Any, NamedTuple

from timing import run_training

import flax.linen as nn
import gymnax
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState
from gymnax.wrappers.purerl import LogWrapper

STEPS = 32
EPOCHS = 2
MINIBATCHES = 32
LEARNING_RATE = 5e-4
MAX_GRAD_NORM = 10.0
GAMMA = 0.99
LAMBDA = 0.65
EPSILON_START = 1.0
EPSILON_END = 0.05
EPSILON_FRACTION = 0.1


class QNetwork(nn.Module):
    """Values of all actions."""

    actions: int

    @nn.compact
    def __call__(self, observation):
        he_normal = nn.initializers.he_normal()
        x = nn.Conv(16, (3, 3), padding="VALID", kernel_init=he_normal)(observation)
        x = nn.relu(nn.LayerNorm()(x))
        x = x.reshape((x.shape[0], -1))
        x = nn.relu(nn.LayerNorm()(nn.Dense(128, kernel_init=he_normal)(x)))
        return nn.Dense(self.actions)(x)


class Transition(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    done: Any
    value: Any
    info: Any


def q_lambda(rollout, last_value):
    """Peng's Q(lambda), [T, N]."""

    def back(carry, step):
        target, next_value = carry
        mixed = (1 - LAMBDA) * next_value + LAMBDA * target
        target = step.reward + GAMMA * (1.0 - step.done) * mixed
        return (target, step.value), target

    _, targets = jax.lax.scan(back, (last_value, last_value), rollout, reverse=True)
    return targets


def objective(params, network, batch, targets):
    values = network.apply(params, batch.observation)
    taken = jnp.take_along_axis(values, batch.action[:, None], axis=1)[:, 0]
    return 0.5 * jnp.square(taken - targets).mean(), taken.mean()


def make_train(num_envs, updates):
    env, params = gymnax.make("Breakout-MinAtar")
    env = LogWrapper(env)
    network = QNetwork(env.action_space(params).n)
    batch_size = STEPS * num_envs
    epsilon = optax.linear_schedule(EPSILON_START, EPSILON_END, max(1, int(EPSILON_FRACTION * updates)))
    learning_rate = optax.linear_schedule(LEARNING_RATE, 1e-20, updates * MINIBATCHES * EPOCHS)

    def choose(key, values, probability):
        which, explore = jax.random.split(key)
        anything = jax.random.randint(which, (), 0, values.shape[-1])
        return jnp.where(jax.random.uniform(explore) < probability, anything, values.argmax(-1))

    def act(carry, _):
        learner, env_state, observation, key, update = carry
        key, action_key, env_key = jax.random.split(key, 3)
        values = network.apply(learner.params, observation)
        action = jax.vmap(choose, (0, 0, None))(jax.random.split(action_key, num_envs), values, epsilon(update))
        keys = jax.random.split(env_key, num_envs)
        after, env_state, reward, done, info = jax.vmap(env.step, (0, 0, 0, None))(keys, env_state, action, params)
        seen = Transition(observation, action, reward, done, values.max(-1), info)
        return (learner, env_state, after, key, update), seen

    def minibatch(learner, data):
        losses, grads = jax.value_and_grad(objective, has_aux=True)(learner.params, network, *data)
        return learner.apply_gradients(grads=grads), losses

    def epoch(carry, _):
        learner, data, key = carry
        key, shuffle_key = jax.random.split(key)
        order = jax.random.permutation(shuffle_key, batch_size)
        flat = jax.tree.map(lambda x: x.reshape((batch_size,) + x.shape[2:]), data)
        shuffled = jax.tree.map(lambda x: jnp.take(x, order, axis=0), flat)
        split = jax.tree.map(lambda x: x.reshape((MINIBATCHES, -1) + x.shape[1:]), shuffled)
        learner, losses = jax.lax.scan(minibatch, learner, split)
        return (learner, data, key), losses

    def update(carry, number):
        learner, env_state, observation, key = carry
        (learner, env_state, observation, key, _), rollout = jax.lax.scan(
            act, (learner, env_state, observation, key, number), None, STEPS
        )
        last_value = network.apply(learner.params, observation).max(-1)
        data = (rollout, q_lambda(rollout, last_value))
        (learner, _, key), _ = jax.lax.scan(epoch, (learner, data, key), None, EPOCHS)
        return (learner, env_state, observation, key), rollout.info

    def train(key):
        key, init_key, reset_key = jax.random.split(key, 3)
        weights = network.init(init_key, jnp.zeros((1, *env.observation_space(params).shape)))
        optimizer = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.radam(learning_rate))
        learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)
        observation, env_state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        carry, info = jax.lax.scan(update, (learner, env_state, observation, key), jnp.arange(updates))
        return carry, info

    return train


if __name__ == "__main__":
    run_training(__doc__, "purejaxql", make_train, STEPS, num_envs=128, total_timesteps=409_600)
