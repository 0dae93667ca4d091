"""Operations on each element alone: arithmetic, logic, comparison, selection, conversion."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from golden import DTYPES
from ops_record import Ops, random

INF, NAN = np.inf, np.nan
BIG, TINY = 3.4028235e38, 1.1754944e-38
EDGES = np.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 3, -3, 1e-8, 1e6, -1e6, 88.5, -88.5, 105, -105, TINY, BIG, -BIG, INF, -INF, NAN], np.float32)
DENORMALS = np.array([1e-45, -1e-45, 1e-40, 5e-39], np.float32)

# Where each function is smooth, for derivatives: (low, high) of uniform draws.
UNARY = {
    "negate": (lax.neg, -3, 3),
    "abs": (lax.abs, -3, 3),
    "sign": (lax.sign, -3, 3),
    "exponential": (lax.exp, -3, 3),
    "exponential_minus_one": (lax.expm1, -2, 2),
    "log": (lax.log, 0.1, 5),
    "log_plus_one": (lax.log1p, -0.8, 4),
    "sqrt": (lax.sqrt, 0.1, 5),
    "rsqrt": (lax.rsqrt, 0.1, 5),
    "cbrt": (lax.cbrt, 0.1, 5),
    "sine": (lax.sin, -4, 4),
    "cosine": (lax.cos, -4, 4),
    "tan": (lax.tan, -1.3, 1.3),
    "tanh": (lax.tanh, -3, 3),
    "logistic": (lax.logistic, -5, 5),
    "floor": (lax.floor, -3, 3),
    "ceil": (lax.ceil, -3, 3),
    "round_nearest_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), -3, 3),
    "round_nearest_afz": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), -3, 3),
    "square": (lax.square, -3, 3),
    "erf": (lax.erf, -2, 2),
    "erfc": (lax.erfc, -2, 2),
    "erf_inv": (lax.erf_inv, -0.95, 0.95),
    "sinh": (lax.sinh, -2, 2),
    "cosh": (lax.cosh, -2, 2),
    "asin": (lax.asin, -0.9, 0.9),
    "acos": (lax.acos, -0.9, 0.9),
    "atan": (lax.atan, -3, 3),
    "asinh": (lax.asinh, -3, 3),
    "acosh": (lax.acosh, 1.2, 4),
    "atanh": (lax.atanh, -0.9, 0.9),
    "lgamma": (lax.lgamma, 0.5, 5),
    "digamma": (lax.digamma, 0.5, 5),
}


def unary(ops):
    rng = np.random.default_rng(101)
    for op, (function, low, high) in UNARY.items():
        ops.add(op, {}, function, np.float32(rng.uniform(low, high, (2, 3))))
        # Digamma's derivative and value at poles say nothing useful.
        ops.add(op, {}, function, EDGES, differentiate=False, note="edge values")
        ops.add(op, {}, function, np.zeros((0,), np.float32))
    for op in ("sine", "cosine", "tanh", "exponential", "log", "logistic", "erf_inv", "sqrt"):
        function, low, high = UNARY[op]
        with jax.enable_x64(True):
            ops.add(op, {}, function, rng.uniform(low, high, 5))
    for op in ("negate", "abs", "sign", "sqrt", "floor", "exponential"):
        ops.add(op, {}, UNARY[op][0], DENORMALS, differentiate=False, note="denormals")
    ops.add("abs", {}, lax.abs, np.float32([0, -0.0]), note="derivative at a kink")
    ops.add("sign", {}, lax.sign, np.float32([0, -0.0]), note="derivative at a kink")
    ops.add("tanh", {}, lax.tanh, np.float32([0, 1e-4, 0.02, 5, 9, 12, -9]), note="derivative far out")
    ops.add("logistic", {}, lax.logistic, np.float32([0, 20, -20, 80, -80]), note="derivative far out")
    ops.add("is_finite", {}, lax.is_finite, EDGES)
    for exponent in (2, 3, -1, -2, 0, 5):
        ops.add("integer_pow", {"exponent": exponent}, lambda x: lax.integer_pow(x, exponent), np.float32(rng.uniform(0.5, 2, 4)))
    ops.add("reduce_precision", {"exponent_bits": 8, "mantissa_bits": 7}, lambda x: lax.reduce_precision(x, 8, 7), np.float32(rng.normal(size=6)), differentiate=False)


def extremes(dtype):
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2, *([-1, -2, -7] if info.min else [])], dtype)


INTEGERS = ["int32", "uint32", "uint8", "int8", "int64", "uint64"]


def unary_integers(ops):
    for dtype in INTEGERS:
        with jax.enable_x64(dtype.endswith("64")):
            x = extremes(dtype)
            for op, function in [("not", lax.bitwise_not), ("popcnt", lax.population_count), ("count_leading_zeros", lax.clz), ("negate", lax.neg), ("sign", lax.sign)]:
                ops.add(op, {}, function, x)
            if dtype.startswith("int"):
                ops.add("abs", {}, lax.abs, x)
    ops.add("not", {}, lax.bitwise_not, np.array([True, False]))


BINARY = {
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "divide": lax.div,
    "remainder": lax.rem,
    "power": lax.pow,
    "maximum": lax.max,
    "minimum": lax.min,
    "atan2": lax.atan2,
}


def pairs(values):
    """Every value with every other."""
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


def binary(ops):
    rng = np.random.default_rng(102)
    few = np.array([0, -0.0, 1, -1, 0.5, -2, 3, BIG, INF, -INF, NAN], np.float32)
    for op, function in BINARY.items():
        x, y = random(rng, (2, 3)), random(rng, (2, 3))
        if op == "power":
            x = np.abs(x) + np.float32(0.1)
        ops.add(op, {}, function, x, y)
        ops.add(op, {}, function, *pairs(few), differentiate=False, note="edge values")
        ops.add(op, {}, function, np.zeros((2, 0), np.float32), np.zeros((2, 0), np.float32))
        with jax.enable_x64(True):
            ops.add(op, {}, function, np.abs(random(rng, (4,), "float64")), random(rng, (4,), "float64"))
    for op in ("add", "multiply", "maximum"):
        ops.add(op, {}, BINARY[op], *pairs(np.append(DENORMALS, np.float32(1))), differentiate=False, note="denormals")
    tie = np.float32([1, 2, -1])
    for op in ("maximum", "minimum"):
        ops.add(op, {}, BINARY[op], tie, tie, note="ties: each side gets half")
    ops.add("power", {}, lax.pow, np.float32([0, 0, 0, 2]), np.float32([2, 1, 0, 0]), note="derivative at edges")
    ops.add("power", {}, lax.pow, np.float32([-2, -3]), np.float32([2, 3]), wrt=[0], note="negative base")
    ops.add("remainder", {}, lax.rem, np.float32([5.5, -5.5, 5.5, -5.5, 6]), np.float32([2, 2, -2, -2, 3]))
    for dtype in INTEGERS:
        with jax.enable_x64(dtype.endswith("64")):
            x, y = pairs(extremes(dtype)[[0, 1, 3, 5, 7, 8, -1]])
            for op in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"):
                note = "division by zero gives -1 and the dividend, the least by -1 itself and 0" if op in ("divide", "remainder") else None
                ops.add(op, {}, BINARY[op], x, y, note=note)
            for op, function in [("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor)]:
                ops.add(op, {}, function, x, y)
            bits = np.iinfo(dtype).bits
            values = extremes(dtype)[[1, 4, 5, 7, -1]]
            amounts = np.array([0, 1, 3, bits - 1, bits, bits + 1] + ([-1] if np.iinfo(dtype).min else []), dtype)
            value, amount = (a.reshape(-1) for a in np.meshgrid(values, amounts, indexing="ij"))
            for op, function in [("shift_left", lax.shift_left), ("shift_right_logical", lax.shift_right_logical), ("shift_right_arithmetic", lax.shift_right_arithmetic)]:
                ops.add(op, {}, function, value, amount, note="amounts past the width too")
    for exponent in (0, 1, 3, 31):
        ops.add("integer_pow", {"exponent": exponent}, lambda x: lax.integer_pow(x, exponent), np.array([0, 1, -1, 2, -3, 7], np.int32))
    flags = pairs(np.array([True, False]))
    for op, function in [("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor)]:
        ops.add(op, {}, function, *flags)
    for op in ("maximum", "minimum"):
        ops.add(op, {}, BINARY[op], *flags)


def compare(ops):
    few = np.array([0, -0.0, 1, -1, INF, -INF, NAN], np.float32)
    for direction in ("EQ", "NE", "GE", "GT", "LE", "LT"):
        function = getattr(lax, direction.lower())
        ops.add("compare", {"direction": direction}, function, *pairs(few))
        ops.add("compare", {"direction": direction}, function, *pairs(np.array([0, 1, -1, 2**31 - 1, -(2**31)], np.int32)))
        ops.add("compare", {"direction": direction}, function, *pairs(np.array([0, 1, 2**31, 2**32 - 1], np.uint32)))
        ops.add("compare", {"direction": direction}, function, *pairs(np.array([True, False])))
    for direction, primitive in [("EQ", lax.eq_to_p), ("LE", lax.le_to_p), ("LT", lax.lt_to_p)]:
        attrs = {"direction": direction, "compare_type": "TOTALORDER"}
        ops.add("compare", attrs, primitive.bind, *map(jnp.asarray, pairs(few)))


def select_and_clamp(ops):
    rng = np.random.default_rng(103)
    pred = np.array([[True, False, True], [False, False, True]])
    for dtype in ("float32", "int32", "uint8", "bool"):
        ops.add("select", {}, lax.select, pred, random(rng, (2, 3), dtype), random(rng, (2, 3), dtype))
    for flag in (True, False):
        ops.add("select", {}, lax.select, np.array(flag), random(rng, (2, 3)), random(rng, (2, 3)), note="one predicate for all")
    ops.add("select", {}, lax.select, np.array([True, False]), np.float32([NAN, NAN]), np.float32([INF, 1.0]), note="NaN on both sides")
    low, high = np.float32(-0.5), np.float32(0.7)
    ops.add("clamp", {}, lax.clamp, low, random(rng, (2, 5)), high, wrt=[1])
    ops.add("clamp", {}, lax.clamp, random(rng, (6,)) - 1, random(rng, (6,), scale=2), random(rng, (6,)) + 1)
    ops.add("clamp", {}, lax.clamp, low, EDGES, high, differentiate=False, note="edge values")
    ops.add("clamp", {}, lax.clamp, np.float32(1), np.float32([-2, 0, 2, NAN]), np.float32(-1), differentiate=False, note="low above high")
    ops.add("clamp", {}, lax.clamp, np.float32(NAN), np.float32([-2, 0, 2]), np.float32(1), differentiate=False, note="a bound is NaN")
    ops.add("clamp", {}, lax.clamp, np.int32(-3), extremes("int32"), np.int32(5))
    ops.add("clamp", {}, lax.clamp, np.float32(0), np.float32([0, 1, 0.5]), np.float32(1), wrt=[1], note="derivative at the bounds")


def convert(ops):
    rng = np.random.default_rng(104)
    finite = np.array([0, -0.0, 1, -1, 0.4, 0.5, 0.6, 1.5, 2.5, -1.5, -2.7, 100.9, 127.5, 3e9, 16777217], np.float32)
    safe = {"int32": finite[:13], "int64": finite, "uint32": np.abs(finite), "uint8": np.abs(finite[:13]), "bool": EDGES}
    for dtype, x in safe.items():
        with jax.enable_x64(dtype.endswith("64")):
            ops.add("convert", {"dtype": short(dtype)}, lambda x: lax.convert_element_type(x, dtype), x)
    for dtype in ("int32", "uint32", "uint8"):
        x = np.array([3e9, -3e9, 300, -1, INF, -INF, NAN], np.float32)
        ops.add("convert", {"dtype": short(dtype)}, lambda x: lax.convert_element_type(x, dtype), x, note="out of range: StableHLO leaves it open, this is XLA on the CPU")
    with jax.enable_x64(True):
        for source in ("int32", "uint32", "uint8", "int64", "bool"):
            x = np.array([True, False]) if source == "bool" else np.append(extremes(source), np.array([16777217 if source != "uint8" else 77], source))
            for target in ("float32", "float64", "int32", "uint32", "uint8", "int8", "bool", "int64", "bfloat16"):
                if target != source:
                    ops.add("convert", {"dtype": short(target)}, lambda x: lax.convert_element_type(x, target), x)
        x = np.concatenate([random(rng, (6,)), EDGES])
        for target in ("float64", "bfloat16", "float16"):
            ops.add("convert", {"dtype": short(target)}, lambda x: lax.convert_element_type(x, target), x, note="rounds to nearest, ties to even")
            ops.add("convert", {"dtype": short(target)}, lambda x: lax.convert_element_type(x, target), random(rng, (4,)))
        for source in (np.float64, ml_dtypes.bfloat16, np.float16):
            ops.add("convert", {"dtype": "f32"}, lambda x: lax.convert_element_type(x, np.float32), random(rng, (6,), "float64").astype(source))
    for x, target in [
        (EDGES, "uint32"),
        (DENORMALS, "int32"),
        (np.array([0, 0x3F800000, 0x80000000, 0x7F800000, 0xFF800000, 1, 0x42280000], np.uint32), "float32"),
        (np.float32([1.5, -2]), "uint8"),
        (np.array([[0, 0, 0xC0, 0x3F], [1, 2, 3, 4]], np.uint8), "float32"),
        (np.array([[1, 2], [0xFFFFFFFF, 7]], np.uint32), "uint64"),
        (np.array([2**63 + 5, 2**32 + 1], np.uint64), "uint32"),
        (np.array([1, -1, 127, -128], np.int8), "uint8"),
    ]:
        with jax.enable_x64(True):
            ops.add("bitcast_convert", {"dtype": short(target)}, lambda x: lax.bitcast_convert_type(x, target), x, differentiate=False)


def short(dtype):
    """The name of a dtype in the files."""
    return DTYPES[dtype]


def make(file):
    ops = Ops(file)
    for part in (unary, unary_integers, binary, compare, select_and_clamp, convert):
        part(ops)
