//! `podracer report`: the settings, results and resources of runs, as one self-contained HTML page.

mod study;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use podracer_plugins::read_regular_text;
use serde_json::Value;

use super::curves::{CurveArguments, Curves, Group};
use crate::chart::Figure;
use crate::cli::console::Console;
use crate::cli::named_runs::{compared, has_changed, of_kinds};
use crate::cli::runs::{RESULTS, mean_returns, results, two_decimals};
use crate::cli::several::one_by_one::{self, ARGUMENTS};
use crate::files::write_whole;
use crate::format::{count, plural};
use crate::program_name::program_name;
use crate::run_directory::RunOverview;
use crate::statistics::mean;

#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    curves: CurveArguments,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// The metrics that are drawn by default.
const USUAL: [&str; 3] = ["returns", "eval_return", "losses"];
/// Greatest number of bytes of recorded episodes in a page: encoded as text they are a third
/// larger.
const FILMS: usize = 1_000_000;
/// Greatest number of groups with an episode.
const SHOWN: usize = 4;

pub(crate) fn report(args: &ReportArguments, console: &mut Console<'_>) -> Result<u8> {
    let metric = &args.curves.metric;
    let curves = Curves::read(&args.curves, console)?;
    let metrics: Vec<String> = match metric.is_empty() {
        // The metrics that the runs have.
        true => {
            USUAL.iter().flat_map(|name| curves.metrics(&[(*name).to_owned()])).flatten().collect()
        }
        false => curves.metrics(metric)?,
    };
    curves.warn_of_lengths(&metrics, &args.curves, console);
    let chart = |metric: &String| {
        let metrics = std::slice::from_ref(metric);
        let figure = Figure { title: String::new(), ..curves.figure(metrics, &args.curves) };
        let class = if figure.columns > 1 { "row" } else { "" };
        Ok(html! { div class=(class) { (PreEscaped(figure.svg()?)) } })
    };
    let charts = metrics.iter().map(chart).collect::<Result<Vec<_>>>()?;
    let page = page(&curves, &args.curves, &charts)?.into_string();
    write_whole(&args.output, page.as_bytes())?;
    console.print(&format!("{}\n", args.output.display()))?;
    Ok(0)
}

fn page(curves: &Curves, args: &CurveArguments, charts: &[Markup]) -> Result<Markup> {
    let caption = curves.caption();
    let mut ranked: Vec<&Group> = curves.groups.iter().collect();
    let best = |group: &Group| mean_return(curves, group).unwrap_or(f64::NEG_INFINITY);
    let experiment = |group: &Group| &curves.runs[group.members[0]].experiment;
    ranked.sort_by(|one, other| {
        experiment(one).cmp(experiment(other)).then(best(other).total_cmp(&best(one)))
    });
    let films = films(curves, &ranked)?;
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (caption) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                main {
                    h1 { (caption) }
                    p { (plural(curves.runs.len(), "run")) ", reported by podracer " (env!("CARGO_PKG_VERSION")) "." }
                    h2 { "Results" }
                    (results_table(curves, &ranked))
                    (heat_map(curves, &ranked))
                    (study::study(curves, args)?)
                    @if !charts.is_empty() {
                        h2 { "Curves" }
                        div class="charts" { @for chart in charts { (chart) } }
                    }
                    @if !films.is_empty() {
                        h2 { "Episodes" }
                        @for film in films { (film) }
                    }
                    h2 { "Runs" }
                    (runs(curves)?)
                    h2 { "Settings, and how to repeat it" }
                    (settings(curves, &ranked)?)
                }
            }
        }
    })
}

/// The runs of a group.
fn members<'a>(curves: &'a Curves, group: &Group) -> Vec<&'a RunOverview> {
    group.members.iter().map(|&member| &curves.runs[member]).collect()
}

/// The mean of the mean returns of a group's runs.
fn mean_return(curves: &Curves, group: &Group) -> Option<f64> {
    mean(&mean_returns(&members(curves, group)))
}

