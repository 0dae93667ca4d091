"""The peer for boards: pgx and jumanji stepped by a random policy with automatic resets, in one jitted scan.

Observations and masks of legal actions are summed into the carry, so that none of the work can be left out. Actions are uniform, legal or not.
"""

from timing import run_random

import jax
import jax.numpy as jnp

PGX = {"connect-four": "connect_four", "tic-tac-toe": "tic_tac_toe", "othello": "othello", "2048": "2048"}


def pgx_functions(name):
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(PGX[name])
    step = auto_reset(env.step, env.init)

    def stepped(state, action, key):
        mover = state.current_player
        state = step(state, action, key)
        return state, state.observation, state.legal_action_mask, state.rewards[mover], state.terminated

    return env.init, stepped, env.num_actions


def cell(position, board):
    return jnp.zeros_like(board).at[position.row, position.col].set(True)


# The environment's class, what is seen of an observation, the actions, of each element where they differ, and the elements of an action where it has several.
JUMANJI = {
    "snake": ("Snake", lambda seen: seen.grid, 4, ()),
    "connector": ("Connector", lambda seen: seen.grid, 5, (10,)),
    "maze": ("Maze", lambda seen: jnp.stack([seen.walls, cell(seen.agent_position, seen.walls), cell(seen.target_position, seen.walls)]), 4, ()),
    "sliding-tiles": ("SlidingTilePuzzle", lambda seen: seen.puzzle, 4, ()),
    "knapsack": ("Knapsack", lambda seen: jnp.stack([seen.weights, seen.values, seen.packed_items]), 50, ()),
    "minesweeper": ("Minesweeper", lambda seen: seen.board, 10, (2,)),
    "rubiks-cube": ("RubiksCube", lambda seen: seen.cube, (6, 1, 3), (3,)),
    "travelling-salesman": ("TSP", lambda seen: jnp.concatenate([seen.coordinates, seen.trajectory[:, None]], 1), 20, ()),
    "sokoban": ("Sokoban", lambda seen: seen.grid, 4, ()),
    "graph-coloring": ("GraphColoring", lambda seen: jnp.concatenate([seen.adj_matrix, seen.colors[:, None]], 1), 20, ()),
}


def jumanji_functions(name):
    import jumanji.environments
    from jumanji.wrappers import AutoResetWrapper

    kind, seen, actions, _ = JUMANJI[name]
    settings = {}
    if name == "sokoban":
        # Its other generators download their levels: this one picks one of two.
        from jumanji.environments.routing.sokoban.generator import ToyGenerator

        settings["generator"] = ToyGenerator()
    env = AutoResetWrapper(getattr(jumanji.environments, kind)(**settings))

    def step(state, action, key):
        # jumanji keeps the key in its state.
        state, timestep = env.step(state, action)
        observation = timestep.observation
        mask = getattr(observation, "action_mask", jnp.ones((), bool))
        return state, seen(observation), mask, timestep.reward.sum(), timestep.last()

    return (lambda key: env.reset(key)[0]), step, actions


def make_steps(name, num_envs, steps):
    init, step_one, actions = jumanji_functions(name) if name in JUMANJI else pgx_functions(name)
    elements = JUMANJI[name][3] if name in JUMANJI else ()

    def step(carry, key):
        state, observations, masks, rewards, ends = carry
        action_key, env_key = jax.random.split(key)
        action = jax.random.randint(action_key, (num_envs, *elements), 0, jnp.array(actions))
        keys = jax.random.split(env_key, num_envs)
        state, observation, mask, reward, done = jax.vmap(step_one)(state, action, keys)
        return (state, observations + observation, masks + mask, rewards + reward, ends + done), None

    def run(key):
        reset_key, key = jax.random.split(key)
        state = jax.vmap(init)(jax.random.split(reset_key, num_envs))
        shapes = jax.eval_shape(jax.vmap(step_one), state, jnp.zeros((num_envs, *elements), jnp.int32), jax.random.split(key, num_envs))
        zeros = lambda shape, dtype: jnp.zeros(shape.shape, dtype)
        carry = (state, zeros(shapes[1], jnp.float32), zeros(shapes[2], jnp.int32), jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32))
        (_, observations, masks, rewards, ends), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
        return observations.sum() + masks.sum(), rewards.sum(), ends.sum()

    return run


if __name__ == "__main__":
    run_random(__doc__, "boards-", [*PGX, *JUMANJI], make_steps, 1_000, 3)
