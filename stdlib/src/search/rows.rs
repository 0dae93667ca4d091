//! The trees' nodes except the roots, packed with one row of f32 per node, so that a level of the
//! tree is one read and one write.
//!
//! # Invariants
//! - The row of node `n` of tree `b` is row `n * B + b`: the nodes that a simulation adds to all
//!   trees are adjacent.
//! - Rows `0..B` belong to the roots, which are stored elsewhere. Values that must be discarded are
//!   written to these rows, which are never read.
//! - Integers in f32 are exact up to 2^24.

use super::node::Node;
use podracer_dsl::prelude::*;

/// The numbers at the head of a row, in this order.
#[derive(Clone, Copy)]
pub(super) enum Head {
    /// The action of the next visit, unless it is drawn.
    Best,
    /// The node after `Best`, -1 if there is none yet.
    Next,
    /// 1 if noise decides between actions.
    Tie,
    Value,
    RawValue,
    Visits,
    Depth,
    Parent,
    /// The action that leads from the parent to the node, and its reward and discount.
    Action,
    Reward,
    Discount,
}

/// Number of elements at the head.
pub(super) const HEAD: usize = 11;
/// Blocks with one number per action, after the head, in this order. Prior logits are present if
/// selection reads them.
#[derive(Clone, Copy)]
pub(super) enum Block {
    PriorProbs,
    Qvalues,
    Visits,
    Children,
    PriorLogits,
}

/// Blocks that all rows have.
const BLOCKS: usize = 4;

/// Rows of nodes with the trees' extents.
#[derive(Tree, Clone)]
pub(super) struct Rows {
    /// f32 `[(S + 1) * B, W]`
    pub(super) data: Tensor,
    /// Indices of the trees with nodes to read and write, i32 `[K]`; `None` for all trees.
    pub(super) trees: Option<Tensor>,
    #[tree(fixed)]
    pub(super) batch: usize,
    #[tree(fixed)]
    pub(super) actions: usize,
    /// True if one more block has the prior logits.
    #[tree(fixed)]
    pub(super) with_logits: bool,
}

/// One row of each tree.
#[derive(Clone)]
pub(super) struct Row {
    /// The row as read, f32 `[B, W]`; `None` for a new row.
    pub(super) read: Option<Tensor>,
    /// The head's numbers. f32 `[B]` each
    pub(super) head: [Tensor; HEAD],
    /// `[B, A]`, like the fields below. `None` if the rows have no prior logits.
    pub(super) prior_logits: Option<Tensor>,
    pub(super) prior_probs: Tensor,
    pub(super) qvalues: Tensor,
    pub(super) visit_counts: Tensor,
    /// The node after each action, -1 for none. f32 `[B, A]`
    pub(super) children: Tensor,
}

impl Row {
    pub(super) fn get(&self, name: Head) -> Tensor {
        self.head[name as usize]
    }

    /// The head's numbers from `first` on.
    pub(super) fn heads<const N: usize>(&self, first: Head) -> [Tensor; N] {
        std::array::from_fn(|i| self.head[first as usize + i])
    }

    pub(super) fn set(&mut self, name: Head, value: Tensor) {
        self.head[name as usize] = value;
    }

    /// The row as read, with the numbers f32 `[B]` at columns i32 `[B]` replaced. It is computed
    /// element by element from the old row, because concatenating the parts of a row takes XLA
    /// longer than everything else in a level.
    #[track_caller]
    pub(super) fn with_changes(&self, changes: &[(Tensor, Tensor)]) -> Tensor {
        let Some(mut row) = self.read else { return self.packed() };
        let columns = iota(I32, row.shape(), 1);
        for (column, value) in changes {
            row = select(columns.eq(column.expand_dims(-1)), value.expand_dims(-1), row);
        }
        row
    }

    pub(super) fn node(&self) -> Node {
        Node {
            prior_logits: self.prior_logits.unwrap_or_else(|| self.prior_probs.log()),
            prior_probs: self.prior_probs,
            qvalues: self.qvalues,
            visit_counts: self.visit_counts,
            value: self.get(Head::Value),
            raw_value: self.get(Head::RawValue),
            visits: self.get(Head::Visits),
            depth: self.get(Head::Depth),
        }
    }

    /// The row as one array, f32 `[B, W]`.
    #[track_caller]
    pub(super) fn packed(&self) -> Tensor {
        let mut blocks = vec![
            stack(&self.head, 1),
            self.prior_probs,
            self.qvalues,
            self.visit_counts,
            self.children,
        ];
        blocks.extend(self.prior_logits);
        concatenate(&blocks, 1)
    }
}

