"""puzzles.json: games of jumanji's puzzles, by their first states and actions.

A record has games side by side, without resets: a game that is over is stepped further. States, masks and rewards are recorded by a CRC-32 of each game. Half of the games have legal actions, half any.

Needs jumanji (requirements-boards.txt).
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jumanji.environments.logic.graph_coloring.env import GraphColoring
from jumanji.environments.logic.graph_coloring.generator import RandomGenerator as RandomGraphs
from jumanji.environments.logic.minesweeper.env import Minesweeper
from jumanji.environments.logic.minesweeper.generator import UniformSamplingGenerator as RandomMines
from jumanji.environments.logic.rubiks_cube.env import RubiksCube
from jumanji.environments.logic.rubiks_cube.generator import ScramblingGenerator
from jumanji.environments.logic.rubiks_cube.utils import unflatten_action
from jumanji.environments.logic.sliding_tile_puzzle.env import SlidingTilePuzzle
from jumanji.environments.logic.sliding_tile_puzzle.generator import RandomWalkGenerator
from jumanji.environments.commons.maze_utils.maze_generation import generate_maze
from jumanji.environments.packing.knapsack.env import Knapsack
from jumanji.environments.packing.knapsack.generator import RandomGenerator as RandomItems

from jumanji.environments.routing.maze.env import Maze
from jumanji.environments.routing.tsp.env import TSP
from jumanji.environments.routing.tsp.generator import UniformGenerator as RandomCities
from jumanji.environments.routing.maze.generator import RandomGenerator as RandomMazes
from jumanji.environments.routing.sokoban.constants import AGENT, BOX, TARGET, WALL
from jumanji.environments.routing.sokoban.env import Sokoban
from jumanji.environments.routing.sokoban.generator import Generator as LevelGenerator
from jumanji.environments.routing.sokoban.types import State as SokobanState

from golden import Array, File


def checksums(x, dtype):
    """The CRC-32 of each game."""
    x = np.asarray(x).astype(dtype)
    return Array(np.array([zlib.crc32(one.tobytes()) for one in x], np.uint32))


def legal(timestep):
    return timestep.observation.action_mask.reshape(-1)


def play(file, name, env, seed, games, steps, given, seen, mask_of=legal, meant=lambda action: action, recorded=(), **sizes):
    """`given` picks what a game begins with, and `seen` what is recorded of a state, with the dtype of its bytes. `meant` is jumanji's action for one number. Rewards are recorded whole where `recorded` names them."""

    def game(key, any_way):
        first_key, key = jax.random.split(key)
        first, timestep = env.reset(first_key)

        def step(carry, key):
            state, mask = carry
            logits = jnp.where(any_way | mask | ~mask.any(), 0.0, -jnp.inf)
            action = jax.random.categorical(key, logits).astype(jnp.int32)
            after, timestep = env.step(state, meant(action))
            return (after, mask_of(timestep)), (action, after, mask_of(timestep), timestep.reward, timestep.last())

        _, steps_ = jax.lax.scan(step, (first, mask_of(timestep)), jax.random.split(key, steps))
        return first, steps_

    keys = jax.random.split(jax.random.PRNGKey(seed), games)
    first, (actions, states, masks, rewards, over) = jax.jit(jax.vmap(game))(keys, jnp.arange(games) % 2 == 0)
    record = {"env": name, "games": games, "steps": steps, **sizes}
    record |= {field: Array(np.asarray(value)) for field, value in given(first).items()}
    record["actions"] = Array(np.asarray(actions))
    record |= {field: checksums(value, dtype) for field, (value, dtype) in seen(states).items()}
    record |= {"masks": checksums(masks, np.uint8), "rewards": Array(np.asarray(rewards)) if "rewards" in recorded else checksums(rewards, np.float32), "over": checksums(over, np.uint8)}
    file.add_raw(record)
    print(f"{name} {sizes}: {games} games, {int(np.asarray(over).any(1).sum())} ended, mean reward {np.asarray(rewards).mean():.3f}")


def sliding_tiles(file, seed, games, steps, size, shuffles, time_limit):
    env = SlidingTilePuzzle(generator=RandomWalkGenerator(size, shuffles), time_limit=time_limit)
    given = lambda first: {"tiles": first.puzzle.reshape(games, -1).astype(jnp.int32)}
    seen = lambda state: {"states": (state.puzzle, np.uint8)}
    play(file, "sliding-tiles", env, seed, games, steps, given, seen, size=size, time_limit=time_limit)


