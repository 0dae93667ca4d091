# Atari games of ale-py. This is part of a server's program, behind `server.py`.


def atari(configuration):
    """The batch that has what is asked for. ale-py's own draws its first frames from 0 on, and has one way of resizing."""
    return (AtariGames if configuration["resize"] == "bilinear" else Atari)(configuration)


def rom_of(configuration):
    """The ROM of the game, and what to say of it."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    game = configuration["game"]
    rom = ale_py.roms.get_rom_path(game)
    if rom is None:
        sys.exit(f"there is no game `{game}`: ale-py {ale_py.__version__} has {', '.join(ale_py.roms.get_all_rom_ids())}")
    return rom, f"ale-py {ale_py.__version__} {game}"


class Atari(Batch):
    """The vector environment of ale-py."""

    def __init__(self, configuration):
        from ale_py.vector_env import AtariVectorEnv

        _, about = rom_of(configuration)
        self.envs = AtariVectorEnv(
            configuration["game"],
            configuration["environments"],
            num_threads=configuration.get("threads") or 0,
            autoreset_mode="SameStep",
            img_height=configuration["height"],
            img_width=configuration["width"],
            stack_num=configuration["stack"],
            frameskip=configuration["action_repeat"],
            maxpool=configuration["pool"],
            # It draws less than this.
            noop_max=configuration["most_noops"] + 1,
            use_fire_reset=configuration["fire_reset"],
            # Without a reset; `episodic_life` would begin a new game.
            life_loss_info=configuration["life_loss_ends"],
            reward_clipping=configuration["clip_rewards"],
            full_action_space=configuration["full_actions"],
            repeat_action_probability=configuration["sticky_actions"],
            max_num_frames_per_episode=configuration["most_frames"],
        )
        super().__init__(configuration, about, self.envs.single_observation_space, self.envs.single_action_space)

    def first(self, seeds):
        observation, infos = self.envs.reset(seed=np.array(seeds, np.int64))
        self.lives = infos["lives"]
        return observation

    def next(self, actions):
        observation, reward, terminated, truncated, infos = self.envs.step(actions)
        last = infos.get("final_obs")
        # Where a life is lost and the game goes on, ale-py 0.12 leaves `final_obs` as the memory was.
        goes_on = infos["lives"] < self.lives
        self.lives = infos["lives"]
        if last is not None:
            last[goes_on] = observation[goes_on]
        return observation, reward, terminated, truncated, last


class AtariGames(Batch):
    """Games stepped one after another, with ale-py's emulator alone."""

    def __init__(self, configuration):
        from gymnasium.spaces import Box, Discrete

        rom, about = rom_of(configuration)
        self.games = [Game(configuration, rom) for _ in range(configuration["environments"])]
        shape = configuration["stack"], configuration["height"], configuration["width"]
        observation, action = Box(0, 255, shape, np.uint8), Discrete(len(self.games[0].actions))
        super().__init__(configuration, about, observation, action)
        self.stacks = np.zeros((self.count, *shape), np.uint8)

    def first(self, seeds):
        for game, seed, stack in zip(self.games, seeds, self.stacks):
            game.seed(seed)
            game.begin(stack)
        return self.stacks

    def next(self, actions):
        last = [None] * self.count
        rewards = np.zeros(self.count, np.float32)
        terminated, truncated = np.zeros((2, self.count), bool)
        for i, (game, action, stack) in enumerate(zip(self.games, actions, self.stacks)):
            rewards[i], terminated[i], truncated[i] = game.step(action, stack)
            if terminated[i] or truncated[i]:
                last[i] = stack.copy()
            if game.over:
                game.begin(stack)
        return self.stacks, rewards, terminated, truncated, last


