"""PQN's network in flax, and the losses of PQN and A2C over rollouts in which episodes end: returns and losses are rlax's."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from named import add, f32
from rl_networks import layer
from rl_optimizers import rectified

BATCHES = 200
STEPS = 5
LANES = 2
SEEN = 2
HIDDEN = 3
ACTIONS = 3


class ConvNet(nn.Module):
    """The torso of PQN for MinAtar, smaller."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.LayerNorm(name="norms_0")(nn.Conv(4, (3, 3), padding="VALID", name="convs_0")(x)))
        x = x.reshape((x.shape[0], -1))
        return nn.relu(nn.LayerNorm(name="norms_1")(nn.Dense(5, name="dense")(x)))


class Mlp(nn.Module):
    """The network of PQN for vectors, smaller."""

    @nn.compact
    def __call__(self, x):
        for i, size in enumerate((5, 4)):
            x = nn.relu(nn.LayerNorm(name=f"norms_{i}")(nn.Dense(size, name=f"layers_{i}")(x)))
        return nn.Dense(3, name="layers_2")(x)


def networks(file):
    rng = np.random.default_rng(41)
    layer(file, "layer_norm_conv_net", {}, ConvNet(), f32(rng.normal(size=(2, 6, 5, 3))), rng)
    layer(file, "layer_norm_mlp", {}, Mlp(), f32(rng.normal(size=(3, 4))), rng)


def mlp(p, name, x):
    hidden = jnp.tanh(x @ p[f"{name}.hidden.weight"] + p[f"{name}.hidden.bias"])
    return hidden @ p[f"{name}.last.weight"] + p[f"{name}.last.bias"]


def returns(value, x, a):
    """Lambda returns [T, N] of rlax. Nothing flows across an end: there lambda is 0 and the value is that of the episode's own last observation."""
    discount_t = jnp.where(x["terminated"], 0.0, a["discount"])
    lambda_t = jnp.where(x["terminated"] | x["truncated"], 0.0, a["lambda"])
    v_next = value(jnp.concatenate([x["observation"][1:], x["last_observation"][None]]))
    v_t = jnp.where(x["truncated"], value(x["next_observation"]), v_next)
    of_lane = jax.vmap(rlax.lambda_returns, (1, 1, 1, 1), 1)
    return jax.lax.stop_gradient(of_lane(x["reward"], discount_t, v_t, lambda_t))


def returns_by_episode(value, x, a):
    """The same from each part of an episode, cut out."""
    steps, lanes = x["reward"].shape
    out = np.zeros((steps, lanes), np.float32)
    for lane in range(lanes):
        begin = 0
        for t in range(steps):
            over, cut = x["terminated"][t, lane], x["truncated"][t, lane]
            if over or cut or t + 1 == steps:
                after = x["next_observation"][t, lane] if cut else x["last_observation"][lane]
                v_t = jnp.append(value(x["observation"][begin + 1 : t + 1, lane]), value(after[None]))
                discount_t = jnp.full(t + 1 - begin, a["discount"]).at[-1].set(0.0 if over else a["discount"])
                r_t = jnp.asarray(x["reward"][begin : t + 1, lane])
                out[begin : t + 1, lane] = rlax.lambda_returns(r_t, discount_t, v_t, a["lambda"])
                begin = t + 1
    return out


def greedy_value(p):
    return lambda seen: mlp(p, "q", seen).max(-1)


def state_value(p):
    return lambda seen: mlp(p, "critic", seen)[..., 0]


def pqn_loss(p, x, a):
    """The mean of half of the squared errors against Q(lambda)."""
    q = mlp(p, "q", x["observation"]).reshape(-1, ACTIONS)
    targets = returns(greedy_value(p), x, a).reshape(-1)
    return rlax.l2_loss(targets - rlax.batched_index(q, x["action"].reshape(-1))).mean()


def a2c_loss(p, x, a):
    values = state_value(p)(x["observation"])
    targets = returns(state_value(p), x, a)
    advantages = jax.lax.stop_gradient(targets - values)
    logits, ones = mlp(p, "actor", x["observation"]).reshape(-1, ACTIONS), jnp.ones(values.size)
    policy = rlax.policy_gradient_loss(logits, x["action"].reshape(-1), advantages.reshape(-1), ones)
    value = jnp.square(targets - values).mean()
    return policy + a["value_cost"] * value + a["entropy_cost"] * rlax.entropy_loss(logits, ones)


def losses(file):
    """Random batches behind one another: each has parameters of its own. Numbers are short, so that the file is."""
    rng = np.random.default_rng(42)
    short = lambda *shape: f32(np.round(rng.normal(size=(BATCHES, *shape)), 2))
    for op, loss, value, heads, attrs in [
        ("pqn_loss", pqn_loss, greedy_value, {"q": ACTIONS}, {"discount": 0.9, "lambda": 0.65}),
        ("a2c_loss", a2c_loss, state_value, {"actor": ACTIONS, "critic": 1}, {"discount": 0.9, "lambda": 0.8, "value_cost": 0.5, "entropy_cost": 0.02}),
    ]:
        p = {}
        for name, outputs in heads.items():
            p |= {f"{name}.hidden.weight": short(SEEN, HIDDEN), f"{name}.hidden.bias": short(HIDDEN)}
            p |= {f"{name}.last.weight": short(HIDDEN, outputs), f"{name}.last.bias": short(outputs)}
        ends = rng.uniform(size=(BATCHES, STEPS, LANES))
        x = {
            "observation": short(STEPS, LANES, SEEN),
            "action": rng.integers(0, ACTIONS, (BATCHES, STEPS, LANES), np.int32),
            "reward": short(STEPS, LANES),
            "terminated": ends < 0.15,
            "truncated": ends > 0.85,
            "next_observation": short(STEPS, LANES, SEEN),
            "last_observation": short(LANES, SEEN),
        }
        values, grads = jax.jit(jax.vmap(jax.value_and_grad(lambda p, x: loss(p, x, attrs))))(p, x)
        for batch in range(3):
            one_p, one_x = ({k: v[batch] for k, v in tree.items()} for tree in (p, x))
            together, cut_out = (of(value(one_p), one_x, attrs) for of in (returns, returns_by_episode))
            np.testing.assert_allclose(together, cut_out, rtol=1e-5, atol=1e-5)
        add(file, op, attrs, {**p, **x}, {"loss": values}, gradients=grads)


def make(file):
    rectified(file)
    networks(file)
    losses(file)
