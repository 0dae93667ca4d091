"""How a peer's program is timed: every stage alone, and each run of the compiled program."""

import argparse
import json
import os
import sys
import time

# A peer is the CPU program, also on a machine that has more, unless the bench says otherwise. This must be said before JAX is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp


def measure(function, arguments, repeats, donated=None):
    """Traces, lowers and compiles `function`, runs it `repeats` times, and returns the stages' seconds and the last result.

    CPU seconds are those of all threads, `compile_cpu_seconds` from the trace to the executable. An argument that is `donated` is what the run before returned.
    """
    clock, cpu = time.perf_counter, time.process_time
    start, spent = clock(), cpu()
    traced = jax.jit(function, donate_argnums=donated).trace(*arguments)
    trace = clock()
    lowered = traced.lower()
    lower = clock()
    compiled = lowered.compile()
    end = clock()
    compile_cpu = cpu() - spent
    runs, runs_cpu = [], []
    for _ in range(repeats):
        begin, spent = clock(), cpu()
        result = jax.block_until_ready(compiled(*arguments))
        runs.append(clock() - begin)
        runs_cpu.append(cpu() - spent)
        if donated is not None:
            arguments = (*arguments[:donated], result, *arguments[donated + 1 :])
    stages = {
        "trace_seconds": trace - start,
        "lower_seconds": lower - trace,
        "compile_seconds": end - lower,
        "compile_cpu_seconds": compile_cpu,
        "run_seconds": runs,
        "run_cpu_seconds": runs_cpu,
        "bytes": program_bytes(compiled),
    }
    # The optimized program, for the bench to look into.
    if path := os.environ.get("PODRACER_PEER_HLO"):
        module = compiled.runtime_executable().hlo_modules()[0]
        with open(path, "wb") as file:
            file.write(module.as_serialized_hlo_module_proto())
    return stages, result


def program_bytes(compiled):
    """Bytes that a run takes on its device: arguments, results and intermediate values."""
    memory = compiled.memory_analysis()
    taken = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return taken - memory.alias_size_in_bytes


def run_training(description, peer, make_train, steps, num_envs, total_timesteps):
    """The command line of a peer that trains: times `make_train(num_envs, updates)` and reports it.

    An update has `steps` steps of every environment. The numbers are the defaults of the flags.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=num_envs)
    parser.add_argument("--total-timesteps", type=int, default=total_timesteps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds, from --seed on, by jax.vmap")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rollout = steps * arguments.num_envs
    updates = arguments.total_timesteps // rollout
    if updates == 0:
        parser.error(f"--total-timesteps must be at least one rollout, {rollout}")
    train = make_train(arguments.num_envs, updates)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    key = jax.random.PRNGKey(arguments.seed)
    if arguments.seeds > 1:
        train, key = jax.vmap(train), jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    stages, (_, info) = measure(train, (key,), arguments.repeats)
    # The return of the episode each environment finished last, over the last rollout. [updates, ..] of each seed
    returns = info["returned_episode_returns"]
    last = returns[:, -1] if arguments.seeds > 1 else returns[-1]
    mean_return = float(last.mean())
    env_steps = updates * rollout * arguments.seeds
    line = {"peer": peer, "num_envs": arguments.num_envs, "seeds": arguments.seeds, "env_steps": env_steps}
    report({**line, **stages, "mean_return": mean_return})


def random_steps(env, params, num_envs, steps):
    """Steps by a random policy with automatic resets of an environment with gymnax's interface, in one scan: a function of a key.

    Observations are summed into the carry, so that none of the work can be left out.
    """
    space = env.action_space(params)

    def step(carry, key):
        state, observations, rewards, ends = carry
        action_key, env_key = jax.random.split(key)
        actions = jax.random.randint(action_key, (num_envs,), 0, space.n)
        keys = jax.random.split(env_key, num_envs)
        observation, state, reward, done, _ = jax.vmap(env.step, (0, 0, 0, None))(keys, state, actions, params)
        return (state, observations + observation, rewards + reward, ends + done), None

    def run(key):
        reset_key, key = jax.random.split(key)
        observation, state = jax.vmap(env.reset, (0, None))(jax.random.split(reset_key, num_envs), params)
        carry = (state, observation, jnp.zeros(num_envs), jnp.zeros(num_envs, jnp.int32))
        (_, observations, rewards, ends), _ = jax.lax.scan(step, carry, jax.random.split(key, steps))
        return observations.sum(), rewards.sum(), ends.sum()

    return run


def run_random(description, prefix, names, make_steps, steps, repeats):
    """The command line of a peer that steps at random: times `make_steps(name, num_envs, steps)` and reports it.

    The first of `names` and the numbers are the defaults of the flags.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--env", choices=names, default=names[0])
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=steps, help="steps of every environment")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=repeats)
    arguments = parser.parse_args()
    run = make_steps(arguments.env, arguments.num_envs, arguments.steps)
    stages, (_, rewards, ends) = measure(run, (jax.random.PRNGKey(arguments.seed),), arguments.repeats)
    env_steps = arguments.num_envs * arguments.steps
    line = {"peer": prefix + arguments.env, "num_envs": arguments.num_envs, "env_steps": env_steps, **stages}
    report({**line, "mean_return": float(rewards) / max(int(ends), 1)})


def report(line):
    """Prints one line of JSON, with the best run's speed."""
    line["steps_per_second"] = line["env_steps"] / min(line["run_seconds"])
    rounded = {k: round_all(v) for k, v in line.items()}
    json.dump(rounded, sys.stdout)
    print(flush=True)


def round_all(x):
    if isinstance(x, list):
        return [round_all(v) for v in x]
    return float(f"{x:.6g}") if isinstance(x, float) else x
