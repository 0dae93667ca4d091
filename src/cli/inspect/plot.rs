//! `podracer plot`: charts of runs' metrics.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use podracer_plugins::read_regular;

use super::curves::{CurveArguments, Curves, range};
use crate::chart::{Figure, Font, Style};
use crate::cli::console::Console;
use crate::cli::named_runs::of_kinds;
use crate::files::write_whole;
use crate::settings::UsageError;

/// Greatest number of bytes of a font.
const LARGEST_FONT: u64 = 64 << 20;

#[derive(Args, Debug)]
pub(crate) struct PlotArguments {
    #[command(flatten)]
    curves: CurveArguments,
    /// The file to write; its name ends in .svg, .pdf or .png
    #[arg(short, long, value_name = "FILE", default_value = "plot.svg")]
    output: PathBuf,
    /// The text above the chart [default: experiment and seeds]
    #[arg(long)]
    title: Option<String>,
    /// Width and height in pixels, such as `720x440`
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    size: Option<(u32, u32)>,
    /// A TrueType or OpenType file for all letters
    #[arg(long, value_name = "FILE")]
    font: Option<PathBuf>,
    /// Height of the letters in pixels
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(4..=200))]
    letters: Option<u32>,
    /// Ends of the horizontal axis, such as `0..1e6`
    #[arg(long, value_name = "LOW..HIGH", value_parser = range)]
    x: Option<RangeInclusive<f64>>,
    /// Ends of the vertical axis
    #[arg(long, value_name = "LOW..HIGH", value_parser = range, allow_hyphen_values = true)]
    y: Option<RangeInclusive<f64>>,
    /// A logarithmic vertical axis; values that are not positive are left out
    #[arg(long)]
    log: bool,
}

/// Width and height of a chart.
fn size(text: &str) -> Result<(u32, u32), String> {
    let both = text.split_once('x').map(|(width, height)| (width.parse(), height.parse()));
    match both {
        Some((Ok(width), Ok(height)))
            if (200..=20_000).contains(&width) && (150..=20_000).contains(&height) =>
        {
            Ok((width, height))
        }
        _ => Err(format!(
            "expected WIDTHxHEIGHT of at least 200x150 and at most 20000x20000, got `{text}`"
        )),
    }
}

/// The font in a file.
fn font(path: &Path) -> Result<Font> {
    let problem = |error: String| UsageError::new(format!("--font `{}`: {error}", path.display()));
    let bytes = read_regular(path, LARGEST_FONT).map_err(|error| problem(error.to_string()))?;
    Ok(Font::of_file(bytes).map_err(|error| problem(format!("{error:#}")))?)
}

