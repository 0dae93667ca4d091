//! Networks, losses, optimizers, agents.
