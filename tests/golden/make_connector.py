"""connector.json: games on jumanji's circuit boards, and counts of what its boards look like.

A record has the boards of some games, played side by side without resets: a game that is over is stepped further. The actions are written as digits, or follow from
the numbers of game, step and wire. Boards, masks and rewards are recorded by a CRC-32 of each game.

Needs jumanji (requirements-boards.txt).
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments.routing.connector.env import Connector
from jumanji.environments.routing.connector.generator import RandomWalkGenerator

from golden import Array, File

MOVES = jnp.array([[0, 0], [-1, 0], [0, 1], [1, 0], [0, -1]])


def mixed(games, steps, wires):
    """An action for each game, step and wire, as the test computes it."""
    game, step, wire = np.meshgrid(np.arange(games), np.arange(steps), np.arange(wires), indexing="ij")
    x = (game * 1000003 + step * 10007 + wire * 101 + 12345).astype(np.uint64)
    x = x * 2654435761 % 2**32
    x = (x ^ (x >> 15)) * 2246822519 % 2**32
    return ((x >> 16) % 5).astype(np.int32)


def nearer(state, key):
    """For most wires a legal action that comes nearer to the target, for the others any legal one."""
    moved = state.agents.position[:, None] + MOVES[None]
    away = jnp.abs(moved - state.agents.target[:, None]).sum(-1)
    mask = state.action_mask
    good = mask & (away < away[:, :1])
    strays, draw = jax.random.split(key)
    any_way = jax.random.bernoulli(strays, 0.2, (mask.shape[0],)) | ~good.any(1)
    logits = jnp.where(jnp.where(any_way[:, None], mask, good), 0.0, -jnp.inf)
    return jax.random.categorical(draw, logits).astype(jnp.int32)


def checksums(x, dtype):
    """The CRC-32 of each game."""
    x = np.asarray(x).astype(dtype)
    return Array(np.array([zlib.crc32(one.tobytes()) for one in x], np.uint32))


def play(file, seed, games, size, wires, steps, time_limit, note, towards=False):
    env = Connector(generator=RandomWalkGenerator(size, wires), time_limit=time_limit)

    def game(key, actions):
        first, _ = env.reset(key)

        def step(state, given):
            action, key = given
            action = nearer(state, key) if towards else action
            after, timestep = env.step(state, action)
            terminated = timestep.last() & (timestep.discount == 0).all()
            seen = (action, after.grid, after.action_mask, timestep.reward.sum(), terminated, timestep.last() & ~terminated)
            return after, (seen, after.agents.connected)

        _, steps_ = jax.lax.scan(step, first, (actions, jax.random.split(key, steps)))
        return first, steps_

    keys = jax.random.split(jax.random.PRNGKey(seed), games)
    first, (seen, connected) = jax.jit(jax.vmap(game))(keys, mixed(games, steps, wires))
    actions, boards, masks, rewards, terminated, truncated = map(np.asarray, seen)
    file.add_raw(
        {
            "env": "connector",
            "note": note,
            "size": size,
            "time_limit": time_limit,
            "steps": steps,
            "rows": Array(np.asarray(first.agents.start[..., 0], np.int32)),
            "columns": Array(np.asarray(first.agents.start[..., 1], np.int32)),
            "targets": Array(np.asarray(first.agents.target[..., 0] * size + first.agents.target[..., 1], np.int32)),
            "actions": ["".join(map(str, one.ravel())) for one in actions] if towards else [],
            "first": checksums(first.grid, np.uint8),
            "boards": checksums(boards, np.uint8),
            "masks": checksums(masks, np.uint8),
            "rewards": checksums(np.rint(rewards * 100), np.int16),
            "terminated": checksums(terminated, np.uint8),
            "truncated": checksums(truncated, np.uint8),
        }
    )
    last = np.asarray(connected)[:, -1]
    print(f"connector, {note}: {games} games, {int(terminated.any(1).sum())} terminated, {last.mean():.2f} of the wires connected")


def boards(file, seed, count, size, wires):
    """How often a head or a target is in each cell, and how far apart they are."""
    generator = RandomWalkGenerator(size, wires)
    agents = jax.jit(jax.vmap(lambda key: generator(key).agents))(jax.random.split(jax.random.PRNGKey(seed), count))
    start, target = np.asarray(agents.start), np.asarray(agents.target)
    cells = lambda x: Array(np.bincount((x[..., 0] * size + x[..., 1]).ravel(), minlength=size * size).astype(np.int32))
    away = np.abs(start - target).sum(-1)
    by_wire = np.stack([np.bincount(one, minlength=2 * size) for one in away.T])
    file.add_raw({"env": "boards", "size": size, "wires": wires, "heads": cells(start), "targets": cells(target), "distances": Array(by_wire.astype(np.int32))})
    print(f"boards of {size} with {wires} wires: {away.mean():.2f} cells apart")


if __name__ == "__main__":
    file = File("connector", "games and boards of jumanji's Connector-v3", ["jumanji", "jax", "jaxlib", "numpy"])
    play(file, 1, 600, 10, 10, 50, 50, "any actions")
    play(file, 2, 240, 10, 10, 50, 50, "towards the targets", towards=True)
    play(file, 3, 60, 4, 4, 14, 12, "small boards, beyond the time limit", towards=True)
    play(file, 4, 60, 4, 4, 14, 12, "small boards, any actions")
    play(file, 5, 40, 8, 3, 30, 25, "few wires", towards=True)
    boards(file, 6, 20_000, 10, 10)
    boards(file, 7, 20_000, 5, 5)
    file.write()
