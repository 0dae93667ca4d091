"""Division in all its forms, for every dtype, all pairs of edge values: jnp's."""

import jax
import jax.numpy as jnp
import numpy as np

import golden

OPS = {"div": jax.lax.div, "rem": jax.lax.rem, "floor_div": jnp.floor_divide, "modulo": jnp.remainder}


def values(dtype):
    """The extremes and what lies around zero; of floats also what is not finite, and quotients that round up to an integer."""
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        return sorted({info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 5, 7} | ({-1, -2, -5, -7} if info.min else set()))
    return [-np.inf, -7.0, -1.0, -0.1, -0.0, 0.0, 0.1, 0.3, 1.0, 2.5, 7.0, np.inf, np.nan]


def main():
    jax.config.update("jax_enable_x64", True)
    out = golden.File("division", "lax.div, lax.rem, jnp.floor_divide, jnp.remainder", ["jax", "jaxlib", "numpy"])
    integers = [f"{kind}{bits}" for kind in ["int", "uint"] for bits in [8, 16, 32, 64]]
    for name in integers + ["bfloat16", "float16", "float32", "float64"]:
        dtype = jnp.dtype(name)
        x, y = (a.ravel() for a in np.meshgrid(np.array(values(dtype), dtype), np.array(values(dtype), dtype), indexing="ij"))
        for op, f in OPS.items():
            out.add(op, inputs=[x, y], outputs=[f(jnp.asarray(x), jnp.asarray(y))])
    out.write()


if __name__ == "__main__":
    main()
