//! Maps of grid worlds, on the host: read from text, and searched for shortest paths.

use crate::text;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A rectangle of cells: walls, goals and free cells. From every free cell a path leads to a goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct GridMap {
    rows: usize,
    columns: usize,
    cells: Vec<Cell>,
    /// Steps to the nearest goal, by row-major cell.
    distances: Vec<Option<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Wall,
    Free,
    Goal,
}

/// Mistakes in the text of a map. Rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A character other than `#`, `.` and `G`.
    #[error(
        "row {row}, column {column}: expected '#' (wall), '.' (free) or 'G' (goal), got {got:?}"
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
    /// A map without a goal.
    #[error("the map has no goal: mark one with 'G'")]
    NoGoal,
    /// A map without a free cell.
    #[error("the map has no free cell to start from: mark some with '.'")]
    NoStart,
    /// A free cell without a path to a goal.
    #[error("row {row}, column {column}: no path leads from here to a goal")]
    Unreachable {
        /// Row of the cell.
        row: usize,
        /// Column of the cell.
        column: usize,
    },
}

impl TryFrom<Vec<String>> for GridMap {
    type Error = MapError;

    fn try_from(rows: Vec<String>) -> Result<Self, MapError> {
        GridMap::parse(&rows.join("\n"))
    }
}

impl From<GridMap> for Vec<String> {
    fn from(map: GridMap) -> Self {
        map.cells
            .chunks_exact(map.columns)
            .map(|row| row.iter().map(Cell::char).collect())
            .collect()
    }
}

impl Cell {
    fn char(&self) -> char {
        match self {
            Cell::Wall => '#',
            Cell::Free => '.',
            Cell::Goal => 'G',
        }
    }
}

impl GridMap {
    /// Reads a map from text, one line per row: `#` is a wall, `.` a free cell, `G` a goal. Spaces
    /// around lines and empty lines are ignored.
    ///
    /// # Errors [`MapError`] with the position of the first mistake.
    pub fn parse(text: &str) -> Result<GridMap, MapError> {
        let read = |row, column, got| match got {
            '#' => Ok(Cell::Wall),
            '.' => Ok(Cell::Free),
            'G' => Ok(Cell::Goal),
            _ => Err(MapError::Character { row, column, got }),
        };
        let ragged = |row, expected, got| MapError::Ragged { row, expected, got };
        let (columns, cells) = text::cells(text, read, ragged)?;
        if !cells.contains(&Cell::Goal) {
            return Err(MapError::NoGoal);
        }
        if !cells.contains(&Cell::Free) {
            return Err(MapError::NoStart);
        }
        let mut map =
            GridMap { rows: cells.len() / columns, columns, cells, distances: Vec::new() };
        map.distances = map.search();
        match (0..map.cells.len())
            .find(|&cell| map.cells[cell] == Cell::Free && map.distances[cell].is_none())
        {
            Some(cell) => {
                Err(MapError::Unreachable { row: cell / columns, column: cell % columns })
            }
            None => Ok(map),
        }
    }

    /// The distances of all cells, searched breadth-first from the goals.
    fn search(&self) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.cells.len()];
        let mut queue = VecDeque::new();
        for (cell, distance) in distances.iter_mut().enumerate() {
            if self.cells[cell] == Cell::Goal {
                *distance = Some(0);
                queue.push_back((cell, 0));
            }
        }
        while let Some((cell, distance)) = queue.pop_front() {
            for next in self.neighbours(cell) {
                if self.cells[next] == Cell::Free && distances[next].is_none() {
                    distances[next] = Some(distance + 1);
                    queue.push_back((next, distance + 1));
                }
            }
        }
        distances
    }

    fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> {
        let (row, column) = (cell / self.columns, cell % self.columns);
        let up = (row > 0).then(|| cell - self.columns);
        let right = (column + 1 < self.columns).then(|| cell + 1);
        let down = (row + 1 < self.rows).then(|| cell + self.columns);
        let left = (column > 0).then(|| cell - 1);
        [up, right, down, left].into_iter().flatten()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of cells, `rows * columns`.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// True for walls and cells outside the map; `cell` is a row-major index.
    pub fn is_wall(&self, cell: usize) -> bool {
        self.cells.get(cell).is_none_or(|&cell| cell == Cell::Wall)
    }

    /// True for goals, where episodes end; `cell` is a row-major index.
    pub fn is_goal(&self, cell: usize) -> bool {
        self.cells.get(cell) == Some(&Cell::Goal)
    }

    /// The row-major indices of the free cells, where episodes start, in order.
    pub fn starts(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&cell| self.cells[cell] == Cell::Free).collect()
    }

    /// Steps from a cell, by its row-major index, to the nearest goal; `None` for a wall.
    pub fn distance(&self, cell: usize) -> Option<usize> {
        self.distances.get(cell).copied().flatten()
    }

    /// The mean of [`GridMap::distance`] over all starts: the mean length of a shortest episode.
    pub fn mean_distance(&self) -> f64 {
        let starts = self.starts();
        let total: usize = starts.iter().filter_map(|&cell| self.distance(cell)).sum();
        total as f64 / starts.len() as f64
    }

    /// The greatest distance of any cell to its nearest goal.
    pub fn greatest_distance(&self) -> usize {
        self.distances.iter().flatten().copied().max().unwrap_or(0)
    }
}
