"""random.json: what `jax.random` draws from given keys.

Words are exact. Floats are those of XLA on the CPU, so functions that go through a logarithm or `erf_inv` agree to a few units in the last place.
"""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np

from golden import File

SEEDS = [0, 1, 42, 1701, 2**31 - 1, 2**31, 2**32 - 1, -1]
WIDE_SEEDS = [0, 42, 2**32, 2**32 + 1, 2**33 + 5, 0x0123456789ABCDEF, 2**63 - 1, -1]


def threefry(file):
    """The known answers of the cipher itself (Salmon et al. 2011, 20 rounds), and a run of counters under one key."""
    pi = np.array([0x13198A2E, 0x03707344], np.uint32), np.array([0x243F6A88, 0x85A308D3], np.uint32)
    ones = np.full(2, 0xFFFFFFFF, np.uint32)
    pairs = [(np.zeros(2, np.uint32), np.zeros(2, np.uint32)), (ones, ones), pi]
    pairs += [(np.array([0, 42], np.uint32), np.array([0, i], np.uint32)) for i in range(4)]
    pairs += [(np.array([7, 42], np.uint32), np.array([i, 2**32 - 1 - i], np.uint32)) for i in range(4)]
    for key, count in pairs:
        out = jax.extend.random.threefry_2x32(jnp.asarray(key), jnp.asarray(count))
        file.add("threefry2x32", {}, [key, count], [out])
    found = [f"{x:08x}" for r in file.records[:3] for x in r["outputs"][0].value]
    assert found == "6b200159 99ba4efe 1cb996fc bb002be7 c4923a9c 483df7a0".split(), found


def keys(file):
    """Seeds to keys. A seed is 32 bits wide unless 64-bit types are on; `seed_bits` says which."""
    for seed in SEEDS:
        file.add("key", {"seed": seed, "seed_bits": 32}, [], [jax.random.PRNGKey(seed)])
    with jax.enable_x64(True):
        for seed in WIDE_SEEDS:
            file.add("key", {"seed": seed, "seed_bits": 64}, [], [jax.random.PRNGKey(seed)])
    for seed in (0, 42, 2**32 - 1):
        key = jax.random.PRNGKey(seed)
        for shape in [(2,), (3,), (7,), (1,), (2, 3)]:
            file.add("split", {"shape": shape}, [key], [jax.random.split(key, shape)])
        for data in (0, 1, 2, 7, 12345, 2**31 - 1, 2**31, 2**32 - 1):
            file.add("fold_in", {"data": data}, [key], [jax.random.fold_in(key, np.uint32(data))])
    left, right = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(3), 5))
    again = jax.random.split(right, 3)
    chain = "fold_in(key, 5), split in 2, the second one split in 3, the last one's 4 words"
    file.add("chain", {"program": chain}, [jax.random.PRNGKey(3)], [left, right, again, jax.random.bits(again[2], (4,))])


def words(file):
    """Random words of every width, among them the ones that partitionable mode is known by."""
    assert jax.random.bits(jax.random.PRNGKey(1701), (3,)).tolist() == [1111271205, 2679469115, 974515252]
    for seed in (0, 42, 1701):
        key = jax.random.PRNGKey(seed)
        for dtype in ("uint32", "uint8", "uint16", "uint64"):
            with jax.enable_x64(dtype == "uint64"):
                for shape in [(), (5,), (2, 3), (0,), (3,)] if seed != 42 else [(33,)]:
                    out = jax.random.bits(key, shape, dtype)
                    file.add("bits", {"shape": shape}, [key], [out])


def integers(file):
    key = jax.random.PRNGKey(1701)
    spans = [(0, 1), (0, 2), (0, 3), (0, 5), (0, 10), (0, 256), (0, 1000), (-5, 5), (-100, -93), (7, 7), (9, 3)]
    spans += [(0, 2**31 - 1), (-(2**31), 2**31 - 1), (0, 3 * 2**29), (-(2**30), 3 * 2**28), (1, 65537)]
    for low, high in spans:
        for shape in [(), (6,)]:
            attrs = {"shape": shape, "low": low, "high": high}
            file.add("randint", attrs, [key], [jax.random.randint(key, shape, low, high)])
    for shape in [(2, 3), (0,), (5, 1, 2)]:
        file.add("randint", {"shape": shape, "low": -3, "high": 17}, [key], [jax.random.randint(key, shape, -3, 17)])
    for dtype, low, high in [("uint8", 0, 256), ("uint8", 3, 200), ("int8", -128, 128), ("int16", -7, 300), ("uint32", 0, 2**31 + 7)]:
        bounds = jnp.asarray(low, "uint32" if dtype == "uint32" else "int32"), jnp.asarray(high, "uint32" if dtype == "uint32" else "int32")
        file.add("randint", {"shape": [6], "low": low, "high": high}, [key], [jax.random.randint(key, (6,), *bounds, dtype)])
    with jax.enable_x64(True):
        for low, high in [(0, 10), (-(2**40), 2**50 + 3)]:
            file.add("randint", {"shape": [6], "low": low, "high": high}, [key], [jax.random.randint(key, (6,), low, high, "int64")])


