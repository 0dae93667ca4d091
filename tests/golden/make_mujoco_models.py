"""mujoco_models.json: fields of `mujoco.MjModel` for the models of Gymnasium's MuJoCo tasks. Run with a Python that has the packages of
tests/mujoco.txt:

    python tests/golden/make_mujoco_models.py

The fields are those of physics/tests/golden/fields.txt, of the model that the task compiles from its file.
"""

import operator
import pathlib
import re

import mujoco
import numpy as np

from make_mujoco import TASKS, Task, array, file_text

HERE = pathlib.Path(__file__).parent
FIELDS = HERE / "../../physics/tests/golden/fields.txt"
COUNTS = {"body": "nbody", "joint": "njnt", "geom": "ngeom", "site": "nsite", "tendon": "ntendon", "actuator": "nu"}


def record(name, fields):
    """The record of a task. Its `model` is the task's name in lower case: `half_cheetah` for `HalfCheetah`."""
    task = Task(name)
    names = {kind: [getattr(task.model, kind)(i).name for i in range(getattr(task.model, count))] for kind, count in COUNTS.items()}
    return {
        "model": re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(),
        "attrs": {"task": task.name, "file": task.settings()["xml_file"]},
        "names": names,
        "fields": {field: array(np.asarray(operator.attrgetter(field)(task.model))) for field in fields},
    }


def main():
    mujoco.set_mju_user_warning(lambda text: None)
    fields = FIELDS.read_text().split()
    about = "fields of mujoco.MjModel for the models of Gymnasium's MuJoCo tasks"
    (HERE / "mujoco_models.json").write_text(file_text(about, (record(name, fields) for name in TASKS)))


if __name__ == "__main__":
    main()
