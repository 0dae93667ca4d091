"""Records with named inputs and outputs, as `rl.json` and `transforms.json` have them."""

import jax
import jax.numpy as jnp
import numpy as np

from golden import Array


def f32(x):
    return np.asarray(x, np.float32)


def arrays(tree):
    return {k: Array(v) for k, v in tree.items()}


def add(file, op, attrs, inputs, outputs, **more):
    """`inputs`, `outputs` and every further tree are dictionaries of arrays."""
    fields = {k: arrays(v) if isinstance(v, dict) else v for k, v in more.items()}
    file.add_raw({"op": op, "attrs": attrs, "inputs": arrays(inputs), "outputs": arrays(outputs), **fields})


def call(file, op, attrs, function, inputs, wrt=(), output="value"):
    """Calls `function(**inputs)`. With `wrt`, also records the gradients of the sum of what it returns, for those inputs."""
    inputs = {k: jnp.asarray(v) for k, v in inputs.items()}
    out = jax.jit(function)(**inputs)
    outputs = out if isinstance(out, dict) else {output: out}
    more = {}
    if wrt:

        def total(chosen):
            out = function(**{**inputs, **chosen})
            return sum(jnp.sum(x) for x in jax.tree.leaves(out))

        more["gradients"] = jax.jit(jax.grad(total))({k: inputs[k] for k in wrt})
    add(file, op, attrs, inputs, outputs, **more)
    return outputs
