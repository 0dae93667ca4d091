"""step.json: states of the models of physics/tests/models, and the dynamics that mujoco computes for them. rods.json: contacts of a
capsule with a cylinder. Run with a Python that has mujoco 4.0.0:

    python physics/tests/golden/make_step.py

`packages N names.. [--fields a,b]` prints N states of each named model that gymnasium or dm_control installs, with all fields or
with those listed. `check N names..` prints a table: for each model the largest residual of the equation of motion, and the numbers
of states that have contacts and active limits, and of states whose solver used all iterations. A name is `hopper`,
`gymnasium/hopper` or `dm_control/hopper`.

Every model is solved to the minimum of its constraint cost: solver Newton with a tolerance near rounding (EXACT). The general collider
has the least tolerance that it takes. The other options are those of the model.
"""

import importlib.util
import json
import os
import sys

import mujoco
import numpy as np

ABOUT = (
    "states (qpos qvel act ctrl qacc_warmstart), fields of mujoco.MjData after mj_forward, and next_* after mj_step, each [states, ..]; "
    "solver Newton, tolerance 1e-15, iterations 200, ls_iterations 200, ls_tolerance 1e-12, energy enabled; qM is dense; "
    "a contact is geom1 geom2 dist pos[3] frame[9]"
)
EXACT = {"tolerance": 1e-15, "iterations": 200, "ls_iterations": 200, "ls_tolerance": 1e-12, "solver": mujoco.mjtSolver.mjSOL_NEWTON}
COLLIDER = {"ccd_tolerance": 1e-15, "ccd_iterations": 500}
RODS = """<mujoco><worldbody>
  <geom name="drum" type="cylinder" size="0.15 0.2" margin="0.002"/>
  <body><freejoint/><geom name="rod" type="capsule" size="0.05 0.3" margin="0.002"/></body>
</worldbody></mujoco>"""
STATE = ["qpos", "qvel", "act", "ctrl", "qacc_warmstart"]
DATA = """qfrc_bias qfrc_passive qfrc_actuator qfrc_constraint qacc_smooth qacc actuator_force xpos xquat xipos geom_xpos site_xpos
subtree_com cinert cvel cfrc_ext cdof ten_length sensordata energy""".split()
PACKAGES = {"gymnasium": ("gymnasium.envs.mujoco", "assets"), "dm_control": ("dm_control", "suite")}
FREE, BALL, SLIDE, HINGE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{kind}")) for kind in ("FREE", "BALL", "SLIDE", "HINGE"))


def exact(model):
    for name, value in {**EXACT, **COLLIDER}.items():
        setattr(model.opt, name, value)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    return model


