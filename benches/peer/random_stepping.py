"""The peer for environments: gymnax stepped by a random policy with automatic resets, in one jitted scan."""

from timing import random_steps, run_random

import gymnax

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
    return random_steps(*gymnax.make(ENVS[name]), num_envs, steps)


if __name__ == "__main__":
    run_random(__doc__, "gymnax-", [*ENVS], make_steps, 5_000, 5)
