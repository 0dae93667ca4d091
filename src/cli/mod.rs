//! The command line: `podracer new|train|resume|eval|play|explain|profile|plot|report|watch|runs|cost|serve|ir|export|check|tune|describe|list|plugins|envs|
//! completions`.
//!
//! Each command has a file with its arguments, and `command` lists them. Related commands share a
//! folder: `session` has a training from its first call to its end, `several` has trainings of
//! several runs, `inspect` has commands that look at runs and trainings, and `ir` has commands for
//! programs. The test `tidy` lists the modules from the lowest: imports go one way.
//!
//! # Invariants
//! - Standard output has only the requested result; progress, logs and errors go to standard error.
//! - Exit codes: 0 success, 1 a failure, 2 a mistake in the command, a file or the settings, 130 stopped by a signal.
//! - Commands write through [`Console`] and reach experiments through [`Program`], so that tests
//!   see all output and need no training.

mod arguments;
mod command;
mod console;
mod cost;
mod describe;
mod devices;
mod envs;
mod eval;
mod inspect;
mod ir;
mod launch;
mod list;
mod named_runs;
mod new;
mod numbers;
mod order;
mod plugins;
mod processes;
mod program;
mod resume;
mod runs;
#[cfg(feature = "central")]
mod serve;
mod session;
mod several;
mod signals;
#[cfg(feature = "central")]
mod store;
mod together;
mod train;
mod tune;
#[cfg(feature = "central")]
mod work;

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use podracer_dsl::prelude::TraceErrors;
use podracer_runtime::World;
use rustix::process::{Resource, getrlimit};
use tracing_subscriber::EnvFilter;

use crate::program_name::{program_name, set_program_name};
use crate::run_directory::MessageKind;
use crate::settings::UsageError;

pub use console::Console;
pub use program::Program;

use command::{Arguments, Command};
use console::OutputError;
use envs::EnvsCommand;
use order::NotBegun;
use plugins::PluginsCommand;
use program::{FAILURE, USAGE};

/// Runs the command in the process's arguments.
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

/// Runs the command `arguments` (the program's name first), which stops early when `interrupt` is
/// set, and returns its exit code. `started` is the start time of the process.
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
        Command::Play(args) => inspect::play::play(&args, console, program, interrupt),
        Command::Explain(args) => inspect::explain::explain(&args, console, program, interrupt),
        Command::Ir { command } => ir::run(&command, console, program),
        Command::Profile(args) => inspect::profile::profile(&args, console, program, interrupt),
        Command::Export(args) => ir::export::export(&args, console, program),
        Command::Launch(args) => launch::launch(&args, console, program),
        Command::Check(args) => ir::check::check(&args, console, program),
        Command::Tune(args) => tune::tune(&args, program.registry, console, interrupt),
        Command::Sweep(args) => {
            several::sweep::sweep(&args, started, (console, interrupt), program)
        }
        Command::Describe { name, json } => {
            describe::describe(&name, json, program.registry, console)
        }
        #[cfg(feature = "plots")]
        Command::Plot(args) => inspect::plot::plot(&args, console),
        #[cfg(feature = "plots")]
        Command::Report(args) => inspect::report::report(&args, console),
        #[cfg(feature = "plots")]
        Command::Watch(args) => inspect::watch::watch(&args, console, interrupt),
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

/// Prints an error with its causes, and returns its exit code.
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
    // `podracer ir emit ... | head` is no failure.
    if error.chain().any(of_output) {
        return 0;
    }
    let mut text = String::new();
    for cause in error.chain() {
        // Each mistake of a trace already begins its line with `error:`.
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

/// The advice at the end of an error about a file that has reached its size limit; empty for other
/// errors.
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

/// Logs to standard error, at the level in `PODRACER_LOG` or else `RUST_LOG`; warnings by default.
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
    // Fails if a program that calls `main` already has a subscriber, which is then used.
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
