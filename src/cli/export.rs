//! `podracer export`

use std::num::NonZero;
use std::path::Path;

use anyhow::Result;

use super::{Console, Program, open};
use crate::export::{self, Parameters};
use crate::parameters;
use crate::settings::Overrides;

pub(super) fn export(
    experiment: &str,
    overrides: &Overrides,
    folder: &Path,
    run: Option<&Path>,
    batch: Option<NonZero<usize>>,
    console: &mut Console<'_>,
    program: Program<'_>,
) -> Result<u8> {
    let settings = program.registry.load(experiment, overrides)?;
    let programs = (program.build)(&settings)?.programs(batch.map(NonZero::get))?;
    let client;
    let parameters = match run {
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
    let manifest = export::write(folder, &settings.experiment, &programs, parameters)?;
    let mut text = String::new();
    for program in manifest.programs.values() {
        let path = folder.join(&program.file);
        text += &format!("{}: {}\n", path.display(), program.about);
    }
    console.print(&text)?;
    Ok(0)
}
