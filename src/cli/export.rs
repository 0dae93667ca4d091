//! `podracer export`: writes the programs of an experiment as StableHLO, with parameters.

use std::num::NonZero;

use anyhow::Result;

use super::arguments::ExportArguments;
use super::{Console, Program, open};
use crate::export::{self, Parameters};
use crate::parameters;
use crate::settings::Overrides;

pub(super) fn export(
    args: &ExportArguments,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let overrides = Overrides { seed: args.seed, set: args.set.clone(), ..Overrides::default() };
    let settings = program.registry.load(&args.experiment, &overrides)?;
    let programs = (program.build)(&settings)?.programs(args.batch.map(NonZero::get))?;
    let client;
    let parameters = match &args.run {
        Some(run) => {
            let trained = parameters::read(&run.join(parameters::FILE))?;
            if !args.allow_nan {
                parameters::check_finite(&trained)?;
            }
            Parameters::Trained(trained)
        }
        None => {
            let seed = settings.train.seed;
            console.say(&format!(
                "the parameters are those of an untrained agent, seed {seed}; --run RUN takes those that a run trained"
            ));
            client = open(&settings)?;
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
