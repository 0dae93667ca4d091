"""A batch whose second step has other shapes than it said: NumPy would repeat some of them."""

import json
import sys

import numpy as np
from gymnasium.spaces import Box, Discrete

server = {"__name__": "server", "np": np}
for part in json.loads(sys.argv[1])["parts"]:
    with open(part) as text:
        exec(text.read(), server)


class Shapes(server["Batch"]):
    def __init__(self, configuration):
        super().__init__(configuration, "shapes", Box(-1, 1, (3,)), Discrete(2))
        self.right = {"observations": [self.count, 3], "rewards": [self.count], "terminated": [self.count]}
        self.wrong = configuration["wrong"]
        self.steps = 0

    def first(self, seeds):
        return np.zeros((self.count, 3), np.float32)

    def next(self, actions):
        self.steps += 1
        shapes = self.right | (self.wrong if self.steps == 2 else {})
        observations, rewards, terminated = (np.zeros(shapes[name], np.float32) for name in self.right)
        return observations, rewards, terminated, np.zeros(self.count), None


server["main"]({"shapes": Shapes})
