"""Seconds for an equation to trace programs of some size with JAX, from Python to a jaxpr; nothing is compiled.

The programs are those of benches/tracing: a chain of sine, product, sum and tanh, and its transforms.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
from jax import lax


def chain(n):
    def run(x):
        y = x
        for i in range(n):
            y = [jnp.sin, lambda y: y * x, lambda y: y + 0.5, jnp.tanh][i % 4](y)
        return y

    return run


def programs(n):
    f = chain(n)
    looped = lambda x: jnp.sum(lax.scan(lambda x, _: (f(x), None), x, None, length=4)[0])
    recomputed = lambda x: jnp.sum(jax.checkpoint(f)(x))
    total = lambda x: jnp.sum(f(x))
    return {
        "trace": (f, (3,)),
        "vmap": (jax.vmap(f), (8, 3)),
        "gradient": (jax.grad(total), (3,)),
        "gradient of a vmap": (jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))), (8, 3)),
        "gradient of a scan": (jax.grad(looped), (3,)),
        "gradient of a checkpoint": (jax.grad(recomputed), (3,)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    jax.make_jaxpr(chain(4))(jnp.zeros(3))
    each = {}
    for n in arguments.sizes:
        for name, (f, shape) in programs(n).items():
            seconds = []
            for _ in range(arguments.rounds if n < 100_000 else 1):
                jax.clear_caches()
                x = jax.ShapeDtypeStruct(shape, jnp.float32)
                start = time.perf_counter()
                jax.make_jaxpr(f)(x)
                seconds.append(time.perf_counter() - start)
            each.setdefault(name, []).append(min(seconds) / n)
    print(json.dumps({"bench": "tracing", "jax": jax.__version__, "sizes": arguments.sizes, "seconds_per_equation": each}))
