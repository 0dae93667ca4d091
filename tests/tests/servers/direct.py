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


def action_of(space, numbers):
    """The action that the next of these numbers say."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: action_of(part, numbers) for name, part in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Tuple):
        return tuple(action_of(part, numbers) for part in space.spaces)
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(next(numbers)) + int(space.start)
    values = np.array([next(numbers) for _ in range(int(np.prod(space.shape)))]).reshape(space.shape)
    if isinstance(space, gymnasium.spaces.Box):
        return np.clip(np.float32(values), space.low, space.high)
    return values + getattr(space, "start", 0)


first = [seen(env, env.reset(seed=seed)[0]) for env, seed in zip(envs, order["seeds"])]


def numbers(observations):
    return np.asarray(observations, np.float32).ravel().tolist()


steps = []
for actions in order["actions"]:
    taken = []
    for env, action in zip(envs, actions):
        action = iter(action if isinstance(action, list) else [action])
        last, reward, terminated, truncated, _ = env.step(action_of(env.action_space, action))
        over = terminated or truncated
        last = seen(env, last)
        shown = seen(env, env.reset()[0]) if over else last
        taken.append((shown, last, reward, bool(terminated), bool(truncated and not terminated)))
    shown, last, reward, terminated, truncated = zip(*taken)
    steps.append([numbers(shown), numbers(last), numbers(reward), terminated, truncated])
json.dump({"first": numbers(first), "steps": steps}, sys.stdout)
