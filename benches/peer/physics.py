"""The peers for physics: Gymnasium's MuJoCo tasks under a random policy with automatic resets.

`--side` chooses one of three:
- `rollout`: MuJoCo's C in threads, by `mujoco.rollout`, with Gymnasium's model and initial states. Neither observations nor rewards
  are computed.
- `envpool`: EnvPool's tasks in batch mode, version 5, observations and rewards included. Its steps after the end of an episode reset
  the episode, and are not counted.
- `mjx`: `jax.vmap` of MJX's step in one jitted scan, with iterations of the solver and of its line search cut to `--iterations`.
  Neither observations nor rewards are computed. A model that asks for PGS is solved by Newton's method.

Actions are uniform between their bounds. The first run is not measured: it brings the robots from their initial states to those of
a random policy.
"""

import argparse
import resource
import time
from importlib.metadata import version

import numpy as np

TASKS = {
    "half-cheetah": "HalfCheetah-v5",
    "hopper": "Hopper-v5",
    "walker2d": "Walker2d-v5",
    "swimmer": "Swimmer-v5",
    "reacher": "Reacher-v5",
    "inverted-pendulum": "InvertedPendulum-v5",
    "inverted-double-pendulum": "InvertedDoublePendulum-v5",
    "ant": "Ant-v5",
    "humanoid": "Humanoid-v5",
    "humanoid-standup": "HumanoidStandup-v5",
}
# Steps of every environment between two looks of `rollout` at which episodes have ended.
BLOCK = 8


def terminated(task, qpos, qvel, xp):
    """True if a state ends an episode of Gymnasium's task. `xp` is NumPy or jax.numpy. qpos [N, nq], qvel [N, nv]; bool [N]"""
    inside = lambda x, low, high: (low < x) & (x < high)
    match task:
        case "hopper":
            rest = xp.concatenate([qpos[:, 2:], qvel], 1)
            healthy = (qpos[:, 1] > 0.7) & inside(qpos[:, 2], -0.2, 0.2) & inside(rest, -100, 100).all(1)
        case "walker2d":
            healthy = inside(qpos[:, 1], 0.8, 2.0) & inside(qpos[:, 2], -1.0, 1.0)
        case "ant":
            healthy = xp.isfinite(qpos).all(1) & xp.isfinite(qvel).all(1) & (0.2 <= qpos[:, 2]) & (qpos[:, 2] <= 1.0)
        case "humanoid":
            healthy = inside(qpos[:, 2], 1.0, 2.0)
        case "inverted-pendulum":
            healthy = xp.abs(qpos[:, 1]) <= 0.2
        case "inverted-double-pendulum":
            # Both poles are 0.6 m long.
            healthy = 0.6 * (xp.cos(qpos[:, 1]) + xp.cos(qpos[:, 1] + qpos[:, 2])) > 1.0
        case _:
            healthy = xp.ones(len(qpos), bool)
    return ~healthy


def initial_states(task, count, seed):
    """Gymnasium's environment of a task, and positions [N, nq] and velocities [N, nv] of resets."""
    import gymnasium

    env = gymnasium.make(TASKS[task]).unwrapped
    env.reset(seed=seed)
    states = []
    for _ in range(count):
        env.reset()
        states.append(np.concatenate([env.data.qpos, env.data.qvel]))
    return env, *np.split(np.array(states), [env.model.nq], 1)


def timed(run, repeats):
    """Seconds, CPU seconds and environment steps of runs after the first."""
    runs, cpu, steps = [], [], []
    for number in range(repeats + 1):
        begun, spent = time.perf_counter(), time.process_time()
        made = run()
        if number > 0:
            runs.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - spent)
            steps.append(made)
    return {"env_steps": sum(steps) / len(steps), "run_seconds": runs, "run_cpu_seconds": cpu}


