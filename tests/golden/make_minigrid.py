"""minigrid.json: episodes of MiniGrid's levels, by their first grids and actions, and counts of what drawn grids look like.

An episode is recorded up to its end, with zeros behind. What is seen is recorded by a CRC-32 of each episode. A cell's code is its kind, 11 for a closed door and 12 for a locked one, and 16 times its colour.

Needs minigrid (requirements-minigrid.txt).
"""

import zlib

import numpy as np
from minigrid.envs import (
    DoorKeyEnv,
    DynamicObstaclesEnv,
    EmptyEnv,
    FourRoomsEnv,
    GoToDoorEnv,
    KeyCorridorEnv,
    LavaGapEnv,
    MemoryEnv,
    MultiRoomEnv,
    UnlockEnv,
)
from minigrid.core.constants import COLOR_TO_IDX

from golden import Array, File

DOOR = 4
# Going forward and using things is more likely than turning round and giving up.
ACTIONS = [0.15, 0.15, 0.4, 0.1, 0.05, 0.14, 0.01]
BESIDE_DOORS = [0.2, 0.2, 0.4, 0.03, 0.02, 0.01, 0.14]
EPISODES = 40
# So many episodes are recorded in pictures, with so many steps.
PICTURES, PICTURED = 4, 24


def codes(env):
    """The code of each cell, row by row."""
    cells = env.grid.encode().astype(np.int64).transpose(1, 0, 2)
    kind, colour, state = cells[..., 0], cells[..., 1], cells[..., 2]
    kind = np.where((kind == DOOR) & (state > 0), 10 + state, kind)
    return (kind + 16 * colour).astype(np.uint8).reshape(-1)


def agent(env):
    column, row = env.agent_pos
    return np.array([row, column, env.agent_dir], np.int32)


def task(env):
    """What the task is about, as our levels have it."""
    if isinstance(env, MemoryEnv):
        return [env.success_pos[0], env.success_pos[1], env.failure_pos[1]]
    if isinstance(env, GoToDoorEnv):
        return [env.target_pos[1], env.target_pos[0], COLOR_TO_IDX[env.target_color]]
    if isinstance(env, KeyCorridorEnv):
        return [COLOR_TO_IDX[env.obj.color]]
    if isinstance(env, DynamicObstaclesEnv):
        return balls(env)
    return [0]


def balls(env):
    return [int(ball.cur_pos[1]) * env.width + int(ball.cur_pos[0]) for ball in env.obstacles]


def checksums(episodes):
    return Array(np.array([zlib.crc32(np.ascontiguousarray(one).tobytes()) for one in episodes], np.uint32))


