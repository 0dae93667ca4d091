"""A server of environments without any package, for tests: it can go wrong in many ways.

Each environment shows its seed modulo 1000 with the number of its episode in the fraction, and the steps of its episode. The
reward is the action and a half. Episodes have `length` steps; of every three environments the first terminates, the second
is truncated and the third goes on. Where they `skip`, the next episode begins in a step of its own. A server with a `picture` draws as
many as `drawn` says: all bytes of the first are the number of steps so far, and of the second one more.
"""

import json
import math
import os
import runpy
import signal
import struct
import sys
import time

server = runpy.run_path(json.loads(sys.argv[1])["server"])


def once(configuration):
    """Whether a fault that happens in one process only is still to come."""
    try:
        os.close(os.open(configuration["once"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    except TypeError:
        return True
    return True


class Fake:
    def __init__(self, configuration):
        self.configuration = configuration
        self.count = configuration["environments"]
        self.steps = 0
        fault = configuration["fault"]
        if fault in STARTING and once(configuration):
            STARTING[fault](self)
        print("a fake has started")
        self.spec = {
            "observation": {"kind": "box", "shape": [2], "low": 0, "high": None},
            "action": {"kind": "discrete", "n": 3},
            "truncates": configuration["truncates"],
            "skips": configuration.get("skips", False),
            "about": "a fake",
        }
        if "picture" in configuration:
            self.spec["picture"] = configuration["picture"]
        if fault == "other shape" and os.path.exists(configuration["once"]):
            self.spec["observation"]["shape"] = [5]

    def attach(self, memory, layout):
        self.memory, self.layout = memory, layout

    def reset(self, seeds, slot):
        self.seeds = [seed % 1000 for seed in seeds]
        self.episodes, self.times = [0] * self.count, [0] * self.count
        self.over = [False] * self.count
        self.show(slot)

    def draw(self):
        size = 3 * math.prod(self.spec["picture"])
        for i in range(self.configuration["drawn"]):
            at = self.layout["picture"] + i * size
            self.memory[at : at + size] = bytes([self.steps + i]) * size
        return self.configuration["drawn"]

    def close(self):
        if "closes" in self.configuration:
            with open(self.configuration["closes"], "a") as log:
                log.write("closed\n")
        closing = self.configuration.get("closing")
        if closing == "hangs":
            spin(self)
        if closing == "raises":
            raise RuntimeError("the lid is stuck")
        return []

    def begin(self, i):
        self.times[i], self.episodes[i], self.over[i] = 0, self.episodes[i] + 1, False

    def show(self, slot, field="observation"):
        at = self.layout["slots"][slot][field]
        for i in range(self.count):
            shown = self.seeds[i] + self.episodes[i] / 64, self.times[i]
            struct.pack_into("<2f", self.memory, at + 8 * i, *shown)

    def step(self, slot):
        self.steps += 1
        if self.steps == self.configuration["at"] and self.configuration["fault"] in STEPPING:
            if once(self.configuration):
                STEPPING[self.configuration["fault"]](self)
        where = self.layout["slots"][slot]
        actions = struct.unpack_from(f"<{self.count}i", self.memory, self.layout["action"])
        skipped = list(self.over)
        for i in range(self.count):
            if skipped[i]:
                self.begin(i)
            else:
                self.times[i] += 1
        if self.configuration["truncates"]:
            self.show(slot, "next_observation")
        for i, action in enumerate(actions):
            ended = self.times[i] == self.configuration["length"]
            struct.pack_into("<f", self.memory, where["reward"] + 4 * i, 0 if skipped[i] else action + 0.5)
            self.memory[where["terminated"] + i] = skipped[i] or ended and i % 3 == 0
            self.memory[where["truncated"] + i] = skipped[i] or ended and i % 3 == 1
            if ended and i % 3 < 2:
                self.over[i] = True
                if not self.spec["skips"]:
                    self.begin(i)
        self.show(slot)
        if self.configuration["fault"] == "flags" and self.steps == self.configuration["at"]:
            self.memory[where["terminated"]] = 7


def die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_):
    print("the ball is lost", file=sys.stderr)
    sys.exit(3)


def raise_error(_):
    raise RuntimeError("the pole is broken")


def sleep(fake):
    time.sleep(fake.configuration.get("seconds", 3600))


def spin(_):
    while True:
        pass


def chatter(_):
    for line in range(20_000):
        print("on standard output:", line)
        print("on standard error:", line, file=sys.stderr)


def say(text):
    return lambda _: os.write(bells[0].socket.fileno(), text)


def worker(fake):
    # A child that would outlive a server which is killed.
    parent, child = os.getpid(), os.fork()
    if child == 0:
        server["end_with_server"](parent)
        sleep(fake)
    with open(fake.configuration["once"], "w") as file:
        file.write(str(child))


STEPPING = {
    "die": die,
    "leave": leave,
    "raise": raise_error,
    "sleep": sleep,
    "spin": spin,
    "chatter": chatter,
    "garbage": say(b"\xff\xfe nonsense\n"),
    "another step": say(b"done 99\n"),
    "no end of line": say(b"done"),
    "worker": worker,
}
STARTING = {
    "leave at the start": leave,
    "sleep at the start": sleep,
    "garbage at the start": say(b"hello there\n"),
    "an old protocol": say(b'{"protocol": 0}\n'),
}


class Doorbell(server["Doorbell"]):
    def __init__(self):
        super().__init__()
        bells.append(self)


bells = []
server["main"].__globals__["Doorbell"] = Doorbell
server["main"]({"fake": Fake})