class States:
    """Draws states of a model, half of them from rollouts."""

    def __init__(self, model, seed=0):
        self.model, self.rng = model, np.random.default_rng(seed)
        self.data = mujoco.MjData(model)

    def draw(self, count):
        made = []
        kinds = [self.noisy, self.spread, self.touching, self.fast]
        for i in range(count // 2):
            made.append(self.valid(kinds[i % len(kinds)]))
        while len(made) < count:
            made += self.rollout()
        return made[:count]

    def valid(self, kind):
        for attempt in range(100):
            made = kind()
            # Light bodies cannot be as fast as others.
            made["qvel"] *= 0.9**attempt
            if self.calm(made):
                return made
        raise RuntimeError(f"no valid state of {kind.__name__}")

    def calm(self, made):
        """True if mujoco can step the state: it neither diverges nor runs out of memory."""
        data = mujoco.MjData(self.model)
        for name, value in made.items():
            getattr(data, name)[:] = value
        mujoco.mj_step(self.model, data)
        return not data.warning.number.any() and bool(np.isfinite(data.qvel).all()) and bool(np.abs(data.qvel).max(initial=0) < 1e3)

    def of(self, qpos, speed):
        """A state at rest or moving, with random actuator states and controls, and a warm start of zero."""
        model, rng = self.model, self.rng
        qpos = qpos.copy()
        mujoco.mj_normalizeQuat(model, qpos)
        return {
            "qpos": qpos,
            "qvel": speed * rng.standard_normal(model.nv),
            "act": self.ranged(model.na, self.act_limits()),
            "ctrl": self.ranged(model.nu, (model.actuator_ctrllimited, model.actuator_ctrlrange)),
            "qacc_warmstart": np.zeros(model.nv),
        }

    def act_limits(self):
        model = self.model
        limited, ranges = np.zeros(model.na, bool), np.zeros((model.na, 2))
        for i in range(model.nu):
            if model.actuator_actadr[i] >= 0:
                last = model.actuator_actadr[i] + model.actuator_actnum[i] - 1
                limited[last], ranges[last] = model.actuator_actlimited[i], model.actuator_actrange[i]
        return limited, ranges

    def ranged(self, count, limits, beyond=0.1):
        """Uniform within the limits and a tenth beyond them; normal without limits."""
        limited, ranges = limits
        low, high = ranges[:, 0], ranges[:, 1]
        more = beyond * (high - low)
        uniform = self.rng.uniform(low - more, high + more)
        return np.where(limited, uniform, self.rng.standard_normal(count))

    def noisy(self):
        """Near the initial position."""
        qpos = self.model.qpos0.copy()
        mujoco.mj_integratePos(self.model, qpos, 0.1 * self.rng.standard_normal(self.model.nv), 1.0)
        return self.of(qpos, 1.0)

    def spread_positions(self):
        model, rng = self.model, self.rng
        qpos = model.qpos0.copy()
        for joint in range(model.njnt):
            at, kind = model.jnt_qposadr[joint], model.jnt_type[joint]
            low, high = model.jnt_range[joint]
            if kind in (SLIDE, HINGE):
                if model.jnt_limited[joint]:
                    more, reach = 0.1 * min(high - low, 1.0), 4.0 if kind == HINGE else 1.2
                    qpos[at] = rng.uniform(max(low - more, qpos[at] - reach), min(high + more, qpos[at] + reach))
                else:
                    qpos[at] += rng.standard_normal() * (1.0 if kind == HINGE else 0.3)
                continue
            if kind == FREE:
                qpos[at : at + 3] += 0.3 * rng.standard_normal(3)
                at += 3
            axis = rng.standard_normal(3)
            angle = rng.uniform(0, 1.1 * high if model.jnt_limited[joint] else np.pi)
            turn, turned = np.zeros(4), np.zeros(4)
            mujoco.mju_axisAngle2Quat(turn, axis / np.linalg.norm(axis), angle)
            mujoco.mju_mulQuat(turned, qpos[at : at + 4], turn)
            qpos[at : at + 4] = turned
        return qpos

    def spread(self):
        """Joints within their limits and a little beyond them."""
        return self.of(self.spread_positions(), 1.0)

    def fast(self):
        """Fast, at a position of one of the other kinds."""
        positions = [self.noisy, self.spread, self.touching][self.rng.integers(3)]()["qpos"]
        return self.of(positions, 10.0)

    def deepest(self, qpos, of_bodies):
        """The least distance of a contact, or of a contact of two moving bodies; 1 without contacts."""
        model, data = self.model, self.data
        data.qpos[:] = qpos
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon:
            return 1.0
        moving = model.body_weldid[model.geom_bodyid[data.contact.geom]].all(axis=1)
        return data.contact.dist[moving | (not of_bodies)].min(initial=1.0)

    def lowered(self, qpos):
        """The position 3 m lower, or None if no joint lowers a tree."""
        model, found, qpos = self.model, False, qpos.copy()
        for joint in range(model.njnt):
            at, kind = model.jnt_qposadr[joint], model.jnt_type[joint]
            if model.body_parentid[model.jnt_bodyid[joint]] != 0:
                continue
            if kind == FREE:
                qpos[at + 2] -= 3.0
                found = True
            elif kind == SLIDE and abs(model.jnt_axis[joint][2]) > 0.9:
                qpos[at] -= 3.0 * np.sign(model.jnt_axis[joint][2])
                found = True
        return qpos if found else None

    def touching(self):
        """A position at which the deepest contact is up to 2 cm deep: where a path from a free position meets the floor or a body."""
        depth = -(10.0 ** self.rng.uniform(-4, np.log10(0.02)))
        start = self.noisy()["qpos"] if self.rng.integers(2) else self.spread_positions()
        end, of_bodies = self.lowered(start), False
        if end is None or self.rng.integers(4) == 0:
            of_bodies = True
            for _ in range(300):
                end = self.spread_positions()
                if self.deepest(end, of_bodies) < depth:
                    break
        if self.deepest(start, of_bodies) < depth or self.deepest(end, of_bodies) > depth:
            return self.of(start, 1.0)
        for _ in range(40):
            middle = 0.5 * (start + end)
            mujoco.mj_normalizeQuat(self.model, middle)
            if self.deepest(middle, of_bodies) < depth:
                end = middle
            else:
                start = middle
        return self.of(end, 1.0)

    def rollout(self):
        """Four states of 50 to 200 steps of random control, each with the warm start that the step before left."""
        model, rng, data = self.model, self.rng, mujoco.MjData(self.model)
        mujoco.mj_integratePos(model, data.qpos, 0.02 * rng.standard_normal(model.nv), 1.0)
        kept = set(rng.choice(np.arange(50, 201), 4, replace=False).tolist())
        limits = (model.actuator_ctrllimited, model.actuator_ctrlrange)
        made = []
        for step in range(max(kept) + 1):
            if step % 5 == 0 or step in kept:
                data.ctrl[:] = self.ranged(model.nu, limits)
            if step in kept:
                now = {name: getattr(data, name).copy() for name in STATE}
                # The state with unit quaternions, which a step leaves to within rounding.
                mujoco.mj_normalizeQuat(model, now["qpos"])
                if not self.calm(now):
                    break
                made.append(now)
            mujoco.mj_step(model, data)
            if data.warning.number.any():
                break
        return made if made else [self.valid(self.noisy)]


def contacts(data):
    rows = [[*c.geom, c.dist, *c.pos, *c.frame] for c in data.contact]
    return [float(x) for row in rows for x in row]


def after(model, state):
    """Data after mj_forward, and after mj_step, from a state."""
    made = []
    for function in (mujoco.mj_forward, mujoco.mj_step):
        data = mujoco.MjData(model)
        for name, value in state.items():
            getattr(data, name)[:] = value
        function(model, data)
        mujoco.mj_rnePostConstraint(model, data)
        made.append(data)
    return made


def record(model, states, names):
    """Every field of all states, as lists of numbers. Fields without numbers are left out."""
    columns = {}

    def add(name, value):
        if not names or name in names or name in STATE:
            columns.setdefault(name, []).append(value)

    for state in states:
        forward, step = after(model, state)
        for name, value in state.items():
            add(name, value.tolist())
        for name in DATA:
            add(name, np.asarray(getattr(forward, name)).ravel().tolist())
        mass = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, forward, mass)
        add("qM", mass.ravel().tolist())
        add("contacts", contacts(forward))
        add("nefc", [int(forward.nefc)])
        for name in ("qpos", "qvel", "act"):
            add(f"next_{name}", getattr(step, name).tolist())
    return {name: rows for name, rows in columns.items() if any(rows)}