def rollout(arguments):
    import mujoco
    from mujoco.rollout import Rollout

    count, rng = arguments.num_envs, np.random.default_rng(arguments.seed)
    env, qpos, qvel = initial_states(arguments.env, count, arguments.seed)
    model, skip = env.model, env.frame_skip
    low, high = model.actuator_ctrlrange.T
    # The state is the time, the positions and the velocities.
    starts = np.concatenate([np.zeros((count, 1)), qpos, qvel], 1)
    assert starts.shape[1] == mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, blocks = starts.copy(), -(-arguments.steps // BLOCK)
    data = [mujoco.MjData(model) for _ in range(arguments.threads)]
    pool = Rollout(nthread=arguments.threads if arguments.threads > 1 else 0)
    # `rollout` fills these again in each block.
    every = np.empty((count, BLOCK * skip, starts.shape[1]))
    sensors = np.empty((count, BLOCK * skip, model.nsensordata))

    def run():
        nonlocal states
        for _ in range(blocks):
            actions = rng.uniform(low, high, (count, BLOCK, model.nu)).repeat(skip, 1)
            pool.rollout(model, data, states, actions, state=every, sensordata=sensors)
            after = every[:, -1]
            ends = terminated(arguments.env, *np.split(after[:, 1:], [model.nq], 1), np)
            states = np.where(ends[:, None], starts[rng.integers(0, count, count)], after)
        return blocks * BLOCK * count

    return {"peer": "mujoco-rollout", "version": mujoco.__version__, "threads": arguments.threads, **timed(run, arguments.repeats)}


def envpool(arguments):
    import envpool

    count, rng = arguments.num_envs, np.random.default_rng(arguments.seed)
    sizes = {"num_envs": count, "batch_size": count, "num_threads": arguments.threads}
    env = envpool.make_gymnasium(TASKS[arguments.env], seed=arguments.seed, **sizes)
    low, high, shape = env.action_space.low, env.action_space.high, (count, *env.action_space.shape)
    env.reset()
    ended = np.zeros(count, bool)

    def run():
        nonlocal ended
        made = 0
        for _ in range(arguments.steps):
            made += count - ended.sum()
            _, _, ends, limits, _ = env.step(rng.uniform(low, high, shape))
            ended = ends | limits
        return int(made)

    return {"peer": "envpool", "version": envpool.__version__, "threads": arguments.threads, **timed(run, arguments.repeats)}


def mjx(arguments):
    from timing import measure

    import jax
    import jax.numpy as jnp
    import mujoco
    from mujoco import mjx

    if arguments.cache:
        jax.config.update("jax_compilation_cache_dir", arguments.cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    count = arguments.num_envs
    env, qpos, qvel = initial_states(arguments.env, count, arguments.seed)
    written, skip = env.model, env.frame_skip
    low, high = jnp.array(written.actuator_ctrlrange, jnp.float32).T
    written.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    written.opt.iterations = written.opt.ls_iterations = arguments.iterations
    model = mjx.put_model(written)
    qpos, qvel = jnp.array(qpos, jnp.float32), jnp.array(qvel, jnp.float32)
    starts = jax.vmap(lambda qpos, qvel: mjx.make_data(model).replace(qpos=qpos, qvel=qvel))(qpos, qvel)

    def substeps(data, action):
        return jax.lax.scan(lambda data, _: (mjx.step(model, data), None), data.replace(ctrl=action), None, skip)[0]

    def step(data, key):
        action_key, reset_key = jax.random.split(key)
        data = jax.vmap(substeps)(data, jax.random.uniform(action_key, (count, written.nu), jnp.float32, low, high))
        ends = terminated(arguments.env, data.qpos, data.qvel, jnp)[:, None]
        chosen = jax.random.randint(reset_key, (count,), 0, count)
        data = data.replace(qpos=jnp.where(ends, qpos[chosen], data.qpos), qvel=jnp.where(ends, qvel[chosen], data.qvel))
        return data, None

    def run(carry):
        data, key = carry
        key, steps_key = jax.random.split(key)
        return jax.lax.scan(step, data, jax.random.split(steps_key, arguments.steps))[0], key

    stages, (data, _) = measure(run, ((starts, jax.random.PRNGKey(arguments.seed)),), arguments.repeats + 1, donated=0)
    assert np.isfinite(data.qpos).all(), "the positions are not finite"
    for runs in ("run_seconds", "run_cpu_seconds"):
        del stages[runs][0]
    about = {"peer": "mjx", "version": version("mujoco-mjx"), "iterations": arguments.iterations}
    return {**about, "env_steps": count * arguments.steps, **stages}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", choices=["rollout", "envpool", "mjx"], required=True)
    parser.add_argument("--env", choices=[*TASKS], default="half-cheetah")
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=8, help="steps of every environment in a run")
    parser.add_argument("--threads", type=int, default=1, help="of rollout and envpool")
    parser.add_argument("--iterations", type=int, default=3, help="of mjx's solver, and of its line search")
    parser.add_argument("--cache", help="folder with executables of mjx")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    line = {"rollout": rollout, "envpool": envpool, "mjx": mjx}[arguments.side](arguments)
    # In bytes, before an import of JAX that only the report needs.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    from timing import report

    report({**line, "env": arguments.env, "num_envs": arguments.num_envs, "peak_bytes": peak})
