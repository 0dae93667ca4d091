"""The peer for MiniGrid: navix stepped by a random policy with automatic resets, in one jitted scan. What it sees is the view of seven by seven cells.

Observations are summed into the carry, so that none of the work can be left out.
"""

from timing import run_random

import jax
import jax.numpy as jnp

LEVELS = {
    "minigrid-empty": "Navix-Empty-8x8-v0",
    "minigrid-four-rooms": "Navix-FourRooms-v0",
    "minigrid-door-key": "Navix-DoorKey-Random-8x8-v0",
    "minigrid-key-corridor": "Navix-KeyCorridorS3R3-v0",
    "minigrid-lava-gap": "Navix-LavaGapS7-v0",
    "minigrid-dynamic-obstacles": "Navix-Dynamic-Obstacles-8x8-v0",
    "minigrid-go-to-door": "Navix-GoToDoor-5x5-v0",
}


def make_steps(name, num_envs, steps):
    import navix

    env = navix.make(LEVELS[name], observation_fn=navix.observations.symbolic_first_person)
    actions = len(env.action_set)

    def step(carry, key):
        timestep, observations, rewards, ends = carry
        action = jax.random.randint(key, (num_envs,), 0, actions)
        timestep = jax.vmap(env.step)(timestep, action)
        return (timestep, observations + timestep.observation, rewards + timestep.reward, ends + timestep.is_done()), None

    def run(key):
        reset_key, key = jax.random.split(key)
        timestep = jax.vmap(env.reset)(jax.random.split(reset_key, num_envs))
        carry = (timestep, jnp.zeros(timestep.observation.shape, jnp.float32), jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32))
        (_, observations, rewards, ends), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
        return observations.sum(), rewards.sum(), ends.sum()

    return run


if __name__ == "__main__":
    run_random(__doc__, "", [*LEVELS], make_steps, 1_000, 3)
