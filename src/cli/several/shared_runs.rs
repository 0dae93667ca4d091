//! Several runs that the processes of a launcher divide: each process trains some of them, and the
//! first process reports for all.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result};
use podracer_runtime::World;

use super::Several;
use crate::run_directory::group;
use crate::settings::UsageError;

/// The indices of the runs that this process trains.
pub(crate) fn own(several: &Several<'_>, world: Option<World>) -> Result<Range<usize>, UsageError> {
    let number = several.runs.len();
    let Some(world) = world else { return Ok(0..number) };
    if number < world.size() {
        return Err(UsageError::new(format!(
            "{number} runs are fewer than the {} processes that were started, and each trains at least one",
            world.size()
        )));
    }
    if several.apart.only.is_some() || several.apart.launch.is_some() {
        return Err(UsageError::new(format!(
            "--only and --launch are for one process, and {} share the runs",
            world.size()
        )));
    }
    if several.exploit.is_some() {
        return Err(UsageError::new(format!(
            "--exploit-every is for runs of one program, and the {} processes have one each",
            world.size()
        )));
    }
    Ok(share(number, world.rank(), world.size()))
}

/// The share of one of several processes. The first processes have one run more if the number does
/// not divide.
fn share(number: usize, rank: usize, size: usize) -> Range<usize> {
    let first = |rank: usize| rank * (number / size) + rank.min(number % size);
    first(rank)..first(rank + 1)
}

/// The folder of the runs, made by the first process.
pub(crate) fn folder(several: &Several<'_>, world: Option<World>) -> Result<PathBuf> {
    let Some(world) = world else { return group(several.run_dir, &several.name) };
    let folder = match world.is_first() {
        true => group(several.run_dir, &several.name)?.display().to_string(),
        false => String::new(),
    };
    let folder = PathBuf::from(String::from_utf8(world.hear_first(folder.as_bytes())?)?);
    // If the processes share no disk, each has its runs on its own disk.
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_one_processs() {
        for (number, size) in [(4, 2), (5, 2), (7, 4), (4, 4)] {
            let shares: Vec<_> = (0..size).map(|rank| share(number, rank, size)).collect();
            assert_eq!(
                shares.iter().cloned().flatten().collect::<Vec<_>>(),
                (0..number).collect::<Vec<_>>()
            );
            let sizes = || shares.iter().map(ExactSizeIterator::len);
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1, "{shares:?}");
        }
    }
}