def permutations(file):
    for seed in (0, 42):
        key = jax.random.PRNGKey(seed)
        for n in (1, 2, 3, 10, 100, 1000, 2000) if seed == 0 else (10,):
            file.add("permutation", {"n": n}, [key], [jax.random.permutation(key, n)])
        values = np.arange(7, dtype=np.float32) * 1.5
        file.add("permutation", {"axis": 0, "independent": False}, [key, values], [jax.random.permutation(key, values)])
        table = np.arange(12, dtype=np.int32).reshape(4, 3)
        for axis in (0, 1):
            for independent in (False, True):
                out = jax.random.permutation(key, table, axis=axis, independent=independent)
                file.add("permutation", {"axis": axis, "independent": independent}, [key, table], [out])


def floats(file):
    """Uniform floats are exact: they are words with an exponent put over them."""
    for seed in (0, 1701):
        key = jax.random.PRNGKey(seed)
        for shape in [(), (5,), (2, 3), (0,)]:
            file.add("uniform", {"shape": shape, "low": 0.0, "high": 1.0}, [key], [jax.random.uniform(key, shape)])
            file.add("normal", {"shape": shape}, [key], [jax.random.normal(key, shape)])
        for low, high in [(-0.05, 0.05), (-1.0, 1.0), (2.0, 5.0), (-3.0, -1.0), (0.0, 1e-30), (1.0, 0.0)]:
            out = jax.random.uniform(key, (6,), minval=low, maxval=high)
            file.add("uniform", {"shape": [6], "low": low, "high": high}, [key], [out])
        for p in (0.0, 0.1, 0.5, 0.9, 1.0):
            file.add("bernoulli", {"shape": [20], "p": p}, [key], [jax.random.bernoulli(key, p, (20,))])
        file.add("normal", {"shape": [64]}, [key], [jax.random.normal(key, (64,))])
        file.add("uniform", {"shape": [64], "low": 0.0, "high": 1.0}, [key], [jax.random.uniform(key, (64,))])
        with jax.enable_x64(True):
            out = jax.random.uniform(key, (6,), "float64")
            file.add("uniform", {"shape": [6], "low": 0.0, "high": 1.0}, [key], [out])
            file.add("normal", {"shape": [6]}, [key], [jax.random.normal(key, (6,), "float64")])


def distributions(file):
    for seed in (0, 1701):
        key = jax.random.PRNGKey(seed)
        for shape in [(), (8,), (2, 3)]:
            for name in ("gumbel", "exponential", "laplace", "logistic", "cauchy", "rademacher"):
                file.add(name, {"shape": shape}, [key], [getattr(jax.random, name)(key, shape)])
        for low, high in [(-2.0, 2.0), (-1.0, 3.0), (0.5, 0.75), (-np.inf, 0.0), (2.5, 4.0)]:
            out = jax.random.truncated_normal(key, low, high, (8,))
            file.add("truncated_normal", {"shape": [8], "low": low, "high": high}, [key], [out])
        for alpha in (0.3, 1.0, 4.5):
            file.add("gamma", {"shape": [6], "alpha": alpha}, [key], [jax.random.gamma(key, alpha, (6,))])
        alpha = np.full(4, 0.3, np.float32)
        file.add("dirichlet", {"shape": []}, [key, alpha], [jax.random.dirichlet(key, alpha)])
        file.add("dirichlet", {"shape": [3]}, [key, alpha], [jax.random.dirichlet(key, alpha, (3,))])
        for alpha in (0.01, 0.3, 4.5):
            file.add("loggamma", {"shape": [6], "alpha": alpha}, [key], [jax.random.loggamma(key, alpha, (6,))])
        for a, b in [(0.5, 0.5), (2.0, 3.0), (1.0, 8.0)]:
            file.add("beta", {"shape": [6], "a": a, "b": b}, [key], [jax.random.beta(key, a, b, (6,))])
        for rate in (0.0, 0.5, 4.0, 9.9, 10.0, 50.0, 3000.0):
            file.add("poisson", {"shape": [8], "rate": rate}, [key], [jax.random.poisson(key, rate, (8,))])


