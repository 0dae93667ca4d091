//! The settings of environments that servers have: `[environment]` with the names `gymnasium`, `atari` and `envpool`. A
//! server reads them by the names that they have here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problems::Problems;

/// Environments of Gymnasium, MuJoCo's among them.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Gymnasium {
    /// Which: what `gymnasium.make` calls it, such as `CartPole-v1`, or `package:Name-v0` for one of another package's.
    pub id: String,
    /// What `gymnasium.make` is given besides.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub kwargs: toml::Table,
    /// `sync`, one after another; `async`, in a process each; or `native`, as the package batches them itself.
    #[schemars(extend("enum" = Gymnasium::VECTORIZATIONS))]
    pub vectorization: String,
    /// How Gymnasium resets: `same-step`, `next-step` or `disabled`. All come to the same here. A native batch has its own,
    /// and with `next-step` the step after an end is none: nothing is learnt from it, and no episode has it.
    #[schemars(extend("enum" = Gymnasium::AUTORESETS))]
    pub autoreset: String,
    /// Whether the last observation of an episode that is cut off is kept, to bootstrap from; otherwise being cut off is an
    /// end like any other.
    pub bootstrap_time_limit: bool,
    /// The packages that `podracer envs install` made: `gymnasium` or `mujoco`.
    #[schemars(extend("enum" = Gymnasium::PACKAGES))]
    pub packages: String,
    /// What serves them.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for Gymnasium {
    fn default() -> Self {
        Gymnasium {
            id: "CartPole-v1".to_owned(),
            kwargs: toml::Table::new(),
            vectorization: Self::VECTORIZATIONS[0].to_owned(),
            autoreset: Self::AUTORESETS[0].to_owned(),
            bootstrap_time_limit: true,
            packages: Self::PACKAGES[0].to_owned(),
            server: ServerSettings::default(),
        }
    }
}

impl Gymnasium {
    /// The values of `vectorization`.
    pub const VECTORIZATIONS: [&'static str; 3] = ["sync", "async", "native"];
    /// The values of `autoreset`.
    pub const AUTORESETS: [&'static str; 3] = ["same-step", "next-step", "disabled"];
    /// The values of `packages`.
    pub const PACKAGES: [&'static str; 2] = ["gymnasium", "mujoco"];
}

/// Environments of EnvPool.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct EnvPool {
    /// Which, such as `Pong-v5`.
    pub id: String,
    /// What `envpool.make_gymnasium` is given besides.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub kwargs: toml::Table,
    /// Threads of each server; 0 for as many as cores.
    pub threads: usize,
    /// As [`Gymnasium::bootstrap_time_limit`].
    pub bootstrap_time_limit: bool,
    /// What serves them.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for EnvPool {
    fn default() -> Self {
        EnvPool {
            id: "CartPole-v1".to_owned(),
            kwargs: toml::Table::new(),
            threads: 0,
            bootstrap_time_limit: true,
            server: ServerSettings::default(),
        }
    }
}

/// Atari games of ale-py.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Atari {
    /// Which, in ale-py's spelling: `pong`, `space_invaders`.
    pub game: String,
    /// Where the settings of [`AtariProcessing`] come from that nothing else is said of: `ppo` or `seed`.
    #[schemars(extend("enum" = AtariProcessing::PRESETS))]
    pub preset: String,
    /// What is made of the game.
    #[serde(flatten)]
    pub processing: AtariProcessing,
    /// Threads of each server; 0 for as many as cores.
    pub threads: usize,
    /// What serves them.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for Atari {
    fn default() -> Self {
        let preset = AtariProcessing::PRESETS[0];
        Atari {
            game: "pong".to_owned(),
            preset: preset.to_owned(),
            processing: AtariProcessing::ppo(),
            threads: 0,
            server: ServerSettings::default(),
        }
    }
}

impl Default for AtariProcessing {
    fn default() -> Self {
        Self::ppo()
    }
}

/// What is made of an Atari game. Frames are grey, and resized as ale-py does it: by the mean over the area of each pixel.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AtariProcessing {
    /// Pixels of an observation, from top to bottom.
    #[schemars(range(min = 1))]
    pub height: usize,
    /// Pixels of an observation, from left to right.
    #[schemars(range(min = 1))]
    pub width: usize,
    /// How many frames an observation has, the latest last.
    #[schemars(range(min = 1))]
    pub stack: usize,
    /// Frames of the game for each action.
    #[schemars(range(min = 1))]
    pub action_repeat: usize,
    /// Whether a frame is the greatest of the last two of the game, pixel by pixel: some games draw by turns.
    pub pool: bool,
    /// An episode begins with frames in which nothing is done: uniformly from 0 to this many. They are single frames, no
    /// repeated action.
    pub most_noops: usize,
    /// Whether an episode begins with the fire button, in games that wait for it.
    pub fire_reset: bool,
    /// Whether the loss of a life terminates an episode. The game goes on: only its end begins another.
    pub life_loss_ends: bool,
    /// Whether rewards become their sign.
    pub clip_rewards: bool,
    /// Whether all 18 actions are there, or those that do something in this game.
    pub full_actions: bool,
    /// How likely the action before is taken in place of the one chosen.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sticky_actions: f64,
    /// Frames of the game after which an episode is cut off.
    #[schemars(range(min = 1))]
    pub most_frames: usize,
    /// As [`Gymnasium::bootstrap_time_limit`].
    pub bootstrap_time_limit: bool,
}

