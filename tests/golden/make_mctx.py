"""mctx.json: searches of random tabular models by mctx, for each policy and each Q-transform.

A model is drawn from its seed by `tables`, whose numbers are exact, so that a record has the results alone. Half of the models have
numbers of a few levels only, so that actions are equally good and noise decides between them.

A record has the results of mctx, and as `unstable` the trees that mctx itself does not find again when rewards, values and logits are scaled by
factors within a few units of the last place from 1, or on a processor without fused multiply-add, which rounds a product before it is added.
"""

import functools
import os
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from golden import Array, File

ROOTS = 2
STATES = 11
OUTCOMES = 3
MODELS = 10
# Actions, simulations, greatest depth.
SHAPES = [
    (2, 2, None), (2, 50, None), (3, 7, 2), (4, 16, None), (4, 100, None), (5, 33, 4), (6, 25, None), (7, 64, None), (8, 8, None),
    (9, 50, 3), (10, 100, None), (12, 12, None), (13, 40, None), (16, 32, 1), (18, 50, None), (20, 10, None), (24, 24, None),
    (27, 90, 5), (32, 20, None), (32, 100, None),
]  # fmt: skip
QTRANSFORMS = {
    "by_min_max": functools.partial(mctx.qtransform_by_min_max, min_value=-4.0, max_value=4.0),
    "by_parent_and_siblings": mctx.qtransform_by_parent_and_siblings,
    "completed_by_mix_value": mctx.qtransform_completed_by_mix_value,
}
POLICIES = ["muzero", "gumbel_muzero", "stochastic_muzero"]
# What is scaled together: equal numbers stay equal.
SCALED = [("reward",), ("value", "afterstate_value"), ("prior_logits", "chance_logits")]
SCALINGS = 16


def settings(model):
    """Discount and levels of a model, and whether some of its root's actions are invalid."""
    return (1.0, 0.99, -1.0)[model % 3], 4 if model % 2 else 1 << 20, model % 4 >= 2


def numbers(key, shape, levels):
    """Multiples of 2 / levels from -1 on, below 1."""
    return jnp.floor(jax.random.uniform(key, shape) * levels) * (2 / levels) - 1


def tables(seed, discount, levels, actions, edges):
    """A model of `STATES` states; `edges` lead from each pair of state and action to a state."""
    keys = jax.random.split(jax.random.PRNGKey(seed), 9)
    pairs = (STATES * actions, edges)
    ends = jax.random.uniform(keys[4], pairs) < 0.1
    return {
        "next": jax.random.randint(keys[0], pairs, 0, STATES),
        "reward": numbers(keys[1], pairs, levels),
        "prior_logits": 2 * numbers(keys[2], (STATES, actions), levels),
        "value": numbers(keys[3], (STATES,), levels),
        "discount": jnp.where(ends, 0.0, discount),
        "chance_logits": 2 * numbers(keys[5], pairs, levels),
        "afterstate_value": numbers(keys[6], pairs[:1], levels),
        "invalid": jax.random.uniform(keys[7], (ROOTS, actions)) < 0.3,
    }


def found(output):
    """What a record has of the output of a policy: a row for each tree."""
    tree = output.search_tree
    summary = tree.summary()
    weigh = lambda x: (x * jnp.arange(1, output.action_weights.shape[-1] + 1)).sum(-1)
    nodes = jnp.arange(tree.node_visits.shape[-1])
    shape = (tree.parents + 2) * (tree.action_from_parent + 2) + tree.node_visits
    return {
        "visit_counts": summary.visit_counts.astype(jnp.int32),
        "action": output.action,
        "value": summary.value,
        "weighted.action_weights": weigh(output.action_weights),
        "weighted.qvalues": weigh(summary.qvalues),
        "weighted.node_values": (tree.node_values * (nodes + 1)).sum(-1),
        "weighted.nodes": ((shape * (nodes + 1)) % 65521).sum(-1),
    }


