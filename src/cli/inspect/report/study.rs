//! The part of a page about methods that were trained on several tasks: aggregate scores,
//! performance profiles, sample efficiency and probabilities of improvement, as in rliable.
//!
//! A method is a group of runs with the same distinguishing settings in every experiment; a task is
//! an experiment.

use anyhow::Result;
use maud::{Markup, PreEscaped, html};

use super::super::curves::{CurveArguments, Curves, Group};
use crate::chart::{Figure, Line, Panel};
use crate::format::plural;
use crate::statistics::Estimate;
use crate::statistics::study::{
    Aggregate, iqm, performance_profile, probability_of_improvement, stratified,
};

/// Number of points of a profile and of a curve.
const POINTS: usize = 60;
/// Least number of runs of a method on a task.
const LEAST_RUNS: usize = 2;

/// A method, with its group of runs for each task.
struct Method<'a> {
    name: &'a str,
    groups: Vec<&'a Group>,
}

/// The experiments, and the methods that have runs of every experiment; `None` for fewer than two
/// tasks or without such a method.
fn methods(curves: &Curves) -> Option<(Vec<&str>, Vec<Method<'_>>)> {
    let experiment = |group: &Group| &*curves.runs[group.members[0]].experiment;
    let mut tasks: Vec<&str> = curves.groups.iter().map(experiment).collect();
    tasks.dedup();
    let mut names: Vec<&str> = curves.groups.iter().map(|group| &*group.settings).collect();
    let mut known = Vec::new();
    names.retain(|name| {
        !known.contains(name) && {
            known.push(*name);
            true
        }
    });
    let method = |name: &str| -> Option<Vec<&Group>> {
        let of = |task: &&str| {
            curves.groups.iter().find(|group| group.settings == name && experiment(group) == *task)
        };
        tasks.iter().map(of).collect::<Option<Vec<_>>>()
    };
    let methods: Vec<Method<'_>> = names
        .into_iter()
        .filter_map(|name| Some(Method { name, groups: method(name)? }))
        .filter(|method| method.groups.iter().all(|group| group.members.len() >= LEAST_RUNS))
        .collect();
    (tasks.len() > 1 && !methods.is_empty()).then_some((tasks, methods))
}

/// The study of the runs; nothing unless methods were trained on several tasks.
pub(super) fn study(curves: &Curves, args: &CurveArguments) -> Result<Markup> {
    let Some((tasks, methods)) = methods(curves) else { return Ok(html! {}) };
    let scores: Vec<Vec<Vec<f64>>> = (methods.iter())
        .map(|method| method.groups.iter().map(|group| curves.scores(group, args)).collect())
        .collect();
    if scores.iter().flatten().any(Vec::is_empty) {
        return Ok(html! {});
    }
    let missing: Vec<&str> = tasks
        .iter()
        .copied()
        .filter(|task| args.normalize.iter().all(|(name, _)| name != task))
        .collect();
    Ok(html! {
        h2 { "Over " (plural(tasks.len(), "task")) }
        @if missing.is_empty() {
            (aggregates(&methods, &scores))
            div class="charts" {
                div { (PreEscaped(profiles(&methods, &scores)?)) }
                @if let Some(chart) = efficiency(curves, args, &methods)? { div { (PreEscaped(chart)) } }
            }
        } @else {
            p {
                "Aggregate scores need the returns that count as 0 and as 1 for each task: add "
                @for task in missing { code { "--normalize " (task) "=LOW..HIGH" } " " }
                "."
            }
        }
        (improvements(&methods, &scores))
        p {
            "Statistics of Agarwal et al. (2021), as in rliable. Intervals are the 95% percentile bootstrap, stratified by task. "
            "A score is the normalized mean return of the last episodes of a run."
        }
    })
}

/// An estimate as a cell of a table.
fn cell(estimate: Estimate) -> Markup {
    html! { td class="number" { (estimate) } }
}

