"""model.json: fields of `mujoco.MjModel` for the models of physics/tests/models. Run with a Python that has mujoco 4.0.0:

    python physics/tests/golden/make_model.py

With the word `packages` and names of fields, it prints those fields of the models that gymnasium and dm_control install.
With `texts` it reads a JSON list of MJCF texts from its input instead, and prints null for each that mujoco rejects
or makes infinite.
"""

import json
import os
import sys

import mujoco
import numpy as np

GYMNASIUM = """half_cheetah hopper walker2d_v5 ant humanoid humanoidstandup swimmer reacher inverted_pendulum
inverted_double_pendulum pusher_v5 walker2d pusher point""".split()
DM_CONTROL = """cartpole pendulum acrobot cheetah walker hopper reacher finger ball_in_cup point_mass
humanoid humanoid_CMU swimmer fish quadruped manipulator stacker lqr dog""".split()


def numbers(value):
    return [float(x) for x in np.asarray(value, dtype=np.float64).ravel()]


def fields(model, names):
    made = {}
    for name in names:
        holder, _, last = name.rpartition(".")
        made[name] = numbers(getattr(getattr(model, holder) if holder else model, last))
    return made


def packages(names):
    """Paths and fields of the models that are installed."""
    found = []
    for package, folder, wanted in (("gymnasium.envs.mujoco", "assets", GYMNASIUM), ("dm_control", "suite", DM_CONTROL)):
        try:
            spec = __import__("importlib.util").util.find_spec(package)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            continue
        for name in wanted:
            path = os.path.join(os.path.dirname(spec.origin), folder, name + ".xml")
            if os.path.exists(path):
                found.append({"path": path, "fields": fields(mujoco.MjModel.from_xml_path(path), names)})
    return {"mujoco": mujoco.__version__, "models": found}


def of_text(text, names):
    try:
        made = fields(mujoco.MjModel.from_xml_string(text), names)
    except Exception:  # mujoco raises errors of several kinds
        return None
    return made if all(np.isfinite(values).all() for values in made.values()) else None


def golden(folder, names):
    models = {}
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        models[file.removesuffix(".xml")] = fields(mujoco.MjModel.from_xml_path(path), names)
    return {"about": "fields of mujoco.MjModel", "versions": {"mujoco": mujoco.__version__}, "models": models}


def main():
    if sys.argv[1:2] == ["packages"]:
        return print(json.dumps(packages(sys.argv[2:])))
    if sys.argv[1:2] == ["texts"]:
        return print(json.dumps([of_text(text, sys.argv[2:]) for text in json.load(sys.stdin)]))
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "fields.txt")) as file:
        names = file.read().split()
    made = golden(os.path.join(here, "..", "models"), names)
    with open(os.path.join(here, "model.json"), "w") as file:
        file.write(json.dumps({key: made[key] for key in ("about", "versions")})[:-1] + ', "models": {\n')
        file.write(",\n".join(f"{json.dumps(name)}: {json.dumps(made['models'][name])}" for name in made["models"]))
        file.write("\n}}\n")


if __name__ == "__main__":
    main()
