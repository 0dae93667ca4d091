"""A batch of environments in a process of its own, for the client in `server/mod.rs`.

    python -P -c SOURCE CONFIGURATION      # a JSON object; its `name` says which of SERVED it is

Standard input is the client's hold on this process: when the client is gone, however it went, the kernel ends the
process. Standard output is a socket, on which both sides say lines; what environments print goes to standard error.
At the end of a run the client shuts its side of the socket down: the server closes its environments and exits.

    server: a JSON object             `protocol`, `environments`, `observation`, `action`, `truncates`, `skips`, `about`, `picture`
    client: a JSON object, with a file descriptor of the shared memory: `bytes`, `action`, `picture` and two `slots` of offsets
    server: ready
    client: reset {"seeds": [...], "first": 0}    a seed for each environment, and the run's number of the first environment
    server: done 0
    client: step 1                    the actions are in the memory
    server: done 1                    the step is in slot 1 % 2; the other slot keeps the step before
    client: draw                      only where `picture` is a size
    server: drawn 2                   the number of pictures in the memory, one or two
    server: failed "..."              at any time: the error that ends the process, or an error while it closes its environments

A slot has `observation` and `next_observation` `[N, ...]`, `reward` f32 `[N]`, `terminated` and `truncated` u8 `[N]`. An
episode that ends in a step shows the next one's first observation in `observation`, and its own last one in its row of
`next_observation`; the other rows there mean nothing. Where environments begin an episode only in the step after (`skips`),
`observation` has the last one too, and the step after is reset-only: both flags are set.

Pictures are drawn where the configuration's `pictures` is true. `picture` is then `[height, width]`, or a text that says why there
are none. Pictures are u8 `[height, width, 3]`, of the first environment: if its episode ended in the last step and its last state was
drawn, that one comes first; the present state's comes last.

Whatever goes wrong ends the process with a traceback or a message: the client says what to do about it.
"""

import contextlib
import copy
import fcntl
import functools
import json
import mmap
import operator
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback

PROTOCOL = 1


class Doorbell:
    """The socket to the client, in lines."""

    def __init__(self):
        # What environments print must not get between the lines.
        self.socket = socket.socket(fileno=os.dup(1))
        os.dup2(2, 1)
        self.rest = b""
        self.descriptors = []

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def fail(self, error):
        """Says an error, if the client is there to hear it."""
        try:
            self.say(f"failed {json.dumps(error)}")
        except OSError:
            pass

    def hear(self):
        """The next line; none when the client is gone."""
        while b"\n" not in self.rest:
            received, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, 1)
            self.descriptors += descriptors
            if not received:
                return None
            self.rest += received
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()


# 1 while the client steps the batch; processes that this one forks share it.
SERVING = mmap.mmap(-1, 1)
# Processes that outlive signals to stop.
OUTLIVING = set()


