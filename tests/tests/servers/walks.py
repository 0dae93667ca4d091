"""Random walks, each with random numbers of its own, as a native batch of Gymnasium's in each of its autoreset modes: `walks:Walks-v0`."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class Walks(VectorEnv):
    """Shows place and time. An episode terminates away from the middle, and is cut off after nine steps."""

    def __init__(self, num_envs, mode, shows_ends=True):
        self.num_envs = num_envs
        self.mode = AutoresetMode(mode)
        self.shows_ends = shows_ends
        self.metadata = {"autoreset_mode": self.mode}
        self.single_observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.single_action_space = Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state = np.zeros((num_envs, 2), np.float32)

    def begin(self, which):
        for i in np.flatnonzero(which):
            self.state[i] = self.random[i].uniform(-1, 1), 0
        self.over[which] = False

    def reset(self, *, seed=None, options=None):
        every = np.ones(self.num_envs, bool)
        if seed is not None:
            self.random = [np.random.default_rng([seed, i]) for i in range(self.num_envs)]
            self.over = ~every
        self.begin(options["reset_mask"] if options else every)
        return self.state.copy(), {}

    def step(self, actions):
        stepped = ~self.over
        self.begin(self.over)
        for i in np.flatnonzero(stepped):
            self.state[i] += (actions[i] - 0.5 + self.random[i].normal()) / 2, 1
        terminated = stepped & (np.abs(self.state[:, 0]) > 2)
        truncated = stepped & (self.state[:, 1] >= 9)
        reward = np.where(stepped, self.state[:, 0], 0)
        final = self.state.copy()
        if self.mode == AutoresetMode.SAME_STEP:
            self.begin(terminated | truncated)
        else:
            self.over = terminated | truncated
        return self.state.copy(), reward, terminated, truncated, {"final_obs": final} if self.shows_ends else {}


gymnasium.register("Walks-v0", vector_entry_point=Walks)
