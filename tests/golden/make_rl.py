"""rl.json: losses, optimizers, layers and distributions of the public packages, with gradients."""

import rl_agents
import rl_losses
import rl_networks
import rl_optimizers

from golden import File

if __name__ == "__main__":
    packages = ["rlax", "optax", "flax", "distrax", "jax", "jaxlib", "numpy"]
    file = File("rl", "returns, losses, optimizers, layers and distributions", packages)
    for part in (rl_losses, rl_optimizers, rl_networks, rl_agents):
        part.make(file)
    file.write()
