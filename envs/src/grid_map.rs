//! Maps of grid worlds, on the host: read from pictures, searched for shortest paths.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A rectangle of cells: walls, goals and free ones. Every free cell can reach a goal.
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

/// Why a picture is no map. Rows and columns count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A character without a meaning.
    #[error(
        "row {row}, column {column}: expected '#' (wall), '.' (free) or 'G' (goal), got {got:?}"
    )]
    Character {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// What stands there.
        got: char,
    },
    /// Rows of different lengths.
    #[error("row {row} has {got} cells, row 0 has {expected}")]
    Ragged {
        /// The row.
        row: usize,
        /// The cells of the first row.
        expected: usize,
        /// The cells of this one.
        got: usize,
    },
    /// No 'G'.
    #[error("the map has no goal: mark one with 'G'")]
    NoGoal,
    /// Nowhere to start.
    #[error("the map has no free cell to start from: mark some with '.'")]
    NoStart,
    /// A start from which no path leads to a goal.
    #[error("row {row}, column {column}: no path leads from here to a goal")]
    Unreachable {
        /// Its row.
        row: usize,
        /// Its column.
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
    /// Reads a picture: a line a row, `#` wall, `.` free, `G` goal. Spaces around lines and empty lines do not count.
    pub fn parse(picture: &str) -> Result<GridMap, MapError> {
        let lines: Vec<&str> =
            picture.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let columns = lines.first().map_or(0, |line| line.chars().count());
        let mut cells = Vec::with_capacity(lines.len() * columns);
        for (row, line) in lines.iter().enumerate() {
            for (column, got) in line.chars().enumerate() {
                cells.push(match got {
                    '#' => Cell::Wall,
                    '.' => Cell::Free,
                    'G' => Cell::Goal,
                    _ => return Err(MapError::Character { row, column, got }),
                });
            }
            let got = line.chars().count();
            if got != columns {
                return Err(MapError::Ragged { row, expected: columns, got });
            }
        }
        if !cells.contains(&Cell::Goal) {
            return Err(MapError::NoGoal);
        }
        if !cells.contains(&Cell::Free) {
            return Err(MapError::NoStart);
        }
        let mut map = GridMap { rows: lines.len(), columns, cells, distances: Vec::new() };
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

    /// Breadth-first from the goals.
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

    /// Height.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Width.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// Whether nothing can stand in a row-major cell.
    pub fn is_wall(&self, cell: usize) -> bool {
        self.cells.get(cell).is_none_or(|&cell| cell == Cell::Wall)
    }

    /// Whether an episode ends in a row-major cell.
    pub fn is_goal(&self, cell: usize) -> bool {
        self.cells.get(cell) == Some(&Cell::Goal)
    }

    /// The cells where episodes start, in row-major order: the free ones.
    pub fn starts(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&cell| self.cells[cell] == Cell::Free).collect()
    }

    /// Steps from a row-major cell to the nearest goal; none from a wall.
    pub fn distance(&self, cell: usize) -> Option<usize> {
        self.distances.get(cell).copied().flatten()
    }

    /// The mean of [`GridMap::distance`] over all starts: the length of an episode played perfectly.
    pub fn mean_distance(&self) -> f64 {
        let starts = self.starts();
        let total: usize = starts.iter().filter_map(|&cell| self.distance(cell)).sum();
        total as f64 / starts.len() as f64
    }

    /// The greatest distance of a start.
    pub fn greatest_distance(&self) -> usize {
        self.distances.iter().flatten().copied().max().unwrap_or(0)
    }
}