def slopes(file):
    """Derivatives of draws by their parameters, by implicit reparameterization: vjps of the cotangents that are the last input."""
    alpha = np.array([0.05, 0.3, 0.9, 1.0, 1.7, 4.5, 20.0, 300.0], np.float32)
    other = np.array([0.4, 2.0, 0.7, 3.0, 1.0, 8.0, 5.0, 250.0], np.float32)
    weights = np.linspace(-1.0, 2.0, 8, dtype=np.float32)
    for seed in (0, 1701):
        key = jax.random.PRNGKey(seed)
        for name in ("gamma", "loggamma"):
            _, back = jax.vjp(lambda alpha: getattr(jax.random, name)(key, alpha), alpha)
            file.add(name + "_slope", {}, [key, alpha, weights], [*back(weights)])
        _, back = jax.vjp(lambda a, b: jax.random.beta(key, a, b), alpha, other)
        file.add("beta_slope", {}, [key, alpha, other, weights], [*back(weights)])
        _, back = jax.vjp(lambda alpha: jax.random.dirichlet(key, alpha), alpha)
        file.add("dirichlet_slope", {}, [key, alpha, weights], [*back(weights)])


def choices(file):
    rng = np.random.default_rng(7)
    vector = rng.normal(size=5).astype(np.float32)
    table = rng.normal(size=(7, 5)).astype(np.float32) * 2
    masked = np.array([0.0, -np.inf, 1.0, -np.inf, 0.5], np.float32)
    for seed in (0, 1701):
        key = jax.random.PRNGKey(seed)
        for logits in (vector, table, masked):
            file.add("categorical", {"axis": -1}, [key, logits], [jax.random.categorical(key, logits)])
        file.add("categorical", {"axis": 0}, [key, table], [jax.random.categorical(key, table, axis=0)])
        for logits in (vector, masked):
            attrs = {"axis": -1, "shape": [20]}
            file.add("categorical", attrs, [key, logits], [jax.random.categorical(key, logits, shape=(20,))])
        items = np.array([2, 3, 5, 7, 11, 13], np.int32)
        p = np.array([0.1, 0.2, 0.3, 0.15, 0.2, 0.05], np.float32)
        for shape, replace in [((4,), True), ((4,), False), ((), True)]:
            attrs = {"shape": shape, "replace": replace}
            file.add("choice", attrs, [key, items], [jax.random.choice(key, items, shape, replace)])
            file.add("choice", attrs, [key, items, p], [jax.random.choice(key, items, shape, replace, p)])


def draws(file):
    """Many keys at once, for how far draws are from these: the keys are `[K, 2]`, the draws `[K, ..]`."""
    keys = jax.random.split(jax.random.PRNGKey(2026), 32)
    logits = np.array([0.3, -1.2, 2.0, 0.0, 0.7], np.float32)
    alpha = np.full(4, 0.3, np.float32)
    r = jax.random
    of_shape = {
        "bits": lambda key, shape: r.bits(key, shape),
        "uniform": lambda key, shape: r.uniform(key, shape),
        "uniform_range": lambda key, shape: r.uniform(key, shape, minval=-3.0, maxval=0.7),
        "normal": lambda key, shape: r.normal(key, shape),
        "truncated_normal": lambda key, shape: r.truncated_normal(key, -2.0, 1.5, shape),
        "gumbel": lambda key, shape: r.gumbel(key, shape),
        "exponential": lambda key, shape: r.exponential(key, shape),
        "laplace": lambda key, shape: r.laplace(key, shape),
        "logistic": lambda key, shape: r.logistic(key, shape),
        "cauchy": lambda key, shape: r.cauchy(key, shape),
        "bernoulli": lambda key, shape: r.bernoulli(key, 0.3, shape),
        "rademacher": lambda key, shape: r.rademacher(key, shape),
        "randint": lambda key, shape: r.randint(key, shape, -5, 17),
        "categorical": lambda key, shape: r.categorical(key, logits, shape=shape),
        "gamma": lambda key, shape: r.gamma(key, 0.3, shape),
        "gamma_above_one": lambda key, shape: r.gamma(key, 4.5, shape),
        "loggamma": lambda key, shape: r.loggamma(key, 0.3, shape),
        "beta": lambda key, shape: r.beta(key, 2.0, 3.0, shape),
        "dirichlet": lambda key, shape: r.dirichlet(key, alpha, shape),
        "poisson": lambda key, shape: r.poisson(key, 4.0, shape),
        "poisson_above_ten": lambda key, shape: r.poisson(key, 50.0, shape),
        "permutation": lambda key, shape: r.permutation(key, 12),
    }
    for name, draw in of_shape.items():
        for shape in [(), (3, 4), (16,)] if name != "permutation" else [(12,)]:
            file.add("draws", {"of": name, "shape": shape}, [keys], [jax.vmap(lambda key: draw(key, shape))(keys)])


if __name__ == "__main__":
    file = File("random", "jax.random, threefry keys as u32[2], partitionable mode", ["jax", "jaxlib", "numpy"])
    for part in (threefry, keys, words, integers, permutations, floats, distributions, slopes, choices, draws):
        part(file)
    file.write()
