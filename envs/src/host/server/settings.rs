//! Settings of the environments in server processes. A server reads them as JSON, by the names that they have here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Environments of Gymnasium, MuJoCo's among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Gymnasium {
    /// Environment as `gymnasium.make` names it, such as `CartPole-v1`; `module:Name-v0` for another package's.
    pub id: String,
    /// Further arguments of `gymnasium.make`.
    pub kwargs: BTreeMap<String, Value>,
    /// Way in which a server steps its environments.
    pub vectorization: Vectorization,
    /// Gymnasium's way to reset. It changes nothing for `sync` and `async` vectorization; a `native` batch has a fixed one,
    /// and `next-step` makes reset-only steps, which are not learnt from.
    pub autoreset: Autoreset,
    /// If true, the last observation of a truncated episode is kept and its value bootstrapped from; if false, truncated
    /// episodes count as terminated.
    pub bootstrap_time_limit: bool,
    /// Python packages that serve it, as `podracer envs install` names them.
    pub packages: Packages,
    /// Processes that serve it.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for Gymnasium {
    fn default() -> Self {
        Gymnasium {
            id: "CartPole-v1".to_owned(),
            kwargs: BTreeMap::new(),
            vectorization: Vectorization::default(),
            autoreset: Autoreset::default(),
            bootstrap_time_limit: true,
            packages: Packages::default(),
            server: ServerSettings::default(),
        }
    }
}

/// Ways in which a server of Gymnasium steps its environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Vectorization {
    /// One after another.
    #[default]
    Sync,
    /// Each in a process of its own.
    Async,
    /// In a batched implementation of the package itself.
    Native,
}

/// Gymnasium's ways to reset an environment whose episode ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Autoreset {
    /// In the step that ends the episode.
    #[default]
    SameStep,
    /// In the step after it, which ignores its action.
    NextStep,
    /// Not by Gymnasium: the server resets them itself.
    Disabled,
}

/// Sets of Python packages that serve Gymnasium's environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Packages {
    /// Gymnasium alone.
    #[default]
    Gymnasium,
    /// Gymnasium with Box2D: LunarLander, BipedalWalker, CarRacing.
    Box2d,
    /// Gymnasium with MuJoCo.
    Mujoco,
}

impl Packages {
    /// The name of the set in settings and for `podracer envs install`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gymnasium => "gymnasium",
            Self::Box2d => "box2d",
            Self::Mujoco => "mujoco",
        }
    }
}

/// Environments of EnvPool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnvPool {
    /// Environment as EnvPool names it, such as `Pong-v5`.
    pub id: String,
    /// Further arguments of `envpool.make_gymnasium`.
    pub kwargs: BTreeMap<String, Value>,
    /// Threads of each server. None: one for each core.
    #[schemars(range(min = 1, max = 1_024))]
    pub threads: Option<usize>,
    /// If true, the last observation of a truncated episode is kept and its value bootstrapped from; if false, truncated
    /// episodes count as terminated.
    pub bootstrap_time_limit: bool,
    /// Processes that serve it.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for EnvPool {
    fn default() -> Self {
        EnvPool {
            id: "CartPole-v1".to_owned(),
            kwargs: BTreeMap::new(),
            threads: None,
            bootstrap_time_limit: true,
            server: ServerSettings::default(),
        }
    }
}

/// Atari games of ale-py. Settings of their processing that are not given are those of the preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Atari {
    /// Game in ale-py's spelling: `pong`, `space_invaders`.
    pub game: String,
    /// Defaults of the settings that process the game's frames, actions and rewards.
    pub preset: Preset,
    /// Processing of the game's frames, actions and rewards.
    #[serde(flatten)]
    pub processing: AtariProcessing,
    /// Threads of each server. None: one for each core.
    #[schemars(range(min = 1, max = 1_024))]
    pub threads: Option<usize>,
    /// Processes that serve it.
    #[serde(flatten)]
    pub server: ServerSettings,
}

impl Default for Atari {
    fn default() -> Self {
        Atari {
            game: "pong".to_owned(),
            preset: Preset::default(),
            processing: AtariProcessing::default(),
            threads: None,
            server: ServerSettings::default(),
        }
    }
}

impl<'de> Deserialize<'de> for Atari {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut given: Map<String, Value> = Map::deserialize(deserializer)?;
        let preset = given.get("preset").map_or(Ok(Preset::default()), Preset::deserialize);
        let processing = preset.and_then(|preset| serde_json::to_value(preset.processing()));
        if let Value::Object(processing) = processing.map_err(D::Error::custom)? {
            for (name, value) in processing {
                given.entry(name).or_insert(value);
            }
        }
        // The derived function of the same name, by `remote`.
        let atari = Self::deserialize(given).map_err(D::Error::custom)?;
        atari.processing.check().map_err(D::Error::custom)?;
        Ok(atari)
    }
}