impl Rows {
    #[track_caller]
    pub(super) fn zeros(nodes: usize, batch: usize, actions: usize, with_logits: bool) -> Rows {
        let width = width(actions, with_logits);
        Rows { data: zeros(F32, [nodes * batch, width]), trees: None, batch, actions, with_logits }
    }

    /// The columns of a block.
    pub(super) fn block(actions: usize, block: Block) -> std::ops::Range<usize> {
        let first = HEAD + block as usize * actions;
        first..first + actions
    }

    fn width(&self) -> usize {
        width(self.actions, self.with_logits)
    }

    /// The rows of some trees; `B` is their number in the result.
    pub(super) fn of(&self, trees: Option<Tensor>) -> Rows {
        Rows { trees, ..self.clone() }
    }

    /// The row indices of nodes, i32 `[B]`; a scalar for one tree, which compiles to a slice
    /// instead of a gather.
    #[track_caller]
    pub(super) fn places(&self, node: Tensor) -> Tensor {
        match self.trees {
            None => places(node, self.batch),
            Some(trees) => node * self.batch as i32 + trees,
        }
    }

    /// Numbers in the heads of nodes, i32 `[B]`, from `first` on. f32 `[B]` each
    #[track_caller]
    pub(super) fn heads<const N: usize>(&self, node: Tensor, first: Head) -> [Tensor; N] {
        let flat = self.data.flatten();
        let first = self.places(node) * self.width() as i32 + first as i32;
        if self.batch == 1 {
            let numbers = dynamic_slice(flat, &[first], &[N]);
            return std::array::from_fn(|i| numbers.slice_axis(0, i..i + 1));
        }
        let numbers = flat.take(first.expand_dims(1) + arange(N), 0);
        std::array::from_fn(|i| numbers.index_axis(1, i))
    }

    /// The rows of nodes, i32 `[B]`.
    #[track_caller]
    pub(super) fn read(&self, node: Tensor) -> Row {
        let row = self.data.take(self.places(node), 0).reshape([node.len(), self.width()]);
        self.row(row)
    }

    /// The parts of rows, f32 `[.., W]`, with possibly several rows per tree.
    #[track_caller]
    pub(super) fn row(&self, row: Tensor) -> Row {
        let head = std::array::from_fn(|i| row.index_axis(1, i));
        let block = |block| row.slice_axis(1, Rows::block(self.actions, block));
        Row {
            read: Some(row),
            head,
            prior_probs: block(Block::PriorProbs),
            qvalues: block(Block::Qvalues),
            visit_counts: block(Block::Visits),
            children: block(Block::Children),
            prior_logits: self.with_logits.then(|| block(Block::PriorLogits)),
        }
    }

    /// Replaces the rows of nodes, i32 `[B]`, with rows `[B, W]`.
    #[track_caller]
    pub(super) fn write(self, node: Tensor, row: Tensor) -> Rows {
        let value = if self.batch == 1 { row.index(0) } else { row };
        Rows { data: self.data.set(self.places(node), value), ..self }
    }

    /// One number in every node's head, f32 `[(S + 1) * B]`.
    #[track_caller]
    pub(super) fn column(&self, name: Head) -> Tensor {
        self.data.index_axis(1, name as i32)
    }

    /// Replaces the rows of one node, i32 `[]`, in all trees.
    #[track_caller]
    pub(super) fn write_all(self, node: Tensor, row: &Row) -> Rows {
        Rows { data: write_all(self.data, node, row.packed(), self.batch), ..self }
    }
}

/// Number of elements in a row.
pub(super) fn width(actions: usize, with_logits: bool) -> usize {
    HEAD + (BLOCKS + usize::from(with_logits)) * actions
}

/// Positions of nodes, i32 `[B]`, in arrays of `[(S + 1) * B, ..]`; a scalar for one tree.
#[track_caller]
pub(super) fn places(node: Tensor, batch: usize) -> Tensor {
    if batch == 1 { node.index(0) } else { node * batch as i32 + arange(batch) }
}

/// Replaces the data of one node, i32 `[]`, in all trees.
#[track_caller]
pub(super) fn write_all(all: Tensor, node: Tensor, value: Tensor, batch: usize) -> Tensor {
    let mut starts = vec![scalar(0); all.rank()];
    starts[0] = node * batch as i32;
    dynamic_update_slice(all, value, &starts)
}