impl AtariProcessing {
    /// The values of `preset`.
    pub const PRESETS: [&'static str; 2] = ["ppo", "seed"];

    /// The processing of a preset's name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "ppo" => Some(Self::ppo()),
            "seed" => Some(Self::seed()),
            _ => None,
        }
    }

    /// The wrappers that PPO is commonly trained with (Baselines, CleanRL): rewards are clipped, and the loss of a life
    /// terminates an episode without a full reset.
    fn ppo() -> Self {
        AtariProcessing {
            fire_reset: true,
            life_loss_ends: true,
            clip_rewards: true,
            full_actions: false,
            ..Self::seed()
        }
    }

    /// Table 9 of SEED RL (Espeholt et al. 2020), as far as ale-py goes: there frames are resized bilinearly, and the frames
    /// at the beginning are 1 to 30.
    fn seed() -> Self {
        AtariProcessing {
            height: 84,
            width: 84,
            stack: 4,
            action_repeat: 4,
            pool: true,
            most_noops: 30,
            fire_reset: false,
            life_loss_ends: false,
            clip_rewards: false,
            full_actions: true,
            sticky_actions: 0.0,
            most_frames: 108_000,
            // 108,000 frames are half an hour. Baselines and SEED RL learn of no difference either.
            bootstrap_time_limit: false,
        }
    }
}

/// The processes that have environments, and what happens when one does not do its part.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct ServerSettings {
    /// Servers of each actor thread.
    #[schemars(range(min = 1))]
    pub servers: usize,
    /// How often a server that dies, hangs or answers nonsense is restarted before that is an error; 0 for never.
    pub restarts: usize,
    /// How many seconds a server may take to start, and again to begin its first episodes.
    #[schemars(range(min = 1))]
    pub start_seconds: usize,
    /// How many seconds a server may take for a step.
    #[schemars(range(min = 1))]
    pub step_seconds: usize,
    /// A Python interpreter that has the packages; empty for that of `podracer envs install`.
    pub python: String,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            servers: 1,
            restarts: 10,
            start_seconds: 40,
            step_seconds: 30,
            python: String::new(),
        }
    }
}

impl ServerSettings {
    /// That a run has the patience for a restart, and each server an environment.
    pub(super) fn check_with(&self, environments: usize, patience: usize, problems: &mut Problems) {
        let longest = (self.start_seconds.saturating_mul(2)).saturating_add(self.step_seconds);
        if self.restarts > 0 && longest >= patience {
            problems.add(format!(
                "sebulba.patience is {patience} and must be more than {longest}: a server may take environment.step_seconds = \
                 {} to be found hanging, and twice environment.start_seconds = {} to be there again",
                self.step_seconds, self.start_seconds
            ));
        }
        if self.servers > environments {
            problems.add(format!(
                "environment.servers is {} and must be at most sebulba.environments = {environments}",
                self.servers
            ));
        }
    }
}