/// A row for each group of settings, the best of each experiment first.
fn results_table(curves: &Curves, ranked: &[&Group]) -> Markup {
    let row = |group: &Group| {
        let members = members(curves, group);
        html! {
            tr {
                td { (group.name) }
                td class="number" { (members.len()) }
                @for cell in results(&members) { td class="number" { (cell) } }
            }
        }
    };
    let heads = ["setting", "runs"].into_iter().chain(RESULTS);
    html! {
        div class="wide" {
            table {
                tr { @for head in heads { th { (head) } } }
                @for group in ranked { (row(group)) }
            }
        }
        p { "A return is the mean of the last episodes of a training, 100 or more. A 95% interval, here and in the curves, is the percentile bootstrap over runs." }
        @for (_, repeated) in curves.repeated() { p { (repeated) "." } }
        @for kind in of_kinds(&curves.runs.iter().collect::<Vec<_>>()) { p { (kind) } }
        @if curves.runs.iter().any(has_changed) {
            p {
                "Population-based training changed the settings of runs: " code { "0.1 -> 0.0056" }
                " is the value at the beginning and at the end. Each of these runs is a row."
            }
        }
    }
}

/// The mean returns by the two settings that differ between the groups; nothing if one setting
/// differs, or more than two.
fn heat_map(curves: &Curves, ranked: &[&Group]) -> Markup {
    let first = |group: &&Group| &curves.runs[group.members[0]];
    let firsts: Vec<&RunOverview> = ranked.iter().map(first).collect();
    if firsts.iter().any(|run| has_changed(run)) {
        return html! {};
    }
    let keys: Vec<String> = compared(&firsts).into_iter().collect();
    let [down, across] = &keys[..] else { return html! {} };
    let value =
        |run: &RunOverview, key: &String| run.settings.get(key).cloned().unwrap_or_default();
    let values = |key: &String| {
        let distinct: BTreeSet<String> = firsts.iter().map(|run| value(run, key)).collect();
        let mut values: Vec<String> = distinct.into_iter().collect();
        let number = |text: &String| text.parse().unwrap_or(f64::INFINITY);
        values.sort_by(|one, other| number(one).total_cmp(&number(other)));
        values
    };
    let mean_at = |row: &String, column: &String| {
        let at = |group: &&&Group| {
            let run = &curves.runs[group.members[0]];
            value(run, down) == *row && value(run, across) == *column
        };
        ranked.iter().find(at).and_then(|group| mean_return(curves, group))
    };
    let all: Vec<f64> = ranked.iter().filter_map(|group| mean_return(curves, group)).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let cell = |mean: Option<f64>| {
        let share = mean.map(|mean| if high > low { (mean - low) / (high - low) } else { 1.0 });
        let style = share.map(heat);
        html! { td style=[style] { (two_decimals(mean)) } }
    };
    html! {
        h2 { "Mean return by " code { (down) } " and " code { (across) } }
        div class="wide" {
            table class="heat" {
                tr { th { (down) " \\ " (across) } @for column in values(across) { th { (column) } } }
                @for row in values(down) {
                    tr { th { (row) } @for column in values(across) { (cell(mean_at(&row, &column))) } }
                }
            }
        }
    }
}

/// The colours of a cell, from viridis, from dark for the worst to bright for the best. The
/// letters' colour depends on the brightness.
fn heat(share: f64) -> String {
    const ENDS: [[f64; 3]; 5] = [
        [68.0, 1.0, 84.0],
        [59.0, 82.0, 139.0],
        [33.0, 145.0, 140.0],
        [94.0, 201.0, 98.0],
        [253.0, 231.0, 37.0],
    ];
    let place = share.clamp(0.0, 1.0) * (ENDS.len() - 1) as f64;
    let before = (place as usize).min(ENDS.len() - 2);
    let part = place - before as f64;
    let [red, green, blue] =
        [0, 1, 2].map(|i| (ENDS[before][i] + part * (ENDS[before + 1][i] - ENDS[before][i])) as u8);
    let letters = if share > 0.55 { "#000" } else { "#fff" };
    format!("background: rgb({red} {green} {blue}); color: {letters}")
}

