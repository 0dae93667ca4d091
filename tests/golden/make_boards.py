"""boards.json: games of pgx's and jumanji's boards.

A record has some games of one environment, played side by side without resets: a game that is over is stepped further, as a search does.
Observations and masks, which are zeros and ones, are recorded by the CRC-32 of their elements as bytes in row-major order.

Needs pgx and jumanji (requirements-boards.txt).
"""

import zlib

import jax
import jax.numpy as jnp
import jumanji.environments.routing.snake as snakes
import numpy as np
import pgx
from pgx import play2048

from golden import Array, File


def checksums(x, axes):
    """The CRC-32 of each slice over the axes after the first `axes`."""
    x = np.asarray(x).astype(np.uint8)
    flat = x.reshape(-1, int(np.prod(x.shape[axes:])))
    return Array(np.array([zlib.crc32(one.tobytes()) for one in flat], np.uint32).reshape(x.shape[:axes]))


def choose(key, good, bad, strays):
    """A random action of the mask `good`; with probability `strays` one of the mask `bad`, if there is one."""
    draw, stray, other = jax.random.split(key, 3)
    among = lambda key, mask: jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))
    strayed = jax.random.bernoulli(stray, strays) & bad.any()
    return jnp.where(strayed, among(other, jnp.where(bad.any(), bad, True)), among(draw, good))


def lasting(env, state):
    """The legal actions that do not end the game, or all legal ones if all of them do."""
    legal = state.legal_action_mask
    ends = jax.vmap(lambda action: env.step(state, action).terminated)(jnp.arange(legal.shape[0]))
    return jnp.where((legal & ~ends).any(), legal & ~ends, legal)


def two_players(file, name, colour, seed, games, steps, strays, note, long=False):
    """Games of two players: rewards are those of the player who moved, and `players` is whose turn it is after a step."""
    env = pgx.make(name)

    def game(key):
        init, key = jax.random.split(key)
        first = env.init(init)

        def step(state, key):
            legal = state.legal_action_mask
            action = choose(key, lasting(env, state) if long else legal, ~legal, strays)
            after = env.step(state, action)
            return after, (action, after.observation, after.legal_action_mask, after.rewards[state.current_player], after.terminated, colour(after))

        _, steps_ = jax.lax.scan(step, first, jax.random.split(key, steps))
        return (first.observation, first.legal_action_mask), steps_

    first, (actions, observations, legal, rewards, terminated, players) = jax.jit(jax.vmap(game))(jax.random.split(jax.random.PRNGKey(seed), games))
    file.add_raw(
        {
            "env": name,
            "note": note,
            "actions": Array(np.asarray(actions, np.int32)),
            "observation": checksums(first[0], 1),
            "legal": checksums(first[1], 1),
            "observations": checksums(observations, 2),
            "legals": checksums(legal, 2),
            "rewards": Array(np.asarray(rewards, np.int32)),
            "terminated": Array(terminated),
            "players": Array(np.asarray(players, np.int32)),
        }
    )
    outcomes = np.asarray(rewards).sum(1)
    print(f"{name}, {note}: {games} games, {int(terminated[:, -1].sum())} over; {[int((outcomes == r).sum()) for r in (1, 0, -1)]} won, drawn and illegal")


