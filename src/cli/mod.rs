//! The command line: `podracer new|train|resume|eval|play|explain|profile|memory|plot|report|watch|runs|cost|serve|emit|export|check|opt|diff|tune|describe|list|plugins|envs|
//! completions`.
//!
//! # Invariants
//! - Standard output has what was asked for and nothing else; progress, logs and errors go to standard error.
//! - Exit codes: 0 success, 1 a failure, 2 a mistake in the command, a file or the settings, 130 stopped by a signal.
//! - Commands write through [`Console`] and reach experiments through [`Program`], so that tests see all they print and need no
//!   training.

mod arguments;
mod axes;
mod calls;
mod check;
mod console;
mod cost;
#[cfg(feature = "plots")]
mod curves;
mod describe;
mod emit;
mod envs;
mod eval;
mod evaluations;
mod explain;
mod export;
#[cfg_attr(not(feature = "prometheus"), path = "no_exporter.rs")]
mod exporter;
mod launch;
mod list;
mod memory;
mod named_runs;
mod new;
mod numbers;
mod one_by_one;
mod one_program;
mod opt;
mod outcomes;
mod play;
#[cfg(feature = "plots")]
mod plot;
mod plugins;
mod population;
mod processes;
mod profile;
mod progress;
mod ready;
mod recorder;
#[cfg(feature = "plots")]
mod report;
mod resume;
mod runs;
#[cfg(feature = "central")]
mod serve;
mod session;
mod shared_runs;
mod signals;
#[cfg(feature = "central")]
mod store;
mod summary;
mod sweep;
mod target;
mod together;
mod totals;
mod train;
mod tune;
mod versus;
#[cfg(feature = "plots")]
mod watch;
#[cfg(feature = "central")]
mod work;

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use podracer_dsl::prelude::TraceErrors;
use podracer_runtime::{Client, ClientOptions, Plugin, World};
use rustix::process::{Resource, getrlimit};
use tracing_subscriber::EnvFilter;

pub(crate) use crate::program_name::program_name;
use crate::program_name::set_program_name;
use crate::registry::Registry;
use crate::run_directory::MessageKind;
use crate::settings::{Settings, UsageError};
use crate::training::Training;

pub use console::Console;

use arguments::{Arguments, Command};
use console::OutputError;
use envs::EnvsCommand;
use plugins::PluginsCommand;
use together::NotBegun;

/// A program's agents, environments and experiments, and the function that makes a training of settings.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// The agents, environments and experiments.
    pub registry: &'a Registry,
    /// Makes the training loop of settings.
    pub build: &'a dyn Fn(&Settings) -> Result<Box<dyn Training>>,
}

const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Runs the command of the process's arguments.
#[must_use]
pub(crate) fn main(program: Program<'_>) -> ExitCode {
    static INTERRUPT: AtomicBool = AtomicBool::new(false);
    let started = Instant::now();
    let path = std::env::args_os().next().map(PathBuf::from);
    if let Some(name) = path.as_deref().and_then(Path::file_name) {
        set_program_name(name.to_string_lossy().into_owned());
    }
    let terminal = io::stderr().is_terminal();
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut console = Console::new(&mut out, &mut err, terminal);
    let ready = signals::listen(&INTERRUPT)
        .and_then(|()| log(terminal))
        .and_then(|()| Ok(program.registry.check()?));
    if let Err(error) = ready {
        return report(&error, &mut console).into();
    }
    run(std::env::args_os(), &mut console, program, &INTERRUPT, started).into()
}

/// Runs the command `arguments` (the program's name first), which stops early when `interrupt` is set, and returns its exit code.
/// `started` is when the process began.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    console: &mut Console<'_>,
    program: Program<'_>,
    interrupt: &AtomicBool,
    started: Instant,
) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let stream: &mut dyn Write = if error.use_stderr() { console.err } else { console.out };
            let _ = write!(stream, "{}", error.render());
            return u8::try_from(error.exit_code()).unwrap_or(USAGE);
        }
    };
    let done = match arguments.command {
        Command::New(args) => new::new(&args, console),
        Command::Train(args) => train::train(&args, started, console, program, interrupt),
        Command::Resume(args) => resume::resume(&args, started, console, program, interrupt),
        Command::Eval(args) => eval::eval(&args, console, program, interrupt),
        Command::Play(args) => play::play(&args, console, program, interrupt),
        Command::Explain(args) => explain::explain(&args, console, program, interrupt),
        Command::Emit(args) => emit::emit(&args, console, program),
        Command::Memory(args) => memory::memory(&args, console, program),
        Command::Profile(args) => profile::profile(&args, console, program, interrupt),
        Command::Export(args) => export::export(&args, console, program),
        Command::Launch(args) => launch::launch(&args, console, program),
        Command::Check(args) => check::check(&args, console, program),
        Command::Tune(args) => tune::tune(&args, program.registry, console, interrupt),
        Command::Sweep(args) => sweep::sweep(&args, started, (console, interrupt), program),
        Command::Opt { file, pass, print } => opt::opt(&file, &pass, print, console),
        Command::Diff { left, right } => opt::diff(&left, &right, console),
        Command::Describe { name, json } => {
            describe::describe(&name, json, program.registry, console)
        }
        #[cfg(feature = "plots")]
        Command::Plot(args) => plot::plot(&args, console),
        #[cfg(feature = "plots")]
        Command::Report(args) => report::report(&args, console),
        #[cfg(feature = "plots")]
        Command::Watch(args) => watch::watch(&args, console, interrupt),
        Command::Runs(args) => runs::runs(&args, console),
        Command::Cost(args) => cost::cost(&args, console, program),
        Command::Completions { shell } => completions(shell, console),
        Command::List => list::list(program.registry, console),
        #[cfg(feature = "central")]
        Command::Serve(args) => serve::serve(&args, started, console, program, interrupt),
        #[cfg(feature = "central")]
        Command::Work(args) => work::run(&args, program.registry, console, interrupt),
        #[cfg(feature = "central")]
        Command::Certificates { command } => work::new_certificates(&command, console),
        Command::Plugins { command } => match command {
            PluginsCommand::List => plugins::list(console),
            PluginsCommand::Install { name } => plugins::install(&name, console),
        },
        Command::Envs { command } => match command {
            EnvsCommand::List => envs::list(console),
            EnvsCommand::Install { name } => envs::install(&name, console),
        },
    };
    let all = done.as_ref().err().is_none_or(|error| error.is::<NotBegun>());
    let code = done.unwrap_or_else(|error| report(&error, console));
    match World::joined() {
        Some(world) => together::end(world, code, all, console),
        None => code,
    }
}

