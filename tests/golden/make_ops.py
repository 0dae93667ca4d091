"""ops_*.json: single operations with the mnemonics and attributes of StableHLO, their values and derivatives."""

import ops_axes
import ops_elementwise
import ops_shape

from golden import File

PARTS = {
    "ops_elementwise": (ops_elementwise, "operations on each element alone"),
    "ops_shape": (ops_shape, "operations that move elements"),
    "ops_axes": (ops_axes, "operations over whole axes"),
}

if __name__ == "__main__":
    for name, (module, about) in PARTS.items():
        file = File(name, f"jax.lax on the CPU: {about}, with jvp and vjp", ["jax", "jaxlib", "numpy"])
        module.make(file)
        file.write()
