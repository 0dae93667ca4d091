//! Puzzles and small problems of combinatorial optimization, with jumanji's rules (Bonnet et al., "Jumanji: a Diverse Suite of Scalable
//! Reinforcement Learning Environments in JAX", 2024).

mod graph_coloring;
mod knapsack;
mod levels;
mod maze;
mod minesweeper;
mod rubiks_cube;
mod sliding_tiles;
mod sokoban;
mod travelling_salesman;

pub use graph_coloring::{GraphColoring, State as GraphColoringState};
pub use knapsack::{Knapsack, State as KnapsackState};
pub use levels::{LevelError, Levels};
pub use maze::{Maze, State as MazeState};
pub use minesweeper::{Minesweeper, State as MinesweeperState};
pub use rubiks_cube::{RubiksCube, State as RubiksCubeState};
pub use sliding_tiles::{SlidingTiles, State as SlidingTilesState};
pub use sokoban::{Sokoban, State as SokobanState};
pub use travelling_salesman::{State as TravellingSalesmanState, TravellingSalesman};