/// Prints the completions of a shell.
fn completions(shell: clap_complete::Shell, console: &mut Console<'_>) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), program_name(), &mut text);
    console.print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// Prints an error with its causes, and says which exit code it deserves.
fn report(error: &anyhow::Error, console: &mut Console<'_>) -> u8 {
    let not_begun = error.downcast_ref::<NotBegun>();
    let mistake = error.is::<UsageError>() || not_begun.is_some_and(|error| error.mistake);
    let code = if mistake { USAGE } else { FAILURE };
    if not_begun.is_some_and(|error| !error.tells) {
        return code;
    }
    let of_output = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<OutputError>();
        kind.is_some_and(|OutputError(error)| error.kind() == ErrorKind::BrokenPipe)
    };
    // `podracer emit ... | head` is no failure.
    if error.chain().any(of_output) {
        return 0;
    }
    let mut text = String::new();
    for cause in error.chain() {
        // Each mistake of a trace is a line that begins with `error:` itself.
        text += match (text.is_empty(), cause.is::<TraceErrors>()) {
            (true, true) => "",
            (true, false) => "error: ",
            (false, true) => ":\n",
            (false, false) => ": ",
        };
        text += &cause.to_string();
    }
    text += &limit(error);
    console.say(&text);
    console.keep(MessageKind::Error, &text);
    code
}

/// The advice at the end of an error of a file that has grown as large as it may; empty for other errors.
fn limit(error: &anyhow::Error) -> String {
    let too_large = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        kind == Some(ErrorKind::FileTooLarge)
    };
    match getrlimit(Resource::Fsize).current {
        Some(bytes) if error.chain().any(too_large) => format!(
            "; a file of this process may have at most {bytes} bytes: raise that limit (`ulimit -f`)"
        ),
        _ => String::new(),
    }
}

/// Greatest number of devices that a CPU is divided into: XLA takes minutes and gigabytes for tens of thousands.
const MOST_CPU_DEVICES: usize = 1024;

#[cfg(feature = "central")]
use store::of_all as store_of_all;

#[cfg(not(feature = "central"))]
fn store_of_all(_: World) -> Result<&'static dyn podracer_runtime::pjrt::KeyValueStore> {
    Err(UsageError::new("several processes train together on GPUs with the feature `central`, which this program is built without").into())
}

/// Opens the devices that the settings ask for; with `one_thread` one device of a CPU, whose kernels are each the work of one thread.
fn open(settings: &Settings, world: Option<World>, one_thread: bool) -> Result<Client> {
    // Where actors and learners are on different devices, a CPU has as many as are named.
    let training_loop = &settings.training_loop;
    let named = match training_loop.host() {
        None => 0,
        Some(_) => settings.train.devices.named().max(training_loop.devices_named()),
    };
    if settings.train.platform == "cpu" && named > MOST_CPU_DEVICES {
        return Err(UsageError::new(format!(
            "{named} devices are asked for, and a CPU is divided into at most {MOST_CPU_DEVICES}"
        ))
        .into());
    }
    let plugin = Plugin::load(&settings.train.platform)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let (cpu_devices, cpu_threads) = match one_thread {
        true => (Some(1), NonZero::new(1)),
        false => ((plugin.name() == "cpu" && named > cores).then_some(named), None),
    };
    let store = world.filter(|_| plugin.name() == "cuda13").map(store_of_all).transpose()?;
    let options = ClientOptions { cpu_devices, cpu_threads, world, store };
    Ok(Client::new(plugin, options)?)
}

/// Picks the devices that act and learn, with warnings, and checks that the lanes divide over them. `devices` are those of
/// the machine, and afterwards those of the run.
fn decide(
    settings: &mut Settings,
    devices: &mut Vec<usize>,
    registry: &Registry,
    console: &mut Console<'_>,
) -> Result<(), UsageError> {
    for warning in settings.decide(devices, registry)? {
        console.warn(&warning);
    }
    settings.check_division(devices.len() * settings.processes(), registry)
}

/// Logs to standard error, as `PODRACER_LOG` or else `RUST_LOG` says; warnings where neither says anything.
fn log(terminal: bool) -> Result<()> {
    let from = |variable: &str| {
        let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
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
mod environment_reports;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod tests;
