"""Operations over whole axes: reductions, cumulative sums, products of matrices, convolutions, sorting, linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ops_record import Ops, random

INF, NAN = np.inf, np.nan
AXES = [((6,), (0,)), ((3, 4), (0,)), ((3, 4), (1,)), ((3, 4), (0, 1)), ((2, 3, 4), (0, 2)), ((3, 4), ()), ((0,), (0,)), ((2, 0), (1,)), ((0, 2), (1,))]


def reductions(ops):
    rng = np.random.default_rng(301)
    for op in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod"):
        f = getattr(lax, op)
        for shape, axes in AXES:
            # An extremum over nothing has no derivative.
            empty = op in ("reduce_max", "reduce_min") and any(shape[a] == 0 for a in axes)
            ops.add(op, {"axes": axes}, lambda x: f(x, axes), random(rng, shape), differentiate=not empty)
        special = np.array([[1, NAN, 2], [INF, -INF, 0], [-INF, 1, 3], [0, -0.0, 0]], np.float32)
        ops.add(op, {"axes": [1]}, lambda x: f(x, (1,)), special, differentiate=False, note="edge values")
        for dtype in ("int32", "uint32", "uint8"):
            ops.add(op, {"axes": [0]}, lambda x: f(x, (0,)), random(rng, (3, 2), dtype))
        ops.add(op, {"axes": [0]}, lambda x: f(x, (0,)), np.array([2**31 - 1, 2**31 - 1, 5], np.int32), note="wraps")
        ops.add(op, {"axes": [0]}, lambda x: f(x, (0,)), np.zeros((0, 2), np.int32))
    for op in ("reduce_max", "reduce_min"):
        f = getattr(lax, op)
        ops.add(op, {"axes": [1]}, lambda x: f(x, (1,)), np.float32([[2, 2, 2], [1, 3, 3], [1, 1, 3]]), note="ties share the derivative equally")
    ops.add("reduce_prod", {"axes": [0]}, lambda x: lax.reduce_prod(x, (0,)), np.float32([[0, 0, 2], [3, 0, 4], [2, 5, 3]]), note="derivative through zeros")
    for op, f in [("reduce_and", lax.reduce_and), ("reduce_or", lax.reduce_or), ("reduce_xor", lax.reduce_xor)]:
        for shape, axes in AXES:
            ops.add(op, {"axes": axes}, lambda x: f(x, axes), random(rng, shape, "bool"))
        ops.add(op, {"axes": [1]}, lambda x: f(x, (1,)), random(rng, (2, 3), "uint8"))


def arg_extrema(ops):
    rng = np.random.default_rng(302)
    for op, f in [("argmax", lax.argmax), ("argmin", lax.argmin)]:
        for shape, axis in [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 2), 1), ((0, 3), 1)]:
            ops.add(op, {"axis": axis}, lambda x: f(x, axis, jnp.int32), random(rng, shape))
        special = [[1, NAN, 2, NAN], [3, 3, 1, 1], [INF, -INF, INF, -INF], [0, -0.0, 0, -0.0], [-0.0, 0, 0, -0.0], [NAN, NAN, NAN, NAN], [-INF, -INF, -INF, -INF]]
        ops.add(op, {"axis": 1}, lambda x: f(x, 1, jnp.int32), np.float32(special), note="the first NaN wins, then the first of equals")
        ops.add(op, {"axis": 0}, lambda x: f(x, 0, jnp.int32), np.array([3, -7, 9, 9, -7], np.int32))
        ops.add(op, {"axis": 0}, lambda x: f(x, 0, jnp.int32), np.array([3, 2**32 - 1, 0, 2**31], np.uint32))
        ops.add(op, {"axis": 0}, lambda x: f(x, 0, jnp.int32), np.array([False, True, True, False]))


def cumulative(ops):
    rng = np.random.default_rng(303)
    for op, f in [("cumsum", lax.cumsum), ("cumprod", lax.cumprod), ("cummax", lax.cummax), ("cummin", lax.cummin), ("cumlogsumexp", lax.cumlogsumexp)]:
        for shape, axis in [((6,), 0), ((3, 4), 0), ((3, 4), 1), ((1,), 0), ((0,), 0)]:
            for reverse in (False, True):
                ops.add(op, {"axis": axis, "reverse": reverse}, lambda x: f(x, axis, reverse), random(rng, shape))
        ops.add(op, {"axis": 0, "reverse": False}, lambda x: f(x, 0), np.float32([1, -INF, NAN, 2, INF]), differentiate=False, note="edge values")
        if op != "cumlogsumexp":
            ops.add(op, {"axis": 0, "reverse": False}, lambda x: f(x, 0), np.array([3, -2, 5, 5, -9], np.int32))
    ops.add("cummax", {"axis": 0, "reverse": False}, lambda x: lax.cummax(x, 0), np.float32([1, 3, 3, 2, 5]), note="derivative at ties")


def dot(ops):
    rng = np.random.default_rng(304)
    for left, right, contract, batch in [
        ((3,), (3,), ((0,), (0,)), ((), ())),
        ((2, 3), (3, 4), ((1,), (0,)), ((), ())),
        ((2, 3), (4, 3), ((1,), (1,)), ((), ())),
        ((3, 2), (3, 4), ((0,), (0,)), ((), ())),
        ((2, 3), (3,), ((1,), (0,)), ((), ())),
        ((2,), (3,), ((), ()), ((), ())),
        ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
        ((3, 2, 4), (4, 3, 5), ((2,), (0,)), ((0,), (1,))),
        ((2, 3, 4), (3, 4, 5), ((1, 2), (0, 1)), ((), ())),
        ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0)), ((), ())),
        ((2, 3), (2, 3), ((1,), (1,)), ((0,), (0,))),
        ((2, 0), (0, 3), ((1,), (0,)), ((), ())),
        ((2, 2, 3, 2), (2, 2, 3), ((3,), (1,)), ((1,), (0,))),
    ]:
        attrs = {"lhs_batch": batch[0], "rhs_batch": batch[1], "lhs_contract": contract[0], "rhs_contract": contract[1]}
        f = lambda x, y: lax.dot_general(x, y, (contract, batch))
        ops.add("dot_general", attrs, f, random(rng, left), random(rng, right))
        if left == (2, 3) and right == (3, 4):
            for dtype in ("int32", "uint8"):
                ops.add("dot_general", attrs, f, random(rng, left, dtype), random(rng, right, dtype))
            with jax.enable_x64(True):
                ops.add("dot_general", attrs, f, random(rng, left, "float64"), random(rng, right, "float64"))


def sorting(ops):
    rng = np.random.default_rng(305)
    order = "stable; 0 and -0 are equal; NaN comes last, whatever its sign"
    for shape, dimension in [((6,), 0), ((3, 4), 0), ((3, 4), 1), ((0,), 0), ((1,), 0)]:
        ops.add("sort", {"dimension": dimension, "num_keys": 1, "is_stable": True}, lambda x: lax.sort(x, dimension), random(rng, shape))
    special = np.float32([3, NAN, -0.0, 0, -INF, INF, -NAN, 1, 0, -0.0])
    ops.add("sort", {"dimension": 0, "num_keys": 1, "is_stable": True}, lambda x: lax.sort(x), special, differentiate=False, note=order)
    places = np.arange(10, dtype=np.int32)
    ops.add("sort", {"dimension": 0, "num_keys": 1, "is_stable": True}, lambda *x: lax.sort(x, num_keys=1), special, places, differentiate=False, note=order)
    for dtype in ("int32", "uint32", "uint8"):
        x = random(rng, (8,), dtype)
        ops.add("sort", {"dimension": 0, "num_keys": 1, "is_stable": True}, lambda *x: lax.sort(x, num_keys=1), x, np.arange(8, dtype=np.int32))
    ops.add("sort", {"dimension": 0, "num_keys": 1, "is_stable": True}, lambda x: lax.sort(x), np.array([True, False, True]))
    first, second = np.array([2, 1, 2, 1, 2], np.int32), random(rng, (5,))
    for keys in (1, 2):
        f = lambda *x: lax.sort(x, num_keys=keys)
        ops.add("sort", {"dimension": 0, "num_keys": keys, "is_stable": True}, f, first, second, random(rng, (5,)))
    f = lambda *x: lax.sort(x, dimension=1, num_keys=1)
    ops.add("sort", {"dimension": 1, "num_keys": 1, "is_stable": True}, f, random(rng, (2, 4)), random(rng, (2, 4)))
    for shape, k in [((6,), 3), ((2, 5), 2), ((4,), 4)]:
        ops.add("top_k", {"k": k}, lambda x: lax.top_k(x, k), random(rng, shape))
    ops.add("top_k", {"k": 3}, lambda x: lax.top_k(x, 3), np.float32([1, 2, 2, 0, 2]), differentiate=False, note="the first of equals comes first")


def convolution(ops):
    rng = np.random.default_rng(306)
    cases = [
        # input NHWC, kernel HWIO, strides, padding, input dilation, kernel dilation, groups
        ((1, 5, 4, 2), (3, 2, 2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 1),
        ((2, 5, 4, 2), (3, 2, 2, 3), (2, 1), ((1, 1), (0, 1)), (1, 1), (1, 1), 1),
        ((1, 6, 6, 1), (3, 3, 1, 2), (2, 2), ((1, 0), (1, 2)), (1, 1), (1, 1), 1),
        ((1, 3, 3, 2), (2, 2, 2, 2), (1, 1), ((1, 1), (1, 1)), (2, 2), (1, 1), 1),
        ((1, 6, 5, 1), (2, 2, 1, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (2, 3), 1),
        ((1, 4, 4, 4), (2, 2, 2, 6), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 2),
        ((1, 4, 4, 2), (2, 2, 2, 3), (1, 1), ((-1, 0), (0, -1)), (1, 1), (1, 1), 1),
    ]
    for x, kernel, strides, padding, lhs_dilation, rhs_dilation, groups in cases:
        attrs = {"strides": strides, "padding": padding, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation, "feature_group_count": groups, "layout": "NHWC, HWIO -> NHWC"}
        f = lambda x, k: lax.conv_general_dilated(x, k, strides, padding, lhs_dilation, rhs_dilation, ("NHWC", "HWIO", "NHWC"), groups)
        ops.add("convolution", attrs, f, random(rng, x), random(rng, kernel))
    f = lambda x, k: lax.conv_general_dilated(x, k, (1,), ((1, 0),), dimension_numbers=("NWC", "WIO", "NWC"))
    attrs = {"strides": [1], "padding": [[1, 0]], "lhs_dilation": [1], "rhs_dilation": [1], "feature_group_count": 1, "layout": "NWC, WIO -> NWC"}
    ops.add("convolution", attrs, f, random(rng, (2, 5, 3)), random(rng, (2, 3, 4)))
    for op, computation, start in [("max", lax.max, -np.inf), ("sum", lax.add, 0.0)]:
        for window, strides, padding in [((1, 2, 2, 1), (1, 2, 2, 1), "VALID"), ((1, 3, 2, 1), (1, 1, 2, 1), "SAME")]:
            pads = lax.padtype_to_pads((1, 4, 5, 2), window, strides, padding)
            attrs = {"computation": op, "window": window, "strides": strides, "padding": pads}
            f = lambda x: lax.reduce_window(x, start, computation, window, strides, pads)
            ops.add("reduce_window", attrs, f, random(rng, (1, 4, 5, 2)))


def linear_algebra(ops):
    rng = np.random.default_rng(307)
    a = random(rng, (3, 3), "float64")
    positive = np.float32(a @ a.T + 3 * np.eye(3))
    lower = np.float32(np.tril(a) + 2 * np.eye(3))
    symmetric = lambda x: lax.linalg.cholesky((x + x.T) / 2, symmetrize_input=False)
    ops.add("cholesky", {"lower": True, "note": "of (x + x^T) / 2"}, symmetric, positive)
    for left_side, transpose in [(True, False), (True, True), (False, False), (False, True)]:
        attrs = {"left_side": left_side, "lower": True, "transpose_a": transpose, "unit_diagonal": False}
        f = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left_side, lower=True, transpose_a=transpose)
        ops.add("triangular_solve", attrs, f, lower, random(rng, (3, 2) if left_side else (2, 3)))


def make(file):
    ops = Ops(file)
    for part in (reductions, arg_extrema, cumulative, dot, sorting, convolution, linear_algebra):
        part(ops)
