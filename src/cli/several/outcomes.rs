//! The results of several runs: their means by settings, and the table.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::{Failed, Several, Trained};
use crate::cli::console::Console;
use crate::cli::session::outcome::Outcome;
use crate::files::write_whole;
use crate::format::{aligned, count, plural};
use crate::statistics::{Estimate, estimate, interquartile_mean, mean};

/// The file in a population's folder with the results of its runs.
const POPULATION: &str = "population.json";

/// The result of all runs, which `--json` prints.
#[derive(Serialize)]
pub(crate) struct Outcomes {
    pub(crate) experiment: String,
    /// Runs by their settings, the best first.
    pub(crate) settings: Vec<Group>,
    /// The runs that have finished or were stopped, in order.
    pub(crate) runs: Vec<Outcome>,
    pub(crate) failed: Vec<Failed>,
    pub(crate) compile_seconds: f64,
    pub(crate) run_seconds: f64,
    /// Joint speed of the runs, without the first call if there are others; for runs one by one,
    /// the mean of their speeds.
    pub(crate) env_steps_per_second: Option<f64>,
    pub(crate) interrupted: bool,
    pub(crate) run_dir: String,
}

/// Runs that differ only in their seeds.
#[derive(Serialize)]
pub(crate) struct Group {
    /// The settings that distinguish them from other groups.
    pub(crate) settings: BTreeMap<String, String>,
    /// Runs with a mean return.
    pub(crate) runs: usize,
    /// The mean of the runs' mean returns, with the 95% interval of the bootstrap.
    pub(crate) mean_return: Option<Estimate>,
    /// The mean of the runs without the lowest and the highest quarter, also with an interval.
    pub(crate) interquartile_mean_return: Option<Estimate>,
}

impl Group {
    fn rank(&self) -> f64 {
        self.mean_return.map_or(f64::NEG_INFINITY, |estimate| estimate.value)
    }
}

impl Outcomes {
    /// The results of runs that were trained.
    pub(crate) fn of(several: &Several<'_>, folder: &Path, trained: Trained) -> Self {
        let Trained { finished, failed, together, interrupted } = trained;
        let mut groups: Vec<(&[String], Vec<f64>)> = Vec::new();
        for (run, outcome) in &finished {
            let chosen = &several.runs[*run].chosen;
            let known = groups.iter().position(|(known, _)| known == chosen);
            let known = known.unwrap_or_else(|| {
                groups.push((chosen, Vec::new()));
                groups.len() - 1
            });
            groups[known].1.extend(outcome.mean_return);
        }
        let group = |(chosen, returns): (&[String], Vec<f64>)| Group {
            settings: several.keys.iter().cloned().zip(chosen.to_vec()).collect(),
            runs: returns.len(),
            mean_return: estimate(&returns, mean),
            interquartile_mean_return: estimate(&returns, interquartile_mean),
        };
        let mut settings: Vec<Group> = groups.into_iter().map(group).collect();
        settings.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
        let experiment = several.runs.first().map(|run| run.settings.experiment.clone());
        let runs: Vec<Outcome> = finished.into_iter().map(|(_, outcome)| outcome).collect();
        let speeds: Option<Vec<f64>> = runs.iter().map(|run| run.env_steps_per_second).collect();
        Outcomes {
            experiment: experiment.unwrap_or_default(),
            settings,
            compile_seconds: together.map_or_else(
                || runs.iter().map(|run| run.compile_seconds).sum(),
                |together| together.compile_seconds,
            ),
            run_seconds: together.map_or_else(
                || runs.iter().map(|run| run.run_seconds).sum(),
                |together| together.run_seconds,
            ),
            env_steps_per_second: match together {
                Some(together) => together.env_steps_per_second,
                None => speeds.and_then(|speeds| mean(&speeds)),
            },
            interrupted,
            runs,
            failed,
            run_dir: folder.display().to_string(),
        }
    }

    /// Writes and prints the results.
    pub(crate) fn tell(&self, json: bool, console: &mut Console<'_>) -> Result<()> {
        let line = serde_json::to_string(self)? + "\n";
        write_whole(&Path::new(&self.run_dir).join(POPULATION), line.as_bytes())?;
        console.print(&if json { line } else { self.table() })
    }

    /// The runs by their settings, or by their seeds if only the seeds differ, the best first, and
    /// their means.
    fn table(&self) -> String {
        let shown = |estimate: &Option<Estimate>| {
            estimate.map_or_else(|| "-".to_owned(), |estimate| estimate.to_string())
        };
        let mut rows = Vec::new();
        let mut means = String::new();
        match &self.settings[..] {
            [] => {}
            [all] => {
                let mut ranked: Vec<&Outcome> = self.runs.iter().collect();
                let rank = |run: &Outcome| run.mean_return.unwrap_or(f64::NEG_INFINITY);
                ranked.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
                rows.push(["seed", "mean return", "run directory"].map(str::to_owned).to_vec());
                let mean = |run: &Outcome| {
                    run.mean_return.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"))
                };
                let row =
                    |run: &&Outcome| vec![run.seed.to_string(), mean(run), run.run_dir.clone()];
                rows.extend(ranked.iter().map(row));
                means = format!(
                    "mean (95% interval): {}\ninterquartile mean: {}\n",
                    shown(&all.mean_return),
                    shown(&all.interquartile_mean_return)
                );
            }
            [first, ..] => {
                let names = first.settings.keys().cloned();
                let results = ["runs", "mean return (95%)", "interquartile mean (95%)"];
                rows.push(names.chain(results.map(str::to_owned)).collect());
                rows.extend(self.settings.iter().map(|group| {
                    let results = [
                        group.runs.to_string(),
                        shown(&group.mean_return),
                        shown(&group.interquartile_mean_return),
                    ];
                    group.settings.values().cloned().chain(results).collect()
                }));
            }
        }
        let mut text = aligned(&rows) + &means;
        for Failed { run, problem } in &self.failed {
            text += &format!("failed: {run}: {problem}\n");
        }
        let env_steps: u64 = self.runs.iter().map(|run| run.env_steps).sum();
        text + &format!(
            "{} of {}: {} steps in {:.2} s, {} steps/s; compiled in {:.2} s\nrun directories: {}\n",
            plural(self.runs.len(), "run"),
            self.experiment,
            count(env_steps as f64),
            self.run_seconds,
            self.env_steps_per_second.map_or_else(|| "-".to_owned(), count),
            self.compile_seconds,
            self.run_dir,
        )
    }
}
