//! Environments, run by the reference semantics.

/// Calls a function with each environment that is written in the DSL, as it is by default.
macro_rules! every_environment {
    ($check:ident) => {
        podracer_envs::builtin_environments!(every_environment $check)
    };
    ($check:ident: $($environment:ty, $name:literal $package:literal $licence:literal;)*) => {
        $($check(<$environment>::default());)*
    };
}

mod any;
mod boards;
mod canvas;
mod check;
mod connector;
mod delayed_chains;
mod gallery;
mod golden;
mod grid_tasks;
mod grid_world;
mod gymnax;
mod host;
mod mujoco;
mod opponents;
mod own_robot;
mod pixels;
mod render;
mod run;
mod servers;
mod settings;
mod sokoban;
mod space;
mod trees;
mod wrappers;
