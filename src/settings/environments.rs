//! The settings of each environment: `[environment]`, with `name` saying which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CartPole (Barto, Sutton and Anderson 1983; the `v1` rules).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct CartPole {
    /// Steps after which an episode is cut off.
    #[schemars(range(min = 1))]
    pub time_limit: usize,
}

/// Catch (bsuite, Osband et al. 2020).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Catch {
    /// Rows the ball falls through.
    #[schemars(range(min = 2))]
    pub rows: usize,
    /// Columns to catch it in.
    #[schemars(range(min = 1))]
    pub columns: usize,
}

/// A grid with walls and goals.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct GridWorld {
    /// One string per row: `#` a wall, `G` a goal, `.` a free cell.
    #[schemars(with = "Vec<String>")]
    pub layout: Layout,
    /// Steps after which an episode is cut off.
    #[schemars(range(min = 1))]
    pub time_limit: usize,
}

/// The memory chain (bsuite, Osband et al. 2020).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct MemoryChain {
    /// Steps from the cue to the answer.
    #[schemars(range(min = 1))]
    pub length: usize,
}

/// Pendulum (the `v1` rules).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Pendulum {
    /// Steps after which an episode is cut off.
    #[schemars(range(min = 1))]
    pub time_limit: usize,
}

impl Default for CartPole {
    fn default() -> Self {
        CartPole { time_limit: 500 }
    }
}

impl Default for Catch {
    fn default() -> Self {
        Catch { rows: 10, columns: 5 }
    }
}

impl Default for GridWorld {
    fn default() -> Self {
        let layout = Layout(picture(podracer_envs::GridWorld::default().map()));
        GridWorld { layout, time_limit: 100 }
    }
}

impl Default for MemoryChain {
    fn default() -> Self {
        MemoryChain { length: 10 }
    }
}

impl Default for Pendulum {
    fn default() -> Self {
        Pendulum { time_limit: 200 }
    }
}

/// No settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Nothing {}

/// The rows of a map.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Vec<String>")]
pub struct Layout(pub Vec<String>);

impl TryFrom<Vec<String>> for Layout {
    type Error = podracer_envs::MapError;

    fn try_from(rows: Vec<String>) -> Result<Self, Self::Error> {
        podracer_envs::GridMap::parse(&rows.join("\n")).map(|_| Layout(rows))
    }
}

/// The rows of a map, as a file would have them.
fn picture(map: &podracer_envs::GridMap) -> Vec<String> {
    let cell = |index| match index {
        _ if map.is_wall(index) => '#',
        _ if map.is_goal(index) => 'G',
        _ => '.',
    };
    let row = |row: usize| (row * map.columns()..(row + 1) * map.columns()).map(cell);
    (0..map.rows()).map(|number| row(number).collect()).collect()
}
