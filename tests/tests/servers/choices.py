"""A number to find by two choices at once, seen as a tree: `choices:Choices-v0`. `binary` makes switches of the choices,
`mixed` has numbers beside choices, `shifted` has them and what is seen begin at other numbers than 0, and `notes` has text among what is seen."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple


class Choices(gymnasium.Env):
    def __init__(self, binary=False, shifted=False, notes=False, mixed=False):
        start = 5 if shifted else 0
        if mixed:
            wheels = Box(np.float32([-1, -2]), np.float32([1, 0]))
            self.action_space = Dict({"rest": Tuple([wheels, MultiDiscrete([3, 2])]), "gear": Discrete(4, start=start)})
        elif binary:
            self.action_space = MultiBinary(3)
        else:
            self.action_space = MultiDiscrete([3, 2], start=[start, -start])
        seen = {
            "hand": Dict({"card": Discrete(6, start=-start), "weights": Box(-2, np.array([1.0, np.inf], np.float32))}),
            "choices": MultiDiscrete([3, 2], start=[start, 0]),
            "switches": MultiBinary(3),
            "pair": Tuple([Discrete(2), Box(0, 1, (2, 1))]),
        }
        if notes:
            seen["note"] = Text(3)
        self.observation_space = Dict(seen)

    def see(self):
        return self.observation_space.sample()

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self.see(), {}

    def step(self, action):
        self.time += 1
        if isinstance(action, dict):
            assert self.action_space.contains(action), action
            action = [action["gear"], *action["rest"][0], *action["rest"][1]]
        else:
            assert self.action_space.contains(np.asarray(action, self.action_space.dtype)), action
        reward = float(np.dot(action, 10 ** np.arange(len(action))))
        return self.see(), reward, self.time == 7, self.time == 5, {}


gymnasium.register("Choices-v0", Choices)
