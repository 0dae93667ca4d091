"""craftax.json: games of Craftax-Classic, by keys and actions.

All chance comes of keys, but for places, which the package draws by sums of floats: the number of the cell that was drawn is recorded, among those that it was drawn of.
What happens is recorded by a CRC-32 of all numbers of so many steps, among them weighted sums of the map and of what is seen. Some games begin with items in hand, in a workshop, at night, or in a tunnel beside a skeleton.

Needs craftax (requirements-craftax.txt).
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from craftax.craftax_classic import game_logic
from craftax.craftax_classic.constants import BlockType
from craftax.craftax_classic.envs.craftax_state import EnvParams, StaticEnvParams
from craftax.craftax_classic.game_logic import craftax_step, is_game_over
from craftax.craftax_classic.renderer import render_craftax_symbolic
from craftax.craftax_classic.world_gen import generate_world

from golden import Array, File

GAMES, STEPS = 20, 1000
# Steps of a checksum.
CHUNK = 20
PARAMS, STATIC = EnvParams(), StaticEnvParams()
LEFT, RIGHT, UP, DOWN, DO = 1, 2, 3, 4, 5

drawn = []
choice = jax.random.choice


def recorded_choice(key, a, shape=(), replace=True, p=None, axis=0):
    out = choice(key, a, shape, replace, p, axis)
    if a.shape == (64 * 64,):
        # The cell's number among those that may be drawn, and their number.
        cell = out.reshape(())
        drawn.append(jnp.stack([(p[...] > 0)[jnp.arange(4096)].astype(int).cumsum()[cell] - 1, (p > 0).sum()]))
    return out


jax.random.choice = recorded_choice

born = []
spawn = game_logic.spawn_mobs


def recorded_spawn(state, *more):
    after = spawn(state, *more)
    before = [state.cows, state.zombies, state.skeletons]
    born.append(jnp.stack([(now.mask & ~then.mask).any() for now, then in zip([after.cows, after.zombies, after.skeletons], before)]))
    return after


game_logic.spawn_mobs = recorded_spawn


def world(key):
    drawn.clear()
    return generate_world(key, PARAMS, STATIC), drawn.pop()


def numbers(state):
    """All of a state that is not on the map, as whole numbers."""
    halves = [state.player_recover, state.player_hunger, state.player_thirst, state.player_fatigue]
    parts = [*state.player_position, state.player_direction, state.player_health, state.player_food, state.player_drink, state.player_energy]
    parts += [jnp.asarray(2 * x).astype(int) for x in halves] + [state.is_sleeping, *jax.tree.leaves(inventory(state.inventory))]
    for mobs in [state.zombies, state.cows, state.skeletons]:
        parts += [mobs.position[:, 0], mobs.position[:, 1], mobs.health, mobs.mask, mobs.attack_cooldown]
    parts += [state.arrows.mask, *(state.arrows.mask * x for x in [*state.arrows.position.T, *state.arrow_directions.T])]
    parts += [*state.growing_plants_positions.T, state.growing_plants_age, state.growing_plants_mask, state.achievements, state.timestep]
    seen = render_craftax_symbolic(state)
    shown = jax.lax.bitcast_convert_type(jnp.delete(seen[1323:], 20).astype(jnp.float32), jnp.int32)
    parts += [mixed(state.map), mixed(state.mob_map), mixed(seen[:1323]), shown]
    return jnp.concatenate([jnp.atleast_1d(jnp.asarray(part)).astype(jnp.int32) for part in parts])


def mixed(values):
    """A weighted sum of whole numbers."""
    number = jnp.arange(values.size)
    return (values.flatten().astype(jnp.int32) * (number * 7919 % 65521)).sum()


def inventory(i):
    return [i.wood, i.stone, i.coal, i.iron, i.diamond, i.sapling, i.wood_pickaxe, i.stone_pickaxe, i.iron_pickaxe, i.wood_sword, i.stone_sword, i.iron_sword]


# What stands around the player at the start of some games, by rows and columns from it.
WORKSHOP = [(-1, -1, "CRAFTING_TABLE"), (-1, 1, "FURNACE"), (-1, 0, "COAL"), (1, 0, "IRON"), (0, -1, "DIAMOND"), (0, 1, "PLANT")]


def begun(state, start):
    """The state with what a game begins with."""
    (row, column), items, workshop, skeleton = start["place"], start["items"], start["workshop"], start["skeleton"]
    cells = state.map
    for down, right, block in WORKSHOP:
        place = row + down, column + right
        cells = cells.at[place].set(jnp.where(workshop, BlockType[block].value, cells[place]))
    right = start["place"] + jnp.array([0, 1])
    return state.replace(
        map=cells,
        mob_map=state.mob_map.at[row, column + 1].set(skeleton),
        skeletons=state.skeletons.replace(
            position=state.skeletons.position.at[0].set(jnp.where(skeleton, right, 0)),
            health=state.skeletons.health.at[0].set(jnp.where(skeleton, 3, 0)),
            mask=state.skeletons.mask.at[0].set(skeleton),
        ),
        player_position=start["place"],
        inventory=state.inventory.replace(**{name: items for name in vars(state.inventory)}),
        player_energy=start["energy"],
        timestep=start["time"],
        growing_plants_positions=state.growing_plants_positions.at[0].set(jnp.where(workshop, right, 0)),
        growing_plants_age=state.growing_plants_age.at[0].set(jnp.where(workshop, 580, 0)),
        growing_plants_mask=state.growing_plants_mask.at[0].set(workshop),
    )


def play(game, start, actions):
    first, diamond = world(jax.random.fold_in(jax.random.PRNGKey(game + 2000), 0))

    def step(state, given):
        time, action = given
        drawn.clear()
        after, reward = craftax_step(jax.random.fold_in(jax.random.PRNGKey(game), time), state, action, PARAMS, STATIC)
        births = jnp.where(born[-1][:, None], jnp.stack(drawn), 0)
        done = is_game_over(after, PARAMS)
        light = render_craftax_symbolic(after)[1343]
        out = dict(births=births, reward=reward, done=done, light=light, achievements=after.achievements, numbers=numbers(after))
        new, out["diamond"] = world(jax.random.fold_in(jax.random.PRNGKey(game + 2000), time + 1))
        return jax.tree.map(lambda x, y: jnp.where(done, x, y), new, after), out

    state, out = jax.lax.scan(step, begun(first, start), (jnp.arange(STEPS), actions))
    return first.map, diamond, out


def starts(maps):
    """What games begin with, and their actions."""
    rng = np.random.default_rng(0)
    all_actions, all_starts = [], []
    for game in range(GAMES):
        actions, last = [], 3
        for _ in range(STEPS):
            kind = rng.choice(4, p=[0.5, 0.28, 0.2, 0.02])
            if kind == 0:
                last = last if rng.random() < 0.6 else int(rng.integers(1, 5))
                actions.append(last)
            else:
                actions.append(DO if kind == 1 else int(rng.integers(7, 17)) if kind == 2 else int(rng.choice([0, 6])))
        workshop, tunnel = 6 <= game < 13, game >= 13
        if workshop:
            # To hit what is around, make all tools, and eat the plant when it is ripe.
            actions[:24] = [UP, DO, LEFT, DO, DOWN, DO, *rng.permutation(np.arange(11, 17)), RIGHT, DO, DO, *[0] * 6, DO, 0, DO]
        if tunnel:
            actions[:4] = [RIGHT, DO, DO, DO]
        place = np.array([32, 32])
        if tunnel:
            free = np.argwhere(np.asarray(maps[game]) == BlockType.PATH.value)
            middle = free[np.abs(free - 32).sum(1).argsort()]
            place = middle[rng.integers(len(middle) // 2)]
        items = 0 if game < 6 else [9, 1, 2, 5][game % 4]
        energy, time = (3, 170) if game % 3 == 0 else (9, 0)
        all_starts.append({"place": place, "items": items, "energy": energy, "time": time, "workshop": workshop, "skeleton": tunnel})
        all_actions.append(actions)
    return {field: np.array([start[field] for start in all_starts]) for field in all_starts[0]}, np.array(all_actions, np.int32)


def main():
    first = jax.jit(lambda game: world(jax.random.fold_in(jax.random.PRNGKey(game + 2000), 0))[0].map)
    start, actions = starts([first(game) for game in range(GAMES)])
    # One after another: in a batch, the worlds from the ninth on differ from those made alone, in jaxlib 0.10.2.
    played, all_out = jax.jit(play), []
    for game in range(GAMES):
        _, diamond, out = played(game, {field: jnp.asarray(value[game]) for field, value in start.items()}, jnp.asarray(actions[game]))
        all_out.append(out | {"first_diamond": diamond})
    out = {field: np.stack([np.asarray(one[field]) for one in all_out]) for field in all_out[0]}

    chunks = out["numbers"].astype(np.int32).reshape(GAMES * STEPS // CHUNK, -1)
    checksums = Array(np.array([zlib.crc32(chunk.tobytes()) for chunk in chunks], np.uint32))
    diamonds = np.concatenate([out["first_diamond"][:, None], out["diamond"]], 1)
    # Only what came to be: worlds after an end, and places of those that were born.
    worlds = [[game, time, *diamonds[game, time]] for game in range(GAMES) for time in range(STEPS + 1) if time == 0 or out["done"][game, time - 1]]
    births = [[game, time, kind, *out["births"][game, time, kind]] for game, time, kind in np.argwhere(out["births"][..., 1] > 0)]
    fields = {"worlds": Array(np.array(worlds, np.int32)), "births": Array(np.array(births, np.int32))}
    fields |= {field: Array(value.astype(np.int32)) for field, value in start.items()}
    fields |= {"actions": Array(actions), "rewards": Array(np.rint(out["reward"] * 10).astype(np.int32)), "ends": Array(out["done"].astype(np.int32))}
    fields |= {"light": Array(out["light"][0, :320].astype(np.float32))}
    fields |= {"numbers": checksums}
    file = File("craftax", "games of Craftax-Classic in craftax 1.6.1", ["craftax", "jax", "numpy"])
    file.add_raw({"env": "craftax-classic", "games": GAMES, "steps": STEPS, **fields})
    file.write()
    reached = np.diff(out["achievements"].astype(int), axis=1, prepend=0) > 0
    print(f"{out['done'].sum()} ends, {len(births)} places; steps that reached each achievement: {reached.sum((0, 1)).tolist()}")


if __name__ == "__main__":
    main()
