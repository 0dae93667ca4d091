//! `podracer export`: writes the programs of an experiment as StableHLO, with parameters.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use podracer_runtime::{Array, Checkpoints};

use crate::cli::console::Console;
use crate::cli::devices::open;
use crate::cli::numbers::{at_least_one, number};
use crate::cli::program::Program;
use crate::export::{self, Parameters, Portable};
use crate::loading::Overrides;
use crate::run_directory::RunDirectory;
use crate::settings::{Settings, UsageError};

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// A built-in experiment (see `podracer list`), the path of a TOML file, or a run directory: its experiment with its parameters
    pub(crate) experiment: String,
    /// The folder to write
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: PathBuf,
    /// The run directory with the trained parameters [default: EXPERIMENT if it is a run, or else an untrained agent]
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Export even parameters that are NaN or infinite
    #[arg(long)]
    pub(crate) allow_nan: bool,
    /// With a run: export the parameters of the best evaluation during the training
    /// (train.eval_every)
    #[arg(long)]
    pub(crate) best: bool,
    /// Number of observations that the policy takes at once [default: one, without a batch axis]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = at_least_one("observation"))]
    pub(crate) batch: Option<NonZero<usize>>,
    /// Seed of an untrained agent's parameters
    #[arg(long, value_parser = number())]
    pub(crate) seed: Option<u64>,
    /// Change a setting, such as anakin.iterations_per_call=1 [repeatable]
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use the programs and folders that the experiment's files name, such as environment.python
    #[arg(long)]
    pub(crate) trust: bool,
}

pub(crate) fn export(
    args: &ExportArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let &ExportArguments { seed, ref set, trust, .. } = args;
    let overrides = Overrides { seed, set: set.clone(), trust, ..Overrides::default() };
    let registry = program.registry;
    let named = Path::new(&args.experiment);
    let known = registry.experiments().iter().any(|known| known.name == args.experiment);
    // A run in place of an experiment is exported with its own settings.
    let of_run = (!known && RunDirectory::is_run(named)).then_some(named);
    let settings = match of_run {
        Some(run) => RunDirectory::settings(run, &overrides, registry)?,
        None => registry.load(&args.experiment, &overrides)?,
    };
    let run = args.run.as_deref().or(of_run);
    if args.best && run.is_none() {
        let problem = "--best is for the parameters of a run: `--run RUN` names it";
        return Err(UsageError::new(problem).into());
    }
    let programs = (program.build)(&settings)?.programs(args.batch.map(NonZero::get))?;
    let client;
    let parameters = match run {
        Some(run) => {
            let trained = if args.best {
                export::of_checkpoint(&programs, &RunDirectory::find_best(run)?.checkpoint)?
            } else {
                trained(run, &settings, &programs, console)?
            };
            if !args.allow_nan {
                crate::parameters::check_finite(&trained)?;
            }
            Parameters::Trained(trained)
        }
        None => {
            let seed = settings.train.seed;
            console.say(&format!(
                "the parameters belong to an untrained agent, seed {seed}; --run RUN takes the parameters of a run"
            ));
            client = open(&settings, None, false)?;
            Parameters::Initial { client: &client, seed }
        }
    };
    let manifest = export::write(&args.output, &settings.experiment, &programs, parameters)?;
    let mut text = String::new();
    for program in manifest.programs.values() {
        let path = args.output.join(&program.file);
        text += &format!("{}: {}\n", path.display(), program.about);
    }
    console.print(&text)?;
    Ok(0)
}

/// The parameters of a run: its final parameters, or the parameters of its last good checkpoint if
/// the former are not good. A folder that is no run may be an export, or have only parameters.
fn trained(
    run: &Path,
    settings: &Settings,
    programs: &[Portable],
    console: &mut Console<'_>,
) -> Result<Vec<(String, Array)>> {
    if !RunDirectory::is_run(run) {
        return export::parameters(run);
    }
    let problem = match RunDirectory::parameters(run) {
        Ok(parameters) => return Ok(parameters),
        Err(problem) => problem,
    };
    let found = RunDirectory::find(run, settings, Checkpoints::latest_parameters)
        .with_context(|| format!("{problem:#}"))?;
    let skipped = found.skipped.iter().map(|skipped| format!("; {skipped}"));
    console.warn(&format!(
        "{problem:#}{}; the parameters of the checkpoint `{}` are taken",
        skipped.collect::<String>(),
        found.path.display()
    ));
    export::of_checkpoint(programs, &found.checkpoint)
}
