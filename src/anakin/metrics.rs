//! Metrics of the iterations of a call, as the host reads them.

use podracer_dsl::prelude::Tensor;
use podracer_dsl::{Report, Tree};
use podracer_rl::anakin::Episodes;
use podracer_runtime::{ArrayError, Host, RuntimeError, metric_name};

use crate::training::FinishedEpisodes;

/// Metrics of the iterations of one call.
#[derive(Clone, Debug)]
pub struct TrainingMetrics<M: Tree> {
    /// The agent's metrics, each f32 `[iterations_per_call]`.
    pub agent: Host<M>,
    /// The mean return of the episodes that ended in this call; NaN if no episode ended.
    pub episode_return: f64,
    /// The mean length of these episodes, in steps; NaN if no episode ended.
    pub episode_length: f64,
    /// The number of episodes that ended in this call.
    pub episodes: u64,
    /// Failed checks and prints of environment and agent ([`check`](podracer_dsl::check),
    /// [`debug_print`](podracer_dsl::debug_print)), in the order of their lines.
    pub reports: Vec<Report>,
    series: EpisodeSeries,
}

impl<M: Tree> TrainingMetrics<M> {
    /// The metrics of the iterations of one call.
    pub(crate) fn read(
        agent: Host<M>,
        episodes: &Host<Episodes>,
        iterations: usize,
        reports: Vec<Report>,
    ) -> Result<Self, RuntimeError> {
        let series = EpisodeSeries::read(episodes, iterations)?;
        let all: FinishedEpisodes = series.finished.iter().copied().sum();
        Ok(TrainingMetrics {
            agent,
            episode_return: all.return_sum / all.episodes as f64,
            episode_length: series.lengths.iter().sum::<f64>() / all.episodes as f64,
            episodes: all.episodes,
            reports,
            series,
        })
    }

    /// Named series with one value per iteration: the agent's metrics, and mean return and length
    /// of the episodes that ended in each iteration (`episode_return`, `episode_length`; NaN if no
    /// episode ended). If the environment has a success, also their mean success
    /// (`episode_success`).
    ///
    /// # Errors
    /// [`ArrayError::Type`] if a metric of the agent is not f32.
    pub fn per_iteration(&self) -> Result<Vec<(String, Vec<f32>)>, ArrayError> {
        Ok([self.agent_metrics()?, self.series.per_iteration()].concat())
    }

    /// The agent's metrics of every iteration, by name.
    ///
    /// # Errors
    /// [`ArrayError::Type`] if a metric is not f32.
    pub(crate) fn agent_metrics(&self) -> Result<Vec<(String, Vec<f32>)>, ArrayError> {
        let mut series = Vec::new();
        self.agent.visit(|path, leaf| {
            series.push(leaf.to_vec().map(|values| (metric_name(path), values)))
        });
        series.into_iter().collect()
    }

    /// The number of episodes that ended in each iteration, with the sum of their returns.
    pub fn finished(&self) -> impl Iterator<Item = FinishedEpisodes> {
        self.series.finished.iter().copied()
    }
}

/// The episodes of a call that ended in each iteration, on all devices.
#[derive(Clone, Debug)]
struct EpisodeSeries {
    finished: Vec<FinishedEpisodes>,
    /// Sums of the episodes' lengths, in steps.
    lengths: Vec<f64>,
    /// Sums of the episodes' successes; `None` for an environment without success.
    successes: Option<Vec<f64>>,
}

impl EpisodeSeries {
    /// Reads the episodes from all devices. The devices' parts are concatenated, each with one
    /// entry per iteration.
    fn read(episodes: &Host<Episodes>, iterations: usize) -> Result<Self, RuntimeError> {
        let counts: Vec<i32> = episodes.count.to_vec()?;
        let returns: Vec<f32> = episodes.return_sum.to_vec()?;
        let of_iteration = |iteration| (iteration..counts.len()).step_by(iterations);
        let finished = |i: usize| FinishedEpisodes {
            episodes: counts[i] as u64,
            return_sum: f64::from(returns[i]),
        };
        let sums = |leaf: &Host<Tensor>| -> Vec<f64> {
            let values = leaf.to_f64();
            (0..iterations)
                .map(|iteration| of_iteration(iteration).map(|i| values[i]).sum())
                .collect()
        };
        Ok(EpisodeSeries {
            finished: (0..iterations)
                .map(|iteration| of_iteration(iteration).map(finished).sum())
                .collect(),
            lengths: sums(&episodes.length_sum),
            successes: episodes.success_sum.as_ref().map(sums),
        })
    }

    /// Mean return, length and success of the episodes that ended in each iteration.
    fn per_iteration(&self) -> Vec<(String, Vec<f32>)> {
        let mean =
            |(sum, finished): (f64, &FinishedEpisodes)| (sum / finished.episodes as f64) as f32;
        let returns =
            self.finished.iter().map(|finished| mean((finished.return_sum, finished))).collect();
        let means = |sums: &Vec<f64>| sums.iter().copied().zip(&self.finished).map(mean).collect();
        let mut series = vec![
            ("episode_return".to_owned(), returns),
            ("episode_length".to_owned(), means(&self.lengths)),
        ];
        series.extend(
            self.successes.as_ref().map(|sums| ("episode_success".to_owned(), means(sums))),
        );
        series
    }
}
