"""Operations that move elements: shapes, slices, gathers and scatters."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from golden import DTYPES
from ops_record import Ops, random


def make_and_reshape(ops):
    rng = np.random.default_rng(201)
    for shape, dimension, dtype in [((4,), 0, "int32"), ((2, 3), 0, "float32"), ((2, 3), 1, "uint32"), ((2, 0), 0, "int32"), ((3,), 0, "uint8"), ((2, 2, 2), 1, "float32")]:
        ops.add("iota", {"shape": shape, "dimension": dimension, "dtype": DTYPES[dtype]}, lambda: lax.broadcasted_iota(dtype, shape, dimension))
    for source, shape, dimensions in [((), (2, 3), ()), ((3,), (2, 3), (1,)), ((2,), (2, 3), (0,)), ((2, 1), (2, 3), (0, 1)), ((1,), (4,), (0,)), ((2, 3), (2, 4, 3), (0, 2)), ((1, 3), (2, 0, 3), (1, 2)), ((2,), (2,), (0,))]:
        if 0 in shape:
            source, dimensions = (3,), (2,)
        ops.add("broadcast_in_dim", {"shape": shape, "dimensions": dimensions}, lambda x: lax.broadcast_in_dim(x, shape, dimensions), random(rng, source))
    for source, shape in [((2, 3), (6,)), ((6,), (3, 2)), ((2, 3, 4), (4, 6)), ((1,), ()), ((), (1, 1)), ((0, 3), (3, 0, 2))]:
        ops.add("reshape", {"shape": shape}, lambda x: lax.reshape(x, shape), random(rng, source))
    for source, permutation in [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (0, 2, 1)), ((4,), (0,)), ((), ()), ((0, 2), (1, 0))]:
        ops.add("transpose", {"permutation": permutation}, lambda x: lax.transpose(x, permutation), random(rng, source))
    ops.add("transpose", {"permutation": (1, 0)}, lambda x: lax.transpose(x, (1, 0)), random(rng, (2, 3), "int32"))
    for source, dimensions in [((4,), (0,)), ((2, 3), (0,)), ((2, 3), (0, 1)), ((2, 3), ()), ((0, 2), (0,))]:
        ops.add("reverse", {"dimensions": dimensions}, lambda x: lax.rev(x, dimensions), random(rng, source))


def join_and_pad(ops):
    rng = np.random.default_rng(202)
    for shapes, dimension in [([(2,), (3,)], 0), ([(2, 3), (2, 1), (2, 2)], 1), ([(1, 2), (2, 2)], 0), ([(0, 2), (2, 2)], 0), ([(2, 2)], 1)]:
        ops.add("concatenate", {"dimension": dimension}, lambda *xs: lax.concatenate(xs, dimension), *[random(rng, s) for s in shapes])
    ops.add("concatenate", {"dimension": 0}, lambda *xs: lax.concatenate(xs, 0), random(rng, (2,), "bool"), random(rng, (3,), "bool"))
    for source, low, high, interior in [
        ((3,), (1,), (2,), (0,)),
        ((3,), (0,), (0,), (2,)),
        ((4,), (-1,), (-2,), (0,)),
        ((4,), (-1,), (2,), (1,)),
        ((2, 3), (1, 0), (0, 2), (0, 1)),
        ((2, 3), (-1, 2), (3, -2), (2, 0)),
        ((0,), (2,), (1,), (0,)),
        ((3,), (-4,), (2,), (0,)),
    ]:
        config = tuple(zip(low, high, interior))
        attrs = {"low": low, "high": high, "interior": interior}
        ops.add("pad", attrs, lambda x, value: lax.pad(x, value, config), random(rng, source), random(rng, ()))
    ops.add("pad", {"low": [1], "high": [1], "interior": [1]}, lambda x, v: lax.pad(x, v, [(1, 1, 1)]), np.array([1, 2, 3], np.int32), np.int32(9))


def slices(ops):
    rng = np.random.default_rng(203)
    for source, start, limit, strides in [((5,), (1,), (4,), (1,)), ((7,), (0,), (7,), (3,)), ((7,), (1,), (6,), (2,)), ((3, 4), (1, 0), (3, 4), (1, 2)), ((3,), (2,), (2,), (1,)), ((2, 3, 4), (0, 1, 2), (2, 2, 4), (1, 1, 1))]:
        attrs = {"start": start, "limit": limit, "strides": strides}
        ops.add("slice", attrs, lambda x: lax.slice(x, start, limit, strides), random(rng, source))
    for source, starts, sizes in [((5,), (1,), (3,)), ((5,), (4,), (3,)), ((5,), (-2,), (3,)), ((3, 4), (1, 2), (2, 2)), ((3, 4), (-1, 9), (2, 2)), ((4,), (2,), (0,)), ((3,), (0,), (3,))]:
        f = lambda x, *starts: lax.dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)
        note = "starts are clamped" if any(s < 0 or s + n > d for s, n, d in zip(starts, sizes, source)) else None
        ops.add("dynamic_slice", {"sizes": sizes}, f, random(rng, source), *[np.int32(s) for s in starts], note=note)
        update = random(rng, sizes)
        f = lambda x, u, *starts: lax.dynamic_update_slice_p.bind(x, u, *starts)
        ops.add("dynamic_update_slice", {}, f, random(rng, source), update, *[np.int32(s) for s in starts], note=note)
    f = lambda x, start: lax.dynamic_slice_p.bind(x, start, slice_sizes=(2,))
    # Without a derivative: where the start is a constant, XLA takes an unsigned one for negative.
    ops.add("dynamic_slice", {"sizes": [2]}, f, random(rng, (5,)), np.uint8(255), differentiate=False, note="starts are clamped")


def take(ops):
    """Along one axis: indices in range, and `clip` for those that are not. Derivatives add up where an index repeats."""
    rng = np.random.default_rng(204)
    for source, axis, indices in [((5,), 0, [3, 0, 3]), ((4, 3), 0, [[1, 2], [3, 3]]), ((4, 3), 1, [2, 0, 0, 1]), ((2, 3, 4), 1, [2]), ((4, 3), 0, 2), ((4, 3), 0, []), ((5,), 0, [7, -1, 2])]:
        attrs = {"axis": axis, "mode": "clip"}
        ops.add("take", attrs, lambda x, i: jnp.take(x, i, axis, mode="clip"), random(rng, source), np.array(indices, np.int32))
    ops.add("take", {"axis": 0, "mode": "clip"}, lambda x, i: jnp.take(x, i, 0, mode="clip"), random(rng, (4,), "int32"), np.array([3, 1], np.uint32))
    for source, axis, indices in [((3, 4), 1, [[3, 0], [1, 1], [2, 3]]), ((3, 4), 0, [[2, 0, 1, 1]]), ((5,), 0, [4, 4, 0]), ((2, 3, 2), 1, [[[0, 2]], [[1, 1]]])]:
        f = lambda x, i: jnp.take_along_axis(x, i, axis, mode="clip")
        ops.add("take_along_axis", {"axis": axis, "mode": "clip"}, f, random(rng, source), np.array(indices, np.int32))


def scatter(ops):
    """Along axis 0: x, indices [K], updates [K, ..]. `scatter_set` has no repeats, because which one wins is open. Indices past the end are dropped."""
    rng = np.random.default_rng(205)
    for source, indices in [((5,), [3, 0, 2]), ((5,), [1, 1, 1, 4]), ((4, 3), [2, 0]), ((4, 3), [2, 2, 2]), ((4,), []), ((4,), [1, 9, 3])]:
        indices = np.array(indices, np.int32)
        updates = random(rng, (len(indices),) + source[1:])
        for name in ("add", "set", "max", "min", "mul"):
            if name in ("set", "max", "min", "mul") and len(set(indices.tolist())) < len(indices):
                continue
            operation = {"mul": "multiply"}.get(name, name)
            f = lambda x, i, u: getattr(x.at[i], operation)(u, mode="drop")
            differentiate = name in ("add", "set")
            ops.add(f"scatter_{name}", {"axis": 0, "mode": "drop"}, f, random(rng, source), indices, updates, differentiate=differentiate)
    whole = np.array([0, 2, 0, 1, 2, 2], np.int32)
    ops.add("scatter_add", {"axis": 0, "mode": "drop"}, lambda x, i, u: x.at[i].add(u, mode="drop"), np.zeros(3, np.int32), whole, np.arange(6, dtype=np.int32), note="a histogram")
    ops.add("scatter_max", {"axis": 0, "mode": "drop"}, lambda x, i, u: x.at[i].max(u, mode="drop"), np.zeros(3, np.int32), whole, np.arange(6, dtype=np.int32))


def general_gather(ops):
    """With StableHLO's own dimension numbers; the index vector is the last dimension, starts are clamped."""
    rng = np.random.default_rng(206)
    cases = [
        # operand, start_indices, offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims, slice_sizes
        ((5, 4), [[3, 1], [0, 2], [9, -3]], (1, 2), (), (0, 1), (), (), (2, 2)),
        ((5, 4), [[3], [0], [3]], (1,), (0,), (0,), (), (), (1, 4)),
        ((5, 4), [[2, 1], [4, 3]], (), (0, 1), (0, 1), (), (), (1, 1)),
        ((5, 4), [[1, 3], [2, 4]], (), (0, 1), (1, 0), (), (), (1, 1)),
        ((3, 4), [[2], [0], [3]], (), (1,), (1,), (0,), (0,), (1, 1)),
        ((3, 4, 2), [[[2], [1]], [[0], [0]], [[3], [1]]], (2,), (1,), (1,), (0,), (0,), (1, 1, 2)),
    ]
    for shape, indices, offset, collapsed, index_map, batch, index_batch, sizes in cases:
        numbers = lax.GatherDimensionNumbers(offset, collapsed, index_map, batch, index_batch)
        attrs = {
            "offset_dims": offset,
            "collapsed_slice_dims": collapsed,
            "start_index_map": index_map,
            "operand_batching_dims": batch,
            "start_indices_batching_dims": index_batch,
            "slice_sizes": sizes,
        }
        f = lambda x, i: lax.gather(x, i, numbers, sizes, mode=lax.GatherScatterMode.CLIP)
        ops.add("gather", attrs, f, random(rng, shape), np.array(indices, np.int32))
    scatters = [
        # operand, scatter_indices, updates, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims, scatter_indices_batching_dims
        ((5, 4), [[3, 1], [0, 2]], (2, 2, 2), (1, 2), (), (0, 1), (), ()),
        ((5, 4), [[3], [0], [3]], (3, 4), (1,), (0,), (0,), (), ()),
        ((5, 4), [[2, 1], [4, 3], [5, 0]], (3,), (), (0, 1), (0, 1), (), ()),
        ((5, 4), [[4, 0], [1, 1]], (2, 2, 1), (1, 2), (), (0, 1), (), ()),
        ((3, 4), [[2], [0], [3]], (3,), (), (1,), (1,), (0,), (0,)),
    ]
    for shape, indices, updates, window, inserted, to_operand, batch, index_batch in scatters:
        numbers = lax.ScatterDimensionNumbers(window, inserted, to_operand, batch, index_batch)
        attrs = {
            "update_window_dims": window,
            "inserted_window_dims": inserted,
            "scatter_dims_to_operand_dims": to_operand,
            "input_batching_dims": batch,
            "scatter_indices_batching_dims": index_batch,
            "computation": "add",
        }
        f = lambda x, i, u: lax.scatter_add(x, i, u, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)
        ops.add("scatter", attrs, f, random(rng, shape), np.array(indices, np.int32), random(rng, updates), note="a window that does not fit is dropped whole")


def make(file):
    ops = Ops(file)
    for part in (make_and_reshape, join_and_pad, slices, take, scatter, general_gather):
        part(ops)
