//! The command line: `podracer train|resume|eval|emit|export|check|opt|diff|tune|list|plugins|envs`.
//!
//! # Invariants
//! - Standard output has what was asked for and nothing else; progress, logs and errors go to standard error.
//! - Exit codes: 0 success, 1 a failure, 2 a mistake in the command, a file or the settings, 130 stopped by a signal.
//! - Commands write through [`Console`] and reach experiments through [`Build`], so that tests see all they print and need no
//!   training.

mod check;
mod console;
mod emit;
mod envs;
mod eval;
mod export;
mod format;
mod list;
mod opt;
mod plugins;
mod progress;
mod resume;
mod session;
mod signals;
mod summary;
mod tally;
mod target;
mod train;
mod tune;

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use podracer_runtime::{Client, ClientOptions, Plugin};
use tracing_subscriber::EnvFilter;

use crate::evaluation::Play;
use crate::settings::{Devices, Overrides, Settings, UsageError};
use crate::training::{Stage, Training};

pub use console::Console;
pub(crate) use format::count;

use console::OutputError;

/// How settings become a training loop.
pub type Build<'a> = &'a dyn Fn(&Settings) -> Result<Box<dyn Training>>;

const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Reinforcement learning loops, compiled as a whole by XLA.
#[derive(Debug, Parser)]
#[command(name = "podracer", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train an agent, and leave a run directory behind
    Train {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Where all randomness comes from
        #[arg(long, allow_negative_numbers = true)]
        seed: Option<u64>,
        /// Environment steps in all
        #[arg(long, allow_negative_numbers = true)]
        steps: Option<u64>,
        /// With [sebulba]: the devices that act (`0`, `0,1`) [default: a quarter of the devices]
        #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
        actors: Option<Vec<usize>>,
        /// With [sebulba]: the devices that learn (`1,2,3`) [default: those that do not act]
        #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
        learners: Option<Vec<usize>>,
        /// The run directory [default: the next free runs/<EXPERIMENT>-<seed>-<n>]
        #[arg(long, value_name = "FOLDER")]
        run_dir: Option<PathBuf>,
        /// Print the result as one JSON object, the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Go on with a training that was stopped, from its last checkpoint, in the same run directory
    Resume {
        /// The run directory
        run: PathBuf,
        /// Environment steps in all, those already done included [default: as before]; a learning rate that is annealed
        /// goes on by the schedule of the new total
        #[arg(long)]
        steps: Option<u64>,
        /// The devices [default: as before; with another number of them what follows is another run than without the stop]
        #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
        devices: Option<Devices>,
        /// With [sebulba]: the devices that act, as many as before
        #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
        actors: Option<Vec<usize>>,
        /// With [sebulba]: the devices that learn
        #[arg(long, value_name = "DEVICES", value_delimiter = ',')]
        learners: Option<Vec<usize>>,
        /// Print the result as one JSON object, the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Play whole episodes with what a run has learnt, as of its last checkpoint
    Eval {
        /// The run directory
        run: PathBuf,
        /// How many episodes
        #[arg(long, default_value_t = NonZero::<usize>::MIN.saturating_add(99))]
        episodes: NonZero<usize>,
        /// Where all that is random in them comes from; no seed repeats episodes of the training
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Draw actions from the policy, as in training, instead of taking the one that it takes to be best
        #[arg(long)]
        sample: bool,
        /// Print the result as one JSON object, the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Print the training loop on its way from the source to the device
    Emit {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// How far on its way
        #[arg(long, value_enum)]
        stage: Stage,
    },
    /// Write the programs of an experiment as StableHLO, with parameters, to run them without podracer
    Export {
        /// A built-in experiment (see `podracer list`) or the path of a TOML file
        experiment: String,
        /// The folder to write
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
        /// The run directory whose trained parameters are exported [default: those of an untrained agent]
        #[arg(long, value_name = "RUN")]
        run: Option<PathBuf>,
        /// How many observations the policy takes at once [default: one, without an axis for it]
        #[arg(long, value_name = "N")]
        batch: Option<NonZero<usize>>,
        /// Where an untrained agent's parameters come from
        #[arg(long)]
        seed: Option<u64>,
        /// Change a setting, such as anakin.updates_per_call=1 [repeatable]
        #[arg(long, value_name = "TABLE.KEY=VALUE")]
        set: Vec<String>,
    },
    /// Compile the training loop for a machine that is not there, and report on it
    Check {
        /// A built-in experiment (see `podracer list`) or the path of a TOML file
        experiment: String,
        /// The machine, such as tpu:v5e:2x4 or tpu:v3:32x32
        #[arg(long)]
        target: String,
        /// Change a setting
        #[arg(long, value_name = "TABLE.KEY=VALUE")]
        set: Vec<String>,
        /// Print the report as one JSON object, the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// Run passes over a program given as the text of the IR, as `podracer emit --stage trace` prints it
    #[command(after_help = opt::passes_help())]
    Opt {
        /// The file; `-` for standard input
        file: String,
        /// A pass, see below [repeatable, in order]
        #[arg(long, value_name = "PASS")]
        pass: Vec<String>,
        /// What to print in the end
        #[arg(long, value_enum, default_value_t = opt::Print::Ir)]
        print: opt::Print,
    },
    /// Compare two programs given as the text of the IR; the exit code is 1 if they differ
    Diff {
        /// A file; `-` for standard input
        left: String,
        /// Another
        right: String,
    },
    /// Train with different settings for some seconds each, and say which are fastest
    Tune {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Values to try, such as sebulba.threads=1,2,4 [repeatable: every combination is tried] [default: sizes of the
        /// loop that fit the experiment]
        #[arg(long = "try", value_name = "TABLE.KEY=VALUE,VALUE")]
        tries: Vec<String>,
        /// Seconds of training for each, after it is compiled
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Write the experiment with the fastest settings to this TOML file
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print the report as one JSON object, the last line of standard output
        #[arg(long)]
        json: bool,
    },
    /// List the built-in experiments
    List,
    /// List or install the PJRT plugins through which XLA drives devices
    Plugins {
        #[command(subcommand)]
        command: PluginsCommand,
    },
    /// List or install the Python packages that environments in processes of their own need
    Envs {
        #[command(subcommand)]
        command: EnvsCommand,
    },
}

#[derive(Args, Debug)]
struct ExperimentArguments {
    /// A built-in experiment (see `podracer list`) or the path of a TOML file
    experiment: String,
    /// The devices: how many, `all`, or which (`0,3`)
    #[arg(long, value_parser = Devices::parse, allow_negative_numbers = true)]
    devices: Option<Devices>,
    /// Change a setting, such as agent.learning_rate=1e-3 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum PluginsCommand {
    /// Where each plugin is
    List,
    /// Download a plugin's pinned wheel with pip, check it and unpack it
    Install {
        /// cpu, cuda13 or tpu
        name: String,
    },
}

#[derive(Debug, Subcommand)]
enum EnvsCommand {
    /// Where each set of packages is
    List,
    /// Install a set of packages, in pinned versions, with pip
    Install {
        /// gymnasium, atari, mujoco or envpool
        name: String,
    },
}

/// The whole program, with experiments of one's own: `fn main() -> ExitCode { podracer::cli::main(&build) }`.
#[must_use]
pub fn main(build: Build<'_>) -> ExitCode {
    static INTERRUPT: AtomicBool = AtomicBool::new(false);
    let started = Instant::now();
    let terminal = io::stderr().is_terminal();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        terminal,
    };
    if let Err(error) = signals::listen(&INTERRUPT).and_then(|()| log(terminal)) {
        return report(&error, &mut console).into();
    }
    run(
        std::env::args_os(),
        &mut console,
        build,
        &INTERRUPT,
        started,
    )
    .into()
}

/// Runs the command `arguments` (the program's name first), which stops early when `interrupt` is set, and returns its exit code.
/// `started` is when the process began.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    console: &mut Console<'_>,
    build: Build<'_>,
    interrupt: &AtomicBool,
    started: Instant,
) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let stream: &mut dyn Write = if error.use_stderr() {
                console.err
            } else {
                console.out
            };
            let _ = write!(stream, "{}", error.render());
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    let done = match arguments.command {
        Command::Train {
            experiment,
            seed,
            steps,
            actors,
            learners,
            run_dir,
            json,
        } => {
            let overrides = Overrides {
                seed,
                steps,
                actors,
                learners,
                devices: experiment.devices,
                set: experiment.set,
            };
            let order = train::Order {
                experiment: &experiment.experiment,
                overrides: &overrides,
                run_dir: run_dir.as_deref(),
                json,
                started,
            };
            train::train(&order, console, build, interrupt)
        }
        Command::Resume {
            run,
            steps,
            devices,
            actors,
            learners,
            json,
        } => {
            let overrides = Overrides {
                steps,
                devices,
                actors,
                learners,
                ..Overrides::default()
            };
            let order = resume::Order {
                run: &run,
                overrides: &overrides,
                json,
                started,
            };
            resume::resume(&order, console, build, interrupt)
        }
        Command::Eval {
            run,
            episodes,
            seed,
            sample,
            json,
        } => {
            let play = Play {
                episodes: episodes.get(),
                seed,
                sampled: sample,
            };
            eval::eval(&run, &play, json, console, build, interrupt)
        }
        Command::Emit { experiment, stage } => {
            let overrides = Overrides {
                devices: experiment.devices,
                set: experiment.set,
                ..Overrides::default()
            };
            emit::emit(&experiment.experiment, &overrides, stage, console, build)
        }
        Command::Export {
            experiment,
            output,
            run,
            batch,
            seed,
            set,
        } => {
            let overrides = Overrides {
                seed,
                set,
                ..Overrides::default()
            };
            let run = run.as_deref();
            export::export(&experiment, &overrides, &output, run, batch, console, build)
        }
        Command::Check {
            experiment,
            target,
            set,
            json,
        } => {
            let overrides = Overrides {
                set,
                ..Overrides::default()
            };
            check::check(&experiment, &overrides, &target, json, console, build)
        }
        Command::Opt { file, pass, print } => opt::opt(&file, &pass, print, console),
        Command::Diff { left, right } => opt::diff(&left, &right, console),
        Command::Tune {
            experiment,
            tries,
            seconds,
            output,
            json,
        } => {
            let devices = experiment.devices.iter();
            let mut set: Vec<String> = devices
                .map(|devices| format!("train.devices={}", devices.to_value()))
                .collect();
            set.extend(experiment.set);
            let order = tune::Order {
                experiment: &experiment.experiment,
                set: &set,
                tries: &tries,
                seconds,
                output: output.as_deref(),
                json,
            };
            tune::tune(&order, console, interrupt)
        }
        Command::List => list::list(console),
        Command::Plugins { command } => match command {
            PluginsCommand::List => plugins::list(console),
            PluginsCommand::Install { name } => plugins::install(&name, console),
        },
        Command::Envs { command } => match command {
            EnvsCommand::List => envs::list(console),
            EnvsCommand::Install { name } => envs::install(&name, console),
        },
    };
    done.unwrap_or_else(|error| report(&error, console))
}

/// Prints an error with its causes, and says which exit code it deserves.
fn report(error: &anyhow::Error, console: &mut Console<'_>) -> u8 {
    let of_output = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<OutputError>();
        kind.is_some_and(|OutputError(error)| error.kind() == ErrorKind::BrokenPipe)
    };
    // `podracer emit ... | head` is no failure.
    if error.chain().any(of_output) {
        return 0;
    }
    let _ = writeln!(console.err, "error: {error:#}");
    if error.downcast_ref::<UsageError>().is_some() {
        USAGE
    } else {
        FAILURE
    }
}

