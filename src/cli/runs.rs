//! `podracer runs`: lists, compares and removes runs.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{Console, program_name};
use crate::format::{count, plural};
use crate::run_directory::{RunOverview, RunState, differences, runs_in};
use crate::settings::UsageError;

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
    /// Print the settings in which runs differ, and their results
    Compare {
        /// The run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
    },
    /// Remove runs: their settings, metrics, checkpoints and parameters
    Remove {
        /// The run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Remove them; without it, only what would be removed is said
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

pub(super) fn runs(args: &RunsArguments, console: &mut Console<'_>) -> Result<u8> {
    match &args.command {
        None => list(&args.list, console),
        Some(RunsCommand::List(args)) => list(args, console),
        Some(RunsCommand::Compare { runs }) => compare(runs, console),
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
            mean_return(one),
            one.state.name().to_owned(),
        ]);
    }
    console.print(&aligned(&table))?;
    Ok(0)
}

fn compare(runs: &[PathBuf], console: &mut Console<'_>) -> Result<u8> {
    let runs = runs.iter().map(|run| RunOverview::read(run)).collect::<Result<Vec<_>>>()?;
    let row = |name: &str, of: &dyn Fn(&RunOverview) -> String| {
        [name.to_owned()].into_iter().chain(runs.iter().map(of)).collect::<Vec<String>>()
    };
    let mut table = vec![row("", &|run| run.run.display().to_string())];
    for (key, values) in differences(&runs.iter().collect::<Vec<_>>()) {
        table.push([key].into_iter().chain(values).collect());
    }
    table.push(row("train.seed", &|run| run.seed.to_string()));
    table.push(row("steps", &|run| count(run.env_steps as f64)));
    table.push(row("mean return", &mean_return));
    let speed = |run: &RunOverview| run.env_steps_per_second.map_or("-".to_owned(), count);
    table.push(row("steps/s", &speed));
    table.push(row("state", &|run| run.state.name().to_owned()));
    console.print(&aligned(&table))?;
    Ok(0)
}

fn remove(runs: &[PathBuf], yes: bool, console: &mut Console<'_>) -> Result<u8> {
    // All of them are runs, before the first is removed.
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

fn mean_return(run: &RunOverview) -> String {
    run.mean_return.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"))
}

/// The rows with columns of equal width, two spaces apart.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let length = |row: &Vec<String>, column: usize| row[column].chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| length(row, column)).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::super::fake::{podracer, short, with};

    #[test]
    fn runs_are_listed_and_compared() {
        let folder = tempfile::tempdir().unwrap();
        let runs = ["a", "b", "c"].map(|name| folder.path().join(name));
        podracer(&short(&runs[0], &[]));
        podracer(&short(&runs[1], &["--seed=3", "--set=agent.clip=0.1"]));
        with(&short(&runs[2], &[]), Some(3), None);
        // Being locked is being trained.
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

        let [a, b, _] = &runs.each_ref().map(|run| run.to_str().unwrap());
        let printed = podracer(&["runs", "compare", a, b]);
        let rows: Vec<Vec<&str>> =
            printed.out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[..2], [vec!["agent.clip", "0.2", "0.1"], vec!["train.seed", "0", "3"]]);
        assert_eq!(rows[3], ["mean", "return", "5.00", "5.00"]);
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
