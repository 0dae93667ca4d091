"""muzero.json: MuZero's targets, losses, priorities and gradients, with rlax's two-hot transform and optax's cross-entropy.

The targets of a window are made step by step, as in the paper's pseudocode, and each window goes through the networks alone. The
windows of a record are batches of their own, all with one set of networks. In f64, since rlax's inverse of the value rescaling loses
four digits in f32.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax

from golden import File
from named import add, f32

jax.config.update("jax_enable_x64", True)
OBSERVATION, ACTIONS, EMBEDDING, HIDDEN = 2, 3, 4, 3
BATCHES, WINDOWS = 20, 2
DISCOUNT, VALUE_COST = 0.9, 0.25
VALUE_SUPPORT, REWARD_SUPPORT = 3, 2
SIZES = {
    "representation": (OBSERVATION, EMBEDDING),
    "dynamics": (EMBEDDING + ACTIONS, EMBEDDING),
    "reward": (EMBEDDING + ACTIONS, 2 * REWARD_SUPPORT + 1),
    "policy": (EMBEDDING, ACTIONS),
    "value": (EMBEDDING, 2 * VALUE_SUPPORT + 1),
}


def network(rng):
    params = {}
    for name, (inputs, outputs) in SIZES.items():
        for i, (rows, columns) in enumerate([(inputs, HIDDEN), (HIDDEN, outputs)]):
            params[f"{name}.{i}.weight"] = rng.integers(-16, 17, (rows, columns)) / 16
            params[f"{name}.{i}.bias"] = rng.integers(-16, 17, columns) / 16
    return params


def dense(params, name, x):
    for i in (0, 1):
        x = x @ params[f"{name}.{i}.weight"] + params[f"{name}.{i}.bias"]
        x = jax.nn.relu(x) if i == 0 else x
    return x


def unit_range(x):
    return (x - x.min()) / jnp.maximum(x.max() - x.min(), 1e-5)


def scale_gradient(x, scale):
    return x * scale + jax.lax.stop_gradient(x) * (1 - scale)


def windows(rng, length):
    """Random windows `[BATCHES, length, WINDOWS, ..]`, with ends, cuts and reset-only steps."""
    shape = (BATCHES, length, WINDOWS)
    kind = rng.choice(4, shape, p=[0.73, 0.12, 0.1, 0.05])
    return {
        "observation": f32(rng.integers(-16, 17, (*shape, OBSERVATION)) / 8),
        "action": rng.integers(0, ACTIONS, shape, np.int32),
        "reward": f32(rng.integers(-24, 25, shape) / 8),
        "terminated": (kind == 1) | (kind == 3),
        "truncated": (kind == 2) | (kind == 3),
        "skipped": kind == 3,
        "policy": f32(rng.multinomial(16, [1 / ACTIONS] * ACTIONS, shape) / 16),
        "search_value": f32(rng.integers(-24, 25, shape) / 8),
        "weights": f32(rng.integers(1, 9, (BATCHES, WINDOWS)) / 8),
    }


def value_target(x, t, n):
    total, factor, last = 0.0, 1.0, len(x["reward"]) - 1
    for i in range(t, t + n + 1):
        cut = x["truncated"][i] and not x["terminated"][i]
        if i == t + n or cut or (i == last and not x["terminated"][i]):
            return total + factor * x["search_value"][i]
        total += factor * x["reward"][i]
        factor *= DISCOUNT
        if x["terminated"][i]:
            return total
    raise AssertionError("a return ends")


def unrolled(x, values, t, unroll):
    """Targets after 0, 1, .. steps from `t`: what is known, and zeros elsewhere."""
    length = len(x["reward"])
    out = []
    known, absorbed = not x["skipped"][t], False
    for k in range(unroll + 1):
        row = {"action": 0, "reward": 0.0, "value": 0.0, "policy": np.zeros(ACTIONS)}
        row |= {"has_reward": False, "has_value": False, "has_policy": False}
        if k > 0 and known:
            i = t + k - 1
            if i < length:
                row |= {"action": x["action"][i], "has_reward": True}
                if not absorbed:
                    row["reward"] = x["reward"][i]
                    if x["terminated"][i]:
                        absorbed = True
                    elif x["truncated"][i]:
                        known = False
            else:
                known = False
        if known and absorbed:
            row["has_value"] = True
        elif known and t + k < length:
            row |= {"value": values[t + k], "policy": x["policy"][t + k], "has_value": True, "has_policy": True}
        else:
            known = False
        out.append(row)
    return {name: np.array([row[name] for row in out]) for name in out[0]}


def targets(x, starts, unroll, n):
    """Of one batch: values `[length, WINDOWS]`, and the rest `[WINDOWS, starts, unroll + 1, ..]`."""
    values, rows = [], []
    for w in range(WINDOWS):
        one = {name: leaf[:, w] for name, leaf in x.items() if name != "weights"}
        values.append([value_target(one, t, n) for t in range(len(one["reward"]))])
        of_starts = [unrolled(one, values[-1], t, unroll) for t in range(starts)]
        rows.append({name: np.stack([row[name] for row in of_starts]) for name in of_starts[0]})
    return np.array(values).T, {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def hot(x, support):
    x = rlax.SIGNED_HYPERBOLIC_PAIR.apply(x)
    return rlax.transform_to_2hot(x, -float(support), float(support), 2 * support + 1)


def number(logits, support):
    mean = rlax.transform_from_2hot(jax.nn.softmax(logits), -float(support), float(support), 2 * support + 1)
    return rlax.SIGNED_HYPERBOLIC_PAIR.apply_inv(jnp.squeeze(mean))


def of_start(params, observation, target, unroll):
    """Losses of policy, value and reward, and the value, from one first state."""
    state = unit_range(dense(params, "representation", observation))
    policy_loss = value_loss = reward_loss = 0.0
    root = None
    for k in range(unroll + 1):
        at = {name: leaf[k] for name, leaf in target.items()}
        share = 1.0 if k == 0 else 1.0 / unroll
        if k > 0:
            both = jnp.concatenate([state, jax.nn.one_hot(at["action"], ACTIONS)])
            reward = dense(params, "reward", both)
            loss = optax.softmax_cross_entropy(reward, hot(at["reward"], REWARD_SUPPORT))
            reward_loss += share * at["has_reward"] * loss
            state = unit_range(state + dense(params, "dynamics", both))
        policy, value = dense(params, "policy", state), dense(params, "value", state)
        root = number(value, VALUE_SUPPORT) if k == 0 else root
        policy_loss += share * at["has_policy"] * optax.softmax_cross_entropy(policy, at["policy"])
        value_loss += share * at["has_value"] * optax.softmax_cross_entropy(value, hot(at["value"], VALUE_SUPPORT))
        if k > 0:
            state = scale_gradient(state, 0.5)
    return policy_loss, value_loss, reward_loss, root


def of_batch(params, observation, target, weights, unroll):
    """`observation` is `[WINDOWS, starts, ..]`."""
    each = lambda seen, row: of_start(params, seen, row, unroll)
    policy_loss, value_loss, reward_loss, value = jax.vmap(jax.vmap(each))(observation, target)
    counts = target["has_value"][:, :, 0]
    loss = weights[:, None] * (policy_loss + VALUE_COST * value_loss + reward_loss)
    loss = (counts * loss).sum() / jnp.maximum(counts.sum(), 1)
    errors = counts * jnp.abs(value - target["value"][:, :, 0])
    return loss, errors.sum(1) / jnp.maximum(counts.sum(1), 1)


def narrow(tree):
    """Floats as f32."""
    return {k: f32(v) if np.issubdtype(v.dtype, np.floating) else np.asarray(v) for k, v in tree.items()}


if __name__ == "__main__":
    file = File("muzero", "targets, losses and gradients of MuZero", ["rlax", "optax", "jax", "jaxlib", "numpy"])
    rng = np.random.default_rng(23)
    for unroll, n, length, replay in [(3, 2, 6, True), (2, 3, 6, False), (1, 1, 4, False), (5, 3, 9, True), (4, 7, 5, False), (2, 2, 7, False)]:
        starts = 1 if replay else length
        params, x = network(rng), windows(rng, length)
        of_each = [targets({name: np.float64(v[b]) if v.dtype == np.float32 else v[b] for name, v in x.items()}, starts, unroll, n) for b in range(BATCHES)]
        values = np.stack([values for values, _ in of_each])
        target = {name: np.stack([rows[name] for _, rows in of_each]) for name in of_each[0][1]}
        observation = np.float64(np.swapaxes(x["observation"], 1, 2)[:, :, :starts])
        step = jax.value_and_grad(lambda params, *of: of_batch(params, *of, unroll), has_aux=True)
        (loss, priority), grads = jax.jit(jax.vmap(step, (None, 0, 0, 0)))(params, observation, target, np.float64(x["weights"]))
        attrs = {"unroll": unroll, "n": n, "replay": replay, "discount": DISCOUNT, "value_cost": VALUE_COST}
        attrs |= {"value_support": VALUE_SUPPORT, "reward_support": REWARD_SUPPORT}
        outputs = {"values": values, "loss": loss, "priority": priority}
        # The gradient of each batch's loss by itself, [BATCHES, ..].
        outputs |= {f"grad.{name}": leaf for name, leaf in grads.items()}
        add(file, "muzero_loss", attrs, narrow({**params, **x}), narrow(outputs))
    file.write()
