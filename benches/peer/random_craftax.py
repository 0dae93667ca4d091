"""The peer for Craftax-Classic: craftax stepped by a random policy with automatic resets, in one jitted scan, with symbolic observations."""

from timing import random_steps, run_random


def make_steps(name, num_envs, steps):
    from craftax.craftax_env import make_craftax_env_from_name

    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
    return random_steps(env, env.default_params, num_envs, steps)


if __name__ == "__main__":
    run_random(__doc__, "", ["craftax-classic"], make_steps, 1_000, 3)
