"""Is this peer the one whose figures were recorded? Compares ratios of speeds, because times differ between machines.

Each round runs every program once in a process of its own, in turn, so that a busy minute hurts all of them. The best run of each counts. Exits with 1 when a ratio is more than 10% from the recorded one.
Every line says how many cores other programs used meanwhile (`others`, Linux only), because a figure means little where that is not near 0; `--patience` waits for a quiet moment before each program.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
TOLERANCE = 0.10

PROGRAMS = {
    "ppo_4": ["ppo_cartpole.py", "--num-envs", "4", "--total-timesteps", "500000"],
    "ppo_64": ["ppo_cartpole.py", "--num-envs", "64", "--total-timesteps", "1000000"],
    "ppo_512": ["ppo_cartpole.py", "--num-envs", "512", "--total-timesteps", "1000000"],
    "cartpole_1024": ["random_stepping.py", "--env", "cartpole", "--num-envs", "1024"],
    "catch_1024": ["random_stepping.py", "--env", "catch", "--num-envs", "1024"],
}

# Best runs, in steps a second, of the quiet two-core machine (Zen 5) on which the peers were first measured.
RECORDED = {"ppo_4": 239e3, "ppo_64": 300e3, "ppo_512": 304e3, "cartpole_1024": 10.5e6, "catch_1024": 6.3e6}

RATIOS = [("ppo_512", "cartpole_1024"), ("ppo_64", "ppo_4"), ("ppo_512", "catch_1024")]


def busy_seconds():
    """Processor time the whole machine has used, or None where it cannot be told."""
    try:
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(seconds):
    """Returns when less than a fifth of a core was used for two seconds, or when `seconds` are over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (before := busy_seconds()) is not None:
        time.sleep(2)
        if busy_seconds() - before < 0.4:
            break


def run(program):
    command = [sys.executable, str(HERE / program[0]), *program[1:]]
    own = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    start, before, mine = time.monotonic(), busy_seconds(), own()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(out.splitlines()[-1])
    if before is not None:
        others = (busy_seconds() - before - (own() - mine)) / (time.monotonic() - start)
        result["others"] = round(max(others, 0.0), 2)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for a quiet machine before each program")
    arguments = parser.parse_args()
    best = dict.fromkeys(PROGRAMS, 0.0)
    for _ in range(arguments.rounds):
        for name, program in PROGRAMS.items():
            wait_for_quiet(arguments.patience)
            result = run(program)
            best[name] = max(best[name], result["steps_per_second"])
            print(json.dumps({"program": name, **result}), flush=True)
    off = False
    for above, below in RATIOS:
        measured, recorded = best[above] / best[below], RECORDED[above] / RECORDED[below]
        deviation = measured / recorded - 1
        within = abs(deviation) <= TOLERANCE
        off |= not within
        line = {"ratio": f"{above} : {below}", "measured": measured, "recorded": recorded, "deviation": deviation, "within": within}
        print(json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
    sys.exit(int(off))


if __name__ == "__main__":
    main()
