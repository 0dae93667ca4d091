//! The distributions of tasks.

use super::recipe::{Recipe, Values, Walls};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Distributions of tasks. The first ten are named after LPG's worlds, and draw only cells; the
/// worlds with the prefix `random` draw them in each episode. The other distributions draw
/// everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// 11 by 11 cells, 500 steps; two objects of reward 1 that soon appear again, two of reward -1.
    Dense,
    /// 13 by 13 cells, 50 steps; one object of reward 1 and one of -1, both of which terminate.
    Sparse,
    /// 11 by 11 cells, 1,000 steps; two objects of reward 1 that seldom appear again, two of -1 that may terminate.
    Long,
    /// Two rooms in 9 by 9 cells, 2,000 steps; two objects of reward 1 and three of -1, which mostly terminate.
    Longer,
    /// Four rooms in 11 by 11 cells, 2,000 steps; four objects of reward 1 that seldom appear again.
    LongDense,
    /// As `dense`, with other cells in each episode.
    RandomDense,
    /// As `long`, with other cells in each episode.
    RandomLong,
    /// 7 by 7 cells with two walls, 500 steps; two objects of reward 1, two of -1 that may terminate.
    RandomSmall,
    /// 7 by 7 cells, 50 steps; one object of reward 1 and two of -1, all of which terminate.
    RandomSparse,
    /// 11 by 11 cells, 2,000 steps; one object of reward 1 that appears again at once, elsewhere.
    RandomVeryDense,
    /// Up to 6 by 6 cells with up to 7 walls, 20 to 100 steps, one to three objects; tabular.
    Small,
    /// Up to 8 by 8 cells with up to 10 walls, 100 to 250 steps, two to four objects; tabular.
    Medium,
    /// Up to 10 by 10 cells with up to 15 walls, 250 to 750 steps, two to five objects; tabular.
    Large,
    /// 4 by 4 to 10 by 10 cells with up to 15 walls, 20 to 750 steps, one to five objects; tabular.
    All,
    /// As `all`, with other cells in each episode.
    RandomAll,
}

/// A recipe with tasks that differ only in their cells.
const fn named(
    tabular: bool,
    size: usize,
    time_limit: usize,
    kinds: &'static [usize],
    [reward, terminate, respawn]: [&'static [f64]; 3],
    walls: Walls,
) -> Recipe {
    Recipe {
        tabular,
        sizes: (size, size),
        time_limits: (time_limit, time_limit),
        kinds,
        objects: (kinds.len(), kinds.len()),
        reward: Values::Fixed(reward),
        terminate: Values::Fixed(terminate),
        respawn: Values::Fixed(respawn),
        walls,
    }
}

/// A recipe with tasks that are drawn completely.
const fn drawn(
    tabular: bool,
    sizes: (usize, usize),
    time_limits: (usize, usize),
    kinds: &'static [usize],
    least_objects: usize,
    walls: usize,
) -> Recipe {
    Recipe {
        tabular,
        sizes,
        time_limits,
        kinds,
        objects: (least_objects, kinds.len()),
        reward: Values::Rewards,
        terminate: Values::LogUniform(1e-2, 1.0),
        respawn: Values::LogUniform(1e-3, 1e-1),
        walls: Walls::Random(walls, sizes.1),
    }
}

impl Distribution {
    pub(super) fn recipe(self) -> Recipe {
        const DENSE: [&[f64]; 3] = [&[1.0, -1.0, -1.0], &[0.0, 0.5, 0.0], &[0.05, 0.1, 0.5]];
        const LONG: [&[f64]; 3] = [&[1.0, -1.0], &[0.0, 0.5], &[0.01, 1.0]];
        use Distribution as D;
        match self {
            D::Dense => named(true, 11, 500, &[0, 0, 1, 2], DENSE, Walls::None),
            D::RandomDense => named(false, 11, 500, &[0, 0, 1, 2], DENSE, Walls::None),
            D::Sparse => {
                let values: [&[f64]; 3] = [&[1.0, -1.0], &[1.0, 1.0], &[0.0, 0.0]];
                named(true, 13, 50, &[0, 1], values, Walls::None)
            }
            D::Long => named(true, 11, 1000, &[0, 0, 1, 1], LONG, Walls::None),
            D::RandomLong => named(false, 11, 1000, &[0, 0, 1, 1], LONG, Walls::None),
            D::Longer => {
                let values: [&[f64]; 3] = [&[1.0, -1.0], &[0.1, 0.8], &[0.01, 1.0]];
                let walls = Walls::At(|row, column| column == 4 && row != 1 && row != 7);
                named(true, 9, 2000, &[0, 0, 1, 1, 1], values, walls)
            }
            D::LongDense => {
                let values: [&[f64]; 3] = [&[1.0], &[0.0], &[0.005]];
                let walls = Walls::At(|row, column| {
                    let upright = column == 5 && row != 0 && row != 7;
                    upright || (row == 4 && column != 2 && column != 8)
                });
                named(true, 11, 2000, &[0; 4], values, walls)
            }
            D::RandomSmall => {
                let values: [&[f64]; 3] = [&[1.0, -1.0], &[0.0, 0.5], &[0.05, 0.1]];
                let walls = Walls::At(|row, column| [(1, 2), (3, 4)].contains(&(row, column)));
                named(false, 7, 500, &[0, 0, 1, 1], values, walls)
            }
            D::RandomSparse => {
                let values: [&[f64]; 3] = [&[1.0, -1.0], &[1.0, 1.0], &[1.0, 1.0]];
                named(false, 7, 50, &[0, 1, 1], values, Walls::None)
            }
            D::RandomVeryDense => {
                let values: [&[f64]; 3] = [&[1.0], &[0.0], &[1.0]];
                named(false, 11, 2000, &[0], values, Walls::None)
            }
            D::Small => drawn(true, (4, 6), (20, 100), &[0, 1, 2], 1, 7),
            D::Medium => drawn(true, (6, 8), (100, 250), &[0, 1, 2, 3], 2, 10),
            D::Large => drawn(true, (8, 10), (250, 750), &[0, 1, 2, 3, 4], 2, 15),
            D::All => drawn(true, (4, 10), (20, 750), &[0, 1, 2, 3, 4], 1, 15),
            D::RandomAll => drawn(false, (4, 10), (20, 750), &[0, 1, 2, 3, 4], 1, 15),
        }
    }
}