/// Opens the devices that the settings ask for.
fn open(settings: &Settings) -> Result<Client> {
    let plugin = Plugin::load(&settings.train.platform)?;
    // Where actors and learners are on different devices, a CPU has as many as are named.
    let named = settings.sebulba.as_ref().map_or(0, |sebulba| {
        let devices = match &settings.train.devices {
            Devices::All => 0,
            Devices::Count(count) => *count,
            Devices::List(list) => list.iter().map(|index| index + 1).max().unwrap_or(0),
        };
        devices.max(sebulba.devices_named())
    });
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let cpu_devices = (plugin.name() == "cpu" && named > cores).then_some(named);
    Ok(Client::new(plugin, ClientOptions { cpu_devices })?)
}

/// Logs to standard error, as `PODRACER_LOG` or else `RUST_LOG` says; warnings where neither says anything.
fn log(terminal: bool) -> Result<()> {
    let from = |variable: &str| {
        let value = std::env::var(variable)
            .ok()
            .filter(|value| !value.is_empty())?;
        let problem = format!(
            "{variable} is `{value}` and must be a level (error, warn, info, debug, trace) or a list of target=level"
        );
        Some(EnvFilter::try_new(value).map_err(|_| UsageError::new(problem)))
    };
    let filter = from("PODRACER_LOG")
        .or_else(|| from("RUST_LOG"))
        .transpose()?
        .unwrap_or_else(|| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(terminal)
        .with_writer(io::stderr);
    // Fails where a program that calls `main` has a subscriber already, which is then the one to use.
    let _ = subscriber.try_init();
    Ok(())
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
