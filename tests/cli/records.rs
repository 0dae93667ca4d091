//! `podracer runs export`: metrics of runs for other programs, read back by these programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use podracer_test_support::python;
use serde_json::{Value, json};

use super::{podracer, text};

/// Trains a run of 4 calls, in a folder of this name.
fn train(folder: &Path, run: &str, more: &[&str]) {
    let sizes = ["--set=anakin.unroll=32", "--set=anakin.iterations_per_call=2"];
    let small = ["train", "cartpole-ppo", "--steps=1024", "--set=agent.minibatches=2"];
    let named = ["--run-dir", run];
    let train = [&small[..], &sizes, &named, more].concat();
    podracer(&train).current_dir(folder).assert().success();
}

/// The values of a metric in a run's own metrics, each with the run and the iteration.
fn recorded(folder: &Path, runs: &[&str], metric: &str) -> Value {
    let mut values = Vec::new();
    for run in runs {
        let lines = fs::read_to_string(folder.join(run).join("metrics.jsonl")).expect("metrics");
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            if line[metric].is_number() {
                values.push(json!([run, line["iteration"], line[metric]]));
            }
        }
    }
    json!(values)
}

#[test]
fn a_table_has_a_row_for_each_line_and_a_column_for_each_metric() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "a", &[]);
    train(folder, "b", &["--set=agent.clip=0.1", "--seed=3"]);
    let export = ["runs", "export", "a", "b"];
    let said = podracer(&export).current_dir(folder).assert().success().get_output().clone();
    assert_eq!(text(&said.stdout), "metrics.csv\n");
    let table = fs::read_to_string(folder.join("metrics.csv")).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    assert_eq!(
        head[..7],
        ["run", "experiment", "seed", "iteration", "env_steps", "seconds", "agent.clip"]
    );
    let rows: Vec<BTreeMap<&str, &str>> =
        lines.map(|line| head.iter().copied().zip(line).collect()).collect();
    let all = recorded(folder, &["a", "b"], "loss");
    let all = all.as_array().expect("a list");
    assert_eq!((rows.len(), all.len()), (16, 16));
    for (row, recorded) in rows.iter().zip(all) {
        let value: f64 = row["loss"].parse().expect("a number");
        assert_eq!(json!([row["run"], row["iteration"].parse::<u64>().ok(), value]), *recorded);
    }
    let last = &rows[15];
    assert_eq!((last["seed"], last["agent.clip"], last["env_steps"]), ("3", "0.1", "1024"));

    let wrong = podracer(&["runs", "export", "a", "none"]).current_dir(folder).assert().code(2);
    let said = text(&wrong.get_output().stderr);
    assert!(said.contains("`none` holds no run"), "{said}");
}

/// The upload of `wandb sync`.
#[test]
fn wandb_reads_what_is_exported_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "a", &[]);
    train(folder, "b", &["--seed=1"]);
    // A run that is exported again is present once.
    for _ in 0..2 {
        let export = ["runs", "export", "a", "b", "--to", "wandb"];
        podracer(&export).current_dir(folder).assert().success();
    }
    let here = folder.to_str().expect("a name");
    let metric = "value_loss";
    let read = python::run_records(include_str!("records.py"), &[here, metric], "");
    let Some(read) = read.expect("the package reads it") else { return };
    let read: Value = serde_json::from_str(&read).expect("JSON");
    let expected = recorded(folder, &["a", "b"], metric);
    assert_eq!(expected.as_array().map(Vec::len), Some(16));
    assert_eq!(read, expected);
}

/// Means and intervals of `train --seeds`, by rliable with as many draws.
#[test]
fn intervals_of_seeds_are_those_of_rliable() {
    const SCRIPT: &str = "
import json, sys
import numpy as np
from rliable import library, metrics
runs = json.load(sys.stdin)['runs']
scores = {'all': np.array([[run['mean_return']] for run in runs])}
of = lambda x: np.array([metrics.aggregate_mean(x), metrics.aggregate_iqm(x)])
values, intervals = library.get_interval_estimates(scores, of, reps=20000)
print(json.dumps([values['all'].tolist(), intervals['all'].tolist()]))
";
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = ["--set=anakin.unroll=32", "--set=anakin.iterations_per_call=2"];
    let several = ["train", "cartpole-ppo", "--steps=2048", "--seeds=16", "--json"];
    let several = [&several[..], &sizes, &["--set=agent.minibatches=2"]].concat();
    let said = podracer(&several).current_dir(&folder).assert().success().get_output().clone();
    let all = text(&said.stdout);
    let read = python::run_records(SCRIPT, &[], &all).expect("rliable reads it");
    let Some(read) = read else { return };
    let read: [Vec<Value>; 2] = serde_json::from_str(&read).expect("JSON");
    let all: Value = serde_json::from_str(&all).expect("JSON");
    for (number, name) in ["mean_return", "interquartile_mean_return"].into_iter().enumerate() {
        let ours = &all["settings"][0][name];
        let number_of = |value: &Value| value.as_f64().expect("a number");
        let (value, low, high) =
            (number_of(&ours["value"]), number_of(&ours["low"]), number_of(&ours["high"]));
        assert!((value - number_of(&read[0][number])).abs() < 1e-9, "{name}: {ours} {read:?}");
        let theirs = [number_of(&read[1][0][number]), number_of(&read[1][1][number])];
        // Ends of 2,000 draws and of 20,000 differ by a few percent of the interval.
        let most = 0.1 * (theirs[1] - theirs[0]);
        assert!(
            (low - theirs[0]).abs() < most && (high - theirs[1]).abs() < most,
            "{name}: {ours} {read:?}"
        );
    }
}