/// The last recorded episode of the best groups, as many as fit.
fn films(curves: &Curves, ranked: &[&Group]) -> Result<Vec<Markup>> {
    let mut left = FILMS;
    let mut films = Vec::new();
    for group in ranked.iter().take(SHOWN) {
        let reached = |run: &RunOverview| run.mean_return.unwrap_or(f64::NEG_INFINITY);
        let members = members(curves, group).into_iter();
        let best = members.max_by(|one, other| reached(one).total_cmp(&reached(other)));
        let Some(run) = best else { continue };
        let names = run.films();
        let last = names.iter().map(|name| name.iterations).max();
        for name in names.iter().filter(|name| Some(name.iterations) == last) {
            let film = run.film(name)?;
            if film.len() > left {
                continue;
            }
            left -= film.len();
            let source = format!("data:image/gif;base64,{}", STANDARD.encode(&film));
            let what = if name.of_agent { "the agent's own picture" } else { "an episode" };
            films.push(html! {
                figure {
                    img src=(source) alt={ (what) " of " (group.name) };
                    figcaption {
                        (group.name) ", seed " (run.seed) ", after " (name.iterations) " iterations"
                        @if name.of_agent { ": " (what) }
                    }
                }
            });
        }
    }
    Ok(films)
}

/// A row for each run: its results, and the data needed to repeat it. What all runs have in common
/// is a sentence below the table.
fn runs(curves: &Curves) -> Result<Markup> {
    const RECORDED: [(&str, &str); 5] = [
        ("podracer", "podracer"),
        ("platform", "platform"),
        ("device_kind", "device"),
        ("processor", "processor"),
        ("host", "host"),
    ];
    let mut rows = Vec::new();
    for run in &curves.runs {
        let result: Value = match run.result()? {
            Some(text) => serde_json::from_str(&text).unwrap_or_default(),
            None => Value::Null,
        };
        // The settings of the configuration, which is printed below.
        let first = RunOverview::read(&run.run)?;
        let hash = result["params_sha256"].as_str().unwrap_or("-");
        let recorded = run.recorded()?;
        let on = RECORDED.map(|(key, _)| {
            recorded.get(key).and_then(toml::Value::as_str).unwrap_or("-").to_owned()
        });
        let cells = html! {
            td { (run.run.display()) }
            td class="number" { (run.seed) }
            td class="number" { (count(run.env_steps as f64)) }
            td class="number" { (two_decimals(run.mean_return)) }
            td { (run.state.name()) }
            td { code { (hash.get(..16).unwrap_or(hash)) } }
            td { code { (first.settings_hash()) } }
        };
        rows.push((cells, on));
    }
    let (common, different): (Vec<usize>, Vec<usize>) =
        (0..RECORDED.len()).partition(|&key| rows.iter().all(|(_, on)| on[key] == rows[0].1[key]));
    let heads = [
        "run",
        "seed",
        "steps",
        "mean return",
        "state",
        "parameters (sha256)",
        "settings (sha256)",
    ];
    let common: Vec<String> = common
        .into_iter()
        .filter_map(|key| Some(format!("{} {}", RECORDED[key].1, rows.first()?.1[key])))
        .collect();
    Ok(html! {
        div class="wide" {
            table {
                tr {
                    @for head in heads { th { (head) } }
                    @for &key in &different { th { (RECORDED[key].1) } }
                }
                @for (cells, on) in &rows {
                    tr { (cells) @for &key in &different { td { (on[key]) } } }
                }
            }
        }
        @if !common.is_empty() { p { "All runs: " (common.join(", ")) "." } }
    })
}

