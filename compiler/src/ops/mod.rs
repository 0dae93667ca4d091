//! The ops. Each op is defined in one place with all its rules; [`registry`] lists the ops for
//! parsing and for the tests.
//!
//! Adding an op touches one family file and one line of the registry.

// First: all the following modules use its macro `refuse!`.
#[macro_use]
mod error;

mod any_example;
mod arithmetic;
mod barrier;
mod bits;
mod call;
mod checkpoint;
mod collective;
mod compare;
mod cond;
mod constant;
mod convert;
mod convolution;
mod cumulative;
mod custom;
mod direction;
mod dot;
mod dynamic_slice;
mod elementwise;
mod gamma;
mod gather;
mod launched;
mod linalg;
mod loops;
mod math;
mod once;
mod op;
mod op_struct;
mod reduce;
mod reduce_window;
pub mod registry;
mod rules;
mod samples;
mod save;
mod scan;
mod scatter;
mod shape;
mod slice;
mod sort;
mod special;
mod tile;
mod while_loop;
mod windows;

pub use any_example::AnyExample;
pub use arithmetic::*;
pub use barrier::*;
pub use bits::*;
pub use call::{Call, CallForm};
pub use checkpoint::{Checkpoint, Named};
pub use collective::*;
pub use compare::*;
pub use cond::{Cond, Rarely};
pub use constant::{Constant, Iota};
pub use convert::*;
pub use convolution::Convolution;
pub use cumulative::*;
pub use custom::{CustomJvp, CustomVjp};
pub use direction::Direction;
pub use dot::*;
pub use dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
pub use elementwise::{Elementwise, same_dtype, same_dtype_that};
pub use error::TypeError;
pub use gamma::*;
pub use gather::Gather;
pub use launched::Launched;
pub use linalg::*;
pub use math::*;
pub use op::{Effect, Op, OpRef, Operand, Pruned, Rule, Sample};
pub use op_struct::OpStruct;
pub use reduce::*;
pub use reduce_window::*;
pub use save::Save;
pub use scan::Scan;
pub use scatter::{Combiner, Scatter};
pub use shape::{BroadcastInDim, Concatenate, Pad, Reshape, Reverse, Transpose};
pub use slice::Slice;
pub use sort::*;
pub use tile::Tile;
pub use while_loop::While;
