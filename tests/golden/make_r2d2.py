"""r2d2.json: R2D2's temporal-difference errors, priorities, losses and gradients, with rlax's targets and flax's LSTM.

The windows of a record are batches of their own, all with one pair of networks. Cuts are followed step by step, and each
window goes through the networks alone. In f64, since rlax's inverse of the value rescaling loses four digits in f32.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from golden import File
from named import add, f32

jax.config.update("jax_enable_x64", True)
OBSERVATION, ACTIONS, UNITS, HIDDEN = 2, 2, 2, 2
BATCHES, WINDOWS = 20, 2
ETA, DISCOUNT = 0.9, 0.9


class Network(nn.Module):
    @nn.compact
    def __call__(self, state, x, first):
        """The state after a step, and its action values; `x` has features, last reward and last action."""
        state = jax.tree.map(lambda s: jnp.where(first, 0, s), state)
        state, h = nn.OptimizedLSTMCell(UNITS, name="core")(state, x)
        value = nn.Dense(1, name="value_1")(nn.relu(nn.Dense(HIDDEN, name="value_0")(h)))
        advantage = nn.Dense(ACTIONS, name="advantage_1")(nn.relu(nn.Dense(HIDDEN, name="advantage_0")(h)))
        return state, value + advantage - advantage.mean(keepdims=True)


NETWORK = Network()


def windows(rng, length):
    """Random windows `[BATCHES, length, WINDOWS, ..]`, with ends, cuts and reset-only steps."""
    shape = (BATCHES, length, WINDOWS)
    kind = rng.choice(4, shape, p=[0.76, 0.1, 0.1, 0.04])
    terminated, truncated, skipped = (kind == 1) | (kind == 3), (kind == 2) | (kind == 3), kind == 3
    action = rng.integers(0, ACTIONS, shape, np.int32)
    reward = f32(rng.integers(-24, 25, shape) / 8)
    done = terminated | truncated
    first = np.roll(done, 1, 1)
    first[:, 0] = rng.uniform(size=first[:, 0].shape) < 0.2
    last_action, last_reward = np.roll(action, 1, 1), np.roll(reward, 1, 1)
    return {
        "observation": f32(rng.integers(-16, 17, (*shape, OBSERVATION)) / 8),
        "last_action": np.where(first, 0, last_action),
        "last_reward": f32(np.where(first, 0, last_reward)),
        "first": first,
        "action": action,
        "reward": reward,
        "terminated": terminated,
        "truncated": truncated,
        "skipped": skipped,
        "start.c": f32(rng.integers(-8, 9, (BATCHES, WINDOWS, UNITS)) / 8),
        "start.h": f32(rng.integers(-8, 9, (BATCHES, WINDOWS, UNITS)) / 8),
        "weights": f32(rng.integers(1, 9, (BATCHES, WINDOWS)) / 8),
    }


def counted(x, burn_in, n):
    """1 for the steps whose target does not lead over a cut, 0 for the others and for reset-only steps."""
    part = slice(burn_in, x["action"].shape[1] - 1)
    terminated, truncated, skipped = (x[name][:, part] for name in ("terminated", "truncated", "skipped"))
    counts = np.ones(terminated.shape, np.float32)
    for batch, t, window in np.ndindex(counts.shape):
        counts[batch, t, window] = not skipped[batch, t, window]
        for k in range(t, min(t + n, counts.shape[1])):
            if truncated[batch, k, window]:
                counts[batch, t, window] = 0
            if truncated[batch, k, window] or terminated[batch, k, window]:
                break
    return counts


def values(params, state, xs, first):
    outputs = []
    for x, begins in zip(xs, first):
        state, q = NETWORK.apply(params, state, x, begins)
        outputs.append(q)
    return state, jnp.stack(outputs) if outputs else None


def of_window(params, target, x, counts, burn_in, n):
    action = jax.nn.one_hot(x["last_action"], ACTIONS) * ~x["first"][:, None]
    xs = jnp.concatenate([x["observation"], x["last_reward"][:, None], action], 1)
    start = (x["start.c"], x["start.h"])
    q = []
    for net in (params, target):
        state, _ = values(jax.lax.stop_gradient(net), start, xs[:burn_in], x["first"][:burn_in])
        q.append(values(net, jax.lax.stop_gradient(state), xs[burn_in:], x["first"][burn_in:])[1])
    part = slice(burn_in, len(xs) - 1)
    errors = counts * rlax.transformed_n_step_q_learning(
        q_tm1=q[0][:-1],
        a_tm1=x["action"][part],
        target_q_t=q[1][1:],
        a_t=q[0][1:].argmax(1),
        r_t=x["reward"][part],
        discount_t=jnp.where(x["terminated"][part], 0.0, DISCOUNT),
        n=n,
        tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR,
    )
    sizes = jnp.abs(errors)
    priority = ETA * sizes.max() + (1 - ETA) * sizes.sum() / jnp.maximum(counts.sum(), 1)
    return 0.5 * jnp.sum(errors**2), errors, priority


def of_batch(params, target, x, counts, burn_in, n):
    weights = x["weights"]
    in_time = {name: x[name] for name in x if name not in ("weights", "start.c", "start.h")}
    starts = {name: x[name] for name in ("start.c", "start.h")}
    each = lambda steps, start, counts: of_window(params, target, {**steps, **start}, counts, burn_in, n)
    loss, errors, priority = jax.vmap(each, (1, 0, 1), (0, 1, 0))(in_time, starts, counts)
    return jnp.mean(weights * loss), (errors, priority)


def flat(params):
    """A network's parameters as they are here: gates side by side."""
    core = params["params"]["core"]
    joined = lambda kind, leaf: jnp.concatenate([core[kind + gate][leaf] for gate in "ifgo"], -1)
    out = {"core.input": joined("i", "kernel"), "core.hidden": joined("h", "kernel"), "core.bias": joined("h", "bias")}
    for stream in ("value", "advantage"):
        for i in (0, 1):
            layer = params["params"][f"{stream}_{i}"]
            out |= {f"{stream}.{i}.weight": layer["kernel"], f"{stream}.{i}.bias": layer["bias"]}
    return out


