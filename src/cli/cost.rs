//! `podracer cost`: the price of frames, from their speed, machines and prices, as SEED (Espeholt
//! et al. 2020, section 4.4) compares systems.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::console::Console;
use super::program::Program;
use crate::loading::Overrides;
use crate::run_directory::{RunDirectory, RunOverview};
use crate::settings::UsageError;

/// Dollars per hour for the machines in SEED's experiments, from Table 3 (September 2019).
const PRICES: [(&str, f64); 3] = [("cpu", 0.0475), ("p100", 1.46), ("tpu-v3-core", 1.0)];

#[derive(Args, Debug)]
pub(super) struct CostArguments {
    /// The run directory of a completed training: the joint speed of its processes is used
    #[arg(required_unless_present = "fps", conflicts_with = "fps")]
    run: Option<PathBuf>,
    /// Frames per second of the environments, instead of the run's
    #[arg(long, value_name = "NUMBER")]
    fps: Option<f64>,
    /// Machines that are used the whole time, such as cpu=104 [repeatable]
    #[arg(long = "use", value_name = "NAME=COUNT", required = true)]
    used: Vec<String>,
    /// Dollars per hour for a machine [repeatable] [default: SEED RL's Table 3: cpu=0.0475,
    /// p100=1.46, tpu-v3-core=1.00]
    #[arg(long, value_name = "NAME=DOLLARS")]
    price: Vec<String>,
    /// Number of frames
    #[arg(long, value_name = "NUMBER", default_value_t = 1e9)]
    frames: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The price of frames, which `--json` prints.
#[derive(Serialize)]
struct Cost {
    frames: f64,
    frames_per_second: f64,
    hours: f64,
    used: Vec<Used>,
    dollars: f64,
}

/// Machines of one kind that are used the whole time.
#[derive(Serialize)]
struct Used {
    name: String,
    count: f64,
    /// Dollars per hour for one of them.
    #[serde(skip)]
    price: f64,
    dollars_per_hour: f64,
    dollars: f64,
}

impl Cost {
    /// The price of frames on machines, each with its name, its number and the dollars per hour for
    /// one of them.
    fn of(frames: f64, frames_per_second: f64, machines: &[(&str, f64, f64)]) -> Self {
        let hours = frames / frames_per_second / 3600.0;
        let used = |&(name, count, price): &(&str, f64, f64)| {
            let (name, dollars_per_hour) = (name.to_owned(), count * price);
            Used { name, count, price, dollars_per_hour, dollars: dollars_per_hour * hours }
        };
        let used: Vec<Used> = machines.iter().map(used).collect();
        let dollars = used.iter().map(|one| one.dollars).sum();
        Cost { frames, frames_per_second, hours, used, dollars }
    }

    fn text(&self) -> String {
        let line = |Used { name, count, price, dollars, .. }: &Used| {
            format!("{count:>8} {name:<14} at ${price:.4} an hour   ${dollars:.2}\n")
        };
        let Cost { frames, frames_per_second, hours, used, dollars } = self;
        used.iter().map(line).collect::<String>()
            + &format!(
                "{frames:.3e} frames at {frames_per_second:.0} frames/s take {hours:.2} hours and cost ${dollars:.2}\n"
            )
    }
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
    let counts = args.used.iter().map(|text| pair("--use", text)).collect::<Result<Vec<_>>>()?;
    if let Some((name, _)) =
        prices.iter().find(|(name, _)| counts.iter().all(|(used, _)| used != name))
    {
        let problem =
            format!("--price {name}: nothing of that name is used, which --use {name}=COUNT says");
        return Err(UsageError::new(problem).into());
    }
    let machine = |&(name, count): &(_, f64)| {
        let price = prices.iter().chain(&PRICES).find(|(known, _)| *known == name);
        let problem = || {
            UsageError::new(format!(
                "--use {name}={count}: give the dollars of an hour with --price {name}=DOLLARS"
            ))
        };
        Ok((name, count, price.ok_or_else(problem)?.1))
    };
    let machines = counts.iter().map(machine).collect::<Result<Vec<_>>>()?;
    let cost = Cost::of(frames, frames_per_second, &machines);
    console.print(&if args.json { serde_json::to_string(&cost)? + "\n" } else { cost.text() })?;
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

/// Frames per second of a completed run.
fn speed(run: &Path, program: Program<'_>) -> Result<f64> {
    // Its programs are not run.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

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

    /// A resumed run has the speed of both processes together.
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
        let cost = Cost::of(1e9, 19e3, &[("cpu", 44.0, 0.0475), ("p100", 1.0, 1.46)]);
        let text = cost.text();
        assert!(text.contains("44 cpu") && text.contains("$30.56"), "{text}");
        assert!(
            text.ends_with("1.000e9 frames at 19000 frames/s take 14.62 hours and cost $51.90\n"),
            "{text}"
        );
    }

    /// Tables 4, 5 and 12 of SEED: whole dollars per billion frames, by CPUs, accelerators and a
    /// speed that is rounded to a unit. Table 4 has 25 dollars for one more entry, 104 CPUs and two
    /// cores at 74,000 frames a second, which does not follow from its speed.
    #[test]
    fn a_billion_frames_cost_what_the_tables_of_seed_say() {
        let (p100, tpu) = (PRICES[1], PRICES[2]);
        let dollars = |cpus, (accelerator, price), number, speed| {
            Cost::of(1e9, speed, &[("cpu", cpus, PRICES[0].1), (accelerator, number, price)])
                .dollars
        };
        for (cpus, accelerator, number, speed, unit, table) in [
            (176.0, p100, 1.0, 30e3, 1e3, 90.0),
            (130.0, p100, 1.0, 16.5e3, 100.0, 128.0),
            (100.0, p100, 1.0, 7.3e3, 100.0, 236.0),
            (48.0, tpu, 2.0, 34e3, 1e3, 35.0),
            (24.0, tpu, 2.0, 16e3, 1e3, 54.0),
            (44.0, p100, 1.0, 19e3, 1e3, 51.0),
            (400.0, p100, 2.0, 11e3, 1e3, 553.0),
            (300.0, p100, 2.0, 7e3, 1e3, 681.0),
            (300.0, p100, 2.0, 5.3e3, 100.0, 899.0),
            (416.0, tpu, 2.0, 17.5e3, 100.0, 345.0),
            (248.0, tpu, 2.0, 10.5e3, 100.0, 365.0),
            (168.0, tpu, 2.0, 7.5e3, 100.0, 369.0),
        ] {
            let [most, least] =
                [-0.5, 0.5].map(|half| dollars(cpus, accelerator, number, speed + half * unit));
            assert!(
                least - 0.5 <= table && table <= most + 0.5,
                "{cpus} CPUs at {speed}: {least} to {most} and {table} in the table"
            );
        }
        assert_eq!(format!("{:.2}", dollars(104.0, tpu, 2.0, 74e3)), "26.05");
    }
}
