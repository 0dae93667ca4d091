"""Modules as jax writes them, each with arguments and results: `modules/*.mlir` and `modules.json`.

`jit` modules come from `jax.jit(f).lower(..).as_text()`, `export` modules from `jax.export.export(jax.jit(f))(..).mlir_module()`.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

import golden

FOLDER = golden.HERE / "modules"


def mlp(params, x):
    """A dict goes in, a dict comes out; leaves are in the order of their keys."""
    hidden = jnp.tanh(x @ params["weight"] + params["bias"])
    return {"any": jnp.any(hidden > 0.9), "hidden": hidden, "mean": hidden.mean(0)}


def rollout(key, start):
    """Functions that are called, loops, random numbers, and small types."""

    def step(carry, _):
        state, count, key = carry
        key, draw = jax.random.split(key)
        state = state * jnp.bfloat16(0.5) + jax.random.normal(draw, state.shape).astype(jnp.bfloat16)
        count = count + jax.random.bernoulli(draw).astype(jnp.int8)
        return (state, count, key), state.astype(jnp.float32).sum()

    (state, count, _), sums = jax.lax.scan(step, (start, jnp.int8(0), key), None, length=5)
    halvings = jax.lax.while_loop(lambda n: n[0] > 1, lambda n: (n[0] // 2, n[1] + 1), (jnp.int32(1000), jnp.int32(0)))[1]
    return state, count, sums, halvings


def gradient_step(params, x, y):
    """The first argument is donated."""
    loss = lambda w: ((x @ w - y) ** 2).mean()
    value, slope = jax.value_and_grad(loss)(params)
    return params - 0.1 * slope, value


def main():
    FOLDER.mkdir(exist_ok=True)
    out = golden.File("modules", "Modules that jax lowered, called once.", ["jax", "jaxlib", "numpy"])
    rng = np.random.default_rng(0)
    f32 = lambda *shape: rng.normal(size=shape).astype(np.float32)

    def write(name, text):
        # Locations are those of this file and of packages, wherever they are.
        for folder in [golden.HERE, pathlib.Path(jax.__file__).parents[1]]:
            text = text.replace(f"{folder}/", "")
        (FOLDER / f"{name}.mlir").write_text(text)

    def add(name, text, f, arguments):
        write(name, text)
        outputs = jax.tree.leaves(jax.jit(f)(*arguments))
        out.add_raw({"module": name, "inputs": golden.arrays(jax.tree.leaves(arguments)), "outputs": golden.arrays(outputs)})

    params, x = {"bias": f32(4), "weight": f32(3, 4)}, f32(2, 3)
    add("mlp", jax.jit(mlp).lower(params, x).as_text(), mlp, (params, x))
    arguments = (np.array([0, 42], np.uint32), jnp.asarray(f32(3), jnp.bfloat16))
    add("rollout", export.export(jax.jit(rollout))(*arguments).mlir_module(), rollout, arguments)
    arguments = (f32(3), f32(8, 3), f32(8))
    add("gradient_step", jax.jit(gradient_step, donate_argnums=0).lower(*arguments).as_text(), gradient_step, arguments)
    # What cannot be loaded: a shape that is not known.
    rows = export.symbolic_shape("rows")[0]
    dynamic = export.export(jax.jit(lambda x: x + 1))(jax.ShapeDtypeStruct((rows, 3), jnp.float32))
    write("dynamic", dynamic.mlir_module())
    out.write()


if __name__ == "__main__":
    main()
