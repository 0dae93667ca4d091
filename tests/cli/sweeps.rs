//! Reports of the runs of a sweep: settings, results and parameters.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::watch::Page;
use super::{podracer, text};

/// The settings of a training of 4 iterations.
const SMALL: [&str; 4] = [
    "--set=anakin.unroll=32",
    "--set=anakin.iterations_per_call=2",
    "--set=agent.minibatches=2",
    "--steps=512",
];

/// The standard output of a command.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = podracer(arguments).current_dir(folder).assert().success();
    text(&output.get_output().stdout)
}

/// The winner of a sweep was listed under its first learning rate, after it had taken over another learning rate.
#[test]
fn exploited_runs_are_listed_under_settings_that_they_no_longer_have() {
    const RATES: [&str; 4] = ["1e-4", "1e-3", "1e-2", "1e-1"];
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rates = format!("--set=agent.learning_rate={}", RATES.join(","));
    let sweep = ["sweep", "cartpole-ppo", &rates, "--exploit-every=2", "--run-dir=s"];
    let table = printed(folder, &[&sweep[..], &SMALL].concat());
    // The present rate of each run by its first rate, as the metrics have it.
    let present = |rate: &str| {
        let run = format!("s/agent.learning_rate={rate},seed=0/metrics.jsonl");
        let lines = fs::read_to_string(folder.join(run)).expect("metrics");
        let last: Value =
            serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
        last["agent.learning_rate"].as_f64().expect("the present rate")
    };
    let now: BTreeMap<&str, f64> = RATES.into_iter().map(|rate| (rate, present(rate))).collect();
    let written = fs::read_to_string(folder.join("s/population.json")).expect("it is written");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let rows = written["settings"].as_array().expect("settings");
    assert_eq!(rows.len(), 4);
    let mut changed = Vec::new();
    for row in rows {
        let setting = |key: &str| row["settings"][key].as_str().expect("a setting").to_owned();
        let first = setting("agent.learning_rate at the beginning");
        let said: f64 = setting("agent.learning_rate").parse().expect("a number");
        assert!((said / now[&*first] - 1.0).abs() < 5e-3, "{row}");
        let before: f64 = first.parse().expect("a number");
        if (now[&*first] / before - 1.0).abs() > 1e-5 {
            changed.push((first, before, setting("agent.learning_rate")));
        }
    }
    assert!(!changed.is_empty(), "no run took over from another");
    assert!(!table.contains(" to "), "an interval of one run: {table}");
    // A resumed run keeps its present settings.
    let (first, before, last) = &changed[0];
    let run = format!("s/agent.learning_rate={first},seed=0");
    printed(folder, &["resume", &run, "--steps=768"]);
    let arrow = format!("{before} -> {last}");
    let compared = printed(folder, &["runs", "compare", "s"]);
    assert!(compared.contains(&arrow), "{arrow}: {compared}");
    printed(folder, &["plot", "s"]);
    let chart = fs::read_to_string(folder.join("plot.svg")).expect("a chart");
    assert!(chart.contains(&format!("agent.learning_rate = {before} -&gt; {last}")), "{chart}");
    printed(folder, &["report", "s"]);
    let page = fs::read_to_string(folder.join("report.html")).expect("a page");
    let setting = format!("<td>agent.learning_rate = {before} -&gt; {last}</td>");
    assert!(page.contains(&setting), "{setting}");
    let page = Page::of(folder, &["s", "--at", "127.0.0.1:0"]);
    let state = page.json("/api/state");
    let runs = state["runs"].as_array().expect("runs");
    let run = runs.iter().find(|one| one["path"] == *run).expect("the run");
    assert_eq!(run["settings"]["agent.learning_rate"], arrow);
}

/// The error was `agent.v_max: invalid type: string "column 0", expected f64`.
#[test]
fn a_swept_f64_is_answered_with_column_0() {
    let folder = tempfile::tempdir().expect("a folder");
    for (experiment, setting) in
        [("cartpole-dqn", "agent.sigma0=0.1,0.2"), ("cartpole-ppo", "agent.epochs=1,2")]
    {
        let sweep = ["sweep", experiment, "--set", setting, "--exploit-every=2", "--run-dir=s"];
        let refused = podracer(&sweep).current_dir(&folder).assert().code(2);
        let said = text(&refused.get_output().stderr);
        let key = setting.split('=').next().expect("a key");
        let expected = format!("{key}: it is not a number that a program takes as data");
        assert!(said.contains(&expected) && said.contains("has the type `Number`"), "{said}");
        assert!(!said.contains("column"), "{said}");
    }
}

/// The answer was a list of 56 names of experiments.
#[test]
fn an_export_of_a_run_is_answered_with_a_list_of_experiments() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let train = ["train", "cartpole-ppo", "--run-dir=run", "--set=agent.hidden=[8]"];
    printed(folder, &[&train[..], &SMALL].concat());
    printed(folder, &["export", "run", "-o", "of-run"]);
    let named = ["export", "cartpole-ppo", "--set=agent.hidden=[8]", "--run", "run", "-o", "named"];
    printed(folder, &named);
    let parameters = |export: &str| {
        fs::read(folder.join(export).join("parameters.safetensors")).expect("a file")
    };
    assert!(parameters("of-run") == parameters("named"), "other parameters");
    let best = ["export", "cartpole-ppo", "-o", "best", "--best"];
    let refused = podracer(&best).current_dir(folder).assert().code(2);
    assert!(text(&refused.get_output().stderr).contains("--run RUN"));
}

/// The mean of runs of different lengths ends with the shortest run, with a note; a repeated seed counts once.
#[test]
fn a_page_names_runs_of_two_lengths_and_repeated_seeds() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (run, more) in
        [("a", &["--steps=512"][..]), ("b", &["--steps=1024", "--seed=1"]), ("c", &["--steps=512"])]
    {
        let run = format!("runs/{run}");
        let train = ["train", "cartpole-ppo", "--run-dir", &run];
        printed(folder, &[&train[..], &SMALL[..3], more].concat());
    }
    let page = Page::of(folder, &["--at", "127.0.0.1:0"]);
    let state = page.json("/api/state");
    let problem = state["problems"]["runs/c"].as_str().expect("a problem");
    assert_eq!(
        problem,
        "`runs/c` has the settings and the seed (0) of `runs/a`: it is no independent run, and is not counted"
    );
    let curves = page.json("/api/curves?metric=loss&along=steps&summary=mean");
    assert_eq!(curves[0]["name"], "cartpole-ppo (2 runs up to 512 environment steps)");
}
