//! Settings that are text, such as maps, boards and levels: reading from a file or from lines, cell
//! by cell.

use std::path::PathBuf;

use serde::Deserialize;

/// The path of a text file, or the lines of the text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    File(PathBuf),
    Lines(Vec<String>),
}

/// A file that cannot be read.
pub(crate) struct Unreadable {
    pub(crate) path: String,
    /// The system's error message.
    pub(crate) problem: String,
}

impl Text {
    /// The text, with line ends between the lines.
    pub(crate) fn read(self) -> Result<String, Unreadable> {
        match self {
            Text::Lines(lines) => Ok(lines.join("\n")),
            Text::File(path) => std::fs::read_to_string(&path).map_err(|error| Unreadable {
                path: path.display().to_string(),
                problem: error.to_string(),
            }),
        }
    }
}

/// The number of columns of a rectangle of characters, and its cells, row by row. Spaces around
/// lines and empty lines are ignored.
///
/// `read` makes a cell from its row, its column and its character. `ragged` makes the error for a
/// row with a number of cells other than the first row's, from the row's number, the expected
/// number and the actual number of cells.
pub(crate) fn cells<T, E>(
    text: &str,
    mut read: impl FnMut(usize, usize, char) -> Result<T, E>,
    ragged: impl FnOnce(usize, usize, usize) -> E,
) -> Result<(usize, Vec<T>), E> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut columns, mut cells) = (0, Vec::new());
    for (row, line) in lines.enumerate() {
        for (column, character) in line.chars().enumerate() {
            cells.push(read(row, column, character)?);
        }
        let got = line.chars().count();
        if row == 0 {
            columns = got;
        } else if got != columns {
            return Err(ragged(row, columns, got));
        }
    }
    Ok((columns, cells))
}
