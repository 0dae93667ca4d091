"""mujoco.json: single steps, short sequences and resets of Gymnasium's MuJoCo tasks. Run with a Python that has the packages of
tests/mujoco.txt:

    python tests/golden/make_mujoco.py

`steps N tasks..` prints the records of the named tasks (all tasks without names) with N single steps.

Steps begin at (qpos, qvel) with a warm start of zero. Half of the states are from random rollouts, half are near the bounds at which
the task terminates, or fast if it never terminates. The solver is Newton to its minimum. `as_written` is the same step with the
options of the model's file, where they give other numbers: the humanoids use 50 iterations of PGS.
"""

import inspect
import json
import os
import sys
import types

import gymnasium
import mujoco
import numpy as np

# Nothing is drawn, so that no packages of pictures are needed.
RENDERING = types.ModuleType("gymnasium.envs.mujoco.mujoco_rendering")
RENDERING.MujocoRenderer = lambda *arguments: None
sys.modules[RENDERING.__name__] = RENDERING

STEPS, SEQUENCES, LENGTH, RESETS = 20, 4, 3, 2000
EXACT = {"tolerance": 1e-15, "iterations": 200, "ls_iterations": 200, "ls_tolerance": 1e-12, "solver": mujoco.mjtSolver.mjSOL_NEWTON}
DTYPES = {"bool": "bool", "float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
NOT_SETTINGS = ("self", "kwargs", "default_camera_config")
TASKS = """HalfCheetah Hopper Walker2d Swimmer Reacher InvertedPendulum InvertedDoublePendulum Ant Humanoid HumanoidStandup
Pusher""".split()


def array(value):
    """An array in the format of the golden files."""
    value = np.asarray(value)
    data = value.ravel()
    if value.dtype == np.float32:
        data = [float(str(x)) for x in data]
    else:
        data = data.tolist()
    return {"dtype": DTYPES[value.dtype.name], "shape": list(value.shape), "data": data}


def setting(value):
    if isinstance(value, tuple):
        return [setting(x) for x in value]
    return str(float(value)) if isinstance(value, float) and np.isinf(value) else value


class Task:
    def __init__(self, name):
        self.name = f"{name}-v5"
        # The passive checker and the order enforcer around a task change nothing.
        self.env = gymnasium.make(self.name).unwrapped
        self.model, self.data = self.env.model, self.env.data
        self.written = {option: getattr(self.model.opt, option) for option in EXACT}
        self.rng = np.random.default_rng(0)

    def options(self, options):
        for name, value in options.items():
            setattr(self.model.opt, name, value)

    def set_state(self, state):
        mujoco.mj_resetData(self.model, self.data)
        self.env.set_state(*state)

    def state(self):
        return self.data.qpos.copy(), self.data.qvel.copy()

    def action(self, beyond=1.0):
        space = self.env.action_space
        return (beyond * self.rng.uniform(space.low, space.high)).astype(np.float32)

    def rolled(self):
        """A state of a random episode: any of the first 60, before the end."""
        self.env.reset(seed=int(self.rng.integers(2**31)))
        states = [self.state()]
        while len(states) < 60:
            _, _, terminated, _, _ = self.env.step(self.action())
            if terminated:
                break
            states.append(self.state())
        return states[self.rng.integers(len(states))]

    def folded(self, state, fixed):
        """The state with joints such that the deepest contact is as little deep as in any of 500 draws."""
        model, (qpos, qvel) = self.model, state
        best, least = qpos, -np.inf
        for _ in range(500):
            drawn = qpos.copy()
            for joint in range(model.njnt):
                at = model.jnt_qposadr[joint]
                if model.jnt_limited[joint] and at not in fixed:
                    drawn[at] = self.rng.uniform(*model.jnt_range[joint])
            self.data.qpos[:] = drawn
            mujoco.mj_fwdPosition(model, self.data)
            deepest = self.data.contact.dist.min() if self.data.ncon else 0.0
            if deepest > least:
                best, least = drawn, deepest
            if least > -1e-3:
                break
        return best, qvel

    def near(self, which):
        """A state near a bound of the task."""
        rng, (qpos, qvel) = self.rng, self.rolled()
        near = lambda bound, width=0.01: bound + width * rng.uniform(-1, 1)
        heights = {"Hopper-v5": [0.7], "Walker2d-v5": [0.8, 2.0], "Ant-v5": [0.2, 1.0], "Humanoid-v5": [1.0, 2.0]}
        angles = {"Hopper-v5": 0.2, "Walker2d-v5": 1.0}
        if self.name == "InvertedPendulum-v5":
            qpos[1] = near([-0.2, 0.2][which % 2])
            return qpos, qvel
        if self.name == "InvertedDoublePendulum-v5":
            height = near(1.0, 0.02)
            qpos[1] = rng.uniform(-0.8, 0.8)
            qpos[2] = [-1, 1][which % 2] * np.arccos(min(height / 0.6 - np.cos(qpos[1]), 1.0)) - qpos[1]
            return qpos, qvel
        if self.name == "Pusher-v5":
            # The tip of the arm is as low as the object, and a little less or more than the object's radius away from it.
            while abs(self.env.get_body_com("tips_arm")[2] + 0.275) > 0.05:
                qpos[:7] = rng.uniform(*self.model.jnt_range[:7].T)
                self.env.set_state(qpos, qvel)
            tip, away, turn = self.env.get_body_com("tips_arm"), near(0.05, 0.01), rng.uniform(-np.pi, np.pi)
            qpos[7:9] = tip[1] + 0.05 + away * np.sin(turn), tip[0] - 0.45 + away * np.cos(turn)
            return qpos, qvel
        if self.name not in heights:
            return qpos, 3.0 * rng.standard_normal(self.model.nv) + qvel
        z = 1 if self.name in angles else 2
        kinds = len(heights[self.name]) + (2 if self.name in angles else 0) + (self.name == "Hopper-v5")
        kind = which % kinds
        if kind < len(heights[self.name]):
            qpos[z] = near(heights[self.name][kind], 0.02)
            # A step moves the body by up to 4 cm, downwards at the lower bound and upwards at the upper one.
            qvel[z] = [-1, 1][kind] * rng.uniform(0, 0.04) / self.env.dt
            return self.folded((qpos, qvel), fixed=(0, 1, 2))
        kind -= len(heights[self.name])
        if kind < 2:
            qpos[2] = [-1, 1][kind] * near(angles[self.name], 0.02)
            qpos[1] = max(qpos[1], 1.3)
            return self.folded((qpos, qvel), fixed=(0, 1, 2))
        qpos[1] = 1.4
        qvel[2 + which % 4] = [-1, 1][which // kinds % 2] * near(100.0, 20.0)
        return qpos, qvel

    def run(self, state, actions):
        """Steps from a state: what each returns, with the state after it."""
        self.set_state(state)
        made = []
        for action in actions:
            observation, reward, terminated, truncated, info = self.env.step(action)
            assert not truncated
            qpos, qvel = self.state()
            info = {name: np.asarray(value, np.float64) for name, value in info.items()}
            made.append({"observations": observation, "rewards": np.float64(reward), "terminated": np.bool_(terminated), "info": info, "next_qpos": qpos, "next_qvel": qvel})
        return made

    def steps(self, count):
        """Single steps."""
        states = [self.rolled() for _ in range(count - count // 2)] + [self.near(i) for i in range(count // 2)]
        # Every fourth action is beyond the bounds of the actions.
        actions = [self.action(1.3 if i % 4 == 3 else 1.0) for i in range(count)]
        runs = {}
        for kind, options in (("as_written", self.written), ("exact", EXACT)):
            self.options(options)
            runs[kind] = stacked([self.run(state, [action])[0] for state, action in zip(states, actions)])
        self.options(self.written)
        made = {"qpos": array([qpos for qpos, _ in states]), "qvel": array([qvel for _, qvel in states]), "actions": array(actions)}
        made.update(runs["exact"])
        kept = ("rewards", "terminated", "next_qpos", "next_qvel")
        made["as_written"] = {name: runs["as_written"][name] for name in kept}
        return made

    def sequences(self):
        """Steps in a row, without observations."""
        states = [self.rolled() for _ in range(SEQUENCES)]
        actions = [[self.action() for _ in range(LENGTH)] for _ in states]
        self.options(EXACT)
        runs = [self.run(state, each) for state, each in zip(states, actions)]
        self.options(self.written)
        made = stacked([step for run in runs for step in run], (SEQUENCES, LENGTH))
        del made["observations"]
        return {"qpos": array([qpos for qpos, _ in states]), "qvel": array([qvel for _, qvel in states]), "actions": array(actions), **made}

    def resets(self):
        """Statistics of first states, by element."""
        self.env.reset(seed=0)
        states = []
        for _ in range(RESETS):
            self.env.reset()
            states.append(self.state())
        made = {"count": RESETS}
        for name, rows in zip(("qpos", "qvel"), map(np.stack, zip(*states))):
            made[name] = {kind: array(getattr(rows, kind)(axis=0)) for kind in ("mean", "std", "min", "max")}
        observation, _ = self.env.reset(seed=0)
        made["first"] = {"qpos": array(self.data.qpos), "qvel": array(self.data.qvel), "observation": array(observation)}
        return made

    def settings(self):
        parameters = inspect.signature(type(self.env).__init__).parameters.values()
        return {p.name: setting(p.default) for p in parameters if p.name not in NOT_SETTINGS}

    def records(self, count):
        spec = gymnasium.spec(self.name)
        attrs = {
            "settings": self.settings(),
            "max_episode_steps": spec.max_episode_steps,
            "dt": self.env.dt,
            "action_low": array(self.env.action_space.low),
            "action_high": array(self.env.action_space.high),
            "observation_size": int(self.env.observation_space.shape[0]),
        }
        yield {"env": self.name, "kind": "steps", "attrs": attrs, **self.steps(count)}
        yield {"env": self.name, "kind": "sequences", **self.sequences()}
        yield {"env": self.name, "kind": "resets", **self.resets()}


def stacked(steps, shape=None):
    """Arrays of the steps' values, with the leading axes of `shape`."""

    def stack(values):
        values = np.stack(values)
        return array(values.reshape(*shape, *values.shape[1:]) if shape else values)

    made = {name: stack([step[name] for step in steps]) for name in steps[0] if name != "info"}
    made["info"] = {name: stack([step["info"][name] for step in steps]) for name in steps[0]["info"]}
    return made


def file_text(about, records):
    """The text of a golden file."""
    versions = {package.__name__: package.__version__ for package in (gymnasium, mujoco)}
    head = json.dumps({"about": about, "versions": versions}, separators=(",", ":"))[:-1]
    lines = ",\n".join(json.dumps(record, separators=(",", ":"), allow_nan=False) for record in records)
    return f'{head},"records":[\n{lines}\n]}}\n'


def text(names, count):
    about = "steps of Gymnasium's MuJoCo tasks; the solver is Newton, tolerance 1e-15, 200 iterations, except in as_written and resets"
    return file_text(about, (record for name in names for record in Task(name.removesuffix("-v5")).records(count)))


def main():
    mujoco.set_mju_user_warning(lambda text: None)
    if sys.argv[1:2] == ["steps"]:
        return print(text(sys.argv[3:] or TASKS, int(sys.argv[2])))
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mujoco.json"), "w") as file:
        file.write(text(TASKS, STEPS))


if __name__ == "__main__":
    main()
