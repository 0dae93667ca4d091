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
    let &ExportArguments { seed, ref set, trust, .. } = args;
    let overrides = Overrides { seed, set: set.clone(), trust, ..Overrides::default() };
    let settings = program.registry.load(&args.experiment, &overrides)?;
    let programs = (program.build)(&settings)?.programs(args.batch.map(NonZero::get))?;
    let client;
    let parameters = match &args.run {
        Some(run) => Parameters::Trained(parameters::read(&run.join(parameters::FILE))?),
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
