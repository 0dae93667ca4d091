//! Sokoban levels, on the host: read from text.

use crate::text::{Text, Unreadable};

use serde::{Deserialize, Serialize};

/// Levels of Sokoban.
///
/// As text, each level consists of lines of cells: `#` is a wall, a space a free cell, `$` a box,
/// `.` a target, `@` the player. Lines that begin with `;`, and empty lines, separate levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Vec<String>")]
pub struct Levels(Vec<Vec<String>>);

/// Mistakes in the text of levels. Levels, rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LevelError {
    /// A file that cannot be read.
    #[error("cannot read the levels `{path}`: {problem}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error message.
        problem: String,
    },
    /// An unknown character.
    #[error(
        "level {level}, row {row}: expected '#' (wall), ' ' (free), '$' (box), '.' (target) or '@' (player), got {got:?}"
    )]
    Character {
        /// Number of the level.
        level: usize,
        /// Row in the level.
        row: usize,
        /// The character that stands there.
        got: char,
    },
    /// A text without levels.
    #[error("there is no level: a level is some lines of '#', ' ', '$', '.' and '@'")]
    None,
}

impl TryFrom<Text> for Levels {
    type Error = LevelError;

    fn try_from(text: Text) -> Result<Self, LevelError> {
        let unreadable = |Unreadable { path, problem }| LevelError::File { path, problem };
        Levels::parse(&text.read().map_err(unreadable)?)
    }
}

impl From<Levels> for Vec<String> {
    fn from(levels: Levels) -> Self {
        let separated = levels.0.into_iter().map(|rows| [vec![";".to_owned()], rows].concat());
        separated.flatten().collect()
    }
}

impl Levels {
    /// Reads levels from text.
    ///
    /// # Errors
    /// [`LevelError`] with the position of the first mistake.
    pub fn parse(text: &str) -> Result<Levels, LevelError> {
        let mut levels: Vec<Vec<String>> = vec![Vec::new()];
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            let (level, rows) = (levels.len() - 1, levels.last_mut().expect("a level"));
            if line.trim().is_empty() || line.starts_with(';') {
                if !rows.is_empty() {
                    levels.push(Vec::new());
                }
                continue;
            }
            if let Some(got) = line.chars().find(|one| !"# $.@".contains(*one)) {
                return Err(LevelError::Character { level, row: rows.len(), got });
            }
            rows.push(line.to_owned());
        }
        levels.retain(|rows| !rows.is_empty());
        if levels.is_empty() { Err(LevelError::None) } else { Ok(Levels(levels)) }
    }

    /// Number of levels.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The characters of all cells, level by level and row by row.
    pub(super) fn cells(&self) -> Vec<u8> {
        self.0.iter().flatten().flat_map(|row| row.bytes()).collect()
    }

    /// Checks that levels have `size` rows and columns, with a wall around them, `boxes` boxes and
    /// targets, and a player.
    pub(super) fn check(&self, size: usize, boxes: usize) -> Result<(), String> {
        for (number, rows) in self.0.iter().enumerate() {
            let count = |kind: u8| {
                rows.iter().flat_map(|row| row.bytes()).filter(|&one| one == kind).count()
            };
            let problem = if rows.len() != size || rows.iter().any(|row| row.len() != size) {
                format!("is not {size} by {size} cells, environment.size")
            } else if count(b'$') != boxes || count(b'.') != boxes {
                format!(
                    "has {} boxes and {} targets, and environment.boxes is {boxes}",
                    count(b'$'),
                    count(b'.')
                )
            } else if count(b'@') != 1 {
                format!("has {} players: one '@' is needed", count(b'@'))
            } else if !is_walled(rows) {
                "has a hole in the wall around it".to_owned()
            } else {
                continue;
            };
            return Err(format!("level {number} of environment.levels {problem}"));
        }
        Ok(())
    }
}

/// True for rows with a wall around them.
fn is_walled(rows: &[String]) -> bool {
    let solid = |row: &String| row.bytes().all(|one| one == b'#');
    let closed = |row: &String| row.starts_with('#') && row.ends_with('#');
    rows.first().is_some_and(solid) && rows.last().is_some_and(solid) && rows.iter().all(closed)
}
