"""Steps ale-py's own vector environment, and prints hashes of what it shows, the frames of a stack last."""

import hashlib
import json
import sys

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
order = json.loads(sys.argv[1])
envs = AtariVectorEnv(order["game"], len(order["seeds"]), autoreset_mode="SameStep", **order["kwargs"])


def digest(stacks):
    return hashlib.sha256(np.moveaxis(stacks, 1, -1).tobytes()).hexdigest()


stacks, infos = envs.reset(seed=np.array(order["seeds"]))
steps, frames = [[digest(stacks)]], infos["episode_frame_number"]
for actions in order["actions"]:
    stacks, reward, terminated, truncated, infos = envs.step(np.array(actions))
    # A game that goes on has its own last observation, lost life or not.
    over = infos["episode_frame_number"] < frames
    frames = infos["episode_frame_number"]
    last = np.where(over[:, None, None, None], infos["final_obs"], stacks) if over.any() else stacks
    steps.append([digest(stacks), digest(last), reward.tolist(), terminated.tolist(), truncated.tolist()])
json.dump(steps, sys.stdout)