def game_2048(file, seed, games, steps, strays, note, preferred=False, start=None):
    """Games of 2048 with the outcome of chance of each step: cell, and 16 more for a 4. `boards` are the exponents at the start."""
    env = pgx.make("2048")

    def after_slide(board, action):
        turned = jnp.stack([jnp.rot90(board, k) for k in range(4)])[action]
        slid, _ = jax.vmap(play2048._slide_and_merge)(turned)
        return jnp.stack([jnp.rot90(slid, -k) for k in range(4)])[action]

    def game(key):
        init, begin, key = jax.random.split(key, 3)
        first = env.init(init)
        if start:
            board = start(begin)
            first = first.replace(_board=board, legal_action_mask=play2048._legal_action_mask(board.reshape(4, 4)))
            first = first.replace(observation=env.observe(first))

        def step(state, key):
            act, chance = jax.random.split(key)
            legal = state.legal_action_mask
            # Left and up before right and down: tiles gather in a corner, and grow.
            favourite = jnp.arange(4) == jnp.argmax(legal)
            action = choose(act, favourite if preferred else legal, ~legal, strays)
            after = env.step(state, action, chance)
            differs = after_slide(state._board.reshape(4, 4), action).ravel() != after._board
            cell = jnp.argmax(differs)
            outcome = cell + 16 * (after._board[cell] - 1)
            return after, (action, jnp.where(state.terminated, 0, outcome), after.observation, after.legal_action_mask, after.rewards[0], after.terminated, after._board.max())

        _, steps_ = jax.lax.scan(step, first, jax.random.split(key, steps))
        return (first._board, first.observation, first.legal_action_mask), steps_

    first, steps_ = jax.jit(jax.vmap(game))(jax.random.split(jax.random.PRNGKey(seed), games))
    actions, outcomes, observations, legal, rewards, terminated, greatest = steps_
    file.add_raw(
        {
            "env": "2048",
            "note": note,
            "boards": Array(np.asarray(first[0], np.int32)),
            "actions": Array(np.asarray(actions, np.int32)),
            "outcomes": Array(np.asarray(outcomes, np.int32)),
            "observation": checksums(first[1], 1),
            "legal": checksums(first[2], 1),
            "observations": checksums(observations, 2),
            "legals": checksums(legal, 2),
            "rewards": Array(np.asarray(rewards, np.int32)),
            "terminated": Array(terminated),
        }
    )
    illegal = int((np.asarray(rewards) < 0).sum())
    print(f"2048, {note}: {games} games, {int(terminated[:, -1].sum())} over, {illegal} by illegal actions; greatest tile 2^{int(greatest.max())}")


def float_checksums(x, axes):
    """The CRC-32 of each slice over the axes after the first `axes`: of its elements times 1024 as whole numbers, two bytes each.

    The last digits of XLA's quotients depend on the program. No length of a snake makes a quotient that is halfway between two such numbers.
    """
    x = np.rint(np.asarray(x, np.float64) * 1024).astype("<u2")
    flat = x.reshape(-1, int(np.prod(x.shape[axes:])))
    return Array(np.array([zlib.crc32(one.tobytes()) for one in flat], np.uint32).reshape(x.shape[:axes]))


def towards_fruit(env, state):
    """Actions that come nearer to the fruit, if they are legal; otherwise all that are."""
    legal = state.action_mask
    rows, columns = state.fruit_position.row - state.head_position.row, state.fruit_position.col - state.head_position.col
    nearer = legal & jnp.array([rows < 0, columns > 0, rows > 0, columns < 0])
    good = jnp.where(nearer.any(), nearer, legal)
    return jnp.where(good.any(), good, True)


def around(env, state):
    """The way around a board with an even number of rows, which visits every cell."""
    row, column = state.head_position.row, state.head_position.col
    rows, columns = env.num_rows, env.num_cols
    even = jnp.where(column == columns - 1, 2, 1)
    odd = jnp.where((column == 1) & (row < rows - 1), 2, 3)
    action = jnp.where((column == 0) & (row > 0), 0, jnp.where(row % 2 == 0, even, odd))
    return jnp.arange(4) == action


