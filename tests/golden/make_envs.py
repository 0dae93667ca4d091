"""envs.json: trajectories of gymnax environments.

Every record starts from a given state and follows given actions with `step_env`, which neither resets nor looks at a key unless the record says so.
States after every step are recorded, so a test can follow the whole trajectory or check each step alone, from the recorded state before it.
"""

import dataclasses
import zlib

import gymnax
import jax
import jax.numpy as jnp
import numpy as np

from golden import Array, File

KEY = jax.random.PRNGKey(0)


def fields(tree):
    """The fields of a state or of parameters, by name."""
    return {f.name: getattr(tree, f.name) for f in dataclasses.fields(tree)}


def plain(params):
    """Parameters as numbers, and as arrays where they are arrays."""
    return {k: v if isinstance(v, int) else float(v) if np.ndim(v) == 0 else Array(v) for k, v in fields(params).items()}


def typed(state):
    """The same state with every field an array, as a scan's carry must be."""
    return jax.tree.map(jnp.asarray, state)


def follow(env, params, state, actions):
    """Steps from `state` without resets."""

    def step(state, action):
        obs, state, reward, done, _ = env.step_env(KEY, state, action, params)
        return state, (obs, reward, done, state)

    return jax.jit(lambda s, a: jax.lax.scan(step, s, a))(typed(state), jnp.asarray(actions))[1]


def record(file, name, env, params, state, actions, note, stop=True):
    """Adds a trajectory, cut after its first `done` if `stop`."""
    obs, rewards, dones, states = jax.tree.map(np.asarray, follow(env, params, state, actions))
    length = int(np.argmax(dones)) + 1 if stop and dones.any() else len(dones)
    cut = lambda x: Array(np.asarray(x)[:length])
    file.add_raw(
        {
            "env": name,
            "note": note,
            "auto_reset": False,
            "params": plain(params),
            "state": {k: Array(v) for k, v in fields(typed(state)).items()},
            "observation": Array(env.get_obs(typed(state))),
            "actions": cut(actions),
            "observations": cut(obs),
            "rewards": cut(rewards),
            "dones": cut(dones),
            "states": {k: cut(v) for k, v in fields(states).items()},
        }
    )
    return length


def reset_records(file, name, env, params):
    """Initial states of a few keys."""
    keys = jax.random.split(jax.random.PRNGKey(42), 8)
    obs, states = jax.vmap(env.reset_env, (0, None))(keys, params)
    record = {"env": name, "note": "initial states of 8 keys: reset_env(key)", "params": plain(params), "keys": Array(keys)}
    file.add_raw({**record, "observations": Array(obs), "states": {k: Array(v) for k, v in fields(states).items()}})


def auto_reset(file, name, env, params, actions, keys):
    """`step` splits its key in (step, reset) and puts a fresh state where `done`; the observation is that of the fresh state, the reward and `done` those of the old one."""
    _, state = env.reset_env(KEY, params)

    def step(state, x):
        obs, state, reward, done, _ = env.step(x[0], state, x[1], params)
        return state, (obs, reward, done, state)

    obs, rewards, dones, states = jax.lax.scan(step, typed(state), (keys, jnp.asarray(actions)))[1]
    file.add_raw(
        {
            "env": name,
            "note": "step(keys[t]) with automatic reset",
            "auto_reset": True,
            "params": plain(params),
            "state": {k: Array(v) for k, v in fields(typed(state)).items()},
            "keys": Array(keys),
            "actions": Array(actions),
            "observations": Array(obs),
            "rewards": Array(rewards),
            "dones": Array(dones),
            "states": {k: Array(v) for k, v in fields(states).items()},
        }
    )


