"""The peer for Sebulba: PPO on Gymnasium's CartPole (SyncVectorEnv, as ours has it), with Cleanba's schedule.

Formulation (Huang et al., "Cleanba", 2023): actor threads step their environments on the host and act on one device, `jax.device_put` sends a whole trajectory to the learner's device, the learner's
thread makes one update of the trajectories of all threads and sends the parameters back. A thread waits for the parameters of the update before the last (concurrency), so that acting and learning overlap.
The update is the one of `ppo_cartpole.py`.
"""

import argparse
import os
import queue
import threading
import time

# Two devices, as ours has. This must be said before JAX is imported.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

from timing import report

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

from ppo_cartpole import EPOCHS, MAX_GRAD_NORM, MINIBATCHES, ActorCritic, Transition, gae, objective


def actor(index, arguments, network, updates, parameters, trajectories, device, returns):
    """Acts for `updates` trajectories."""
    envs = gymnasium.make_vec("CartPole-v1", num_envs=arguments.num_envs, vectorization_mode="sync")

    @jax.jit
    def act(params, observation, key):
        key, action_key = jax.random.split(key)
        policy, value = network.apply(params, observation)
        action = policy.sample(seed=action_key)
        return observation, action, policy.log_prob(action), value, key

    @jax.jit
    def stack(steps):
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)

    key = jax.device_put(jax.random.PRNGKey(arguments.seed * 1000 + index), device)
    observation, _ = envs.reset(seed=arguments.seed * 1000 + index)
    running = np.zeros(arguments.num_envs)
    params = None
    for update in range(updates):
        # The second trajectory is acted with the parameters of the first, while the learner learns from that.
        if update != 1:
            params = parameters.get()
        steps = []
        for _ in range(arguments.unroll):
            seen, action, log_prob, value, key = act(params, jax.device_put(observation, device), key)
            observation, reward, terminated, truncated, _ = envs.step(np.asarray(action))
            done = terminated | truncated
            running += reward
            returns.extend(running[done])
            running[done] = 0
            steps.append(Transition(seen, action, np.float32(reward), np.float32(done), value, log_prob, ()))
        rollout = stack(steps)
        payload = jax.device_put((rollout, jax.device_put(observation, device)), arguments.learner)
        trajectories.put(payload)


def make_update(network, batch_size):
    """One update of the trajectories of all threads."""

    def minibatch(learner, data):
        losses, grads = jax.value_and_grad(objective, has_aux=True)(learner.params, network, *data)
        return learner.apply_gradients(grads=grads), losses

    @jax.jit
    def update(learner, payloads, key):
        rollout = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), *[p[0] for p in payloads])
        observation = jnp.concatenate([p[1] for p in payloads])
        _, last_value = network.apply(learner.params, observation)
        advantages, targets = gae(rollout, last_value)
        data = (rollout, advantages, targets)

        def epoch(carry, _):
            learner, key = carry
            key, shuffle_key = jax.random.split(key)
            order = jax.random.permutation(shuffle_key, batch_size)
            flat = jax.tree.map(lambda x: x.reshape((batch_size,) + x.shape[2:]), data)
            shuffled = jax.tree.map(lambda x: jnp.take(x, order, axis=0), flat)
            split = jax.tree.map(lambda x: x.reshape((MINIBATCHES, -1) + x.shape[1:]), shuffled)
            learner, losses = jax.lax.scan(minibatch, learner, split)
            return (learner, key), losses

        (learner, key), losses = jax.lax.scan(epoch, (learner, key), None, EPOCHS)
        return learner, losses, key

    return update


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=8, help="of each thread")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--unroll", type=int, default=64)
    parser.add_argument("--total-timesteps", type=int, default=500_000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    acting, arguments.learner = jax.devices()[:2]
    batch_size = arguments.num_envs * arguments.threads * arguments.unroll
    updates = arguments.total_timesteps // batch_size
    if updates < 10:
        parser.error(f"--total-timesteps must be at least ten updates, {10 * batch_size}")

    network = ActorCritic(2)
    weights = network.init(jax.random.PRNGKey(arguments.seed), jnp.zeros(4))
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.adam(arguments.learning_rate, eps=1e-5))
    learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)
    learner = jax.device_put(learner, arguments.learner)
    key = jax.device_put(jax.random.PRNGKey(arguments.seed + 1), arguments.learner)
    update = make_update(network, batch_size)

    parameters = [queue.Queue(maxsize=1) for _ in range(arguments.threads)]
    trajectories = [queue.Queue(maxsize=1) for _ in range(arguments.threads)]
    returns = [[] for _ in range(arguments.threads)]
    threads = [
        threading.Thread(target=actor, args=(i, arguments, network, updates, parameters[i], trajectories[i], acting, returns[i]), daemon=True)
        for i in range(arguments.threads)
    ]
    for thread in threads:
        thread.start()
    for one in parameters:
        one.put(jax.device_put(learner.params, acting))
    # What compiles is over after the second update.
    first, began, waited = 2, None, 0.0
    for number in range(updates):
        start = time.perf_counter()
        payloads = [one.get() for one in trajectories]
        waited += time.perf_counter() - start
        learner, _, key = update(learner, payloads, key)
        params = jax.device_put(learner.params, acting)
        if number + 2 < updates:
            for one in parameters:
                one.put(params)
        if number + 1 == first:
            jax.block_until_ready(params)
            began, waited = time.perf_counter(), 0.0
    jax.block_until_ready(learner.params)
    seconds = time.perf_counter() - began
    last = [value for one in returns for value in one[-50:]]
    line = {
        "peer": "cleanba",
        "num_envs": arguments.num_envs,
        "threads": arguments.threads,
        "env_steps": (updates - first) * batch_size,
        "run_seconds": [seconds],
        "learner_waits": waited / seconds,
        "mean_return": float(np.mean(last)) if last else float("nan"),
    }
    report(line)


if __name__ == "__main__":
    main()
