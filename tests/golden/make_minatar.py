"""minatar.json: trajectories of gymnax's MinAtar games.

Every record begins at `split(PRNGKey(seed), 1 + steps)`: the first key resets, the others step, with automatic resets. Some change the
first state, which is `start`. Observations, which are zeros and ones, are recorded by the CRC-32 of their elements as bytes in row-major
order: of the first state, and after each step, where an episode ends that of the next one's first state.

Needs gymnax 1.0.1 (requirements-minatar.txt): version 0.0.9, which makes the other files, has no Seaquest.
"""

import importlib.metadata
import zlib

import gymnax
import jax
import jax.numpy as jnp
import numpy as np

from golden import Array, File

HORIZON, PLANS = 14, 48


def planner(env, params, bonus):
    """A policy that tries random plans and takes the best one's first action, so that records reach the later part of a game."""

    def plan(key, state):
        first, keep, steps = jax.random.split(key, 3)
        actions = jax.random.randint(first, (HORIZON,), 0, env.num_actions)
        kept = jax.random.bernoulli(keep, 0.6, (HORIZON,))
        actions = jax.lax.scan(lambda last, x: (jnp.where(x[1], last, x[0]),) * 2, actions[0], (actions, kept))[1]

        def step(carry, x):
            state, value, alive = carry
            _, state, reward, terminated, _ = env.step_env(x[0], state, x[1], params)
            value += alive * (reward - 20.0 * terminated)
            return (state, value, alive & ~terminated), None

        keys = jax.random.split(steps, HORIZON)
        (state, value, _), _ = jax.lax.scan(step, (state, 0.0, True), (keys, actions))
        return value + bonus(state), actions[0]

    def choose(key, state):
        values, actions = jax.vmap(plan, (0, None))(jax.random.split(key, PLANS), state)
        return actions[jnp.argmax(values)]

    return choose


def at_random(env, params, bonus):
    return lambda key, state: jax.random.randint(key, (), 0, env.num_actions)


def record(file, game, seed, steps, policy, note, start=None, bonus=lambda state: 0.0, **params):
    name = f"{game}-MinAtar"
    env, default = gymnax.make(name)
    default = default.replace(**params)
    choose = policy(env, default, bonus)
    keys = jax.random.split(jax.random.PRNGKey(seed), steps + 1)
    first, state = env.reset_env(keys[0], default)
    if start:
        state = state.replace(**{name: jnp.asarray(value, getattr(state, name).dtype if hasattr(getattr(state, name), "dtype") else None) for name, value in start.items()})
        first = env.get_obs(state, default)

    def step(carry, x):
        state, key = carry
        key, draw = jax.random.split(key)
        action = choose(draw, state)
        obs, state, reward, terminated, truncated, _ = env.step(x, state, action, default)
        return (state, key), (action, obs, reward, terminated, terminated | truncated)

    carry = (jax.tree.map(jnp.asarray, state), jax.random.PRNGKey(seed + 1000))
    _, (actions, obs, rewards, terminated, dones) = jax.jit(lambda c, k: jax.lax.scan(step, c, k))(carry, keys[1:])
    checksums = lambda x: Array(np.array([zlib.crc32(np.asarray(one).astype(np.uint8).tobytes()) for one in x], np.uint32))
    file.add_raw(
        {
            "env": name,
            "note": note,
            "params": params,
            "start": start or {},
            "seed": seed,
            "actions": Array(np.asarray(actions, np.int32)),
            "observation": checksums(first[None]),
            "observations": checksums(obs),
            "rewards": Array(np.asarray(rewards, np.int32)),
            "terminated": Array(terminated),
            "dones": Array(dones),
        }
    )
    print(f"{name}, {note}: {steps} steps, {int(dones.sum())} episodes, {int((dones & ~terminated).sum())} cut off, {float(rewards.sum())} reward")


if __name__ == "__main__":
    assert importlib.metadata.version("gymnax") == "1.0.1", "see requirements-minatar.txt"
    file = File("minatar", "trajectories of gymnax's MinAtar games", ["gymnax", "jax", "jaxlib", "numpy"])
    record(file, "Breakout", 1, 200, at_random, "random actions")
    record(file, "Breakout", 2, 900, planner, "planned actions")
    record(file, "Breakout", 3, 60, planner, "planned actions, cut off after 25 steps", max_steps_in_episode=25)
    record(file, "Asterix", 4, 300, at_random, "random actions")
    record(file, "Asterix", 5, 1100, planner, "planned actions")
    crowded = {"spawn_speed": 1, "spawn_timer": 0, "move_speed": 3}
    record(file, "Asterix", 6, 150, at_random, "all lanes full", start=crowded)
    record(file, "Freeway", 7, 300, at_random, "random actions")
    up = lambda state: -0.1 * state.pos
    record(file, "Freeway", 8, 700, planner, "planned actions, cut off after 300 steps", bonus=up, max_steps_in_episode=300)
    record(file, "SpaceInvaders", 9, 300, at_random, "random actions")
    record(file, "SpaceInvaders", 10, 1100, planner, "planned actions")
    spare = lambda state: 2.0 * state.alien_map.sum()
    record(file, "SpaceInvaders", 15, 450, planner, "aliens are spared and come down", bonus=spare)
    record(file, "Seaquest", 11, 400, at_random, "random actions")
    dive = lambda state: 0.3 * state.diver_count + 0.01 * jnp.minimum(state.oxygen, 60)
    record(file, "Seaquest", 12, 1100, planner, "planned actions", bonus=dive)
    hard = {"e_spawn_speed": 1, "e_spawn_timer": 1, "move_speed": 2, "sub_y": 3, "surface": False}
    record(file, "Seaquest", 13, 250, planner, "an enemy in each step", start=hard, bonus=dive)
    full = {"diver_count": 5, "sub_y": 4, "surface": False, "oxygen": 150}
    record(file, "Seaquest", 14, 200, planner, "five divers on board", start=full, bonus=dive)
    file.write()