fn aggregates(methods: &[Method<'_>], scores: &[Vec<Vec<f64>>]) -> Markup {
    let heads = [
        "method",
        "interquartile mean (95%)",
        "mean (95%)",
        "median (95%)",
        "optimality gap (95%)",
    ];
    html! {
        div class="wide" {
            table {
                tr { @for head in heads { th { (head) } } }
                @for (method, scores) in methods.iter().zip(scores) {
                    @let all = Aggregate::of(scores);
                    tr {
                        td { (method.name) }
                        (cell(all.interquartile_mean)) (cell(all.mean)) (cell(all.median)) (cell(all.optimality_gap))
                    }
                }
            }
        }
    }
}

/// A line with the interval of each point as its band.
fn line(name: &str, points: impl IntoIterator<Item = (f64, Estimate)>) -> Line {
    let mut line = Line { name: name.to_owned(), ..Line::default() };
    for (at, Estimate { value, low, high }) in points {
        line.points.push((at, value));
        line.band.extend(low.zip(high));
    }
    line
}

/// A figure of one panel.
fn figure(along: &str, metric: &str, lines: Vec<Line>) -> Figure {
    let panels = vec![Panel { metric: metric.to_owned(), lines, ..Panel::default() }];
    Figure { along: along.to_owned(), panels, columns: 1, ..Figure::default() }
}

fn profiles(methods: &[Method<'_>], scores: &[Vec<Vec<f64>>]) -> Result<String> {
    let greatest = scores.iter().flatten().flatten().copied().fold(1.0, f64::max);
    let taus: Vec<f64> = (0..=POINTS).map(|i| greatest * i as f64 / POINTS as f64).collect();
    let profile = |(method, scores): (&Method<'_>, &Vec<Vec<f64>>)| {
        line(method.name, taus.iter().copied().zip(performance_profile(scores, &taus)))
    };
    let lines = methods.iter().zip(scores).map(profile).collect();
    figure("normalized score τ", "fraction of runs with a score above τ", lines).svg()
}

/// The interquartile mean over tasks by the share of the training; `None` without curves.
fn efficiency(
    curves: &Curves,
    args: &CurveArguments,
    methods: &[Method<'_>],
) -> Result<Option<String>> {
    let mut lines = Vec::new();
    for method in methods {
        let shares: Vec<f64> = (1..=POINTS).map(|i| i as f64 / POINTS as f64).collect();
        let values: Option<Vec<Vec<Vec<f64>>>> =
            method.groups.iter().map(|group| curves.by_share(group, args, &shares)).collect();
        let Some(values) = values else { return Ok(None) };
        let at = |(index, share): (usize, &f64)| {
            let scores: Vec<Vec<f64>> =
                (values.iter()).map(|runs| runs.iter().map(|run| run[index]).collect()).collect();
            (100.0 * share, stratified(&scores, iqm))
        };
        lines.push(line(method.name, shares.iter().enumerate().map(at)));
    }
    figure("percent of the training's steps", "interquartile mean of scores", lines).svg().map(Some)
}

/// The probability that the method of the row is better than the method of the column.
fn improvements(methods: &[Method<'_>], scores: &[Vec<Vec<f64>>]) -> Markup {
    if methods.len() < 2 {
        return html! {};
    }
    html! {
        h3 { "Probability of improvement" }
        div class="wide" {
            table {
                tr { th { "row better than column (95%)" } @for method in methods { th { (method.name) } } }
                @for (row, method) in methods.iter().enumerate() {
                    tr {
                        th { (method.name) }
                        @for column in 0..methods.len() {
                            @if row == column { td class="number" { "-" } }
                            @else { (cell(probability_of_improvement(&scores[row], &scores[column]))) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::cli::fake::podracer;

    /// Methods are compared over tasks only on normalized returns, and a setting that was trained on
    /// one task is no method.
    #[test]
    fn a_study_needs_references_and_methods_of_all_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let run = |experiment: &str, clip: &str, seed: usize| {
            let path = folder.path().join(format!("{experiment}-{clip}-{seed}"));
            let (seed, clip) = (format!("--seed={seed}"), format!("--set=agent.clip={clip}"));
            let train = ["train", experiment, "--steps=40000", "--run-dir", path.to_str().unwrap()];
            assert_eq!(podracer(&[&train[..], &[&*seed, &*clip]].concat()).code, 0);
        };
        for seed in 0..2 {
            for experiment in ["cartpole-ppo", "catch-ppo"] {
                run(experiment, "0.1", seed);
                run(experiment, "0.2", seed);
            }
            run("catch-ppo", "0.3", seed);
        }
        let page = |more: &[&str]| {
            let output = folder.path().join("report.html");
            let named = ["report", folder.path().to_str().unwrap(), "-o", output.to_str().unwrap()];
            let printed = podracer(&[&named[..], more].concat());
            assert_eq!(printed.code, 0, "{}", printed.err);
            fs::read_to_string(output).unwrap()
        };
        let references = ["--normalize=cartpole-ppo=0..500", "--normalize=catch-ppo=-1..1"];
        let without = page(&references[..1]);
        assert!(without.contains("<code>--normalize catch-ppo=LOW..HIGH</code>"), "{without}");
        assert!(without.contains("Probability of improvement") && !without.contains("optimality"));
        let with = page(&references);
        for part in ["Over 2 tasks", "optimality gap (95%)", "normalized score τ"] {
            assert!(with.contains(part), "{part}: {with}");
        }
        let methods = &with[with.find("Over 2 tasks").unwrap()..with.find("<h2>Curves").unwrap()];
        assert!(methods.contains("agent.clip = 0.2") && !methods.contains("agent.clip = 0.3"));
    }
}
