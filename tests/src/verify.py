"""StableHLO's own verifier and reference interpreter, by way of jaxlib.

Reads a case a line, a JSON object: `name`, `text` (a module), and, if it is to be interpreted, `inputs`, `outputs` (each
`{"dtype", "shape", "bytes"}`, bytes in hexadecimal) and `tolerance`. Prints each failure, and at last a line of counts.
"""

import json
import os
import re
import sys

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, stablehlo

# The interpreter ends the process on these.
NOT_INTERPRETED = re.compile(
    r"stablehlo\.(cholesky|triangular_solve|custom_call|all_reduce|all_gather|collective_permute|replica_id|partition_id)\b"
)

MLIR = {"bool": "i1", "bf16": "bf16", "f16": "f16", "f32": "f32", "f64": "f64"}
MLIR |= {f"i{bits}": f"i{bits}" for bits in [8, 16, 32, 64]} | {f"u{bits}": f"ui{bits}" for bits in [8, 16, 32, 64]}
NUMPY = {"bool": np.bool_, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
NUMPY |= {f"i{bits}": np.dtype(f"int{bits}").type for bits in [8, 16, 32, 64]}
NUMPY |= {f"u{bits}": np.dtype(f"uint{bits}").type for bits in [8, 16, 32, 64]}


def context():
    """One that knows the dialects that we emit, and no other."""
    context = ir.Context()
    # Processes are forked.
    context.enable_multithreading(False)
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    stablehlo.register_interpreter_dialect(context)
    return context


def array(record):
    return np.frombuffer(bytes.fromhex(record["bytes"]), NUMPY[record["dtype"]]).reshape(record["shape"])


def attribute(record):
    """An array as the interpreter takes it."""
    value, element, shape = array(record), ir.Type.parse(MLIR[record["dtype"]]), record["shape"]
    if value.size == 0:
        return ir.DenseElementsAttr(ir.Attribute.parse(f"dense<> : {ir.RankedTensorType.get(shape, element)}"))
    if record["dtype"] == "bool":
        value = value.view(np.uint8)
    if record["dtype"] == "bf16":
        value = value.view(np.uint16)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(value), type=element, shape=shape)


def from_attribute(attribute, record):
    """A result of the interpreter."""
    if 0 in record["shape"]:
        return array(record)
    if record["dtype"] == "bf16":
        # MLIR has no buffer of these: the text has all their digits, or their bits.
        literals = re.findall(r"0x[0-9A-F]+|-?[0-9.]+E[+-][0-9]+", str(attribute).split(" : ")[0].replace("e", "E"))
        bits = lambda text: np.frombuffer(bytes.fromhex(text[2:])[:: 1 if len(text) > 6 else -1], ml_dtypes.bfloat16)
        values = [bits(one) if one.startswith("0x") else [ml_dtypes.bfloat16(one)] for one in literals]
        values = np.concatenate(values).astype(ml_dtypes.bfloat16)
        return np.broadcast_to(values, int(np.prod(record["shape"]))).reshape(record["shape"])
    return np.array(attribute).reshape(record["shape"])


def difference(expected, got, tolerance):
    """How results differ: floats by more than tolerance * max(1, |expected|), all else at all."""
    if expected.dtype != got.dtype:
        return f"expected {expected.dtype}, got {got.dtype}"
    if expected.dtype.kind in "biu":
        wrong = expected != got
    else:
        wide, other = expected.astype(np.float64), got.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(wide - other) <= tolerance * np.maximum(1, np.abs(wide))
        wrong = ~(near | (wide == other) | (np.isnan(wide) & np.isnan(other)))
    if wrong.any():
        at = np.argwhere(wrong)[0]
        return f"{wrong.sum()} of {wrong.size} differ, first at {at.tolist()}: expected {expected[tuple(at)]}, got {got[tuple(at)]}"
    return None


def copy_scattered(module):
    """The interpreter scatters into the operand itself, which others may read later: it gets a copy of its own."""

    def visit(operation):
        if operation.name == "stablehlo.scatter":
            with ir.InsertionPoint(operation):
                for index in range((len(operation.operands) - 1) // 2):
                    operand = operation.operands[index]
                    shape = operand.type.shape
                    operation.operands[index] = stablehlo.slice(operand, [0] * len(shape), shape, [1] * len(shape))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


def known(case):
    """Why the interpreter may differ from XLA in a case, or end the process: what of it is not ours."""
    has = lambda pattern: re.search(pattern, case["text"])
    inputs = [array(record) for record in case["inputs"]]
    if has(r"stablehlo\.(divide|remainder)") and any(x.dtype.kind in "iu" and (x == 0).any() for x in inputs):
        return "an integer divided by zero, which StableHLO leaves open"
    if has(r"stablehlo\.dot_general[^\n]*tensor<(\d+x)*0x"):
        return "a sum of no products ends the process"
    if has(r"stablehlo\.sort|chlo\.top_k") and any(x.dtype.kind not in "biu" and np.isnan(x.astype(np.float64)).any() for x in inputs):
        return "NaN is not ordered, though the comparison is a total order"
    if has(r"stablehlo\.(gather|scatter|dynamic_slice)") and any(x.dtype.kind == "u" and (x > np.iinfo(x.dtype).max // 2).any() for x in inputs):
        return "unsigned indices are read as signed"
    if has(r"#stablehlo.scatter<update_window_dims"):
        return "of a window that hangs over the edge only the elements there are dropped; XLA drops the window"
    return None


def interpret(module, case):
    """How the interpreter's results differ from those expected."""
    copy_scattered(module)
    passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
    results = stablehlo.eval_module(module, [attribute(one) for one in case["inputs"]])
    for index, (record, result) in enumerate(zip(case["outputs"], results, strict=True)):
        if problem := difference(array(record), from_attribute(result, record), case["tolerance"]):
            return f"result {index}: {problem}"
    return None


def check(case):
    """What was done to a case, and what is wrong with it."""
    try:
        module = ir.Module.parse(case["text"])
        if not module.operation.verify():
            return "only verified", "is not verified"
        if "inputs" not in case:
            return "only verified", None
        if NOT_INTERPRETED.search(case["text"]):
            return "not interpreted", None
        problem = interpret(module, case)
        return ("known difference", None) if problem and known(case) else ("interpreted", problem)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        return "only verified", str(error)


def outcomes(cases):
    """Checks cases in a process of its own, which the interpreter may end: the next one goes on after that case."""
    done = 0
    while done < len(cases):
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            with os.fdopen(writer, "w") as pipe:
                for case in cases[done:]:
                    print(json.dumps(check(case)), file=pipe, flush=True)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            for line in pipe:
                yield cases[done], *json.loads(line)
                done += 1
        os.waitpid(child, 0)
        if done < len(cases):
            ended = None if "inputs" in cases[done] and known(cases[done]) else "the interpreter ended the process"
            yield cases[done], "known difference", ended
            done += 1


def main():
    stablehlo.register_stablehlo_passes()
    counts = dict.fromkeys(["modules", "only verified", "interpreted", "not interpreted", "known difference", "failed"], 0)
    with context(), ir.Location.unknown():
        for case, what, problem in outcomes([json.loads(line) for line in sys.stdin]):
            counts["modules"] += 1
            counts[what] += 1
            if problem:
                counts["failed"] += 1
                print(f"{case['name']}: {problem}")
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
