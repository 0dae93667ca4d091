"""How a peer's program is timed: every stage alone, and each run of the compiled program."""

import json
import os
import sys
import time

# A peer is the CPU program, also on a machine that has more. This must be said before JAX is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax


def measure(function, arguments, repeats):
    """Traces, lowers and compiles `function`, runs it `repeats` times, and returns the stages' seconds and the last result."""
    clock = time.perf_counter
    start = clock()
    traced = jax.jit(function).trace(*arguments)
    trace = clock()
    lowered = traced.lower()
    lower = clock()
    compiled = lowered.compile()
    end = clock()
    runs = []
    for _ in range(repeats):
        begin = clock()
        result = jax.block_until_ready(compiled(*arguments))
        runs.append(clock() - begin)
    stages = {
        "trace_seconds": trace - start,
        "lower_seconds": lower - trace,
        "compile_seconds": end - lower,
        "run_seconds": runs,
    }
    return stages, result


def report(line):
    """Prints one line of JSON, with the best run's speed."""
    line["steps_per_second"] = line["env_steps"] / min(line["run_seconds"])
    rounded = {k: round_all(v) for k, v in line.items()}
    json.dump(rounded, sys.stdout)
    print(flush=True)


def round_all(x):
    if isinstance(x, list):
        return [round_all(v) for v in x]
    return float(f"{x:.6g}") if isinstance(x, float) else x
