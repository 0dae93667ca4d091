//! `podracer runs`: lists, compares, exports and removes runs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};

use super::console::Console;
use super::named_runs::{by_seed, compared, folders_of, has_changed, of_kinds, overview, repeated};
use crate::format::{aligned, count, plural};
use crate::program_name::program_name;
use crate::run_directory::{RunOverview, RunState, runs_in};
use crate::settings::UsageError;
use crate::statistics::{Statistic, estimate, interquartile_mean, mean};
use crate::tables::{self, Written};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct RunsArguments {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: ListArguments,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List the runs in a folder
    List(ListArguments),
    /// Print the settings that differ between runs, and their results, best mean return first;
    /// seeds of the same settings form one row
    Compare {
        /// The run directories; a folder of runs stands for its runs, and files are skipped
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Print a row for each run
        #[arg(long)]
        each: bool,
    },
    /// Write the metrics of runs for other programs
    Export(ExportArguments),
    /// Remove runs: their settings, metrics, checkpoints and parameters
    Remove {
        /// The run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Remove them; without it, only print the runs that would be removed
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
struct ListArguments {
    /// The folder of the runs
    #[arg(long = "in", value_name = "FOLDER", default_value = "runs")]
    folder: PathBuf,
    /// Print one JSON list
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct ExportArguments {
    /// The run directories; a folder of runs stands for its runs, and files are skipped
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The kind of file or folder
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    to: ExportFormat,
    /// The file or folder to write [default: metrics.csv or wandb]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A file with a row for each line of the metrics
    Csv,
    /// A folder for each run, which `wandb sync` uploads
    Wandb,
}

pub(super) fn runs(args: &RunsArguments, console: &mut Console<'_>) -> Result<u8> {
    match &args.command {
        None => list(&args.list, console),
        Some(RunsCommand::List(args)) => list(args, console),
        Some(RunsCommand::Compare { runs, each }) => compare(runs, *each, console),
        Some(RunsCommand::Export(args)) => export(args, console),
        Some(RunsCommand::Remove { runs, yes }) => remove(runs, *yes, console),
    }
}

fn list(args: &ListArguments, console: &mut Console<'_>) -> Result<u8> {
    let runs = runs_in(&args.folder)?;
    if args.json {
        console.print(&(serde_json::to_string(&runs)? + "\n"))?;
        return Ok(0);
    }
    if runs.is_empty() {
        console.say(&format!("there is no run in `{}`", args.folder.display()));
        return Ok(0);
    }
    let mut table = vec![
        ["run", "experiment", "seed", "steps", "mean return", "state"].map(str::to_owned).to_vec(),
    ];
    for one in &runs {
        table.push(vec![
            one.run.display().to_string(),
            one.experiment.clone(),
            one.seed.to_string(),
            count(one.env_steps as f64),
            two_decimals(one.mean_return),
            one.state.name().to_owned(),
        ]);
    }
    console.print(&aligned(&table))?;
    Ok(0)
}

fn compare(runs: &[PathBuf], each: bool, console: &mut Console<'_>) -> Result<u8> {
    let folders = folders_of(runs, console)?;
    let runs = folders.iter().map(|run| overview(run)).collect::<Result<Vec<_>>>()?;
    // Runs that form a row, and the settings of the row, taken from its first run.
    let mut rows: Vec<Vec<&RunOverview>> = Vec::new();
    for run in &runs {
        let apart = each || has_changed(run);
        match rows.iter_mut().find(|row| !apart && row[0].settings == run.settings) {
            Some(row) => row.push(run),
            None => rows.push(vec![run]),
        }
    }
    for row in &mut rows {
        let (kept, repeats) = by_seed(row.iter().copied().enumerate());
        repeats.iter().for_each(|(one, kept)| console.warn(&repeated(row[*one], row[*kept])));
        *row = kept.into_iter().map(|kept| row[kept]).collect();
    }
    // Rows without a mean return come last. Equal rows stay in the order of the arguments.
    let best = |row: &[&RunOverview]| mean(&mean_returns(row)).unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|one, other| best(other).total_cmp(&best(one)));

    if runs.iter().any(has_changed) {
        console.say("note: population-based training changed the settings of runs: `0.1 -> 0.0056` is the value at the beginning and at the end");
    }
    let keys = compared(&runs.iter().collect::<Vec<_>>());
    let mut head: Vec<String> = if each { vec!["run".to_owned()] } else { Vec::new() };
    head.push("experiment".to_owned());
    head.extend(keys.iter().cloned());
    head.push(if each { "seed" } else { "runs" }.to_owned());
    // A single run has one mean, without an interval.
    let heads = if each { &["mean return", "steps", "steps/s", "state"][..] } else { &RESULTS };
    head.extend(heads.iter().map(|&head| head.to_owned()));
    let mut table = vec![head];
    for row in rows {
        let first = row[0];
        let setting = |key: &String| first.settings.get(key).map_or("-", String::as_str);
        let mut cells = if each { vec![first.run.display().to_string()] } else { Vec::new() };
        cells.push(first.experiment.clone());
        cells.extend(keys.iter().map(|key| shortened(setting(key))));
        cells.push(if each { first.seed.to_string() } else { row.len().to_string() });
        let [mean, interquartile, others @ ..] = results(&row);
        cells.push(mean);
        cells.extend((!each).then_some(interquartile));
        cells.extend(others);
        table.push(cells);
    }
    console.print(&aligned(&table))?;
    of_kinds(&runs.iter().collect::<Vec<_>>()).iter().for_each(|kind| console.say(kind));
    Ok(0)
}

/// The column heads of [`results`].
pub(super) const RESULTS: [&str; 5] =
    ["mean return (95%)", "interquartile mean (95%)", "steps", "steps/s", "state"];

/// The results of runs with the same settings: their mean and interquartile mean returns with their
/// intervals, steps, speed and state.
pub(super) fn results(row: &[&RunOverview]) -> [String; 5] {
    let returns = mean_returns(row);
    let mean_of = |number: fn(&RunOverview) -> Option<f64>| {
        let numbers: Vec<f64> = row.iter().filter_map(|run| number(run)).collect();
        mean(&numbers).map_or_else(|| "-".to_owned(), count)
    };
    [
        estimated(&returns, mean),
        estimated(&returns, interquartile_mean),
        mean_of(|run| Some(run.env_steps as f64)),
        mean_of(|run| run.env_steps_per_second),
        states(row),
    ]
}

/// Greatest number of letters of a setting in a table.
const WIDEST: usize = 24;

/// A setting, shortened for the table.
fn shortened(text: &str) -> String {
    match text.chars().count() {
        0..=WIDEST => text.to_owned(),
        _ => text.chars().take(WIDEST - 1).chain(['…']).collect(),
    }
}

/// The mean returns of the runs that have one.
pub(super) fn mean_returns(row: &[&RunOverview]) -> Vec<f64> {
    row.iter().filter_map(|run| run.mean_return).collect()
}

/// The state of runs: `finished`, or `2 finished, 1 running` if they differ.
fn states(row: &[&RunOverview]) -> String {
    let all = [RunState::Finished, RunState::Running, RunState::Stopped, RunState::Unfinished];
    let counted = all.map(|state| (state, row.iter().filter(|run| run.state == state).count()));
    let there: Vec<_> = counted.into_iter().filter(|(_, number)| *number > 0).collect();
    match there[..] {
        [(state, _)] => state.name().to_owned(),
        _ => {
            let parts = there.iter().map(|(state, number)| format!("{number} {}", state.name()));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

fn export(args: &ExportArguments, console: &mut Console<'_>) -> Result<u8> {
    type Write = fn(&[PathBuf], &Path) -> Result<Vec<Written>>;
    let (name, write): (_, Write) = match args.to {
        ExportFormat::Csv => ("metrics.csv", tables::csv),
        ExportFormat::Wandb => ("wandb", tables::wandb),
    };
    let runs = folders_of(&args.runs, console)?;
    for Written { path, advice } in write(&runs, args.output.as_deref().unwrap_or(Path::new(name)))?
    {
        console.print(&format!("{}\n", path.display()))?;
        if let Some(advice) = advice {
            console.say(&format!("`{advice}` uploads it"));
        }
    }
    Ok(0)
}

fn remove(runs: &[PathBuf], yes: bool, console: &mut Console<'_>) -> Result<u8> {
    // All of them are read before the first is removed.
    let runs = runs.iter().map(|run| RunOverview::read(run)).collect::<Result<Vec<_>>>()?;
    if let Some(running) = runs.iter().find(|run| run.state == RunState::Running) {
        let run = running.run.display();
        let problem = format!("`{run}` is not removed: another process trains it");
        return Err(UsageError::new(problem).into());
    }
    if !yes {
        let names: Vec<String> =
            runs.iter().map(|run| format!("  {}", run.run.display())).collect();
        return Err(UsageError::new(format!(
            "nothing is removed yet: `{} runs remove --yes` removes {}:\n{}",
            program_name(),
            plural(runs.len(), "run"),
            names.join("\n")
        ))
        .into());
    }
    for one in &runs {
        let left = one.remove()?;
        console.print(&format!("removed {}\n", one.run.display()))?;
        for path in left {
            console.say(&format!("`{}` is no file of a run, and stays", path.display()));
        }
    }
    Ok(0)
}

/// A statistic of returns, with its interval if there are several.
fn estimated(returns: &[f64], statistic: Statistic) -> String {
    estimate(returns, statistic).map_or_else(|| "-".to_owned(), |estimate| estimate.to_string())
}

/// A number with two decimals, or `-`.
pub(super) fn two_decimals(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File};

    use super::*;
    use crate::cli::fake::{podracer, short, with};

    #[test]
    fn runs_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let runs = ["a", "b", "c"].map(|name| folder.path().join(name));
        podracer(&short(&runs[0], &[]));
        podracer(&short(&runs[1], &["--seed=3", "--set=agent.clip=0.1"]));
        with(&short(&runs[2], &[]), Some(3), None);
        // A locked run is being trained.
        let locked = folder.path().join("d");
        with(&short(&locked, &[]), None, Some(2));
        fs::create_dir(folder.path().join("no run")).unwrap();
        let file = File::options().append(true).open(locked.join("metrics.jsonl")).unwrap();
        file.lock().unwrap();
        let folder = folder.path().to_str().unwrap();
        let printed = podracer(&["runs", "--in", folder]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let lines: Vec<Vec<&str>> = printed
            .out
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().skip(1).collect())
            .collect();
        let expected = [
            ["cartpole-ppo", "0", "41.0k", "5.00", "finished"],
            ["cartpole-ppo", "3", "41.0k", "5.00", "finished"],
            ["cartpole-ppo", "0", "16.4k", "2.00", "unfinished"],
            ["cartpole-ppo", "0", "16.4k", "2.00", "running"],
        ];
        assert_eq!(lines, expected, "{}", printed.out);
        let listed = podracer(&["runs", "list", "--in", folder, "--json"]).json();
        assert_eq!(listed[1]["seed"], 3);
    }

    /// The words of each line, without the steps per second.
    fn compared(runs: &[String], more: &[&str]) -> Vec<String> {
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        let printed = podracer(&[&["runs", "compare"][..], &runs, more].concat());
        assert_eq!(printed.code, 0, "{}", printed.err);
        let lines: Vec<&str> = printed.out.lines().collect();
        let speed = lines[0].find("steps/s").unwrap();
        let words = |line: &&str| {
            let (before, after) = line.split_at(speed);
            let after = after.split_whitespace().skip(1);
            before.split_whitespace().chain(after).collect::<Vec<_>>().join(" ")
        };
        lines.iter().map(words).collect()
    }

    /// A comparison has one row per setting.
    #[test]
    fn compared_runs_are_a_row_for_each_setting() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str, more: &[&str]| {
            let path = folder.path().join(name);
            let path = path.to_str().unwrap();
            let train = ["train", "cartpole-ppo", "--run-dir", path];
            assert_eq!(podracer(&[&train[..], more].concat()).code, 0);
            path.to_owned()
        };
        // The return of the fake training is the number of its calls.
        let runs = [
            run("a", &["--set=agent.clip=0.1", "--steps=20000"]),
            run("b", &["--set=agent.clip=0.3", "--steps=40000"]),
            run("c", &["--set=agent.clip=0.1", "--steps=20000", "--seed=1"]),
            run("d", &["--set=agent.clip=0.1", "--steps=40000"]),
        ];
        let lines = compared(&runs, &[]);
        let expected = [
            "experiment agent.clip train.steps runs mean return (95%) interquartile mean (95%) steps state",
            "cartpole-ppo 0.3 40000 1 5.00 5.00 41.0k finished",
            "cartpole-ppo 0.1 40000 1 5.00 5.00 41.0k finished",
            "cartpole-ppo 0.1 20000 2 3.00 (3.00 to 3.00) 3.00 (3.00 to 3.00) 24.6k finished",
        ];
        assert_eq!(lines, expected);
        let lines = compared(&runs[1..3], &["--each"]);
        let expected = [
            "run experiment agent.clip train.steps seed mean return steps state".to_owned(),
            format!("{} cartpole-ppo 0.3 40000 0 5.00 41.0k finished", runs[1]),
            format!("{} cartpole-ppo 0.1 20000 1 3.00 24.6k finished", runs[2]),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn compared_seeds_are_a_mean_with_its_interval() {
        let run = |mean_return, state| RunOverview {
            run: PathBuf::from("run"),
            experiment: "catch".to_owned(),
            seed: 0,
            env_steps: 1,
            mean_return,
            env_steps_per_second: None,
            total_steps_per_second: None,
            state,
            settings: BTreeMap::new(),
        };
        let runs = [
            run(Some(1.0), RunState::Finished),
            run(None, RunState::Running),
            run(Some(4.0), RunState::Finished),
        ];
        let row: Vec<&RunOverview> = runs.iter().collect();
        let shown = |row| estimated(&mean_returns(row), mean);
        assert_eq!(shown(&row), "2.50 (1.00 to 4.00)");
        assert_eq!((shown(&row[..2]), shown(&row[1..2])), ("1.00".to_owned(), "-".to_owned()));
        assert_eq!(states(&row), "2 finished, 1 running");
        assert_eq!(states(&row[..1]), "finished");
        assert_eq!(shortened(&"ab".repeat(13)), "ab".repeat(11) + "a…");
    }

    #[test]
    fn a_run_is_removed_when_that_is_confirmed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        podracer(&short(&run, &["--set=train.eval_every=16"]));
        fs::write(run.join("notes.txt"), "mine").unwrap();
        let name = run.to_str().unwrap();
        let printed = podracer(&["runs", "remove", name]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("--yes` removes 1 run"), "{}", printed.err);
        assert!(run.join("config.toml").exists());

        let file = File::options().append(true).open(run.join("metrics.jsonl")).unwrap();
        file.lock().unwrap();
        let printed = podracer(&["runs", "remove", name, "--yes"]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("another process trains it"), "{}", printed.err);
        drop(file);

        let printed = podracer(&["runs", "remove", name, "--yes"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        assert!(printed.err.contains("notes.txt` is no file of a run"), "{}", printed.err);
        let left: Vec<_> =
            fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
        assert_eq!(podracer(&["runs", "remove", name, "--yes"]).code, 2);
    }
}
