//! Tests of the public interface. One binary; a module for each topic.

mod any_tree;
mod catch;
mod checkpoint;
mod combinators;
mod debug;
mod derivatives;
mod division;
mod edges;
mod enums;
mod functions;
mod golden;
mod helpers;
mod mistakes;
mod structures;
mod tensors;
mod tiles;
mod transforms;
mod trees;
mod windows;