def knapsack(file, seed, games, steps, items, budget):
    env = Knapsack(generator=RandomItems(items, budget))
    given = lambda first: {"weights": first.weights, "values": first.values}
    seen = lambda state: {"packed": (state.packed_items, np.uint8), "room": (state.remaining_budget, np.float32)}
    play(file, "knapsack", env, seed, games, steps, given, seen, budget=budget)


def graph_coloring(file, seed, games, steps, nodes, probability):
    env = GraphColoring(generator=RandomGraphs(nodes, probability))
    given = lambda first: {"edges": first.adj_matrix}
    seen = lambda state: {"states": (state.colors, np.int8), "nodes": (state.current_node_index, np.uint8)}
    play(file, "graph-coloring", env, seed, games, steps, given, seen)


def minesweeper(file, seed, games, steps, rows, columns, mines):
    env = Minesweeper(generator=RandomMines(rows, columns, mines))
    given = lambda first: {"mines": first.flat_mine_locations.astype(jnp.int32)}
    seen = lambda state: {"states": (state.board, np.int8)}
    meant = lambda action: jnp.stack(jnp.divmod(action, columns))
    play(file, "minesweeper", env, seed, games, steps, given, seen, meant=meant, rows=rows, columns=columns)


def rubiks_cube(file, seed, games, steps, size, scrambles, time_limit):
    env = RubiksCube(generator=ScramblingGenerator(size, scrambles), time_limit=time_limit)
    given = lambda first: {"stickers": first.cube.reshape(games, -1).astype(jnp.int32)}
    seen = lambda state: {"states": (state.cube, np.uint8)}
    mask_of = lambda timestep: jnp.ones(6 * (size // 2) * 3, bool)
    meant = lambda action: unflatten_action(action, size)
    play(file, "rubiks-cube", env, seed, games, steps, given, seen, mask_of=mask_of, meant=meant, size=size, time_limit=time_limit)


def travelling_salesman(file, seed, games, steps, cities):
    env = TSP(generator=RandomCities(cities))
    given = lambda first: {"cities": first.coordinates}
    seen = lambda state: {"states": (state.trajectory, np.int8)}
    play(file, "travelling-salesman", env, seed, games, steps, given, seen, recorded=("rewards",))


class RandomLevels(LevelGenerator):
    """Levels with walls anywhere, which need no solution; half of them lack one push."""

    def __call__(self, key):
        wall_key, place_key, kind_key, key = jax.random.split(key, 4)
        border = jnp.ones((10, 10), bool).at[1:-1, 1:-1].set(False)
        nearly = jax.random.bernoulli(kind_key)
        walls = border | (~nearly & jax.random.bernoulli(wall_key, 0.15, (10, 10)))
        # Things are in the order of draws, at free cells; a box that lacks a push is not beside the wall.
        inner = jnp.zeros((10, 10), bool).at[3:7, 3:7].set(True)
        draws = jnp.where(walls | (nearly & ~inner), -1.0, jax.random.uniform(place_key, (10, 10)))
        cells = jax.lax.top_k(draws.reshape(-1), 9)[1]
        boxes, targets = cells[1:5], jnp.where(nearly, cells[1:5].at[3].add(1), cells[5:])
        fixed = jnp.where(walls, WALL, 0).reshape(-1).at[targets].set(TARGET)
        variable = jnp.zeros(100, int).at[boxes].set(BOX).at[cells[0]].set(AGENT)
        grid = lambda x: x.reshape(10, 10).astype(jnp.uint8)
        place = jnp.stack(jnp.divmod(cells[0], 10))
        return SokobanState(key=key, fixed_grid=grid(fixed), variable_grid=grid(variable), agent_location=place, step_count=jnp.array(0, jnp.int32))


def sokoban(file, seed, games, steps, time_limit):
    env = Sokoban(generator=RandomLevels(), time_limit=time_limit)
    given = lambda first: {"fixed": first.fixed_grid, "moving": first.variable_grid}
    seen = lambda state: {"states": (state.variable_grid, np.uint8)}
    play(file, "sokoban", env, seed, games, steps, given, seen, mask_of=lambda timestep: jnp.ones(4, bool), time_limit=time_limit)


def maze(file, seed, games, steps, rows, columns, time_limit):
    env = Maze(generator=RandomMazes(rows, columns), time_limit=time_limit)
    place = lambda state: [state.agent_position.row, state.agent_position.col]
    ends = lambda state: jnp.stack(place(state) + [state.target_position.row, state.target_position.col], -1)
    given = lambda first: {"walls": first.walls, "cells": ends(first).astype(jnp.int32)}
    seen = lambda state: {"states": (jnp.stack(place(state), -1), np.int32)}
    play(file, "maze", env, seed, games, steps, given, seen, time_limit=time_limit)


def mazes(file, seed, count, rows, columns):
    """How many cells are free, and how many of them have one way out."""
    keys = jax.random.split(jax.random.PRNGKey(seed), count)
    free = 1 - np.asarray(jax.jit(jax.vmap(lambda key: generate_maze(columns, rows, key)))(keys)).astype(np.int32)
    around = np.pad(free, ((0, 0), (1, 1), (1, 1)))
    ways = around[:, :-2, 1:-1] + around[:, 2:, 1:-1] + around[:, 1:-1, :-2] + around[:, 1:-1, 2:]
    counts = {"free": free.sum((1, 2)), "ends": ((ways == 1) & (free == 1)).sum((1, 2))}
    counted = {name: Array(np.bincount(each, minlength=rows * columns + 1).astype(np.int32)) for name, each in counts.items()}
    by_cell = {"cells": Array(free.sum(0).reshape(-1).astype(np.int32))}
    file.add_raw({"env": "mazes", "rows": rows, "columns": columns, "count": count, **counted, **by_cell})
    print(f"mazes of {rows} x {columns}: {counts['free'].mean():.2f} free cells, {counts['ends'].mean():.2f} ends")


def gaps(file, seed, count, size, shuffles):
    """How often the gap is in each place at the start, and how many tiles are right."""
    generator = RandomWalkGenerator(size, shuffles)
    states = jax.jit(jax.vmap(generator))(jax.random.split(jax.random.PRNGKey(seed), count))
    gap = np.asarray(states.empty_tile_position)
    right = np.asarray((states.puzzle == generator.make_solved_puzzle()).sum((1, 2)))
    file.add_raw(
        {
            "env": "gaps",
            "size": size,
            "shuffles": shuffles,
            "gaps": Array(np.bincount(gap[:, 0] * size + gap[:, 1], minlength=size * size).astype(np.int32)),
            "right": Array(np.bincount(right, minlength=size * size + 1).astype(np.int32)),
        }
    )
    print(f"puzzles of {size} after {shuffles} moves: {right.mean():.2f} right")


if __name__ == "__main__":
    file = File("puzzles", "games of jumanji's SlidingTilePuzzle-v0, Knapsack-v1, GraphColoring-v1, Minesweeper-v0, RubiksCube-v0, TSP-v1, Sokoban-v0 and Maze-v0", ["jumanji", "jax", "jaxlib", "numpy"])
    sliding_tiles(file, 1, 60, 120, 5, 200, 500)
    sliding_tiles(file, 2, 60, 60, 2, 3, 40)
    sliding_tiles(file, 3, 40, 60, 3, 5, 50)
    knapsack(file, 4, 60, 50, 50, 12.5)
    knapsack(file, 5, 60, 12, 8, 2.0)
    graph_coloring(file, 6, 60, 25, 20, 0.8)
    graph_coloring(file, 7, 60, 12, 8, 0.4)
    minesweeper(file, 14, 60, 60, 10, 10, 10)
    minesweeper(file, 15, 60, 12, 3, 4, 2)
    rubiks_cube(file, 16, 60, 60, 3, 100, 200)
    rubiks_cube(file, 17, 60, 20, 2, 1, 12)
    rubiks_cube(file, 18, 20, 60, 5, 20, 200)
    travelling_salesman(file, 19, 60, 20, 20)
    travelling_salesman(file, 20, 60, 6, 5)
    sokoban(file, 21, 80, 120, 120)
    sokoban(file, 22, 20, 40, 30)
    maze(file, 10, 60, 120, 10, 10, 100)
    maze(file, 11, 60, 40, 3, 6, 30)
    mazes(file, 12, 20_000, 10, 10)
    mazes(file, 13, 20_000, 5, 8)
    gaps(file, 8, 20_000, 5, 200)
    gaps(file, 9, 20_000, 3, 21)
    file.write()
