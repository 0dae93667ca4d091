"""Plays games with ale-py's emulator and prints all that happens, the screens resized in plain floats."""

import json
import sys

import ale_py
import numpy as np

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
order = json.loads(sys.argv[1])


def resized(screen):
    """Between the four nearest pixels, whose centres are at halves."""
    rows, columns = ((np.arange(84) + 0.5) * extent / 84 - 0.5 for extent in screen.shape)
    wide = np.array([np.interp(columns, np.arange(screen.shape[1]), row) for row in screen])
    return np.array([np.interp(rows, np.arange(screen.shape[0]), column) for column in wide.T]).T


def seen(ale, before=None):
    screen = ale.getScreenGrayscale()
    return resized(screen if before is None else np.maximum(before, screen))


def begin(ale, random):
    ale.reset_game()
    for _ in range(random.integers(1, 31)):
        ale.act(0)
    return seen(ale)


games, shown = [], []
for seed in order["seeds"]:
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setInt("max_num_frames_per_episode", order["most_frames"])
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(order["game"]))
    games.append((ale, np.random.default_rng(seed)))
    shown.append(begin(*games[-1]))


def text(observations):
    return np.rint(observations).astype(np.uint8).tobytes().hex()


steps = [[text(shown)]]
for actions in order["actions"]:
    shown, last, all_rewards, terminated, truncated = [], [], [], [], []
    for (ale, random), action in zip(games, actions):
        rewards, before = 0, None
        for frame in range(4):
            if frame == 3 and not ale.game_over():
                before = ale.getScreenGrayscale()
            if not ale.game_over():
                rewards += ale.act(ale.getLegalActionSet()[action])
        over = ale.game_over()
        last.append(seen(ale, before))
        truncated.append(bool(ale.game_truncated()))
        terminated.append(bool(over and not truncated[-1]))
        all_rewards.append(rewards)
        shown.append(begin(ale, random) if over else last[-1])
    steps.append([text(shown), text(last), all_rewards, terminated, truncated])
json.dump(steps, sys.stdout)
