//! The settings of each environment: `[environment]`, with `name` saying which.

use serde::{Deserialize, Serialize};

use super::problems::Problems;
use super::servers::{Atari, EnvPool, Gymnasium, ServerSettings, check_atari, check_server};

/// What is learnt.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum EnvironmentSettings {
    /// An Atari game of ale-py; on the host only.
    Atari(Atari),
    /// Balance a pole on a cart.
    Cartpole(CartPole),
    /// Catch the falling ball.
    Catch(Catch),
    /// An environment of EnvPool; on the host only.
    Envpool(EnvPool),
    /// Find the goal among walls.
    Gridworld(GridWorld),
    /// An environment of Gymnasium; on the host only.
    Gymnasium(Gymnasium),
    /// Remember a cue.
    #[serde(rename = "memory-chain")]
    MemoryChain(MemoryChain),
    /// Swing a pendulum up, with a continuous torque.
    Pendulum(Pendulum),
    /// Hit bricks with a ball, seen in pixels; on the host only.
    #[serde(rename = "pixel-breakout")]
    PixelBreakout,
    /// Catch the falling ball, seen in pixels; on the host only.
    #[serde(rename = "pixel-catch")]
    PixelCatch,
}

/// CartPole (Barto, Sutton and Anderson 1983; the `v1` rules).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CartPole {
    /// Steps after which an episode is cut off.
    pub time_limit: usize,
}

/// Catch (bsuite, Osband et al. 2020).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Catch {
    /// Rows the ball falls through.
    pub rows: usize,
    /// Columns to catch it in.
    pub columns: usize,
}

/// A grid with walls and goals.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GridWorld {
    /// One string per row: `#` a wall, `G` a goal, `.` a free cell.
    pub layout: Vec<String>,
    /// Steps after which an episode is cut off.
    pub time_limit: usize,
}

/// The memory chain (bsuite, Osband et al. 2020).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MemoryChain {
    /// Steps from the cue to the answer.
    pub length: usize,
}

/// Pendulum (the `v1` rules).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Pendulum {
    /// Steps after which an episode is cut off.
    pub time_limit: usize,
}

impl EnvironmentSettings {
    /// The values of `environment.name`.
    pub const NAMES: [&'static str; 10] = [
        "atari",
        "cartpole",
        "catch",
        "envpool",
        "gridworld",
        "gymnasium",
        "memory-chain",
        "pendulum",
        "pixel-breakout",
        "pixel-catch",
    ];

    /// The environment of this name with its default settings.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "atari" => Self::Atari(Atari::default()),
            "cartpole" => Self::Cartpole(CartPole { time_limit: 500 }),
            "catch" => Self::Catch(Catch { rows: 10, columns: 5 }),
            "envpool" => Self::Envpool(EnvPool::default()),
            "gymnasium" => Self::Gymnasium(Gymnasium::default()),
            "gridworld" => Self::Gridworld(GridWorld {
                layout: podracer_envs::GridWorld::default().layout.into(),
                time_limit: 100,
            }),
            "memory-chain" => Self::MemoryChain(MemoryChain { length: 10 }),
            "pendulum" => Self::Pendulum(Pendulum { time_limit: 200 }),
            "pixel-breakout" => Self::PixelBreakout,
            "pixel-catch" => Self::PixelCatch,
            _ => return None,
        })
    }

    /// The value of `environment.name`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Atari(_) => "atari",
            Self::Cartpole(_) => "cartpole",
            Self::Catch(_) => "catch",
            Self::Envpool(_) => "envpool",
            Self::Gridworld(_) => "gridworld",
            Self::Gymnasium(_) => "gymnasium",
            Self::MemoryChain(_) => "memory-chain",
            Self::Pendulum(_) => "pendulum",
            Self::PixelBreakout => "pixel-breakout",
            Self::PixelCatch => "pixel-catch",
        }
    }

    /// What serves it, where that is a process of its own.
    #[must_use]
    pub fn server(&self) -> Option<&ServerSettings> {
        match self {
            Self::Atari(Atari { server, .. })
            | Self::Envpool(EnvPool { server, .. })
            | Self::Gymnasium(Gymnasium { server, .. }) => Some(server),
            _ => None,
        }
    }

    /// Frames of a game in an environment step; 1 where that is all there is.
    #[must_use]
    pub fn frames_per_step(&self) -> usize {
        match self {
            Self::Atari(game) => game.processing.action_repeat,
            _ => 1,
        }
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        match self {
            Self::Cartpole(CartPole { time_limit }) | Self::Pendulum(Pendulum { time_limit }) => {
                problems.at_least_one("environment.time_limit", *time_limit);
            }
            Self::Catch(Catch { rows, columns }) => {
                if *rows < 2 {
                    problems
                        .add("environment.rows must be at least 2: the ball needs a row to fall");
                }
                problems.at_least_one("environment.columns", *columns);
            }
            Self::Gridworld(grid) => {
                problems.at_least_one("environment.time_limit", grid.time_limit);
                if let Err(error) = podracer_envs::GridMap::parse(&grid.layout.join("\n")) {
                    problems.add(format!("environment.layout: {error}"));
                }
            }
            Self::MemoryChain(MemoryChain { length }) => {
                problems.at_least_one("environment.length", *length);
            }
            Self::PixelBreakout | Self::PixelCatch => {}
            Self::Atari(atari) => check_atari(atari, problems),
            Self::Envpool(EnvPool { server, .. }) | Self::Gymnasium(Gymnasium { server, .. }) => {
                check_server(server, problems);
            }
        }
    }
}
