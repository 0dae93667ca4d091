"""The peer for Sebulba in pixels: IMPALA's V-trace on 84 by 84 Catch, with Cleanba's schedule.

Network, loss and optimizer are those of our experiment `catch-impala`: two convolutions and a dense layer, policy and value on top; the loss of the paper (section 4.2), summed over the batch; Adam.
"""

from cleanba import Task, parse, run

import distrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from pixel_catch import PixelCatch
from ppo_cartpole import dense

GAMMA = 0.95
ENTROPY = 0.01
VALUE = 0.5
MAX_GRAD_NORM = 40.0


class ActorCritic(nn.Module):
    """Logits and value, from one torso."""

    channels: int

    @nn.compact
    def __call__(self, observation):
        x = observation.astype(jnp.float32) / 255.0
        for channels, side in ((self.channels, 7), (2 * self.channels, 2)):
            x = nn.relu(nn.Conv(channels, (side, side), (side, side), "VALID")(x))
        x = nn.relu(nn.Dense(8 * self.channels)(x.reshape(x.shape[:-3] + (-1,))))
        logits, value = dense(3, 0.01)(x), dense(1, 1.0)(x)
        return distrax.Categorical(logits=logits), jnp.squeeze(value, -1)


def vtrace(log_rhos, discounts, rewards, values, last_value):
    """Targets and advantages, [T, N] (equation 1, and the policy gradient of section 4.2)."""
    rhos = jnp.minimum(1.0, jnp.exp(log_rhos))
    next_values = jnp.concatenate([values[1:], last_value[None]])
    deltas = rhos * (rewards + discounts * next_values - values)

    def back(error, step):
        delta, discount, rho = step
        error = delta + discount * rho * error
        return error, error

    _, errors = jax.lax.scan(back, jnp.zeros_like(last_value), (deltas, discounts, rhos), reverse=True)
    targets = values + errors
    next_targets = jnp.concatenate([targets[1:], last_value[None]])
    return targets, rhos * (rewards + discounts * next_targets - values)


def main():
    arguments = parse(__doc__, 400_000, num_envs=16, unroll=20, learning_rate=5e-3, channels=16)
    network = ActorCritic(arguments.channels)
    weights = network.init(jax.random.PRNGKey(arguments.seed), np.zeros((1, 84, 84, 1), np.uint8))
    rate = optax.linear_schedule(arguments.learning_rate, 0.0, arguments.updates)
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.adam(rate, eps=1e-5))
    learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)

    def act(params, observation, key):
        policy, _ = network.apply(params, observation)
        action = policy.sample(seed=key)
        return action, (), policy.log_prob(action)

    def objective(params, rollout, observation):
        policy, values = network.apply(params, rollout.observation)
        _, last_value = network.apply(params, observation)
        log_prob = policy.log_prob(rollout.action)
        discounts = GAMMA * (1.0 - rollout.done)
        given = log_prob - rollout.log_prob, discounts, rollout.reward, values, last_value
        targets, advantages = vtrace(*jax.lax.stop_gradient(given))
        actor = -(log_prob * advantages).sum()
        critic = 0.5 * jnp.square(targets - values).sum()
        entropy = policy.entropy().sum()
        return actor + VALUE * critic - ENTROPY * entropy

    @jax.jit
    def update(learner, payloads, key):
        rollout = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), *[p[0] for p in payloads])
        observation = jnp.concatenate([p[1] for p in payloads])
        loss, grads = jax.value_and_grad(objective)(learner.params, rollout, observation)
        return learner.apply_gradients(grads=grads), loss, key

    run(arguments, Task(PixelCatch, act, update, learner))


if __name__ == "__main__":
    main()
