"""A record of `ops_*.json`: one operation, its value, and its derivatives in a random direction.

`tangents` go in beside `inputs` and `out_tangents` come out (jvp); `cotangents` go in beside `outputs` and `in_cotangents` come out (vjp). Where there is none, because the type is not a float, stands null.
"""

import jax
import jax.numpy as jnp
import numpy as np

from golden import Array


def is_float(x):
    return jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)


def random(rng, shape, dtype="float32", scale=1.0):
    """Values away from zero and from each other, so that no derivative sits on a kink."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if jnp.issubdtype(dtype, jnp.integer):
        low = 0 if jnp.issubdtype(dtype, jnp.unsignedinteger) else -20
        return rng.integers(low, 21, shape).astype(dtype)
    return np.asarray(rng.normal(size=shape) * scale).astype(dtype)


class Ops:
    """Writes records, with directions drawn from one generator per operation, so that a new operation changes no other's numbers."""

    def __init__(self, file):
        self.file = file

    def add(self, op, attrs, function, *inputs, differentiate=True, wrt=None, note=None):
        """`function` takes the inputs in order and returns an array or a tuple of them. `wrt` names the inputs that have a direction; all floats, if not given."""
        inputs = [jnp.asarray(x) for x in inputs]

        def several(*xs):
            out = function(*xs)
            return tuple(out) if isinstance(out, (tuple, list)) else (out,)

        outputs = jax.jit(several)(*inputs)
        record = {"op": op, "attrs": attrs}
        if note:
            record["note"] = note
        record |= {"inputs": [Array(x) for x in inputs], "outputs": [Array(x) for x in outputs]}
        smooth = [i for i, x in enumerate(inputs) if is_float(x) and (wrt is None or i in wrt)]
        results = [i for i, x in enumerate(outputs) if is_float(x)]
        if differentiate and smooth and results:
            record |= self.derivatives(op, several, inputs, outputs, smooth, results)
        self.file.add_raw(record)

    def derivatives(self, op, several, inputs, outputs, smooth, results):
        rng = np.random.default_rng([len(inputs), len(outputs), *op.encode()])
        direction = lambda x: jnp.asarray(random(rng, x.shape, "float32"), x.dtype)

        def of_floats(*xs):
            full = list(inputs)
            for i, x in zip(smooth, xs):
                full[i] = x
            out = several(*full)
            return tuple(out[i] for i in results)

        primals = [inputs[i] for i in smooth]
        tangents = [direction(x) for x in primals]
        cotangents = tuple(direction(outputs[i]) for i in results)
        out_tangents = jax.jit(lambda p, t: jax.jvp(of_floats, p, t)[1])(tuple(primals), tuple(tangents))
        in_cotangents = jax.jit(lambda p, c: jax.vjp(of_floats, *p)[1](c))(tuple(primals), cotangents)

        def spread(values, places, length):
            out = [None] * length
            for i, v in zip(places, values):
                out[i] = Array(v)
            return out

        return {
            "tangents": spread(tangents, smooth, len(inputs)),
            "out_tangents": spread(out_tangents, results, len(outputs)),
            "cotangents": spread(cotangents, results, len(outputs)),
            "in_cotangents": spread(in_cotangents, smooth, len(inputs)),
        }
