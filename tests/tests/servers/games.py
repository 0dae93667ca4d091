# Behind the program of a server: its resizing of made-up screens as a hash, and the frames before first observations.

import hashlib

import numpy as np

screens = [(np.arange(rows * 160, dtype=np.uint64) ** 2 // 7 % 256).astype(np.uint8).reshape(rows, 160) for rows in (210, 250)]
small = b"".join(Bilinear(screen.shape, (84, 84))(screen).astype(np.uint8).tobytes() for screen in screens)

configuration = json.loads(sys.argv[1])
game = Game(configuration, rom_of(configuration)[0])
game.seed(3)
waited, stack = [], np.zeros((1, 84, 84), np.uint8)
for _ in range(configuration["episodes"]):
    game.begin(stack)
    waited.append(game.ale.getEpisodeFrameNumber())
json.dump({"small": hashlib.sha256(small).hexdigest(), "waited": waited}, sys.stdout)
