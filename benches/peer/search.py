"""Searches of a batch of roots by mctx, with a network of two layers of 64 units as the model."""

import argparse

from timing import measure, report

import jax
import jax.numpy as jnp
import mctx

UNITS = 64


def network(arguments):
    """The weights, drawn from a normal distribution of deviation 1/8."""
    shapes = {
        "action": (arguments.actions, UNITS),
        "first": (UNITS, UNITS),
        "second": (UNITS, UNITS),
        "policy": (UNITS, arguments.actions),
        "value": (UNITS, 2),
    }
    keys = jax.random.split(jax.random.PRNGKey(0), len(shapes))
    return {name: jax.random.normal(key, shape) / 8 for key, (name, shape) in zip(keys, shapes.items())}


def heads(params, embedding):
    values = embedding @ params["value"]
    return embedding @ params["policy"], values[:, 0], values[:, 1]


def step(params, key, action, embedding):
    x = embedding + params["action"][action]
    embedding = jnp.tanh(jax.nn.relu(x @ params["first"]) @ params["second"])
    prior_logits, value, reward = heads(params, embedding)
    discount = jnp.full_like(value, 0.997)
    return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=prior_logits, value=value), embedding


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", choices=["muzero", "gumbel"], default="muzero")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--simulations", type=int, default=50)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=4)
    arguments = parser.parse_args()
    policy = {"muzero": mctx.muzero_policy, "gumbel": mctx.gumbel_muzero_policy}[arguments.policy]

    def run(params, key):
        def one(number, total):
            root_key, search_key = jax.random.split(jax.random.fold_in(key, number))
            embedding = jnp.tanh(jax.random.normal(root_key, (arguments.batch, UNITS)))
            prior_logits, value, _ = heads(params, embedding)
            root = mctx.RootFnOutput(prior_logits=prior_logits, value=value, embedding=embedding)
            output = policy(params, search_key, root, step, num_simulations=arguments.simulations)
            value = output.search_tree.summary().value
            return total + value + output.action + output.action_weights[:, 0]

        return jax.lax.fori_loop(0, arguments.rounds, one, jnp.zeros(arguments.batch))

    stages, total = measure(run, (network(arguments), jax.random.PRNGKey(1)), arguments.repeats)
    searches = arguments.rounds * arguments.batch
    report({"peer": "mctx", "env_steps": searches, **stages, "mean": float(total.mean()) / arguments.rounds})


if __name__ == "__main__":
    main()
