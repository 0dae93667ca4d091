"""IMPALA's loss, episode by episode: each is cut out of its trajectory, and goes through the network and through rlax alone."""

import distrax
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from named import add, f32

UNITS = 4


def dense(p, name, x):
    for layer in ("hidden", "last"):
        x = x @ p[f"{name}.{layer}.weight"] + p[f"{name}.{layer}.bias"]
        x = jnp.tanh(x) if layer == "hidden" else x
    return x


def features(p, x):
    if "conv.kernel" not in p:
        return x.reshape(-1)
    dimensions = ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x[None] / 255.0, p["conv.kernel"], (2, 2), "VALID", dimension_numbers=dimensions)
    x = jax.nn.relu(x + p["conv.bias"]).reshape(-1)
    return jax.nn.relu(x @ p["dense.weight"] + p["dense.bias"])


def core(p, state, x):
    """The state after `x`, and what policy and value see."""
    if "core.input" not in p:
        return state, x
    c, h = state
    i, f, g, o = jnp.split(x @ p["core.input"] + h @ p["core.hidden"] + p["core.bias"], 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (c, h), h


def errors_of(v_tm1, v_t, r, discount, rho, lambda_, clip_rho, clip_c):
    errors, last = [], 0.0
    for t in reversed(range(len(r))):
        delta = jnp.minimum(clip_rho, rho[t]) * (r[t] + discount[t] * v_t[t] - v_tm1[t])
        last = delta + discount[t] * lambda_ * jnp.minimum(clip_c, rho[t]) * last
        errors.append(last)
    errors = jnp.stack(errors[::-1])
    if clip_c == 1.0:
        np.testing.assert_allclose(errors, rlax.vtrace(v_tm1, v_t, r, discount, rho, lambda_, clip_rho), rtol=1e-5, atol=1e-5)
    return errors


def of_episode(p, a, state, x, steps, env, after, discount_after):
    """The sums over one episode's `steps`; `after` is what is seen after the last, worth nothing if `discount_after` is 0."""
    values, log_probs, entropies = [], [], []
    for t in steps:
        state, seen = core(p, state, features(p, x["observation"][t, env]))
        policy = distrax.Categorical(dense(p, "actor", seen))
        log_probs.append(policy.log_prob(x["action"][t, env]))
        entropies.append(policy.entropy())
        values.append(dense(p, "critic", seen)[0])
    _, seen = core(p, state, features(p, after))
    values, log_prob = jnp.stack(values), jnp.stack(log_probs)
    steps = np.asarray(steps)
    r = x["reward"][steps, env]
    r = jnp.clip(r, -1, 1) if a["clip_rewards"] else r
    discount = jnp.full(len(steps), a["discount"]).at[-1].set(discount_after)
    rho = jnp.exp(log_prob - x["log_prob"][steps, env])
    fixed = jax.lax.stop_gradient
    v_tm1, rho = fixed(values), fixed(rho)
    v_t = fixed(jnp.append(values[1:], dense(p, "critic", seen)[0]))
    errors = errors_of(v_tm1, v_t, r, discount, rho, a["lambda"], a["clip_rho"], a["clip_c"])
    targets = errors + v_tm1
    mix = a["lambda"] if a["advantage"] == "rlax" else 1.0
    bootstrap = jnp.append(mix * targets[1:] + (1 - mix) * v_tm1[1:], v_t[-1])
    advantage = jnp.minimum(a["clip_pg_rho"], rho) * (r + discount * bootstrap - v_tm1)
    if a["advantage"] == "rlax" and a["clip_c"] == 1.0:
        expected = rlax.vtrace_td_error_and_advantage(v_tm1, v_t, r, discount, rho, a["lambda"], a["clip_rho"], a["clip_pg_rho"])
        np.testing.assert_allclose(advantage, expected.pg_advantage, rtol=1e-5, atol=1e-5)
    return jnp.stack([-(log_prob * advantage).sum(), 0.5 * ((targets - values) ** 2).sum(), jnp.stack(entropies).sum(), rho.sum()])


def loss(p, x, a):
    steps, envs = x["reward"].shape
    total = jnp.zeros(4)
    for env in range(envs):
        state = (x["memory.c"][env], x["memory.h"][env]) if "memory.c" in x else ()
        begin = 0
        for t in range(steps):
            over, cut = x["terminated"][t, env], x["truncated"][t, env]
            if over or cut or t + 1 == steps:
                after = x["next_observation"][t, env] if cut else x["last_observation"][env]
                discount = 0.0 if over else a["discount"]
                total += of_episode(p, a, state, x, list(range(begin, t + 1)), env, after, discount)
                state = jax.tree.map(jnp.zeros_like, state)
                begin = t + 1
    policy, value, entropy, importance = total / (steps * envs)
    mean = policy + a["value_cost"] * value - a["entropy_cost"] * entropy
    parts = {"policy_loss": policy, "value_loss": value, "entropy": entropy, "importance": importance}
    return mean * steps * envs, parts


def make(file):
    rng = np.random.default_rng(31)
    normal = lambda *shape: f32(rng.normal(size=shape))
    actions, hidden = 3, 5
    paper = {"lambda": 1.0, "clip_rho": 1.0, "clip_c": 1.0, "clip_pg_rho": 1.0, "advantage": "impala", "clip_rewards": False}
    other = {"lambda": 0.9, "clip_rho": 1.3, "clip_c": 1.0, "clip_pg_rho": 1.1, "advantage": "rlax", "clip_rewards": True}
    for kind, attrs, shape in [
        ("flat", paper, (3,)),
        ("flat", {**other, "clip_c": 1.2}, (3,)),
        ("flat", other, (3,)),
        ("conv", {**paper, "lambda": 0.95}, (6, 6, 2)),
        ("lstm", paper, (3,)),
        ("lstm", other, (3,)),
    ]:
        steps, envs = 6, 3
        seen = lambda *axes: rng.integers(0, 256, (*axes, *shape), np.uint8) if kind == "conv" else normal(*axes, *shape)
        p, width = {}, shape[0]
        if kind == "conv":
            p |= {"conv.kernel": normal(3, 3, 2, 3) * 0.5, "conv.bias": normal(3) * 0.1}
            p |= {"dense.weight": normal(2 * 2 * 3, 4) * 0.5, "dense.bias": normal(4) * 0.1}
            width = 4
        if kind == "lstm":
            p |= {"core.input": normal(width, 4 * UNITS), "core.hidden": normal(UNITS, 4 * UNITS), "core.bias": normal(4 * UNITS)}
            width = UNITS
        for name, outputs in [("actor", actions), ("critic", 1)]:
            p |= {f"{name}.hidden.weight": normal(width, hidden), f"{name}.hidden.bias": normal(hidden)}
            p |= {f"{name}.last.weight": normal(hidden, outputs), f"{name}.last.bias": normal(outputs)}
        terminated, truncated = np.zeros((2, steps, envs), bool)
        terminated[1, 0] = terminated[5, 1] = truncated[3, 0] = truncated[0, 1] = truncated[5, 2] = True
        x = {
            "observation": seen(steps, envs),
            "action": rng.integers(0, actions, (steps, envs), np.int32),
            "reward": 2 * normal(steps, envs),
            "terminated": terminated,
            "truncated": truncated,
            "next_observation": seen(steps, envs),
            "last_observation": seen(envs),
            "log_prob": f32(-rng.uniform(0.2, 2.5, (steps, envs))),
        }
        if kind == "lstm":
            x |= {"memory.c": normal(envs, UNITS), "memory.h": normal(envs, UNITS)}
        attrs = {"discount": 0.9, "value_cost": 0.5, "entropy_cost": 0.02, **attrs}
        x = {k: jnp.asarray(v) if v.dtype != bool else v for k, v in x.items()}
        (total, parts), grads = jax.value_and_grad(lambda p: loss(p, x, attrs), has_aux=True)({k: jnp.asarray(v) for k, v in p.items()})
        add(file, "impala_loss", {"kind": kind, **attrs}, {**p, **x}, {"loss": total, **parts}, gradients=grads)
