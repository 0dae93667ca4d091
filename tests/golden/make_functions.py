"""functions.json: functions of jax.numpy, jax.numpy.linalg, jax.ops and jax.lax that are several operations here, with gradients."""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from golden import Array, File
from named import f32

INF, NAN = np.inf, np.nan
EDGES = f32([0, -0.0, 1, -1, 0.5, -0.5, 1.5, -2.5, 3, 1e-8, 1e6, -1e6, 3e38, -3e38, INF, -INF, NAN])


class Functions:
    """Writes records. `weights` belong to the outputs that are floats, `gradients` to the inputs: those of the weighted sum of the outputs."""

    def __init__(self, file):
        self.file = file

    def add(self, op, attrs, function, *inputs, wrt=None, note=None):
        inputs = [jnp.asarray(x) for x in inputs]

        def several(*xs):
            out = function(*xs)
            return tuple(out) if isinstance(out, (tuple, list)) else (out,)

        outputs = jax.jit(several)(*inputs)
        rng = np.random.default_rng(zlib.crc32(op.encode()))
        weights = [f32(rng.normal(size=x.shape)) if x.dtype == jnp.float32 else None for x in outputs]
        smooth = [i for i, x in enumerate(inputs) if x.dtype == jnp.float32] if wrt is None else wrt
        gradients = [None] * len(inputs)
        if smooth and any(w is not None for w in weights):

            def total(*chosen):
                full = list(inputs)
                for i, x in zip(smooth, chosen):
                    full[i] = x
                return sum(jnp.sum(x * w) for x, w in zip(several(*full), weights) if w is not None)

            for i, g in zip(smooth, jax.jit(jax.grad(total, range(len(smooth))))(*[inputs[i] for i in smooth])):
                gradients[i] = Array(g)
        record = {"op": op, "attrs": attrs} | ({"note": note} if note else {})
        some = lambda values: [None if v is None else Array(v) for v in values]
        self.file.add_raw(record | {"inputs": some(inputs), "outputs": some(outputs), "weights": some(weights), "gradients": gradients})


def elementwise(f):
    rng = np.random.default_rng(301)
    for op, low, high in [("log2", 0.1, 5), ("log10", 0.1, 5), ("exp2", -3, 3), ("trunc", -3, 3), ("isinf", -3, 3), ("isnan", -3, 3), ("isfinite", -3, 3), ("nan_to_num", -3, 3)]:
        f.add(op, {}, getattr(jnp, op), f32(rng.uniform(low, high, 5)))
        f.add(op, {}, getattr(jnp, op), EDGES, wrt=[], note="edge values")
    f.add("exp2", {}, jnp.exp2, f32([0, 1, 2, 10, -3, 127, -126]), wrt=[], note="whole numbers")
    f.add("hypot", {}, jnp.hypot, f32([3, -3, 2, 5]), f32([4, 4, -1, 0]))
    # The gradient of jax is wrong where squares overflow or underflow, and where both are equal.
    f.add("hypot", {}, jnp.hypot, f32([1e30, 1e-30]), f32([1e30, 1e-30]), wrt=[])
    left, right = (x.reshape(-1) for x in np.meshgrid(EDGES, EDGES))
    f.add("hypot", {}, jnp.hypot, left, right, wrt=[], note="edge values")


def making(f):
    for args in [(0, 6, 1), (2, 9, 3), (6, 0, -2), (3, 3, 1), (5, 2, 1), (0.0, 1.0, 0.25), (1.0, 2.0, 0.3), (2.0, -1.0, -0.5)]:
        f.add("arange", {"args": list(args)}, lambda: jnp.arange(*args))


def matrices(f):
    rng = np.random.default_rng(302)
    x = f32(rng.normal(size=(3, 4)))
    batch = f32(rng.normal(size=(2, 3, 3)))
    for offset in (0, 1, -1, 3, -2):
        f.add("diagonal", {"offset": offset}, lambda x: jnp.diagonal(x, offset, -2, -1), x)
        f.add("diag", {"offset": offset}, lambda x: jnp.diag(x, offset), x)
        f.add("diag", {"offset": offset}, lambda x: jnp.diag(x, offset), f32([1, INF, NAN]), wrt=[])
    f.add("diagonal", {"offset": 1}, lambda x: jnp.diagonal(x, 1, -2, -1), batch)
    f.add("diag", {"offset": 1}, lambda x: jnp.diag(x, 1), f32([1, 2]))
    f.add("trace", {}, lambda x: jnp.trace(x, 0, -2, -1), x)
    f.add("trace", {}, lambda x: jnp.trace(x, 0, -2, -1), batch)
    f.add("kron", {}, jnp.kron, x, f32(rng.normal(size=(2, 2))))
    f.add("kron", {}, jnp.kron, x, f32(rng.normal(size=2)))
    f.add("cross", {}, jnp.cross, f32(rng.normal(size=(4, 3))), f32(rng.normal(size=3)))


