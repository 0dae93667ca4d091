"""A worker for `podracer serve` in Python, from the protocol's file alone: batches of CartPole in NumPy.

    pip install grpcio grpcio-tools numpy
    python examples/worker.py unix:learner.sock --environments 256

docs/worker-protocol.md goes through what it says and hears.
"""
import argparse
import pathlib
import queue
import random
import sys
import time

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "remote/proto"))
seed, services = grpc.protos_and_services("podracer/seed/v1/seed.proto")


class CartPole:
    """`n` poles on carts; each draws from the run's seed and its own lane."""

    spaces = seed.Spaces(
        observation=seed.Space(kind=seed.BOX, dtype=seed.F32, shape=[4]),
        action=seed.Space(kind=seed.DISCRETE, dtype=seed.I32, counts=[2]),
        truncates=True,
    )

    def __init__(self, n, seed, first_lane):
        self.random = [np.random.default_rng([seed, lane]) for lane in range(first_lane, first_lane + n)]
        self.state = np.stack([r.uniform(-0.05, 0.05, 4) for r in self.random]).astype("<f4")
        self.time = np.zeros(n, int)

    def step(self, action):
        x, v, angle, spin = self.state.T
        push = np.where(action == 1, 10.0, -10.0) + 0.05 * spin**2 * np.sin(angle)
        turn = 9.8 * np.sin(angle) - np.cos(angle) * push / 1.1
        turn /= 0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
        run = push / 1.1 - 0.05 * turn * np.cos(angle) / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * run, angle + 0.02 * spin, spin + 0.02 * turn], 1).astype("<f4")
        self.time += 1
        terminated = (abs(self.state[:, 0]) > 2.4) | (abs(self.state[:, 2]) > 12 * np.pi / 180)
        truncated = ~terminated & (self.time >= 500)
        ended = terminated | truncated
        final = self.state[ended]  # before the reset, in order of the environments
        for lane in np.flatnonzero(ended):
            self.state[lane], self.time[lane] = self.random[lane].uniform(-0.05, 0.05, 4), 0
        return np.ones(len(ended), "<f4"), terminated, truncated, final


def session(channel, n, steps):
    """One stream. Returns the number of answers; `grpc.RpcError` says why the learner ended it."""
    say = queue.SimpleQueue()  # None ends our half of the stream
    say.put(seed.FromWorker(hello=seed.Hello(protocol=1, environments=n, spaces=CartPole.spaces, name="worker.py")))
    told = services.SeedStub(channel).Work(iter(say.get, None))
    welcome = next(told).welcome
    print(f"run {welcome.run.id}: lanes {welcome.first_lane} to {welcome.first_lane + n - 1}", flush=True)
    poles, zeros, answers = CartPole(n, welcome.seed, welcome.first_lane), bytes(n), 0
    say.put(seed.FromWorker(step=seed.Step(
        sequence=0, observation=poles.state.tobytes(), reward=bytes(4 * n), terminated=zeros, truncated=zeros)))
    for message in told:
        answers += 1
        if answers == steps:
            say.put(None)
            continue
        actions = message.actions
        reward, terminated, truncated, final = poles.step(np.frombuffer(actions.actions, "<i4"))
        say.put(seed.FromWorker(step=seed.Step(
            sequence=actions.sequence + 1, observation=poles.state.tobytes(), reward=reward.tobytes(),
            terminated=terminated.tobytes(), truncated=truncated.tobytes(), final_observations=final.tobytes())))
    return answers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address", help="unix:PATH or HOST:PORT")
    parser.add_argument("--environments", type=int, default=16)
    parser.add_argument("--steps", type=int, help="stop after so many answers")
    arguments = parser.parse_args()
    final = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT}
    pause = 0.1
    while True:
        try:
            # A socket's path is no authority for HTTP/2.
            with grpc.insecure_channel(arguments.address, [("grpc.default_authority", "localhost")]) as channel:
                print(f"complete after {session(channel, arguments.environments, arguments.steps)} steps")
                return
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}", file=sys.stderr)
            if error.code() in final:
                sys.exit(1)
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, 10)


if __name__ == "__main__":
    main()
