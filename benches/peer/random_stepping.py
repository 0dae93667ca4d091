"""The peer for environments: gymnax stepped by a random policy with automatic resets, in one jitted scan.

Observations are summed into the carry, so that none of the work can be left out.
"""

import argparse

from timing import measure, report

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", choices=ENVS, default="cartpole")
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5_000, help="steps of every environment")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    run = make_steps(arguments.env, arguments.num_envs, arguments.steps)
    stages, (_, rewards, ends) = measure(run, (jax.random.PRNGKey(arguments.seed),), arguments.repeats)
    env_steps = arguments.num_envs * arguments.steps
    line = {"peer": f"gymnax-{arguments.env}", "num_envs": arguments.num_envs, "env_steps": env_steps, **stages}
    report({**line, "mean_return": float(rewards) / max(int(ends), 1)})


if __name__ == "__main__":
    main()
