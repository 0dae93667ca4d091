"""DQN's loss over windows of a replay, one window at a time, and its gradient. The windows are drawn from keys, so that a record needs none of their numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import rlax

from named import add

SEEDS, LENGTH, BATCH, SEEN, UNITS, ACTIONS, POINTS = 25, 4, 4, 3, 4, 3, 5
ILLEGAL = -1e30


def draw(key, i, shape, low=0.0, high=1.0):
    return jax.random.uniform(jax.random.fold_in(key, i), shape, jnp.float32, low, high)


def windows(key, length, kind):
    """Steps `[L, B, ..]`: some end their episodes, some are cut off, some do nothing but begin one."""
    ends = draw(key, 0, (length, BATCH))
    terminated, truncated = ends < 0.15, (ends >= 0.15) & (ends < 0.3)
    over = terminated | truncated
    begins = jnp.concatenate([jnp.ones((1, BATCH), bool), over[:-1]])
    skipped = begins & (draw(key, 1, (length, BATCH)) < 0.4) & kind["skips"]
    legal = draw(key, 6, (length, BATCH, ACTIONS)) < 0.6
    legal = legal | (jnp.arange(ACTIONS) == 0) | (not kind["legal"])
    return {
        "observation": draw(key, 2, (length, BATCH, SEEN), -1, 1),
        "after": draw(key, 3, (length, BATCH, SEEN), -1, 1),
        "action": jax.random.randint(jax.random.fold_in(key, 4), (length, BATCH), 0, ACTIONS, jnp.int32),
        "reward": draw(key, 5, (length, BATCH), -2, 2),
        "legal": legal,
        "terminated": terminated | skipped,
        "truncated": truncated | skipped,
        "skipped": skipped,
        "weights": draw(key, 7, (BATCH,), 0.2, 1.0),
    }


def network(key, kind):
    """Weight and bias of each layer: hidden, advantages, value."""
    outputs = 1 if kind["values"] == "expected" else POINTS
    sizes = [(SEEN, UNITS)] if not kind["dueling"] else []
    inputs = UNITS if sizes else SEEN
    streams = [(inputs, ACTIONS * outputs)]
    if kind["dueling"]:
        streams = [(SEEN, UNITS), (UNITS, ACTIONS * outputs), (SEEN, UNITS), (UNITS, outputs)]
    leaves = []
    for i, (n, m) in enumerate(sizes + streams):
        leaves += [draw(key, 2 * i, (n, m), -1, 1), draw(key, 2 * i + 1, (m,), -1, 1)]
    return leaves


def apply(leaves, kind, x):
    dense = lambda i, x: x @ leaves[2 * i] + leaves[2 * i + 1]
    outputs = 1 if kind["values"] == "expected" else POINTS
    advantage = dense(1, jax.nn.relu(dense(0, x))).reshape(ACTIONS, outputs)
    if kind["dueling"]:
        value = dense(3, jax.nn.relu(dense(2, x))).reshape(1, outputs)
        advantage = value + advantage - advantage.mean(0, keepdims=True)
    return advantage[:, 0] if outputs == 1 else advantage


def means(kind, outputs, z):
    if kind["values"] == "categorical":
        return (jax.nn.softmax(outputs, -1) * z).sum(-1)
    return outputs if kind["values"] == "expected" else outputs.mean(-1)


def of_window(p, target, x, b, kind, z):
    """Loss and priority of window `b`; `None` for one that teaches nothing."""
    n, discount = kind["n_step"], kind["discount"]
    if x["skipped"][0, b]:
        return None
    last = next((t for t in range(n) if x["terminated"][t, b] or x["truncated"][t, b]), n - 1)
    total = sum(discount**t * x["reward"][t, b] for t in range(last + 1))
    factor = 0.0 if x["terminated"][last, b] else discount ** (last + 1)
    cut = x["truncated"][last, b] and not x["terminated"][last, b]
    if cut and not kind["keeps_after"]:
        return None
    after = x["after"][last, b] if kind["keeps_after"] else x["observation"][last + 1, b]
    follows = not (x["terminated"][last, b] or x["truncated"][last, b])
    legal = x["legal"][last + 1, b] if follows else np.ones(ACTIONS, bool)
    q_tm1, q_t = apply(p, kind, x["observation"][0, b]), apply(target, kind, after)
    chooser = apply(p, kind, after) if kind["double"] else q_t
    chosen = jnp.where(legal, means(kind, chooser, z), ILLEGAL)
    a_tm1 = x["action"][0, b]
    if kind["values"] == "expected":
        error = rlax.double_q_learning(q_tm1, a_tm1, total, factor, q_t, chosen)
        loss = rlax.huber_loss(error, kind["huber"]) if kind["huber"] > 0 else rlax.l2_loss(error)
        return loss, jnp.abs(error)
    if kind["values"] == "categorical":
        loss = rlax.categorical_double_q_learning(z, q_tm1, a_tm1, total, factor, z, q_t, chosen)
        return loss, loss
    chooser = jnp.broadcast_to(chosen, (POINTS, ACTIONS))
    loss = rlax.quantile_q_learning(q_tm1.T, z, a_tm1, total, factor, chooser, q_t.T, kind["kappa"])
    return loss, loss


def loss(p, target, x, kind, z):
    losses, priorities = [], []
    for b in range(BATCH):
        seen = of_window(p, target, x, b, kind, z) or (jnp.float32(0), jnp.float32(0))
        losses.append(seen[0] * x["weights"][b])
        priorities.append(seen[1])
    return jnp.mean(jnp.stack(losses)), jax.lax.stop_gradient(jnp.stack(priorities))


def make(file):
    plain = {"double": True, "dueling": False, "n_step": 3, "keeps_after": True, "legal": False, "skips": True}
    plain |= {"discount": 0.9, "huber": 1.0, "kappa": 1.0}
    kinds = [
        {**plain, "values": "expected", "double": False, "n_step": 1, "skips": False},
        {**plain, "values": "expected", "huber": 0.0},
        {**plain, "values": "expected", "keeps_after": False, "dueling": True},
        {**plain, "values": "expected", "legal": True, "keeps_after": False, "huber": 0.5},
        {**plain, "values": "categorical"},
        {**plain, "values": "categorical", "legal": True, "dueling": True, "keeps_after": False},
        {**plain, "values": "quantile", "double": False, "legal": True, "keeps_after": False},
        {**plain, "values": "quantile", "dueling": True, "kappa": 0.3},
    ]
    for record, kind in enumerate(kinds):
        z = {"categorical": jnp.linspace(-2.0, 3.0, POINTS), "quantile": (jnp.arange(POINTS) + 0.5) / POINTS}.get(kind["values"])
        outputs = {"loss": [], "priority": [], "slope": []}
        for seed in range(SEEDS):
            key = jax.random.fold_in(jax.random.PRNGKey(record), seed)
            keys = jax.random.split(key, 4)
            p, target = network(keys[0], kind), network(keys[1], kind)
            x = windows(keys[2], LENGTH, kind)
            (total, priority), grads = jax.value_and_grad(loss, has_aux=True)(p, target, x, kind, z)
            slopes = [jnp.sum(g * draw(keys[3], i, g.shape, -1, 1)) for i, g in enumerate(grads)]
            outputs["loss"].append(total)
            outputs["priority"].append(priority)
            outputs["slope"].append(jnp.stack(slopes))
        attrs = {"formula": "slope: of each leaf, the sum of the gradient times uniform numbers on [-1, 1)", "key": record, **kind}
        add(file, "dqn_loss", attrs, {}, {name: jnp.stack(rows) for name, rows in outputs.items()})