def linalg(f):
    rng = np.random.default_rng(303)
    for n in (1, 2, 5, 8):
        a = f32(rng.normal(size=(n, n)) + np.eye(n))
        f.add("solve", {}, jnp.linalg.solve, a, f32(rng.normal(size=n)))
        f.add("solve", {}, jnp.linalg.solve, a, f32(rng.normal(size=(n, 2))))
        for op in ("inv", "det", "slogdet"):
            f.add(op, {}, getattr(jnp.linalg, op), a)
    a = f32(rng.normal(size=(2, 3, 3)))
    f.add("solve", {}, jnp.linalg.solve, a, f32(rng.normal(size=(2, 3, 1))))
    for op in ("inv", "det", "slogdet"):
        f.add(op, {}, getattr(jnp.linalg, op), a)
    pivots = f32([[0, 2, 1], [1, 0, 0], [3, 0, 1]])
    for op in ("inv", "det", "slogdet"):
        f.add(op, {}, getattr(jnp.linalg, op), pivots, note="zero pivots")
    for op in ("det", "slogdet"):
        f.add(op, {}, getattr(jnp.linalg, op), f32([[0, 0], [0, 0]]), wrt=[], note="zeros")
        f.add(op, {}, getattr(jnp.linalg, op), f32([[NAN, 0], [0, 1]]), wrt=[], note="NaN")
        f.add(op, {}, getattr(jnp.linalg, op), f32(np.diag([-2, -3, -4])), note="diagonal")
    f.add("slogdet", {}, jnp.linalg.slogdet, f32(np.eye(4) * 1e20), note="overflow of the determinant")
    x = f32(rng.normal(size=(3, 4)))
    for order in (0.0, 1.0, 2.0, 3.0, INF, -INF):
        f.add("vector_norm", {"order": order}, lambda x: jnp.linalg.vector_norm(x, ord=order, axis=-1), x)
        f.add("vector_norm", {"order": order}, lambda x: jnp.linalg.vector_norm(x, ord=order, axis=-1), f32([[1, INF], [NAN, 1], [0, 0]]), wrt=[], note="edge values")
    for order in ("fro", 1, INF):
        f.add("matrix_norm", {"order": str(order)}, lambda x: jnp.linalg.matrix_norm(x, ord=order), f32(rng.normal(size=(2, 3, 4))))


def order(f):
    rng = np.random.default_rng(304)
    values = f32([-1, 0, 0.5, 1, 2, 2.5, 9, INF, -INF, NAN])
    for edges in (f32([0, 1, 2]), f32([0, 0, 2, 2, 2, INF, NAN]), f32([1]), f32([])):
        for side in ("left", "right"):
            f.add("searchsorted", {"side": side}, lambda a, v: jnp.searchsorted(a, v, side), edges, values, wrt=[])
    f.add("searchsorted", {"side": "left"}, jnp.searchsorted, np.int32(np.sort(rng.integers(0, 20, 33))), rng.integers(-2, 23, (4, 5), np.int32))
    points, heights = f32([0, 1, 3]), f32([2, -1, 5])
    f.add("interp", {}, jnp.interp, f32([-1, 0.25, 0.9, 2, 2.9, 4]), points, heights)
    f.add("interp", {}, jnp.interp, f32([-1, 0, 1, 3, 4, INF, -INF, NAN]), points, heights, wrt=[], note="edge values")
    f.add("interp", {}, jnp.interp, f32([0.5, 1, 1.5]), f32([0, 1, 1, 2]), f32([0, 1, 3, 4]), wrt=[], note="a jump")
    x = f32(rng.normal(size=(4, 7)))
    for q in (0.0, 0.3, 0.5, 1.0):
        f.add("quantile", {"q": q}, lambda x: jnp.quantile(x, q), x)
        f.add("quantile_axis", {"q": q, "axis": 0}, lambda x: jnp.quantile(x, q, 0), x)
        f.add("quantile", {"q": q}, lambda x: jnp.quantile(x, q), f32([1, NAN, 2]), wrt=[], note="NaN")
    f.add("quantile_axis", {"q": [0.1, 0.5, 0.9], "axis": -1}, lambda x: jnp.quantile(x, f32([0.1, 0.5, 0.9]), -1), x)
    f.add("median", {}, jnp.median, x)
    f.add("median", {}, jnp.median, f32([3, 1, 2, INF]))
    f.add("median_axis", {"axis": 1}, lambda x: jnp.median(x, 1), x)
    f.add("diff", {"axis": 0}, lambda x: jnp.diff(x, axis=0), x)
    f.add("diff", {"axis": -1}, lambda x: jnp.diff(x, axis=-1), x)
    f.add("diff", {"axis": 0}, lambda x: jnp.diff(x, axis=0), np.array([True, True, False]))
    f.add("diff", {"axis": 0}, lambda x: jnp.diff(x, axis=0), f32([1]))