def search(policy, qtransform, actions, simulations, max_depth, factors, seed, discount, levels, some_invalid):
    model = tables(seed, discount, levels, actions, OUTCOMES if policy == "stochastic_muzero" else 1)
    model |= {name: model[name] * factor for names, factor in zip(SCALED, factors) for name in names}
    state = jnp.arange(ROOTS)
    root = mctx.RootFnOutput(prior_logits=model["prior_logits"][state], value=model["value"][state], embedding=state)
    # Action 1 is always valid.
    invalid = (model["invalid"] & some_invalid).at[:, 1].set(False)
    more = {"num_simulations": simulations, "invalid_actions": invalid, "max_depth": max_depth, "qtransform": qtransform}
    key = jax.random.PRNGKey(seed + 1)

    def step(params, key, action, state):
        edge = state * actions + action
        state = model["next"][edge, 0]
        output = mctx.RecurrentFnOutput(
            reward=model["reward"][edge, 0],
            discount=model["discount"][edge, 0],
            prior_logits=model["prior_logits"][state],
            value=model["value"][state],
        )
        return output, state

    def decide(params, key, action, state):
        edge = state * actions + jnp.clip(action, 0, actions - 1)
        output = mctx.DecisionRecurrentFnOutput(
            chance_logits=model["chance_logits"][edge], afterstate_value=model["afterstate_value"][edge]
        )
        return output, edge

    def happen(params, key, outcome, edge):
        outcome = jnp.clip(outcome, 0, OUTCOMES - 1)
        state = model["next"][edge, outcome]
        output = mctx.ChanceRecurrentFnOutput(
            action_logits=model["prior_logits"][state],
            value=model["value"][state],
            reward=model["reward"][edge, outcome],
            discount=model["discount"][edge, outcome],
        )
        return output, state

    if policy == "muzero":
        output = mctx.muzero_policy((), key, root, step, **more)
    elif policy == "gumbel_muzero":
        output = mctx.gumbel_muzero_policy((), key, root, step, **more)
    else:
        output = mctx.stochastic_muzero_policy((), key, root, decide, happen, **more)
    return found(output)


def searches():
    """Policy, Q-transform, actions, simulations, greatest depth and number of each record."""
    for number, (actions, simulations, max_depth) in enumerate(SHAPES):
        for p, policy in enumerate(POLICIES):
            # All Q-transforms for two of the shapes, and one for each of the others.
            names = list(QTRANSFORMS)
            for name in names if number in (3, 14) else [names[(number + p) % 3]]:
                yield policy, name, actions, simulations, max_depth, number


def models(number):
    """Seeds, discounts, levels and whether some actions are invalid, of the models of a record."""
    discount, levels, invalid = map(np.array, zip(*map(settings, range(MODELS))))
    return np.arange(MODELS) + MODELS * number, np.float32(discount), np.float32(levels), invalid


def results(scalings):
    """The outputs of all records: a list for each, the first of numbers as they are, then of scaled ones."""
    ulps = np.random.default_rng(0).integers(-4, 5, (scalings, len(SCALED)))
    factors = [np.ones(len(SCALED), np.float32), *np.float32(1 + ulps * 2.0**-23)]
    for policy, name, actions, simulations, max_depth, number in searches():
        run = functools.partial(search, policy, QTRANSFORMS[name], actions, simulations, max_depth)
        run = jax.jit(jax.vmap(run, (None, 0, 0, 0, 0)))
        yield [{k: np.asarray(v) for k, v in run(f, *models(number)).items()} for f in factors]


def without_fma():
    """The outputs of all records on a processor without fused multiply-add."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.npz")
        environment = os.environ | {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}
        subprocess.run([sys.executable, __file__, path], env=environment, check=True)
        with np.load(path) as found:
            for i in range(len(list(searches()))):
                yield {k.split("/")[1]: found[k] for k in found if k.startswith(f"{i}/")}


def apart(outputs, others):
    """The places of the trees, in rows of models and roots, that are not the same."""
    trees = MODELS * ROOTS
    wrong = np.zeros(trees, bool)
    for name, found in outputs.items():
        a, b = found.reshape(trees, -1), others[name].reshape(trees, -1)
        far = np.abs(a - b) > 1e-5 * np.maximum(np.abs(a), 1) if a.dtype.kind == "f" else a != b
        wrong |= far.any(-1)
    return np.flatnonzero(wrong)


def main():
    if len(sys.argv) > 1:
        named = {f"{i}/{k}": v for i, [outputs] in enumerate(results(0)) for k, v in outputs.items()}
        np.savez(sys.argv[1], **named)
        return
    about = "visits, actions and values of searches of random tabular models, whose tables are made of seeds"
    file = File("mctx", about, ["mctx", "jax", "jaxlib", "numpy"])
    of_records = zip(searches(), results(SCALINGS), without_fma())
    for (policy, name, actions, simulations, max_depth, number), (outputs, *others), rounded in of_records:
        seeds, discount, levels, invalid = models(number)
        attrs = {
            "qtransform": name, "actions": actions, "simulations": simulations, "max_depth": max_depth or 0,
            "discount": [settings(i)[0] for i in range(MODELS)], "levels": [settings(i)[1] for i in range(MODELS)],
            "invalid": invalid.tolist(), "seed": seeds.tolist(),
        }  # fmt: skip
        record = {"op": policy, "attrs": attrs, "outputs": {k: Array(v) for k, v in outputs.items()}}
        unstable = set().union(*(apart(outputs, other).tolist() for other in [*others, rounded]))
        record["unstable"] = sorted(unstable)
        print(policy, name, actions, simulations, record["unstable"], apart(outputs, rounded).tolist(), flush=True)
        file.add_raw(record)
    file.write()


if __name__ == "__main__":
    main()
