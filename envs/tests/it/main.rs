//! Environments, run by the reference semantics.

mod any;
mod boards;
mod check;
mod golden;
mod grid_world;
mod gymnax;
mod host;
mod opponents;
mod pixels;
mod render;
mod run;
mod servers;
mod settings;
#[path = "../../../tests/src/skip.rs"]
mod skip;
mod space;
mod trees;
mod wrappers;