def cartpole(file):
    name = "CartPole-v1"
    env, params = gymnax.make(name)
    rng = np.random.default_rng(1)
    start = lambda x, time=0: env.reset_env(KEY, params)[1].replace(
        x=np.float32(x[0]), x_dot=np.float32(x[1]), theta=np.float32(x[2]), theta_dot=np.float32(x[3]), time=time
    )
    reset_records(file, name, env, params)
    steps = 0
    for _ in range(5):
        steps += record(file, name, env, params, start(rng.uniform(-0.05, 0.05, 4)), rng.integers(0, 2, 200, np.int32), "random actions")
    # A hand-made controller keeps the pole up: its actions are worked out first and then recorded like any others.
    state, actions = start([0.01, -0.02, 0.03, 0.04]), []
    step = jax.jit(env.step_env)
    first = state
    for _ in range(130):
        lean = state.theta + 0.25 * state.theta_dot + 0.05 * state.x + 0.1 * state.x_dot
        actions.append(int(lean > 0))
        state = step(KEY, state, actions[-1], params)[1]
    steps += record(file, name, env, params, first, np.array(actions, np.int32), "a controller that keeps the pole up")
    record(file, name, env, params, start([0.0, 0.0, 0.01, 0.0], 490), np.array([0, 1] * 10, np.int32), "ends by the time limit at 500")
    record(file, name, env, params, start([2.3, 1.5, 0.0, 0.0]), np.ones(20, np.int32), "leaves to the right")
    record(file, name, env, params, start([-2.3, -1.5, 0.0, 0.0]), np.zeros(20, np.int32), "leaves to the left")
    record(file, name, env, params, start([0.0, 0.0, 0.2, 1.0]), np.ones(12, np.int32), "goes on after done: no reward once the state before was terminal", False)
    assert steps >= 200
    keys = jax.random.split(jax.random.PRNGKey(9), 60)
    auto_reset(file, name, env, params, rng.integers(0, 2, 60, np.int32), keys)


def pendulum(file):
    name = "Pendulum-v1"
    env, params = gymnax.make(name)
    rng = np.random.default_rng(2)
    reset_records(file, name, env, params)
    start = lambda theta, theta_dot: env.reset_env(KEY, params)[1].replace(theta=np.float32(theta), theta_dot=np.float32(theta_dot))
    torques = rng.uniform(-2.5, 2.5, 200).astype(np.float32)
    record(file, name, env, params, start(2.9, -0.4), torques, "random torques, some past the limit; ends by the time limit at 200")
    record(file, name, env, params, start(0.1, 7.9), np.full(40, 2.0, np.float32), "spins: the speed limit holds, the angle wraps only in the reward")
    record(file, name, env, params, start(-3.0, -7.9), np.full(40, -2.0, np.float32), "spins the other way")


def catch(file):
    name = "Catch-bsuite"
    env, params = gymnax.make(name)
    rng = np.random.default_rng(3)
    reset_records(file, name, env, params)
    for column in range(env.columns):
        state = env.reset_env(KEY, params)[1].replace(ball_x=np.int32(column))
        for policy in ("random", "towards the ball"):
            toward = np.array([np.sign(column - 2) + 1] * abs(column - 2) + [1] * 9, np.int32)[:9]
            actions = rng.integers(0, 3, 9, np.int32) if policy == "random" else toward
            assert record(file, name, env, params, state, actions, f"ball in column {column}, actions {policy}") == 9
    keys = jax.random.split(jax.random.PRNGKey(10), 40)
    auto_reset(file, name, env, params, rng.integers(0, 3, 40, np.int32), keys)


def more_classic_control(file):
    """The other classic control tasks, 120 steps each."""
    rng = np.random.default_rng(4)
    for name in ("MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"):
        env, params = gymnax.make(name)
        reset_records(file, name, env, params)
        _, state = env.reset_env(jax.random.PRNGKey(5), params)
        if name == "MountainCarContinuous-v0":
            random = rng.uniform(-1.2, 1.2, 120).astype(np.float32)
        else:
            random = rng.integers(0, 3, 120, np.int32)
        record(file, name, env, params, state, random, "random actions")
        if name == "MountainCar-v0":
            # Pushing the way it moves reaches the top.
            actions, s, step = [], state, jax.jit(env.step_env)
            for _ in range(200):
                actions.append(2 if s.velocity >= 0 else 0)
                s = step(KEY, s, actions[-1], params)[1]
            record(file, name, env, params, state, np.array(actions, np.int32), "pushes the way it moves and reaches the goal")


