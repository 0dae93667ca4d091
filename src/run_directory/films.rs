//! The films of recorded episodes: `episodes/000000100.gif` shows the environment, `episodes/000000100-agent.gif` what the agent draws of itself.

use std::fs;
#[cfg(feature = "plots")]
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{EPISODES, RunDirectory};
#[cfg(feature = "plots")]
use super::{RunOverview, reading};
use crate::files::write_whole;

/// Greatest length of a film in bytes.
#[cfg(feature = "plots")]
const LARGEST: u64 = 64 << 20;
/// End of the name of a film that shows the agent's own pictures.
const AGENT: &str = "-agent";

/// The film of an episode.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct FilmName {
    /// Iterations before the episode.
    pub(crate) iterations: u64,
    /// True for the agent's own pictures, false for the environment's.
    pub(crate) of_agent: bool,
}

impl FilmName {
    /// The name of a film's file, whose order is that of the iterations.
    pub(crate) fn file(&self) -> String {
        let Self { iterations, of_agent } = self;
        format!("{iterations:09}{}.gif", if *of_agent { AGENT } else { "" })
    }

    /// The film of a file's name; `None` for a file of another kind.
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
    /// Writes the film of an episode that was recorded after so many environment steps, and shows it in TensorBoard.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn record_film(
        &mut self,
        name: &FilmName,
        env_steps: u64,
        gif: &[u8],
    ) -> Result<()> {
        let folder = self.folder.inside().join(EPISODES);
        let cannot = || format!("cannot make `{}`", folder.display());
        let made = fs::create_dir_all(&folder).with_context(cannot);
        self.folder.told(made.and_then(|()| write_whole(&folder.join(name.file()), gif)))?;
        self.events.film(env_steps, if name.of_agent { "agent" } else { "episode" }, gif)
    }
}

#[cfg(feature = "plots")]
impl RunOverview {
    /// The films of the run's recorded episodes, in their order.
    pub(crate) fn films(&self) -> Vec<FilmName> {
        let Ok(entries) = fs::read_dir(self.run.join(EPISODES)) else { return Vec::new() };
        let name = |path: PathBuf| FilmName::of(path.file_name()?.to_str()?);
        let mut films: Vec<_> = entries.filter_map(|entry| name(entry.ok()?.path())).collect();
        films.sort();
        films
    }

    /// The bytes of a film.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(crate) fn film(&self, name: &FilmName) -> Result<Vec<u8>> {
        let file = format!("{EPISODES}/{}", name.file());
        reading::read(&self.run, &file, LARGEST)?
            .with_context(|| reading::cannot_read(&self.run, &file))
    }
}