pub(crate) fn plot(args: &PlotArguments, console: &mut Console<'_>) -> Result<u8> {
    let write = match args.output.extension().and_then(OsStr::to_str) {
        Some("svg") => |figure: &Figure| Ok(figure.svg()?.into_bytes()),
        Some("pdf") => Figure::pdf,
        Some("png") => Figure::png,
        _ => {
            let output = args.output.display();
            return Err(UsageError::new(format!(
                "--output is `{output}` and must end in .svg, .pdf or .png: no other format is written"
            ))
            .into());
        }
    };
    if args.log && args.y.as_ref().is_some_and(|y| *y.start() <= 0.0) {
        return Err(UsageError::new("--y must begin above 0 with --log").into());
    }
    let curves = Curves::read(&args.curves, console)?;
    let metrics = curves.metrics(&args.curves.metric)?;
    curves.warn_of_lengths(&metrics, &args.curves, console);
    let mut figure = curves.figure(&metrics, &args.curves);
    if let Some(title) = &args.title {
        figure.title.clone_from(title);
    }
    let font = args.font.as_deref().map(font).transpose()?.unwrap_or_default();
    let PlotArguments { size, letters, log, x, y, .. } = args;
    figure.style =
        Style { size: *size, letters: *letters, font, log: *log, x: x.clone(), y: y.clone() };
    if figure.leaves_out() {
        let said = "values that are not positive are left out";
        figure.note = if figure.note.is_empty() {
            said.to_owned()
        } else {
            format!("{}; {said}", figure.note)
        };
    }
    write_whole(&args.output, &write(&figure)?)?;
    for line in of_kinds(&curves.runs.iter().collect::<Vec<_>>()) {
        console.say(&line);
    }
    console.print(&format!("{}\n", args.output.display()))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::cli::fake::{Printed, podracer, short};

    #[test]
    fn runs_of_the_same_settings_are_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str, more: &[&str]| {
            let path = folder.path().join(name);
            assert_eq!(podracer(&short(&path, more)).code, 0);
            path.to_str().unwrap().to_owned()
        };
        let runs = [
            run("a", &[]),
            run("b", &["--seed=1", "--set=train.checkpoint_every=16"]),
            run("c", &["--set=agent.clip=0.1"]),
        ];
        let output = folder.path().join("plot.svg");
        let plot = |more: &[&str]| {
            let output = ["-o", output.to_str().unwrap()];
            podracer(&[&["plot", &runs[0], &runs[1], &runs[2]], &output[..], more].concat())
        };
        let printed = plot(&["--metric=returns", "--metric=losses"]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let text = fs::read_to_string(&output).unwrap();
        for said in [
            "\nagent.clip = 0.1\n",
            "\nagent.clip = 0.2\n",
            "\nmean of 1 to 2 seeds; thin lines: seeds of lines with fewer than three\n",
        ] {
            assert_eq!(text.matches(said).count(), 1, "{said}: {text}");
        }
        assert_eq!(plot(&["--along=seconds", "--summary=iqm"]).code, 0);
        let text = fs::read_to_string(&output).unwrap();
        assert!(text.contains("interquartile mean of 1 to 2 seeds"), "{text}");
        let printed = plot(&["--metric=entropi"]);
        assert_eq!(printed.code, 2);
        let said = "the runs have no metric `entropi`; they have episodes, loss, mean_return";
        assert!(printed.err.contains(said), "{}", printed.err);
        let picture = folder.path().join("plot.png");
        assert_eq!(podracer(&["plot", &runs[0], "-o", picture.to_str().unwrap()]).code, 0);
        assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
        let printed = podracer(&["plot", &runs[0], "-o", "plot.jpg"]);
        let said = "must end in .svg, .pdf or .png";
        assert!(printed.code == 2 && printed.err.contains(said), "{}", printed.err);
    }

    /// Trains a run with this name, and returns its path.
    fn run(folder: &Path, name: &str, arguments: &[&str]) -> String {
        let path = folder.join(name).to_str().unwrap().to_owned();
        let train = ["train", "cartpole-ppo", "--run-dir", &path];
        assert_eq!(podracer(&[&train[..], arguments].concat()).code, 0);
        path
    }

    /// The text of a chart in one line, because notes are wrapped.
    fn unwrapped(chart: &str) -> String {
        let lines = chart.lines().filter(|line| !line.starts_with('<'));
        lines.collect::<Vec<_>>().join(" ")
    }

    /// The output of `plot` for these runs, and its chart.
    fn plot(folder: &Path, arguments: &[&str]) -> (Printed, String) {
        let output = folder.join("plot.svg");
        let printed = podracer(&[&["plot", "-o", output.to_str().unwrap()], arguments].concat());
        let chart = fs::read_to_string(output).unwrap_or_default();
        (printed, chart)
    }

    /// A logarithmic axis has no place for a return of 0 or below.
    #[test]
    fn values_that_are_not_positive_leave_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let run = run(folder, "a", &["--steps=40000"]);
        let metrics = Path::new(&run).join("metrics.jsonl");
        let line = |steps: u32, value: f64| {
            format!("{{\"env_steps\":{steps},\"mean_return\":{value},\"seconds\":1.0}}\n")
        };
        let note = "values that are not positive are left out";
        for (first, noted) in [(-1.0, true), (0.0, true), (0.5, false)] {
            fs::write(&metrics, line(10, first) + &line(20, 3.0) + &line(30, 40.0)).unwrap();
            for (more, noted) in [(&["--log"][..], noted), (&[], false)] {
                let (printed, chart) = plot(folder, &[&[&*run], more].concat());
                assert_eq!(printed.code, 0, "{}", printed.err);
                assert_eq!(unwrapped(&chart).contains(note), noted, "{first} {more:?}: {chart}");
            }
        }
    }

    /// Two seeds that are trained one after the other have a line each, over the time of day.
    #[test]
    fn runs_over_the_time_of_day_have_no_mean() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        // 2026-11-29 12:00 UTC.
        let noon = 1_795_953_600.0;
        let mut runs = Vec::new();
        for seed in 0..3 {
            let seed_text = format!("--seed={seed}");
            let run = run(folder, &format!("run-{seed}"), &["--steps=40000", &seed_text]);
            let line = |second: u32| {
                let time = noon + 1000.0 * f64::from(seed) + f64::from(second);
                format!(
                    "{{\"env_steps\":{second},\"mean_return\":2.0,\"seconds\":1.0,\"time\":{time}}}\n"
                )
            };
            let metrics = (1..=900).map(line).collect::<String>();
            fs::write(Path::new(&run).join("metrics.jsonl"), metrics).unwrap();
            runs.push(run);
        }
        let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
        let (printed, chart) = plot(folder, &[&runs[..], &["--along=clock"]].concat());
        assert_eq!(printed.code, 0, "{}", printed.err);
        for said in ["time of day (UTC)", "12:10", "12:20", "12:40"] {
            assert!(chart.contains(&format!("\n{said}\n")), "{said}: {chart}");
        }
        assert!(!unwrapped(&chart).contains("seeds; band"), "{chart}");
        let (_, chart) = plot(folder, &[&runs[..], &["--along=seconds"]].concat());
        assert!(unwrapped(&chart).contains("mean of 3 seeds; band"), "{chart}");
    }

    /// A line that ends with the shortest run comes with a warning.
    #[test]
    fn a_line_ends_with_the_shortest_run_silently() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let long = run(folder, "long", &["--steps=80000"]);
        let short = run(folder, "short", &["--steps=40000", "--seed=1"]);
        let (printed, chart) = plot(folder, &[&long, &short]);
        assert_eq!(printed.code, 0, "{}", printed.err);
        let said = format!(
            "warning: cartpole-ppo: the runs have different numbers of environment steps (`{long}` 81.9k, `{short}` 41.0k): their mean ends \
             with the shortest, at 41.0k environment steps, and longer runs continue as thin lines"
        );
        assert_eq!(printed.err.matches(&said).count(), 1, "{}", printed.err);
        let note = "mean: cartpole-ppo up to 41.0k environment steps, and thin lines beyond";
        assert!(unwrapped(&chart).contains(note), "{chart}");
    }

    /// A repeated seed is not an independent run, because the same machine gives the same numbers.
    #[test]
    fn a_repeated_seed_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let first = run(folder, "first", &["--steps=40000"]);
        let again = run(folder, "again", &["--steps=40000"]);
        let other = run(folder, "other", &["--steps=40000", "--seed=1"]);
        let said = format!("`{again}` has the settings and the seed (0) of `{first}`");
        let (printed, chart) = plot(folder, &[&first, &again, &other]);
        assert!(printed.err.contains(&said), "{}", printed.err);
        assert!(chart.contains("mean of 2 seeds"), "{chart}");
        let compared = podracer(&["runs", "compare", &first, &again, &other]);
        assert!(compared.err.contains(&said), "{}", compared.err);
        let row = compared.out.lines().nth(1).unwrap();
        assert_eq!(row.split_whitespace().nth(1), Some("2"), "{row}");
        let (printed, chart) = plot(folder, &[&first, &again]);
        assert_eq!(printed.err.matches("warning: ").count(), 1, "{}", printed.err);
        assert!(chart.contains("cartpole-ppo, seed 0") && !chart.contains("interval"), "{chart}");
    }

    /// `plot sweep` and `plot sweep/*` accept a folder that is no run, and its `arguments.json`.
    #[test]
    fn a_folder_of_runs_and_a_file_among_runs_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let sweep = folder.join("sweep");
        let runs = [
            run(&sweep, "a", &["--steps=40000"]),
            run(&sweep, "b", &["--steps=40000", "--seed=1"]),
        ];
        let file = sweep.join("arguments.json").to_str().unwrap().to_owned();
        fs::write(&file, "[]").unwrap();
        let sweep = sweep.to_str().unwrap();
        for named in [&[sweep][..], &[&file, &runs[0], &runs[1]], &[sweep, &runs[0]]] {
            let (printed, chart) = plot(folder, named);
            assert_eq!(printed.code, 0, "{}", printed.err);
            assert!(chart.contains("mean of 2 seeds"), "{chart}");
            let said = format!("note: skipped: `{file}` is a file, not a run directory");
            assert_eq!(printed.err.contains(&said), named.len() == 3, "{}", printed.err);
            let compared = podracer(&[&["runs", "compare"], named].concat());
            assert_eq!((compared.code, compared.out.lines().count()), (0, 2), "{}", compared.err);
            let table = folder.join("metrics.csv");
            let export = ["runs", "export", "-o", table.to_str().unwrap()];
            let exported = podracer(&[&export[..], named].concat());
            assert_eq!(exported.code, 0, "{}", exported.err);
        }
        let (printed, _) = plot(folder, &[&file]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("is a file, not a run directory"), "{}", printed.err);
    }

    /// Agents of two kinds have different settings; the legend does not list all of them in each
    /// line.
    #[test]
    fn agents_of_two_kinds_have_a_legend_of_all_their_settings() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let ppo = ["--steps=40000", "--set=agent.clip=0.1"];
        let a2c = ["--steps=40000", "--set=agent.kind=a2c"];
        let runs = [
            run(folder, "ppo", &["--steps=40000"]),
            run(folder, "clip", &ppo),
            run(folder, "a2c", &a2c),
        ];
        let runs = [&*runs[0], &runs[1], &runs[2]];
        let legend = |more: &[&str]| -> Vec<String> {
            let (printed, chart) = plot(folder, &[&runs, more].concat());
            assert_eq!(printed.code, 0, "{}", printed.err);
            let last = chart.lines().rev().filter(|line| !line.starts_with('<'));
            let mut last: Vec<String> = last.take(3).map(str::to_owned).collect();
            last.reverse();
            last
        };
        let expected = ["a2c", "ppo, agent.clip = 0.1", "ppo, agent.clip = 0.2"];
        assert_eq!(legend(&[]), expected);
        // Lines with the same label are distinguished.
        assert_eq!(legend(&["--label=agent.kind"]), expected);
        assert_eq!(
            legend(&["--label=agent.kind=a2c:Ours", "--label=agent.kind"]),
            ["Ours", "ppo, agent.clip = 0.1", "ppo, agent.clip = 0.2"]
        );
        let expected = ["agent.clip = 0.1, agent.kind = ppo", "agent.clip = 0.2, agent.kind = ppo"];
        assert_eq!(legend(&["--label=agent.kind", "--label=agent.clip"])[1..], expected);
        let (printed, _) = plot(folder, &runs);
        let own = "cartpole-ppo, a2c: ";
        assert!(printed.err.contains(own), "the settings of each kind: {}", printed.err);
        let compared = podracer(&[&["runs", "compare"], &runs[..]].concat());
        let head: Vec<&str> = compared.out.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head[..4], ["experiment", "agent.clip", "agent.kind", "runs"]);
        let (printed, _) = plot(folder, &[runs[0], "--label=agent.knd"]);
        assert_eq!(printed.code, 2);
        assert!(printed.err.contains("did you mean `agent.kind`"), "{}", printed.err);
    }
}
