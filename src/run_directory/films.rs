//! The animations of recorded episodes: `episodes/000000100.gif` shows the environment,
//! `episodes/000000100-agent.gif` the agent's own pictures.

use std::fs;
#[cfg(feature = "plots")]
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{EPISODES, RunDirectory};
#[cfg(feature = "plots")]
use super::{RunOverview, reading};
use crate::files::write_whole;

/// Greatest length of an animation in bytes.
#[cfg(feature = "plots")]
const LARGEST: u64 = 64 << 20;
/// End of the name of an animation with the agent's own pictures.
const AGENT: &str = "-agent";

/// The animation of an episode.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct FilmName {
    /// Number of iterations before the episode.
    pub(crate) iterations: u64,
    /// True for the agent's own pictures, false for the environment's.
    pub(crate) of_agent: bool,
}

impl FilmName {
    /// The name of the animation's file. Names sort in the order of the iterations.
    pub(crate) fn file(&self) -> String {
        let Self { iterations, of_agent } = self;
        format!("{iterations:09}{}.gif", if *of_agent { AGENT } else { "" })
    }

    /// The animation with this file name; `None` for other files.
    #[cfg(feature = "plots")]
    pub(crate) fn of(file: &str) -> Option<Self> {
        let stem = file.strip_suffix(".gif")?;
        let (number, of_agent) = match stem.strip_suffix(AGENT) {
            Some(number) => (number, true),
            None => (stem, false),
        };
        Some(FilmName { iterations: number.parse().ok()?, of_agent })
    }
}

impl RunDirectory {
    /// Writes the animation of an episode that was recorded after these environment steps, and
    /// shows it in TensorBoard.
    ///
    /// # Errors An error that names the file that cannot be written.
    pub(crate) fn record_film(
        &mut self,
        name: &FilmName,
        env_steps: u64,
        gif: &[u8],
    ) -> Result<()> {
        let folder = self.folder.inside().join(EPISODES);
        let cannot = || format!("cannot make `{}`", folder.display());
        let made = fs::create_dir_all(&folder).with_context(cannot);
        self.folder
            .naming_folder(made.and_then(|()| write_whole(&folder.join(name.file()), gif)))?;
        self.events.film(env_steps, if name.of_agent { "agent" } else { "episode" }, gif)
    }
}

#[cfg(feature = "plots")]
impl RunOverview {
    /// The animations of the run's recorded episodes, in order.
    pub(crate) fn films(&self) -> Vec<FilmName> {
        let Ok(entries) = fs::read_dir(self.run.join(EPISODES)) else { return Vec::new() };
        let name = |path: PathBuf| FilmName::of(path.file_name()?.to_str()?);
        let mut films: Vec<_> = entries.filter_map(|entry| name(entry.ok()?.path())).collect();
        films.sort();
        films
    }

    /// The bytes of an animation.
    ///
    /// # Errors
    /// An error if it cannot be read.
    pub(crate) fn film(&self, name: &FilmName) -> Result<Vec<u8>> {
        let file = format!("{EPISODES}/{}", name.file());
        reading::read(&self.run, &file, LARGEST)?
            .with_context(|| reading::cannot_read(&self.run, &file))
    }
}
