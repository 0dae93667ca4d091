//! The map: its blocks, and the writes of a step.

use super::Place;
use podracer_dsl::prelude::*;

/// Rows and columns of the map.
pub(super) const SIZE: usize = 64;
/// Cells of the map.
pub(super) const CELLS: usize = SIZE * SIZE;

/// Numbers of blocks.
pub(super) mod block {
    pub const OUTSIDE: i32 = 1;
    pub const GRASS: i32 = 2;
    pub const WATER: i32 = 3;
    pub const STONE: i32 = 4;
    pub const TREE: i32 = 5;
    pub const PATH: i32 = 7;
    pub const COAL: i32 = 8;
    pub const IRON: i32 = 9;
    pub const DIAMOND: i32 = 10;
    pub const TABLE: i32 = 11;
    pub const FURNACE: i32 = 12;
    pub const SAND: i32 = 13;
    pub const LAVA: i32 = 14;
    pub const PLANT: i32 = 15;
    pub const RIPE_PLANT: i32 = 16;
    /// Blocks have numbers below this.
    pub const COUNT: usize = 17;
    /// Blocks that block all movement.
    pub const SOLID: [i32; 10] =
        [WATER, STONE, TREE, COAL, IRON, DIAMOND, TABLE, FURNACE, PLANT, RIPE_PLANT];
}

/// Blocks as the bits of a word.
pub(super) fn bits(blocks: &[i32]) -> u32 {
    blocks.iter().fold(0, |bits, block| bits | 1 << block)
}

/// True where a block, `i32` or `u8` of any shape, is one of those whose bits are set. `bits` is `u32[]`.
#[track_caller]
pub(super) fn is_among(there: Tensor, bits: impl IntoTensor) -> Tensor {
    ((bits.into_tensor().astype(U32) >> there.astype(U32)) & 1u32).ne(0u32)
}

/// True for a block that blocks all movement. `bool` of the block's shape
#[track_caller]
pub(super) fn is_solid(there: Tensor) -> Tensor {
    is_among(there, bits(&block::SOLID))
}

/// True for a position on the map. `bool[]`
#[track_caller]
pub(super) fn is_inside((row, column): Place) -> Tensor {
    let size = SIZE as i32;
    row.ge(0) & row.lt(size) & column.ge(0) & column.lt(size)
}

/// The cell of a position. As in the package, a position before the first row or column wraps to
/// the end, and a position behind the last is clamped to it.
#[track_caller]
fn cell((row, column): Place) -> Tensor {
    let size = SIZE as i32;
    let on_map = |i: Tensor| select(i.lt(0), i + size, i).clamp(0, size - 1);
    on_map(row) * size + on_map(column)
}

/// A cell that is written, and its block. `i32[]` each
#[derive(Tree, Clone, Copy)]
pub(super) struct Write {
    /// Number of the cell, -1 for none.
    cell: Tensor,
    block: Tensor,
}

impl Write {
    /// A block at a position, if `when` is true and the position is not behind the last row or
    /// column.
    #[track_caller]
    pub(super) fn new(when: Tensor, place: Place, block: impl IntoTensor) -> Write {
        let size = SIZE as i32;
        let when = when & place.0.lt(size) & place.1.lt(size);
        Write { cell: select(when, cell(place), -1), block: block.into_tensor() }
    }

    /// The cell, -1 for none. `i32[]`
    pub(super) fn cell(&self) -> Tensor {
        self.cell
    }
}

/// The map during a step. Writes are kept separately from the blocks, so that the blocks are copied
/// once.
#[derive(Clone, Copy)]
pub(super) struct Map {
    /// Blocks before the step. `u8[CELLS]`
    pub(super) blocks: Tensor,
    /// The cell that the player wrote, after it acted.
    pub(super) own: Option<Write>,
}

impl Map {
    /// The block at a position. `i32[]`
    #[track_caller]
    pub(super) fn read(&self, place: Place) -> Tensor {
        let cell = cell(place);
        let before = self.blocks.take(cell, 0).astype(I32);
        self.own.iter().fold(before, |there, own| select(own.cell.eq(cell), own.block, there))
    }

    /// The block at a position, after some cells, `i32[n]`, became paths. `i32[]`
    #[track_caller]
    pub(super) fn read_after(&self, broken: Tensor, place: Place) -> Tensor {
        select(broken.eq(cell(place)).any(), block::PATH, self.read(place))
    }

    /// The blocks with all writes, after some cells, `i32[n]`, -1 for none, became paths.
    /// `u8[CELLS]`
    #[track_caller]
    pub(super) fn after(&self, broken: Tensor) -> Tensor {
        let number = arange(CELLS);
        let own = self.own.iter().fold(self.blocks, |blocks, own| {
            select(number.eq(own.cell), own.block.astype(U8), blocks)
        });
        let path = scalar(block::PATH).astype(U8);
        broken.unstack().into_iter().fold(own, |blocks, cell| select(number.eq(cell), path, blocks))
    }
}

/// The blocks around a position, `rows` by `columns`, which are odd and at most 27, with
/// [`block::OUTSIDE`] around the map. `u8[rows, columns]`
#[track_caller]
pub(super) fn around(blocks: Tensor, (row, column): Place, rows: usize, columns: usize) -> Tensor {
    // The middle may be a cell outside the map.
    const EDGE: usize = 14;
    let map = blocks.reshape([SIZE, SIZE]);
    let padded = map.pad(&[(EDGE as i64, EDGE as i64); 2], block::OUTSIDE);
    let start = |i: Tensor, extent: usize| i + (EDGE - extent / 2) as i32;
    dynamic_slice(padded, &[start(row, rows), start(column, columns)], &[rows, columns])
}
