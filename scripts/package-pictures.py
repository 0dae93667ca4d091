"""Writes pictures of environments of Gymnasium and ale-py, as PNG files, into a folder: `package-pictures.py FOLDER`.

Run it with a Python that has gymnasium, pygame and ale-py. A picture is the environment's own drawing after some random actions with
the seed 0. It is scaled down by whole numbers to at most 320 pixels of the longer side. The names are in `envs/tests/it/gallery.rs`.
"""

import importlib.util
import struct
import sys
import zlib

import gymnasium
import numpy

# File, environment, keyword arguments, number of random actions.
PICTURES = [
    ("gymnasium-cartpole", "CartPole-v1", {}, 8),
    ("gymnasium-frozen-lake", "FrozenLake-v1", {}, 3),
    ("gymnasium-taxi", "Taxi-v4", {}, 8),
    ("atari-breakout", "ALE/Breakout-v5", {}, 40),
    ("atari-pong", "ALE/Pong-v5", {}, 60),
    ("atari-space-invaders", "ALE/SpaceInvaders-v5", {}, 60),
]
LARGEST = 320


def png(pixels):
    """The bytes of a PNG file with these pixels, u8 `[height, width, 3]`."""
    height, width, _ = pixels.shape
    rows = numpy.concatenate([numpy.zeros((height, 1), numpy.uint8), pixels.reshape(height, 3 * width)], axis=1)
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b"")


def smaller(pixels):
    """The picture with means of squares of pixels in place of the pixels, if it is too large."""
    times = -(-max(pixels.shape[:2]) // LARGEST)
    height, width = (side // times * times for side in pixels.shape[:2])
    squares = pixels[:height, :width].reshape(height // times, times, width // times, times, 3)
    return squares.mean(axis=(1, 3)).round().astype(numpy.uint8)


def picture(name, arguments, steps):
    """The environment's drawing after some random actions; the last one before the end of an episode."""
    env = gymnasium.make(name, render_mode="rgb_array", **arguments)
    env.reset(seed=0)
    env.action_space.seed(0)
    drawn = env.render()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            break
        drawn = env.render()
    return smaller(numpy.asarray(drawn))


def main():
    folder = sys.argv[1]
    if importlib.util.find_spec("ale_py"):
        import ale_py

        gymnasium.register_envs(ale_py)
    for file, name, arguments, steps in PICTURES:
        try:
            pixels = picture(name, arguments, steps)
        except gymnasium.error.Error as error:
            print(f"{file}: skipped: {error}", file=sys.stderr)
            continue
        with open(f"{folder}/{file}.png", "wb") as out:
            out.write(png(pixels))


main()