def play(file, name, make, steps, **settings):
    rng = np.random.default_rng(len(name) * 1000 + steps)
    env = make()
    dynamic = isinstance(env, DynamicObstaclesEnv)
    fields = {field: [] for field in ["cells", "agents", "tasks", "actions", "balls", "images", "places", "pixels", "pictures", "lengths", "rewards", "ends"]}
    for episode in range(EPISODES):
        seen, _ = env.reset(seed=episode)
        fields["cells"].append(codes(env))
        fields["agents"].append(agent(env))
        fields["tasks"].append(np.array(task(env), np.int32))
        weights = np.array(ACTIONS[:3] if dynamic else BESIDE_DOORS if isinstance(env, GoToDoorEnv) else ACTIONS)
        actions = rng.choice(len(weights), steps, p=weights / weights.sum())
        images, places = np.zeros((steps, 7, 7, 3), np.uint8), np.zeros((steps, 3), np.int32)
        pixels, pictures = np.zeros((PICTURED, 56, 56, 3), np.uint8), np.zeros((PICTURED, env.height * 8, env.width * 8, 3), np.uint8)
        moved = np.zeros((steps, len(balls(env)) if dynamic else 0), np.int32)
        length, reward, end = steps, 0.0, 0
        for step, action in enumerate(actions):
            seen, reward, terminated, truncated, _ = env.step(int(action))
            images[step], places[step] = seen["image"], agent(env)
            if dynamic:
                moved[step] = balls(env)
            if episode < PICTURES and step < PICTURED:
                pixels[step] = env.get_frame(tile_size=8, agent_pov=True)
                pictures[step] = env.get_frame(tile_size=8, highlight=True)
            if terminated or truncated:
                length, end = step + 1, 1 if terminated else 2
                break
            assert reward == 0
        for field, value in {"actions": actions.astype(np.int32), "balls": moved, "images": images, "places": places, "lengths": length, "rewards": reward, "ends": end}.items():
            fields[field].append(value)
        if episode < PICTURES:
            fields["pixels"].append(pixels)
            fields["pictures"].append(pictures)
    arrays = {field: Array(np.stack(fields[field])) for field in ["cells", "agents", "tasks", "actions"]}
    if dynamic:
        arrays["balls"] = Array(np.stack(fields["balls"]))
    arrays |= {field: checksums(fields[field]) for field in ["images", "places", "pixels", "pictures"]}
    arrays |= {"lengths": Array(np.array(fields["lengths"], np.int32)), "ends": Array(np.array(fields["ends"], np.int32)), "rewards": Array(np.array(fields["rewards"], np.float32))}
    extents = {"rows": env.height, "columns": env.width, "time_limit": env.max_steps}
    file.add_raw({"env": name, "steps": steps, **extents, "settings": settings, **arrays})
    ends = np.array(fields["ends"])
    print(f"{name} {settings}: {(ends == 1).sum()} of {EPISODES} ended, {(np.array(fields['rewards']) > 0).sum()} with a reward, {(ends == 2).sum()} cut off")


def draw(file, name, make, count, **settings):
    """How often each code is in each cell, and the agent in each in each direction; and how many cells are empty, and have doors."""
    env = make()
    cells = env.width * env.height
    kinds, agents = np.zeros((128, cells), np.int32), np.zeros((4, cells), np.int32)
    empty, doors = np.zeros(cells + 1, np.int32), np.zeros(cells + 1, np.int32)
    for seed in range(count):
        env.reset(seed=seed)
        grid = codes(env)
        kinds[grid, np.arange(cells)] += 1
        row, column, direction = agent(env)
        agents[direction, row * env.width + column] += 1
        empty[(grid & 15 == 1).sum()] += 1
        doors[((grid & 15 == DOOR) | (grid & 15 > 10)).sum()] += 1
    by_kind = np.stack([kinds[kind::16].sum(0) for kind in range(16)])
    by_code = kinds.sum(1)
    counted = {"kinds": by_kind, "codes": by_code, "agents": agents, "empty": empty, "doors": doors}
    file.add_raw({"env": "drawn", "level": name, "count": count, "settings": settings, **{field: Array(value) for field, value in counted.items()}})
    print(f"{name} {settings}: {count} drawn")


def moves(file, count):
    """Where two balls are after a step, from one state: how often each cell."""
    env = DynamicObstaclesEnv(size=6, n_obstacles=3)
    env.reset(seed=3)
    start, places = codes(env), balls(env)
    counts = np.zeros((3, 36), np.int32)
    for seed in range(count):
        env.reset(seed=3)
        env.np_random = np.random.default_rng(seed)
        env.step(0)
        counts[np.arange(3), balls(env)] += 1
    file.add_raw({"env": "moves", "count": count, "cells": Array(start), "balls": Array(np.array(places, np.int32)), "counts": Array(counts)})


