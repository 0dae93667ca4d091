"""rl.json: losses, optimizers, layers and distributions of the public packages, with gradients."""

import rl_agents
import rl_distributions
import rl_dqn
import rl_layers
import rl_losses
import rl_networks
import rl_off_policy
import rl_optimizers
import rl_pqn
import rl_wrappers

from golden import File

if __name__ == "__main__":
    packages = ["rlax", "optax", "flax", "distrax", "jax", "jaxlib", "numpy"]
    file = File("rl", "returns, losses, optimizers, layers and distributions", packages)
    # New parts come last, so that the records before them stay as they are.
    for part in (rl_losses, rl_optimizers, rl_networks, rl_agents, rl_off_policy, rl_distributions, rl_layers, rl_wrappers, rl_pqn, rl_dqn):
        part.make(file)
    file.write()
