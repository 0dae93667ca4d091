//! `rows.toml`: the reference of each experiment.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::program::Changes;
use crate::statistics::MOST_VALUES;

/// Greatest number of seeds of a row.
pub const MOST_SEEDS: u64 = MOST_VALUES as u64;

/// A row of the learning table: an experiment and its reference.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the row; the experiment's where the file has none.
    #[serde(default)]
    pub name: String,
    /// Name of the built-in experiment, or path of another experiment's file.
    pub experiment: String,
    /// Settings of the experiment that the row changes.
    #[serde(default)]
    pub set: Changes,
    /// Settings that the experiment has changed since the row's records were made, with their
    /// values at that time; empty if the records have the present settings.
    #[serde(default)]
    pub trained_with: Changes,
    /// Change of the experiment's program since the row's records were made, for records without a hash of their program; empty if none is
    /// known.
    #[serde(default)]
    pub other_program: String,
    /// Number of seeds, which are 0, 1, ..
    #[serde(default = "five")]
    pub seeds: u64,
    /// Episodes of each of the two evaluations of a trained agent.
    #[serde(default = "hundred")]
    pub episodes: u64,
    /// The return to reach; absent if none was published.
    pub reference: Option<f64>,
    /// Half of the width of the reference's interval, where its source gives one.
    pub plus_minus: Option<f64>,
    /// Environment steps that the reference was trained for, where they differ from the experiment's.
    pub reference_steps: Option<u64>,
    /// The policy with the return that is compared with the reference.
    #[serde(default)]
    pub policy: Policy,
    /// Source of the reference, or the reason why there is none.
    pub source: String,
    /// A remark on the row for the page.
    #[serde(default)]
    pub note: String,
    /// Other settings that were tried, and what came of them: of rows that are below their reference.
    #[serde(default)]
    pub tried: String,
    /// Set of Python packages that the environment needs, as `podracer envs install` names it; empty for none.
    #[serde(default)]
    pub packages: String,
    /// File that a training needs and that is no part of the tree; empty for none.
    #[serde(default)]
    pub file: String,
    /// Fixed opponent of the evaluations, as `podracer eval --against` names it; empty for none. A return is 1 for a game that is won,
    /// 0 for a draw and -1 for a loss then.
    #[serde(default)]
    pub against: String,
    /// Time of one seed's training, in words, if it is more than some minutes.
    #[serde(default)]
    pub duration: String,
}

/// Ways to choose actions in an evaluation.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Each action is the agent's best.
    #[default]
    Greedy,
    /// Actions are drawn from the policy, as in training.
    Sampled,
}

impl Policy {
    /// The policy in a word.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Greedy => "greedy",
            Policy::Sampled => "sampled",
        }
    }
}

fn five() -> u64 {
    5
}

fn hundred() -> u64 {
    100
}

impl Row {
    /// The rows, in the order of the file.
    ///
    /// # Errors
    /// A file that is not such a table, with what is wrong.
    pub fn all() -> Result<Vec<Row>> {
        Row::parse(include_str!("../rows.toml")).context("benches/learning/rows.toml")
    }

