"""Recurrent, embedding and attention layers: flax. Noisy layers and dueling heads: their papers' equations in JAX."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from named import add, f32
from rl_networks import flat


def squares(file, op, attrs, function, params, inputs):
    """The value of `function(params, **inputs)`, and the gradients of the sum of its squares for `params` and `x`."""
    params = {k: jnp.asarray(v) for k, v in params.items()}
    inputs = {k: jnp.asarray(v) for k, v in inputs.items()}
    given = {"x": inputs["x"]} if inputs["x"].dtype == jnp.float32 else {}
    loss = lambda params, given: jnp.sum(function(params, **{**inputs, **given}) ** 2)
    of_params, of_x = jax.grad(loss, (0, 1))(params, given)
    add(file, op, attrs, {**params, **inputs}, {"value": function(params, **inputs)}, gradients={**of_params, **of_x})


def nested(params):
    """The tree of flax that `flat` gave these names."""
    tree = {}
    for path, value in params.items():
        *folders, name = path.split(".")
        at = tree
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = value
    return tree


def random_params(module, rng, *inputs):
    params = module.init(jax.random.PRNGKey(0), *inputs)["params"]
    return {k: f32(rng.normal(size=v.shape) * 0.5) for k, v in flat(params).items()}


def gru(file):
    """A GRU over a trajectory [T, in] that begins again from zeros before each step where `reset` is true."""
    rng = np.random.default_rng(71)
    cell = nn.GRUCell(3)
    xs, reset = f32(rng.normal(size=(5, 4))), np.array([False, True, False, False, True])
    params = random_params(cell, rng, jnp.zeros(3), xs[0])

    def unroll(params, h, x, reset):
        def step(h, inputs):
            x, reset = inputs
            return cell.apply({"params": nested(params)}, jnp.where(reset, 0, h), x)

        return jax.lax.scan(step, h, (x, reset))[1]

    squares(file, "gru_unroll", {}, unroll, params, {"x": xs, "h": f32(rng.normal(size=3)), "reset": reset})


def embedding(file):
    rng = np.random.default_rng(72)
    module = nn.Embed(5, 3)
    x = np.array([[0, 4, 1], [1, 1, 3]], np.int32)
    params = random_params(module, rng, x)
    squares(file, "embed", {}, lambda params, x: module.apply({"params": params}, x), params, {"x": x})
    query = f32(rng.normal(size=(2, 3)))
    squares(file, "embed_attend", {}, lambda params, x: module.apply({"params": params}, x, method="attend"), params, {"x": query})
    key = jax.random.PRNGKey(9)
    add(file, "embed_init", {"shape": [7, 4]}, {"key": key}, {"value": nn.linear.default_embed_init(key, (7, 4), jnp.float32)})


def attention(file):
    rng = np.random.default_rng(73)
    query, key, value = f32(rng.normal(size=(4, 2, 3))), f32(rng.normal(size=(6, 2, 3))), f32(rng.normal(size=(6, 2, 5)))
    mask = rng.uniform(size=(4, 6)) < 0.6
    # A step that sees no other.
    mask[2] = False
    per_head = rng.uniform(size=(2, 4, 6)) < 0.6
    f = lambda params, x, mask=None: nn.dot_product_attention(x, params["key"], params["value"], mask=mask)
    for attrs, more in [({}, {}), ({"note": "mask of steps"}, {"mask": mask}), ({"note": "mask of each head"}, {"mask": per_head})]:
        squares(file, "dot_product_attention", attrs, f, {"key": key, "value": value}, {"x": query, **more})
    module = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=6, out_features=5)
    x, memory = f32(rng.normal(size=(4, 5))), f32(rng.normal(size=(6, 5)))
    params = random_params(module, rng, x, memory)
    f = lambda params, x, memory, mask=None: module.apply({"params": nested(params)}, x, memory, mask=mask)
    for more in ({}, {"mask": mask}):
        squares(file, "multi_head_attention", {"heads": 2}, f, params, {"x": x, "memory": memory, **more})
    itself = lambda params, x: module.apply({"params": nested(params)}, x, mask=nn.make_causal_mask(x[:, 0]))
    squares(file, "multi_head_attention", {"heads": 2, "note": "causal, of itself"}, itself, params, {"x": x})


def noisy(file):
    rng = np.random.default_rng(74)
    params = {"weight": f32(rng.normal(size=(4, 3))), "bias": f32(rng.normal(size=3)), "weight_sigma": f32(rng.uniform(size=(4, 3))), "bias_sigma": f32(rng.uniform(size=3))}

    def apply(params, x, key):
        e_in, e_out = (jax.random.normal(k, (n,)) for k, n in zip(jax.random.split(key), (4, 3)))
        spread = lambda e: jnp.sign(e) * jnp.sqrt(jnp.abs(e))
        weight = params["weight"] + params["weight_sigma"] * jnp.outer(spread(e_in), spread(e_out))
        return x @ weight + params["bias"] + params["bias_sigma"] * spread(e_out)

    formula = "y = x (weight + weight_sigma f(e_in) f(e_out)^T) + bias + bias_sigma f(e_out), f(e) = sign(e) sqrt(|e|), keys of e_in and e_out by split"
    squares(file, "noisy_linear", {"formula": formula}, apply, params, {"x": f32(rng.normal(size=4)), "key": jax.random.PRNGKey(10)})


def dueling(file):
    rng = np.random.default_rng(75)
    shapes = {"value.0": (4, 6), "value.1": (6, 1), "advantage.0": (4, 6), "advantage.1": (6, 3)}
    params = {f"{k}.kernel": f32(rng.normal(size=v)) for k, v in shapes.items()} | {f"{k}.bias": f32(rng.normal(size=v[1])) for k, v in shapes.items()}

    def apply(params, x):
        layer = lambda name, x: x @ params[f"{name}.kernel"] + params[f"{name}.bias"]
        stream = lambda name: layer(f"{name}.1", jax.nn.relu(layer(f"{name}.0", x)))
        advantage = stream("advantage")
        return stream("value") + advantage - advantage.mean()

    squares(file, "dueling", {"formula": "value + advantage - mean(advantage)"}, apply, params, {"x": f32(rng.normal(size=4))})


def make(file):
    for part in (gru, embedding, attention, noisy, dueling):
        part(file)
