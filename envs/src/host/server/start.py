# The end of a server's program, behind `server.py`, `vector_environments.py` and `atari.py`.

SERVED = {"gymnasium": Gymnasium, "atari": atari, "envpool": EnvPool}

if __name__ == "__main__":
    import numpy as np

    main(SERVED)
