//! `podracer cost`: what frames cost, by a run's speed or a given one.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::console::Console;
use super::program::Program;
use crate::cost::{Cost, PRICES, Used};
use crate::loading::Overrides;
use crate::run_directory::{RunDirectory, RunOverview};
use crate::settings::UsageError;

#[derive(Args, Debug)]
pub(super) struct CostArguments {
    /// The run directory of a training that is done: the speed of all of its processes together is taken
    #[arg(required_unless_present = "fps", conflicts_with = "fps")]
    run: Option<PathBuf>,
    /// Frames of the environments in a second, in place of the run's
    #[arg(long, value_name = "NUMBER")]
    fps: Option<f64>,
    /// Machines that are used all of the time, such as cpu=104 [repeatable]
    #[arg(long = "use", value_name = "NAME=COUNT", required = true)]
    used: Vec<String>,
    /// Dollars of an hour of one of them [repeatable] [default: SEED RL's Table 3: cpu=0.0475, p100=1.46, tpu-v3-core=1.00]
    #[arg(long, value_name = "NAME=DOLLARS")]
    price: Vec<String>,
    /// Number of frames
    #[arg(long, value_name = "NUMBER", default_value_t = 1e9)]
    frames: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn cost(
    args: &CostArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let positive = |what: &str, number: f64| match number.is_finite() && number > 0.0 {
        true => Ok(number),
        false => Err(UsageError::new(format!("{what} is {number} and must be more than 0"))),
    };
    let frames = positive("--frames", args.frames)?;
    let frames_per_second = match (args.fps, &args.run) {
        (Some(fps), _) => positive("--fps", fps)?,
        (None, Some(run)) => speed(run, program)?,
        (None, None) => unreachable!("one of them is required"),
    };
    let prices = args.price.iter().map(|text| pair("--price", text)).collect::<Result<Vec<_>>>()?;
    let used = args.used.iter().map(|text| {
        let (name, count) = pair("--use", text)?;
        let given = prices.iter().find(|(known, _)| *known == name).map(|(_, price)| *price);
        let known = PRICES.into_iter().find(|(known, _)| *known == name).map(|(_, price)| price);
        let price = given.or(known).ok_or_else(|| {
            UsageError::new(format!(
                "--use {text}: give the dollars of an hour with --price {name}=DOLLARS"
            ))
        })?;
        Ok(Used { name: name.to_owned(), count, price })
    });
    let cost = Cost { used: used.collect::<Result<_>>()?, frames_per_second };
    if let Some((name, _)) =
        prices.iter().find(|(name, _)| cost.used.iter().all(|one| one.name != *name))
    {
        let problem =
            format!("--price {name}: nothing of that name is used, which --use {name}=COUNT says");
        return Err(UsageError::new(problem).into());
    }
    console.print(&if args.json { as_json(&cost, frames)? } else { as_text(&cost, frames) })?;
    Ok(0)
}

/// Parses `NAME=NUMBER`.
fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, f64)> {
    let parsed = text.split_once('=').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    let valid = parsed.filter(|(name, number): &(&str, f64)| {
        !name.is_empty() && number.is_finite() && *number >= 0.0
    });
    Ok(valid.ok_or_else(|| {
        UsageError::new(format!(
            "{flag} {text}: expected NAME=NUMBER with a number from 0 on, such as cpu=104"
        ))
    })?)
}

/// Frames per second of a run that is done.
fn speed(run: &Path, program: Program<'_>) -> Result<f64> {
    // Nothing of it is run.
    let trust = Overrides { trust: true, ..Overrides::default() };
    let settings = RunDirectory::settings(run, &trust, program.registry)?;
    let overview = RunOverview::read(run)?;
    let steps = overview.total_steps_per_second.or(overview.env_steps_per_second);
    let steps = steps.filter(|speed| *speed > 0.0);
    let steps = steps.ok_or_else(|| {
        let run = run.display();
        UsageError::new(format!(
            "`{run}` has no speed, which a training writes at its end: --fps gives one"
        ))
    })?;
    let environment = program.registry.environment(settings.environment_name());
    let frames = environment.map_or(1, |one| one.frames_per_step(&settings.environment));
    Ok(steps * frames as f64)
}

fn as_json(cost: &Cost, frames: f64) -> Result<String> {
    let used: Vec<Value> = (cost.used.iter())
        .map(|one| {
            json!({
                "name": one.name, "count": one.count, "dollars_per_hour": one.per_hour(),
                "dollars": one.per_hour() * cost.hours(frames),
            })
        })
        .collect();
    let all = json!({
        "frames": frames, "frames_per_second": cost.frames_per_second, "hours": cost.hours(frames), "used": used,
        "dollars": cost.dollars(frames),
    });
    Ok(serde_json::to_string(&all)? + "\n")
}

fn as_text(cost: &Cost, frames: f64) -> String {
    let mut text = String::new();
    for one in &cost.used {
        let dollars = one.per_hour() * cost.hours(frames);
        let _ = writeln!(
            text,
            "{:>8} {:<14} at ${:.4} an hour   ${dollars:.2}",
            one.count, one.name, one.price
        );
    }
    let _ = writeln!(
        text,
        "{frames:.3e} frames at {:.0} frames/s take {:.2} hours and cost ${:.2}",
        cost.frames_per_second,
        cost.hours(frames),
        cost.dollars(frames)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fake::podracer;

    #[test]
    fn what_is_used_is_a_name_with_a_number() {
        assert_eq!(pair("--use", "cpu=104").unwrap(), ("cpu", 104.0));
        for wrong in ["cpu", "=3", "cpu=x", "cpu=-1", "cpu=inf"] {
            let said = pair("--use", wrong).unwrap_err().to_string();
            assert!(said.contains("expected NAME=NUMBER"), "{said}");
        }
    }

    /// A run that went on after a stop has the speed of both processes together.
    #[test]
    fn the_speed_of_a_run_is_that_of_all_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        let run = run.to_str().unwrap();
        podracer(&["train", "cartpole-ppo", "--steps", "10000", "--run-dir", run]);
        let result = || -> Value {
            serde_json::from_str(
                &std::fs::read_to_string(Path::new(run).join("result.json")).unwrap(),
            )
            .unwrap()
        };
        let first = result()["total_seconds"].as_f64().unwrap();
        podracer(&["resume", run, "--steps", "30000"]);
        let both = result();
        let seconds = both["total_seconds"].as_f64().unwrap();
        assert!(seconds > first, "{both}");
        let cost = podracer(&["cost", run, "--use", "cpu=1", "--json"]).json();
        let speed = both["env_steps"].as_f64().unwrap() / seconds;
        assert!((cost["frames_per_second"].as_f64().unwrap() / speed - 1.0).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn the_text_has_the_dollars_of_each_part() {
        let machines = |name: &str, count, price| Used { name: name.to_owned(), count, price };
        let used = vec![machines("cpu", 44.0, 0.0475), machines("p100", 1.0, 1.46)];
        let cost = Cost { used, frames_per_second: 19e3 };
        let text = as_text(&cost, 1e9);
        assert!(text.contains("44 cpu") && text.contains("$30.56"), "{text}");
        assert!(
            text.ends_with("1.000e9 frames at 19000 frames/s take 14.62 hours and cost $51.90\n"),
            "{text}"
        );
        let json: Value = serde_json::from_str(&as_json(&cost, 1e9).unwrap()).unwrap();
        assert!((json["dollars"].as_f64().unwrap() - 51.90).abs() < 0.01, "{json}");
    }
}
