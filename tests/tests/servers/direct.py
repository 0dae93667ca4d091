"""Steps environments of Gymnasium one at a time, without any vector environment, and prints all that happens as JSON."""

import json
import sys

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatten

order = json.loads(sys.argv[1])
sys.path.insert(0, order["modules"])
envs = [gymnasium.make(order["id"], **order["kwargs"]) for _ in order["seeds"]]
flattened = type(envs[0].observation_space).__name__ in ("Dict", "Tuple", "Discrete")


def seen(env, observation):
    return flatten(env.observation_space, observation) if flattened else observation


first = [seen(env, env.reset(seed=seed)[0]) for env, seed in zip(envs, order["seeds"])]


def numbers(observations):
    return np.asarray(observations, np.float32).ravel().tolist()


steps = []
for actions in order["actions"]:
    taken = []
    for env, action in zip(envs, actions):
        if isinstance(env.action_space, gymnasium.spaces.Box):
            action = np.clip(np.float32(action), env.action_space.low, env.action_space.high)
        if isinstance(env.action_space, gymnasium.spaces.MultiDiscrete):
            action = np.array(action) + env.action_space.start
        last, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        last = seen(env, last)
        shown = seen(env, env.reset()[0]) if over else last
        taken.append((shown, last, reward, bool(terminated), bool(truncated and not terminated)))
    shown, last, reward, terminated, truncated = zip(*taken)
    steps.append([numbers(shown), numbers(last), numbers(reward), terminated, truncated])
json.dump({"first": numbers(first), "steps": steps}, sys.stdout)
