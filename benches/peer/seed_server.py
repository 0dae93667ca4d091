"""A learner's side of central inference in grpcio and NumPy: gathers batches as ours does, and answers with zeros.

    seed_server.py unix:PATH BATCH SHAPE
"""
import pathlib
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "remote/proto"))
seed, services = grpc.protos_and_services("podracer/seed/v1/seed.proto")

address, batch, shape = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split(",")]
dtype = np.dtype("<f4" if len(shape) == 1 else "u1")
kind = dict(kind=seed.BOX, dtype=seed.F32) if len(shape) == 1 else dict(kind=seed.PIXELS, dtype=seed.U8)
bounds = dict(low=[-np.inf], high=[np.inf]) if len(shape) == 1 else {}
spaces = seed.Spaces(
    observation=seed.Space(shape=shape, **kind, **bounds),
    action=seed.Space(kind=seed.DISCRETE, dtype=seed.I32, counts=[6]),
)
run = seed.Run(protocol=1, id="peer", environment="still", settings="{}", spaces=spaces, most_environments=256, unroll=20)
steps = queue.SimpleQueue()


class Learner(services.SeedServicer):
    def Describe(self, request, context):
        return run

    def Work(self, messages, context):
        next(messages)
        yield seed.ToWorker(welcome=seed.Welcome(run=run))
        answers = queue.SimpleQueue()
        for message in messages:
            steps.put((message.step, answers))
            yield answers.get()


def infer():
    gathered = np.zeros([batch, *shape], dtype)
    version = 0
    while True:
        waiting, filled, until = [], 0, None
        while filled < batch:
            try:
                step, answers = steps.get(timeout=None if until is None else max(0, until - time.monotonic()))
            except queue.Empty:
                break
            until = until or time.monotonic() + 0.002
            n = len(step.terminated)
            gathered[filled : filled + n] = np.frombuffer(step.observation, dtype).reshape(n, *shape)
            filled += n
            waiting.append((step.sequence, n, answers))
        version += 1
        actions = np.zeros(filled, "<i4")
        first = 0
        for sequence, n, answers in waiting:
            chosen = actions[first : first + n].tobytes()
            answers.put(seed.ToWorker(actions=seed.Actions(sequence=sequence, actions=chosen, version=version)))
            first += n


threading.Thread(target=infer, daemon=True).start()
options = [("grpc.max_receive_message_length", -1)]
server = grpc.server(ThreadPoolExecutor(64), options=options)
services.add_SeedServicer_to_server(Learner(), server)
server.add_insecure_port(address)
server.start()
print("ready", flush=True)
server.wait_for_termination()