def outlive_stops():
    """Has this process outlive SIGINT, SIGTERM and SIGHUP while the client steps the batch. Batch systems send them to every process of
    a job, and the client, which stops after its present call, still needs its environments. A handler is not inherited by programs that
    environments start, and has no effect in other processes that they fork."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    OUTLIVING.add(os.getpid())


def stop(number, _):
    """Handles a signal to stop."""
    if os.getpid() not in OUTLIVING or not SERVING[0]:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def end_with_client():
    """Has the kernel end this process when standard input closes, whatever the process is doing then."""
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    # SIGIO ends a process that does not handle it. A client that went before is not told of.
    closed = select.poll()
    closed.register(0, 0)
    if closed.poll(0):
        sys.exit(0)


def end_with_server(server):
    """Has the kernel end this process, a worker that the server of this number forked, when the server ends."""
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # A server that went before is not told of.
    if os.getppid() != server:
        os._exit(1)


def serve(doorbell, batch, environments):
    """Serves a batch: `spec`, `attach(memory, layout)`, `reset(seeds, slot)`, `step(slot)`; a slot is 0 or 1."""
    doorbell.say(json.dumps({"protocol": PROTOCOL, "environments": environments, **batch.spec}))
    line = doorbell.hear()
    if line is None:
        return
    layout = json.loads(line)
    batch.attach(mmap.mmap(doorbell.descriptors[0], layout["bytes"]), layout)
    doorbell.say("ready")
    while (line := doorbell.hear()) is not None:
        command, _, rest = line.partition(" ")
        if command == "draw":
            doorbell.say(f"drawn {batch.draw()}")
            continue
        if command == "step":
            number = int(rest)
            batch.step(number % 2)
        else:
            number = 0
            order = json.loads(rest)
            batch.first_index = order["first"]
            batch.reset(order["seeds"], 0)
        doorbell.say(f"done {number}")


# Batches of NumPy arrays. What follows needs NumPy, which the packages that are served bring.


class Slot:
    """The arrays of a slot."""

    def __init__(self, memory, offsets, observation, count):
        shape, dtype = observation

        def array(name, of, *extents):
            return np.ndarray((count, *extents), of, memory, offsets[name])

        self.observation = array("observation", dtype, *shape)
        self.next_observation = None
        if offsets["next_observation"] is not None:
            self.next_observation = array("next_observation", dtype, *shape)
        self.reward = array("reward", np.float32)
        self.terminated = array("terminated", np.bool_)
        self.truncated = array("truncated", np.bool_)


class Batch:
    """What the batches of all packages share. A subclass gives `first(seeds)`, the first observations, and `next(actions)`:
    observations, rewards, `terminated`, `truncated`, and the last observations of the episodes that ended. Where it `skips`,
    the step after an end is none, and begins an episode."""

    skips = False
    # Observations of these kinds become one vector f32 each.
    flattened = ("Discrete",)
    # Height and width of pictures, or why there are none.
    picture = "its server draws none"
    draws = False
    # Number of the first environment in the run.
    first_index = 0

    def __init__(self, configuration, about, observation, action):
        self.count = configuration["environments"]
        self.bootstraps = configuration["bootstrap_time_limit"]
        # Atari's stacks come with the frames first, and images have their channels last.
        self.frames_first = is_stack(observation)
        self.flat = Flat(observation) if type(observation).__name__ in self.flattened else None
        if self.flat:
            leaves = [{"path": path, "space": self.spec_of("observation", leaf)} for path, _, leaf in self.flat.leaves]
            from gymnasium.spaces.utils import flatdim

            self.observation = (flatdim(observation),), np.dtype(np.float32)
        else:
            self.observation = self.type_of("observation", observation)
        self.observation_space = observation
        self.action_space = action
        if type(action).__name__ in ("Dict", "Tuple") and type(action).__name__ in self.flattened:
            parts = [{"path": path, "space": self.spec_of("action", part)} for path, _, part in leaves_of(action)]
            self.action, taken = ((width_of(action),), np.dtype(np.float32)), {"kind": "tree", "leaves": parts}
        else:
            self.action, taken = self.type_of("action", action), self.spec_of("action", action)
        self.spec = {
            "observation": {"kind": "tree", "leaves": leaves} if self.flat else self.spec_of("observation", observation),
            "action": taken,
            "truncates": self.bootstraps,
            "skips": self.skips,
            "picture": self.picture,
            "about": f"{about}, numpy {np.__version__}",
        }

    def spec_of(self, what, space):
        shape, dtype = self.type_of(what, space)
        kind = type(space).__name__
        if kind == "Discrete":
            return {"kind": "discrete", "n": int(space.n)}
        if kind == "MultiDiscrete":
            return {"kind": "multi-discrete", "counts": space.nvec.tolist()}
        if kind == "MultiBinary":
            bits = {"kind": "box", "shape": shape, "low": 0.0, "high": 1.0}
            return bits if what == "observation" else {"kind": "multi-discrete", "counts": [2] * shape[0]}
        if dtype == np.uint8:
            return {"kind": "pixels", "shape": shape}
        return {"kind": "box", "shape": shape, "low": bounds(space.low), "high": bounds(space.high)}

    def type_of(self, what, space):
        """Shape and dtype of a space's values in the memory."""
        kind = type(space).__name__
        if kind == "Discrete":
            return (), np.dtype(np.int32)
        if kind in ("MultiDiscrete", "MultiBinary") and len(space.shape) == 1:
            return space.shape, np.dtype(np.int32)
        if kind != "Box":
            sys.exit(
                f"the {what} space has {space}: only Box and Discrete are served, MultiDiscrete and MultiBinary with one axis, and "
                "Dict and Tuple of these in Gymnasium's environments. Wrap the environment"
            )
        if space.dtype == np.uint8 and len(space.shape) == 3:
            shape = (*space.shape[1:], space.shape[0]) if is_stack(space) else space.shape
            return shape, np.dtype(np.uint8)
        return space.shape, np.dtype(np.float32)

    def attach(self, memory, layout):
        shape, dtype = self.action
        self.actions = np.ndarray((self.count, *shape), dtype, memory, layout["action"])
        self.slots = [Slot(memory, slot, self.observation, self.count) for slot in layout["slots"]]
        # The last one of an episode that ended in the last step.
        self.last_picture = None
        if layout["picture"] is not None:
            self.pictures = np.ndarray((2, *self.picture, 3), np.uint8, memory, layout["picture"])

    def reset(self, seeds, slot):
        self.last_picture = None
        self.ended = np.zeros(self.count, bool)
        self.taken = 0
        with self.naming():
            self.put(self.slots[slot].observation, self.first(seeds))

    def step(self, slot):
        self.last_picture = None
        self.taken += 1
        with self.naming():
            self.take_step(self.slots[slot])

    @contextlib.contextmanager
    def naming(self):
        """Ends the process if an environment has a wrong value, with its number in the run and the step."""
        try:
            yield
        except WrongValue as wrong:
            when = f"step {self.taken} since its server began" if self.taken else "its first observation"
            sys.exit(f"environment {self.first_index + wrong.row}, {when}: {wrong}")

    def close(self):
        """Closes the environments. Returns the errors of environments that fail to."""
        if hasattr(self, "envs"):
            self.envs.close()
        return []

    def take_step(self, slot):
        observation, reward, terminated, truncated, last = self.next(actions_of(self.action_space, self.actions))
        terminated = self.row("terminated", terminated).astype(bool)
        truncated = self.row("truncated", truncated).astype(bool) & ~terminated
        if not self.bootstraps:
            terminated, truncated = terminated | truncated, np.zeros(self.count, bool)
        self.put(slot.observation, observation)
        slot.reward[:] = reward = self.row("rewards", reward)
        check_rewards(slot.reward, reward)
        if self.skips:
            skipped, self.ended = self.ended, terminated | truncated
            if np.any(slot.reward[skipped]) or np.any(self.ended[skipped]):
                raise ValueError(
                    "the batch says that it begins an episode in the step after an end (NEXT_STEP), and such a step has a "
                    "reward or is an end itself"
                )
            terminated, truncated = terminated | skipped, truncated | skipped
        slot.terminated[:] = terminated
        slot.truncated[:] = truncated
        ended = np.flatnonzero(terminated | truncated)
        if slot.next_observation is not None and ended.size:
            if last is None:
                raise ValueError(
                    "the batch begins episodes in the step that ends them and does not show their last observations, as "
                    "`final_obs` of what it says: bootstrap_time_limit = false does without"
                )
            rows = np.stack([np.asarray(last[i]) for i in ended])
            into = np.empty((len(rows), *slot.observation.shape[1:]), slot.observation.dtype)
            self.put(into, rows, ended)
            slot.next_observation[ended] = into

    def prepare_pictures(self, **reset):
        """Sets `picture`, by drawing one after a reset."""
        try:
            self.envs.reset(**reset)
            picture = self.picture_now()
        except Exception as error:
            self.picture = f"its rendering fails ({type(error).__name__}: {error})"
            return
        self.draws = picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3
        if self.draws:
            self.picture = picture.shape[:2]
        else:
            self.picture = f"its pictures are {picture.dtype}{list(picture.shape)} and not uint8[height, width, 3]"

    def picture_now(self):
        """The first environment, in NumPy. It may draw over what it gave before."""
        return np.array(self.envs.render()[0])

    def keep_picture(self, ended):
        """Draws the last state of an episode that ended, before a reset."""
        if self.draws and ended[0]:
            self.last_picture = self.picture_now()

    def draw(self):
        """Puts the pictures into the memory. Returns their number."""
        drawn = [] if self.last_picture is None else [self.last_picture]
        drawn.append(self.picture_now())
        for into, picture in zip(self.pictures, drawn):
            if picture.shape != into.shape:
                raise ValueError(f"a picture has the shape {picture.shape} and must have {into.shape}")
            np.copyto(into, picture, casting="no")
        return len(drawn)

    def shown(self, observations):
        """Observations of all environments in the form that the client reads."""
        return self.flat(observations, self.count) if self.flat else observations

    def row(self, what, values):
        values = np.asarray(values)
        if values.shape != (self.count,):
            raise ValueError(f"{what} have the shape {values.shape} and must have {(self.count,)}")
        return values

    def put(self, into, observations, rows=None):
        """Copies observations to their place, of all environments or those in `rows`. NumPy would repeat smaller arrays."""
        observations = np.asarray(observations)
        shape = into.shape
        if self.frames_first:
            shape = (shape[0], shape[3], *shape[1:3])
        if observations.shape != shape:
            raise ValueError(f"the observations have the shape {observations.shape} and must have {shape}")
        if not self.frames_first:
            np.copyto(into, observations, casting="same_kind")
            if into.dtype == np.float32 and not np.isfinite(into).all():
                check_numbers(self.observation_space, into, observations, rows)
        elif shape[1] == 4:
            interleave(into.view("<u4")[..., 0], observations)
        else:
            np.copyto(into, np.moveaxis(observations, 1, -1))