def snake(file, seed, games, steps, strays, policy, note, **settings):
    """Games of Snake: where the head and the fruit are at first, and `fruits` after each step. What follows the end of a game is 0."""
    env = snakes.Snake(**settings)
    # A snake that can go nowhere ends its game by any action.
    mask = lambda state: jnp.where(state.action_mask.any(), state.action_mask, True)
    cell = lambda state: state.fruit_position.row * env.num_cols + state.fruit_position.col

    def game(key):
        init, key = jax.random.split(key)
        first, begun = env.reset(init)

        def step(carry, key):
            state, over = carry
            action = choose(key, policy(env, state), ~state.action_mask, strays)
            after, timestep = env.step(state, action)
            done = timestep.last()
            # Steps after the end are left out of the record: there the head may be anywhere.
            return (jax.tree.map(lambda a, b: jnp.where(over, a, b), state, after), over | done), (
                action, cell(after), timestep.observation.grid, mask(after), timestep.reward, done, over, after.length)

        _, steps_ = jax.lax.scan(step, (first, False), jax.random.split(key, steps))
        return (first.head_position.row, first.head_position.col, cell(first), begun.observation.grid, mask(first)), steps_

    first, steps_ = jax.jit(jax.vmap(game))(jax.random.split(jax.random.PRNGKey(seed), games))
    actions, fruits, grids, masks, rewards, done, over, lengths = [np.asarray(x) for x in steps_]
    kept = lambda array: Array(np.where(over, 0, array.value).astype(array.value.dtype))
    file.add_raw(
        {
            "env": "snake",
            "note": note,
            "settings": settings,
            "rows": Array(np.asarray(first[0], np.int32)),
            "columns": Array(np.asarray(first[1], np.int32)),
            "fruit": Array(np.asarray(first[2], np.int32)),
            "actions": Array(actions.astype(np.int32)),
            "fruits": kept(Array(fruits.astype(np.int32))),
            "observation": float_checksums(first[3], 1),
            "legal": checksums(first[4], 1),
            "observations": kept(float_checksums(grids, 2)),
            "legals": kept(checksums(masks, 2)),
            "rewards": kept(Array(rewards.astype(np.int32))),
            "dones": Array(done & ~over),
            "over": Array(over),
        }
    )
    longest = int(np.where(over, 0, lengths).max())
    print(f"snake, {note}: {games} games, {int((done & ~over).sum())} over, longest snake {longest}")


if __name__ == "__main__":
    file = File("boards", "games of pgx's and jumanji's boards", ["pgx", "jumanji", "jax", "jaxlib", "numpy"])
    colour = lambda state: state._x.color
    two_players(file, "tic_tac_toe", colour, 1, 96, 11, 0.0, "legal actions")
    two_players(file, "tic_tac_toe", colour, 2, 48, 11, 0.1, "some illegal actions")
    two_players(file, "connect_four", colour, 3, 40, 43, 0.0, "legal actions")
    two_players(file, "connect_four", colour, 4, 40, 43, 0.0, "games that last", long=True)
    two_players(file, "connect_four", colour, 5, 24, 43, 0.05, "games that last, some illegal actions", long=True)
    turn = lambda state: state._x.turn
    two_players(file, "othello", turn, 11, 16, 66, 0.0, "legal actions")
    two_players(file, "othello", turn, 12, 48, 20, 0.08, "some illegal actions")
    game_2048(file, 6, 12, 80, 0.0, "legal actions")
    game_2048(file, 7, 6, 200, 0.0, "left and up before right and down", preferred=True)
    great = lambda key: jnp.clip(jax.random.randint(key, (16,), -3, 18), 0)
    game_2048(file, 8, 32, 20, 0.0, "great tiles", start=great)
    few = lambda key: jax.random.randint(key, (16,), 0, 4)
    game_2048(file, 9, 64, 16, 0.0, "many slides that merge", start=few)
    stuck = lambda key: jax.random.permutation(key, jnp.arange(1, 17)).reshape(4, 4).at[:, 0].set(jax.random.randint(key, (4,), 0, 3)).ravel()
    game_2048(file, 10, 48, 12, 0.3, "some illegal actions", start=stuck)
    snake(file, 13, 12, 60, 0.01, towards_fruit, "towards the fruit")
    snake(file, 14, 12, 20, 0.3, towards_fruit, "illegal actions", num_rows=3, num_cols=4)
    snake(file, 15, 4, 60, 0.0, towards_fruit, "on a small board", num_rows=4, num_cols=5)
    snake(file, 16, 8, 60, 0.0, around, "the board is filled", num_rows=2, num_cols=4)
    snake(file, 17, 4, 12, 0.0, towards_fruit, "cut off after 10 steps", time_limit=10)
    file.write()