LEVELS = [
    ("empty", lambda: EmptyEnv(size=5), {"size": 5}, 60),
    ("empty", lambda: EmptyEnv(size=6, agent_start_pos=None), {"size": 6, "random": True}, 150),
    ("empty", lambda: EmptyEnv(size=16), {"size": 16}, 80),
    ("four-rooms", lambda: FourRoomsEnv(), {}, 110),
    ("door-key", lambda: DoorKeyEnv(size=5), {"size": 5}, 255),
    ("door-key", lambda: DoorKeyEnv(size=8), {"size": 8}, 120),
    ("key-corridor", lambda: KeyCorridorEnv(room_size=3, num_rows=1), {"size": 3, "rows": 1}, 275),
    ("key-corridor", lambda: KeyCorridorEnv(room_size=3, num_rows=3), {"size": 3, "rows": 3}, 120),
    ("key-corridor", lambda: KeyCorridorEnv(room_size=6, num_rows=3), {"size": 6, "rows": 3}, 120),
    ("lava-gap", lambda: LavaGapEnv(size=5), {"size": 5}, 105),
    ("lava-gap", lambda: LavaGapEnv(size=7), {"size": 7}, 60),
    ("dynamic-obstacles", lambda: DynamicObstaclesEnv(size=5, n_obstacles=2), {"size": 5, "obstacles": 2}, 60),
    ("dynamic-obstacles", lambda: DynamicObstaclesEnv(size=6, n_obstacles=3, agent_start_pos=None), {"size": 6, "obstacles": 3, "random": True}, 60),
    ("dynamic-obstacles", lambda: DynamicObstaclesEnv(size=16, n_obstacles=8), {"size": 16, "obstacles": 8}, 60),
    ("multi-room", lambda: MultiRoomEnv(2, 2, 4), {"rooms": 2, "room_size": 4}, 45),
    ("multi-room", lambda: MultiRoomEnv(6, 6), {"rooms": 6, "room_size": 10}, 125),
    ("memory", lambda: MemoryEnv(size=7), {"size": 7}, 60),
    ("memory", lambda: MemoryEnv(size=13, random_length=True), {"size": 13, "random_length": True}, 100),
    ("unlock", lambda: UnlockEnv(), {}, 300),
    ("go-to-door", lambda: GoToDoorEnv(size=5), {"size": 5}, 60),
    ("go-to-door", lambda: GoToDoorEnv(size=8), {"size": 8}, 60),
]

# Each fixed level has one grid; the others are drawn.
DRAWN = [
    ("empty", lambda: EmptyEnv(size=6, agent_start_pos=None), {"size": 6, "random": True}, 4000),
    ("four-rooms", lambda: FourRoomsEnv(), {}, 4000),
    ("door-key", lambda: DoorKeyEnv(size=6), {"size": 6}, 4000),
    ("key-corridor", lambda: KeyCorridorEnv(room_size=3, num_rows=2), {"size": 3, "rows": 2}, 4000),
    ("key-corridor", lambda: KeyCorridorEnv(room_size=4, num_rows=3), {"size": 4, "rows": 3}, 4000),
    ("lava-gap", lambda: LavaGapEnv(size=6), {"size": 6}, 2000),
    ("dynamic-obstacles", lambda: DynamicObstaclesEnv(size=6, n_obstacles=3, agent_start_pos=None), {"size": 6, "obstacles": 3, "random": True}, 4000),
    ("multi-room", lambda: MultiRoomEnv(4, 4, 5), {"rooms": 4, "room_size": 5}, 4000),
    ("multi-room", lambda: MultiRoomEnv(6, 6), {"rooms": 6, "room_size": 10}, 2000),
    ("memory", lambda: MemoryEnv(size=9), {"size": 9}, 2000),
    ("memory", lambda: MemoryEnv(size=17, random_length=True), {"size": 17, "random_length": True}, 2000),
    ("unlock", lambda: UnlockEnv(), {}, 4000),
    ("go-to-door", lambda: GoToDoorEnv(size=6), {"size": 6}, 4000),
]


if __name__ == "__main__":
    file = File("minigrid", "episodes and grids of Farama's minigrid 3.2.0", ["minigrid", "gymnasium", "numpy"])
    for name, make, settings, steps in LEVELS:
        play(file, name, make, steps, **settings)
    for name, make, settings, count in DRAWN:
        draw(file, name, make, count, **settings)
    moves(file, 4000)
    file.write()
