# Vector environments of Gymnasium and EnvPool. This is a part of a server's program, behind `server.py`.


def keeping_last(env):
    """Has the step that ends an episode return a copy: the reset that follows may write into the same arrays."""
    step = env.step

    def step_and_keep(action):
        observation, reward, terminated, truncated, info = step(action)
        if terminated or truncated:
            observation = copy.deepcopy(observation)
        return observation, reward, terminated, truncated, info

    env.step = step_and_keep
    return env


def closing_quietly(env):
    """Has `close` print an error instead of raising it."""
    close = env.close

    def close_quietly():
        try:
            close()
        except Exception:
            traceback.print_exc()

    env.close = close_quietly
    return env


class Gymnasium(Batch):
    """Gymnasium's vector environments, in each of its autoreset modes."""

    flattened = ("Discrete", "Dict", "Tuple", "MultiDiscrete", "MultiBinary")

    def __init__(self, configuration):
        import gymnasium
        from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

        name, count = configuration["id"], configuration["environments"]
        kwargs = dict(configuration["kwargs"])
        mode = {
            "same-step": AutoresetMode.SAME_STEP,
            "next-step": AutoresetMode.NEXT_STEP,
            "disabled": AutoresetMode.DISABLED,
        }[configuration["autoreset"]]

        def make():
            env = gymnasium.make(name, **kwargs)
            return keeping_last(env) if mode == AutoresetMode.SAME_STEP else env

        server = os.getpid()

        def make_in_worker():
            if os.getpid() == server:
                # One for its spaces, which Gymnasium closes at once.
                return closing_quietly(make())
            end_with_server(server)
            outlive_stops()
            return make()

        vectorization = configuration["vectorization"]

        def make_all():
            if vectorization == "sync":
                return SyncVectorEnv([make] * count, copy=False, autoreset_mode=mode)
            if vectorization == "async":
                # A worker that is forked has nothing to import again.
                return AsyncVectorEnv([make_in_worker] * count, copy=False, context="fork", autoreset_mode=mode)
            return gymnasium.make_vec(name, num_envs=count, vectorization_mode="vector_entry_point", **kwargs)

        if configuration["pictures"]:
            # The last state of an episode can be drawn before the reset then.
            mode = AutoresetMode.DISABLED
            if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
                # MuJoCo would look for a screen.
                os.environ.setdefault("MUJOCO_GL", "egl")
        self.envs = make_all()
        if configuration["pictures"]:
            if "rgb_array" in (self.envs.metadata.get("render_modes") or ()):
                self.envs.close()
                kwargs["render_mode"] = "rgb_array"
                self.envs = make_all()
                self.prepare_pictures(seed=0)
            else:
                self.picture = f"`{name}` has no render mode `rgb_array`"
        self.mode = self.envs.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        self.modes, self.sync = AutoresetMode, SyncVectorEnv
        self.native = vectorization == "native"
        # Asked to reset a part before, as the others are, it would reset all of its environments, or none.
        self.skips = self.native and self.mode == AutoresetMode.NEXT_STEP
        about = f"gymnasium {gymnasium.__version__} {name}"
        super().__init__(configuration, about, self.envs.single_observation_space, self.envs.single_action_space)

    def first(self, seeds):
        # All that a native batch draws comes from one.
        return self.shown(self.envs.reset(seed=seeds[0] if self.native else seeds)[0])

    def next(self, actions):
        observation, reward, terminated, truncated, infos = self.envs.step(actions)
        observation = self.shown(observation)
        ended = terminated | truncated
        if self.mode != self.modes.SAME_STEP:
            self.keep_picture(ended)
        if self.skips:
            return observation, reward, terminated, truncated, observation
        if self.mode == self.modes.SAME_STEP:
            last = infos.get("final_obs")
            if self.flat and last is not None:
                last = [None if one is None else self.flat.one(one, row) for row, one in enumerate(last)]
            return observation, reward, terminated, truncated, last
        if not ended.any():
            return observation, reward, terminated, truncated, None
        # Resetting writes over all three.
        last, terminated, truncated = np.copy(observation), np.copy(terminated), np.copy(truncated)
        observation = self.shown(self.envs.reset(options={"reset_mask": ended})[0])
        return observation, reward, terminated, truncated, last

    def close(self):
        errors = []

        def close(name, closing):
            try:
                closing()
            except Exception as error:
                traceback.print_exc()
                errors.append(f"{name}: {type(error).__name__}: {error}")

        if isinstance(self.envs, self.sync):
            # Each by itself: Gymnasium closes none after one that fails.
            for i, env in enumerate(self.envs.envs):
                close(f"environment {self.first_index + i}", env.close)
            self.envs.closed = True
        else:
            close("the batch", self.envs.close)
            for i, process in enumerate(getattr(self.envs, "processes", ())):
                if process.exitcode:
                    errors.append(f"environment {self.first_index + i}: its process ended with {process.exitcode}")
        return errors


class EnvPool(Batch):
    """EnvPool's vector environments."""

    def __init__(self, configuration):
        import envpool

        self.name = configuration["id"]
        self.configuration = configuration
        self.envs = self.make([0] * configuration["environments"])
        if configuration["pictures"]:
            self.prepare_pictures()
        about = f"envpool {envpool.__version__} {self.name}"
        super().__init__(configuration, about, self.envs.observation_space, self.envs.action_space)

    def make(self, seeds):
        import envpool

        kwargs = dict(self.configuration["kwargs"])
        if self.configuration["pictures"]:
            kwargs["render_mode"] = "rgb_array"
        return envpool.make_gymnasium(
            self.name,
            num_envs=self.configuration["environments"],
            num_threads=self.configuration.get("threads") or 0,
            seed=seeds,
            **kwargs,
        )

    def first(self, seeds):
        # It takes seeds only when it is made.
        self.envs.close()
        self.envs = self.make(seeds)
        return self.shown(self.envs.reset()[0])

    def next(self, actions):
        observation, reward, terminated, truncated, _ = self.envs.step(actions)
        observation = self.shown(observation)
        ended = np.flatnonzero(terminated | truncated)
        if not ended.size:
            return observation, reward, terminated, truncated, None
        self.keep_picture(terminated | truncated)
        last, observation = observation, np.copy(observation)
        begun = self.envs.reset(ended)[0]
        observation[ended] = self.flat(begun, ended.size) if self.flat else begun
        return observation, reward, terminated, truncated, last
