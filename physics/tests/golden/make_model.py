"""model.json: fields of `mujoco.MjModel` for the models of physics/tests/models. Run with a Python that has mujoco 4.0.0:

    python physics/tests/golden/make_model.py

With the word `gymnasium`, it compares the robots of envs/src/mujoco/models with the models that gymnasium installs, and prints a line of
JSON for each: the largest difference of every field that is not equal, relative to the largest number of the field's row, and the kinds
of objects with other names. If names of fields follow, the robots' texts are read from a JSON object in its input.
With the word `packages` and names of fields, it prints those fields of the models that gymnasium and dm_control install.
With `texts` it reads a JSON list of MJCF texts from its input instead, and prints null for each that mujoco rejects
or makes infinite.
"""

import importlib.util
import json
import operator
import os
import sys

import mujoco
import numpy as np

GYMNASIUM = """half_cheetah hopper walker2d_v5 ant humanoid humanoidstandup swimmer reacher inverted_pendulum
inverted_double_pendulum pusher_v5 walker2d pusher point""".split()
DM_CONTROL = """cartpole pendulum acrobot cheetah walker hopper reacher finger ball_in_cup point_mass
humanoid humanoid_CMU swimmer fish quadruped manipulator stacker lqr dog""".split()
# Gymnasium's files of robots that have another name there.
RENAMED = {"walker2d": "walker2d_v5", "humanoid_standup": "humanoidstandup", "pusher": "pusher_v5"}
OBJECTS = {"body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite", "tendon": "ntendon", "actuator": "nu"}


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
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            continue
        for name in wanted:
            path = os.path.join(os.path.dirname(spec.origin), folder, name + ".xml")
            if os.path.exists(path):
                found.append({"path": path, "fields": fields(mujoco.MjModel.from_xml_path(path), names)})
    return {"mujoco": mujoco.__version__, "models": found}


def rows(model, name):
    """A field as a matrix; numbers are rows of one."""
    value = np.asarray(operator.attrgetter(name)(model), dtype=np.float64)
    return value if value.ndim == 2 else value.reshape(-1, 1)


def difference(ours, theirs):
    """Largest difference of two fields, relative to the largest number of the row, or to 1 if the row should be 0."""
    if ours.shape != theirs.shape:
        return f"{list(ours.shape)}, not {list(theirs.shape)}"
    largest = abs(theirs).max(axis=1, keepdims=True, initial=0.0)
    return float((abs(ours - theirs) / np.where(largest < 1e-10, 1.0, largest)).max(initial=0.0))


def object_names(model, kind):
    return [getattr(model, kind)(i).name for i in range(getattr(model, OBJECTS[kind]))]


def robots(texts, names):
    """For each text, the fields and names in which it differs from gymnasium's model, largest difference first."""
    folder = os.path.join(os.path.dirname(importlib.util.find_spec("gymnasium.envs.mujoco").origin), "assets")
    for robot, text in texts.items():
        ours = mujoco.MjModel.from_xml_string(text)
        theirs = mujoco.MjModel.from_xml_path(os.path.join(folder, RENAMED.get(robot, robot) + ".xml"))
        found = {name: difference(rows(ours, name), rows(theirs, name)) for name in names}
        found = {name: error for name, error in found.items() if error}
        # Differences of shapes are strings, and come first.
        ordered = sorted(found, key=lambda name: found[name] if isinstance(found[name], float) else np.inf, reverse=True)
        renamed = [kind for kind in OBJECTS if object_names(ours, kind) != object_names(theirs, kind)]
        yield {"model": robot, "errors": {name: found[name] for name in ordered}, "renamed": renamed}


def robot_texts(folder):
    texts = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".xml"):
            with open(os.path.join(folder, file)) as opened:
                texts[file.removesuffix(".xml")] = opened.read()
    return texts


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
    if sys.argv[1:2] == ["gymnasium"] and sys.argv[2:]:
        return print(*map(json.dumps, robots(json.load(sys.stdin), sys.argv[2:])), sep="\n")
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "fields.txt")) as file:
        names = file.read().split()
    if sys.argv[1:2] == ["gymnasium"]:
        texts = robot_texts(os.path.join(here, "../../../envs/src/mujoco/models"))
        return print(*map(json.dumps, robots(texts, names)), sep="\n")
    made = golden(os.path.join(here, "..", "models"), names)
    with open(os.path.join(here, "model.json"), "w") as file:
        file.write(json.dumps({key: made[key] for key in ("about", "versions")})[:-1] + ', "models": {\n')
        file.write(",\n".join(f"{json.dumps(name)}: {json.dumps(made['models'][name])}" for name in made["models"]))
        file.write("\n}}\n")


if __name__ == "__main__":
    main()
