//! The ops. Each one stands in one place with all its rules; [`registry`] lists them for parsing and for the tests.
//!
//! Adding an op touches one family file and one line of the registry.

mod arithmetic;
mod barrier;
mod bits;
mod call;
mod collective;
mod compare;
mod cond;
mod constant;
mod convert;
mod convolution;
mod cumulative;
mod dot;
mod dynamic_slice;
mod elementwise;
mod error;
mod gather;
mod math;
mod op;
mod reduce;
pub mod registry;
mod samples;
mod scan;
mod scatter;
mod shape;
mod slice;
mod sort;
mod special;
mod while_loop;
mod windows;

pub use arithmetic::*;
pub use barrier::*;
pub use bits::*;
pub use call::Call;
pub use collective::*;
pub use compare::*;
pub use cond::Cond;
pub use constant::{Constant, Iota};
pub use convert::*;
pub use convolution::Convolution;
pub use cumulative::*;
pub use dot::*;
pub use dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
pub use elementwise::{Elementwise, same_dtype, same_dtype_that};
pub use error::TypeError;
pub use gather::Gather;
pub use math::*;
pub use op::{Effect, Op, OpRef, OpStruct, Operand, Pruned, Rule, Sample, parse_attribute};
pub use reduce::*;
pub use scan::Scan;
pub use scatter::{Combiner, Scatter};
pub use shape::{BroadcastInDim, Concatenate, Pad, Reshape, Reverse, Transpose};
pub use slice::Slice;
pub use sort::*;
pub use while_loop::While;
