//! The returns of the last episodes.

use std::collections::VecDeque;

use anyhow::Result;
use podracer_dsl::Tree;
use podracer_runtime::{Array, Checkpoint};

use crate::anakin::TrainingMetrics;
use crate::training::{CallMetrics, FinishedEpisodes};

/// Names in a checkpoint for the groups' numbers of episodes and sums of returns.
const NAMES: [&str; 2] = ["recent_episodes", "recent_return_sums"];

/// The last episodes that ended, oldest first, in the groups that reported them: the fewest latest
/// groups that together have [`RecentReturns::WANTED`] episodes.
#[derive(Default)]
pub struct RecentReturns(VecDeque<FinishedEpisodes>);

impl RecentReturns {
    /// Least number of episodes in a mean return, if there are as many.
    const WANTED: u64 = 100;

    /// Restores the last episodes from a checkpoint; none at the start of a run.
    pub fn restored(from: Option<&Checkpoint>) -> Result<Self> {
        let Some(checkpoint) = from else {
            return Ok(RecentReturns::default());
        };
        let [episodes, return_sums] = NAMES.map(|name| checkpoint.array(name));
        let (episodes, return_sums) = (episodes?.to_vec()?, return_sums?.to_vec()?);
        let groups = episodes.into_iter().zip(return_sums);
        let group = |(episodes, return_sum)| FinishedEpisodes { episodes, return_sum };
        Ok(RecentReturns(groups.map(group).collect()))
    }

    /// Adds the last episodes to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        let (episodes, return_sums): (Vec<u64>, Vec<f64>) =
            (self.0.iter()).map(|group| (group.episodes, group.return_sum)).unzip();
        let arrays = [
            Array::from_slice([self.0.len()], &episodes)?,
            Array::from_slice([self.0.len()], &return_sums)?,
        ];
        checkpoint.insert("", NAMES.map(str::to_owned).into_iter().zip(arrays));
        Ok(())
    }

    /// The report of a call with these environment steps, iterations and metrics.
    ///
    /// # Errors
    /// A metric that is not f32.
    pub fn call<M: Tree>(
        &mut self,
        metrics: TrainingMetrics<M>,
        (env_steps, iterations): (u64, u64),
    ) -> Result<CallMetrics> {
        Ok(CallMetrics {
            env_steps,
            iterations,
            per_iteration: metrics.per_iteration()?,
            recent: self.with(metrics.finished()),
            episodes: metrics.episodes,
            reports: metrics.reports,
            ..CallMetrics::default()
        })
    }

    /// Adds the groups that ended since, and returns the sums over the groups that are kept.
    pub fn with(
        &mut self,
        finished: impl IntoIterator<Item = FinishedEpisodes>,
    ) -> FinishedEpisodes {
        self.0.extend(finished.into_iter().filter(|group| group.episodes > 0));
        let mut kept: u64 = self.0.iter().map(|group| group.episodes).sum();
        while let Some(oldest) = self.0.front()
            && kept - oldest.episodes >= Self::WANTED
        {
            kept -= oldest.episodes;
            self.0.pop_front();
        }
        self.0.iter().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(episodes: u64, return_sum: f64) -> FinishedEpisodes {
        FinishedEpisodes { episodes, return_sum }
    }

    #[test]
    fn the_latest_updates_count_that_hold_enough_episodes() {
        let mut recent = RecentReturns::default();
        assert_eq!(recent.with([]).mean_return(), None);
        assert_eq!(recent.with([finished(60, 60.0), finished(0, 0.0)]), finished(60, 60.0));
        // Without the first group there are 99, so it stays.
        assert_eq!(recent.with([finished(99, 0.0)]), finished(159, 60.0));
        assert_eq!(recent.with([finished(1, 5.0)]), finished(100, 5.0));
        let singles = recent.with((0..130).map(|number| finished(1, f64::from(number))));
        assert_eq!(singles, finished(100, (30..130).map(f64::from).sum()));
        assert_eq!(recent.with([finished(4000, 2.0)]), finished(4000, 2.0));
    }

    #[test]
    fn a_checkpoint_keeps_them() {
        let mut recent = RecentReturns::default();
        let before = recent.with([finished(60, 1.5), finished(70, 2.0)]);
        let mut checkpoint = Checkpoint { iterations: 1, ..Checkpoint::default() };
        recent.save(&mut checkpoint).unwrap();
        let mut restored = RecentReturns::restored(Some(&checkpoint)).unwrap();
        assert_eq!(restored.with([]), before);
    }
}
