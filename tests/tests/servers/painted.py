"""Episodes of three steps whose pictures say the episode and its time: `painted:Painted-v0`, and as a native batch `painted:Paintings-v0`.
`fails` has pictures that cannot be drawn, `floats` such that are no bytes, `modes` other render modes."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

HEIGHT, WIDTH, LENGTH = 4, 6, 3


def painting(episode, time):
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    picture[0, 0] = 200, episode, time
    return picture


class Painted(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}
    observation_space, action_space = Box(0, 1, (1,), np.float32), Discrete(2)

    def __init__(self, render_mode=None, fails=False, floats=False, modes=("rgb_array",)):
        self.render_mode, self.fails, self.floats = render_mode, fails, floats
        self.metadata = {"render_modes": list(modes)}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        # Episodes are counted from a seed on.
        self.episode, self.time = 0 if seed is not None else self.episode + 1, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.zeros(1, np.float32), 1.0, self.time == LENGTH, False, {}

    def render(self):
        if self.fails:
            raise OSError("there is no paint")
        picture = painting(self.episode, self.time)
        return picture / 255 if self.floats else picture


class Paintings(VectorEnv):
    """Begins an episode in the step after an end."""

    def __init__(self, num_envs, render_mode=None):
        self.num_envs, self.render_mode = num_envs, render_mode
        self.metadata = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space, self.single_action_space = Painted.observation_space, Painted.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        self.episode, self.time = 0, 0
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions):
        if self.time == LENGTH:
            self.episode, self.time = self.episode + 1, 0
        else:
            self.time += 1
        flags = np.zeros(self.num_envs, bool)
        reward = np.full(self.num_envs, self.time > 0, np.float32)
        return np.zeros((self.num_envs, 1), np.float32), reward, flags | (self.time == LENGTH), flags, {}

    def render(self):
        return (painting(self.episode, self.time),) * self.num_envs


gymnasium.register("Painted-v0", Painted)
gymnasium.register("Paintings-v0", vector_entry_point=Paintings)