def is_stack(space):
    """Whether these are stacked grey frames, `[frames, height, width]`."""
    shape = getattr(space, "shape", None) or ()
    return getattr(space, "dtype", None) == np.uint8 and len(shape) == 3 and shape[0] < shape[2] > 4


def bounds(values):
    """One bound where all elements share it. JSON has no infinities: null is one, of the side's sign."""
    each = [None if np.isinf(value) else float(value) for value in np.ravel(values)]
    return each[0] if each and all(value == each[0] for value in each) else each


def summary(error, configuration):
    """An error as one line, with what to do about it if that is known."""
    if isinstance(error, SystemExit):
        return str(error.code)
    text = f"{type(error).__name__}: {error}".strip()
    missing = [error.name, getattr(error.__cause__, "name", None)] if isinstance(error, ModuleNotFoundError) else []
    if missing := [name for name in missing if name]:
        text += (
            f"; put the folder that has `{missing[0]}` into PYTHONPATH, as an absolute path, or install the module for the server's "
            "interpreter"
        )
    for name in ("box2d", "mujoco"):
        if type(error).__name__ == "DependencyNotInstalled" and name in text.lower():
            text += f'; or set `packages = "{name}"` in [environment], after `podracer envs install {name}`'
    return text[:2000]


def close(batch):
    """Closes the environments of a batch. Returns the errors of environments that fail to."""
    try:
        return batch.close() if hasattr(batch, "close") else []
    except BaseException as error:
        traceback.print_exc()
        return [f"{type(error).__name__}: {error}"]


def leave(status):
    """Ends this process, soon: exit handlers and threads of an environment may take two seconds."""

    def end():
        time.sleep(2)
        os._exit(status)

    threading.Thread(target=end, daemon=True).start()
    sys.exit(status)


def main(served):
    outlive_stops()
    end_with_client()
    doorbell = Doorbell()
    configuration = json.loads(sys.argv[1])
    batch, status = None, 0
    try:
        batch = served[configuration["name"]](configuration)
        SERVING[0] = 1
        serve(doorbell, batch, configuration["environments"])
    except BaseException as error:
        # The client has the error before environments are closed, which may take long.
        code = error.code if isinstance(error, SystemExit) else "error"
        status = 1 if isinstance(code, str) else code or 0
        if isinstance(error, SystemExit):
            print(code, file=sys.stderr)
        else:
            traceback.print_exc()
        if isinstance(code, str):
            doorbell.fail(summary(error, configuration))
        else:
            doorbell.socket.shutdown(socket.SHUT_RDWR)
    SERVING[0] = 0
    for error in close(batch):
        doorbell.fail(f"closing fails: {error}")
    leave(status)