def network(rng):
    zeros = jnp.zeros(UNITS)
    params = NETWORK.init(jax.random.PRNGKey(0), (zeros, zeros), jnp.zeros(OBSERVATION + 1 + ACTIONS), False)
    return jax.tree.map(lambda p: jnp.asarray(rng.integers(-16, 17, p.shape) / 16), params)


def narrow(tree):
    """Floats as f32."""
    return {k: f32(v) if np.issubdtype(v.dtype, np.floating) else np.asarray(v) for k, v in tree.items()}


def wide(tree):
    return {k: np.float64(v) if v.dtype == np.float32 else v for k, v in tree.items()}


if __name__ == "__main__":
    file = File("r2d2", "losses, priorities and gradients of R2D2", ["rlax", "flax", "jax", "jaxlib", "numpy"])
    rng = np.random.default_rng(71)
    for record in range(10):
        burn_in, trained, n = [(2, 5, 3), (0, 4, 5), (3, 6, 5), (1, 3, 1), (2, 4, 2)][record % 5]
        params, target = network(rng), network(rng)
        x = windows(rng, burn_in + trained + 1)
        counts = counted(x, burn_in, n)
        step = jax.value_and_grad(lambda params, x, counts: of_batch(params, target, x, counts, burn_in, n), has_aux=True)
        (loss, (errors, priority)), grads = jax.jit(jax.vmap(step, (None, 0, 0)))(params, wide(x), counts)
        inputs = {f"online.{name}": leaf for name, leaf in flat(params).items()}
        inputs |= {f"target.{name}": leaf for name, leaf in flat(target).items()}
        attrs = {"burn_in": burn_in, "trained": trained, "n": n, "discount": DISCOUNT, "priority_of_greatest": ETA}
        outputs = {"loss": loss, "errors": errors, "priority": priority}
        # The gradient of each batch's loss by itself, [BATCHES, ..].
        outputs |= {f"grad.{name}": leaf for name, leaf in flat(grads).items()}
        add(file, "r2d2_loss", attrs, narrow({**inputs, **x}), narrow(outputs))
    file.write()
