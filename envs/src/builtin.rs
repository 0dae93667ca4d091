//! The list of the built-in environments.

/// Calls a macro with all built-in environments that are written in the DSL.
///
/// `builtin_environments!(callback)` expands to `callback! { .. }` with one line per environment:
/// `Type, "name" "package" "licence";`. `name` is the value of `environment.name`, `package` is the
/// Python package with the same rules, and `licence` is that package's licence. An identifier after
/// `callback` comes before the first line, with a colon. The registry, the tests of every
/// environment, the gallery and the benches read this list.
///
/// ```
/// macro_rules! names {
///     ($($environment:ty, $name:literal $package:literal $licence:literal;)*) => { [$($name),*] };
/// }
///
/// assert!(podracer_envs::builtin_environments!(names).contains(&"cartpole"));
/// ```
#[macro_export]
macro_rules! builtin_environments {
    ($callback:ident $($argument:ident)?) => {
        $callback! {
            $($argument:)?
            $crate::CartPole, "cartpole" "Gymnasium" "MIT";
            $crate::Pendulum, "pendulum" "Gymnasium" "MIT";
            $crate::Acrobot, "acrobot" "Gymnasium" "MIT";
            $crate::MountainCar, "mountain-car" "Gymnasium" "MIT";
            $crate::MountainCarContinuous, "mountain-car-continuous" "Gymnasium" "MIT";
            $crate::mujoco::HalfCheetah, "mujoco-half-cheetah" "Gymnasium" "MIT";
            $crate::mujoco::Hopper, "mujoco-hopper" "Gymnasium" "MIT";
            $crate::mujoco::Walker2d, "mujoco-walker2d" "Gymnasium" "MIT";
            $crate::mujoco::Swimmer, "mujoco-swimmer" "Gymnasium" "MIT";
            $crate::mujoco::Reacher, "mujoco-reacher" "Gymnasium" "MIT";
            $crate::mujoco::Pusher, "mujoco-pusher" "Gymnasium" "MIT";
            $crate::mujoco::InvertedPendulum, "mujoco-inverted-pendulum" "Gymnasium" "MIT";
            $crate::mujoco::InvertedDoublePendulum, "mujoco-inverted-double-pendulum" "Gymnasium" "MIT";
            $crate::mujoco::Ant, "mujoco-ant" "Gymnasium" "MIT";
            $crate::mujoco::Humanoid, "mujoco-humanoid" "Gymnasium" "MIT";
            $crate::mujoco::HumanoidStandup, "mujoco-humanoid-standup" "Gymnasium" "MIT";
            $crate::Catch, "catch" "bsuite, gymnax" "Apache-2.0";
            $crate::SimpleBandit, "bandit" "bsuite, gymnax" "Apache-2.0";
            $crate::DeepSea, "deep-sea" "bsuite" "Apache-2.0";
            $crate::DiscountingChain, "discounting-chain" "bsuite, gymnax" "Apache-2.0";
            $crate::MemoryChain, "memory-chain" "bsuite, gymnax" "Apache-2.0";
            $crate::UmbrellaChain, "umbrella-chain" "bsuite, gymnax" "Apache-2.0";
            $crate::GridTasks, "grid-tasks" "groove" "Apache-2.0";
            $crate::DelayedChains, "delayed-chains" "groove" "Apache-2.0";
            $crate::boards::TicTacToe, "tic-tac-toe" "pgx" "Apache-2.0";
            $crate::boards::ConnectFour, "connect-four" "pgx" "Apache-2.0";
            $crate::boards::Othello, "othello" "pgx" "Apache-2.0";
            $crate::boards::Game2048, "2048" "pgx" "Apache-2.0";
            $crate::boards::Snake, "snake" "jumanji" "Apache-2.0";
            $crate::Connector, "connector" "jumanji" "Apache-2.0";
            $crate::puzzles::Maze, "maze" "jumanji" "Apache-2.0";
            $crate::puzzles::SlidingTiles, "sliding-tiles" "jumanji" "Apache-2.0";
            $crate::puzzles::Knapsack, "knapsack" "jumanji" "Apache-2.0";
            $crate::puzzles::GraphColoring, "graph-coloring" "jumanji" "Apache-2.0";
            $crate::puzzles::Minesweeper, "minesweeper" "jumanji" "Apache-2.0";
            $crate::puzzles::RubiksCube, "rubiks-cube" "jumanji" "Apache-2.0";
            $crate::puzzles::Sokoban, "sokoban" "jumanji" "Apache-2.0";
            $crate::puzzles::TravellingSalesman, "travelling-salesman" "jumanji" "Apache-2.0";
            $crate::minigrid::Empty, "minigrid-empty" "minigrid" "Apache-2.0";
            $crate::minigrid::FourRooms, "minigrid-four-rooms" "minigrid" "Apache-2.0";
            $crate::minigrid::DoorKey, "minigrid-door-key" "minigrid" "Apache-2.0";
            $crate::minigrid::Unlock, "minigrid-unlock" "minigrid" "Apache-2.0";
            $crate::minigrid::KeyCorridor, "minigrid-key-corridor" "minigrid" "Apache-2.0";
            $crate::minigrid::MultiRoom, "minigrid-multi-room" "minigrid" "Apache-2.0";
            $crate::minigrid::Memory, "minigrid-memory" "minigrid" "Apache-2.0";
            $crate::minigrid::LavaGap, "minigrid-lava-gap" "minigrid" "Apache-2.0";
            $crate::minigrid::DynamicObstacles, "minigrid-dynamic-obstacles" "minigrid" "Apache-2.0";
            $crate::minigrid::GoToDoor, "minigrid-go-to-door" "minigrid" "Apache-2.0";
            $crate::minatar::Asterix, "minatar-asterix" "gymnax" "Apache-2.0";
            $crate::minatar::Breakout, "minatar-breakout" "gymnax" "Apache-2.0";
            $crate::minatar::Freeway, "minatar-freeway" "gymnax" "Apache-2.0";
            $crate::minatar::Seaquest, "minatar-seaquest" "gymnax" "Apache-2.0";
            $crate::minatar::SpaceInvaders, "minatar-space-invaders" "gymnax" "Apache-2.0";
            $crate::CraftaxClassic, "craftax-classic" "craftax" "MIT";
            $crate::GridWorld, "gridworld" "podracer" "MIT or Apache-2.0";
        }
    };
}
