//! Settings that are text, such as maps, boards and levels: from a file or from lines, and cell by cell.

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
    /// The system's words about it.
    pub(crate) problem: String,
}

impl Text {
    /// The text, lines with ends between them.
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

/// The number of columns of a rectangle of characters, and its cells, row by row. Spaces around lines and empty lines do not count.
///
/// `read` makes a cell of its row, its column and its character; `ragged` is the mistake of a row that has another number of cells than the first: the row's number, the cells
/// expected, the cells it has.
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
