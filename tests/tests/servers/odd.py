"""Environments that are odd in one way each: `odd:Odd-v0` with a `kind`. What they report goes to the file `log`, a line each."""

import os
import subprocess

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

LENGTH = 5
WEIGHTS = Dict({"hand": Dict({"card": Discrete(4), "weight": Box(-np.inf, 10, (2,))})})
SPACES = {
    "dict": Dict({"ring": Box(0, 1, (10,)), "pair": Tuple([Box(0, 9, (1,), np.int64)])}),
    "discrete": Discrete(4, start=1),
    "multi-discrete": MultiDiscrete([4, 12]),
    "weights": WEIGHTS,
    "tree": WEIGHTS,
}


class Odd(gymnasium.Env):
    """Walks round a ring of 10 places, from one that the seed draws; episodes are truncated after 5 steps. With `at`, the oddity is in
    the step of that number in an episode, 0 for the first observation."""

    action_space = Discrete(2)

    def __init__(self, kind, log=None, at=None, value=None):
        self.kind, self.log, self.at, self.value = kind, log, at, value
        self.observation_space = SPACES.get(kind, Box(0, 1, (10,)))
        self.ring, self.pair = np.zeros(10, np.float32), np.zeros(1, np.int64)
        self.note("opened")
        if kind == "import":
            import no_such_module

    def note(self, what):
        if self.log:
            with open(self.log, "a") as log:
                log.write(what + "\n")

    def observation(self):
        odd = self.time == self.at
        if self.kind == "discrete":
            return self.value if odd else 1 + self.place % 4
        if self.kind == "multi-discrete":
            return np.array([self.value if odd else 3, self.place])
        if self.kind in ("tree", "weights"):
            number = float(self.value) if odd and self.kind == "weights" else 0.5
            card = self.value if odd and self.kind == "tree" else 2
            return {"hand": {"card": card, "weight": np.array([1, number], np.float32)}}
        self.ring[:], self.pair[:] = 0, self.place
        self.ring[self.place] = float(self.value) if odd and self.kind == "box" else 1
        if self.kind == "dict":
            return {"ring": self.ring, "pair": (self.pair,)}
        return self.ring.copy() if self.kind == "fresh" else self.ring

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.place = 0, int(self.np_random.integers(10))
        if self.kind == "terminates":
            child = subprocess.Popen(["sleep", "100"])
            child.terminate()
            try:
                self.note(f"ended with {child.wait(timeout=5)}")
            except subprocess.TimeoutExpired:
                child.kill()
                self.note("did not end within 5 s")
        return self.observation(), {}

    def step(self, action):
        self.time, self.place = self.time + 1, (self.place + 1) % 10
        odd = self.time == self.at
        if odd and self.kind == "raises":
            raise RuntimeError("the motor is on fire")
        reward = (None if self.value is None else float(self.value)) if odd and self.kind == "reward" else float(self.place)
        return self.observation(), reward, False, self.time == LENGTH, {}

    def close(self):
        self.note("closed")
        if self.kind == "close raises":
            raise RuntimeError("the lid is stuck")
        if self.kind == "close hangs":
            while True:
                os.sched_yield()
        if self.kind == "close is slow":
            __import__("time").sleep(0.5)
            self.note("flushed")


gymnasium.register("Odd-v0", Odd)