impl Serialize for Atari {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Published sets of [`AtariProcessing`] settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Preset {
    /// The wrappers that PPO is commonly trained with (Baselines, CleanRL): rewards are clipped, and the loss of a life
    /// terminates an episode without a full reset.
    #[default]
    Ppo,
    /// Table 9 of SEED RL (Espeholt et al. 2020).
    Seed,
}

impl Preset {
    /// The settings of the preset.
    #[must_use]
    pub fn processing(self) -> AtariProcessing {
        let seed = AtariProcessing {
            height: 84,
            width: 84,
            resize: Resize::Bilinear,
            stack: 4,
            action_repeat: 4,
            pool: true,
            fewest_noops: 1,
            most_noops: 30,
            fire_reset: false,
            life_loss_ends: false,
            clip_rewards: false,
            full_actions: true,
            sticky_actions: 0.0,
            most_frames: 108_000,
            // 108,000 frames are half an hour. Baselines and SEED RL do not bootstrap there either.
            bootstrap_time_limit: false,
        };
        match self {
            Self::Seed => seed,
            Self::Ppo => AtariProcessing {
                resize: Resize::Area,
                fewest_noops: 0,
                fire_reset: true,
                life_loss_ends: true,
                clip_rewards: true,
                full_actions: false,
                ..seed
            },
        }
    }
}

/// Ways to resize a frame of an Atari game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Resize {
    /// The mean over the area of each pixel, as ale-py does it in its own threads.
    #[default]
    Area,
    /// Between the four nearest pixels. A server steps such games one after another, in one thread.
    Bilinear,
}

/// Processing of an Atari game's frames, actions and rewards. Frames are grey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AtariProcessing {
    /// Height of an observation in pixels.
    #[schemars(range(min = 1, max = 1_000))]
    pub height: usize,
    /// Width of an observation in pixels.
    #[schemars(range(min = 1, max = 1_000))]
    pub width: usize,
    /// Way in which frames are resized.
    pub resize: Resize,
    /// Frames in an observation, the latest last.
    #[schemars(range(min = 1, max = 100))]
    pub stack: usize,
    /// Frames of the game for each action.
    #[schemars(range(min = 1, max = 1_000))]
    pub action_repeat: usize,
    /// If true, a frame is the maximum of the game's last two, pixel by pixel: some games draw objects in every other
    /// frame only.
    pub pool: bool,
    /// Least number of frames without an action at the beginning of an episode; more than 0 needs `resize = "bilinear"`.
    #[schemars(range(max = 1_000_000))]
    pub fewest_noops: usize,
    /// Greatest number of frames without an action at the beginning of an episode; the number is uniform from the least to this.
    /// They are single frames, not repeated actions.
    #[schemars(range(max = 1_000_000))]
    pub most_noops: usize,
    /// If true, an episode begins with the fire button in games that wait for it.
    pub fire_reset: bool,
    /// If true, the loss of a life terminates an episode. The game goes on: it is reset at its own end only.
    pub life_loss_ends: bool,
    /// If true, rewards are replaced by their sign.
    pub clip_rewards: bool,
    /// If true, all 18 actions are available; if false, those that do something in the game.
    pub full_actions: bool,
    /// Probability that the previous action is taken in place of the chosen one.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sticky_actions: f64,
    /// Frames of the game after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub most_frames: usize,
    /// If true, the last observation of a truncated episode is kept and its value bootstrapped from; if false, truncated
    /// episodes count as terminated.
    pub bootstrap_time_limit: bool,
}

impl AtariProcessing {
    /// Checks that the settings fit together.
    fn check(&self) -> Result<(), String> {
        let &AtariProcessing { resize, fewest_noops, most_noops, .. } = self;
        if fewest_noops > most_noops {
            return Err(format!(
                "fewest_noops = {fewest_noops} is more than most_noops = {most_noops}"
            ));
        }
        if fewest_noops > 0 && resize == Resize::Area {
            return Err(format!(
                "fewest_noops = {fewest_noops} needs resize = \"bilinear\": ale-py draws from 0 on where it resizes by itself"
            ));
        }
        Ok(())
    }
}

/// The default preset's.
impl Default for AtariProcessing {
    fn default() -> Self {
        Preset::default().processing()
    }
}

/// Processes that serve environments, and limits on their faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSettings {
    /// Servers of each actor thread.
    #[schemars(range(min = 1, max = 1_024))]
    pub servers: usize,
    /// Restarts of a server that dies, hangs or answers nonsense, before its next fault ends the run; 0 for none.
    #[schemars(range(max = i32::MAX))]
    pub restarts: usize,
    /// Seconds that a server may take to start, and again to begin its first episodes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub start_seconds: usize,
    /// Seconds that a server may take for a step, and to close its environments at the end.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub step_seconds: usize,
    /// Python interpreter that has the packages. None: that of `podracer envs install`.
    pub python: Option<PathBuf>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            servers: 1,
            restarts: 10,
            start_seconds: 40,
            step_seconds: 30,
            python: None,
        }
    }
}
