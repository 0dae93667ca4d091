"""The peer for environments: gymnax stepped by a random policy with automatic resets, in one jitted scan.

Observations are summed into the carry, so that none of the work can be left out.
"""

from timing import run_random

import gymnax
import jax
import jax.numpy as jnp

# gymnax 0.0.9 has no Seaquest.
ENVS = {
    "cartpole": "CartPole-v1",
    "catch": "Catch-bsuite",
    "asterix": "Asterix-MinAtar",
    "breakout": "Breakout-MinAtar",
    "freeway": "Freeway-MinAtar",
    "space-invaders": "SpaceInvaders-MinAtar",
}


def make_steps(name, num_envs, steps):
    env, params = gymnax.make(ENVS[name])
    space = env.action_space(params)

    def step(carry, key):
        state, observations, rewards, ends = carry
        action_key, env_key = jax.random.split(key)
        actions = jax.random.randint(action_key, (num_envs,), 0, space.n)
        keys = jax.random.split(env_key, num_envs)
        observation, state, reward, done, _ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, actions, params)
        return (state, observations + observation, rewards + reward, ends + done), None

    def run(key):
        reset_key, key = jax.random.split(key)
        observation, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        carry = (state, observation, jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32))
        (_, observations, rewards, ends), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
        return observations.sum(), rewards.sum(), ends.sum()

    return run


if __name__ == "__main__":
    run_random(__doc__, "gymnax-", [*ENVS], make_steps, 5_000, 5)
