//! What the replicas of a program share of a tree, declared by its type.

use crate::Tree;

/// A tree in two parts: one that all replicas have whole and equal, one of which each replica has its own share.
///
/// Parameters and optimizer states are replicated; environments and their keys are sharded, along their leading axis.
#[derive(Tree, Clone)]
pub struct Placed<R: Tree, S: Tree> {
    /// Equal on all replicas.
    pub replicated: R,
    /// Each replica's share.
    pub sharded: S,
}