def checksums(observations):
    """The CRC-32 of each observation of zeros and ones, its elements as bytes in row-major order."""
    return Array(np.array([zlib.crc32(x.astype(np.uint8).tobytes()) for x in np.asarray(observations)], np.uint32))


def from_keys(file, name, env, params, seed, actions, note, summed=False):
    """A trajectory with automatic resets from `split(PRNGKey(seed), 1 + steps)`: the first key resets, the others step.

    `env.step` observes the first state of the next episode where one ends; so does this. `summed` records observations of zeros and
    ones by their checksums.
    """
    keys = jax.random.split(jax.random.PRNGKey(seed), len(actions) + 1)
    first, state = env.reset_env(keys[0], params)

    def step(state, x):
        obs, state, reward, done, _ = env.step(x[0], state, x[1], params)
        return state, (obs, jnp.float32(reward), done)

    obs, rewards, dones = jax.lax.scan(step, typed(state), (keys[1:], jnp.asarray(actions)))[1]
    show = checksums if summed else Array
    record = {"env": name, "note": note, "auto_reset": True, "params": plain(params), "seed": seed, "actions": Array(actions)}
    file.add_raw({**record, "observation": show(first[None]), "observations": show(obs), "rewards": Array(rewards), "dones": Array(dones)})


def bsuite(file):
    """The tasks of bsuite that are in gymnax, with the settings of `note`."""
    rng = np.random.default_rng(5)
    make = lambda name, **settings: (name, *gymnax.make(name, **settings))
    actions = lambda steps, n=2: rng.integers(0, n, steps, np.int32)
    name, env, params = make("DeepSea-bsuite", size=5)
    from_keys(file, name, env, params, 20, np.array([1] * 5 + [1, 1, 1, 1, 0] + list(actions(30)), np.int32), "deterministic", True)
    name, env, params = make("DeepSea-bsuite", size=4)
    env.action_mapping = jax.random.bernoulli(jax.random.PRNGKey(3), 0.5, (4, 4)).astype(jnp.float32)
    from_keys(file, name, env, params.replace(deterministic=False), 21, actions(80), "mapping of seed 3; no noise in the rewards, no cost of steps that fail", True)
    name, env, params = make("UmbrellaChain-bsuite", n_distractor=3)
    from_keys(file, name, env, params, 22, actions(50), "3 distractors")
    name, env, params = make("MemoryChain-bsuite")
    from_keys(file, name, env, params, 23, actions(30), "1 bit")
    name, env, params = make("MemoryChain-bsuite", num_bits=3)
    # gymnax's own get_obs takes one bit only; the context is shown as bsuite does.
    env.get_obs = lambda state, params, key=None: jnp.concatenate(
        [
            jnp.array([1 - state.time / params.memory_length, jnp.where(state.time == params.memory_length - 1, state.query, 0)]),
            jnp.where(state.time == 0, 2 * state.context - 1, 0).astype(jnp.float32),
        ]
    )
    from_keys(file, name, env, params, 24, actions(30), "3 bits")
    name, env, params = make("DiscountingChain-bsuite", mapping_seed=3)
    from_keys(file, name, env, params, 25, np.array([3] + [0] * 99 + [1] * 10, np.int32), "choice 3 is the best")
    name, env, params = make("SimpleBandit-bsuite")
    # gymnax gives the state's fields by position, and `time` comes first.
    rewards = jax.vmap(lambda key: env.reset_env(key, params)[1].time)(jax.vmap(jax.random.PRNGKey)(jnp.arange(4)))
    file.add_raw({"env": name, "note": "rewards of the arms for the keys of seeds 0 to 3", "rewards": Array(rewards)})


if __name__ == "__main__":
    file = File("envs", "trajectories of gymnax environments", ["gymnax", "jax", "jaxlib", "numpy"])
    for part in (cartpole, pendulum, catch, more_classic_control, bsuite):
        part(file)
    file.write()
