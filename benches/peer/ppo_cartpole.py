"""The peer for PPO: PureJaxRL's formulation on gymnax CartPole, the whole of training in one jitted program.

Formulation (https://github.com/luchris429/purejaxrl): separate actor and critic of two tanh layers of 64; rollouts of 128 steps; advantages by GAE in which every end counts as a termination; 4 epochs
of 4 minibatches, drawn by one permutation of the whole batch an epoch; clipped ratio, clipped value, entropy bonus; gradients clipped by their global norm, Adam with a learning rate that falls linearly.
It is what people run, so nothing here is tuned beyond it.
"""

from typing import Any, NamedTuple

from timing import run_training

import distrax
import flax.linen as nn
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper

STEPS = 128
EPOCHS = 4
MINIBATCHES = 4
LEARNING_RATE = 2.5e-4
MAX_GRAD_NORM = 0.5
GAMMA = 0.99
LAMBDA = 0.95
CLIP = 0.2
ENTROPY = 0.01
VALUE = 0.5


def dense(size, scale):
    return nn.Dense(size, kernel_init=nn.initializers.orthogonal(scale), bias_init=nn.initializers.zeros)


class ActorCritic(nn.Module):
    """Logits and value, from two towers that share nothing."""

    actions: int

    @nn.compact
    def __call__(self, observation):
        def tower(outputs, scale):
            x = observation
            for _ in range(2):
                x = nn.tanh(dense(64, np.sqrt(2))(x))
            return dense(outputs, scale)(x)

        logits = tower(self.actions, 0.01)
        value = tower(1, 1.0)
        return distrax.Categorical(logits=logits), jnp.squeeze(value, -1)


class Transition(NamedTuple):
    observation: Any
    action: Any
    reward: Any
    done: Any
    value: Any
    log_prob: Any
    info: Any


def gae(rollout, last_value):
    """Advantages and value targets, [T, N]."""

    def back(carry, step):
        advantage, next_value = carry
        alive = 1.0 - step.done
        delta = step.reward + GAMMA * next_value * alive - step.value
        advantage = delta + GAMMA * LAMBDA * alive * advantage
        return (advantage, step.value), advantage

    start = (jnp.zeros_like(last_value), last_value)
    _, advantages = jax.lax.scan(back, start, rollout, reverse=True, unroll=16)
    return advantages, advantages + rollout.value


def objective(params, network, batch, advantages, targets):
    policy, value = network.apply(params, batch.observation)
    ratio = jnp.exp(policy.log_prob(batch.action) - batch.log_prob)
    normal = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    actor = -jnp.minimum(ratio * normal, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * normal).mean()
    near = batch.value + jnp.clip(value - batch.value, -CLIP, CLIP)
    critic = 0.5 * jnp.maximum(jnp.square(value - targets), jnp.square(near - targets)).mean()
    entropy = policy.entropy().mean()
    return actor + VALUE * critic - ENTROPY * entropy, (critic, actor, entropy)


def make_train(num_envs, updates):
    env, params = gymnax.make("CartPole-v1")
    env = LogWrapper(FlattenObservationWrapper(env))
    network = ActorCritic(env.action_space(params).n)
    batch_size = STEPS * num_envs

    def learning_rate(count):
        return LEARNING_RATE * (1.0 - (count // (MINIBATCHES * EPOCHS)) / updates)

    def act(carry, _):
        learner, env_state, observation, key = carry
        key, action_key, env_key = jax.random.split(key, 3)
        policy, value = network.apply(learner.params, observation)
        action = policy.sample(seed=action_key)
        log_prob = policy.log_prob(action)
        keys = jax.random.split(env_key, num_envs)
        after, env_state, reward, done, info = jax.vmap(env.step, (0, 0, 0, None))(keys, env_state, action, params)
        seen = Transition(observation, action, reward, done, value, log_prob, info)
        return (learner, env_state, after, key), seen

    def minibatch(learner, data):
        gradient = jax.value_and_grad(objective, has_aux=True)
        losses, grads = gradient(learner.params, network, *data)
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

    def update(carry, _):
        (learner, env_state, observation, key), rollout = jax.lax.scan(act, carry, None, STEPS)
        _, last_value = network.apply(learner.params, observation)
        advantages, targets = gae(rollout, last_value)
        data = (rollout, advantages, targets)
        (learner, _, key), _ = jax.lax.scan(epoch, (learner, data, key), None, EPOCHS)
        return (learner, env_state, observation, key), rollout.info

    def train(key):
        key, init_key, reset_key = jax.random.split(key, 3)
        weights = network.init(init_key, jnp.zeros(env.observation_space(params).shape))
        optimizer = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.adam(learning_rate, eps=1e-5))
        learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)
        observation, env_state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        carry, info = jax.lax.scan(update, (learner, env_state, observation, key), None, updates)
        return carry, info

    return train


if __name__ == "__main__":
    run_training(__doc__, "purejaxrl", make_train, STEPS, num_envs=4, total_timesteps=500_000)
