"""Cleanba's schedule (Huang et al., "Cleanba", 2023), for the peers of Sebulba.

Actor threads step their environments on the host and act on one device, `jax.device_put` sends a whole trajectory to the learner's device, the learner's thread makes one update of the trajectories of
all threads and sends the parameters back. A thread waits for the parameters of the update before the last (concurrency), so that acting and learning overlap.
"""

import argparse
import os
import queue
import threading
import time
from typing import Any, Callable, NamedTuple

# Two devices, as ours has. This must be said before JAX is imported.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

from timing import report

import jax
import jax.numpy as jnp
import numpy as np

from ppo_cartpole import Transition


class Task(NamedTuple):
    """What is scheduled."""

    # So many environments of a thread, Gymnasium's vector environments.
    make_envs: Callable
    # Parameters, observations and key to action, value (or nothing) and log-probability.
    act: Callable
    # The learner (a TrainState), the payloads of all threads, and a key to the learner, losses and a key.
    update: Callable
    learner: Any


def parse(description, steps, **defaults):
    """The arguments of a peer. `defaults` are those that it has its own values of, by name; `num_envs` is of each thread."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--total-timesteps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone-seconds", type=float, default=0.0, help="how long each part is timed by itself")
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    arguments = parser.parse_args()
    arguments.batch_size = arguments.num_envs * arguments.threads * arguments.unroll
    arguments.updates = arguments.total_timesteps // arguments.batch_size
    if arguments.updates < 10:
        parser.error(f"--total-timesteps must be at least ten updates, {10 * arguments.batch_size}")
    return arguments


def programs(task):
    """The jitted programs of an actor."""

    @jax.jit
    def act(params, observation, key):
        key, action_key = jax.random.split(key)
        action, value, log_prob = task.act(params, observation, action_key)
        return observation, action, log_prob, value, key

    @jax.jit
    def stack(steps):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)

    return act, stack


def actor(index, arguments, task, parameters, trajectories, devices, returns):
    """Acts for all updates."""
    envs = task.make_envs(arguments.num_envs)
    act, stack = programs(task)
    acting, learning = devices
    key = jax.device_put(jax.random.PRNGKey(arguments.seed * 1000 + index), acting)
    observation, _ = envs.reset(seed=arguments.seed * 1000 + index)
    running = np.zeros(arguments.num_envs)
    params = None
    for update in range(arguments.updates):
        # The second trajectory is acted with the parameters of the first, while the learner learns from that.
        if update != 1:
            params = parameters.get()
        steps = []
        for _ in range(arguments.unroll):
            seen, action, log_prob, value, key = act(params, jax.device_put(observation, acting), key)
            observation, reward, terminated, truncated, _ = envs.step(np.asarray(action))
            done = terminated | truncated
            running += reward
            returns.extend(running[done])
            running[done] = 0
            steps.append(Transition(seen, action, np.float32(reward), np.float32(done), value, log_prob, ()))
        rollout = stack(steps)
        trajectories.put(jax.device_put((rollout, jax.device_put(observation, acting)), learning))


def alone(call, seconds):
    """Seconds of a call by the clock and by the processors, with nothing beside it."""
    call()
    calls, began, spent = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        call()
        calls += 1
    return [(time.perf_counter() - began) / calls, (time.process_time() - spent) / calls]


def parts_alone(arguments, task, devices):
    """What each of the programs takes, and a step of a thread's environments."""
    acting, learning = devices
    envs = task.make_envs(arguments.num_envs)
    observation, _ = envs.reset(seed=0)
    act, stack = programs(task)
    params = jax.device_put(task.learner.params, acting)
    key = jax.device_put(jax.random.PRNGKey(0), acting)
    seen = jax.device_put(observation, acting)
    _, action, log_prob, value, _ = act(params, seen, key)
    # Rewards are the host's.
    zeros = np.zeros(arguments.num_envs, np.float32)
    steps = [Transition(seen, action, zeros, zeros, value, log_prob, ())] * arguments.unroll
    payloads = [jax.device_put((stack(steps), seen), learning)] * arguments.threads
    learner, key = jax.device_put((task.learner, key), learning)

    def wait(call):
        return lambda: jax.block_until_ready(call())

    actions = np.asarray(action)
    return {
        "environment": alone(lambda: envs.step(actions), arguments.alone_seconds),
        "act": alone(wait(lambda: act(params, seen, jax.device_put(key, acting))), arguments.alone_seconds),
        "finish": alone(wait(lambda: stack(steps)), arguments.alone_seconds),
        "learn": alone(wait(lambda: task.update(learner, payloads, key)), arguments.alone_seconds),
    }


def run(arguments, task):
    """Trains, and prints what it took."""
    # One device does both where there is but one.
    acting, learning = devices = (jax.devices() * 2)[:2]
    learner = jax.device_put(task.learner, learning)
    key = jax.device_put(jax.random.PRNGKey(arguments.seed + 1), learning)
    parameters = [queue.Queue(maxsize=1) for _ in range(arguments.threads)]
    trajectories = [queue.Queue(maxsize=1) for _ in range(arguments.threads)]
    returns = [[] for _ in range(arguments.threads)]
    threads = [
        threading.Thread(
            target=actor, args=(i, arguments, task, parameters[i], trajectories[i], devices, returns[i]), daemon=True
        )
        for i in range(arguments.threads)
    ]
    for thread in threads:
        thread.start()
    for one in parameters:
        one.put(jax.device_put(learner.params, acting))
    # What compiles is over after the second update.
    first, began, spent, waited = 2, None, 0.0, 0.0
    for number in range(arguments.updates):
        start = time.perf_counter()
        payloads = [one.get() for one in trajectories]
        waited += time.perf_counter() - start
        learner, _, key = task.update(learner, payloads, key)
        params = jax.device_put(learner.params, acting)
        if number + 2 < arguments.updates:
            for one in parameters:
                one.put(params)
        if number + 1 == first:
            jax.block_until_ready(params)
            began, spent, waited = time.perf_counter(), time.process_time(), 0.0
    jax.block_until_ready(learner.params)
    seconds = time.perf_counter() - began
    spent = time.process_time() - spent
    last = [value for one in returns for value in one[-50:]]
    line = {
        "peer": "cleanba",
        "num_envs": arguments.num_envs,
        "threads": arguments.threads,
        "unroll": arguments.unroll,
        "env_steps": (arguments.updates - first) * arguments.batch_size,
        "run_seconds": [seconds],
        "processor_seconds": spent,
        "learner_waits": waited / seconds,
        "mean_return": float(np.mean(last)) if last else float("nan"),
    }
    if arguments.alone_seconds > 0:
        line["alone"] = parts_alone(arguments, task, devices)
    report(line)
