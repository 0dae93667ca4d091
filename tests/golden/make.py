"""Makes every golden file, or those named: `python make.py [random envs rl ops transforms programs modules division functions sac_td3 r2d2 mctx muzero alphazero rainbow]`.

Each file is made in a process of its own, because some need 64-bit types and that is a switch of the whole process in JAX.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
ALL = ["random", "envs", "rl", "ops", "transforms", "programs", "modules", "division", "functions", "sac_td3", "r2d2", "mctx", "muzero", "alphazero", "rainbow"]

if __name__ == "__main__":
    names = sys.argv[1:] or ALL
    unknown = [n for n in names if n not in ALL]
    if unknown:
        sys.exit(f"unknown: {' '.join(unknown)}; known: {' '.join(ALL)}")
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    for name in names:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
        subprocess.run([sys.executable, str(HERE / f"make_{name}.py")], check=True, env=environment)
