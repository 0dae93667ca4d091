"""rainbow.json: Rainbow's loss, priorities, importance weights and whole gradient, with all of its extensions at once.

Noisy layers are their equation, with the matrix of the noise written out; distributions of returns are rlax's. Everything is drawn from keys,
so that a record needs none of these numbers. Draws are f32 and what is computed of them f64.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import rlax

from golden import File
from named import add, f32
from rl_dqn import ACTIONS, BATCH, ILLEGAL, LENGTH, SEEN, draw, windows

jax.config.update("jax_enable_x64", True)
BATCHES, ATOMS, KEPT = 20, 5, 16
V_MIN, V_MAX = -2.0, 3.0
# The roles of the networks, which are added to the key of a loss's noise.
LEARNS, VALUES, CHOOSES = 0, 1, 2


def transition(x, b, kind):
    """The transition that begins with the first step of window `b`; `counts` is 0 where it teaches nothing."""
    terminated, truncated = x["terminated"][:, b], x["truncated"][:, b]
    reward = np.clip(x["reward"][:, b], -1, 1) if kind["clips"] else x["reward"][:, b]
    n = kind["n_step"]
    last = next((t for t in range(n) if terminated[t] or truncated[t]), n - 1)
    known = kind["keeps_after"] or terminated[last] or not truncated[last]
    return {
        "observation": x["observation"][0, b],
        "action": x["action"][0, b],
        "reward": sum(kind["discount"] ** t * np.float64(reward[t]) for t in range(last + 1)),
        "discount": 0.0 if terminated[last] else kind["discount"] ** (last + 1),
        "after": x["after"][last, b] if kind["keeps_after"] else x["observation"][last + 1, b],
        "legal": x["legal"][last + 1, b],
        "counts": float(known and not x["skipped"][0, b]),
    }


def importance_weights(key, kind):
    """The weights of windows that were drawn from `KEPT` by their priorities (Schaul et al. 2016, section 3.4)."""
    scaled = np.float64(draw(key, 0, (KEPT,), 0.05, 2.0)) ** kind["priority_exponent"]
    drawn = np.asarray(jax.random.randint(jax.random.fold_in(key, 1), (BATCH,), 0, KEPT, jnp.int32))
    weights = (KEPT * scaled[drawn] / scaled.sum()) ** -kind["importance_exponent"]
    return weights / weights.max()


def sizes(hidden):
    """Inputs and outputs of each layer: those that both streams share, the advantages' and the value's."""
    inputs = [SEEN, *hidden][len(hidden) - 1]
    shared = list(zip([SEEN, *hidden], hidden[:-1]))
    return [shared, *([(inputs, hidden[-1]), (hidden[-1], n * ATOMS)] for n in (ACTIONS, 1))]


def network(key, hidden):
    """Weight and bias of each layer and the sizes of their noise."""
    leaves = []
    for inputs, outputs in sum(sizes(hidden), []):
        for size in (1.0, 0.5):
            leaves += [draw(key, len(leaves), (inputs, outputs), -size, size), draw(key, len(leaves) + 1, (outputs,), -size, size)]
    return leaves


def noise(key, role, hidden):
    """One draw for all layers: in each, a number for each input and then for each output."""
    count = sum(inputs + outputs for inputs, outputs in sum(sizes(hidden), []))
    return np.asarray(jax.random.normal(jax.random.fold_in(key, role), (count,), jnp.float32))


def apply(leaves, normals, hidden, x):
    """The logits of the atoms of each action."""
    spread = jnp.sign(normals) * jnp.sqrt(jnp.abs(normals))
    shared, advantage, value = map(len, sizes(hidden))
    at = 0

    def stream(first, count, hidden_layers, x):
        nonlocal at
        for i in range(first, first + count):
            weight, bias, weight_sigma, bias_sigma = leaves[4 * i : 4 * i + 4]
            inputs, outputs = weight.shape
            e_in, e_out = spread[at : at + inputs], spread[at + inputs : at + inputs + outputs]
            at += inputs + outputs
            x = x @ (weight + weight_sigma * jnp.outer(e_in, e_out)) + bias + bias_sigma * e_out
            x = jax.nn.relu(x) if i < first + hidden_layers else x
        return x

    x = stream(0, shared, shared, x)
    advantages = stream(shared, advantage, advantage - 1, x).reshape(ACTIONS, ATOMS)
    state = stream(shared + advantage, value, value - 1, x)
    return state + advantages - advantages.mean(0, keepdims=True)


def loss(online, target, normals, t, weights, hidden):
    z = jnp.linspace(V_MIN, V_MAX, ATOMS)

    def of_window(t):
        q_tm1 = apply(online, normals[LEARNS], hidden, t["observation"])
        q_t = apply(target, normals[VALUES], hidden, t["after"])
        chooser = apply(online, normals[CHOOSES], hidden, t["after"])
        chosen = jnp.where(t["legal"], (jax.nn.softmax(chooser) * z).sum(-1), ILLEGAL)
        error = rlax.categorical_double_q_learning(z, q_tm1, t["action"], t["reward"], t["discount"], z, q_t, chosen)
        return error * t["counts"]

    losses = jax.vmap(of_window)(t)
    return jnp.mean(losses * weights), losses


def batch(key, kind):
    """Everything that a batch is computed of."""
    keys = jax.random.split(key, 5)
    x = jax.tree.map(np.asarray, windows(keys[2], LENGTH, kind))
    each = [transition(x, b, kind) for b in range(BATCH)]
    return {
        "online": network(keys[0], kind["hidden"]),
        "target": network(keys[1], kind["hidden"]),
        "normals": [noise(keys[3], role, kind["hidden"]) for role in (LEARNS, VALUES, CHOOSES)],
        "t": {name: np.stack([t[name] for t in each]) for name in each[0]},
        "weights": importance_weights(keys[4], kind),
    }


def wide(leaf):
    return np.float64(leaf) if np.issubdtype(leaf.dtype, np.floating) else leaf


if __name__ == "__main__":
    file = File("rainbow", "losses, priorities, importance weights and gradients of Rainbow", ["rlax", "jax", "jaxlib", "numpy"])
    plain = {"values": "categorical", "double": True, "dueling": True, "noisy": True, "n_step": 3, "huber": 0.0, "kappa": 1.0}
    plain |= {"hidden": [3], "keeps_after": True, "legal": False, "skips": True, "clips": False}
    plain |= {"discount": 0.9, "priority_exponent": 0.5, "importance_exponent": 0.4}
    kinds = [
        plain,
        {**plain, "keeps_after": False, "clips": True, "importance_exponent": 1.0},
        {**plain, "hidden": [4, 3], "skips": False},
        {**plain, "hidden": [4, 3], "keeps_after": False, "legal": True, "priority_exponent": 0.6},
        {**plain, "hidden": [2, 3, 2], "clips": True, "importance_exponent": 0.7},
    ]
    for record, kind in enumerate(kinds):
        keys = [jax.random.fold_in(jax.random.PRNGKey(record), i) for i in range(BATCHES)]
        batches = jax.tree.map(lambda *leaves: wide(np.stack(leaves)), *(batch(key, kind) for key in keys))
        step = jax.value_and_grad(functools.partial(loss, hidden=kind["hidden"]), has_aux=True)
        (total, priority), grads = jax.jit(jax.vmap(lambda b: step(b["online"], b["target"], b["normals"], b["t"], b["weights"])))(batches)
        gradient = np.concatenate([np.reshape(leaf, (BATCHES, -1)) for leaf in grads], 1)
        attrs = {"formula": "gradient: layer by layer, of weight, bias and the sizes of their noise", "key": record, **kind}
        outputs = {"weights": batches["weights"], "loss": total, "priority": priority, "gradient": gradient}
        add(file, "rainbow_loss", attrs, {}, {name: f32(leaf) for name, leaf in outputs.items()})
    file.write()