def rods(count):
    """Random placements of a capsule about a cylinder (pos quat), and their contacts; a third of the capsules are nearly level."""
    model = exact(mujoco.MjModel.from_xml_string(RODS))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    made = []
    while len(made) < count:
        tilt = [1.0, 0.05, 1.0][len(made) % 3]
        data.qpos[:3] = rng.uniform(-0.45, 0.45, 3)
        mujoco.mju_quatZ2Vec(data.qpos[3:], rng.standard_normal(3) * [1, 1, tilt])
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        # Half of the placements have no contact of their own; few of those tell more.
        if data.ncon or rng.integers(8) == 0:
            made.append({"qpos": data.qpos.tolist(), "contacts": contacts(data)})
    return made


def check(model, states):
    """Largest residual of M qacc + bias = passive + actuator + constraint, relative to the largest force, and counts."""
    worst, counts = 0.0, {"contact": 0, "penetrating": 0, "limit": 0, "unconverged": 0}
    limits = (mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
    for state in states:
        data, _ = after(model, state)
        product = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, product, data.qacc)
        terms = [product, data.qfrc_bias, -data.qfrc_passive, -data.qfrc_actuator, -data.qfrc_constraint]
        largest = max(np.abs(term).max(initial=0) for term in terms)
        worst = max(worst, np.abs(sum(terms)).max(initial=0) / max(largest, 1.0))
        counts["contact"] += data.ncon > 0
        counts["penetrating"] += bool(data.ncon and data.contact.dist.min() < 0)
        counts["limit"] += bool(np.isin(data.efc_type, limits).any())
        counts["unconverged"] += bool(data.solver_niter.max(initial=0) >= EXACT["iterations"])
    return worst, counts