class Game:
    """One game, processed as DQN and its successors do (Mnih et al. 2015)."""

    def __init__(self, configuration, rom):
        from ale_py import Action, ALEInterface

        self.configuration = configuration
        self.rom = rom
        self.noop, self.fire = Action.NOOP, Action.FIRE
        self.ale = ALEInterface()
        self.seed(0)
        full = configuration["full_actions"]
        self.actions = self.ale.getLegalActionSet() if full else self.ale.getMinimalActionSet()
        self.waits = configuration["fire_reset"] and self.fire in self.ale.getMinimalActionSet()
        screen = self.ale.getScreenDims()
        self.resize = Bilinear(screen, (configuration["height"], configuration["width"]))
        # The screens of the last two frames.
        self.screens = np.zeros((2, *screen), np.uint8)

    def seed(self, seed):
        """Makes all that is drawn later depend on the seed."""
        self.random = np.random.default_rng(seed)
        self.ale.setInt("random_seed", seed)
        self.ale.setInt("frame_skip", 1)
        self.ale.setInt("max_num_frames_per_episode", self.configuration["most_frames"])
        self.ale.setFloat("repeat_action_probability", self.configuration["sticky_actions"])
        # It takes the settings then.
        self.ale.loadROM(self.rom)

    def begin(self, stack):
        """Begins an episode: the stack has its first observation, and black frames before."""
        self.ale.reset_game()
        for _ in range(self.random.integers(self.configuration["fewest_noops"], self.configuration["most_noops"] + 1)):
            self.frame(self.noop)
        if self.waits:
            self.frame(self.fire)
        self.lives = self.ale.lives()
        self.over = False
        self.ale.getScreenGrayscale(self.screens[1])
        stack[:] = 0
        stack[-1] = self.resize(self.screens[1])

    def frame(self, action):
        """A frame of the time before the first observation. A game that ends there begins again."""
        self.ale.act(action)
        if self.ale.game_over():
            self.ale.reset_game()

    def step(self, action, stack):
        """Repeats an action, and puts the observation behind the stack's last: reward, terminated, truncated."""
        repeat = self.configuration["action_repeat"]
        reward = 0
        for frame in range(repeat):
            reward += self.ale.act(self.actions[action])
            self.over = self.ale.game_over()
            if frame + 2 >= repeat or self.over:
                self.screens[0] = self.screens[1]
                self.ale.getScreenGrayscale(self.screens[1])
            if self.over:
                break
        stack[:-1] = stack[1:].copy()
        # Where an end comes earlier, the screen before the last was not looked at.
        pooled = self.configuration["pool"] and frame + 1 == repeat
        stack[-1] = self.resize(self.screens.max(0) if pooled else self.screens[1])
        truncated = self.ale.game_truncated()
        lives, self.lives = self.lives, self.ale.lives()
        lost = self.configuration["life_loss_ends"] and self.lives < lives
        if self.configuration["clip_rewards"]:
            reward = np.sign(reward)
        return reward, (self.over and not truncated) or lost, truncated


class Bilinear:
    """Resizes grey screens, bilinearly between the centres of their pixels: for screens of Atari's sizes with the weights and the
    rounding of OpenCV's `INTER_LINEAR`, pixel by pixel."""

    def __init__(self, screen, size):
        self.rows, self.columns = (self.weights(*extents) for extents in zip(screen, size))

    def weights(self, before, after):
        """The two places that each pixel lies between, and their weights in 2048ths."""
        at = np.clip((np.arange(after) + 0.5) * (before / after) - 0.5, 0, before - 1)
        low = np.floor(at).astype(np.intp)
        share = np.float32(at - low)
        in_parts = [np.rint(weight * np.float32(2048)).astype(np.int32) for weight in (1 - share, share)]
        return low, np.minimum(low + 1, before - 1), *in_parts

    def __call__(self, screen):
        low, high, of_low, of_high = self.columns
        wide = screen.take(low, 1) * of_low + screen.take(high, 1) * of_high >> 4
        low, high, of_low, of_high = self.rows
        above = wide.take(low, 0) * of_low[:, None] >> 16
        below = wide.take(high, 0) * of_high[:, None] >> 16
        return above + below + 2 >> 2
