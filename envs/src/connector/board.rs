//! User-defined circuit boards, on the host: read from text.

use crate::text::{self, Text, Unreadable};
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A circuit board: pins to connect in pairs, and obstacles.
///
/// As text it has one line per row: `.` is a free cell, `#` an obstacle, and a letter from `A` to
/// `Z` one of the two pins of a wire. Spaces around lines and empty lines are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Vec<String>")]
pub struct Board {
    rows: usize,
    columns: usize,
    /// Obstacles, row by row.
    obstacles: Vec<bool>,
    /// The pins of each wire, in the order of the letters.
    wires: BTreeMap<char, [Pin; 2]>,
}

/// The row and column of a pin.
pub(super) type Pin = (usize, usize);

/// Mistakes in the text of a board. Rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// A file that cannot be read.
    #[error("cannot read the board `{path}`: {problem}")]
    File {
        /// Path of the file.
        path: String,
        /// The system's error message.
        problem: String,
    },
    /// A character other than `.`, `#` and the letters from `A` to `Z`.
    #[error(
        "row {row}, column {column}: expected '.' (free), '#' (obstacle) or a pin from 'A' to 'Z', got {got:?}"
    )]
    Character {
        /// Row of the cell.
        row: usize,
        /// Column of the cell.
        column: usize,
        /// The character that stands there.
        got: char,
    },
    /// Rows of different lengths.
    #[error("row {row} has {got} cells, row 0 has {expected}")]
    Ragged {
        /// The row that differs.
        row: usize,
        /// Number of cells in the first row.
        expected: usize,
        /// Number of cells in this row.
        got: usize,
    },
    /// A wire without two pins.
    #[error("wire {wire} has {got} pins: each letter stands for two")]
    Pins {
        /// Letter of the wire.
        wire: char,
        /// Number of its pins.
        got: usize,
    },
    /// A board without wires.
    #[error("the board has no wire: mark the pins of one with 'A' and 'A'")]
    NoWire,
}

impl TryFrom<Text> for Board {
    type Error = BoardError;

    fn try_from(text: Text) -> Result<Self, BoardError> {
        let unreadable = |Unreadable { path, problem }| BoardError::File { path, problem };
        Board::parse(&text.read().map_err(unreadable)?)
    }
}

impl From<Board> for Vec<String> {
    fn from(board: Board) -> Self {
        let mut cells: Vec<char> =
            board.obstacles.iter().map(|&obstacle| if obstacle { '#' } else { '.' }).collect();
        for (wire, pins) in board.wires {
            pins.into_iter().for_each(|(row, column)| cells[row * board.columns + column] = wire);
        }
        cells.chunks_exact(board.columns).map(|row| row.iter().collect()).collect()
    }
}

impl Board {
    /// Reads a board from text.
    ///
    /// # Errors
    /// [`BoardError`] with the position of the first mistake.
    pub fn parse(text: &str) -> Result<Board, BoardError> {
        let mut pins: BTreeMap<char, Vec<Pin>> = BTreeMap::new();
        let read = |row, column, got| {
            match got {
                '.' | '#' => (),
                'A'..='Z' => pins.entry(got).or_default().push((row, column)),
                _ => return Err(BoardError::Character { row, column, got }),
            }
            Ok(got == '#')
        };
        let ragged = |row, expected, got| BoardError::Ragged { row, expected, got };
        let (columns, obstacles) = text::cells(text, read, ragged)?;
        let pair = |(wire, pins): (char, Vec<Pin>)| {
            let got = pins.len();
            let pins = <[Pin; 2]>::try_from(pins).map_err(|_| BoardError::Pins { wire, got })?;
            Ok((wire, pins))
        };
        let wires: BTreeMap<char, [Pin; 2]> =
            pins.into_iter().map(pair).collect::<Result<_, _>>()?;
        if wires.is_empty() {
            return Err(BoardError::NoWire);
        }
        Ok(Board { rows: obstacles.len() / columns, columns, obstacles, wires })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of wires.
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// The letters of the wires, in their order.
    pub(super) fn letters(&self) -> Vec<u8> {
        self.wires.keys().map(|&letter| letter as u8).collect()
    }

    /// The pins of the wires, in their order.
    pub(super) fn pins(&self) -> Vec<[Pin; 2]> {
        self.wires.values().copied().collect()
    }

    /// True for an obstacle, or for a cell outside this board, on a larger board with this board in
    /// its upper left corner.
    pub(super) fn is_obstacle(&self, row: usize, column: usize) -> bool {
        let inside = row < self.rows && column < self.columns;
        !inside || self.obstacles[row * self.columns + column]
    }
}
