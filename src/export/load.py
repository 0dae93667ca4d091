"""Runs the programs of this folder with jaxlib and NumPy alone.

    python -P load.py             # what there is, and what each program takes and gives; `-P` imports nothing from here

    from load import Export
    export = Export("this folder")
    results = export.run("act", {"observation": observation, "key": np.array([0, 1], np.uint32)})
    bytecode = export.portable("act")   # for what takes no text, or a later version of StableHLO

Arguments and results are NumPy arrays by name. Parameters that are not given are those of parameters.safetensors. Written
for jaxlib 0.10; its interface below jax has no promise to stay, what the folder holds has: StableHLO and safetensors.
"""

import hashlib
import json
import math
import pathlib
import sys

import ml_dtypes  # comes with jaxlib
import numpy as np
from jaxlib import _jax, xla_client

DTYPES = {"bool": np.bool_, "bf16": ml_dtypes.bfloat16}
DTYPES |= {f"{kind[0]}{bits}": np.dtype(f"{kind}{bits}").type for kind in ["int", "uint"] for bits in [8, 16, 32, 64]}
DTYPES |= {f"f{bits}": np.dtype(f"float{bits}").type for bits in [16, 32, 64]}


def read_safetensors(data):
    """The arrays of a file's bytes: the length of a JSON header, the header, the bytes."""
    start = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype = DTYPES[entry["dtype"].lower()]
            arrays[name] = np.frombuffer(data[start + begin : start + end], dtype).reshape(entry["shape"])
    return arrays


class Export:
    """What `podracer export` wrote."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        if self.manifest["format"] != 1:
            raise ValueError(f"{folder} is of format {self.manifest['format']}, and this reads 1")
        self.parameters = read_safetensors(self.read("parameters.safetensors"))
        self.client = xla_client.make_cpu_client()
        self.compiled = {}

    def read(self, name):
        """The bytes of a file, which must be those that were exported. The exports of earlier versions cannot be checked."""
        path = self.folder / name
        if not path.is_file():
            raise ValueError(f"{path} is no regular file")
        data = path.read_bytes()
        found = hashlib.sha256(data).hexdigest()
        known = self.manifest.get("sha256", {}).get(name, found)
        if found != known:
            raise ValueError(f"{path} is damaged: it has the sha256 {found} and had {known} when it was exported")
        return data

    def run(self, program, inputs):
        """Runs a program once on the CPU."""
        manifest = self.manifest["programs"][program]
        taken = {argument["name"] for argument in manifest["arguments"]}
        if unknown := inputs.keys() - taken:
            raise ValueError(f"{program} takes no {sorted(unknown)}: {sorted(taken)}")
        device = self.client.local_devices()[0]
        if program not in self.compiled:
            text = self.read(manifest["file"])
            devices = xla_client.DeviceList((device,))
            self.compiled[program] = self.client.compile_and_load(text, devices, xla_client.CompileOptions())
        arguments = [self.put(program, argument, inputs, device) for argument in manifest["arguments"]]
        results = self.compiled[program].execute_sharded(arguments).disassemble_into_single_device_arrays()
        return {result["name"]: np.array(array[0]) for result, array in zip(manifest["results"], results)}

    def portable(self, program, version="1.0.0"):
        """A program as StableHLO's portable bytecode, which every version from this one on reads, as jax.export has it."""
        text = self.read(self.manifest["programs"][program]["file"]).decode()
        return _jax.mlir.serialize_portable_artifact(text, version)

    def put(self, program, argument, inputs, device):
        """An argument on the device. It is a copy: the program may take its memory over."""
        name, dtype, shape = argument["name"], DTYPES[argument["dtype"]], tuple(argument["shape"])
        if name in inputs:
            array = np.asarray(inputs[name])
        elif argument["kind"] == "parameter":
            array = self.parameters[name.removeprefix("parameters.")]
        else:
            raise ValueError(f"{program} takes {name}, {argument['dtype']}{list(shape)}, too")
        if array.dtype != dtype or array.shape != shape:
            got = f"{array.dtype}{list(array.shape)}"
            raise ValueError(f"{program} takes {name} as {argument['dtype']}{list(shape)} and was given {got}")
        return _jax.dlpack_managed_tensor_to_buffer(array.copy().__dlpack__(), device, None, copy=True)


def show(manifest):
    """A line for each program, and for what it takes and gives, with parameters and state summed up."""
    for name, program in manifest["programs"].items():
        print(f"{name}: {program['about']}")
        for what in ["arguments", "results"]:
            groups = {}
            for leaf in program[what]:
                groups.setdefault(leaf["name"].split(".")[0], []).append(leaf)
            for group, leaves in groups.items():
                elements = sum(math.prod(leaf["shape"]) for leaf in leaves)
                one = f"{leaves[0]['dtype']}{leaves[0]['shape']}"
                text = one if leaves[0]["name"] == group else f"{len(leaves)} arrays, {elements} elements"
                print(f"    {'takes' if what == 'arguments' else 'gives'} {group}: {text}")


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    show(json.loads(((folder if folder.is_dir() else folder.parent) / "manifest.json").read_text()))
