"""The peer for Craftax-Classic: craftax stepped by a random policy with automatic resets, in one jitted scan, with symbolic observations.

Observations are summed into the carry, so that none of the work can be left out.
"""

from timing import run_random

import jax
import jax.numpy as jnp


def make_steps(name, num_envs, steps):
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
    params = env.default_params

    def step(carry, key):
        state, observations, rewards, ends = carry
        act_key, step_key = jax.random.split(key)
        action = jax.random.randint(act_key, (num_envs,), 0, env.action_space(params).n)
        keys = jax.random.split(step_key, num_envs)
        observation, state, reward, done, _ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, action, params)
        return (state, observations + observation, rewards + reward, ends + done), None

    def run(key):
        reset_key, key = jax.random.split(key)
        observation, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        carry = (state, observation, jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32))
        (_, observations, rewards, ends), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
        return observations.sum(), rewards.sum(), ends.sum()

    return run


if __name__ == "__main__":
    run_random(__doc__, "", ["craftax-classic"], make_steps, 1_000, 3)
