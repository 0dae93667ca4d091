"""The peer for Sebulba: PPO on Gymnasium's CartPole (SyncVectorEnv, as ours has it), with Cleanba's schedule and the update of `ppo_cartpole.py`."""

from cleanba import Task, parse, run

import gymnasium
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from ppo_cartpole import EPOCHS, MAX_GRAD_NORM, MINIBATCHES, ActorCritic, gae, objective


def make_envs(count):
    return gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode="sync")


def make_act(network):
    def act(params, observation, key):
        policy, value = network.apply(params, observation)
        action = policy.sample(seed=key)
        return action, value, policy.log_prob(action)

    return act


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
    arguments = parse(__doc__, 500_000, num_envs=8, unroll=64, learning_rate=1e-3)
    network = ActorCritic(2)
    weights = network.init(jax.random.PRNGKey(arguments.seed), jnp.zeros(4))
    optimizer = optax.chain(optax.clip_by_global_norm(MAX_GRAD_NORM), optax.adam(arguments.learning_rate, eps=1e-5))
    learner = TrainState.create(apply_fn=network.apply, params=weights, tx=optimizer)
    run(arguments, Task(make_envs, make_act(network), make_update(network, arguments.batch_size), learner))


if __name__ == "__main__":
    main()
