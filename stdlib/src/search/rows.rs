//! The nodes of all trees but the roots, packed: one row of f32 a node, so that a level of the tree is one read and one write.
//!
//! # Invariants
//! - The row of node `n` of tree `b` is row `n * B + b`: the nodes that a simulation adds to all trees lie side by side.
//! - Rows `0..B` stand for the roots, which are kept elsewhere. What is not to be written goes there, and nobody reads it.
//! - Whole numbers in f32 are exact up to 2^24.

use super::node::Node;
use podracer_dsl::prelude::*;

/// The numbers at the head of a row, in this order.
#[derive(Clone, Copy)]
pub(super) enum Head {
    /// The action that the next visit takes, unless it is drawn.
    Best,
    /// The node that `Best` leads to, -1 for none yet.
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

/// Numbers at the head.
pub(super) const HEAD: usize = 11;
/// Blocks of one number for each action, behind the head, in this order; prior logits are there if selection reads them.
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
    /// Numbers of the trees whose nodes are read and written, i32 `[K]`; all of them without.
    pub(super) trees: Option<Tensor>,
    #[tree(fixed)]
    pub(super) batch: usize,
    #[tree(fixed)]
    pub(super) actions: usize,
    /// One more block has the prior logits.
    #[tree(fixed)]
    pub(super) with_logits: bool,
}

/// One row of each tree.
#[derive(Clone)]
pub(super) struct Row {
    /// The row as it was read, f32 `[B, W]`; `None` for a new row.
    pub(super) read: Option<Tensor>,
    /// The head's numbers. f32 `[B]` each
    pub(super) head: [Tensor; HEAD],
    /// `[B, A]`, as are the others below. `None` if the rows have none.
    pub(super) prior_logits: Option<Tensor>,
    pub(super) prior_probs: Tensor,
    pub(super) qvalues: Tensor,
    pub(super) visit_counts: Tensor,
    /// The node that each action leads to, -1 for none. f32 `[B, A]`
    pub(super) children: Tensor,
}

impl Row {
    pub(super) fn get(&self, name: Head) -> Tensor {
        self.head[name as usize]
    }

    /// Numbers of the head from one on.
    pub(super) fn heads<const N: usize>(&self, first: Head) -> [Tensor; N] {
        std::array::from_fn(|i| self.head[first as usize + i])
    }

    pub(super) fn set(&mut self, name: Head, value: Tensor) {
        self.head[name as usize] = value;
    }

    /// A row that was read, with other numbers at some columns, i32 `[B]`, f32 `[B]`. It is computed number by number from the old
    /// row: to join the parts of a row anew takes XLA longer than all else that a level does.
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

    /// The rows of some trees: `B` is their number from here on.
    pub(super) fn of(&self, trees: Option<Tensor>) -> Rows {
        Rows { trees, ..self.clone() }
    }

    /// The rows' numbers of nodes, i32 `[B]`; a scalar for one tree, which compiles to a slice in place of a gather.
    #[track_caller]
    pub(super) fn places(&self, node: Tensor) -> Tensor {
        match self.trees {
            None => places(node, self.batch),
            Some(trees) => node * self.batch as i32 + trees,
        }
    }

    /// Numbers of the heads of nodes, i32 `[B]`, from one on. f32 `[B]` each
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

    /// The parts of rows, f32 `[.., W]`, of which there may be more than one of each tree.
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

    /// Replaces the rows of nodes, i32 `[B]`, by rows `[B, W]`.
    #[track_caller]
    pub(super) fn write(self, node: Tensor, row: Tensor) -> Rows {
        let value = if self.batch == 1 { row.index(0) } else { row };
        Rows { data: self.data.set(self.places(node), value), ..self }
    }

    /// One number of the heads of all nodes, f32 `[(S + 1) * B]`.
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

/// Numbers of a row.
pub(super) fn width(actions: usize, with_logits: bool) -> usize {
    HEAD + (BLOCKS + usize::from(with_logits)) * actions
}

/// Places of nodes, i32 `[B]`, among arrays of `[(S + 1) * B, ..]`; a scalar for one tree.
#[track_caller]
pub(super) fn places(node: Tensor, batch: usize) -> Tensor {
    if batch == 1 { node.index(0) } else { node * batch as i32 + arange(batch) }
}

/// Replaces what stands at one node, i32 `[]`, of all trees.
#[track_caller]
pub(super) fn write_all(all: Tensor, node: Tensor, value: Tensor, batch: usize) -> Tensor {
    let mut starts = vec![scalar(0); all.rank()];
    starts[0] = node * batch as i32;
    dynamic_update_slice(all, value, &starts)
}