/// The configuration of each group, and the command that trains it.
fn settings(curves: &Curves, ranked: &[&Group]) -> Result<Markup> {
    let mut all = Vec::new();
    let mut repeats = false;
    for group in ranked {
        let first = &curves.runs[group.members[0]];
        let seeds = group.members.iter().map(|&member| curves.runs[member].seed.to_string());
        let seeds = seeds.collect::<Vec<_>>().join(", ");
        let config = first.config()?;
        let reason = members(curves, group).into_iter().find_map(unrepeatable);
        repeats |= reason.is_none();
        all.push(html! {
            details {
                summary { (group.name) ", " @if group.members.len() == 1 { "seed " } @else { "seeds " } (seeds) }
                @if let Some(reason) = reason { p { (reason) } }
                pre { (config) }
            }
        });
    }
    Ok(html! {
        p {
            "Each is an experiment: as a file, " code { (program_name()) " train FILE.toml --seed N" }
            " trains it again."
            @if repeats {
                " On one machine, with the same version and devices, the parameters of a run that was trained by itself have the same hash"
                " unless a note above its settings gives a reason."
            }
        }
        @for details in all { (details) }
    })
}

/// The reason why a training with a run's settings may end with other parameters; `None` for a
/// repeatable run.
fn unrepeatable(run: &RunOverview) -> Option<&'static str> {
    if run.settings.keys().any(|key| key.starts_with("central.")) {
        return Some(
            "Time decides which steps an inference batch of [central] contains: another training may end with other parameters.",
        );
    }
    if run.settings.get("sebulba.schedule").is_some_and(|schedule| schedule == "free-running") {
        return Some(
            "Time decides which parameters act with sebulba.schedule = \"free-running\": another training may end with other parameters.",
        );
    }
    (has_changed(run) || is_exploited(&run.run)).then_some(
        "The run is a member of a population with --exploit-every, and may have taken over the agent and the settings of another member: \
         a training with these settings alone ends with other parameters.",
    )
}

/// True for a run of a sweep with `--exploit-every`.
fn is_exploited(run: &Path) -> bool {
    let arguments = fs::canonicalize(run).ok().and_then(|run| {
        let path = run.parent()?.join(ARGUMENTS);
        read_regular_text(&path, one_by_one::LARGEST).ok()
    });
    let words: Vec<String> =
        arguments.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    words.iter().any(|word| word.starts_with("--exploit-every"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::run_directory::RunState;

    fn run(folder: &Path, settings: &[(&str, &str)]) -> RunOverview {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        RunOverview {
            run: folder.to_owned(),
            experiment: "cartpole-ppo".to_owned(),
            seed: 0,
            env_steps: 0,
            mean_return: None,
            env_steps_per_second: None,
            total_steps_per_second: None,
            state: RunState::Finished,
            settings: settings.collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn the_hash_of_a_run_that_does_not_repeat_is_promised() {
        let folder = tempfile::tempdir().unwrap();
        let member = folder.path().join("seed-0");
        fs::create_dir(&member).unwrap();
        let reason = |settings: &[(&str, &str)]| unrepeatable(&run(&member, settings));
        assert!(reason(&[("central.environments", "8")]).unwrap().contains("[central]"));
        let free = reason(&[("sebulba.schedule", "free-running")]);
        assert!(free.unwrap().contains("free-running"));
        assert_eq!(reason(&[("sebulba.schedule", "deterministic")]), None);
        assert_eq!(reason(&[("anakin.environments", "8")]), None);

        let arguments = folder.path().join(ARGUMENTS);
        fs::write(&arguments, r#"["sweep","cartpole-ppo","--seeds=2"]"#).unwrap();
        assert_eq!(reason(&[]), None);
        fs::write(&arguments, r#"["sweep","cartpole-ppo","--seeds=2","--exploit-every=200"]"#)
            .unwrap();
        assert!(reason(&[]).unwrap().contains("--exploit-every"));
    }
}
