"""Pixel Catch, step by step the game of ours, a batch at a time in NumPy: what the peer steps, and what an environment server can step for ours as `pixel_catch:PixelCatch-v0`."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

# The field is so many cells along each side, and a cell so many pixels.
CELLS, CELL = 12, 7
SIDE = CELLS * CELL


class PixelCatch(VectorEnv):
    """A ball falls one row a step; be under it when it lands. Pays 1 or -1 then, and begins anew in the same step."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_observation_space = Box(0, 255, (SIDE, SIDE, 1), np.uint8)
        self.single_action_space = Discrete(3)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.lanes = np.arange(num_envs)
        self.cells = np.zeros((num_envs, CELLS, CELL, CELLS, CELL), np.uint8)
        self.row, self.ball, self.paddle = (np.zeros(num_envs, np.int64) for _ in range(3))

    def reset(self, *, seed=None, options=None):
        self.random = np.random.default_rng(seed)
        self.cells[:] = 0
        self.begin(np.ones(self.num_envs, bool))
        return self.paint(), {}

    def step(self, actions):
        self.cells[self.lanes, self.row, :, self.ball] = 0
        self.cells[self.lanes, CELLS - 1, :, self.paddle] = 0
        self.paddle = np.clip(self.paddle + actions - 1, 0, CELLS - 1)
        self.row += 1
        ended = self.row == CELLS - 1
        reward = np.where(ended, np.where(self.paddle == self.ball, 1.0, -1.0), 0.0)
        if ended.any():
            self.begin(ended)
        return self.paint(), reward, ended, np.zeros(self.num_envs, bool), {}

    def begin(self, which):
        self.row[which] = 0
        self.ball[which] = self.random.integers(0, CELLS, np.count_nonzero(which))
        self.paddle[which] = CELLS // 2

    def paint(self):
        self.cells[self.lanes, self.row, :, self.ball] = 255
        self.cells[self.lanes, CELLS - 1, :, self.paddle] = 255
        return self.cells.reshape(self.num_envs, SIDE, SIDE, 1).copy()


gymnasium.register("PixelCatch-v0", vector_entry_point=PixelCatch)
