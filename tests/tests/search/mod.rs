//! Searches on XLA: those of mctx, node by node, and under transforms.

mod alphazero;
mod chance;
mod golden;
mod memory;
mod models;
mod transforms;
mod trees;
