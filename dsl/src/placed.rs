//! The placement of a tree on the replicas of a program, declared by its type.

use crate::Tree;

/// A tree in two parts: every replica holds the whole first part, with equal values; each replica
/// holds a share of the second part.
///
/// Parameters and optimizer states are replicated; environments and their keys are sharded, along their leading axis.
#[derive(Tree, Clone)]
pub struct Placed<R: Tree, S: Tree> {
    /// The part that is equal on all replicas.
    pub replicated: R,
    /// This replica's share of the sharded part.
    pub sharded: S,
}
