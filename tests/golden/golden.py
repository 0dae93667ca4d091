"""How golden values are written: the one place that knows the format of the JSON files.

A file is one JSON object. It opens with what made it, and ends with `records`, one record a line, so that a change of one value is a change of one line.
"""

import importlib.metadata
import json
import pathlib

import jax
import numpy as np

HERE = pathlib.Path(__file__).parent

DTYPES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
}


def number(x, dtype):
    """One element. Floats are the shortest text that reads back as the same value, also when the reader goes through f64."""
    if dtype == "bool":
        return "true" if x else "false"
    if dtype[0] in "iu":
        return str(int(x))
    if np.isnan(x):
        return '"nan"'
    if np.isinf(x):
        return '"inf"' if x > 0 else '"-inf"'
    wide = x if dtype in ("f32", "f64") else np.float32(x)
    text = str(wide)
    assert x.dtype.type(np.float64(text)).tobytes() == x.tobytes(), f"{text} does not read back as {x!r}"
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text


class Array:
    """An array on its way into a file."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def text(self):
        dtype = DTYPES[self.value.dtype.name]
        flat = ",".join(number(x, dtype) for x in self.value.reshape(-1))
        shape = ",".join(str(n) for n in self.value.shape)
        return f'{{"dtype":"{dtype}","shape":[{shape}],"data":[{flat}]}}'


def arrays(values):
    """A list of arrays, made of anything NumPy understands."""
    return [Array(v) for v in values]


def text(x):
    """JSON text without spaces, with arrays and the floats JSON lacks."""
    if isinstance(x, (jax.Array, np.ndarray, np.generic)):
        x = Array(x)
    if isinstance(x, Array):
        return x.text()
    if isinstance(x, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{text(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(text(v) for v in x) + "]"
    if isinstance(x, float):
        short = number(np.float64(x), "f64")
        # A float attribute stays a float: `1.0`, not `1`.
        return short if short.startswith('"') or any(c in short for c in ".e") else short + ".0"
    return json.dumps(x)


class File:
    """A golden file in the making."""

    def __init__(self, name, about, packages):
        self.path = HERE / f"{name}.json"
        self.head = {"about": about, "versions": {p: importlib.metadata.version(p) for p in packages}}
        self.records = []

    def add(self, op, attrs=None, inputs=(), outputs=(), **more):
        """A record of one function called once. `more` adds further fields, in the order given."""
        self.records.append({"op": op, "attrs": attrs or {}, "inputs": arrays(inputs), "outputs": arrays(outputs), **more})

    def add_raw(self, record):
        """A record with fields of its own."""
        self.records.append(record)

    def write(self):
        assert jax.config.jax_threefry_partitionable, "golden values are those of the partitionable threefry"
        assert jax.default_backend() == "cpu", "golden values are those of the CPU"
        lines = ",\n".join(text(r) for r in self.records)
        head = text(self.head)[:-1]
        self.path.write_text(f'{head},"records":[\n{lines}\n]}}\n')
        json.loads(self.path.read_text())
        print(f"{self.path.name}: {len(self.records)} records, {self.path.stat().st_size / 1000:.0f} kB")