def counting(f):
    rng = np.random.default_rng(305)
    f.add("bincount", {"length": 5}, lambda x: jnp.bincount(x, length=5), np.int32([0, 1, 1, 4, 9, -2, 4, 4]))
    for x in (np.array([True, False, True, True]), np.array([False] * 3), f32([[0, 2, -0.0], [NAN, 0, -1]]), np.zeros((0,), np.int32)):
        f.add("nonzero", {"size": 3, "fill": -1}, lambda x: jnp.nonzero(x, size=3, fill_value=-1), x, wrt=[])
    ids = np.int32([2, 0, 2, 7, 1, 2])
    f.add("segment_sum", {"segments": 4}, lambda x, i: jax.ops.segment_sum(x, i, 4), f32(rng.normal(size=6)), ids)
    f.add("segment_sum", {"segments": 3}, lambda x, i: jax.ops.segment_sum(x, i, 3), f32(rng.normal(size=(6, 2))), ids)


def convolutions(f):
    rng = np.random.default_rng(306)
    x, k = f32(rng.normal(size=(2, 7, 3))), f32(rng.normal(size=(3, 3, 4)))
    numbers = ("NWC", "WIO", "NWC")
    for stride, padding in [(1, "VALID"), (2, "VALID"), (1, "SAME"), (2, "SAME"), (3, "SAME")]:
        attrs = {"stride": stride, "padding": padding}
        f.add("conv1d", attrs, lambda x, k: lax.conv_general_dilated(x, k, (stride,), padding, dimension_numbers=numbers), x, k)
    for width in (1, 2, 3, 4):
        k = f32(rng.normal(size=(width, 3, 2)))
        for stride in (1, 2, 3):
            for padding in ("VALID", "SAME", [(1, 2)]):
                attrs = {"strides": [stride], "padding": padding}
                f.add("conv_transpose", attrs, lambda x, k: lax.conv_transpose(x, k, (stride,), padding, dimension_numbers=numbers), x[:, :4], k)
    x, k = f32(rng.normal(size=(1, 3, 4, 2))), f32(rng.normal(size=(3, 2, 2, 3)))
    f.add("conv_transpose", {"strides": [2, 3], "padding": "SAME"}, lambda x, k: lax.conv_transpose(x, k, (2, 3), "SAME"), x, k)


def reductions(f):
    rng = np.random.default_rng(307)
    x = f32(rng.normal(size=(2, 3, 4)))
    for op in ("sum", "prod", "max", "min", "mean", "var", "std"):
        for axes in ([-1], [0, 2]):
            f.add(op, {"axes": axes}, lambda x: getattr(jnp, op)(x, axis=tuple(axes), keepdims=True), x)
    f.add("logsumexp", {"axes": [1]}, lambda x: jax.scipy.special.logsumexp(x, axis=1, keepdims=True), x)
    f.add("any", {"axes": [1]}, lambda x: jnp.any(x, axis=1, keepdims=True), x > 1)


if __name__ == "__main__":
    file = File("functions", "functions of jax.numpy and others that are several operations here, with gradients", ["jax", "jaxlib", "numpy"])
    for part in (elementwise, making, matrices, linalg, order, counting, convolutions, reductions):
        part(Functions(file))
    file.write()