def path_of(name):
    package, _, last = name.rpartition("/")
    for one, (module, folder) in PACKAGES.items():
        if package in ("", one):
            try:
                spec = importlib.util.find_spec(module)
            except ModuleNotFoundError:
                spec = None
            path = spec and os.path.join(os.path.dirname(spec.origin), folder, last + ".xml")
            if path and os.path.exists(path):
                return path
    return None


def own():
    """The models of physics/tests/models by name."""
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.join(here, "..", "models")
    return {file.removesuffix(".xml"): os.path.join(folder, file) for file in sorted(os.listdir(folder))}


def packages(count, names, wanted):
    """Records of installed models, one at a time, because many states are many numbers."""
    print(f'{{"mujoco": {json.dumps(mujoco.__version__)}, "models": [', end="")
    written = 0
    for name in names:
        path = path_of(name)
        if path is None:
            continue
        model = exact(mujoco.MjModel.from_xml_path(path))
        made = {"path": path, "states": record(model, States(model).draw(count), wanted)}
        print((",\n" if written else "\n") + json.dumps(made, separators=(",", ":"), allow_nan=False), end="")
        written += 1
    print("\n]}")


def table(count, names):
    paths = {name: path_of(name) for name in names} if names else own()
    for name, path in paths.items():
        model = exact(mujoco.MjModel.from_xml_path(path))
        worst, counts = check(model, States(model).draw(count))
        print(f"{name}: residual {worst:.1e}", *(f"{kind} {number}" for kind, number in counts.items()))


def main():
    mujoco.set_mju_user_warning(lambda text: None)
    arguments, wanted = sys.argv[1:], []
    if "--fields" in arguments:
        at = arguments.index("--fields")
        wanted = arguments[at + 1].split(",")
        arguments = arguments[:at] + arguments[at + 2 :]
    if arguments[:1] == ["packages"]:
        return packages(int(arguments[1]), arguments[2:], wanted)
    if arguments[:1] == ["check"]:
        return table(int(arguments[1]), arguments[2:])
    lines = []
    for name, path in own().items():
        model = exact(mujoco.MjModel.from_xml_path(path))
        made = record(model, States(model).draw(12), wanted)
        lines.append(f"{json.dumps(name)}:{json.dumps(made, separators=(',', ':'), allow_nan=False)}")
    head = json.dumps({"about": ABOUT, "versions": {"mujoco": mujoco.__version__}})[:-1]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "step.json"), "w") as file:
        file.write(head + ', "models": {\n' + ",\n".join(lines) + "\n}}\n")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "rods.json"), "w") as file:
        json.dump(rods(240), file, separators=(",", ":"), allow_nan=False)


if __name__ == "__main__":
    main()
