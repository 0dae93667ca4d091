//! Environments, run by the reference semantics.

/// Calls a function with each environment that is written in the DSL, as it is by default.
macro_rules! every_environment {
    ($check:ident) => {{
        use podracer_envs::boards::{ConnectFour, Game2048, Othello, Snake, TicTacToe};
        use podracer_envs::minatar::{Asterix, Breakout, Freeway, Seaquest, SpaceInvaders};
        use podracer_envs::minigrid::{
            DoorKey, DynamicObstacles, Empty, FourRooms, GoToDoor, KeyCorridor, LavaGap, Memory, MultiRoom, Unlock,
        };
        use podracer_envs::puzzles::{
            GraphColoring, Knapsack, Maze, Minesweeper, RubiksCube, SlidingTiles, Sokoban, TravellingSalesman,
        };
        use podracer_envs::{
            Acrobot, CartPole, Catch, Connector, CraftaxClassic, DeepSea, DelayedChains, DiscountingChain, GridTasks, GridWorld, MemoryChain,
            MountainCar, MountainCarContinuous, Pendulum, SimpleBandit, UmbrellaChain,
        };
        every_environment!(
            $check Acrobot CartPole Catch Connector CraftaxClassic DeepSea DelayedChains DiscountingChain GridTasks GridWorld MemoryChain MountainCar
            MountainCarContinuous Pendulum SimpleBandit UmbrellaChain Asterix Breakout Freeway
            Seaquest SpaceInvaders ConnectFour Game2048 Othello Snake TicTacToe GraphColoring Knapsack
            Maze Minesweeper RubiksCube SlidingTiles Sokoban TravellingSalesman DoorKey DynamicObstacles Empty FourRooms GoToDoor KeyCorridor LavaGap Memory MultiRoom
            Unlock
        );
    }};
    ($check:ident $($environment:ident)*) => { $($check($environment::default());)* };
}

mod any;
mod boards;
mod check;
mod connector;
mod delayed_chains;
mod gallery;
mod golden;
mod grid_tasks;
mod grid_world;
mod gymnax;
mod host;
mod opponents;
mod pixels;
mod render;
mod run;
mod servers;
mod settings;
mod sokoban;
mod space;
mod trees;
mod wrappers;