    fn parse(text: &str) -> Result<Vec<Row>> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            row: Vec<Row>,
        }
        let File { row: mut rows } = toml::from_str(text)?;
        for row in rows.iter_mut().filter(|row| row.experiment.ends_with(".toml")) {
            row.experiment = format!("{}/{}", env!("CARGO_MANIFEST_DIR"), row.experiment);
        }
        for row in rows.iter_mut().filter(|row| row.name.is_empty()) {
            row.name.clone_from(&row.experiment);
        }
        for (index, row) in rows.iter().enumerate() {
            let name = &row.name;
            ensure!(
                (1..=MOST_SEEDS).contains(&row.seeds),
                "{name}: seeds must be 1 to {MOST_SEEDS} and is {}",
                row.seeds
            );
            ensure!(row.episodes > 0, "{name}: episodes must be at least 1");
            ensure!(row.plus_minus.is_none_or(|x| x >= 0.0), "{name}: plus_minus is negative");
            ensure!(!row.source.is_empty(), "{name}: source says where the reference is from");
            ensure!(
                row.set.is_empty() || *name != row.experiment,
                "{name}: a row that changes settings has a name of its own"
            );
            ensure!(
                row.reference_steps.is_none() || row.reference.is_some(),
                "{name}: reference_steps are those of a reference"
            );
            let twice = rows[..index].iter().any(|other| other.name == *name);
            ensure!(!twice, "{name} has two rows");
        }
        Ok(rows)
    }

    /// True if the row's program can be emitted on every machine: the row needs no Python packages and no file.
    pub fn can_be_emitted(&self) -> bool {
        self.packages.is_empty() && self.file.is_empty()
    }

    /// The lower end of the reference's interval; the reference itself where its source gives no interval, and `None` where
    /// there is no reference.
    pub fn lower_end(&self) -> Option<f64> {
        Some(self.reference? - self.plus_minus.unwrap_or(0.0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Experiments that train no agent with returns of episodes.
    const WITHOUT_RETURNS: [&str; 1] = ["lpg-gridworlds"];

    /// Names of the built-in experiments in a folder below `experiments`.
    fn experiments(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(folder);
        let files = fs::read_dir(folder).expect("the folder is there");
        files
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn the_unverified_experiments_are_those_without_a_record() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let records = fs::read_to_string(docs.join("learning.jsonl")).expect("there are records");
        let recorded = |name: &String| records.contains(&format!("\"experiment\":\"{name}\""));
        let (unverified, verified) = (experiments("unverified"), experiments(""));
        let wrong: Vec<_> = unverified.iter().filter(|name| recorded(name)).collect();
        assert!(wrong.is_empty(), "move out of experiments/unverified: {wrong:?}");
        let known = |name: &&String| recorded(name) || WITHOUT_RETURNS.contains(&name.as_str());
        let wrong: Vec<_> = verified.iter().filter(|name| !known(name)).collect();
        assert!(wrong.is_empty(), "move to experiments/unverified: {wrong:?}");
    }

    #[test]
    fn every_built_in_experiment_has_a_row() {
        let mut experiments = experiments("");
        experiments.extend(self::experiments("unverified"));
        let rows = Row::all().expect("the table reads");
        let rows = rows.into_iter().map(|row| row.experiment);
        let rows = rows.filter(|experiment| !experiment.ends_with(".toml"));
        let rows = rows.chain(WITHOUT_RETURNS.map(str::to_owned)).collect();
        assert_eq!(
            experiments, rows,
            "experiments on the left, benches/learning/rows.toml on the right"
        );
    }

    #[test]
    fn a_wrong_row_says_what_is_wrong() {
        let row = "[[row]]\nexperiment = 'a'\nreference = 1.0\nsource = 'b'\n";
        let right = Row::parse(row).expect("it is right");
        assert_eq!((right[0].seeds, right[0].name.as_str()), (5, "a"));
        for (text, expected) in [
            (format!("{row}seeds = 11"), "a: seeds must be 1 to 10 and is 11"),
            (format!("{row}episodes = 0"), "a: episodes must be at least 1"),
            (format!("{row}plus_minus = -1.0"), "a: plus_minus is negative"),
            (format!("{row}sauce = 'c'"), "unknown field `sauce`"),
            (format!("{row}set = {{ 'train.steps' = 1 }}"), "a: a row that changes settings has"),
            (
                "[[row]]\nexperiment = 'a'\nreference_steps = 1\nsource = 'b'".to_owned(),
                "a: reference_steps are those of a reference",
            ),
            (format!("{row}{row}"), "a has two rows"),
            (
                "[[row]]\nexperiment = 'a'\nreference = 1.0\nsource = ''".to_owned(),
                "a: source says",
            ),
        ] {
            let error = Row::parse(&text).expect_err("it is wrong").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
